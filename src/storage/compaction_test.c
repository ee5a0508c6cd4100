/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction against a naive model: random logs of segments, with all codecs, headers, keyless
 * records and tombstones, compacted over and over with maps of any size while time goes on; and
 * what is on the disk when any call of it fails. */
#include "storage/fake_disk.inc"

#include "base/hash.h"
#include "storage/compaction_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define GROUP 5
#define RECORDS_MAX 4000
#define SEGMENTS_MAX 40
#define RETENTION_MS 1000

enum kind { VALUE, NULL_VALUE, EMPTY_VALUE };

/* A record as it was written. */
struct record {
    bool written; /* there is one at this offset */
    bool gone;    /* the model says so */
    int key;      /* -1: none */
    enum kind kind;
    uint32_t number;
    int64_t timestamp_ms;
    int64_t first_pass_ms; /* of a tombstone; -1: none yet */
    unsigned headers;
};

struct log {
    struct fixture *fixture;
    struct record records[RECORDS_MAX];
    uint64_t end;
    struct esk_compaction_input inputs[SEGMENTS_MAX];
    size_t count;
    uint64_t cleaned;
    int64_t now_ms;
    uint32_t random;
    unsigned keys;
};

static uint32_t draw(struct log *log, uint32_t below) {
    log->random = log->random * 1664525 + 1013904223;
    return (log->random >> 8) % below;
}

/* --- writing --- */

static void put_bytes(struct esk_buffer *out, const char *text) {
    if (text == NULL) {
        esk_buffer_varint(out, -1);
        return;
    }
    esk_buffer_varint(out, (int64_t)strlen(text));
    esk_buffer_append_text(out, text);
}

static char *text_of(const char *prefix, uint32_t number) {
    return esk_text_format("%s-%u", prefix, number);
}

static void put_record(struct esk_buffer *out, const struct record *record, int64_t delta_ms,
                       int32_t offset_delta) {
    struct esk_buffer body;
    char *key = record->key < 0 ? NULL : text_of("key", (uint32_t)record->key);
    char *value = record->kind == VALUE ? text_of("value", record->number) : NULL;
    esk_buffer_init(&body);
    esk_buffer_u8(&body, 0);
    esk_buffer_varint(&body, delta_ms);
    esk_buffer_varint(&body, offset_delta);
    put_bytes(&body, key);
    put_bytes(&body, record->kind == EMPTY_VALUE ? "" : value);
    esk_buffer_varint(&body, record->headers);
    for (unsigned i = 0; i < record->headers; i++) {
        put_bytes(&body, "name");
        put_bytes(&body, i == 1 ? NULL : "header value");
    }
    esk_buffer_varint(out, (int64_t)body.size);
    esk_buffer_append(out, body.data, body.size);
    esk_buffer_fini(&body);
    free(key);
    free(value);
}

