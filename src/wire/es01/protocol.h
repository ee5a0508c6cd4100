/* SPDX-License-Identifier: Apache-2.0 */
/* ES01, the binary protocol: its constants, the handshake and the head of a frame.
 * docs/protocol-es01.md has the layouts byte by byte; produce.h and consume.h have the payloads,
 * gzip.h their compression.
 *
 * Integers are big-endian. Nothing here does I/O or keeps state: parsers look at the bytes that
 * there are and borrow from them, writers fill memory that the caller bounds. Any thread. */
#ifndef ESK_WIRE_ES01_PROTOCOL_H
#define ESK_WIRE_ES01_PROTOCOL_H

#include "base/bytes.h"
#include "base/error.h"
#include "model/limits.h"

/* --- constants (spec, Handshake and Frames, where nothing else is said) --- */

#define ESK_ES01_MAGIC "ES01"
#define ESK_ES01_MAGIC_BYTES 4

#define ESK_ES01_FEATURE_GZIP 0x1u
#define ESK_ES01_FEATURES ESK_ES01_FEATURE_GZIP /* all that there are */

enum esk_es01_status {
    ESK_ES01_STATUS_OK = 0,
    ESK_ES01_STATUS_BAD_MAGIC = 1,
    ESK_ES01_STATUS_AUTH_FAILED = 2,
    ESK_ES01_STATUS_AUTH_REQUIRED = 3,
};

enum esk_es01_opcode {
    ESK_ES01_PRODUCE = 0x01,
    ESK_ES01_CONSUME = 0x02,
    ESK_ES01_PING = 0x03,
    ESK_ES01_PRODUCED = 0x81,
    ESK_ES01_CONSUMED = 0x82,
    ESK_ES01_PONG = 0x83,
    ESK_ES01_ERROR = 0xFF, /* its payload is text in UTF-8 */
};

#define ESK_ES01_HELLO_HEAD_BYTES 12              /* magic, features, token's length */
#define ESK_ES01_WELCOME_HEAD_BYTES 13            /* magic, status, features, message's length */
#define ESK_ES01_MESSAGE_BYTES_MAX (64 * ESK_KIB) /* ours: what a client takes of a message */
#define ESK_ES01_FRAME_HEAD_BYTES 9               /* length, request id, opcode */
#define ESK_ES01_LENGTH_BYTES 4                   /* what `length` does not count: itself */
#define ESK_ES01_LENGTH_MIN 5                     /* product: request id and opcode */

/* The longest `length` of a frame, for a limit of request bodies (product, binary page). Answers of
 * a broker may be longer: the fetch limit and one record. */
static inline uint64_t esk_es01_length_max(uint64_t body_bytes_max) {
    return body_bytes_max + ESK_FRAME_BYTES_OVER_BODY;
}

/* --- handshake: the client's part --- */

struct esk_es01_hello {
    uint32_t features; /* wanted */
    struct esk_slice token;
};

/* `bytes` may go on behind it; *size gets what it takes. ESK_ERR_AGAIN: more must come;
 * ESK_ERR_INVALID: another magic, told at its first wrong byte; ESK_ERR_TOO_LARGE: a token over
 * ESK_TOKEN_BYTES_MAX, told as soon as its length is there. */
enum esk_err esk_es01_hello_parse(struct esk_slice bytes, struct esk_es01_hello *hello,
                                  size_t *size, struct esk_error *error);

#define ESK_ES01_HELLO_BYTES_MAX (ESK_ES01_HELLO_HEAD_BYTES + ESK_TOKEN_BYTES_MAX)
/* The bytes written; a longer token is the caller's fault. */
size_t esk_es01_hello_write(const struct esk_es01_hello *hello,
                            uint8_t out[ESK_ES01_HELLO_BYTES_MAX]);

/* --- handshake: the broker's part --- */

struct esk_es01_welcome {
    uint8_t status;    /* enum esk_es01_status, or what a later version has */
    uint32_t features; /* accepted, of those wanted */
    struct esk_slice message;
};

/* As esk_es01_hello_parse; ESK_ERR_TOO_LARGE: a message over ESK_ES01_MESSAGE_BYTES_MAX. */
enum esk_err esk_es01_welcome_parse(struct esk_slice bytes, struct esk_es01_welcome *welcome,
                                    size_t *size, struct esk_error *error);

/* Writes ESK_ES01_WELCOME_HEAD_BYTES + message.size bytes. */
size_t esk_es01_welcome_write(const struct esk_es01_welcome *welcome, uint8_t *out);

/* --- frames --- */

struct esk_es01_frame {
    uint32_t length; /* of all behind itself: 5 + the payload */
    uint32_t request_id;
    uint8_t opcode;
};

static inline size_t esk_es01_payload_bytes(const struct esk_es01_frame *frame) {
    return frame->length - ESK_ES01_LENGTH_MIN;
}

/* The head at the front of `bytes`. ESK_ERR_AGAIN: more must come; ESK_ERR_INVALID and
 * ESK_ERR_TOO_LARGE: a length under 5 or over length_max, told as soon as the length is there; the
 * request id is set if its bytes are there too, else 0, and nothing behind can be read. */
enum esk_err esk_es01_frame_parse(struct esk_slice bytes, uint64_t length_max,
                                  struct esk_es01_frame *frame, struct esk_error *error);

/* Writes ESK_ES01_FRAME_HEAD_BYTES. */
static inline void esk_es01_frame_write(uint8_t *out, size_t payload_bytes, uint32_t request_id,
                                        uint8_t opcode) {
    esk_store_u32(out, (uint32_t)(payload_bytes + ESK_ES01_LENGTH_MIN));
    esk_store_u32(out + 4, request_id);
    out[8] = opcode;
}

/* --- errors --- */

/* The text of an error frame: the code's fixed phrase, ": " and the text that HTTP answers with; a
 * text that begins with its phrase stands alone. Returns the size written, at most
 * ESK_ES01_ERROR_BYTES_MAX; longer texts are cut. */
#define ESK_ES01_ERROR_BYTES_MAX (ESK_ERROR_TEXT_BYTES + 64)
size_t esk_es01_error_write(enum esk_err code, const char *text,
                            uint8_t out[ESK_ES01_ERROR_BYTES_MAX]);

/* The code that an error frame's text begins with; ESK_ERR_INTERNAL when it is none of ours. */
enum esk_err esk_es01_error_code(struct esk_slice text);

#endif
