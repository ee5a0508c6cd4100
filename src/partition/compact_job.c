/* SPDX-License-Identifier: Apache-2.0 */
/* The cleaner's part of compaction: reading and writing, on a worker of its own, so that moves and
 * checkpoints never wait for it. */
#include "partition/compact_private.h"

#include <stdlib.h>

void eski_compact_remove_later(struct eski_compaction *pass, struct eski_compact_file file) {
    if (pass->file_count == pass->file_capacity) {
        pass->file_capacity = pass->file_capacity * 2 + 8;
        pass->files = esk_realloc(pass->files, pass->file_capacity * sizeof(file));
    }
    pass->files[pass->file_count++] = file;
}

/* What is left behind by an error goes at the next start. */
static void remove_files(struct eski_compaction *pass) {
    const struct esk_storage *storage = pass->shard->options.storage;
    uint64_t group_id = pass->partition->group_id;
    for (size_t i = 0; i < pass->file_count && pass->remove_err != ESK_ERR_IO; i++) {
        const struct eski_compact_file *file = &pass->files[i];
        struct esk_error error;
        enum esk_err err =
            file->with_index
                ? esk_segment_remove(storage, group_id, file->base_offset, file->revision, &error)
                : esk_segment_remove_revision(storage, group_id, file->base_offset, file->revision,
                                              &error);
        if (err != ESK_OK) {
            pass->remove_err = err;
            pass->remove_error = error;
        }
    }
    pass->file_count = 0;
}

static enum esk_err make_map(struct eski_compaction *pass) {
    const struct esk_compaction_input *last = &pass->inputs[pass->input_count - 1];
    esk_key_map_init(&pass->map, pass->map_bytes_max, last->end_offset - pass->from, pass->seed);
    esk_compaction_filter_init(&pass->filter);
    pass->mapped = true;
    pass->filter.map = &pass->map;
    pass->filter.now_ms = pass->now_ms;
    pass->filter.tombstone_retention_ms = pass->tombstone_retention_ms;
    if (pass->from == last->end_offset) { /* all is compacted: only tombstones, or small files */
        pass->map_end = pass->from;
        return ESK_OK;
    }
    return esk_compaction_map(pass->shard->options.storage, pass->partition->group_id, pass->inputs,
                              pass->input_count, pass->from, &pass->pace, &pass->map,
                              &pass->map_end, &pass->error);
}

static enum esk_err finish(struct eski_compaction *pass) {
    if (pass->mapped) {
        esk_key_map_fini(&pass->map);
        esk_compaction_filter_fini(&pass->filter);
        pass->mapped = false;
    }
    return pass->store_cleaned
               ? esk_cleaned_store(pass->shard->options.storage, pass->partition->group_id,
                                   pass->cleaned_offset, &pass->error)
               : ESK_OK;
}

static enum esk_err run_step(struct eski_compaction *pass) {
    switch (pass->step) {
    case ESKI_COMPACT_LOAD:
        return esk_cleaned_load(pass->shard->options.storage, pass->partition->group_id,
                                &pass->cleaned_offset, &pass->error);
    case ESKI_COMPACT_MAP:
        return make_map(pass);
    case ESKI_COMPACT_REWRITE:
        pass->filter.map_end = pass->map_end;
        return esk_compaction_rewrite(pass->shard->options.storage, pass->partition->group_id,
                                      pass->inputs + pass->at, pass->group_count, &pass->filter,
                                      &pass->pace, &pass->result, &pass->error);
    case ESKI_COMPACT_FINISH:
        return finish(pass);
    }
    return ESK_OK;
}

static void done_run(struct esk_mail *mail) {
    struct eski_compaction *pass = ESK_CONTAINER(mail, struct eski_compaction, mail);
    pass->working = false;
    eski_compact_done(pass);
}

static void work_run(struct esk_mail *mail) {
    struct eski_compaction *pass = ESK_CONTAINER(mail, struct eski_compaction, mail);
    remove_files(pass);
    pass->err = run_step(pass);
    mail->run = done_run;
    esk_post(&pass->shard->loop->executor, mail);
}

void eski_compact_work(struct eski_compaction *pass, enum eski_compact_step step) {
    struct esk_shard *shard = pass->shard;
    if (shard->cleaner == NULL) {
        shard->cleaner = esk_worker_create(shard->platform, "cleaner", 1);
    }
    pass->step = step;
    pass->working = true;
    pass->mail.run = work_run;
    esk_post(shard->cleaner, &pass->mail);
}
