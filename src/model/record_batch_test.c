/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: golden bytes, round trips through every codec, and everything a stranger may send. */
#include "base/hash.h"
#include "model/codec_testing.h"
#include "model/record_batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct esk_batch_limits dense = {1 << 20, 1 << 20, 1 << 20, true};
static const struct esk_batch_limits sparse = {1 << 20, 1 << 20, 1 << 20, false};
static const struct esk_slice null_bytes = {NULL, 0};

/* All numbers 0 but length and magic. Made from the protocol guide by another program, as is the
 * next one; Kafka's clients have the same CRC for it. */
static const uint8_t golden_empty[61] = {0,    0, 0, 0, 0, 0, 0,    0,    0,    0,   0,
                                         0x31, 0, 0, 0, 0, 2, 0x59, 0x5f, 0xb7, 0xdd};

/* {"user-1": "checkout"} and {null: "", headers a=1, b=null} at 1700000000000 ms. */
static const char golden_two[] =
    "\0\0\0\0\0\0\0\0\0\0\0\x54\xff\xff\xff\xff\x02\x40\xaf\x9b\x50\0\0\0\0\0\x01\0\0\x01\x8b\xcf"
    "\xe5\x68\0\0\0\x01\x8b\xcf\xe5\x68\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
    "\0\0\0\x02\x28\0\0\0\x0cuser-1\x10"
    "checkout\0\x1a\0\0\x02\x01\0\x04\x02"
    "a\x02"
    "1\x02"
    "b\x01";

static enum esk_err check(const uint8_t *bytes, size_t size,
                          const struct esk_batch_limits *limits) {
    /* A copy of the exact size, so that the address sanitizer sees a read behind it. */
    uint8_t *copy = esk_alloc(size);
    memcpy(copy, bytes, size);
    struct esk_batch_header header;
    struct esk_error error;
    enum esk_err err = esk_batch_check(esk_slice(copy, size), limits, &header, NULL, &error);
    free(copy);
    return err;
}

static void fix_crc(uint8_t *batch, size_t size) {
    esk_store_u32(batch + ESK_BATCH_AT_CRC,
                  esk_crc32c(0, batch + ESK_BATCH_AT_ATTRIBUTES, size - ESK_BATCH_AT_ATTRIBUTES));
}

static struct esk_block *build_two(void) {
    struct esk_batch_builder builder;
    esk_batch_builder_begin(&builder, 1700000000000, 0);
    const struct esk_record_header headers[] = {
        {esk_slice_text("a"), esk_slice_text("1")},
        {esk_slice_text("b"), null_bytes},
    };
    assert_int_equal(esk_batch_builder_add(&builder, esk_slice_text("user-1"),
                                           esk_slice_text("checkout"), NULL, 0),
                     ESK_OK);
    assert_int_equal(esk_batch_builder_add(&builder, null_bytes, esk_slice_text(""), headers, 2),
                     ESK_OK);
    struct esk_block *block = esk_batch_builder_finish(&builder);
    esk_batch_builder_abandon(&builder);
    return block;
}

static void the_builder_makes_the_golden_bytes(void **state) {
    (void)state;
    struct esk_block *block = build_two();
    assert_int_equal(block->size, sizeof(golden_two) - 1);
    assert_memory_equal(block->data, golden_two, block->size);
    esk_block_release(block);
}

static void the_empty_batch_is_sound_but_no_producer_may_send_it(void **state) {
    (void)state;
    struct esk_batch_header header;
    assert_int_equal(esk_batch_check(esk_slice(golden_empty, 61), &sparse, &header, NULL, NULL),
                     ESK_OK);
    assert_int_equal(header.size_bytes, 61);
    assert_int_equal(header.crc, 0x595fb7dd);
    assert_int_equal(header.record_count, 0);
    assert_int_equal(check(golden_empty, 61, &dense), ESK_ERR_CORRUPT);
}

