/* SPDX-License-Identifier: Apache-2.0 */
/* Batches to JSON, straight from the bytes of the log, in pieces of bounded size: a record of any
 * size may be cut anywhere between two pieces. One owner. */
#ifndef ESK_SERVER_HTTP_CONSUME_ENCODER_PRIVATE_H
#define ESK_SERVER_HTTP_CONSUME_ENCODER_PRIVATE_H

#include "base/map.h"
#include "broker/consume_walk.h"

/* A header of the present record; those with equal names are chained behind the first. */
struct eski_consume_header {
    struct esk_slice name;
    struct esk_slice value;
    uint32_t next; /* index of the next with the same name, 0: none (the first is nobody's next) */
    bool is_first;
    bool is_repeated;
};

struct eski_consume_encoder {
    struct esk_consume_walk walk;
    bool is_base64;
    bool is_stream; /* each record is a server-sent event, with nothing around them */
    bool is_first_record;
    uint64_t record_bytes; /* sizes of the records begun so far */

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
/* Whether the last piece may have cut a record. */
bool eski_consume_encoder_is_within(const struct eski_consume_encoder *encoder);

#endif
