/* SPDX-License-Identifier: Apache-2.0 */
/* Answers come out the same in pieces of any size, and end before what is not text. */
#include "server/http/consume_encoder_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND_OFFSET 100

static struct esk_slice text(const char *string) {
    return esk_slice_text(string);
}

/* A part of two batches, at offsets 0 and 100, and a part of one at 200. */
static struct esk_consume make_consume(struct esk_batch_builder *builders) {
    static struct esk_consume_part parts[2];
    struct esk_block *blocks[3];
    for (int i = 0; i < 3; i++) {
        blocks[i] = esk_batch_builder_finish(&builders[i]);
        esk_batch_patch(blocks[i]->data, i * SECOND_OFFSET, 1);
    }
    uint32_t both = blocks[0]->size + blocks[1]->size;
    struct esk_block *joined = esk_block_create(both);
    memcpy(joined->data, blocks[0]->data, blocks[0]->size);
    memcpy(joined->data + blocks[0]->size, blocks[1]->data, blocks[1]->size);
    joined->size = both;
    parts[0] = (struct esk_consume_part){joined, 0, both};
    parts[1] = (struct esk_consume_part){blocks[2], 0, blocks[2]->size};
    esk_block_release(blocks[0]);
    esk_block_release(blocks[1]);
    return (struct esk_consume){.parts = parts,
                                .part_count = 2,
                                .partition = 7,
                                .records_max = 1000,
                                .bytes_max = 1 << 30,
                                .high_watermark = 300};
}

static void free_consume(struct esk_consume *consume) {
    esk_block_release(consume->parts[0].block);
    esk_block_release(consume->parts[1].block);
}

static void begin(struct esk_batch_builder builders[3]) {
    for (int i = 0; i < 3; i++) {
        esk_batch_builder_begin(&builders[i], -5, 100);
    }
}

static void add(struct esk_batch_builder *builder, struct esk_slice key, struct esk_slice value) {
    assert_int_equal(esk_batch_builder_add(builder, key, value, NULL, 0), ESK_OK);
}

/* The whole answer, in pieces of `room`. */
static enum esk_err encode(const struct esk_consume *consume, bool is_base64, size_t room,
                           struct esk_buffer *out, struct esk_error *error) {
    struct eski_consume_encoder encoder;
    eski_consume_encoder_init(&encoder, consume, is_base64);
    out->size = 0;
    enum esk_err err;
    do {
        size_t before = out->size;
        err = eski_consume_encode(&encoder, room, out, error);
        assert_true(out->size - before <= room);
    } while (err == ESK_ERR_AGAIN);
    eski_consume_encoder_fini(&encoder);
    esk_buffer_u8(out, 0);
    return err;
}

