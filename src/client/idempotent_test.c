/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotent pipelines against a broker that keeps the table of sequences as the API page has it,
 * and that hangs up, throttles and refuses at random: what was acknowledged is written once, in
 * order; what was refused is not written. Each seed is a test of its own. */
#include "client/client_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define PARTITIONS 3
#define FRAMES 600
#define FRAME_RECORDS_MAX 70 /* so that more than a window is in flight at times */
#define PRODUCERS_MAX 400    /* ids that a client may come to use */
#define WINDOW 128

/* --- the broker --- */

struct table_row {
    char id[64];
    bool is_known[PARTITIONS];
    uint64_t first[PARTITIONS]; /* sequence */
    size_t count[PARTITIONS];
    uint64_t offsets[PARTITIONS][FRAMES * FRAME_RECORDS_MAX]; /* of each sequence from the first */
};

struct table {
    uint64_t random;
    struct table_row *rows[PRODUCERS_MAX];
    size_t row_count;
    uint64_t log[PARTITIONS][FRAMES * FRAME_RECORDS_MAX]; /* the records' numbers */
    uint64_t ends[PARTITIONS];
};

static unsigned chance(uint64_t *random, unsigned out_of) {
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)((*random >> 33) % out_of);
}

static struct table_row *row_of(struct table *table, struct esk_slice id) {
    for (size_t i = 0; i < table->row_count; i++) {
        if (esk_slice_equal(esk_slice_text(table->rows[i]->id), id)) {
            return table->rows[i];
        }
    }
    struct table_row *row = calloc(1, sizeof(*row));
    memcpy(row->id, id.data, id.size);
    table->rows[table->row_count++] = row;
    return row;
}

/* NULL when all records are new or retries; else the error. */
static const char *judge(struct table_row *row, const struct esk_es01_record *records,
                         uint32_t count) {
    uint64_t next[PARTITIONS];
    for (size_t i = 0; i < PARTITIONS; i++) {
        next[i] = row->is_known[i] ? row->first[i] + row->count[i] : UINT64_MAX;
    }
    for (uint32_t i = 0; i < count; i++) {
        int32_t partition = records[i].partition;
        uint64_t sequence = (uint64_t)records[i].sequence;
        if (next[partition] == UINT64_MAX || sequence == next[partition]) {
            next[partition] = sequence + 1;
        } else if (sequence > next[partition]) {
            return "sequence gap: send the missing records first";
        } else if (next[partition] - sequence > WINDOW) {
            return "sequence too low";
        }
    }
    return NULL;
}

static void apply(struct table *table, struct table_row *row, const struct esk_es01_record *records,
                  uint32_t count, struct esk_buffer *out) {
    esk_buffer_u32(out, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t partition = (uint32_t)records[i].partition;
        uint64_t sequence = (uint64_t)records[i].sequence;
        if (!row->is_known[partition]) {
            row->is_known[partition] = true;
            row->first[partition] = sequence;
        }
        uint64_t index = sequence - row->first[partition];
        bool is_new = index == row->count[partition];
        if (is_new) {
            row->offsets[partition][row->count[partition]++] = table->ends[partition];
            table->log[partition][table->ends[partition]++] = esk_load_u64(records[i].value.data);
        }
        esk_buffer_u32(out, partition);
        esk_buffer_u64(out, row->offsets[partition][index]);
        esk_buffer_u8(out, !is_new);
    }
}

/* false: the connection ends. */
static bool take_frame(struct fake_broker *broker, int fd, const struct esk_es01_frame *head,
                       const struct esk_buffer *frame) {
    struct table *table = broker->context;
    struct esk_es01_produce produce;
    struct esk_reader r;
    struct esk_es01_record records[FRAME_RECORDS_MAX];
    if (esk_es01_produce_parse(fake_payload(frame), &produce, &r, NULL) != ESK_OK ||
        produce.record_count > FRAME_RECORDS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < produce.record_count; i++) {
        esk_es01_record_read(&r, &records[i]);
    }
    struct table_row *row = row_of(table, produce.producer_id);
    const char *error = judge(row, records, produce.record_count);
    unsigned luck = chance(&table->random, 1000);
    if (luck < 10) {
        return false;
    }
    if (!error) {
        error = luck < 20   ? "throttled: over the quota"
                : luck < 25 ? "forbidden: no write"
                : luck < 30 ? "internal error (id 4f1c2a9b)"
                            : NULL;
    }
    if (error) {
        return fake_error(fd, head->request_id, error);
    }
    struct esk_buffer out;
    esk_buffer_init(&out);
    apply(table, row, records, produce.record_count, &out);
    bool goes_on =
        luck >= 40 && fake_answer(fd, head->request_id, ESK_ES01_PRODUCED, esk_buffer_slice(&out));
    esk_buffer_fini(&out);
    return goes_on;
}

static void serve(struct fake_broker *broker, int fd, unsigned number) {
    (void)number;
    fake_serve_each(broker, fd, take_frame);
}

