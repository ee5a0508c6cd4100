/* SPDX-License-Identifier: Apache-2.0 */
/* A move: what a worker does to bring a partition's applied state into files of its own. For
 * records it writes tail batches to their segments and seals segments; for a machine it stores a
 * snapshot. A move with `sync` ends in files that are durable, so that a checkpoint may name them.
 *
 * Life: created in the loop (or by recovery), executed in a worker, finished where it was created.
 * One move at a time per partition: until finish nobody else changes the segments it works on.
 *
 * Failure: ESK_ERR_NO_SPACE books nothing and may be tried again; any other error ends the broker.
 */
#include "partition/partition_private.h"

#include "base/assert.h"
#include "base/mutation.h"

#include <stdlib.h>

/* What happens to one segment. */
struct run {
    struct eski_segment *segment; /* not touched by the worker but for sealing, see below */
    uint64_t base_offset;
    struct esk_segment *file; /* a reference; NULL: to be opened or made */
    bool create;
    bool opened; /* here: to be kept by finish */
    uint64_t position;
    size_t first_slice;
    size_t slice_count;
    uint64_t bytes;
    int64_t timestamp_ms;
    bool seal;
    bool build_index;
    struct esk_index index; /* built here */
    struct esk_segment_summary summary;
};

struct eski_move {
    struct esk_mail mail;
    struct esk_partition *partition;
    const struct esk_storage *storage;
    uint64_t group_id;
    bool sync;
    bool sync_names;
    uint64_t pause_ns;
    struct run *runs;
    size_t run_count;
    struct esk_slice *slices;
    struct esk_block **blocks; /* references that keep the slices */
    size_t slice_count;
    uint64_t end_offset; /* of the last batch; 0 with no slices */
    bool complete;       /* reaches the checkpoint: false when part of the tail is left */
    uint64_t index, term;
    struct esk_checkpoint checkpoint;
    struct esk_buffer snapshot;
    bool store_snapshot;
    uint64_t keep_snapshot; /* the one that the newest durable checkpoint names */
    enum esk_err err;
    struct esk_error error;
};

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

static struct run *add_run(struct eski_move *move, struct eski_segment *segment) {
    move->runs = esk_realloc(move->runs, (move->run_count + 1) * sizeof(struct run));
    struct run *run = &move->runs[move->run_count++];
    *run = (struct run){
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

static void add_batch(struct eski_move *move, struct run *run, const struct esk_tail_batch *batch) {
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

static void seal_run(struct run *run) {
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
        struct run *run = add_run(move, segment);
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
    /* While recovering, what the journal names is still the checkpoint that was found there. */
    move->keep_snapshot = partition->shard->journal == NULL
                              ? partition->recovered.checkpoint.snapshot_index
                              : partition->checkpoint.snapshot_index;
    move->checkpoint.snapshot_index = move->index;
    partition->machine->ops->snapshot(partition->machine, emit_snapshot, &move->snapshot);
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

/* --- in the worker --- */

static enum esk_err execute_run(struct eski_move *move, struct run *run) {
    enum esk_err err = ESK_OK;
    if (run->file == NULL) {
        err = run->create ? esk_segment_create(move->storage, move->group_id, run->base_offset,
                                               &run->file, &move->error)
                          : esk_segment_open(move->storage, move->group_id, run->base_offset,
                                             &run->file, &move->error);
        run->opened = err == ESK_OK;
        move->sync_names |= run->create;
    }
    if (err == ESK_OK && run->slice_count > 0) {
        err = esk_segment_append(run->file, run->position, move->slices + run->first_slice,
                                 run->slice_count, move->pause_ns, &move->error);
    }
    bool sync = run->seal || move->sync;
    if (err == ESK_OK && sync && !ESK_MUTATED(CHECKPOINT_TAKES_UNDURABLE)) {
        err = esk_segment_sync(run->file, &move->error);
    }
    if (err != ESK_OK || !run->seal) {
        return err;
    }
    if (run->build_index) {
        err = esk_index_build(run->file, run->base_offset, run->summary.bytes, &run->index,
                              &move->error);
    }
    if (err == ESK_OK) {
        const struct esk_index *index = run->build_index ? &run->index : &run->segment->index;
        err = esk_segment_seal(move->storage, move->group_id, run->file, &run->summary, index,
                               &move->error);
        move->sync_names = true;
    }
    return err;
}

static enum esk_err execute_snapshot(struct eski_move *move) {
    if (!move->store_snapshot) {
        return ESK_OK;
    }
    enum esk_err err =
        esk_snapshot_prune(move->storage, move->group_id, move->keep_snapshot, &move->error);
    return err != ESK_OK
               ? err
               : esk_snapshot_store(move->storage, move->group_id, move->index, move->term,
                                    esk_buffer_slice(&move->snapshot), &move->error);
}

enum esk_err eski_move_execute(struct eski_move *move) {
    enum esk_err err = execute_snapshot(move);
    for (size_t i = 0; err == ESK_OK && i < move->run_count; i++) {
        err = execute_run(move, &move->runs[i]);
    }
    if (err == ESK_OK && move->sync && move->sync_names) {
        err = esk_segment_sync_names(move->storage, move->group_id, &move->error);
    }
    move->err = err;
    return err;
}

/* --- booking --- */

static void finish_run(struct eski_move *move, struct run *run) {
    struct eski_segment *segment = run->segment;
    if (move->err == ESK_OK) {
        segment->written += run->bytes;
        segment->written_timestamp_ms = run->timestamp_ms;
        segment->stored |= run->seal;
        if (run->seal || move->sync) {
            segment->synced = segment->written;
        }
        if (run->build_index) {
            esk_index_fini(&segment->index);
            segment->index = run->index;
            segment->index_ready = true;
            esk_index_init(&run->index);
        }
    }
    if (run->opened) {
        segment->on_disk = true;
        eski_segment_keep_file(move->partition->shard, segment, esk_segment_retain(run->file));
    }
}

static void finish_tail(struct eski_move *move) {
    struct esk_partition *partition = move->partition;
    if (move->slice_count > 0) {
        uint64_t bytes = esk_tail_drop(&partition->tail, move->end_offset);
        partition->moved_offset = move->end_offset;
        eski_tail_bytes_release(partition->shard, bytes);
    }
}

enum esk_err eski_move_finish(struct eski_move *move, bool *checkpoint,
                              struct esk_group_state *state, struct esk_error *error) {
    struct esk_partition *partition = move->partition;
    *checkpoint = false;
    partition->moving = false;
    for (size_t i = 0; i < move->run_count; i++) {
        finish_run(move, &move->runs[i]);
    }
    if (move->err != ESK_OK) {
        partition->machine_changed |= move->store_snapshot;
        partition->names_dirty |= move->sync_names;
        *error = move->error;
        return move->err;
    }
    finish_tail(move);
    partition->names_dirty = move->sync_names && !move->sync;
    if (move->sync && !partition->removed) {
        *checkpoint = true;
        *state = (struct esk_group_state){
            .group_id = partition->group_id,
            .term = eski_partition_term(partition),
            .voted_for = partition->shard->options.node,
            .configuration = {.count = 1, .nodes = {partition->shard->options.node}},
            .checkpoint = move->checkpoint,
        };
    }
    return ESK_OK;
}
