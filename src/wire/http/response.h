/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a response, and the framing of chunks. Pure. */
#ifndef ESK_WIRE_HTTP_RESPONSE_H
#define ESK_WIRE_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ESK_HTTP_RESPONSE_HEAD_BYTES_MAX 1024
#define ESK_HTTP_ORIGIN_BYTES_MAX 300
#define ESK_HTTP_MORE_BYTES_MAX 300
#define ESK_HTTP_CHUNK_HEAD_BYTES_MAX 10 /* 8 hex digits, CRLF */
#define ESK_HTTP_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"
#define ESK_HTTP_LAST_CHUNK "0\r\n\r\n"

struct esk_http_response {
    int status;
    const char *content_type; /* NULL: none, of an answer without a body */
    const char *allow;        /* the Allow header, or NULL; at most 128 bytes */
    /* The origin whose pages may read the answer, or NULL; at most ESK_HTTP_ORIGIN_BYTES_MAX. */
    const char *cors_origin;
    bool is_preflight; /* with cors_origin: says what such a page may ask */
    bool varies;       /* Vary: Origin; there are origins whose pages may read it */
    bool asks_for_key; /* WWW-Authenticate: Bearer */
    bool is_chunked;   /* Transfer-Encoding: chunked; neither: the body ends the connection */
    bool has_length;   /* Content-Length: content_length */
    uint64_t content_length;
    bool closes;            /* Connection: close */
    bool keeps_alive;       /* Connection: keep-alive, which HTTP/1.0 must be told */
    unsigned retry_after_s; /* 0: none */
    /* More header lines, each behind its CRLF, or NULL; at most ESK_HTTP_MORE_BYTES_MAX. */
    const char *more;
};

/* Writes the head, with its empty line; returns its size. */
size_t esk_http_response_head(const struct esk_http_response *response,
                              uint8_t head[ESK_HTTP_RESPONSE_HEAD_BYTES_MAX]);

/* Writes a chunk's size line; returns its size. The chunk is followed by CRLF. */
size_t esk_http_chunk_head(uint32_t size, uint8_t head[ESK_HTTP_CHUNK_HEAD_BYTES_MAX]);

/* "OK", "Not Found", ...; "Unknown" for a status that is never sent. */
const char *esk_http_reason(int status);

#endif
