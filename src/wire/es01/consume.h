/* SPDX-License-Identifier: Apache-2.0 */
/* The payloads of consume and of its answer. Topics are read by esk_es01_topic_parse of produce.h
 * when only the beginning is there. */
#ifndef ESK_WIRE_ES01_CONSUME_H
#define ESK_WIRE_ES01_CONSUME_H

#include "wire/es01/produce.h"

/* --- the request --- */

struct esk_es01_consume {
    struct esk_slice topic;
    uint32_t partition;
    uint64_t offset;
    uint32_t max_records;
    uint32_t max_bytes;
};
#define ESK_ES01_CONSUME_BYTES(topic_bytes) (2 + (topic_bytes) + 20)

/* ESK_ERR_INVALID: the payload is not just such a request. Values are not judged. */
enum esk_err esk_es01_consume_parse(struct esk_slice payload, struct esk_es01_consume *consume,
                                    struct esk_error *error);
/* Writes ESK_ES01_CONSUME_BYTES(topic.size); returns the end. */
uint8_t *esk_es01_consume_write(uint8_t *at, const struct esk_es01_consume *consume);

/* --- the answer --- */

struct esk_es01_fetched {
    uint64_t next_offset;
    uint64_t high_watermark;
    uint32_t record_count;
};
#define ESK_ES01_FETCHED_BYTES 20

struct esk_es01_fetched_record {
    uint32_t partition;
    uint64_t offset;
    int64_t timestamp_ms;
    struct esk_slice key; /* data NULL: none */
    struct esk_slice value;
};
#define ESK_ES01_FETCHED_RECORD_BYTES_MIN 28  /* without key and value */
#define ESK_ES01_FETCHED_RECORD_HEAD_BYTES 24 /* up to the key's bytes */

/* The head; *records stands at the first record. ESK_ERR_INVALID: too short for it, or for its
 * count. */
enum esk_err esk_es01_fetched_parse(struct esk_slice payload, struct esk_es01_fetched *fetched,
                                    struct esk_reader *records, struct esk_error *error);
static inline void esk_es01_fetched_write(uint8_t *at, const struct esk_es01_fetched *fetched) {
    esk_store_u64(at, fetched->next_offset);
    esk_store_u64(at + 8, fetched->high_watermark);
    esk_store_u32(at + 16, fetched->record_count);
}

/* The next record; as esk_es01_record_read, the reader tells at the end whether all was well. */
static inline void esk_es01_fetched_record_read(struct esk_reader *r,
                                                struct esk_es01_fetched_record *record) {
    const uint8_t *span = esk_read_span(r, ESK_ES01_FETCHED_RECORD_HEAD_BYTES);
    int32_t key_bytes = 0;
    *record = (struct esk_es01_fetched_record){0};
    if (span) {
        record->partition = esk_load_u32(span);
        record->offset = esk_load_u64(span + 4);
        record->timestamp_ms = (int64_t)esk_load_u64(span + 12);
        key_bytes = (int32_t)esk_load_u32(span + 20);
    }
    if (key_bytes >= 0) {
        record->key = esk_slice(esk_read_span(r, (size_t)key_bytes), (size_t)key_bytes);
    } else if (key_bytes != ESK_ES01_KEY_NONE) {
        r->failed = true;
    }
    span = esk_read_span(r, 4);
    size_t value_bytes = span ? esk_load_u32(span) : 0;
    record->value = esk_slice(esk_read_span(r, value_bytes), value_bytes);
}

static inline size_t esk_es01_fetched_record_bytes(const struct esk_es01_fetched_record *record) {
    return ESK_ES01_FETCHED_RECORD_BYTES_MIN + record->key.size + record->value.size;
}
/* Writes ESK_ES01_FETCHED_RECORD_HEAD_BYTES: all that comes before the key's bytes. */
static inline void esk_es01_fetched_record_head(uint8_t *at,
                                                const struct esk_es01_fetched_record *record) {
    esk_store_u32(at, record->partition);
    esk_store_u64(at + 4, record->offset);
    esk_store_u64(at + 12, (uint64_t)record->timestamp_ms);
    esk_store_u32(at + 20, record->key.data ? (uint32_t)record->key.size : UINT32_MAX);
}
/* Writes all of it; returns the end. */
uint8_t *esk_es01_fetched_record_write(uint8_t *at, const struct esk_es01_fetched_record *record);

#endif