static void a_patch_leaves_the_crc_right(void **state) {
    (void)state;
    struct esk_block *block = build_two();
    esk_batch_patch(block->data, 1234567890123, 77);
    struct esk_batch_header header;
    uint64_t record_bytes;
    assert_int_equal(
        esk_batch_check(esk_slice(block->data, block->size), &dense, &header, &record_bytes, NULL),
        ESK_OK);
    assert_true(header.base_offset == 1234567890123);
    assert_int_equal(header.leader_epoch, 77);
    assert_int_equal(record_bytes, 6 + 8 + 3);
    esk_block_release(block);
}

static void expect_the_two_records(struct esk_slice records) {
    struct esk_record_iterator iterator = esk_record_iterator(records, 2);
    struct esk_record record;
    struct esk_record_header header;
    assert_true(esk_record_next(&iterator, &record));
    assert_true(esk_slice_equal(record.key, esk_slice_text("user-1")));
    assert_true(esk_slice_equal(record.value, esk_slice_text("checkout")));
    assert_false(esk_record_header_next(&record, &header));
    assert_false(record.headers.failed);
    assert_true(esk_record_next(&iterator, &record));
    assert_int_equal(record.offset_delta, 1);
    assert_null(record.key.data);
    assert_non_null(record.value.data);
    assert_int_equal(record.value.size, 0);
    assert_int_equal(esk_record_size(&record), 3);
    assert_true(esk_record_header_next(&record, &header));
    assert_true(esk_slice_equal(header.name, esk_slice_text("a")));
    assert_true(esk_slice_equal(header.value, esk_slice_text("1")));
    assert_true(esk_record_header_next(&record, &header));
    assert_true(esk_slice_equal(header.name, esk_slice_text("b")));
    assert_null(header.value.data);
    assert_false(esk_record_header_next(&record, &header));
    assert_false(record.headers.failed);
    assert_false(esk_record_next(&iterator, &record));
    assert_false(iterator.failed);
}

/* The golden batch with its records compressed, as a client would send it. */
static void pack(enum esk_codec codec, struct esk_buffer *batch) {
    batch->size = 0;
    esk_buffer_append(batch, golden_two, ESK_BATCH_HEADER_BYTES);
    deflate_any(codec, esk_slice(golden_two + ESK_BATCH_HEADER_BYTES, sizeof(golden_two) - 62),
                batch);
    esk_store_u16(batch->data + ESK_BATCH_AT_ATTRIBUTES, (uint16_t)codec);
    esk_store_u32(batch->data + ESK_BATCH_AT_LENGTH, (uint32_t)batch->size - 12);
    fix_crc(batch->data, batch->size);
}

static void records_come_back_through_every_codec(void **state) {
    (void)state;
    struct esk_buffer batch;
    struct esk_buffer scratch;
    esk_buffer_init(&batch);
    esk_buffer_init(&scratch);
    for (int codec = ESK_CODEC_NONE; codec <= ESK_CODEC_ZSTD; codec++) {
        pack((enum esk_codec)codec, &batch);
        struct esk_batch_header header;
        uint64_t record_bytes = 0;
        assert_int_equal(
            esk_batch_check(esk_buffer_slice(&batch), &dense, &header, &record_bytes, NULL),
            ESK_OK);
        assert_int_equal(record_bytes, 17);
        assert_int_equal(esk_batch_codec(&header), codec);
        struct esk_slice records;
        assert_int_equal(
            esk_batch_records(esk_buffer_slice(&batch), &header, 1000, &scratch, &records, NULL),
            ESK_OK);
        expect_the_two_records(records);
        scratch.size = 0;
        assert_int_equal(esk_batch_inflate(esk_buffer_slice(&batch), 1000, &scratch, NULL), ESK_OK);
        expect_the_two_records(esk_buffer_slice(&scratch));
        struct esk_batch_limits small = dense;
        small.inflated_bytes = 20;
        /* Uncompressed records are bounded by the batch's own size. */
        assert_int_equal(check(batch.data, batch.size, &small),
                         codec == ESK_CODEC_NONE ? ESK_OK : ESK_ERR_TOO_LARGE);
    }
    pack((enum esk_codec)5, &batch);
    assert_int_equal(check(batch.data, batch.size, &dense), ESK_ERR_UNSUPPORTED);
    esk_buffer_fini(&batch);
    esk_buffer_fini(&scratch);
}

