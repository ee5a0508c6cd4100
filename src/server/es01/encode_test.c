/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in pieces of any size: together they are the payload that was measured. */
#include "server/es01/es01_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define RECORDS 40
#define BATCHES 3

/* A consume that ended well: batches of records whose sizes go up to a few thousand bytes. */
static void fill(struct esk_consume *consume, struct esk_consume_part *parts) {
    static uint8_t bytes[4000];
    memset(bytes, 'x', sizeof bytes);
    for (uint32_t b = 0; b < BATCHES; b++) {
        struct esk_batch_builder builder;
        esk_batch_builder_begin(&builder, 1000 + b, 0);
        for (uint32_t i = 0; i < RECORDS; i++) {
            struct esk_slice key = i % 3 ? esk_slice(bytes, i % 5) : esk_slice(NULL, 0);
            enum esk_err err = esk_batch_builder_add(
                &builder, key, esk_slice(bytes, i * i % sizeof bytes), NULL, 0);
            assert_int_equal(err, ESK_OK);
        }
        parts[b].block = esk_batch_builder_finish(&builder);
        parts[b].size = parts[b].block->size;
        parts[b].position = 0;
        esk_batch_patch(parts[b].block->data, b * RECORDS, 0);
    }
    consume->partition = 7;
    consume->offset = 5;
    consume->records_max = 1000;
    consume->bytes_max = 1 << 20;
    consume->high_watermark = BATCHES * RECORDS;
    consume->parts = parts;
    consume->part_count = BATCHES;
}

/* All of the payload by pieces of `room` bytes. */
static void encode(struct eski_es01_request *request, size_t room, struct esk_buffer *out) {
    out->size = 0;
    request->written_bytes = 0;
    while (request->written_bytes < request->answer_bytes) {
        uint8_t *at = esk_buffer_grow(out, room + 1);
        at[room] = 0x5a; /* nothing is written beyond the room */
        size_t size = (size_t)(eski_es01_encode(request, at, at + room) - at);
        assert_true(size > 0 && size <= room);
        assert_int_equal(at[room], 0x5a);
        out->size += size;
        request->written_bytes += size;
    }
}

static void check_records(struct esk_slice payload) {
    struct esk_es01_fetched fetched;
    struct esk_es01_fetched_record record;
    struct esk_reader r;
    assert_int_equal(esk_es01_fetched_parse(payload, &fetched, &r, NULL), ESK_OK);
    assert_int_equal(fetched.record_count, BATCHES * RECORDS - 5);
    assert_int_equal(fetched.next_offset, BATCHES * RECORDS);
    assert_int_equal(fetched.high_watermark, BATCHES * RECORDS);
    for (uint32_t i = 5; i < BATCHES * RECORDS; i++) {
        uint32_t n = i % RECORDS;
        esk_es01_fetched_record_read(&r, &record);
        assert_int_equal(record.partition, 7);
        assert_int_equal(record.offset, i);
        assert_int_equal(record.timestamp_ms, 1000 + i / RECORDS);
        assert_true((record.key.data == NULL) == (n % 3 == 0));
        assert_int_equal(record.key.size, n % 3 ? n % 5 : 0);
        assert_int_equal(record.value.size, n * n % 4000);
    }
    assert_false(r.failed);
    assert_int_equal(esk_reader_left(&r), 0);
}

static void records_come_out_the_same_in_any_pieces(void **state) {
    (void)state;
    struct eski_es01_request *request = esk_alloc_zeroed(1, sizeof *request);
    struct esk_consume_part parts[BATCHES];
    struct esk_buffer out;
    struct esk_error error;
    fill(&request->consume, parts);
    request->answer = ESKI_ES01_ANSWER_RECORDS;
    esk_buffer_init(&out);
    for (size_t room = ESK_ES01_FETCHED_BYTES; room < 300000; room += 1 + room / 9) {
        assert_int_equal(eski_es01_measure(request, &error), ESK_OK);
        encode(request, room, &out);
        check_records(esk_buffer_slice(&out));
        esk_consume_walk_end(&request->walk);
    }
    esk_buffer_fini(&out);
    for (int i = 0; i < BATCHES; i++) {
        esk_block_release(parts[i].block);
    }
    free(request);
}

static void a_damaged_batch_is_found_by_measuring(void **state) {
    (void)state;
    struct eski_es01_request *request = esk_alloc_zeroed(1, sizeof *request);
    struct esk_consume_part parts[BATCHES];
    struct esk_error error;
    fill(&request->consume, parts);
    parts[1].block->data[ESK_BATCH_HEADER_BYTES] = 0x7f; /* the first record's length */
    assert_int_equal(eski_es01_measure(request, &error), ESK_ERR_CORRUPT);
    esk_consume_walk_end(&request->walk);
    for (int i = 0; i < BATCHES; i++) {
        esk_block_release(parts[i].block);
    }
    free(request);
}

/* --- results --- */

#define RESULTS 1000

/* Runs of 0 to 12 more results, of partitions in turn; every third run is of duplicates. */
static uint32_t told;

bool esk_produce_next_run(struct esk_produce *produce, struct esk_produce_run *run) {
    uint32_t left = produce->record_count - told;
    uint32_t count = 1 + told % 13;
    *run = (struct esk_produce_run){.partition = told % 7,
                                    .count = count < left ? count : left,
                                    .offset = UINT64_C(0x100000000) + told,
                                    .duplicate = told % 3 == 0};
    told += run->count;
    return left > 0;
}

static void check_results(struct esk_slice payload) {
    struct esk_reader r;
    uint32_t count;
    assert_int_equal(esk_es01_results_parse(payload, &count, &r, NULL), ESK_OK);
    assert_int_equal(count, RESULTS);
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct esk_es01_result result;
        first = i == first + 1 + first % 13 ? i : first;
        esk_es01_result_read(&r, &result);
        assert_int_equal(result.partition, first % 7);
        assert_true(result.offset == UINT64_C(0x100000000) + i);
        assert_int_equal(result.duplicate, first % 3 == 0);
    }
}

static void results_come_out_the_same_in_any_pieces(void **state) {
    (void)state;
    struct eski_es01_request *request = esk_alloc_zeroed(1, sizeof *request);
    struct esk_buffer out;
    request->produce.record_count = RESULTS;
    request->answer = ESKI_ES01_ANSWER_RESULTS;
    request->answer_bytes = 4 + RESULTS * ESK_ES01_RESULT_BYTES;
    esk_buffer_init(&out);
    for (size_t room = 4 + ESK_ES01_RESULT_BYTES; room < 20000; room += 7) {
        told = 0;
        encode(request, room, &out);
        check_results(esk_buffer_slice(&out));
    }
    esk_buffer_fini(&out);
    free(request);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_out_the_same_in_any_pieces),
        cmocka_unit_test(a_damaged_batch_is_found_by_measuring),
        cmocka_unit_test(results_come_out_the_same_in_any_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
