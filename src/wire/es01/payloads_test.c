/* SPDX-License-Identifier: Apache-2.0 */
/* Produce, consume and their answers: golden bytes, read and written anew, and every cut of them
 * refused. */
#include "wire/es01/consume.h"
#include "wire/es01/produce.h"

#include "base/memory.h"
#include "wire/es01/golden_testing.h"

#include <stdlib.h>

static void produce_has_its_golden_bytes(void **state) {
    (void)state;
    struct esk_es01_produce produce;
    struct esk_es01_record records[2];
    struct esk_reader r;
    assert_int_equal(esk_es01_produce_parse(golden("produce"), &produce, &r, NULL), ESK_OK);
    assert_text(produce.topic, "orders");
    assert_text(produce.producer_id, "p1");
    assert_int_equal(produce.record_count, 2);
    esk_es01_record_read(&r, &records[0]);
    esk_es01_record_read(&r, &records[1]);
    assert_false(r.failed);
    assert_int_equal(esk_reader_left(&r), 0);
    assert_text(records[0].key, "k");
    assert_text(records[0].value, "v1");
    assert_int_equal(records[0].partition, ESK_ES01_PARTITION_ANY);
    assert_int_equal(records[0].sequence, 42);
    assert_null(records[1].key.data);
    assert_non_null(records[1].value.data);
    assert_int_equal(records[1].value.size, 0);
    assert_int_equal(records[1].partition, 7);
    assert_true(records[1].sequence == ESK_ES01_SEQUENCE_NONE);
    uint8_t out[256];
    uint8_t *at = esk_es01_produce_write(out, &produce);
    assert_int_equal(at - out, esk_es01_produce_bytes(&produce));
    for (int i = 0; i < 2; i++) {
        uint8_t *next = esk_es01_record_write(at, &records[i]);
        assert_int_equal(next - at, esk_es01_record_bytes(&records[i]));
        at = next;
    }
    assert_golden(esk_slice(out, (size_t)(at - out)), "produce");
}

static void a_plain_produce_has_no_producer_and_an_empty_key_is_one(void **state) {
    (void)state;
    struct esk_es01_produce produce;
    struct esk_es01_record record;
    struct esk_reader r;
    assert_int_equal(esk_es01_produce_parse(golden("produce.plain"), &produce, &r, NULL), ESK_OK);
    assert_null(produce.producer_id.data);
    esk_es01_record_read(&r, &record);
    assert_non_null(record.key.data);
    assert_int_equal(record.key.size, 0);
    uint8_t out[256];
    uint8_t *at = esk_es01_record_write(esk_es01_produce_write(out, &produce), &record);
    assert_golden(esk_slice(out, (size_t)(at - out)), "produce.plain");
}

/* Whether all of the payload reads as a produce. */
static bool reads(struct esk_slice payload) {
    struct esk_es01_produce produce;
    struct esk_es01_record record;
    struct esk_reader r;
    struct esk_error error;
    if (esk_es01_produce_parse(payload, &produce, &r, &error) != ESK_OK) {
        return false;
    }
    for (uint32_t i = 0; i < produce.record_count; i++) {
        esk_es01_record_read(&r, &record);
    }
    return !r.failed && esk_reader_left(&r) == 0;
}

static void no_cut_of_a_produce_is_one(void **state) {
    (void)state;
    struct esk_slice payload = golden("produce");
    uint8_t *copy = NULL;
    for (size_t i = 0; i < payload.size; i++) {
        copy = esk_realloc(copy, i ? i : 1); /* of just that size, for the address sanitizer */
        memcpy(copy, payload.data, i);
        assert_false(reads(esk_slice(copy, i)));
    }
    free(copy);
    assert_true(reads(payload));
}

static void a_topic_shows_as_soon_as_it_is_there(void **state) {
    (void)state;
    struct esk_slice payload = golden("produce");
    struct esk_slice topic;
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(esk_es01_topic_parse(esk_slice(payload.data, i), &topic), ESK_ERR_AGAIN);
    }
    assert_int_equal(esk_es01_topic_parse(esk_slice(payload.data, 8), &topic), ESK_OK);
    assert_text(topic, "orders");
}

