/* SPDX-License-Identifier: Apache-2.0 */
/* From disk and journal to partitions in memory, before anything is served; blocks.
 *
 * A group starts from its newest checkpoint: segments below it are as their index files say, the
 * open one is cut to it, later files are void and go. Then the journal's entries above it are
 * applied by the same code as live ones. Tails that outgrow their bound are moved on the way. */
#include "partition/partition_private.h"

#include "base/assert.h"
#include "base/mutation.h"
#include "model/record_batch.h"
#include "storage/reserve.h"
#include "storage/room.h"

#include <stdlib.h>
#include <string.h>

#define SETTLE_BYTES (4u << 20) /* moved at once; bounds nothing but memory for slices */

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

static enum esk_err recover_sealed(struct esk_partition *partition, uint64_t base_offset,
                                   struct esk_error *error) {
    struct esk_segment_summary summary;
    enum esk_err err = esk_segment_load(partition->shard->options.storage, partition->group_id,
                                        base_offset, &summary, NULL, error);
    if (err == ESK_ERR_NOT_FOUND) {
        leave_gap(partition, base_offset);
        return ESK_OK;
    }
    if (err != ESK_OK) {
        return err;
    }
    check_gap(partition, base_offset);
    struct eski_segment *segment = eski_segment_add(partition, base_offset);
    segment->end_offset = summary.end_offset;
    segment->bytes = segment->written = segment->synced = segment->indexed = summary.bytes;
    segment->timestamp_ms = segment->written_timestamp_ms = summary.timestamp_ms;
    segment->sealed = segment->stored = segment->on_disk = true;
    segment->index_ready = false;
    return ESK_OK;
}

/* Cuts the segment that was open at the checkpoint. Before anything is written to it, but not
 * before esk_shard_verify found the journals whole: what lies behind may be all there is. */
static enum esk_err cut(struct esk_partition *partition, struct esk_error *error) {
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
                                 partition->segments[count]->base_offset, error);
        count++;
    }
    if (err == ESK_OK && count > 0) {
        eski_segments_drop(partition, count);
    }
    return err;
}

static enum esk_err recover_segments(struct esk_partition *partition, struct esk_error *error) {
    const struct esk_storage *storage = partition->shard->options.storage;
    const struct esk_checkpoint *checkpoint = &partition->checkpoint;
    uint64_t *offsets = NULL;
    size_t count = 0;
    bool open_on_disk = false;
    enum esk_err err = esk_segment_list(storage, partition->group_id, &offsets, &count, error);
    if (err == ESK_OK && count > 0 && partition->recovered.term == 0) {
        err = lost(partition, offsets[0], "the journal knows nothing of its group", error);
    }
    for (size_t i = 0; err == ESK_OK && i < count; i++) {
        if (offsets[i] < checkpoint->segment_offset) {
            err = recover_sealed(partition, offsets[i], error);
        } else if (offsets[i] == checkpoint->segment_offset && checkpoint->segment_bytes > 0) {
            open_on_disk = true; /* else nothing in it counts, maybe not even its header */
        } else {
            partition->voids = true;
            partition->void_offset = offsets[i];
        }
    }
    free(offsets);
    if (err == ESK_OK) {
        err = recover_open(partition, open_on_disk, error);
    }
    return err;
}

static bool has_segment(const struct esk_partition *partition, uint64_t base_offset) {
    const struct eski_segment *segment = eski_segment_at(partition, base_offset);
    return segment->base_offset == base_offset && segment->on_disk;
}

/* Removes the files that nothing refers to: what retention had begun to remove, and what was begun
 * behind the checkpoint. */
static enum esk_err drop_strays(struct esk_partition *partition, struct esk_error *error) {
    const struct esk_storage *storage = partition->shard->options.storage;
    uint64_t *offsets = NULL;
    size_t count = 0;
    enum esk_err err = esk_segment_list(storage, partition->group_id, &offsets, &count, error);
    for (size_t i = 0; err == ESK_OK && i < count; i++) {
        if (!has_segment(partition, offsets[i])) {
            err = esk_segment_remove(storage, partition->group_id, offsets[i], error);
        }
    }
    free(offsets);
    return err;
}

