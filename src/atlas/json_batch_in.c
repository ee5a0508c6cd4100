/* SPDX-License-Identifier: Apache-2.0 */
/* Builds batches v2 from the JSON that json_batch.c prints. Lengths, counts and the CRC follow from
 * the rest; records of compressed batches are wrapped in their codec's form, not compressed. */
#include "atlas/json_in.h"
#include "base/hash.h"
#include "model/record_batch.h"
#include "wire/kafka/store.h"

#include <string.h>

static enum esk_err refuse(struct esk_error *error, const char *key, const char *wanted) {
    return esk_fail(error, ESK_ERR_INVALID, "%s: expected %s", key, wanted);
}

/* An integer between low and high; `missing` where the key is not there. */
static bool integer(const struct esk_json_value *object, const char *key, int64_t low, int64_t high,
                    int64_t missing, int64_t *number) {
    struct esk_json_value value;
    *number = missing;
    if (!esk_json_find(object, key, &value))
        return true;
    return esk_json_int64(&value, number) && *number >= low && *number <= high;
}

static bool put_varint_bytes(const struct esk_json_value *object, const char *key,
                             struct esk_arena *arena, struct esk_buffer *output) {
    struct esk_json_value value;
    struct esk_slice bytes = {NULL, 0};
    if (esk_json_find(object, key, &value) && !eski_json_bytes(&value, arena, &bytes))
        return false;
    esk_buffer_varint(output, bytes.data == NULL ? -1 : (int64_t)bytes.size);
    esk_buffer_append(output, bytes.data, bytes.size);
    return true;
}

static bool put_headers(const struct esk_json_value *record, struct esk_arena *arena,
                        struct esk_buffer *output) {
    struct esk_json_value headers;
    struct esk_json_value header;
    struct esk_json_value name;
    if (!esk_json_find(record, "headers", &headers)) {
        esk_buffer_varint(output, 0);
        return true;
    }
    int64_t count = 0;
    struct esk_json_iterator each = esk_json_each(&headers);
    while (esk_json_next_element(&each, &header))
        count++;
    esk_buffer_varint(output, count);
    each = esk_json_each(&headers);
    while (esk_json_next_element(&each, &header)) {
        if (!esk_json_find(&header, "key", &name) || name.type != ESK_JSON_STRING)
            return false;
        esk_buffer_varint(output, (int64_t)name.string.size);
        esk_buffer_append(output, name.string.data, name.string.size);
        if (!put_varint_bytes(&header, "value", arena, output))
            return false;
    }
    return true;
}

static enum esk_err put_record(const struct esk_json_value *record, int64_t base_offset,
                               int64_t base_timestamp, struct esk_arena *arena,
                               struct esk_buffer *scratch, struct esk_buffer *output,
                               struct esk_error *error) {
    int64_t attributes;
    int64_t offset;
    int64_t timestamp;
    int64_t delta;
    if (!integer(record, "attributes", INT8_MIN, INT8_MAX, 0, &attributes))
        return refuse(error, "attributes", "an int8");
    if (!integer(record, "offset", INT64_MIN, INT64_MAX, base_offset, &offset) ||
        (int64_t)((uint64_t)offset - (uint64_t)base_offset) !=
            (int32_t)((uint64_t)offset - (uint64_t)base_offset))
        return refuse(error, "offset", "an int64 within 2^31 of baseOffset");
    if (!integer(record, "timestamp", INT64_MIN, INT64_MAX, base_timestamp, &timestamp) ||
        !integer(record, "timestampDelta", INT64_MIN, INT64_MAX,
                 (int64_t)((uint64_t)timestamp - (uint64_t)base_timestamp), &delta))
        return refuse(error, "timestamp", "an int64");
    scratch->size = 0;
    esk_buffer_u8(scratch, (uint8_t)attributes);
    esk_buffer_varint(scratch, delta);
    esk_buffer_varint(scratch, (int64_t)((uint64_t)offset - (uint64_t)base_offset));
    if (!put_varint_bytes(record, "key", arena, scratch))
        return refuse(error, "key", "base64 or null");
    if (!put_varint_bytes(record, "value", arena, scratch))
        return refuse(error, "value", "base64 or null");
    if (!put_headers(record, arena, scratch))
        return refuse(error, "headers", "objects with key and value");
    esk_buffer_varint(output, (int64_t)scratch->size);
    esk_buffer_append(output, scratch->data, scratch->size);
    return ESK_OK;
}

static enum esk_err put_records(const struct esk_json_value *batch, int64_t base_offset,
                                int64_t base_timestamp, struct esk_arena *arena,
                                struct esk_buffer *output, uint32_t *count,
                                struct esk_error *error) {
    struct esk_json_value records;
    struct esk_json_value record;
    *count = 0;
    if (!esk_json_find(batch, "records", &records))
        return ESK_OK;
    struct esk_buffer scratch;
    esk_buffer_init(&scratch);
    enum esk_err err = ESK_OK;
    struct esk_json_iterator each = esk_json_each(&records);
    for (; err == ESK_OK && esk_json_next_element(&each, &record); ++*count) {
        err = put_record(&record, base_offset, base_timestamp, arena, &scratch, output, error);
        if (err != ESK_OK)
            esk_wrap(error, "records[%u]", (unsigned)*count);
    }
    esk_buffer_fini(&scratch);
    return err;
}

