/* SPDX-License-Identifier: Apache-2.0 */
/* The tail against a plain array, and that it gives every block back. */
#include "storage/tail.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define BATCHES 3000

static struct esk_tail_batch batch(uint64_t base, uint64_t end, uint32_t size) {
    struct esk_block *block = esk_block_create(size);
    block->size = size;
    return (struct esk_tail_batch){.block = block, .base_offset = base, .end_offset = end};
}

static size_t naive_find(const uint64_t *ends, size_t first, size_t count, uint64_t offset) {
    size_t i = 0;
    while (i < count && ends[first + i] <= offset) {
        i++;
    }
    return i;
}

static void batches_are_found_while_the_ring_wraps_grows_and_shrinks(void **state) {
    (void)state;
    static uint64_t ends[BATCHES];
    struct esk_tail tail;
    esk_tail_init(&tail);
    size_t first = 0;
    size_t count = 0;
    uint64_t next = 5;
    uint64_t bytes = 0;
    uint32_t random = 1;
    while (first + count < BATCHES) {
        random = random * 1664525 + 1013904223;
        for (uint32_t i = 0; i < 1 + (random >> 28) && first + count < BATCHES; i++) {
            uint64_t base = next + (i % 3 == 0 ? 2 : 0); /* gaps, as compaction leaves them */
            uint32_t size = 60 + i;
            next = base + 1 + i;
            ends[first + count++] = next;
            struct esk_tail_batch added = batch(base, next, size);
            esk_tail_append(&tail, &added);
            bytes += size;
        }
        uint64_t offset = ends[first] + ((random >> 16) & 63);
        assert_int_equal(esk_tail_find(&tail, offset), naive_find(ends, first, count, offset));
        if ((random >> 20) % 3 == 0) {
            size_t dropped = naive_find(ends, first, count, offset);
            uint64_t dropped_bytes = 0;
            for (size_t i = 0; i < dropped; i++) {
                dropped_bytes += esk_tail_at(&tail, i)->block->size;
            }
            assert_int_equal(esk_tail_drop(&tail, offset), dropped_bytes);
            first += dropped;
            count -= dropped;
            bytes -= dropped_bytes;
        }
        assert_int_equal(tail.count, count);
        assert_int_equal(tail.bytes, bytes);
        if (count > 0) {
            assert_int_equal(esk_tail_at(&tail, 0)->end_offset, ends[first]);
            assert_int_equal(esk_tail_at(&tail, count - 1)->end_offset, ends[first + count - 1]);
        }
    }
    assert_true(count > 0);
    esk_tail_fini(&tail);
}

static void an_empty_tail_holds_no_memory(void **state) {
    (void)state;
    struct esk_tail tail;
    esk_tail_init(&tail);
    assert_null(tail.batches);
    assert_int_equal(esk_tail_find(&tail, 7), 0);
    for (uint64_t i = 0; i < 100; i++) {
        struct esk_tail_batch added = batch(i, i + 1, 10);
        esk_tail_append(&tail, &added);
    }
    assert_true(tail.capacity >= 100);
    assert_int_equal(esk_tail_drop(&tail, 98), 980);
    assert_true(tail.capacity < 100);
    assert_int_equal(esk_tail_drop(&tail, UINT64_MAX), 20);
    assert_null(tail.batches);
    assert_int_equal(tail.bytes, 0);
    esk_tail_fini(&tail);
}

static void a_reader_keeps_a_dropped_block(void **state) {
    (void)state;
    struct esk_tail tail;
    esk_tail_init(&tail);
    struct esk_tail_batch added = batch(0, 1, 4);
    memcpy(added.block->data, "data", 4);
    esk_tail_append(&tail, &added);
    struct esk_block *block = esk_block_retain(esk_tail_at(&tail, 0)->block);
    esk_tail_drop(&tail, 1);
    assert_memory_equal(block->data, "data", 4);
    esk_block_release(block);
    esk_tail_fini(&tail);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_found_while_the_ring_wraps_grows_and_shrinks),
        cmocka_unit_test(an_empty_tail_holds_no_memory),
        cmocka_unit_test(a_reader_keeps_a_dropped_block),
    };
    return cmocka_run_group_tests_name("storage.tail", tests, NULL, NULL);
}
