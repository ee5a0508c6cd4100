/* SPDX-License-Identifier: Apache-2.0 */
/* Produce and its answer. Every length is compared with what is left before it is used. */
#include "wire/es01/produce.h"

#include <inttypes.h>

enum esk_err esk_es01_topic_parse(struct esk_slice payload, struct esk_slice *topic) {
    if (payload.size < 2) {
        return ESK_ERR_AGAIN;
    }
    size_t size = esk_load_u16(payload.data);
    *topic = esk_slice(payload.data + 2, size);
    return payload.size - 2 < size ? ESK_ERR_AGAIN : ESK_OK;
}

enum esk_err esk_es01_produce_parse(struct esk_slice payload, struct esk_es01_produce *produce,
                                    struct esk_reader *records, struct esk_error *error) {
    *records = esk_reader(payload);
    produce->topic = esk_read_bytes(records, esk_read_u16(records));
    int32_t id_bytes = esk_read_i32(records);
    produce->producer_id = esk_slice(NULL, 0);
    if (id_bytes >= 0) {
        produce->producer_id = esk_read_bytes(records, (uint64_t)id_bytes);
    } else if (id_bytes != ESK_ES01_PRODUCER_NONE) {
        records->failed = true;
    }
    produce->record_count = esk_read_u32(records);
    if (records->failed) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "topic_len or producer_id's length goes beyond the payload");
    }
    if (produce->record_count > esk_reader_left(records) / ESK_ES01_RECORD_BYTES_MIN) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "count is %" PRIu32 "; the payload has no room for it",
                        produce->record_count);
    }
    return ESK_OK;
}

static uint8_t *put(uint8_t *at, struct esk_slice bytes) {
    if (bytes.size) {
        memcpy(at, bytes.data, bytes.size);
    }
    return at + bytes.size;
}

/* A length of 32 bits, all ones for none, and the bytes. */
static uint8_t *put_nullable(uint8_t *at, struct esk_slice bytes) {
    esk_store_u32(at, bytes.data ? (uint32_t)bytes.size : UINT32_MAX);
    return bytes.data ? put(at + 4, bytes) : at + 4;
}

uint8_t *esk_es01_produce_write(uint8_t *at, const struct esk_es01_produce *produce) {
    esk_store_u16(at, (uint16_t)produce->topic.size);
    at = put(at + 2, produce->topic);
    at = put_nullable(at, produce->producer_id);
    esk_store_u32(at, produce->record_count);
    return at + 4;
}

uint8_t *esk_es01_record_write(uint8_t *at, const struct esk_es01_record *record) {
    at = put_nullable(at, record->key);
    esk_store_u32(at, (uint32_t)record->value.size);
    at = put(at + 4, record->value);
    esk_store_u32(at, (uint32_t)record->partition);
    esk_store_u64(at + 4, (uint64_t)record->sequence);
    return at + 12;
}

enum esk_err esk_es01_results_parse(struct esk_slice payload, uint32_t *count,
                                    struct esk_reader *results, struct esk_error *error) {
    *results = esk_reader(payload);
    *count = esk_read_u32(results);
    size_t left = esk_reader_left(results);
    if (results->failed || left % ESK_ES01_RESULT_BYTES || left / ESK_ES01_RESULT_BYTES != *count) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "the answer to a produce does not hold its %" PRIu32 " results", *count);
    }
    return ESK_OK;
}
