/* SPDX-License-Identifier: Apache-2.0 */
/* What a move takes: batches up to the last durable entry, segments to seal, a machine's state; and
 * the checkpoint that may be stored once it is done. */
#include "partition/move_private.h"
#include "partition/producers_private.h"

#include "base/assert.h"
#include "base/mutation.h"

#include <stdlib.h>

struct esk_partition *eski_move_partition(const struct eski_move *move) {
    return move->partition;
}

void eski_move_pace(struct eski_move *move, uint64_t pause_ns) {
    move->pause_ns = pause_ns;
}

struct esk_mail *eski_move_mail(struct eski_move *move) {
    return &move->mail;
}

struct eski_move *eski_move_of_mail(struct esk_mail *mail) {
    return ESK_CONTAINER(mail, struct eski_move, mail);
}

static uint64_t movable_index(const struct esk_partition *partition) {
    if (ESK_MUTATED(SEGMENT_TAKES_UNDURABLE)) {
        return partition->applied_index;
    }
    return partition->durable_index < partition->applied_index ? partition->durable_index
                                                               : partition->applied_index;
}

bool eski_partition_dirty(const struct esk_partition *partition) {
    return movable_index(partition) > partition->checkpoint.applied_index;
}

/* --- making one --- */

static struct eski_run *add_run(struct eski_move *move, struct eski_segment *segment) {
    move->runs = esk_realloc(move->runs, (move->run_count + 1) * sizeof(struct eski_run));
    struct eski_run *run = &move->runs[move->run_count++];
    *run = (struct eski_run){
        .segment = segment,
        .base_offset = segment->base_offset,
        .file = segment->file == NULL ? NULL : esk_segment_retain(segment->file),
        .create = !segment->on_disk,
        .position = segment->written,
        .first_slice = move->slice_count,
        .timestamp_ms = segment->written_timestamp_ms,
    };
    esk_index_init(&run->index);
    return run;
}

static void add_batch(struct eski_move *move, struct eski_run *run,
                      const struct esk_tail_batch *batch) {
    ESK_ASSERT(batch->segment_position == run->position + run->bytes);
    move->slices[move->slice_count] = esk_slice(batch->block->data, batch->block->size);
    move->blocks[move->slice_count] = esk_block_retain(batch->block);
    move->slice_count++;
    run->slice_count++;
    run->bytes += batch->block->size;
    if (batch->timestamp_ms > run->timestamp_ms) {
        run->timestamp_ms = batch->timestamp_ms;
    }
    struct eski_segment *segment = run->segment;
    if (segment->index_ready && batch->segment_position >= segment->indexed) {
        esk_index_add(&segment->index, batch->base_offset - segment->base_offset,
                      batch->segment_position, run->timestamp_ms);
        segment->indexed = batch->segment_position + batch->block->size;
    }
    move->end_offset = batch->end_offset;
    move->index = batch->index;
    move->term = batch->term;
}

/* How many batches from the tail's head this move takes. */
static size_t count_batches(const struct esk_partition *partition, uint64_t bytes_max) {
    uint64_t limit = movable_index(partition);
    uint64_t bytes = 0;
    size_t count = 0;
    while (count < partition->tail.count && bytes < bytes_max) {
        const struct esk_tail_batch *batch = esk_tail_at(&partition->tail, count);
        if (batch->index > limit) {
            break;
        }
        bytes += batch->block->size;
        count++;
    }
    return count;
}

static void seal_run(struct eski_run *run) {
    struct eski_segment *segment = run->segment;
    run->seal = true;
    run->build_index = !segment->index_ready;
    run->summary = (struct esk_segment_summary){
        .base_offset = segment->base_offset,
        .end_offset = segment->end_offset,
        .bytes = segment->bytes,
        .timestamp_ms = segment->timestamp_ms,
    };
}

/* Runs for every segment that has something to write or waits to be sealed. */
static void add_runs(struct eski_move *move, size_t batch_count) {
    struct esk_partition *partition = move->partition;
    uint64_t limit = movable_index(partition);
    size_t taken = 0;
    for (size_t i = 0; i < partition->segment_count; i++) {
        struct eski_segment *segment = partition->segments[i];
        if (segment->stored || segment->roll_index > limit) {
            continue;
        }
        struct eski_run *run = add_run(move, segment);
        while (taken < batch_count) {
            const struct esk_tail_batch *batch = esk_tail_at(&partition->tail, taken);
            if (batch->segment_offset != segment->base_offset) {
                break;
            }
            add_batch(move, run, batch);
            taken++;
        }
        bool all = run->position + run->bytes == segment->bytes;
        if (segment->sealed && all && partition->segments[i + 1]->roll_index <= limit) {
            seal_run(run);
        } else if (run->slice_count == 0 && (!move->sync || segment->synced == segment->written)) {
            esk_segment_release(run->file);
            move->run_count--;
        }
        if (!all) {
            break; /* the rest is for the next move */
        }
    }
}