/* Some records at the log's end, as one batch. */
static void put_batch(struct log *log, struct esk_buffer *out) {
    struct esk_buffer records;
    enum esk_codec codec = (enum esk_codec)draw(log, 5);
    int32_t count = 1 + (int32_t)draw(log, 8);
    int64_t base_ms = log->now_ms - 50;
    int64_t max_ms = 0;
    uint64_t base = log->end;
    bool append_time = draw(log, 4) == 0;
    esk_buffer_init(&records);
    for (int32_t i = 0; i < count; i++) {
        struct record *record = &log->records[log->end++];
        int64_t delta_ms = (int64_t)draw(log, 200) - 100;
        *record = (struct record){
            .written = true,
            .key = draw(log, 6) == 0 ? -1 : (int)draw(log, log->keys),
            .kind = draw(log, 4) == 0 ? NULL_VALUE + draw(log, 2) : VALUE,
            .number = log->random,
            .timestamp_ms = base_ms + delta_ms,
            .first_pass_ms = -1,
            .headers = draw(log, 4) == 0 ? 1 + draw(log, 3) : 0,
        };
        put_record(&records, record, delta_ms, i);
        max_ms = record->timestamp_ms > max_ms ? record->timestamp_ms : max_ms;
    }
    for (uint64_t offset = base; append_time && offset < log->end; offset++) {
        log->records[offset].timestamp_ms = max_ms;
    }
    size_t at = out->size;
    uint8_t *header = esk_buffer_grow(out, ESK_BATCH_HEADER_BYTES);
    memset(header, 0, ESK_BATCH_HEADER_BYTES);
    out->size += ESK_BATCH_HEADER_BYTES;
    assert_int_equal(esk_compress(codec, esk_buffer_slice(&records), out, NULL), ESK_OK);
    header = out->data + at;
    esk_batch_patch(header, (int64_t)base, 3);
    esk_store_u32(header + ESK_BATCH_AT_LENGTH, (uint32_t)(out->size - at) - 12);
    header[ESK_BATCH_AT_MAGIC] = ESK_BATCH_MAGIC;
    esk_store_u16(header + ESK_BATCH_AT_ATTRIBUTES,
                  (uint16_t)codec | (append_time ? ESK_BATCH_LOG_APPEND_TIME : 0));
    esk_store_u32(header + ESK_BATCH_AT_LAST_DELTA, (uint32_t)count - 1);
    esk_store_u64(header + ESK_BATCH_AT_BASE_TIMESTAMP, (uint64_t)base_ms);
    esk_store_u64(header + ESK_BATCH_AT_MAX_TIMESTAMP, (uint64_t)max_ms);
    esk_store_u64(header + ESK_BATCH_AT_PRODUCER_ID, 77);
    esk_store_u32(header + ESK_BATCH_AT_RECORD_COUNT, (uint32_t)count);
    esk_store_u32(header + ESK_BATCH_AT_CRC, esk_crc32c(0, header + ESK_BATCH_AT_ATTRIBUTES,
                                                        out->size - at - ESK_BATCH_AT_ATTRIBUTES));
    esk_buffer_fini(&records);
}

static void add_segment(struct log *log) {
    const struct esk_storage *storage = &log->fixture->storage;
    struct esk_segment *segment;
    struct esk_buffer bytes;
    struct esk_index index;
    uint64_t base = log->end;
    esk_buffer_init(&bytes);
    esk_index_init(&index);
    unsigned batches = 1 + draw(log, 12);
    for (unsigned i = 0; i < batches; i++) {
        put_batch(log, &bytes);
    }
    struct esk_slice slice = esk_buffer_slice(&bytes);
    assert_int_equal(esk_segment_create(storage, GROUP, base, &segment, NULL), ESK_OK);
    assert_int_equal(esk_segment_append(segment, 0, &slice, 1, 0, NULL), ESK_OK);
    assert_int_equal(esk_segment_sync(segment, NULL), ESK_OK);
    assert_int_equal(esk_index_build(segment, base, bytes.size, &index, NULL), ESK_OK);
    const struct esk_segment_summary summary = {
        base, log->end, bytes.size, log->now_ms + 50, ESK_HORIZON_NONE, 0};
    assert_int_equal(esk_segment_seal(storage, GROUP, segment, &summary, &index, NULL), ESK_OK);
    assert_int_equal(esk_segment_sync_names(storage, GROUP, NULL), ESK_OK);
    log->inputs[log->count++] =
        (struct esk_compaction_input){base, log->end, bytes.size, ESK_HORIZON_NONE, 0};
    esk_segment_release(segment);
    esk_index_fini(&index);
    esk_buffer_fini(&bytes);
}

/* --- the model --- */

static bool is_tombstone(const struct record *record) {
    return record->key >= 0 && record->kind != VALUE;
}

/* What a pass over all of the log makes of it. */
static void model_pass(struct log *log) {
    for (uint64_t offset = 0; offset < log->end; offset++) {
        struct record *record = &log->records[offset];
        for (uint64_t later = offset + 1; record->key >= 0 && later < log->end; later++) {
            record->gone |= log->records[later].key == record->key;
        }
        if (is_tombstone(record) && !record->gone) {
            if (record->first_pass_ms < 0) {
                record->first_pass_ms = log->now_ms;
            }
            record->gone = log->now_ms - record->first_pass_ms >= RETENTION_MS;
        }
    }
}