/* --- the client --- */

struct sent {
    enum esk_client_code code;
    uint64_t first; /* the number of its first record; the others follow */
    uint32_t count;
    uint32_t partitions[FRAME_RECORDS_MAX];
    struct esk_client_written written[FRAME_RECORDS_MAX];
    bool is_done;
};

static void take(void *context, const struct esk_pipeline_answer *answer) {
    struct sent *sent = context;
    assert_false(sent->is_done);
    sent->is_done = true;
    sent->code = answer->code;
    if (answer->code == ESK_CLIENT_OK) {
        assert_int_equal(answer->written_count, sent->count);
        memcpy(sent->written, answer->written, sent->count * sizeof(*sent->written));
    }
}

static void submit(struct esk_pipeline *pipeline, struct sent *sent, uint64_t *random,
                   uint64_t *number) {
    struct esk_client_record records[FRAME_RECORDS_MAX];
    uint8_t values[FRAME_RECORDS_MAX][8];
    bool is_large = chance(random, 10) == 0;
    bool is_mixed = chance(random, 5) == 0;
    uint32_t partition = chance(random, PARTITIONS);
    sent->first = *number;
    sent->count = 1 + chance(random, is_large ? FRAME_RECORDS_MAX : 3);
    for (uint32_t i = 0; i < sent->count; i++) {
        esk_store_u64(values[i], (*number)++);
        sent->partitions[i] = is_mixed ? chance(random, PARTITIONS) : partition;
        records[i] = (struct esk_client_record){
            .value = values[i],
            .value_size = 8,
            .partition = (int32_t)sent->partitions[i],
            .sequence = ESK_CLIENT_SEQUENCE_NONE,
        };
    }
    enum esk_client_code code;
    while ((code = esk_pipeline_produce(pipeline, "t", records, sent->count, take, sent, NULL)) ==
           ESK_CLIENT_FULL) {
        (void)esk_pipeline_wait(pipeline, 60000);
    }
    assert_int_equal(code, ESK_CLIENT_OK);
}

/* How often each number is in a partition's log, which must only rise. */
static size_t occurrences(const struct table *table, uint32_t partition, uint64_t number) {
    size_t low = 0;
    size_t high = table->ends[partition];
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table->log[partition][middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < table->ends[partition] && table->log[partition][low] == number;
}

static void check(const struct table *table, const struct sent *frames) {
    for (size_t p = 0; p < PARTITIONS; p++) {
        for (size_t i = 1; i < table->ends[p]; i++) {
            assert_true(table->log[p][i - 1] < table->log[p][i]);
        }
    }
    size_t good = 0;
    for (size_t i = 0; i < FRAMES; i++) {
        const struct sent *sent = &frames[i];
        assert_true(sent->is_done);
        bool is_good = sent->code == ESK_CLIENT_OK;
        bool is_unwritten = sent->code == ESK_CLIENT_FORBIDDEN || sent->code == ESK_CLIENT_BROKER;
        assert_true(is_good || is_unwritten || sent->code == ESK_CLIENT_LOST);
        good += is_good;
        for (uint32_t k = 0; k < sent->count; k++) {
            size_t found = occurrences(table, sent->partitions[k], sent->first + k);
            assert_true(is_good ? found == 1 : !is_unwritten || found == 0);
            uint64_t offset = sent->written[k].offset;
            if (is_good && offset != ESK_CLIENT_OFFSET_UNKNOWN) {
                assert_int_equal(table->log[sent->partitions[k]][offset], sent->first + k);
            }
        }
    }
    assert_true(good > FRAMES / 2);
}

static void run(uint64_t seed) {
    struct table *table = calloc(1, sizeof(*table));
    struct sent *frames = calloc(FRAMES, sizeof(*frames));
    struct fake_broker broker;
    struct esk_pipeline *pipeline;
    uint64_t random = seed * 7919 + 1;
    uint64_t number = 0;
    table->random = seed;
    fake_broker_start(&broker, serve, table);
    struct esk_client_options options = fake_options(&broker);
    options.idempotent = true;
    options.in_flight_max = 1 + chance(&random, 40);
    options.request_timeout_ms = 600000;
    assert_int_equal(esk_pipeline_open(&options, &pipeline, NULL), ESK_CLIENT_OK);
    for (size_t i = 0; i < FRAMES; i++) {
        submit(pipeline, &frames[i], &random, &number);
        if (chance(&random, 4) == 0) {
            (void)esk_pipeline_process(pipeline);
        }
    }
    assert_int_equal(esk_pipeline_flush(pipeline, 600000), ESK_CLIENT_OK);
    esk_pipeline_close(pipeline);
    fake_broker_stop(&broker);
    check(table, frames);
    for (size_t i = 0; i < table->row_count; i++) {
        free(table->rows[i]);
    }
    free(table);
    free(frames);
}

static void records_are_written_once_and_in_order_whatever_happens(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        run(seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_written_once_and_in_order_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
