/* SPDX-License-Identifier: Apache-2.0 */
/* The sparse index in memory, and how it is built anew from the headers of a segment's batches.
 * Building trusts nothing but the end that it is given: what lies behind may be of an older use. */
#include "base/assert.h"
#include "model/record_batch.h"
#include "storage/segment_private.h"

#include <stdlib.h>

#define READ_BYTES (64 * 1024) /* at once; small batches are many in one read */

void esk_index_init(struct esk_index *index) {
    *index = (struct esk_index){NULL, 0, 0, -1};
}

void esk_index_fini(struct esk_index *index) {
    free(index->entries);
    esk_index_init(index);
}

void esk_index_add(struct esk_index *index, uint64_t offset_delta, uint64_t position,
                   int64_t timestamp_ms) {
    if (timestamp_ms > index->timestamp_ms) {
        index->timestamp_ms = timestamp_ms;
    }
    if (offset_delta > UINT32_MAX || position > UINT32_MAX) {
        return; /* found from the last entry on, only slower */
    }
    if (index->count > 0) {
        const struct esk_index_entry *last = &index->entries[index->count - 1];
        ESK_ASSERT(offset_delta > last->offset_delta);
        ESK_ASSERT(position > last->position);
        if (position - last->position < ESK_INDEX_INTERVAL_BYTES) {
            return;
        }
    }
    if (index->count == index->capacity) {
        index->capacity = index->capacity ? index->capacity * 2 : 16;
        index->entries = esk_realloc(index->entries, index->capacity * sizeof(*index->entries));
    }
    index->entries[index->count++] = (struct esk_index_entry){
        .offset_delta = (uint32_t)offset_delta,
        .position = (uint32_t)position,
        .timestamp_ms = index->timestamp_ms,
    };
}

uint64_t esk_index_find(const struct esk_index *index, uint64_t offset_delta) {
    size_t low = 0; /* entries below it begin at or before the offset */
    size_t high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (index->entries[middle].offset_delta <= offset_delta) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 ? index->entries[low - 1].position : 0;
}

/* Checks a batch header at `position` against the segment, and adds the batch. */
static enum esk_err add_batch(const struct esk_segment *segment, const uint8_t *header,
                              uint64_t base_offset, uint64_t bytes_end, uint64_t *position,
                              uint64_t *next_offset, struct esk_index *index,
                              struct esk_error *error) {
    uint64_t offset = esk_load_u64(header + ESK_BATCH_AT_BASE_OFFSET);
    uint64_t size = ESK_BATCH_LENGTH_BYTES + (uint64_t)esk_load_u32(header + ESK_BATCH_AT_LENGTH);
    uint32_t last_delta = esk_load_u32(header + ESK_BATCH_AT_LAST_DELTA);
    if (size < ESK_BATCH_HEADER_BYTES || size > bytes_end - *position ||
        header[ESK_BATCH_AT_MAGIC] != ESK_BATCH_MAGIC) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%s: no batch at position %" PRIu64, segment->path,
                        *position);
    }
    if (offset < *next_offset || offset > INT64_MAX || last_delta > INT32_MAX) {
        return esk_fail(error, ESK_ERR_CORRUPT,
                        "%s: the batch at position %" PRIu64 " has offset %" PRIu64
                        ", at least %" PRIu64 " is due",
                        segment->path, *position, offset, *next_offset);
    }
    esk_index_add(index, offset - base_offset, *position,
                  (int64_t)esk_load_u64(header + ESK_BATCH_AT_MAX_TIMESTAMP));
    *next_offset = offset + last_delta + 1;
    *position += size;
    return ESK_OK;
}

enum esk_err esk_index_build(struct esk_segment *segment, uint64_t base_offset, uint64_t bytes_end,
                             struct esk_index *index, struct esk_error *error) {
    esk_index_fini(index);
    uint8_t *buffer = esk_alloc(READ_BYTES);
    uint64_t start = 0; /* position of the buffer's first byte */
    size_t held = 0;
    uint64_t position = 0;
    uint64_t next_offset = base_offset;
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && position < bytes_end) {
        if (position + ESK_BATCH_HEADER_BYTES > start + held) {
            start = position;
            err = esk_segment_read(segment, buffer, READ_BYTES, start, bytes_end, 0, &held, error);
            if (err == ESK_OK && held < ESK_BATCH_HEADER_BYTES) {
                err = esk_fail(error, ESK_ERR_CORRUPT, "%s: half a batch at position %" PRIu64,
                               segment->path, position);
            }
        }
        if (err == ESK_OK) {
            err = add_batch(segment, buffer + (position - start), base_offset, bytes_end, &position,
                            &next_offset, index, error);
        }
    }
    free(buffer);
    if (err != ESK_OK) {
        esk_index_fini(index);
    }
    return err;
}
