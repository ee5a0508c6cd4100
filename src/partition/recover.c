/* SPDX-License-Identifier: Apache-2.0 */
/* A partition from what disk and journal have of it, before anything is served; blocks.
 *
 * A group starts from its newest checkpoint: segments below it are as their index files say, the
 * open one is cut to it, later files are void and go. Nothing on disk is changed before
 * eski_partition_ready, which comes when all journals were replayed and found whole. */
#include "partition/producers_private.h"

#include "base/mutation.h"

#include <stdlib.h>

static enum esk_err lost(const struct esk_partition *partition, uint64_t base_offset,
                         const char *what, struct esk_error *error) {
    return esk_fail(error, ESK_ERR_CORRUPT, "%s/%016llx/%020llu.segment: %s",
                    partition->shard->options.storage->folder,
                    (unsigned long long)partition->group_id, (unsigned long long)base_offset, what);
}

/* A segment below the checkpoint is missing, or its index is: retention removes whole segments from
 * the lowest on, index first, and a power loss keeps any part of that. So what lies below the gap
 * counts for nothing, and eski_partition_ready refuses when the log should begin there. */
static void leave_gap(struct esk_partition *partition, uint64_t missing_offset) {
    eski_segments_forget(partition);
    partition->headless = true;
    partition->headless_offset = missing_offset;
}

static void check_gap(struct esk_partition *partition, uint64_t base_offset) {
    if (partition->segment_count > 0 &&
        eski_segment_open_one(partition)->end_offset != base_offset) {
        leave_gap(partition, eski_segment_open_one(partition)->end_offset);
    }
}

/* files: all of that base offset. */
static enum esk_err recover_sealed(struct esk_partition *partition,
                                   const struct esk_segment_file *files, size_t count,
                                   struct esk_error *error) {
    struct esk_segment_summary summary;
    uint64_t base_offset = files[0].base_offset;
    size_t named = 0;
    enum esk_err err = esk_segment_load(partition->shard->options.storage, partition->group_id,
                                        base_offset, &summary, NULL, error);
    if (err == ESK_ERR_NOT_FOUND) {
        leave_gap(partition, base_offset);
        return ESK_OK;
    }
    if (err != ESK_OK) {
        return err;
    }
    while (named < count && files[named].revision != summary.revision) {
        named++;
    }
    partition->strays |= count > 1;
    if (named == count) {
        leave_gap(partition, base_offset);
        return ESK_OK;
    }
    check_gap(partition, base_offset);
    struct eski_segment *segment = eski_segment_add(partition, base_offset);
    segment->end_offset = summary.end_offset;
    segment->bytes = segment->written = segment->synced = segment->indexed = summary.bytes;
    segment->timestamp_ms = segment->written_timestamp_ms = summary.timestamp_ms;
    segment->sealed = segment->stored = segment->on_disk = true;
    segment->index_ready = false;
    segment->revision = summary.revision;
    segment->horizon_ms = summary.horizon_ms;
    return ESK_OK;
}

enum esk_err eski_partition_cut(struct esk_partition *partition, struct esk_error *error) {
    struct esk_segment *file;
    const struct esk_checkpoint *checkpoint = &partition->recovered.checkpoint;
    if (!partition->uncut) {
        return ESK_OK;
    }
    partition->uncut = false;
    enum esk_err err = esk_segment_open(partition->shard->options.storage, partition->group_id,
                                        checkpoint->segment_offset, &file, error);
    if (err != ESK_OK) {
        return err;
    }
    err = esk_segment_cut(file, checkpoint->segment_bytes, error);
    if (err == ESK_OK) {
        ESK_REACHED(SEGMENT_CUT);
    }
    esk_segment_release(file);
    return err;
}

/* What a recovery that does not cut would take for the segment's end: the file's. */
static uint64_t end_as_found(const struct esk_partition *partition) {
    struct esk_segment *file;
    size_t size = 1u << 20;
    size_t got = 0;
    if (esk_segment_open(partition->shard->options.storage, partition->group_id,
                         partition->checkpoint.segment_offset, &file, NULL) == ESK_OK) {
        uint8_t *bytes = esk_alloc(size);
        esk_segment_read(file, bytes, size, 0, UINT64_MAX, 0, &got, NULL);
        free(bytes);
        esk_segment_release(file);
    }
    return got;
}

static enum esk_err recover_open(struct esk_partition *partition, bool on_disk,
                                 struct esk_error *error) {
    const struct esk_checkpoint *checkpoint = &partition->checkpoint;
    if (!on_disk && checkpoint->segment_bytes > 0) {
        return lost(partition, checkpoint->segment_offset, "the file is missing", error);
    }
    check_gap(partition, checkpoint->segment_offset);
    struct eski_segment *segment = eski_segment_add(partition, checkpoint->segment_offset);
    segment->end_offset = checkpoint->next_offset;
    segment->bytes = segment->written = segment->synced = segment->indexed =
        checkpoint->segment_bytes;
    segment->limit_bytes = checkpoint->segment_limit_bytes;
    segment->timestamp_ms = segment->written_timestamp_ms = checkpoint->segment_timestamp_ms;
    segment->on_disk = on_disk;
    segment->index_ready = checkpoint->segment_bytes == 0;
    if (ESK_MUTATED(SEGMENTS_NOT_CUT) && on_disk) {
        segment->bytes = segment->written = segment->synced = end_as_found(partition);
        return ESK_OK;
    }
    partition->uncut = on_disk;
    return ESK_OK;
}

