/* SPDX-License-Identifier: Apache-2.0 */
/* A move: what a worker does to bring a partition's applied state into files of its own. For
 * records it writes tail batches to their segments and seals segments; for a machine it stores a
 * snapshot. A move with `sync` ends in files that are durable, so that a checkpoint may name them.
 *
 * Life: created in the loop or by recovery (move.c), executed in a worker, finished where it was
 * created (move_run.c). One move at a time per partition: until finish nobody else changes the
 * segments it works on. */
#ifndef ESK_PARTITION_MOVE_PRIVATE_H
#define ESK_PARTITION_MOVE_PRIVATE_H

#include "partition/partition_private.h"

/* What happens to one segment. */
struct eski_run {
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
    struct eski_run *runs;
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
    uint64_t snapshot_index; /* its name */
    uint64_t keep_snapshot;  /* the one that the newest durable checkpoint names */
    enum esk_err err;
    struct esk_error error;
};

#endif
