/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing, checking and reading of batches. Records are decoded by hand here, with the one-byte
 * varint as the straight path, because every record of every produce and fetch passes through. */
#include "model/record_batch.h"

#include "base/hash.h"

enum esk_err esk_batch_parse(struct esk_slice bytes, struct esk_batch_header *header,
                             struct esk_error *error) {
    const uint8_t *at = bytes.data;
    if (bytes.size < ESK_BATCH_HEADER_BYTES) {
        return esk_fail(error, ESK_ERR_CORRUPT, "batch: %zu bytes, a header has %d", bytes.size,
                        ESK_BATCH_HEADER_BYTES);
    }
    /* The magic stands at the same place in every format, so an old one is named as such. */
    if (at[ESK_BATCH_AT_MAGIC] != ESK_BATCH_MAGIC) {
        return esk_fail(error, ESK_ERR_VERSION, "batch: magic %d instead of %d",
                        (int8_t)at[ESK_BATCH_AT_MAGIC], ESK_BATCH_MAGIC);
    }
    int32_t length = (int32_t)esk_load_u32(at + ESK_BATCH_AT_LENGTH);
    if (length < ESK_BATCH_HEADER_BYTES - ESK_BATCH_LENGTH_BYTES) {
        return esk_fail(error, ESK_ERR_CORRUPT, "batch: length %d, at least %d", length,
                        ESK_BATCH_HEADER_BYTES - ESK_BATCH_LENGTH_BYTES);
    }
    if ((size_t)length > bytes.size - ESK_BATCH_LENGTH_BYTES) {
        return esk_fail(error, ESK_ERR_CORRUPT, "batch: length %d, %zu bytes there", length,
                        bytes.size - ESK_BATCH_LENGTH_BYTES);
    }
    *header = (struct esk_batch_header){
        .base_offset = (int64_t)esk_load_u64(at + ESK_BATCH_AT_BASE_OFFSET),
        .size_bytes = (uint32_t)length + ESK_BATCH_LENGTH_BYTES,
        .leader_epoch = (int32_t)esk_load_u32(at + ESK_BATCH_AT_LEADER_EPOCH),
        .crc = esk_load_u32(at + ESK_BATCH_AT_CRC),
        .attributes = esk_load_u16(at + ESK_BATCH_AT_ATTRIBUTES),
        .last_offset_delta = (int32_t)esk_load_u32(at + ESK_BATCH_AT_LAST_DELTA),
        .base_timestamp_ms = (int64_t)esk_load_u64(at + ESK_BATCH_AT_BASE_TIMESTAMP),
        .max_timestamp_ms = (int64_t)esk_load_u64(at + ESK_BATCH_AT_MAX_TIMESTAMP),
        .producer_id = (int64_t)esk_load_u64(at + ESK_BATCH_AT_PRODUCER_ID),
        .producer_epoch = (int16_t)esk_load_u16(at + ESK_BATCH_AT_PRODUCER_EPOCH),
        .base_sequence = (int32_t)esk_load_u32(at + ESK_BATCH_AT_BASE_SEQUENCE),
        .record_count = (int32_t)esk_load_u32(at + ESK_BATCH_AT_RECORD_COUNT),
    };
    return ESK_OK;
}

bool esk_batch_crc_valid(const uint8_t *batch, const struct esk_batch_header *header) {
    return esk_crc32c(0, batch + ESK_BATCH_AT_ATTRIBUTES,
                      header->size_bytes - ESK_BATCH_AT_ATTRIBUTES) == header->crc;
}

void esk_batch_patch(uint8_t *batch, int64_t base_offset, int32_t leader_epoch) {
    esk_store_u64(batch + ESK_BATCH_AT_BASE_OFFSET, (uint64_t)base_offset);
    esk_store_u32(batch + ESK_BATCH_AT_LEADER_EPOCH, (uint32_t)leader_epoch);
}

enum esk_err esk_batch_inflate(struct esk_slice batch, size_t limit_bytes,
                               struct esk_buffer *output, struct esk_error *error) {
    struct esk_batch_header header;
    enum esk_err err = esk_batch_parse(batch, &header, error);
    if (err) {
        return err;
    }
    struct esk_slice payload =
        esk_slice(batch.data + ESK_BATCH_HEADER_BYTES, header.size_bytes - ESK_BATCH_HEADER_BYTES);
    return esk_inflate(esk_batch_codec(&header), payload, limit_bytes, output, error);
}