/* Files that end below the log start went, or were about to. */
static enum esk_err drop_below_start(struct esk_partition *partition, struct esk_error *error) {
    size_t count = 0;
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && count + 1 < partition->segment_count &&
           partition->segments[count]->stored &&
           partition->segments[count]->end_offset <= partition->log_start &&
           partition->segments[count]->end_offset <=
               partition->recovered.checkpoint.segment_offset) {
        err = esk_segment_remove(partition->shard->options.storage, partition->group_id,
                                 partition->segments[count]->base_offset,
                                 partition->segments[count]->revision, error);
        count++;
    }
    if (err == ESK_OK && count > 0) {
        eski_segments_drop(partition, count);
    }
    return err;
}

/* What lies below the checkpoint. A segment that was made of several stands for all of them: what
 * is left of the others counts for nothing. */
static enum esk_err recover_below(struct esk_partition *partition,
                                  const struct esk_segment_file *files, size_t count,
                                  struct esk_error *error) {
    bool covered = partition->segment_count > 0 &&
                   eski_segment_open_one(partition)->end_offset > files[0].base_offset;
    if (covered || files[0].lone_index) {
        partition->strays = true;
        return ESK_OK;
    }
    return recover_sealed(partition, files, count, error);
}

static enum esk_err recover_segments(struct esk_partition *partition, struct esk_error *error) {
    const struct esk_storage *storage = partition->shard->options.storage;
    const struct esk_checkpoint *checkpoint = &partition->checkpoint;
    struct esk_segment_file *files = NULL;
    size_t count = 0;
    bool open_on_disk = false;
    enum esk_err err = esk_segment_list(storage, partition->group_id, &files, &count, error);
    if (err == ESK_OK && count > 0 && partition->recovered.term == 0) {
        err =
            lost(partition, files[0].base_offset, "the journal knows nothing of its group", error);
    }
    size_t end;
    for (size_t i = 0; err == ESK_OK && i < count; i = end) {
        uint64_t base_offset = files[i].base_offset;
        for (end = i + 1; end < count && files[end].base_offset == base_offset;) {
            end++;
        }
        if (base_offset < checkpoint->segment_offset) {
            err = recover_below(partition, &files[i], end - i, error);
        } else if (files[i].lone_index) {
            partition->strays = true;
        } else if (base_offset == checkpoint->segment_offset && checkpoint->segment_bytes > 0) {
            open_on_disk = true; /* else nothing in it counts, maybe not even its header */
        } else {
            partition->voids = true;
            partition->void_offset = base_offset;
        }
    }
    free(files);
    if (err == ESK_OK) {
        err = recover_open(partition, open_on_disk, error);
    }
    return err;
}

/* Removes a file unless it is a segment's. */
static enum esk_err drop_if_stray(struct esk_partition *partition,
                                  const struct esk_segment_file *file, struct esk_error *error) {
    const struct esk_storage *storage = partition->shard->options.storage;
    const struct eski_segment *segment = eski_segment_at(partition, file->base_offset);
    bool known = segment->base_offset == file->base_offset && segment->on_disk;
    if (known && segment->revision == file->revision) {
        return ESK_OK;
    }
    if (known || file->revision > 0) {
        ESK_REACHED(COMPACTION_LEFTOVER);
    }
    return known ? esk_segment_remove_revision(storage, partition->group_id, file->base_offset,
                                               file->revision, error)
                 : esk_segment_remove(storage, partition->group_id, file->base_offset,
                                      file->revision, error);
}

/* Removes the files that nothing refers to: what retention had begun to remove, what compaction had
 * begun to write or replaced, and what was begun behind the checkpoint. */
static enum esk_err drop_strays(struct esk_partition *partition, struct esk_error *error) {
    struct esk_segment_file *files = NULL;
    size_t count = 0;
    enum esk_err err = esk_segment_list(partition->shard->options.storage, partition->group_id,
                                        &files, &count, error);
    for (size_t i = 0; err == ESK_OK && i < count; i++) {
        err = drop_if_stray(partition, &files[i], error);
    }
    free(files);
    return err;
}

