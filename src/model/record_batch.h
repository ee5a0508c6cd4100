/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka RecordBatch v2, which is also Esker's format on disk: parse, check, read and build.
 *
 * Layout (big-endian; protocol guide, "Record Batch"): 61 bytes of header, then records, compressed
 * as one run when the codec is not none. The CRC-32C covers everything from the attributes on, so
 * base offset and leader epoch are patched in without touching it.
 *
 * Nothing here does I/O; all of it may run on any thread. */
#ifndef ESK_MODEL_RECORD_BATCH_H
#define ESK_MODEL_RECORD_BATCH_H

#include "base/error.h"
#include "base/memory.h"
#include "model/codec.h"

#define ESK_BATCH_AT_BASE_OFFSET 0     /* i64 */
#define ESK_BATCH_AT_LENGTH 8          /* i32, of what follows it */
#define ESK_BATCH_AT_LEADER_EPOCH 12   /* i32 */
#define ESK_BATCH_AT_MAGIC 16          /* i8 */
#define ESK_BATCH_AT_CRC 17            /* u32 */
#define ESK_BATCH_AT_ATTRIBUTES 21     /* i16; the CRC begins here */
#define ESK_BATCH_AT_LAST_DELTA 23     /* i32 */
#define ESK_BATCH_AT_BASE_TIMESTAMP 27 /* i64 */
#define ESK_BATCH_AT_MAX_TIMESTAMP 35  /* i64 */
#define ESK_BATCH_AT_PRODUCER_ID 43    /* i64 */
#define ESK_BATCH_AT_PRODUCER_EPOCH 51 /* i16 */
#define ESK_BATCH_AT_BASE_SEQUENCE 53  /* i32 */
#define ESK_BATCH_AT_RECORD_COUNT 57   /* i32 */
#define ESK_BATCH_HEADER_BYTES 61
#define ESK_BATCH_LENGTH_BYTES 12 /* what the length does not count: base offset and itself */
#define ESK_BATCH_MAGIC 2
#define ESK_RECORD_BYTES_MIN 7 /* length, attributes, two deltas, key, value, header count */

#define ESK_BATCH_CODEC_MASK 0x07      /* attributes: enum esk_codec */
#define ESK_BATCH_LOG_APPEND_TIME 0x08 /* all records have max_timestamp_ms */
#define ESK_BATCH_TRANSACTIONAL 0x10
#define ESK_BATCH_CONTROL 0x20 /* the broker's own marks; clients may not send them */
/* The base timestamp is the time from which on compaction may drop the batch's tombstones. Record
 * timestamps stay base + delta. */
#define ESK_BATCH_DELETE_HORIZON 0x40

struct esk_batch_header {
    int64_t base_offset;
    uint32_t size_bytes; /* of the whole batch: 12 + its length field; at least 61 */
    int32_t leader_epoch;
    uint32_t crc;
    uint16_t attributes;
    int32_t last_offset_delta;
    int64_t base_timestamp_ms;
    int64_t max_timestamp_ms;
    int64_t producer_id; /* -1: none */
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t record_count;
};

static inline enum esk_codec esk_batch_codec(const struct esk_batch_header *header) {
    return (enum esk_codec)(header->attributes & ESK_BATCH_CODEC_MASK);
}

/* Reads the header of the batch that `bytes` begin with; they may go on behind it. ESK_ERR_CORRUPT:
 * shorter than the header or than its length says (or a length under 49); ESK_ERR_VERSION: another
 * magic. Neither CRC nor records are looked at. error may be NULL. */
enum esk_err esk_batch_parse(struct esk_slice bytes, struct esk_batch_header *header,
                             struct esk_error *error);

/* Whether the stored CRC is right. `batch` is whole (esk_batch_parse said so). */
bool esk_batch_crc_valid(const uint8_t *batch, const struct esk_batch_header *header);

struct esk_batch_limits {
    uint32_t batch_bytes;    /* of the whole batch */
    uint32_t inflated_bytes; /* of its records after inflating */
    uint32_t record_bytes;   /* of one record: key + value + header names and values */
    bool dense; /* at least one record, offset deltas 0 .. count-1, as a producer must send them;
                 * false: deltas ascend to at most the last delta, as compaction leaves them */
};