enum esk_err esk_batch_records(struct esk_slice batch, const struct esk_batch_header *header,
                               size_t limit_bytes, struct esk_buffer *scratch,
                               struct esk_slice *records, struct esk_error *error) {
    struct esk_slice payload =
        esk_slice(batch.data + ESK_BATCH_HEADER_BYTES, header->size_bytes - ESK_BATCH_HEADER_BYTES);
    if (esk_batch_codec(header) == ESK_CODEC_NONE) {
        *records = payload;
        return ESK_OK;
    }
    scratch->size = 0;
    enum esk_err err = esk_inflate(esk_batch_codec(header), payload, limit_bytes, scratch, error);
    *records = err ? esk_slice(NULL, 0) : esk_buffer_slice(scratch);
    return err;
}

/* --- records --- */

/* A zig-zag varint of at most `bits_max` bits; false when it is longer or cut short. */
static bool varint_slow(const uint8_t **at, const uint8_t *end, unsigned bits_max, uint64_t *raw) {
    const uint8_t *p = *at;
    uint64_t value = 0;
    for (unsigned shift = 0; p < end && shift < bits_max; shift += 7) {
        uint64_t bits = *p & 0x7f;
        if (shift + 7 > bits_max && bits >> (bits_max - shift)) {
            return false;
        }
        value |= bits << shift;
        if (!(*p++ & 0x80)) {
            *at = p;
            *raw = value;
            return true;
        }
    }
    return false;
}

static inline bool varint32(const uint8_t **at, const uint8_t *end, int32_t *value) {
    const uint8_t *p = *at;
    uint64_t raw;
    if (__builtin_expect(p < end && p[0] < 0x80, 1)) {
        raw = p[0];
        *at = p + 1;
    } else if (end - p >= 2 && p[1] < 0x80) {
        raw = (uint64_t)(p[0] & 0x7f) | (uint64_t)p[1] << 7;
        *at = p + 2;
    } else if (!varint_slow(at, end, 32, &raw)) {
        return false;
    }
    *value = (int32_t)((uint32_t)(raw >> 1) ^ -(uint32_t)(raw & 1));
    return true;
}

static inline bool varint64(const uint8_t **at, const uint8_t *end, int64_t *value) {
    uint64_t raw;
    if (__builtin_expect(*at < end && **at < 0x80, 1)) {
        raw = *(*at)++;
    } else if (!varint_slow(at, end, 64, &raw)) {
        return false;
    }
    *value = (int64_t)((raw >> 1) ^ -(raw & 1));
    return true;
}

/* Bytes with a varint length before them; -1 is null where that is allowed. */
static inline bool sized_bytes(const uint8_t **at, const uint8_t *end, bool nullable,
                               struct esk_slice *bytes) {
    int32_t size;
    if (!varint32(at, end, &size)) {
        return false;
    }
    if (size < 0) {
        *bytes = (struct esk_slice){NULL, 0};
        return nullable && size == -1;
    }
    if (size > end - *at) {
        return false;
    }
    *bytes = esk_slice(*at, (size_t)size);
    *at += size;
    return true;
}

struct esk_record_iterator esk_record_iterator(struct esk_slice records, int32_t count) {
    struct esk_reader reader = esk_reader(records);
    return (struct esk_record_iterator){reader.at, reader.end, count, count < 0};
}

static bool next_record(struct esk_record_iterator *iterator, struct esk_record *record) {
    const uint8_t *at = iterator->at;
    int32_t size;
    if (!varint32(&at, iterator->end, &size) || size < ESK_RECORD_BYTES_MIN - 1 ||
        size > iterator->end - at) {
        return false;
    }
    const uint8_t *end = at + size;
    at++; /* attributes: not used by any version */
    if (!varint64(&at, end, &record->timestamp_delta) ||
        !varint32(&at, end, &record->offset_delta) || !sized_bytes(&at, end, true, &record->key) ||
        !sized_bytes(&at, end, true, &record->value) ||
        !varint32(&at, end, &record->header_count)) {
        return false;
    }
    /* A header has at least two bytes, so the count is bounded by what is left. */
    if (record->header_count < 0 || record->header_count > (end - at) / 2 ||
        (record->header_count == 0 && at != end)) {
        return false;
    }
    record->headers = (struct esk_reader){at, at, end, false};
    iterator->at = end;
    return true;
}

bool esk_record_next(struct esk_record_iterator *iterator, struct esk_record *record) {
    if (iterator->failed) {
        return false;
    }
    if (iterator->left == 0) {
        iterator->failed = iterator->at != iterator->end;
        return false;
    }
    iterator->left--;
    iterator->failed = !next_record(iterator, record);
    return !iterator->failed;
}

bool esk_record_header_next(struct esk_record *record, struct esk_record_header *header) {
    struct esk_reader *headers = &record->headers;
    if (headers->failed) {
        return false;
    }
    if (record->header_count == 0) {
        headers->failed = headers->at != headers->end;
        return false;
    }
    record->header_count--;
    headers->failed = !sized_bytes(&headers->at, headers->end, false, &header->name) ||
                      !sized_bytes(&headers->at, headers->end, true, &header->value);
    return !headers->failed;
}

