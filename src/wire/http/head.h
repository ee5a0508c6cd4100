/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 requests: the head, checked more strictly than llhttp does, and chunked bodies. Pure: no
 * I/O, no clock; any thread, one owner. A refused request ends its connection, since nobody can say
 * where the next one would begin. */
#ifndef ESK_WIRE_HTTP_HEAD_H
#define ESK_WIRE_HTTP_HEAD_H

#include "base/error.h"
#include "base/memory.h"

#define ESK_HTTP_HEAD_BYTES_MAX (16 * 1024) /* request line and headers together */
#define ESK_HTTP_HEADERS_MAX 100
#define ESK_HTTP_CHUNK_FRAMING_BYTES (16 * 1024) /* sizes, extensions, trailers: this, and */
#define ESK_HTTP_CHUNK_FRAMING_FACTOR 8          /* so many for each byte of the body */

enum esk_http_method {
    ESK_HTTP_GET,
    ESK_HTTP_HEAD,
    ESK_HTTP_POST,
    ESK_HTTP_PUT,
    ESK_HTTP_DELETE,
    ESK_HTTP_OPTIONS, /* no route has it; a browser's preflight */
    ESK_HTTP_OTHER,   /* legal, but no route has it */
};

struct esk_http_header {
    struct esk_slice name;
    struct esk_slice value; /* without white space around it */
};

/* Borrows from the input. */
struct esk_http_head {
    size_t size; /* bytes of the head, with its empty line and any empty lines before it */
    enum esk_http_method method;
    struct esk_slice path;  /* of the target, still percent-encoded; begins with "/" */
    struct esk_slice query; /* behind the "?", still encoded */
    bool is_http_1_0;
    bool keep_alive; /* another request may follow */
    bool expects_continue;
    bool is_chunked;
    uint64_t content_length; /* 0 without one */
    uint32_t header_count;
    struct esk_http_header headers[ESK_HTTP_HEADERS_MAX];
};

/* Reads the head that `input` begins with. *scanned is 0 for a new head; while the answer is
 * ESK_ERR_AGAIN (not whole yet), call again with the same bytes and more. ESK_ERR_INVALID: refused,
 * the text says why; ESK_ERR_HEADERS_TOO_LARGE: over one of the two limits. */
enum esk_err esk_http_head_parse(struct esk_slice input, size_t *scanned,
                                 struct esk_http_head *head, struct esk_error *error);

/* The value of a header that may come once; data NULL: not there. `name` in lower case. */
struct esk_slice esk_http_header_find(const struct esk_http_head *head, const char *name);

/* --- a chunked body --- */

struct esk_http_chunks;
struct esk_http_chunks *esk_http_chunks_create(void); /* owned */
void esk_http_chunks_destroy(struct esk_http_chunks *chunks);
/* Takes the next bytes behind the head and appends what they hold to `body`. ESK_OK: the body is
 * whole and *consumed says where the next request begins; ESK_ERR_AGAIN: all consumed, more
 * follows; ESK_ERR_TOO_LARGE: the body is over body_bytes_max; ESK_ERR_INVALID: malformed, or
 * mostly framing. Trailers are read and dropped. */
enum esk_err esk_http_chunks_feed(struct esk_http_chunks *chunks, struct esk_slice input,
                                  size_t body_bytes_max, struct esk_buffer *body, size_t *consumed,
                                  struct esk_error *error);

#endif
