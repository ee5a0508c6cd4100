/* SPDX-License-Identifier: Apache-2.0 */
/* Each codec: round trips, exact bounds, bombs, cuts at every byte, and framings of real clients.
 */
#include "model/codec.h"
#include "model/codec_testing.h"

#include <stdlib.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SAMPLE_BYTES 100000

/* Half text that compresses, half noise that does not. */
static void fill_sample(uint8_t *sample) {
    uint32_t random = 1;
    for (size_t i = 0; i < SAMPLE_BYTES; i++) {
        random = random * 1664525u + 1013904223u;
        sample[i] = i < SAMPLE_BYTES / 2 ? (uint8_t)('a' + i % 23) : (uint8_t)(random >> 24);
    }
}

static void expect_inflates(enum esk_codec codec, struct esk_slice packed, struct esk_slice plain) {
    struct esk_error error;
    struct esk_buffer output;
    esk_buffer_init(&output);
    esk_buffer_append(&output, "kept", 4);
    assert_int_equal(esk_inflate(codec, packed, plain.size, &output, &error), ESK_OK);
    assert_int_equal(output.size, plain.size + 4);
    assert_memory_equal(output.data, "kept", 4);
    assert_memory_equal(output.data + 4, plain.data, plain.size);
    if (plain.size > 0) {
        assert_int_equal(esk_inflate(codec, packed, plain.size - 1, &output, &error),
                         ESK_ERR_TOO_LARGE);
        assert_int_equal(output.size, plain.size + 4);
    }
    esk_buffer_fini(&output);
}

static void each_codec_round_trips_up_to_its_exact_limit(void **state) {
    (void)state;
    static uint8_t sample[SAMPLE_BYTES];
    fill_sample(sample);
    const size_t sizes[] = {1, 100, 4096, 4097, SAMPLE_BYTES};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct esk_slice plain = esk_slice(sample + SAMPLE_BYTES - sizes[i], sizes[i]);
        for (int codec = ESK_CODEC_NONE; codec <= ESK_CODEC_ZSTD; codec++) {
            struct esk_buffer packed;
            esk_buffer_init(&packed);
            deflate_any((enum esk_codec)codec, plain, &packed);
            expect_inflates((enum esk_codec)codec, esk_buffer_slice(&packed), plain);
            esk_buffer_fini(&packed);
        }
    }
}

static void other_framings_of_clients_are_read(void **state) {
    (void)state;
    static uint8_t sample[SAMPLE_BYTES];
    fill_sample(sample);
    struct esk_slice plain = esk_slice(sample, SAMPLE_BYTES);
    struct esk_slice half = esk_slice(sample, SAMPLE_BYTES / 2);
    struct esk_slice rest = esk_slice(sample + half.size, SAMPLE_BYTES - half.size);
    struct esk_buffer packed;
    esk_buffer_init(&packed);
    deflate_snappy(plain, &packed); /* librdkafka, Sarama: no framing */
    expect_inflates(ESK_CODEC_SNAPPY, esk_buffer_slice(&packed), plain);
    packed.size = 0;
    deflate_zstd(plain, true, &packed);
    expect_inflates(ESK_CODEC_ZSTD, esk_buffer_slice(&packed), plain);
    void (*const deflaters[])(struct esk_slice, struct esk_buffer *) = {deflate_gzip, deflate_lz4};
    const enum esk_codec codecs[] = {ESK_CODEC_GZIP, ESK_CODEC_LZ4};
    for (int i = 0; i < 2; i++) { /* two members, two frames */
        packed.size = 0;
        deflaters[i](half, &packed);
        deflaters[i](rest, &packed);
        expect_inflates(codecs[i], esk_buffer_slice(&packed), plain);
    }
    packed.size = 0;
    deflate_zstd(half, true, &packed);
    deflate_zstd(rest, false, &packed);
    expect_inflates(ESK_CODEC_ZSTD, esk_buffer_slice(&packed), plain);
    esk_buffer_fini(&packed);
}

