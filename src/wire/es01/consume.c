/* SPDX-License-Identifier: Apache-2.0 */
/* Consume and its answer. */
#include "wire/es01/consume.h"

#include <inttypes.h>

enum esk_err esk_es01_consume_parse(struct esk_slice payload, struct esk_es01_consume *consume,
                                    struct esk_error *error) {
    struct esk_reader r = esk_reader(payload);
    consume->topic = esk_read_bytes(&r, esk_read_u16(&r));
    consume->partition = esk_read_u32(&r);
    consume->offset = esk_read_u64(&r);
    consume->max_records = esk_read_u32(&r);
    consume->max_bytes = esk_read_u32(&r);
    if (r.failed || esk_reader_left(&r)) {
        return esk_fail(error, ESK_ERR_INVALID, "topic_len does not fit the payload of a consume");
    }
    return ESK_OK;
}

uint8_t *esk_es01_consume_write(uint8_t *at, const struct esk_es01_consume *consume) {
    esk_store_u16(at, (uint16_t)consume->topic.size);
    at += 2;
    if (consume->topic.size) {
        memcpy(at, consume->topic.data, consume->topic.size);
        at += consume->topic.size;
    }
    esk_store_u32(at, consume->partition);
    esk_store_u64(at + 4, consume->offset);
    esk_store_u32(at + 12, consume->max_records);
    esk_store_u32(at + 16, consume->max_bytes);
    return at + 20;
}

enum esk_err esk_es01_fetched_parse(struct esk_slice payload, struct esk_es01_fetched *fetched,
                                    struct esk_reader *records, struct esk_error *error) {
    *records = esk_reader(payload);
    fetched->next_offset = esk_read_u64(records);
    fetched->high_watermark = esk_read_u64(records);
    fetched->record_count = esk_read_u32(records);
    if (records->failed ||
        fetched->record_count > esk_reader_left(records) / ESK_ES01_FETCHED_RECORD_BYTES_MIN) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "the answer to a consume has no room for its %" PRIu32 " records",
                        fetched->record_count);
    }
    return ESK_OK;
}

uint8_t *esk_es01_fetched_record_write(uint8_t *at, const struct esk_es01_fetched_record *record) {
    esk_es01_fetched_record_head(at, record);
    at += ESK_ES01_FETCHED_RECORD_HEAD_BYTES;
    if (record->key.size) {
        memcpy(at, record->key.data, record->key.size);
        at += record->key.size;
    }
    esk_store_u32(at, (uint32_t)record->value.size);
    at += 4;
    if (record->value.size) {
        memcpy(at, record->value.data, record->value.size);
        at += record->value.size;
    }
    return at;
}