static void pieces_of_any_size_make_the_same(void **state) {
    (void)state;
    struct esk_batch_builder builders[3];
    begin(builders);
    struct esk_record_header headers[40];
    for (int i = 0; i < 40; i++) { /* enough to be grouped through the map */
        headers[i] = (struct esk_record_header){i % 2 ? text("odd") : text("ev\"en"), text("v")};
    }
    headers[39] = (struct esk_record_header){text("last"), esk_slice(NULL, 0)};
    add(&builders[0], text("k\1"), text("v\n\xe2\x82\xac\"\\"));
    assert_int_equal(
        esk_batch_builder_add(&builders[1], esk_slice(NULL, 0), text(""), headers + 36, 4), ESK_OK);
    assert_int_equal(esk_batch_builder_add(&builders[1], text(""), esk_slice(NULL, 0), headers, 40),
                     ESK_OK);
    add(&builders[2], text("x"), text("0123456789012345678901234567890123456789"));
    struct esk_consume consume = make_consume(builders);
    struct esk_buffer whole;
    struct esk_buffer pieces;
    esk_buffer_init(&whole);
    esk_buffer_init(&pieces);
    assert_int_equal(encode(&consume, false, 100000, &whole, NULL), ESK_OK);
    const char *start =
        "{\"records\":[{\"partition\":7,\"offset\":0,\"timestamp_ms\":-5,\"key\":\"k\\u0001\","
        "\"value\":\"v\\n\xe2\x82\xac\\\"\\\\\"},{\"partition\":7,\"offset\":100,"
        "\"timestamp_ms\":-5,\"key\":null,\"value\":\"\",\"headers\":{\"ev\\\"en\":[\"v\",\"v\"],"
        "\"odd\":\"v\",\"last\":null}},{\"partition\":7,\"offset\":101,\"timestamp_ms\":-5,"
        "\"key\":\"\",\"value\":null,\"headers\":{\"ev\\\"en\":[\"v\",";
    assert_memory_equal(whole.data, start, strlen(start));
    const char *end = "\"}],\"next_offset\":201,\"high_watermark\":300}";
    assert_string_equal((char *)whole.data + whole.size - 1 - strlen(end), end);
    for (int is_base64 = 0; is_base64 <= 1; is_base64++) {
        assert_int_equal(encode(&consume, is_base64, 100000, &whole, NULL), ESK_OK);
        for (size_t room = 20; room < 120; room++) {
            assert_int_equal(encode(&consume, is_base64, room, &pieces, NULL), ESK_OK);
            assert_string_equal((char *)pieces.data, (char *)whole.data);
        }
    }
    esk_buffer_fini(&whole);
    esk_buffer_fini(&pieces);
    free_consume(&consume);
}

static void limits_and_gaps_move_the_next_offset(void **state) {
    (void)state;
    struct esk_batch_builder builders[3];
    begin(builders);
    for (int i = 0; i < 3; i++) {
        add(&builders[i], esk_slice(NULL, 0), text("0123456789"));
        add(&builders[i], esk_slice(NULL, 0), text("0123456789"));
    }
    struct esk_consume consume = make_consume(builders);
    static const struct {
        uint64_t offset;
        uint64_t start_offset;
        uint32_t records_max;
        uint64_t bytes_max;
        const char *first; /* offset, NULL: no record */
        const char *next;
    } examples[] = {
        {0, 0, 1, 1 << 20, "0", "1"},      {0, 0, 1000, 1, "0", "1"},
        {1, 0, 1000, 20, "1", "101"},      {1, 0, 1000, 29, "1", "101"},
        {2, 0, 1, 1 << 20, "100", "101"},  {0, 101, 2, 1 << 20, "101", "201"},
        {202, 0, 9, 1 << 20, NULL, "202"}, {299, 0, 9, 1 << 20, NULL, "299"},
        {400, 0, 9, 1 << 20, NULL, "300"},
    };
    struct esk_buffer out;
    esk_buffer_init(&out);
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        consume.offset = examples[i].offset;
        consume.start_offset = examples[i].start_offset;
        consume.records_max = examples[i].records_max;
        consume.bytes_max = examples[i].bytes_max;
        assert_int_equal(encode(&consume, false, 100000, &out, NULL), ESK_OK);
        char expected[64];
        (void)snprintf(expected, sizeof expected, "\"next_offset\":%s,", examples[i].next);
        assert_non_null(strstr((char *)out.data, expected));
        (void)snprintf(expected, sizeof expected, "{\"records\":[%s%s",
                       examples[i].first ? "{\"partition\":7,\"offset\":" : "]",
                       examples[i].first ? examples[i].first : "");
        assert_memory_equal(out.data, expected, strlen(expected));
    }
    esk_buffer_fini(&out);
    free_consume(&consume);
}