uint64_t esk_record_size(const struct esk_record *record) {
    uint64_t size = (uint64_t)record->key.size + record->value.size;
    if (record->header_count > 0) {
        struct esk_record copy = *record;
        struct esk_record_header header;
        while (esk_record_header_next(&copy, &header)) {
            size += (uint64_t)header.name.size + header.value.size;
        }
    }
    return size;
}

/* --- checking --- */

static enum esk_err malformed(int64_t number, const char *reason, struct esk_error *error) {
    return esk_fail(error, ESK_ERR_CORRUPT, "batch: record %lld: %s", (long long)number, reason);
}

/* Walks a record's headers, to their end, and gives the record's size. */
static bool headers_valid(const struct esk_record *record, uint64_t *size) {
    struct esk_record copy = *record;
    struct esk_record_header header;
    while (esk_record_header_next(&copy, &header)) {
        *size += (uint64_t)header.name.size + header.value.size;
    }
    return !copy.headers.failed;
}

static enum esk_err check_records(struct esk_slice records, const struct esk_batch_limits *limits,
                                  const struct esk_batch_header *header, uint64_t *record_bytes,
                                  struct esk_error *error) {
    if ((uint64_t)header->record_count * ESK_RECORD_BYTES_MIN > records.size) {
        return esk_fail(error, ESK_ERR_CORRUPT, "batch: claims %d records in %zu bytes",
                        header->record_count, records.size);
    }
    struct esk_record_iterator iterator = esk_record_iterator(records, header->record_count);
    struct esk_record record;
    uint64_t total = 0;
    int64_t number = 0;
    int64_t last_delta = -1;
    for (; esk_record_next(&iterator, &record); number++) {
        uint64_t size = (uint64_t)record.key.size + record.value.size;
        int64_t timestamp;
        if (record.header_count > 0 && !headers_valid(&record, &size)) {
            return malformed(number, "malformed headers", error);
        }
        if (size > limits->record_bytes) {
            return esk_fail(error, ESK_ERR_TOO_LARGE,
                            "batch: record %lld: %llu bytes, at most %u are allowed",
                            (long long)number, (unsigned long long)size, limits->record_bytes);
        }
        if (record.offset_delta <= last_delta || record.offset_delta > header->last_offset_delta ||
            (limits->dense && record.offset_delta != number)) {
            return malformed(number, "wrong offset delta", error);
        }
        if (__builtin_add_overflow(header->base_timestamp_ms, record.timestamp_delta, &timestamp)) {
            return malformed(number, "timestamp out of range", error);
        }
        last_delta = record.offset_delta;
        total += size;
    }
    if (iterator.failed) {
        return number < header->record_count
                   ? malformed(number, "malformed", error)
                   : esk_fail(error, ESK_ERR_CORRUPT, "batch: bytes behind the last record");
    }
    if (record_bytes) {
        *record_bytes = total;
    }
    return ESK_OK;
}

enum esk_err esk_batch_check(struct esk_slice bytes, const struct esk_batch_limits *limits,
                             struct esk_batch_header *header, uint64_t *record_bytes,
                             struct esk_error *error) {
    enum esk_err err = esk_batch_parse(bytes, header, error);
    if (err) {
        return err;
    }
    if (header->size_bytes > limits->batch_bytes) {
        return esk_fail(error, ESK_ERR_TOO_LARGE, "batch: %u bytes, at most %u are allowed",
                        header->size_bytes, limits->batch_bytes);
    }
    if (!esk_batch_crc_valid(bytes.data, header)) {
        return esk_fail(error, ESK_ERR_CORRUPT, "batch: CRC does not match");
    }
    if (esk_batch_codec(header) > ESK_CODEC_ZSTD) {
        return esk_fail(error, ESK_ERR_UNSUPPORTED, "batch: unknown compression codec %d",
                        (int)esk_batch_codec(header));
    }
    if (header->record_count < 0 || header->last_offset_delta < 0 ||
        header->record_count > (int64_t)header->last_offset_delta + 1 ||
        (limits->dense && header->record_count != (int64_t)header->last_offset_delta + 1)) {
        return esk_fail(error, ESK_ERR_CORRUPT, "batch: %d records but last offset delta %d",
                        header->record_count, header->last_offset_delta);
    }
    struct esk_buffer scratch;
    esk_buffer_init(&scratch);
    struct esk_slice records;
    err = esk_batch_records(bytes, header, limits->inflated_bytes, &scratch, &records, error);
    if (!err) {
        err = check_records(records, limits, header, record_bytes, error);
    }
    esk_buffer_fini(&scratch);
    return err;
}
