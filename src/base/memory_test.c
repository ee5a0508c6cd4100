/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas, buffers and blocks. Leaks and overruns are the sanitizer's to find. */
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void arena_pieces_are_aligned_and_apart(void **state) {
    (void)state;
    struct esk_arena arena;
    esk_arena_init(&arena, 0);
    uint8_t *pieces[600];
    for (size_t i = 0; i < 600; i++) {
        pieces[i] = esk_arena_alloc(&arena, i);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)(i & 0xff), i);
    }
    for (size_t i = 0; i < 600; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_int_equal(pieces[i][j], i & 0xff);
        }
    }
    assert_non_null(esk_arena_alloc(&arena, 1 << 20));
    size_t full = arena.bytes;
    esk_arena_reset(&arena);
    assert_true(arena.bytes > 0 && arena.bytes < full);
    assert_ptr_equal(esk_arena_alloc(&arena, 1), pieces[0]);
    esk_arena_fini(&arena);
    assert_int_equal(arena.bytes, 0);
}

static void arena_refuses_what_passes_its_limit(void **state) {
    (void)state;
    struct esk_arena arena;
    esk_arena_init(&arena, 10000);
    assert_non_null(esk_arena_alloc(&arena, 3000));
    assert_null(esk_arena_alloc(&arena, 8000));
    assert_non_null(esk_arena_alloc(&arena, 5000));
    assert_true(arena.bytes <= 10000);
    assert_null(esk_arena_alloc(&arena, SIZE_MAX));
    assert_null(esk_arena_alloc(&arena, SIZE_MAX / 2));
    assert_null(esk_arena_alloc_array(&arena, SIZE_MAX / 4, 8));
    esk_arena_fini(&arena);
}

static void arena_copies_are_its_own(void **state) {
    (void)state;
    struct esk_arena arena;
    esk_arena_init(&arena, 0);
    char source[] = "orders";
    char *text = esk_arena_text(&arena, esk_slice(source, 6));
    struct esk_slice copy = esk_arena_copy(&arena, esk_slice(source, 6));
    struct esk_slice empty = esk_arena_copy(&arena, esk_slice(NULL, 0));
    source[0] = 'X';
    assert_string_equal(text, "orders");
    assert_memory_equal(copy.data, "orders", 6);
    assert_non_null(empty.data);
    esk_arena_fini(&arena);
}

static void buffer_grows_and_formats(void **state) {
    (void)state;
    struct esk_buffer buffer;
    esk_buffer_init(&buffer);
    esk_buffer_append(&buffer, NULL, 0);
    esk_buffer_u8(&buffer, 1);
    esk_buffer_u16(&buffer, 2);
    esk_buffer_u32(&buffer, 3);
    esk_buffer_u64(&buffer, 4);
    esk_buffer_uvarint(&buffer, 300);
    esk_buffer_varint(&buffer, -1);
    const uint8_t expected[] = {1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0xac, 0x02, 1};
    assert_int_equal(buffer.size, sizeof(expected));
    assert_memory_equal(buffer.data, expected, sizeof(expected));

    buffer.size = 0;
    for (int i = 0; i < 200; i++) {
        esk_buffer_format(&buffer, "%03d", i);
    }
    esk_buffer_format(&buffer, "%0500d", 7); /* longer than the room that is offered first */
    esk_buffer_append_text(&buffer, "end");
    assert_int_equal(buffer.size, 600 + 500 + 3);
    assert_memory_equal(buffer.data + 597, "199000", 6);
    assert_memory_equal(buffer.data + buffer.size - 4, "7end", 4);
    esk_buffer_fini(&buffer);
    assert_null(buffer.data);
}

static void block_lives_until_its_last_release(void **state) {
    (void)state;
    struct esk_block *block = esk_block_create(4);
    memcpy(block->data, "abcd", 4);
    block->size = 4;
    block = esk_block_grow(block, 1000);
    assert_int_equal(block->capacity, 1000);
    assert_ptr_equal(esk_block_retain(block), block);
    esk_block_release(block);
    assert_memory_equal(block->data, "abcd", 4);
    esk_block_release(block);
    esk_block_release(NULL);
}

static void texts_are_owned_copies(void **state) {
    (void)state;
    char *copy = esk_text_copy("orders");
    char *formatted = esk_text_format("%s/%d", copy, 3);
    assert_string_equal(formatted, "orders/3");
    free(copy);
    free(formatted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_pieces_are_aligned_and_apart),
        cmocka_unit_test(arena_refuses_what_passes_its_limit),
        cmocka_unit_test(arena_copies_are_its_own),
        cmocka_unit_test(buffer_grows_and_formats),
        cmocka_unit_test(block_lives_until_its_last_release),
        cmocka_unit_test(texts_are_owned_copies),
    };
    return cmocka_run_group_tests_name("base.memory", tests, NULL, NULL);
}
