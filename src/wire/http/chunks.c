/* SPDX-License-Identifier: Apache-2.0 */
/* A chunked body by llhttp, which is brought into that state by a head of our own. Framing (sizes,
 * extensions, trailers) is bounded against the body it carries, so that a body of one-byte chunks
 * still passes and an endless extension does not. */
#include "wire/http/head.h"

#include "base/assert.h"

#include <llhttp.h>
#include <stdlib.h>

struct esk_http_chunks {
    llhttp_t parser;
    uint64_t fed;
    uint64_t body_bytes;
    size_t body_bytes_max;
    struct esk_buffer *body; /* during a call */
    bool too_large;
    bool complete;
};

static int on_body(llhttp_t *parser, const char *at, size_t size) {
    struct esk_http_chunks *chunks = parser->data;
    if (size > chunks->body_bytes_max - chunks->body->size) {
        chunks->too_large = true;
        return -1;
    }
    esk_buffer_append(chunks->body, at, size);
    chunks->body_bytes += size;
    return 0;
}

/* Refuses a size over the limit before its bytes come. */
static int on_chunk_header(llhttp_t *parser) {
    struct esk_http_chunks *chunks = parser->data;
    chunks->too_large = parser->content_length > chunks->body_bytes_max - chunks->body->size;
    return chunks->too_large ? -1 : 0;
}

static int on_message_complete(llhttp_t *parser) {
    struct esk_http_chunks *chunks = parser->data;
    chunks->complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t chunk_settings = {
    .on_body = on_body,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

struct esk_http_chunks *esk_http_chunks_create(void) {
    static const char head[] = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    struct esk_http_chunks *chunks = esk_alloc_zeroed(1, sizeof *chunks);
    llhttp_init(&chunks->parser, HTTP_REQUEST, &chunk_settings);
    chunks->parser.data = chunks;
    llhttp_errno_t result = llhttp_execute(&chunks->parser, head, sizeof head - 1);
    ESK_ASSERT(result == HPE_OK);
    return chunks;
}

void esk_http_chunks_destroy(struct esk_http_chunks *chunks) {
    free(chunks);
}

enum esk_err esk_http_chunks_feed(struct esk_http_chunks *chunks, struct esk_slice input,
                                  size_t body_bytes_max, struct esk_buffer *body, size_t *consumed,
                                  struct esk_error *error) {
    ESK_ASSERT(!chunks->complete);
    *consumed = 0;
    if (input.size == 0) {
        return ESK_ERR_AGAIN;
    }
    chunks->body = body;
    chunks->body_bytes_max = body_bytes_max;
    llhttp_errno_t result = llhttp_execute(&chunks->parser, (const char *)input.data, input.size);
    if (chunks->too_large) {
        return esk_fail(error, ESK_ERR_TOO_LARGE, "the body is over %zu bytes", body_bytes_max);
    }
    if (chunks->complete) {
        const uint8_t *end = (const uint8_t *)llhttp_get_error_pos(&chunks->parser);
        *consumed = (size_t)(end - input.data);
        ESK_ASSERT(*consumed <= input.size);
        return ESK_OK;
    }
    if (result != HPE_OK) {
        return esk_fail(error, ESK_ERR_INVALID, "malformed chunked body: %s",
                        llhttp_get_error_reason(&chunks->parser));
    }
    chunks->fed += input.size;
    if (chunks->fed - chunks->body_bytes >
        ESK_HTTP_CHUNK_FRAMING_BYTES + ESK_HTTP_CHUNK_FRAMING_FACTOR * chunks->body_bytes) {
        return esk_fail(error, ESK_ERR_INVALID, "malformed chunked body: more framing than body");
    }
    *consumed = input.size;
    return ESK_ERR_AGAIN;
}