enum esk_err eski_partition_ready(struct esk_partition *partition, struct esk_error *error) {
    partition->group = esk_group_create(partition->shard->options.node, &partition->recovered,
                                        partition->applied_index, partition->applied_term);
    if (partition->machine != NULL) {
        return ESK_OK;
    }
    enum esk_err err = eski_partition_cut(partition, error);
    if (err == ESK_OK) {
        err = drop_below_start(partition, error);
    }
    const struct eski_segment *first = partition->segments[0];
    const struct eski_segment *last = eski_segment_open_one(partition);
    if (err == ESK_OK && first->base_offset > partition->log_start) {
        err =
            lost(partition, partition->headless ? partition->headless_offset : partition->log_start,
                 "the file or its index is missing", error);
    }
    if (err == ESK_OK && (partition->headless || partition->voids || partition->strays)) {
        err = drop_strays(partition, error);
    }
    partition->submit_offset = partition->next_offset;
    partition->submit_segment_bytes = last->bytes;
    partition->submit_segment_limit = last->limit_bytes;
    return err;
}

static enum esk_err recover_snapshot(struct esk_partition *partition, struct esk_error *error) {
    uint64_t index = partition->checkpoint.snapshot_index;
    if (index == 0) {
        return ESK_OK;
    }
    uint8_t *payload;
    size_t size;
    enum esk_err err = esk_snapshot_load(partition->shard->options.storage, partition->group_id,
                                         index, &payload, &size, error);
    if (err != ESK_OK) {
        return err;
    }
    ESK_REACHED(SNAPSHOT_USED);
    struct esk_reader reader = esk_reader(esk_slice(payload, size));
    while (err == ESK_OK && esk_reader_left(&reader) > 0) {
        struct esk_entry entry = {.index = index, .kind = partition->machine->entry_kind};
        entry.payload = esk_read_bytes(&reader, esk_read_u32(&reader));
        err = reader.failed
                  ? esk_fail(error, ESK_ERR_CORRUPT,
                             "snapshot %llu of group %016llx ends within an entry",
                             (unsigned long long)index, (unsigned long long)partition->group_id)
                  : partition->machine->ops->apply(partition->machine, &entry, error);
    }
    free(payload);
    return err;
}

static enum esk_err recover_windows(struct esk_partition *partition, struct esk_error *error) {
    uint64_t index = partition->checkpoint.snapshot_index;
    uint8_t *payload = NULL;
    size_t size;
    if (index == 0) {
        return ESK_OK;
    }
    enum esk_err err = esk_snapshot_load(partition->shard->options.storage, partition->group_id,
                                         index, &payload, &size, error);
    if (err == ESK_OK) {
        ESK_REACHED(PRODUCERS_SNAPSHOT_USED);
        err = eski_windows_decode(partition, esk_slice(payload, size), error);
        if (err != ESK_OK) {
            esk_wrap(error, "snapshot %llu of group %016llx", (unsigned long long)index,
                     (unsigned long long)partition->group_id);
        }
    }
    free(payload);
    return err;
}

/* What the journal stored is intact, but may be of a program that does more. */
static enum esk_err check_state(const struct esk_shard *shard, const struct esk_group_state *state,
                                struct esk_error *error) {
    const struct esk_checkpoint *checkpoint = &state->checkpoint;
    if (state->configuration.count != 1 || state->configuration.nodes[0] != shard->options.node) {
        return esk_fail(error, ESK_ERR_VERSION,
                        "group %016llx has other voters than this node, which this program does "
                        "not know",
                        (unsigned long long)state->group_id);
    }
    if (checkpoint->log_start_offset > checkpoint->next_offset ||
        checkpoint->segment_offset > checkpoint->next_offset ||
        checkpoint->applied_term > state->term) {
        return esk_fail(error, ESK_ERR_CORRUPT, "the state of group %016llx contradicts itself",
                        (unsigned long long)state->group_id);
    }
    return ESK_OK;
}

enum esk_err esk_shard_recover_partition(struct esk_shard *shard,
                                         const struct esk_partition_spec *spec,
                                         const struct esk_group_state *carried,
                                         struct esk_partition **partition,
                                         struct esk_error *error) {
    struct esk_group_state state = {
        .group_id = spec->group_id,
        .configuration = {.count = 1, .nodes = {shard->options.node}},
        .checkpoint = {.segment_timestamp_ms = -1,
                       .segment_limit_bytes = spec->settings.segment_bytes},
    };
    const struct esk_group_state *known =
        carried != NULL ? carried : esk_journal_recovery_find(shard->recovery, spec->group_id);
    if (known != NULL) {
        state = *known;
        ESK_REACHED(CHECKPOINT_USED);
    }
    enum esk_err err = check_state(shard, &state, error);
    if (err != ESK_OK) {
        return err;
    }
    struct esk_partition *made = eski_partition_create(shard, spec);
    const struct esk_checkpoint *checkpoint = &state.checkpoint;
    made->recovered = state;
    made->checkpoint = *checkpoint;
    made->applied_index = made->durable_index = checkpoint->applied_index;
    made->applied_term = made->durable_term = checkpoint->applied_term;
    made->next_offset = made->moved_offset = checkpoint->next_offset;
    made->log_start = checkpoint->log_start_offset;
    err = spec->machine == NULL ? recover_segments(made, error) : recover_snapshot(made, error);
    if (err == ESK_OK && spec->machine == NULL) {
        err = recover_windows(made, error);
    }
    if (err == ESK_OK && partition != NULL) {
        *partition = made;
    }
    return err;
}