/* The fixed fields of a batch, where they lie and what they are without a key of their own. */
static const struct {
    const char *key;
    size_t at;
    unsigned bits;
    int64_t missing;
} numbers[] = {{"baseOffset", ESK_BATCH_AT_BASE_OFFSET, 64, 0},
               {"partitionLeaderEpoch", ESK_BATCH_AT_LEADER_EPOCH, 32, -1},
               {"attributes", ESK_BATCH_AT_ATTRIBUTES, 16, 0},
               {"lastOffsetDelta", ESK_BATCH_AT_LAST_DELTA, 32, 0},
               {"baseTimestamp", ESK_BATCH_AT_BASE_TIMESTAMP, 64, 0},
               {"maxTimestamp", ESK_BATCH_AT_MAX_TIMESTAMP, 64, 0},
               {"producerId", ESK_BATCH_AT_PRODUCER_ID, 64, -1},
               {"producerEpoch", ESK_BATCH_AT_PRODUCER_EPOCH, 16, -1},
               {"baseSequence", ESK_BATCH_AT_BASE_SEQUENCE, 32, -1}};

static enum esk_err put_numbers(const struct esk_json_value *batch, uint8_t *head,
                                struct esk_error *error) {
    for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        int64_t high = INT64_MAX >> (64 - numbers[i].bits);
        int64_t number;
        if (!integer(batch, numbers[i].key, -high - 1, high, numbers[i].missing, &number))
            return refuse(error, numbers[i].key, "an integer that fits");
        if (numbers[i].bits == 64)
            esk_store_u64(head + numbers[i].at, (uint64_t)number);
        else if (numbers[i].bits == 32)
            esk_store_u32(head + numbers[i].at, (uint32_t)number);
        else
            esk_store_u16(head + numbers[i].at, (uint16_t)number);
    }
    return ESK_OK;
}

static enum esk_err put_batch(const struct esk_json_value *batch, struct esk_arena *arena,
                              struct esk_buffer *output, struct esk_error *error) {
    int64_t magic;
    if (!integer(batch, "magic", ESK_BATCH_MAGIC, ESK_BATCH_MAGIC, ESK_BATCH_MAGIC, &magic))
        return refuse(error, "magic", "2; older ones are only read");
    uint8_t head[ESK_BATCH_HEADER_BYTES] = {0};
    enum esk_err err = put_numbers(batch, head, error);
    unsigned codec = esk_load_u16(head + ESK_BATCH_AT_ATTRIBUTES) & ESK_BATCH_CODEC_MASK;
    if (err == ESK_OK && codec > ESK_CODEC_ZSTD)
        err = refuse(error, "attributes", "a codec from 0 to 4");
    if (err != ESK_OK)
        return err;
    struct esk_buffer records;
    esk_buffer_init(&records);
    uint32_t count;
    err = put_records(batch, (int64_t)esk_load_u64(head + ESK_BATCH_AT_BASE_OFFSET),
                      (int64_t)esk_load_u64(head + ESK_BATCH_AT_BASE_TIMESTAMP), arena, &records,
                      &count, error);
    if (err == ESK_OK) {
        size_t start = output->size;
        head[ESK_BATCH_AT_MAGIC] = ESK_BATCH_MAGIC;
        esk_store_u32(head + ESK_BATCH_AT_RECORD_COUNT, count);
        esk_buffer_append(output, head, sizeof(head));
        if (count > 0 || codec == ESK_CODEC_NONE)
            esk_kafka_store((enum esk_codec)codec, esk_buffer_slice(&records), output);
        uint8_t *at = output->data + start;
        size_t size = output->size - start;
        esk_store_u32(at + ESK_BATCH_AT_LENGTH, (uint32_t)(size - ESK_BATCH_LENGTH_BYTES));
        esk_store_u32(at + ESK_BATCH_AT_CRC,
                      esk_crc32c(0, at + ESK_BATCH_AT_ATTRIBUTES, size - ESK_BATCH_AT_ATTRIBUTES));
    }
    esk_buffer_fini(&records);
    return err;
}

enum esk_err eski_batches_from_json(const struct esk_json_value *body, struct esk_arena *arena,
                                    struct esk_buffer *output, struct esk_error *error) {
    struct esk_json_value batches;
    struct esk_json_value batch;
    if (!esk_json_find(body, "batches", &batches) || batches.type != ESK_JSON_ARRAY)
        return refuse(error, "batches", "an array");
    enum esk_err err = ESK_OK;
    struct esk_json_iterator each = esk_json_each(&batches);
    for (unsigned i = 0; err == ESK_OK && esk_json_next_element(&each, &batch); i++) {
        err = put_batch(&batch, arena, output, error);
        if (err != ESK_OK)
            esk_wrap(error, "batches[%u]", i);
    }
    return err;
}
