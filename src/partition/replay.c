/* SPDX-License-Identifier: Apache-2.0 */
/* Replay: the journal's entries above the checkpoints are applied by the same code as live ones.
 * Tails that outgrow their bound are moved on the way. Blocks; before anything is served. */
#include "partition/producers_private.h"

#include "base/assert.h"
#include "base/mutation.h"
#include "model/record_batch.h"
#include "storage/reserve.h"
#include "storage/room.h"

#include <stdlib.h>
#include <string.h>

#define SETTLE_BYTES (4u << 20) /* moved at once; bounds nothing but memory for slices */

/* --- replay --- */

static enum esk_err settle_partition(struct esk_partition *partition, struct esk_group_state *state,
                                     struct esk_error *error) {
    enum esk_err cut_err = eski_partition_cut(partition, error);
    if (cut_err != ESK_OK) {
        return cut_err;
    }
    while (eski_partition_dirty(partition)) {
        struct eski_move *move = eski_move_create(partition, SETTLE_BYTES, true);
        ESK_ASSERT(move != NULL);
        bool checkpoint;
        eski_move_encode(move, SIZE_MAX);
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

/* A full disk does not keep the broker from starting, nor make it ask again with each entry: an
 * allocation that fails may take milliseconds. */
static bool reserve_room(struct esk_shard *shard, uint32_t size) {
    struct esk_reserve *reserve = shard->options.storage->reserve;
    enum esk_err err = esk_reserve_take(reserve, size);
    if (err == ESK_ERR_AGAIN &&
        esk_room_grow_reserve(shard->options.storage, size, NULL) == ESK_OK) {
        err = esk_reserve_take(reserve, size);
    }
    return err == ESK_OK;
}

/* Room in memory and on disk for one more batch. */
static enum esk_err make_room(struct esk_partition *partition, uint32_t size,
                              struct esk_error *error) {
    struct esk_shard *shard = partition->shard;
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
    if (err == ESK_OK && reserve_room(shard, size)) {
        shard->reserved_bytes += size;
    }
    return err;
}

static enum esk_err check_batch(const struct esk_partition *partition,
                                const struct esk_entry *entry, struct esk_batch_header *header,
                                struct esk_error *error) {
    enum esk_err err = esk_batch_parse(entry->payload, header, error);
    size_t trailer = entry->kind == ESK_ENTRY_PRODUCER ? ESK_SEQUENCE_TRAILER_BYTES : 0;
    if (err == ESK_OK && (header->size_bytes + trailer != entry->payload.size ||
                          header->record_count < 1 || header->last_offset_delta < 0 ||
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
    } else if (esk_entry_has_batch(entry->kind) && partition->machine == NULL) {
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
    if (snapshot_index > partition->applied_index || !eski_producers_covered(partition) ||
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