enum esk_err eski_partition_ready(struct esk_partition *partition, struct esk_error *error) {
    partition->group = esk_group_create(partition->shard->options.node, &partition->recovered,
                                        partition->applied_index, partition->applied_term);
    if (partition->machine != NULL) {
        return ESK_OK;
    }
    enum esk_err err = cut(partition, error);
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
    if (err == ESK_OK && (partition->headless || partition->voids)) {
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
    if (err == ESK_OK && partition != NULL) {
        *partition = made;
    }
    return err;
}

/* --- replay --- */

static enum esk_err settle_partition(struct esk_partition *partition, struct esk_group_state *state,
                                     struct esk_error *error) {
    enum esk_err cut_err = cut(partition, error);
    if (cut_err != ESK_OK) {
        return cut_err;
    }
    while (eski_partition_dirty(partition)) {
        struct eski_move *move = eski_move_create(partition, SETTLE_BYTES, true);
        ESK_ASSERT(move != NULL);
        bool checkpoint;
        eski_move_execute(move);
        enum esk_err err = eski_move_finish(move, &checkpoint, state, error);
        eski_move_destroy(move);
        eski_partition_let_go(partition);
        if (err != ESK_OK) {
            return err;
        }
        partition->checkpoint = state->checkpoint;
    }
    return ESK_OK;
}

/* Room in memory and on disk for one more batch. */
static enum esk_err make_room(struct esk_partition *partition, uint32_t size,
                              struct esk_error *error) {
    struct esk_shard *shard = partition->shard;
    struct esk_reserve *reserve = shard->options.storage->reserve;
    enum esk_err err = ESK_OK;
    struct esk_deadline *oldest = NULL;
    while (err == ESK_OK && shard->tail_bytes + size > shard->options.tail_bytes_max &&
           (oldest = esk_deadlines_min(&shard->oldest)) != NULL) {
        struct esk_group_state ignored;
        err =
            settle_partition(ESK_CONTAINER(oldest, struct esk_partition, oldest), &ignored, error);
        esk_deadlines_remove(&shard->oldest, oldest);
    }
    shard->tail_bytes += size;
    if (err == ESK_OK && (esk_reserve_take(reserve, size) == ESK_OK ||
                          (esk_room_grow_reserve(shard->options.storage, size, NULL) == ESK_OK &&
                           esk_reserve_take(reserve, size) == ESK_OK))) {
        shard->reserved_bytes += size; /* a full disk does not keep the broker from starting */
    }
    return err;
}

static enum esk_err check_batch(const struct esk_partition *partition,
                                const struct esk_entry *entry, struct esk_batch_header *header,
                                struct esk_error *error) {
    enum esk_err err = esk_batch_parse(entry->payload, header, error);
    if (err == ESK_OK && (header->size_bytes != entry->payload.size || header->record_count < 1 ||
                          header->last_offset_delta < 0 ||
                          (uint64_t)header->base_offset != partition->next_offset)) {
        err = esk_fail(error, ESK_ERR_CORRUPT, "its batch begins at offset %lld, not %llu",
                       (long long)header->base_offset, (unsigned long long)partition->next_offset);
    }
    return err;
}

static enum esk_err replay_entry(void *context, uint64_t group_id, const struct esk_entry *entry,
                                 struct esk_error *error) {
    struct esk_shard *shard = context;
    struct esk_partition *partition = esk_shard_find(shard, group_id);
    if (partition == NULL || entry->index <= partition->applied_index) {
        return ESK_OK; /* deleted, or applied in an earlier pass */
    }
    enum esk_err err = ESK_OK;
    struct eski_entry applied = {.entry = *entry};
    if (entry->index != partition->applied_index + 1) {
        err = esk_fail(error, ESK_ERR_CORRUPT, "entry %llu follows entry %llu",
                       (unsigned long long)entry->index,
                       (unsigned long long)partition->applied_index);
    } else if (entry->term > partition->recovered.term) {
        err = esk_fail(error, ESK_ERR_CORRUPT, "entry %llu is of term %llu, the group's is %llu",
                       (unsigned long long)entry->index, (unsigned long long)entry->term,
                       (unsigned long long)partition->recovered.term);
    } else if (entry->kind == ESK_ENTRY_BATCH && partition->machine == NULL) {
        struct esk_batch_header header;
        err = check_batch(partition, entry, &header, error);
        if (err == ESK_OK) {
            err = make_room(partition, header.size_bytes, error);
        }
        if (err == ESK_OK) {
            applied.block = esk_block_create(header.size_bytes);
            memcpy(applied.block->data, entry->payload.data, header.size_bytes);
            applied.block->size = header.size_bytes;
            applied.base_offset = (uint64_t)header.base_offset;
            applied.record_count = (uint32_t)header.last_offset_delta + 1;
            applied.timestamp_ms = header.max_timestamp_ms;
        }
    }
    if (err == ESK_OK) {
        err = eski_apply(partition, &applied, error);
        ESK_REACHED(REPLAY);
    }
    if (err != ESK_OK) {
        esk_wrap(error, "replay group %016llx", (unsigned long long)group_id);
        return err;
    }
    partition->durable_index = entry->index;
    partition->durable_term = entry->term;
    eski_mover_note(partition, 0);
    return ESK_OK;
}

enum esk_err esk_shard_replay(struct esk_shard *shard, uint64_t only_group,
                              struct esk_error *error) {
    return esk_journal_recovery_replay(shard->recovery, only_group, replay_entry, shard, error);
}

/* --- was anything lost --- */

/* Only durable entries reach segments and snapshots, so a file of a later entry than the last one
 * replayed tells that the journal lost its end. */
static enum esk_err verify(const struct esk_partition *partition, struct esk_error *error) {
    const struct esk_shard *shard = partition->shard;
    uint64_t snapshot_index = 0;
    enum esk_err err = ESK_OK;
    if (partition->machine != NULL) {
        err = esk_snapshot_newest(shard->options.storage, partition->group_id, &snapshot_index,
                                  error);
    }
    if (err != ESK_OK) {
        return err;
    }
    if (snapshot_index > partition->applied_index ||
        (partition->voids && partition->void_offset > partition->next_offset)) {
        return esk_fail(error, ESK_ERR_CORRUPT,
                        "%s: it lost its end: of group %016llx it has entries up to %llu (offset "
                        "%llu), files in %s have later ones",
                        shard->options.journal.folder, (unsigned long long)partition->group_id,
                        (unsigned long long)partition->applied_index,
                        (unsigned long long)partition->next_offset, shard->options.storage->folder);
    }
    return ESK_OK;
}

enum esk_err esk_shard_verify(const struct esk_shard *shard, struct esk_error *error) {
    size_t position = 0;
    uint64_t group_id;
    void *partition;
    enum esk_err err = ESK_OK;
    while (err == ESK_OK &&
           esk_u64_map_next(&shard->partitions, &position, &group_id, &partition)) {
        err = verify(partition, error);
    }
    return err;
}

/* --- a change of layout --- */

enum esk_err esk_shard_settle(struct esk_shard *shard, struct esk_group_state **states,
                              size_t *count, struct esk_error *error) {
    struct esk_group_state *all = esk_alloc_zeroed(shard->partitions.count + 1, sizeof(*all));
    size_t position = 0;
    size_t made = 0;
    uint64_t group_id;
    void *value;
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && esk_u64_map_next(&shard->partitions, &position, &group_id, &value)) {
        struct esk_partition *partition = value;
        struct esk_group_state state;
        err = settle_partition(partition, &state, error);
        all[made] = partition->recovered;
        all[made++].checkpoint = partition->checkpoint;
    }
    if (err != ESK_OK) {
        free(all);
        return err;
    }
    *states = all;
    *count = made;
    return ESK_OK;
}