static void results_have_their_golden_bytes(void **state) {
    (void)state;
    struct esk_slice payload = golden("produced");
    struct esk_reader r;
    uint32_t count;
    assert_int_equal(esk_es01_results_parse(payload, &count, &r, NULL), ESK_OK);
    assert_int_equal(count, 2);
    uint8_t out[64];
    uint8_t *at = out + 4;
    esk_store_u32(out, count);
    struct esk_es01_result result = {0};
    for (uint32_t i = 0; i < count; i++) {
        esk_es01_result_read(&r, &result);
        at = esk_es01_result_write(at, &result);
    }
    assert_int_equal(result.partition, 3);
    assert_true(result.offset == UINT64_C(0x100000000));
    assert_true(result.duplicate);
    assert_golden(esk_slice(out, (size_t)(at - out)), "produced");
    struct esk_error error;
    for (size_t i = 0; i < payload.size; i++) {
        assert_int_equal(esk_es01_results_parse(esk_slice(payload.data, i), &count, &r, &error),
                         ESK_ERR_INVALID);
    }
}

static void consume_has_its_golden_bytes(void **state) {
    (void)state;
    struct esk_slice payload = golden("consume");
    struct esk_es01_consume consume;
    struct esk_error error;
    assert_int_equal(esk_es01_consume_parse(payload, &consume, &error), ESK_OK);
    assert_text(consume.topic, "orders");
    assert_int_equal(consume.partition, 3);
    assert_int_equal(consume.offset, 256);
    assert_int_equal(consume.max_records, 100);
    assert_int_equal(consume.max_bytes, 1 << 20);
    uint8_t out[64];
    uint8_t *end = esk_es01_consume_write(out, &consume);
    assert_int_equal(end - out, ESK_ES01_CONSUME_BYTES(consume.topic.size));
    assert_golden(esk_slice(out, (size_t)(end - out)), "consume");
    for (size_t i = 0; i < payload.size; i++) {
        assert_int_equal(esk_es01_consume_parse(esk_slice(payload.data, i), &consume, &error),
                         ESK_ERR_INVALID);
    }
    out[end - out] = 0;
    assert_int_equal(
        esk_es01_consume_parse(esk_slice(out, (size_t)(end - out) + 1), &consume, &error),
        ESK_ERR_INVALID);
}

static void fetched_records_have_their_golden_bytes(void **state) {
    (void)state;
    struct esk_slice payload = golden("consumed");
    struct esk_es01_fetched fetched;
    struct esk_es01_fetched_record record;
    struct esk_reader r;
    uint8_t out[256];
    assert_int_equal(esk_es01_fetched_parse(payload, &fetched, &r, NULL), ESK_OK);
    assert_int_equal(fetched.next_offset, 258);
    assert_int_equal(fetched.high_watermark, 259);
    assert_int_equal(fetched.record_count, 2);
    esk_es01_fetched_write(out, &fetched);
    uint8_t *at = out + ESK_ES01_FETCHED_BYTES;
    for (uint32_t i = 0; i < fetched.record_count; i++) {
        esk_es01_fetched_record_read(&r, &record);
        uint8_t *next = esk_es01_fetched_record_write(at, &record);
        assert_int_equal(next - at, esk_es01_fetched_record_bytes(&record));
        at = next;
    }
    assert_false(r.failed);
    assert_int_equal(record.offset, 257);
    assert_int_equal(record.timestamp_ms, -2);
    assert_null(record.key.data);
    assert_golden(esk_slice(out, (size_t)(at - out)), "consumed");
}

static void a_count_that_cannot_be_true_is_refused(void **state) {
    (void)state;
    struct esk_es01_produce produce;
    struct esk_es01_fetched fetched;
    struct esk_reader r;
    struct esk_error error;
    uint8_t bytes[64] = {0, 1, 't', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    assert_int_equal(esk_es01_produce_parse(esk_slice(bytes, sizeof bytes), &produce, &r, &error),
                     ESK_ERR_INVALID);
    memset(bytes, 0, sizeof bytes);
    bytes[19] = 2;
    assert_int_equal(esk_es01_fetched_parse(esk_slice(bytes, 20 + 43), &fetched, &r, &error),
                     ESK_ERR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(produce_has_its_golden_bytes),
        cmocka_unit_test(a_plain_produce_has_no_producer_and_an_empty_key_is_one),
        cmocka_unit_test(no_cut_of_a_produce_is_one),
        cmocka_unit_test(a_topic_shows_as_soon_as_it_is_there),
        cmocka_unit_test(results_have_their_golden_bytes),
        cmocka_unit_test(consume_has_its_golden_bytes),
        cmocka_unit_test(fetched_records_have_their_golden_bytes),
        cmocka_unit_test(a_count_that_cannot_be_true_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
