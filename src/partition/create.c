/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions that come and go while the shard runs. A new one exists from its first durable state
 * on; its folder and files are made by its first move. A removed one is out of the map at once; its
 * memory goes with the last thing in flight, its files behind every job that is queued. */
#include "partition/producers_private.h"

#include "base/assert.h"
#include "base/mutation.h"

#include <stdlib.h>

/* The first state of a new group on its way into the journal. */
struct founding {
    struct esk_journal_append append;
    struct esk_group_state state;
    struct esk_partition *partition;
};

static void founding_persisted(struct esk_journal_append *append) {
    (void)append;
}

static void founding_durable(struct esk_journal_append *append) {
    struct founding *founding = ESK_CONTAINER(append, struct founding, append);
    struct esk_partition *partition = founding->partition;
    free(founding);
    if (!partition->removed) {
        eski_partition_begin(partition);
    }
    eski_partition_let_go(partition);
}

static void found(struct esk_shard *shard, const struct esk_partition_spec *spec,
                  struct esk_partition_creation *creation) {
    struct esk_partition *partition = eski_partition_create(shard, spec);
    const struct esk_group_state nothing = {
        .group_id = spec->group_id,
        .configuration = {.count = 1, .nodes = {shard->options.node}},
        .checkpoint = {.segment_timestamp_ms = -1,
                       .segment_limit_bytes = spec->settings.segment_bytes},
    };
    partition->creation = creation;
    partition->checkpoint = nothing.checkpoint;
    partition->group = esk_group_create(shard->options.node, &nothing, 0, 0);
    partition->submit_segment_limit = spec->settings.segment_bytes;
    if (spec->machine == NULL) {
        eski_segment_add(partition, 0);
    }
    const struct esk_event event = {.kind = ESK_EVENT_START};
    struct esk_update update;
    ESK_ASSERT(esk_group_step(partition->group, &event, &update) == ESK_OK);
    struct founding *founding = esk_alloc_zeroed(1, sizeof(*founding));
    founding->partition = partition;
    founding->state = nothing;
    founding->state.term = update.term;
    founding->state.voted_for = update.voted_for;
    founding->append.group_id = spec->group_id;
    founding->append.state = &founding->state;
    founding->append.strict = true;
    founding->append.persisted = founding_persisted;
    founding->append.durable = founding_durable;
    eski_partition_hold(partition);
    esk_journal_append(shard->journal, &founding->append);
}

void esk_shard_create_partitions(struct esk_shard *shard, struct esk_partition_creation *creation) {
    ESK_ASSERT(creation->count > 0);
    creation->waiting = creation->count;
    for (size_t i = 0; i < creation->count; i++) {
        found(shard, &creation->specs[i], creation);
    }
}

/* --- removal --- */

static void files_gone(struct esk_mail *mail) {
    struct esk_partition_removal *removal = ESK_CONTAINER(mail, struct esk_partition_removal, mail);
    struct esk_shard *shard = removal->shard;
    shard->removing--;
    if (removal->err != ESK_OK) {
        eski_shard_fail(shard, &removal->error);
    } else {
        ESK_REACHED(TOPIC_DELETED);
        removal->done(removal);
    }
    eski_shard_step_stop(shard);
}

static void remove_files(struct esk_mail *mail) {
    struct esk_partition_removal *removal = ESK_CONTAINER(mail, struct esk_partition_removal, mail);
    struct esk_shard *shard = removal->shard;
    for (size_t i = 0; i < removal->count; i++) {
        struct esk_error error;
        enum esk_err err =
            esk_group_files_remove(shard->options.storage, removal->group_ids[i], &error);
        if (err == ESK_ERR_IO) {
            removal->err = err; /* maybe a failed sync: who knows what else it took along */
            removal->error = error;
        } else if (err != ESK_OK) {
            ESK_LOG(shard->options.log, ESK_LOG_WARN, "files-not-removed",
                    "files of a deleted topic stay behind; the next start removes them",
                    esk_field_u64("group", removal->group_ids[i]),
                    esk_field_text("detail", error.text));
        }
    }
    mail->run = files_gone;
    esk_post(&shard->loop->executor, mail);
}

static void drop(struct esk_shard *shard, struct esk_partition *partition) {
    eski_partition_hold(partition);
    partition->removed = true;
    partition->serving = false;
    esk_u64_map_remove(&shard->partitions, partition->group_id);
    esk_deadlines_remove(&shard->oldest, &partition->oldest);
    esk_list_remove(&partition->full);
    esk_list_remove(&partition->settling);
    eski_retention_settled(partition);
    esk_journal_forget(shard->journal, partition->group_id);
    eski_reads_end(partition, ESK_ERR_NOT_FOUND);
    eski_sequences_end(partition);
    if (partition->creation != NULL) { /* deleted before it served */
        struct esk_partition_creation *creation = partition->creation;
        partition->creation = NULL;
        if (--creation->waiting == 0) {
            creation->done(creation);
        }
    }
    eski_partition_let_go(partition);
}

void esk_shard_remove_partitions(struct esk_shard *shard, struct esk_partition_removal *removal) {
    removal->shard = shard;
    removal->err = ESK_OK;
    for (size_t i = 0; i < removal->count; i++) {
        struct esk_partition *partition = esk_shard_find(shard, removal->group_ids[i]);
        if (partition != NULL) {
            drop(shard, partition);
        }
    }
    eski_waiting_drop_removed(shard);
    shard->removing++;
    removal->mail.run = remove_files;
    if (!eski_compaction_defers(shard, removal)) {
        esk_post(shard->writer, &removal->mail);
    }
}
