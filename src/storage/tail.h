/* SPDX-License-Identifier: Apache-2.0 */
/* The memory tail of a partition: applied batches, in order of offset, that are not yet all in
 * segment files. Also the index of what was applied last: reads at the end never touch a file.
 * Owned by the partition's loop. */
#ifndef ESK_STORAGE_TAIL_H
#define ESK_STORAGE_TAIL_H

#include "base/memory.h"

#include <stdint.h>

struct esk_tail_batch {
    struct esk_block
        *block; /* one whole RecordBatch, base offset patched in; the tail's reference */
    uint64_t base_offset;
    uint64_t end_offset; /* of the record after its last */
    uint64_t index;      /* of the entry that brought it */
    uint64_t term;
    uint64_t journal_position; /* of that entry */
    uint64_t segment_offset;   /* base offset of the segment that it belongs to */
    uint64_t segment_position; /* first byte among that segment's batch bytes */
    int64_t timestamp_ms;      /* its newest record's */
    uint32_t record_count;
};

/* A ring that grows and shrinks; batches are found by binary search. */
struct esk_tail {
    struct esk_tail_batch *batches;
    size_t first;
    size_t count;
    size_t capacity; /* 0 or a power of two */
    uint64_t bytes;  /* of all blocks */
};

void esk_tail_init(struct esk_tail *tail); /* allocates nothing before the first append */
void esk_tail_fini(struct esk_tail *tail); /* releases the blocks */
/* Takes the caller's reference of batch->block. base_offset is at or above the last end_offset. */
void esk_tail_append(struct esk_tail *tail, const struct esk_tail_batch *batch);
/* The i-th batch, 0 the oldest. */
const struct esk_tail_batch *esk_tail_at(const struct esk_tail *tail, size_t i);
/* Position of the first batch whose end_offset is above offset; count when there is none. */
size_t esk_tail_find(const struct esk_tail *tail, uint64_t offset);
/* Drops batches whose end_offset is at or below offset; gives memory back when empty. Returns the
 * bytes dropped. */
uint64_t esk_tail_drop(struct esk_tail *tail, uint64_t offset);

#endif