/* --- reading --- */

static void expect_text(struct esk_slice found, const char *text) {
    assert_int_equal(found.data == NULL, text == NULL);
    assert_true(text == NULL || esk_slice_equal(found, esk_slice_text(text)));
}

static void expect_record(const struct log *log, const struct esk_batch_header *header,
                          struct esk_record *found, uint64_t offset) {
    const struct record *record = &log->records[offset];
    char *key = record->key < 0 ? NULL : text_of("key", (uint32_t)record->key);
    char *value = record->kind == VALUE ? text_of("value", record->number) : NULL;
    expect_text(found->key, key);
    expect_text(found->value, record->kind == EMPTY_VALUE ? "" : value);
    assert_int_equal(esk_record_timestamp_ms(header, found), record->timestamp_ms);
    struct esk_record_header each;
    unsigned headers = 0;
    while (esk_record_header_next(found, &each)) {
        expect_text(each.name, "name");
        expect_text(each.value, headers == 1 ? NULL : "header value");
        headers++;
    }
    assert_false(found->headers.failed);
    assert_int_equal(headers, record->headers);
    free(key);
    free(value);
}

/* A segment holds what the model kept of its range; its index finds each batch. */
static void expect_segment(const struct log *log, const struct esk_compaction_input *input) {
    struct eski_scan scan = {0};
    struct esk_compaction_pace pace = {0};
    struct esk_segment_summary summary;
    struct esk_index index;
    uint64_t offset = input->base_offset;
    uint64_t position = 0;
    esk_index_init(&index);
    assert_int_equal(
        esk_segment_load(&log->fixture->storage, GROUP, input->base_offset, &summary, &index, NULL),
        ESK_OK);
    assert_int_equal(summary.revision, input->revision);
    assert_int_equal(summary.end_offset, input->end_offset);
    assert_int_equal(summary.bytes, input->bytes);
    assert_int_equal(eski_scan_begin(&scan, &log->fixture->storage, GROUP, input, &pace, NULL),
                     ESK_OK);
    for (;;) {
        struct esk_slice batch;
        struct esk_batch_header header;
        struct esk_buffer scratch;
        struct esk_slice records;
        struct esk_record record;
        esk_buffer_init(&scratch);
        assert_int_equal(eski_scan_next(&scan, &batch, &header, NULL), ESK_OK);
        if (batch.size == 0) {
            break;
        }
        assert_int_equal(header.producer_id, 77);
        assert_true(esk_index_find(&index, (uint64_t)header.base_offset - input->base_offset) <=
                    position);
        position += batch.size;
        assert_int_equal(esk_batch_records(batch, &header, 1u << 20, &scratch, &records, NULL),
                         ESK_OK);
        struct esk_record_iterator iterator = esk_record_iterator(records, header.record_count);
        while (esk_record_next(&iterator, &record)) {
            uint64_t at = (uint64_t)header.base_offset + (uint64_t)record.offset_delta;
            while (offset < at) {
                assert_true(log->records[offset++].gone);
            }
            assert_false(log->records[offset].gone);
            expect_record(log, &header, &record, offset++);
        }
        assert_false(iterator.failed);
        assert_int_equal(offset, header.base_offset + header.last_offset_delta + 1);
        esk_buffer_fini(&scratch);
    }
    while (offset < input->end_offset) {
        assert_true(log->records[offset++].gone);
    }
    eski_scan_fini(&scan);
    esk_index_fini(&index);
}

static void expect_log(const struct log *log) {
    uint64_t offset = 0;
    for (size_t i = 0; i < log->count; i++) {
        assert_int_equal(log->inputs[i].base_offset, offset);
        offset = log->inputs[i].end_offset;
        expect_segment(log, &log->inputs[i]);
    }
    assert_int_equal(offset, log->end);
}

/* --- compacting --- */