static void an_empty_record_counts_against_no_limit_but_follows_none(void **state) {
    (void)state;
    struct esk_batch_builder builders[3];
    begin(builders);
    add(&builders[0], esk_slice(NULL, 0), text("0123456789"));
    add(&builders[0], esk_slice(NULL, 0), text(""));
    add(&builders[1], esk_slice(NULL, 0), text("0123456789"));
    add(&builders[1], text(""), esk_slice(NULL, 0));
    add(&builders[2], text(""), text(""));
    struct esk_consume consume = make_consume(builders);
    static const struct {
        uint64_t offset;
        uint64_t bytes_max;
        const char *next;
    } examples[] = {{0, 9, "1"},    {0, 10, "2"},    {0, 19, "2"},     {0, 20, "201"}, {1, 9, "2"},
                    {1, 10, "201"}, {100, 1, "101"}, {100, 10, "201"}, {101, 1, "201"}};
    struct esk_buffer out;
    esk_buffer_init(&out);
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        consume.offset = examples[i].offset;
        consume.bytes_max = examples[i].bytes_max;
        assert_int_equal(encode(&consume, false, 100000, &out, NULL), ESK_OK);
        char expected[64];
        (void)snprintf(expected, sizeof expected, "\"next_offset\":%s,", examples[i].next);
        assert_non_null(strstr((char *)out.data, expected));
    }
    esk_buffer_fini(&out);
    free_consume(&consume);
}

/* A value larger than one look at it: characters lie over the border, whatever its place. */
static void large_values_are_checked_in_steps(void **state) {
    (void)state;
    size_t size = 900000;
    uint8_t *value = malloc(size);
    assert_non_null(value);
    struct esk_buffer out;
    esk_buffer_init(&out);
    for (size_t shift = 0; shift < 4; shift++) {
        memset(value, 'a', shift);
        for (size_t i = shift; i < size; i += 3) {
            static const char euro[] = "\xe2\x82\xac";
            memcpy(value + i, euro, size - i < 3 ? size - i : 3);
        }
        size_t valid = size - (size - shift) % 3;
        for (size_t broken = 0; broken < 2; broken++) {
            struct esk_batch_builder builders[3];
            begin(builders);
            add(&builders[0], esk_slice(NULL, 0), text("before"));
            value[valid - 1] = broken ? 'x' : 0xac;
            add(&builders[1], esk_slice(NULL, 0), esk_slice(value, valid));
            add(&builders[2], esk_slice(NULL, 0), text("after"));
            struct esk_consume consume = make_consume(builders);
            assert_int_equal(encode(&consume, false, 65536, &out, NULL), ESK_OK);
            assert_non_null(strstr((char *)out.data, "\"before\""));
            assert_int_equal(strstr((char *)out.data, "\"after\"") != NULL, !broken);
            assert_non_null(
                strstr((char *)out.data, broken ? "\"next_offset\":1," : "\"next_offset\":201,"));
            consume.offset = 1;
            struct esk_error error;
            assert_int_equal(encode(&consume, false, 65536, &out, &error),
                             broken ? ESK_ERR_NOT_TEXT : ESK_OK);
            assert_true(!broken || strstr(error.text, "offset 100"));
            free_consume(&consume);
        }
    }
    esk_buffer_fini(&out);
    free(value);
}

static void damage_is_an_error(void **state) {
    (void)state;
    struct esk_batch_builder builders[3];
    begin(builders);
    for (int i = 0; i < 3; i++) {
        add(&builders[i], esk_slice(NULL, 0), text("0123456789"));
    }
    struct esk_consume consume = make_consume(builders);
    struct esk_block *block = consume.parts[1].block;
    block->data[ESK_BATCH_HEADER_BYTES] = 0x7e; /* the record's length */
    struct esk_buffer out;
    struct esk_error error;
    esk_buffer_init(&out);
    assert_int_equal(encode(&consume, false, 100000, &out, &error), ESK_ERR_CORRUPT);
    consume.parts[1].size -= 1;
    assert_int_equal(encode(&consume, false, 100000, &out, &error), ESK_ERR_CORRUPT);
    esk_buffer_fini(&out);
    free_consume(&consume);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_of_any_size_make_the_same),
        cmocka_unit_test(limits_and_gaps_move_the_next_offset),
        cmocka_unit_test(an_empty_record_counts_against_no_limit_but_follows_none),
        cmocka_unit_test(large_values_are_checked_in_steps),
        cmocka_unit_test(damage_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
