/* SPDX-License-Identifier: Apache-2.0 */
/* Batches to JSON, straight from the bytes of the log, in pieces of bounded size: a record of any
 * size may be cut anywhere between two pieces. One owner. */
#ifndef ESK_SERVER_HTTP_CONSUME_ENCODER_PRIVATE_H
#define ESK_SERVER_HTTP_CONSUME_ENCODER_PRIVATE_H

#include "base/map.h"
#include "broker/broker.h"
#include "model/record_batch.h"

/* A header of the present record; those with equal names are chained behind the first. */
struct eski_consume_header {
    struct esk_slice name;
    struct esk_slice value;
    uint32_t next; /* index of the next with the same name, 0: none (the first is nobody's next) */
    bool is_first;
    bool is_repeated;
};

struct eski_consume_encoder {
    const struct esk_consume *consume; /* borrowed */
    bool is_base64;
    uint64_t bytes_left; /* of max_bytes */
    uint32_t records_left;
    uint64_t next_offset;
    uint64_t offset; /* the first wanted */

    uint32_t part;          /* the one to go on with, */
    uint32_t part_position; /* at its next batch */
    struct esk_batch_header batch;
    struct esk_record_iterator iterator;
    struct esk_buffer inflated;
    struct esk_record record;
    uint64_t record_offset;
    bool is_first_record;

    int step;
    uint64_t checked; /* bytes of the present record known to be UTF-8 */
    struct eski_consume_header *headers;
    uint32_t header_count;
    uint32_t header_capacity;
    uint32_t header; /* the present one's first */
    uint32_t header_value;

    /* The token that is written: a literal as it is, a string quoted. */
    enum { ESKI_TOKEN_NONE, ESKI_TOKEN_LITERAL, ESKI_TOKEN_STRING, ESKI_TOKEN_BASE64 } token;
    struct esk_slice token_bytes;
    size_t token_position;
    bool is_token_open; /* its first quote is written */
    char literal[160];
};

/* From the first record at or after the effective offset. */
void eski_consume_encoder_init(struct eski_consume_encoder *encoder,
                               const struct esk_consume *consume, bool is_base64);
void eski_consume_encoder_fini(struct eski_consume_encoder *encoder);

/* Appends up to about `room` bytes. ESK_OK: the answer is complete; ESK_ERR_AGAIN: call again, at
 * least some progress was made, though not always in bytes; ESK_ERR_NOT_TEXT: the first record is
 * not UTF-8 (nothing was written before); ESK_ERR_CORRUPT: a batch is not what it claims. */
enum esk_err eski_consume_encode(struct eski_consume_encoder *encoder, size_t room,
                                 struct esk_buffer *out, struct esk_error *error);

#endif