static void replace(struct log *log, size_t first, size_t count,
                    const struct esk_segment_summary *summary) {
    const struct esk_storage *storage = &log->fixture->storage;
    for (size_t i = first; i < first + count; i++) {
        const struct esk_compaction_input *old = &log->inputs[i];
        enum esk_err err =
            i == first
                ? esk_segment_remove_revision(storage, GROUP, old->base_offset, old->revision, NULL)
                : esk_segment_remove(storage, GROUP, old->base_offset, old->revision, NULL);
        assert_int_equal(err, ESK_OK);
    }
    log->inputs[first] =
        (struct esk_compaction_input){summary->base_offset, summary->end_offset, summary->bytes,
                                      summary->horizon_ms, summary->revision};
    memmove(&log->inputs[first + 1], &log->inputs[first + count],
            (log->count - first - count) * sizeof(log->inputs[0]));
    log->count -= count - 1;
}

/* A round with a map of so many bytes. */
static void compact_round(struct log *log, uint64_t map_bytes) {
    const struct esk_storage *storage = &log->fixture->storage;
    struct esk_key_map map;
    struct esk_compaction_filter filter;
    struct esk_compaction_pace pace = {0};
    uint64_t map_end;
    esk_key_map_init(&map, map_bytes, UINT64_MAX, log->random);
    esk_compaction_filter_init(&filter);
    assert_int_equal(esk_compaction_map(storage, GROUP, log->inputs, log->count, log->cleaned,
                                        &pace, &map, &map_end, NULL),
                     ESK_OK);
    assert_true(map_end > log->cleaned || log->cleaned == log->end);
    filter.map = &map;
    filter.map_end = map_end;
    filter.now_ms = log->now_ms;
    filter.tombstone_retention_ms = RETENTION_MS;
    for (size_t i = 0; i < log->count && log->inputs[i].base_offset < map_end; i++) {
        struct esk_compaction_result result;
        size_t count = 1 + draw(log, 3);
        count = count > log->count - i ? log->count - i : count;
        assert_int_equal(esk_compaction_rewrite(storage, GROUP, &log->inputs[i], count, &filter,
                                                &pace, &result, NULL),
                         ESK_OK);
        assert_true(result.rewritten || count == 1);
        if (result.rewritten) {
            replace(log, i, count, &result.summary);
        }
        esk_segment_release(result.file);
        esk_index_fini(&result.index);
    }
    log->cleaned = map_end;
    esk_compaction_filter_fini(&filter);
    esk_key_map_fini(&map);
}

static void compact_all(struct log *log, uint64_t map_bytes) {
    do {
        compact_round(log, map_bytes);
    } while (log->cleaned < log->end);
    model_pass(log);
    expect_log(log);
}

static struct log *log_create(uint32_t seed) {
    struct log *log = esk_alloc_zeroed(1, sizeof(*log));
    log->fixture = fixture_create(0);
    log->random = seed * 2654435761u + 1;
    log->now_ms = 1700000000000;
    log->keys = 2 + draw(log, 60);
    return log;
}

static void log_destroy(struct log *log) {
    fixture_destroy(log->fixture);
    free(log);
}

static void what_stays_is_what_a_naive_model_keeps(void **state) {
    (void)state;
    for (uint32_t seed = 0; seed < 60; seed++) {
        struct log *log = log_create(seed);
        uint64_t map_bytes = seed % 2 == 0 ? 1u << 20 : 0; /* 12 keys: several rounds */
        for (unsigned pass = 0; pass < 5; pass++) {
            for (unsigned i = draw(log, 5); i > 0; i--) {
                add_segment(log);
            }
            if (log->count > 0) {
                compact_all(log, map_bytes);
            }
            log->now_ms += (int64_t)draw(log, 700);
        }
        log->now_ms += RETENTION_MS; /* at last all tombstones go */
        if (log->count > 0) {
            compact_all(log, map_bytes);
        }
        for (uint64_t offset = 0; offset < log->end; offset++) {
            assert_true(log->records[offset].gone || !is_tombstone(&log->records[offset]));
        }
        log_destroy(log);
    }
}

