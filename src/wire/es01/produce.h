/* SPDX-License-Identifier: Apache-2.0 */
/* The payloads of produce and of its answer.
 *
 * A request is read from its front: first the topic, which a broker authorises before it looks at
 * more, then the rest of the head, then record by record from one reader. Sizes are checked against
 * the payload before anything is believed, so a count may be trusted to allocate by:
 * ESK_ES01_RECORD_BYTES_MIN of the payload stand behind each record. */
#ifndef ESK_WIRE_ES01_PRODUCE_H
#define ESK_WIRE_ES01_PRODUCE_H

#include "wire/es01/protocol.h"

#define ESK_ES01_KEY_NONE (-1)           /* key_len: no key (spec, Produce) */
#define ESK_ES01_PRODUCER_NONE (-1)      /* producer_id: none (spec, Produce) */
#define ESK_ES01_PARTITION_ANY (-1)      /* route by key (spec, Produce) */
#define ESK_ES01_SEQUENCE_NONE INT64_MIN /* spec, Produce */

#define ESK_ES01_RECORD_BYTES_MIN 20 /* key_len, value_len, partition, sequence */
#define ESK_ES01_RESULT_BYTES 13     /* partition, offset, duplicate */

/* --- the request --- */

struct esk_es01_produce {
    struct esk_slice topic;
    struct esk_slice producer_id; /* data NULL: none */
    uint32_t record_count;
};

/* The topic that a payload of produce or consume begins with. `payload` may be just a beginning:
 * ESK_ERR_AGAIN when the topic goes on behind it. *topic borrows. */
enum esk_err esk_es01_topic_parse(struct esk_slice payload, struct esk_slice *topic);

/* The head; *records stands at the first record. ESK_ERR_INVALID: a length inside that goes beyond
 * the payload, or a count that cannot be true. */
enum esk_err esk_es01_produce_parse(struct esk_slice payload, struct esk_es01_produce *produce,
                                    struct esk_reader *records, struct esk_error *error);

struct esk_es01_record {
    struct esk_slice key;   /* data NULL: none; an empty key is a key */
    struct esk_slice value; /* data never NULL */
    int32_t partition;      /* ESK_ES01_PARTITION_ANY, or as sent: below it is the sender's fault */
    int64_t sequence;       /* ESK_ES01_SEQUENCE_NONE, or as sent */
};

/* The next record. After the last one the reader's `failed` says whether any of them was cut short
 * or had a key's length below -1, and esk_reader_left whether bytes are left over. */
static inline void esk_es01_record_read(struct esk_reader *r, struct esk_es01_record *record) {
    int32_t key_bytes = 0;
    const uint8_t *span = esk_read_span(r, 4);
    if (span) {
        key_bytes = (int32_t)esk_load_u32(span);
    }
    record->key = esk_slice(NULL, 0);
    if (key_bytes >= 0) {
        record->key = esk_slice(esk_read_span(r, (size_t)key_bytes), (size_t)key_bytes);
    } else if (key_bytes != ESK_ES01_KEY_NONE) {
        r->failed = true;
    }
    span = esk_read_span(r, 4);
    size_t value_bytes = span ? esk_load_u32(span) : 0;
    record->value = esk_slice(esk_read_span(r, value_bytes), value_bytes);
    span = esk_read_span(r, 12);
    record->partition = span ? (int32_t)esk_load_u32(span) : 0;
    record->sequence = span ? (int64_t)esk_load_u64(span + 4) : 0;
}

/* Bytes of a head, and of a record, for writers. */
static inline size_t esk_es01_produce_bytes(const struct esk_es01_produce *produce) {
    return 2 + produce->topic.size + 4 + produce->producer_id.size + 4;
}
static inline size_t esk_es01_record_bytes(const struct esk_es01_record *record) {
    return ESK_ES01_RECORD_BYTES_MIN + record->key.size + record->value.size;
}
/* Write that many bytes; return the end. Lengths fit their fields: the caller saw to it. */
uint8_t *esk_es01_produce_write(uint8_t *at, const struct esk_es01_produce *produce);
uint8_t *esk_es01_record_write(uint8_t *at, const struct esk_es01_record *record);

/* --- the answer --- */

struct esk_es01_result {
    uint32_t partition;
    uint64_t offset;
    bool duplicate; /* it was written before, there */
};

/* The count in front; *results stands at the first. ESK_ERR_INVALID: the payload does not hold just
 * so many. */
enum esk_err esk_es01_results_parse(struct esk_slice payload, uint32_t *count,
                                    struct esk_reader *results, struct esk_error *error);
static inline void esk_es01_result_read(struct esk_reader *r, struct esk_es01_result *result) {
    const uint8_t *span = esk_read_span(r, ESK_ES01_RESULT_BYTES);
    *result =
        span ? (struct esk_es01_result){esk_load_u32(span), esk_load_u64(span + 4), span[12] != 0}
             : (struct esk_es01_result){0};
}
static inline uint8_t *esk_es01_result_write(uint8_t *at, const struct esk_es01_result *result) {
    esk_store_u32(at, result->partition);
    esk_store_u64(at + 4, result->offset);
    at[12] = result->duplicate;
    return at + ESK_ES01_RESULT_BYTES;
}

#endif
