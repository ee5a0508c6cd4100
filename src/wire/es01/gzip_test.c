/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/es01/gzip.h"

#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Bytes that gzip can do something with. */
static void fill(struct esk_buffer *buffer, size_t size) {
    buffer->size = 0;
    uint8_t *at = esk_buffer_grow(buffer, size + 1);
    uint32_t x = 1;
    for (size_t i = 0; i < size; i++) {
        x = x * 1664525 + 1013904223;
        at[i] = (uint8_t)(x >> 28);
    }
    buffer->size = size;
}

struct world {
    struct esk_es01_inflater *inflater;
    struct esk_es01_deflater *deflater;
    struct esk_buffer plain, packed, out;
};

static int set_up(void **state) {
    struct world *world = esk_alloc_zeroed(1, sizeof *world);
    world->inflater = esk_es01_inflater_create();
    world->deflater = esk_es01_deflater_create();
    *state = world;
    return 0;
}

static int tear_down(void **state) {
    struct world *world = *state;
    esk_es01_inflater_destroy(world->inflater);
    esk_es01_deflater_destroy(world->deflater);
    esk_buffer_fini(&world->plain);
    esk_buffer_fini(&world->packed);
    esk_buffer_fini(&world->out);
    free(world);
    return 0;
}

/* All of world->packed, given and taken in pieces of those sizes. */
static enum esk_err inflate_in_pieces(struct world *world, size_t input_bytes, size_t room_bytes) {
    struct esk_error error;
    enum esk_err err = ESK_ERR_AGAIN;
    size_t at = 0;
    esk_es01_inflater_begin(world->inflater);
    world->out.size = 0;
    while (err == ESK_ERR_AGAIN) {
        size_t left = world->packed.size - at;
        size_t size = left < input_bytes ? left : input_bytes;
        struct esk_slice input = esk_slice(world->packed.data + at, size);
        size_t before = world->out.size;
        err = esk_es01_inflate(world->inflater, &input, room_bytes, &world->out, &error);
        assert_true(world->out.size - before <= room_bytes);
        at += size - input.size;
        if (err == ESK_ERR_AGAIN && at == world->packed.size && world->out.size == before) {
            return err; /* cut short */
        }
    }
    return err;
}

static void every_size_comes_back_in_any_pieces(void **state) {
    struct world *world = *state;
    static const size_t sizes[] = {0, 1, 17, 128, 129, 1000, 65535, 65536, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill(&world->plain, sizes[i]);
        world->packed.size = 0;
        esk_es01_deflate(world->deflater, esk_buffer_slice(&world->plain), &world->packed);
        for (size_t piece = 1; piece < 1000000; piece *= 7) {
            assert_int_equal(inflate_in_pieces(world, piece, piece * 3), ESK_OK);
            assert_true(
                esk_slice_equal(esk_buffer_slice(&world->out), esk_buffer_slice(&world->plain)));
        }
    }
}

static void pieces_make_one_member(void **state) {
    struct world *world = *state;
    fill(&world->plain, 200000);
    world->packed.size = 0;
    esk_es01_deflate_begin(world->deflater);
    for (size_t at = 0; at < 200000; at += 40000) {
        esk_es01_deflate_more(world->deflater, esk_slice(world->plain.data + at, 40000), false,
                              &world->packed);
    }
    esk_es01_deflate_more(world->deflater, esk_slice(NULL, 0), true, &world->packed);
    assert_true(world->packed.size < 150000);
    assert_int_equal(inflate_in_pieces(world, 1 << 20, 1 << 20), ESK_OK);
    assert_true(esk_slice_equal(esk_buffer_slice(&world->out), esk_buffer_slice(&world->plain)));
}

static void a_bomb_gives_no_more_than_there_is_room_for(void **state) {
    struct world *world = *state;
    uint8_t *zeros = esk_alloc_zeroed(1, 10 << 20);
    world->packed.size = 0;
    esk_es01_deflate(world->deflater, esk_slice(zeros, 10 << 20), &world->packed);
    free(zeros);
    struct esk_slice input = esk_buffer_slice(&world->packed);
    struct esk_error error;
    size_t before = input.size;
    esk_es01_inflater_begin(world->inflater);
    world->out.size = 0;
    assert_int_equal(esk_es01_inflate(world->inflater, &input, 1000, &world->out, &error),
                     ESK_ERR_AGAIN);
    assert_int_equal(world->out.size, 1000);
    assert_true(input.size > before / 2);
    assert_int_equal(esk_es01_inflate(world->inflater, &input, 0, &world->out, &error),
                     ESK_ERR_AGAIN);
    assert_int_equal(world->out.size, 1000);
}

static void damage_is_told(void **state) {
    struct world *world = *state;
    fill(&world->plain, 5000);
    world->packed.size = 0;
    esk_es01_deflate(world->deflater, esk_buffer_slice(&world->plain), &world->packed);
    for (size_t at = 0; at < world->packed.size; at += 3) {
        if (at >= 4 && at < 10) {
            continue; /* time and system, which mean nothing */
        }
        world->packed.data[at] ^= 0x55;
        assert_int_not_equal(inflate_in_pieces(world, 100, 100), ESK_OK);
        world->packed.data[at] ^= 0x55;
    }
    esk_buffer_u8(&world->packed, 0);
    assert_int_equal(inflate_in_pieces(world, 1 << 20, 1 << 20), ESK_ERR_INVALID);
    world->packed.size -= 2;
    assert_int_equal(inflate_in_pieces(world, 1 << 20, 1 << 20), ESK_ERR_AGAIN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_size_comes_back_in_any_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pieces_make_one_member, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_bomb_gives_no_more_than_there_is_room_for, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(damage_is_told, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