/* The state as of the last entry that this move covers. */
static void set_checkpoint(struct eski_move *move) {
    struct esk_partition *partition = move->partition;
    size_t i = partition->segment_count - 1;
    while (partition->segments[i]->roll_index > move->index) {
        ESK_ASSERT(i > 0);
        i--;
    }
    const struct eski_segment *segment = partition->segments[i];
    uint64_t bytes = segment->written;
    int64_t timestamp_ms = segment->written_timestamp_ms;
    for (size_t r = 0; r < move->run_count; r++) {
        if (move->runs[r].segment == segment) {
            bytes += move->runs[r].bytes;
            timestamp_ms = move->runs[r].timestamp_ms;
        }
    }
    uint64_t next_offset = move->slice_count > 0 ? move->end_offset : partition->moved_offset;
    move->checkpoint = (struct esk_checkpoint){
        .applied_index = move->index,
        .applied_term = move->term,
        .next_offset = next_offset,
        .log_start_offset = partition->log_start < next_offset ? partition->log_start : next_offset,
        .segment_offset = segment->base_offset,
        .segment_bytes = bytes,
        .segment_limit_bytes = segment->limit_bytes,
        .segment_timestamp_ms = timestamp_ms,
        .snapshot_index = partition->checkpoint.snapshot_index,
    };
}

static void emit_snapshot(void *context, struct esk_slice payload) {
    struct esk_buffer *buffer = context;
    esk_buffer_u32(buffer, (uint32_t)payload.size);
    esk_buffer_append(buffer, payload.data, payload.size);
}

/* While recovering, what the journal names is still the checkpoint that was found there. */
static uint64_t kept_snapshot(const struct esk_partition *partition) {
    return partition->shard->journal == NULL ? partition->recovered.checkpoint.snapshot_index
                                             : partition->checkpoint.snapshot_index;
}

static void set_snapshot(struct eski_move *move) {
    struct esk_partition *partition = move->partition;
    move->checkpoint = (struct esk_checkpoint){
        .applied_index = move->index,
        .applied_term = move->term,
        .snapshot_index = partition->checkpoint.snapshot_index,
        .segment_timestamp_ms = -1,
    };
    if (!partition->machine_changed) {
        return;
    }
    partition->machine_changed = false;
    move->store_snapshot = true;
    move->keep_snapshot = kept_snapshot(partition);
    move->snapshot_index = move->index;
    move->checkpoint.snapshot_index = move->index;
    partition->machine->ops->snapshot(partition->machine, emit_snapshot, &move->snapshot);
}

/* The windows are encoded in steps while entries go on being applied. Each carries the index that
 * it is of, which is never below the checkpoint's: a replay applies what is above it. */
static void set_windows(struct eski_move *move) {
    struct esk_partition *partition = move->partition;
    if (!move->sync || !partition->producers_changed || ESK_MUTATED(PRODUCERS_NOT_IN_CHECKPOINT)) {
        return;
    }
    partition->producers_changed = false;
    partition->producer_cursor = partition->producer_list.next;
    move->store_snapshot = true;
    move->keep_snapshot = kept_snapshot(partition);
    move->snapshot_index = partition->producers_index;
    move->checkpoint.snapshot_index = move->snapshot_index;
    ESK_REACHED(PRODUCERS_SNAPSHOT);
}

bool eski_move_encode(struct eski_move *move, size_t bytes_max) {
    struct esk_partition *partition = move->partition;
    size_t end =
        bytes_max < SIZE_MAX - move->snapshot.size ? move->snapshot.size + bytes_max : SIZE_MAX;
    while (partition->producer_cursor != NULL) {
        if (partition->producer_cursor == &partition->producer_list) {
            partition->producer_cursor = NULL;
        } else if (move->snapshot.size >= end) {
            return false;
        } else {
            const struct eski_producer *producer =
                ESK_CONTAINER(partition->producer_cursor, struct eski_producer, link);
            partition->producer_cursor = partition->producer_cursor->next;
            eski_window_encode(&move->snapshot, producer);
        }
    }
    return true;
}

struct eski_move *eski_move_create(struct esk_partition *partition, uint64_t bytes_max, bool sync) {
    if (partition->moving || partition->checkpointing || partition->removed ||
        !eski_partition_dirty(partition)) {
        return NULL;
    }
    if (partition->machine != NULL && movable_index(partition) < partition->applied_index) {
        return NULL; /* a snapshot is of now: it must not be named by an earlier index */
    }
    size_t count = partition->machine == NULL ? count_batches(partition, bytes_max) : 0;
    if (!sync && count == 0) {
        return NULL;
    }
    struct eski_move *move = esk_alloc_zeroed(1, sizeof(*move));
    move->partition = partition;
    move->storage = partition->shard->options.storage;
    move->group_id = partition->group_id;
    move->sync = sync;
    move->index = movable_index(partition);
    move->term =
        move->index == partition->applied_index ? partition->applied_term : partition->durable_term;
    esk_buffer_init(&move->snapshot);
    if (partition->machine != NULL) {
        set_snapshot(move);
    } else {
        move->slices = esk_alloc(count * sizeof(struct esk_slice));
        move->blocks = esk_alloc(count * sizeof(struct esk_block *));
        uint64_t index = move->index;
        uint64_t term = move->term;
        add_runs(move, count);
        if (count == partition->tail.count || esk_tail_at(&partition->tail, count)->index > index) {
            move->index = index; /* nothing movable is left: the entries behind count too */
            move->term = term;
        }
        set_checkpoint(move);
        set_windows(move);
        move->sync_names = partition->names_dirty;
    }
    partition->moving = true;
    eski_partition_hold(partition);
    return move;
}

void eski_move_destroy(struct eski_move *move) {
    for (size_t i = 0; i < move->run_count; i++) {
        esk_segment_release(move->runs[i].file);
        esk_index_fini(&move->runs[i].index);
    }
    for (size_t i = 0; i < move->slice_count; i++) {
        esk_block_release(move->blocks[i]);
    }
    free(move->runs);
    free(move->slices);
    free(move->blocks);
    esk_buffer_fini(&move->snapshot);
    free(move);
}
