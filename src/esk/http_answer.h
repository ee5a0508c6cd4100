/* SPDX-License-Identifier: Apache-2.0 */
/* Reads HTTP/1.1 answers, strictly: a status line, headers, then a body of a Content-Length, in
 * chunks, or up to the connection's end. Interim answers (1xx) are passed over. Pure; one owner.
 * An answer that is refused ends its connection. */
#ifndef ESK_ESK_HTTP_ANSWER_H
#define ESK_ESK_HTTP_ANSWER_H

#include "base/error.h"
#include "base/memory.h"

#define ESK_HTTP_ANSWER_HEAD_BYTES_MAX (16 * 1024)
/* The largest --max-fetch-bytes, 64 MiB, with each byte escaped as six. */
#define ESK_HTTP_ANSWER_BODY_BYTES_MAX (UINT64_C(1) << 30)
#define ESK_HTTP_ANSWER_TAIL_BYTES 128

enum esk_http_answer_state {
    ESK_HTTP_ANSWER_HEAD,
    ESK_HTTP_ANSWER_LENGTH,     /* left bytes of body to come */
    ESK_HTTP_ANSWER_TO_END,     /* the body ends with the connection */
    ESK_HTTP_ANSWER_CHUNK_HEAD, /* a chunk's size line */
    ESK_HTTP_ANSWER_CHUNK,      /* left bytes of a chunk to come */
    ESK_HTTP_ANSWER_CHUNK_END,  /* the line end behind a chunk */
    ESK_HTTP_ANSWER_TRAILER,
    ESK_HTTP_ANSWER_DONE,
};

struct esk_http_answer {
    enum esk_http_answer_state state;
    int status;
    bool keeps_alive;
    bool keeps_body;        /* collect it in `body`; else only its end is kept */
    bool is_chunked;        /* while the head is read */
    bool has_length;        /* while the head is read */
    uint64_t left;          /* bytes to come of the body or chunk */
    uint64_t body_bytes;    /* of the body so far */
    struct esk_buffer text; /* of the head or line that is not whole yet */
    struct esk_buffer body;
    uint8_t tail[ESK_HTTP_ANSWER_TAIL_BYTES]; /* the body's last bytes */
    size_t tail_size;
};

void esk_http_answer_init(struct esk_http_answer *answer, bool keeps_body);
void esk_http_answer_fini(struct esk_http_answer *answer);
void esk_http_answer_begin(struct esk_http_answer *answer); /* the next answer of a connection */

/* Takes the next bytes. ESK_OK: the answer is whole, *consumed says how much of them it was.
 * ESK_ERR_AGAIN: all taken, more follows. ESK_ERR_CORRUPT: no answer that this client takes; error
 * may be NULL. */
enum esk_err esk_http_answer_feed(struct esk_http_answer *answer, struct esk_slice input,
                                  size_t *consumed, struct esk_error *error);
/* The connection ended: ESK_OK when that ends the answer, else ESK_ERR_UNAVAILABLE. */
enum esk_err esk_http_answer_end(struct esk_http_answer *answer, struct esk_error *error);

#endif