static void a_second_pass_at_the_same_time_changes_nothing(void **state) {
    (void)state;
    struct log *log = log_create(3);
    for (unsigned i = 0; i < 6; i++) {
        add_segment(log);
    }
    compact_all(log, 1u << 20);
    struct esk_key_map map;
    struct esk_compaction_filter filter;
    struct esk_compaction_pace pace = {0};
    esk_key_map_init(&map, 0, 0, 1);
    esk_compaction_filter_init(&filter);
    filter.map = &map;
    filter.map_end = log->end;
    filter.now_ms = log->now_ms;
    for (size_t i = 0; i < log->count; i++) {
        struct esk_compaction_result result;
        assert_int_equal(esk_compaction_rewrite(&log->fixture->storage, GROUP, &log->inputs[i], 1,
                                                &filter, &pace, &result, NULL),
                         ESK_OK);
        assert_false(result.rewritten);
    }
    esk_compaction_filter_fini(&filter);
    esk_key_map_fini(&map);
    log_destroy(log);
}

/* Whichever segment the index names is whole; nothing else counts. */
static void expect_old_or_new(struct log *log, size_t old_count, bool *is_new) {
    struct esk_segment_summary summary;
    assert_int_equal(esk_segment_load(&log->fixture->storage, GROUP, 0, &summary, NULL, NULL),
                     ESK_OK);
    *is_new = summary.revision == 1;
    if (!*is_new) {
        for (uint64_t offset = 0; offset < log->end; offset++) {
            log->records[offset].gone = false;
        }
    } else {
        log->inputs[0] = (struct esk_compaction_input){0, summary.end_offset, summary.bytes,
                                                       summary.horizon_ms, 1};
        log->count = 1;
        model_pass(log);
    }
    expect_log(log);
    log->count = old_count;
}

static void whatever_call_fails_either_the_old_or_the_new_segments_count(void **state) {
    (void)state;
    bool ended = false;
    for (uint64_t n = 1; !ended; n++) {
        for (unsigned which = 0; which < 2; which++) {
            struct log *log = log_create(11);
            struct esk_key_map map;
            struct esk_compaction_filter filter;
            struct esk_compaction_pace pace = {0};
            struct esk_compaction_result result;
            uint64_t map_end;
            for (unsigned i = 0; i < 3; i++) {
                add_segment(log);
            }
            size_t count = log->count;
            esk_key_map_init(&map, 1u << 20, UINT64_MAX, 1);
            esk_compaction_filter_init(&filter);
            assert_int_equal(esk_compaction_map(&log->fixture->storage, GROUP, log->inputs, count,
                                                0, &pace, &map, &map_end, NULL),
                             ESK_OK);
            filter.map = &map;
            filter.map_end = map_end;
            filter.now_ms = log->now_ms;
            filter.tombstone_retention_ms = RETENTION_MS;
            enum esk_err with = which == 0 ? ESK_ERR_IO : ESK_ERR_PERMISSION;
            fake_disk_fail(&log->fixture->disk, n, FAKE_ANY, with);
            enum esk_err err = esk_compaction_rewrite(&log->fixture->storage, GROUP, log->inputs,
                                                      count, &filter, &pace, &result, NULL);
            ended = log->fixture->disk.failed == 0;
            log->fixture->disk.fail_in = 0;
            bool is_new;
            expect_old_or_new(log, count, &is_new);
            assert_true(err != ESK_OK || is_new);
            assert_true(err == ESK_OK || err == ESK_ERR_IO || !is_new);
            if (err != ESK_OK && err != ESK_ERR_IO) { /* nothing is left behind, but what could */
                struct esk_segment_file *files;       /* not be removed either */
                size_t found;
                assert_int_equal(
                    esk_segment_list(&log->fixture->storage, GROUP, &files, &found, NULL), ESK_OK);
                assert_int_equal(found, count);
                free(files);
            }
            esk_segment_release(result.file);
            esk_index_fini(&result.index);
            esk_compaction_filter_fini(&filter);
            esk_key_map_fini(&map);
            log_destroy(log);
        }
        assert_true(ended || n < 1000);
    }
}

