/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of batches in memory. The capacity is a power of two: it doubles when full, halves when
 * less than a quarter is used, and is given back when the tail runs empty. */
#include "storage/tail.h"

#include "base/assert.h"

#include <stdlib.h>

#define FIRST_CAPACITY 16 /* batches */

static struct esk_tail_batch *slot(const struct esk_tail *tail, size_t i) {
    return &tail->batches[(tail->first + i) & (tail->capacity - 1)];
}

static void resize(struct esk_tail *tail, size_t capacity) {
    ESK_ASSERT(capacity >= tail->count);
    struct esk_tail_batch *batches = esk_alloc(capacity * sizeof(*batches));
    for (size_t i = 0; i < tail->count; i++) {
        batches[i] = *slot(tail, i);
    }
    free(tail->batches);
    tail->batches = batches;
    tail->first = 0;
    tail->capacity = capacity;
}

void esk_tail_init(struct esk_tail *tail) {
    *tail = (struct esk_tail){NULL, 0, 0, 0, 0};
}

void esk_tail_fini(struct esk_tail *tail) {
    for (size_t i = 0; i < tail->count; i++) {
        esk_block_release(slot(tail, i)->block);
    }
    free(tail->batches);
    esk_tail_init(tail);
}

void esk_tail_append(struct esk_tail *tail, const struct esk_tail_batch *batch) {
    ESK_ASSERT(batch->end_offset > batch->base_offset);
    if (tail->count > 0) {
        ESK_ASSERT(batch->base_offset >= slot(tail, tail->count - 1)->end_offset);
    }
    if (tail->count == tail->capacity) {
        resize(tail, tail->capacity ? tail->capacity * 2 : FIRST_CAPACITY);
    }
    *slot(tail, tail->count) = *batch;
    tail->count++;
    tail->bytes += batch->block->size;
}

const struct esk_tail_batch *esk_tail_at(const struct esk_tail *tail, size_t i) {
    ESK_ASSERT(i < tail->count);
    return slot(tail, i);
}

size_t esk_tail_find(const struct esk_tail *tail, uint64_t offset) {
    size_t low = 0;
    size_t high = tail->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slot(tail, middle)->end_offset > offset) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

uint64_t esk_tail_drop(struct esk_tail *tail, uint64_t offset) {
    uint64_t before = tail->bytes;
    while (tail->count > 0 && slot(tail, 0)->end_offset <= offset) {
        struct esk_tail_batch *batch = slot(tail, 0);
        tail->bytes -= batch->block->size;
        esk_block_release(batch->block);
        tail->first = (tail->first + 1) & (tail->capacity - 1);
        tail->count--;
    }
    uint64_t dropped = before - tail->bytes;
    if (tail->count == 0) {
        esk_tail_fini(tail);
    } else if (tail->capacity > FIRST_CAPACITY && tail->count < tail->capacity / 4) {
        resize(tail, tail->capacity / 2);
    }
    return dropped;
}