static void a_cut_or_flipped_input_is_an_error_or_bounded(void **state) {
    (void)state;
    static uint8_t sample[SAMPLE_BYTES];
    fill_sample(sample);
    struct esk_slice plain = esk_slice(sample + SAMPLE_BYTES / 2 - 100, 200);
    for (int codec = ESK_CODEC_GZIP; codec <= ESK_CODEC_ZSTD; codec++) {
        struct esk_buffer packed;
        struct esk_buffer output;
        esk_buffer_init(&packed);
        esk_buffer_init(&output);
        deflate_any((enum esk_codec)codec, plain, &packed);
        for (size_t size = 0; size < packed.size; size++) {
            output.size = 0;
            enum esk_err err = esk_inflate((enum esk_codec)codec, esk_slice(packed.data, size),
                                           plain.size, &output, NULL);
            if (codec == ESK_CODEC_SNAPPY && size <= 16) {
                /* A cut header reads as the length of a bare block; whole, as an empty stream. */
                assert_true((err == ESK_OK) == (size == 16));
            } else {
                assert_int_equal(err, ESK_ERR_CORRUPT);
            }
            assert_int_equal(output.size, 0);
        }
        for (size_t bit = 0; bit < packed.size * 8; bit++) {
            packed.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            output.size = 0;
            enum esk_err err =
                esk_inflate((enum esk_codec)codec, esk_buffer_slice(&packed), 4096, &output, NULL);
            assert_true(err == ESK_OK || err == ESK_ERR_CORRUPT || err == ESK_ERR_TOO_LARGE);
            assert_true(output.size <= 4096);
            packed.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        esk_buffer_fini(&packed);
        esk_buffer_fini(&output);
    }
}

static void a_bomb_is_refused_within_the_limit(void **state) {
    (void)state;
    const size_t bomb_bytes = 20 * 1024 * 1024;
    const size_t limit_bytes = 100000;
    uint8_t *zeros = esk_alloc_zeroed(1, bomb_bytes);
    for (int codec = ESK_CODEC_GZIP; codec <= ESK_CODEC_ZSTD; codec++) {
        struct esk_buffer packed;
        struct esk_buffer output;
        struct esk_error error;
        esk_buffer_init(&packed);
        esk_buffer_init(&output);
        deflate_any((enum esk_codec)codec, esk_slice(zeros, bomb_bytes), &packed);
        assert_int_equal(esk_inflate((enum esk_codec)codec, esk_buffer_slice(&packed), limit_bytes,
                                     &output, &error),
                         ESK_ERR_TOO_LARGE);
        /* As much again as was made, or as the input has, is the most that is offered. */
        assert_true(output.capacity <= 2 * limit_bytes + 2 * packed.size);
        esk_buffer_fini(&packed);
        esk_buffer_fini(&output);
    }
    free(zeros);
}

static void claims_are_bounded_before_memory_is_taken(void **state) {
    (void)state;
    struct esk_buffer output;
    esk_buffer_init(&output);
    const uint8_t snappy_4g[] = {0xff, 0xff, 0xff, 0xff, 0x0f, 0x00, 'x'};
    assert_int_equal(esk_inflate(ESK_CODEC_SNAPPY, esk_slice(snappy_4g, sizeof(snappy_4g)), 1 << 20,
                                 &output, NULL),
                     ESK_ERR_TOO_LARGE);
    const uint8_t snappy_1m[] = {0x80, 0x80, 0x40, 0x00, 'x'};
    assert_int_equal(esk_inflate(ESK_CODEC_SNAPPY, esk_slice(snappy_1m, sizeof(snappy_1m)), 1 << 20,
                                 &output, NULL),
                     ESK_ERR_CORRUPT);
    const uint8_t zstd_4g[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0xff, 0xff, 0xff, 0xff, 0x01, 0, 0};
    assert_int_equal(
        esk_inflate(ESK_CODEC_ZSTD, esk_slice(zstd_4g, sizeof(zstd_4g)), 1 << 20, &output, NULL),
        ESK_ERR_TOO_LARGE);
    assert_int_equal(output.capacity, 0);
    assert_int_equal(esk_inflate((enum esk_codec)5, esk_slice(zstd_4g, 4), 100, &output, NULL),
                     ESK_ERR_UNSUPPORTED);
    esk_buffer_fini(&output);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_codec_round_trips_up_to_its_exact_limit),
        cmocka_unit_test(other_framings_of_clients_are_read),
        cmocka_unit_test(a_cut_or_flipped_input_is_an_error_or_bounded),
        cmocka_unit_test(a_bomb_is_refused_within_the_limit),
        cmocka_unit_test(claims_are_bounded_before_memory_is_taken),
    };
    return cmocka_run_group_tests_name("model.codec", tests, NULL, NULL);
}