static void a_damaged_batch_is_not_copied(void **state) {
    (void)state;
    struct log *log = log_create(4);
    struct esk_key_map map;
    struct esk_compaction_pace pace = {0};
    struct esk_error error = {0};
    uint64_t map_end;
    add_segment(log);
    struct fake_node *node = fake_find(
        &log->fixture->disk, "/data/groups/0000000000000005/00000000000000000000.segment");
    node->bytes[ESK_SEGMENT_HEADER_BYTES + ESK_BATCH_HEADER_BYTES + 3] ^= 1;
    esk_key_map_init(&map, 1u << 20, UINT64_MAX, 1);
    assert_int_equal(esk_compaction_map(&log->fixture->storage, GROUP, log->inputs, 1, 0, &pace,
                                        &map, &map_end, &error),
                     ESK_ERR_CORRUPT);
    assert_non_null(strstr(error.text, "00000000000000000000.segment"));
    esk_key_map_fini(&map);
    log_destroy(log);
}

static void it_stops_when_it_is_told(void **state) {
    (void)state;
    struct log *log = log_create(4);
    struct esk_key_map map;
    struct esk_compaction_pace pace = {.stop = true};
    uint64_t map_end;
    while (log->count < 30) {
        add_segment(log);
    }
    uint64_t unpaced = 0;
    assert_int_equal(eski_compaction_pace(&log->fixture->storage, &pace, &unpaced,
                                          ESK_SEGMENT_WRITE_BYTES, NULL),
                     ESK_ERR_UNAVAILABLE);
    pace.stop = false;
    pace.pause_ns = 1;
    uint64_t pauses = log->fixture->disk.pauses;
    esk_key_map_init(&map, 1u << 20, UINT64_MAX, 1);
    uint64_t bytes = 0;
    for (size_t i = 0; i < log->count; i++) {
        bytes += log->inputs[i].bytes;
    }
    assert_int_equal(esk_compaction_map(&log->fixture->storage, GROUP, log->inputs, log->count, 0,
                                        &pace, &map, &map_end, NULL),
                     ESK_OK);
    uint64_t slices = bytes / ESK_SEGMENT_WRITE_BYTES;
    assert_true(log->fixture->disk.pauses - pauses <= slices);
    esk_key_map_fini(&map);
    log_destroy(log);
}

static void how_far_it_got_is_read_again_and_damage_means_not_at_all(void **state) {
    (void)state;
    struct fixture *fixture = fixture_create(0);
    uint64_t offset = 9;
    assert_int_equal(esk_cleaned_load(&fixture->storage, GROUP, &offset, NULL), ESK_OK);
    assert_int_equal(offset, 0);
    assert_int_equal(esk_cleaned_store(&fixture->storage, GROUP, 12345, NULL), ESK_OK);
    assert_int_equal(esk_cleaned_load(&fixture->storage, GROUP, &offset, NULL), ESK_OK);
    assert_int_equal(offset, 12345);
    struct fake_node *node = fake_find(&fixture->disk, "/data/groups/0000000000000005/cleaned");
    for (size_t bit = 0; bit < node->size * 8; bit++) {
        node->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(esk_cleaned_load(&fixture->storage, GROUP, &offset, NULL), ESK_OK);
        assert_int_equal(offset, 0);
        node->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(esk_group_files_remove(&fixture->storage, GROUP, NULL), ESK_OK);
    assert_false(fake_disk_has(&fixture->disk, "/data/groups/0000000000000005"));
    fixture_destroy(fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stays_is_what_a_naive_model_keeps),
        cmocka_unit_test(a_second_pass_at_the_same_time_changes_nothing),
        cmocka_unit_test(whatever_call_fails_either_the_old_or_the_new_segments_count),
        cmocka_unit_test(a_damaged_batch_is_not_copied),
        cmocka_unit_test(it_stops_when_it_is_told),
        cmocka_unit_test(how_far_it_got_is_read_again_and_damage_means_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