static void every_cut_and_every_flipped_bit_is_noticed(void **state) {
    (void)state;
    uint8_t bytes[sizeof(golden_two) - 1];
    memcpy(bytes, golden_two, sizeof(bytes));
    for (size_t size = 0; size < sizeof(bytes); size++) {
        enum esk_err err = check(bytes, size, &dense);
        assert_int_equal(err, ESK_ERR_CORRUPT);
    }
    for (size_t bit = 8 * ESK_BATCH_AT_LENGTH; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        enum esk_err err = check(bytes, sizeof(bytes), &dense);
        bool epoch = bit / 8 >= ESK_BATCH_AT_LEADER_EPOCH && bit / 8 < ESK_BATCH_AT_MAGIC;
        bool magic = bit / 8 == ESK_BATCH_AT_MAGIC;
        assert_int_equal(err, epoch ? ESK_OK : magic ? ESK_ERR_VERSION : ESK_ERR_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* Whether a byte of the golden batch is a count, a length or an offset delta. */
static bool is_structure(size_t at) {
    static const uint8_t places[] = {61, 64, 65, 72, 81, 82, 85, 86, 87, 88, 89, 91, 93, 95};
    return (at >= ESK_BATCH_AT_LAST_DELTA && at < ESK_BATCH_AT_BASE_TIMESTAMP) ||
           (at >= ESK_BATCH_AT_RECORD_COUNT && at < ESK_BATCH_HEADER_BYTES) ||
           memchr(places, (int)at, sizeof(places)) != NULL;
}

static void no_lie_under_a_right_crc_is_believed(void **state) {
    (void)state;
    /* Each flip of the covered bytes, with the CRC made right. Only flips of what says nothing
     * about structure pass: content, timestamps, unused attributes, and null taken for empty. */
    uint8_t bytes[sizeof(golden_two) - 1];
    memcpy(bytes, golden_two, sizeof(bytes));
    for (size_t bit = 8 * ESK_BATCH_AT_ATTRIBUTES; bit < 8 * sizeof(bytes); bit++) {
        size_t at = bit / 8;
        bytes[at] ^= (uint8_t)(1 << bit % 8);
        fix_crc(bytes, sizeof(bytes));
        enum esk_err err = check(bytes, sizeof(bytes), &dense);
        assert_true(err == ESK_OK || err == ESK_ERR_CORRUPT || err == ESK_ERR_UNSUPPORTED);
        if (is_structure(at)) {
            bool null_or_empty = bit % 8 == 0 && (bytes[at] == 0 || bytes[at] == 1);
            if (err != ESK_ERR_CORRUPT && !null_or_empty) {
                fail_msg("bit %zu of byte %zu", bit % 8, at);
            }
        }
        bytes[at] ^= (uint8_t)(1 << bit % 8);
    }
}

static void counts_are_compared_with_bytes(void **state) {
    (void)state;
    uint8_t bytes[sizeof(golden_two) - 1];
    memcpy(bytes, golden_two, sizeof(bytes));
    esk_store_u32(bytes + ESK_BATCH_AT_RECORD_COUNT, INT32_MAX);
    esk_store_u32(bytes + ESK_BATCH_AT_LAST_DELTA, INT32_MAX - 1);
    fix_crc(bytes, sizeof(bytes));
    assert_int_equal(check(bytes, sizeof(bytes), &dense), ESK_ERR_CORRUPT);
    struct esk_buffer batch;
    esk_buffer_init(&batch);
    for (int codec = ESK_CODEC_GZIP; codec <= ESK_CODEC_ZSTD; codec++) {
        pack((enum esk_codec)codec, &batch);
        esk_store_u32(batch.data + ESK_BATCH_AT_RECORD_COUNT, INT32_MAX);
        esk_store_u32(batch.data + ESK_BATCH_AT_LAST_DELTA, INT32_MAX - 1);
        fix_crc(batch.data, batch.size);
        assert_int_equal(check(batch.data, batch.size, &dense), ESK_ERR_CORRUPT);
    }
    esk_buffer_fini(&batch);
    const int32_t pairs[][2] = {{1, 1}, {1, 0}, {3, 2}, {2, 0}, {-1, 1}, {2, -1}, {0, 1}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        esk_store_u32(bytes + ESK_BATCH_AT_RECORD_COUNT, (uint32_t)pairs[i][0]);
        esk_store_u32(bytes + ESK_BATCH_AT_LAST_DELTA, (uint32_t)pairs[i][1]);
        fix_crc(bytes, sizeof(bytes));
        assert_int_equal(check(bytes, sizeof(bytes), &dense), ESK_ERR_CORRUPT);
        assert_int_equal(check(bytes, sizeof(bytes), &sparse), ESK_ERR_CORRUPT);
    }
    esk_store_u32(bytes + ESK_BATCH_AT_RECORD_COUNT, 2); /* as compaction leaves it */
    esk_store_u32(bytes + ESK_BATCH_AT_LAST_DELTA, 9);
    fix_crc(bytes, sizeof(bytes));
    assert_int_equal(check(bytes, sizeof(bytes), &dense), ESK_ERR_CORRUPT);
    assert_int_equal(check(bytes, sizeof(bytes), &sparse), ESK_OK);
}

static void limits_are_exact(void **state) {
    (void)state;
    const uint8_t *bytes = (const uint8_t *)golden_two;
    const size_t size = sizeof(golden_two) - 1;
    struct esk_batch_limits limits = {(uint32_t)size, 1 << 20, 14, true};
    assert_int_equal(check(bytes, size, &limits), ESK_OK);
    limits.record_bytes = 13;
    assert_int_equal(check(bytes, size, &limits), ESK_ERR_TOO_LARGE);
    limits.record_bytes = 14;
    limits.batch_bytes--;
    assert_int_equal(check(bytes, size, &limits), ESK_ERR_TOO_LARGE);
}

static void malformed_records_stop_the_iterator(void **state) {
    (void)state;
    const struct {
        const char *bytes;
        size_t size;
    } bad[] = {
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 10}, /* an endless varint */
        {"\x80\x80\x80\x80\x10\0\0\0\0\0\0", 11},         /* bit 32 of a 32-bit varint */
        {"\x01\0\0\0\0\0\0", 7},                          /* length -1 */
        {"\x0a\0\0\0\0\0\0", 7},                          /* length 5: too short for a record */
        {"\x0c\0\0\0\x03\x01\0", 7},                      /* key length -2 */
        {"\x0c\0\0\0\x0c\x01\0", 7},                      /* key longer than the record */
        {"\x0c\0\0\0\x01\x01\x02", 7},                    /* a header, but no bytes for it */
        {"\x0c\0\0\0\x01\x01\x01", 7},                    /* -1 headers */
        {"\x0e\0\0\0\x01\x01\0\0", 8},                    /* a byte behind the last field */
        {"\x0c\0\x80\x80\x80\x80\x80", 7},                /* a varint cut by the record's end */
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t *copy = esk_alloc(bad[i].size);
        memcpy(copy, bad[i].bytes, bad[i].size);
        struct esk_record_iterator iterator = esk_record_iterator(esk_slice(copy, bad[i].size), 1);
        struct esk_record record;
        assert_false(esk_record_next(&iterator, &record));
        assert_true(iterator.failed);
        assert_false(esk_record_next(&iterator, &record));
        free(copy);
    }
    struct esk_record_iterator negative = esk_record_iterator(null_bytes, -1);
    struct esk_record record;
    assert_false(esk_record_next(&negative, &record));
    struct esk_record_iterator more = esk_record_iterator(esk_slice("\x0c\0\0\0\x01\x01\0x", 8), 1);
    assert_true(esk_record_next(&more, &record));
    assert_false(esk_record_next(&more, &record));
    assert_true(more.failed);
    /* A header whose name is null. */
    struct esk_record_iterator nameless =
        esk_record_iterator(esk_slice("\x10\0\0\0\x01\x01\x02\x01\x01", 9), 1);
    struct esk_record_header header;
    assert_true(esk_record_next(&nameless, &record));
    assert_false(esk_record_header_next(&record, &header));
    assert_true(record.headers.failed);
}

static void the_builder_grows_from_nothing_to_any_size(void **state) {
    (void)state;
    struct esk_batch_builder builder;
    esk_batch_builder_begin(&builder, 5, 0);
    builder.producer_id = 1004;
    builder.producer_epoch = 3;
    builder.base_sequence = 42;
    static uint8_t large[70000];
    memset(large, 'v', sizeof(large));
    for (int32_t i = 0; i < 20000; i++) {
        struct esk_slice value = esk_slice(large, i == 10000 ? sizeof(large) : (size_t)(i % 200));
        assert_int_equal(esk_batch_builder_add(&builder, esk_slice(&i, sizeof(i)), value, NULL, 0),
                         ESK_OK);
    }
    struct esk_block *block = esk_batch_builder_finish(&builder);
    struct esk_batch_limits limits = {INT32_MAX, 0, 100000, true};
    struct esk_batch_header header;
    assert_int_equal(
        esk_batch_check(esk_slice(block->data, block->size), &limits, &header, NULL, NULL), ESK_OK);
    assert_int_equal(header.size_bytes, block->size);
    assert_int_equal(header.producer_id, 1004);
    assert_int_equal(header.producer_epoch, 3);
    assert_int_equal(header.base_sequence, 42);
    struct esk_record_iterator iterator = esk_record_iterator(
        esk_slice(block->data + ESK_BATCH_HEADER_BYTES, block->size - ESK_BATCH_HEADER_BYTES),
        header.record_count);
    struct esk_record record;
    int32_t i = 0;
    for (; esk_record_next(&iterator, &record); i++) {
        assert_int_equal(record.offset_delta, i);
        assert_memory_equal(record.key.data, &i, sizeof(i));
        assert_int_equal(record.value.size, i == 10000 ? sizeof(large) : (size_t)(i % 200));
    }
    assert_int_equal(i, 20000);
    assert_false(iterator.failed);
    esk_block_release(block);
    esk_batch_builder_begin(&builder, 5, 1000);
    esk_batch_builder_abandon(&builder);
}

static void timestamps_of_hostile_batches_do_not_overflow(void **state) {
    (void)state;
    struct esk_batch_header header = {.base_timestamp_ms = INT64_MAX, .max_timestamp_ms = 9};
    struct esk_record record = {.timestamp_delta = INT64_MAX};
    assert_int_equal(esk_record_timestamp_ms(&header, &record), -2);
    header.attributes = ESK_BATCH_LOG_APPEND_TIME;
    assert_int_equal(esk_record_timestamp_ms(&header, &record), 9);
    uint8_t bytes[sizeof(golden_two) - 1];
    memcpy(bytes, golden_two, sizeof(bytes));
    esk_store_u64(bytes + ESK_BATCH_AT_BASE_TIMESTAMP, INT64_MAX);
    bytes[63] = 2; /* the first record's timestamp delta: 1 */
    fix_crc(bytes, sizeof(bytes));
    assert_int_equal(check(bytes, sizeof(bytes), &dense), ESK_ERR_CORRUPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_builder_makes_the_golden_bytes),
        cmocka_unit_test(the_empty_batch_is_sound_but_no_producer_may_send_it),
        cmocka_unit_test(a_patch_leaves_the_crc_right),
        cmocka_unit_test(records_come_back_through_every_codec),
        cmocka_unit_test(every_cut_and_every_flipped_bit_is_noticed),
        cmocka_unit_test(no_lie_under_a_right_crc_is_believed),
        cmocka_unit_test(counts_are_compared_with_bytes),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(malformed_records_stop_the_iterator),
        cmocka_unit_test(the_builder_grows_from_nothing_to_any_size),
        cmocka_unit_test(timestamps_of_hostile_batches_do_not_overflow),
    };
    return cmocka_run_group_tests_name("model.record_batch", tests, NULL, NULL);
}