/* Everything that can be wrong with a batch from a stranger: lengths, magic, CRC, codec, counts
 * against bytes, and each record, inflated within the limits when compressed. *record_bytes (may be
 * NULL) gets the sum of the records' sizes. ESK_ERR_CORRUPT, ESK_ERR_VERSION (magic),
 * ESK_ERR_UNSUPPORTED (codec), ESK_ERR_TOO_LARGE. error may be NULL. */
enum esk_err esk_batch_check(struct esk_slice bytes, const struct esk_batch_limits *limits,
                             struct esk_batch_header *header, uint64_t *record_bytes,
                             struct esk_error *error);

/* Stamps a batch with its place in the log. */
void esk_batch_patch(uint8_t *batch, int64_t base_offset, int32_t leader_epoch);

/* Appends the records of a whole batch, inflated if need be, at most limit_bytes of them; errors as
 * esk_inflate. */
enum esk_err esk_batch_inflate(struct esk_slice batch, size_t limit_bytes,
                               struct esk_buffer *output, struct esk_error *error);

/* The records of a whole batch for reading: a part of the batch itself when it is not compressed,
 * else inflated into `scratch`, whose contents are replaced. */
enum esk_err esk_batch_records(struct esk_slice batch, const struct esk_batch_header *header,
                               size_t limit_bytes, struct esk_buffer *scratch,
                               struct esk_slice *records, struct esk_error *error);

/* --- reading records --- */

/* Borrows from the bytes it was read from. data NULL is null, which is not the same as empty. */
struct esk_record {
    int64_t timestamp_delta;
    int32_t offset_delta;
    int32_t header_count; /* headers left for esk_record_header_next */
    struct esk_slice key;
    struct esk_slice value;
    struct esk_reader headers;
};

struct esk_record_header {
    struct esk_slice name;  /* never null */
    struct esk_slice value; /* may be null */
};

struct esk_record_iterator {
    const uint8_t *at;
    const uint8_t *end;
    int32_t left; /* records still claimed */
    bool failed;  /* the bytes are not what they claim */
};

/* `count` is the batch's record_count. */
struct esk_record_iterator esk_record_iterator(struct esk_slice records, int32_t count);
/* The next record; false at the end and when the bytes are malformed (then `failed` is set; it is
 * also set at the end when bytes are left over). Safe on unchecked bytes; headers are bounded but
 * not walked. */
bool esk_record_next(struct esk_record_iterator *iterator, struct esk_record *record);
/* The next header of a record; false at the end, or when malformed (then record->headers.failed).
 */
bool esk_record_header_next(struct esk_record *record, struct esk_record_header *header);
/* Key + value + header names and values, as limits, quotas and max_bytes count them. */
uint64_t esk_record_size(const struct esk_record *record);
/* Its timestamp in a batch; wraps for hostile deltas. */
static inline int64_t esk_record_timestamp_ms(const struct esk_batch_header *header,
                                              const struct esk_record *record) {
    return header->attributes & ESK_BATCH_LOG_APPEND_TIME
               ? header->max_timestamp_ms
               : (int64_t)((uint64_t)header->base_timestamp_ms + (uint64_t)record->timestamp_delta);
}

/* --- building --- */

/* Writes records straight into the block that will be journalled, uncompressed, all with one
 * timestamp. begin, add..., then finish or abandon. One owner. */
struct esk_batch_builder {
    struct esk_block *block;
    int64_t timestamp_ms;
    int64_t producer_id; /* these three: -1 from begin, may be set before finish */
    int16_t producer_epoch;
    int32_t base_sequence;
    int32_t record_count;
};

/* size_hint: bytes that the whole batch will roughly need, header included; it grows beyond. */
void esk_batch_builder_begin(struct esk_batch_builder *builder, int64_t timestamp_ms,
                             size_t size_hint);
/* Adds a record; key and value with data NULL are null. ESK_ERR_TOO_LARGE: the batch would pass
 * 2^31-1 bytes; nothing was added. */
enum esk_err esk_batch_builder_add(struct esk_batch_builder *builder, struct esk_slice key,
                                   struct esk_slice value, const struct esk_record_header *headers,
                                   int32_t header_count);
/* The finished batch (base offset 0, leader epoch -1: esk_batch_patch sets them); returns owned,
 * the builder is empty then. At least one record was added. */
struct esk_block *esk_batch_builder_finish(struct esk_batch_builder *builder);
void esk_batch_builder_abandon(struct esk_batch_builder *builder); /* also after finish */

#endif
