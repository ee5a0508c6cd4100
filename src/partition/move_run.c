/* SPDX-License-Identifier: Apache-2.0 */
/* Executing a move, in a worker, and booking what it did, in the loop.
 *
 * Failure: ESK_ERR_NO_SPACE books nothing and may be tried again; any other error ends the broker.
 */
#include "partition/move_private.h"

#include "base/mutation.h"

/* --- in the worker --- */

static enum esk_err execute_run(struct eski_move *move, struct eski_run *run) {
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
               : esk_snapshot_store(move->storage, move->group_id, move->snapshot_index, move->term,
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

static void finish_run(struct eski_move *move, struct eski_run *run) {
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
        partition->machine_changed |= move->store_snapshot && partition->machine != NULL;
        partition->producers_changed |= move->store_snapshot && partition->machine == NULL;
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
