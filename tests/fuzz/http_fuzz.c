/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's bytes as HTTP: heads, their targets, bodies of both kinds, one request behind the
 * other. Promises: what is taken lies inside the input; a head and a chunked body read the same in
 * one piece and byte by byte. */
#include "fuzz.h"

#include "base/assert.h"
#include "wire/http/head.h"
#include "wire/http/target.h"
#include "wire/http/token.h"

#define BODY_BYTES_MAX 4096

static struct esk_http_head head;
static struct esk_http_head same;

static void check_inside(struct esk_slice inner, struct esk_slice outer) {
    if (inner.size) {
        ESK_ASSERT(inner.data >= outer.data);
        ESK_ASSERT(inner.data + inner.size <= outer.data + outer.size);
    }
}

static void check_head(struct esk_slice input) {
    struct esk_slice bytes = esk_slice(input.data, head.size);
    ESK_ASSERT(head.size <= input.size && head.size <= ESK_HTTP_HEAD_BYTES_MAX);
    ESK_ASSERT(head.header_count <= ESK_HTTP_HEADERS_MAX);
    ESK_ASSERT(!head.is_chunked || head.content_length == 0);
    check_inside(head.path, bytes);
    check_inside(head.query, bytes);
    for (uint32_t i = 0; i < head.header_count; i++) {
        check_inside(head.headers[i].name, bytes);
        check_inside(head.headers[i].value, bytes);
        ESK_ASSERT(!memchr(head.headers[i].value.data, '\n', head.headers[i].value.size));
    }
    struct esk_slice token;
    if (esk_http_token_find(&head, &token, NULL) == ESK_OK) {
        check_inside(token, bytes);
    }
    struct esk_arena arena;
    esk_arena_init(&arena, 0);
    struct esk_slice decoded;
    if (esk_http_percent_decode(head.path, &arena, &decoded)) {
        ESK_ASSERT(decoded.size <= head.path.size);
    }
    struct esk_slice query = head.query;
    struct esk_slice name;
    struct esk_slice value;
    while (esk_http_query_next(&query, &name, &value)) {
        check_inside(name, head.query);
        check_inside(value, head.query);
        (void)esk_http_query_decode(value, &arena, &decoded);
    }
    esk_arena_fini(&arena);
}

/* The head again, from ever more of its bytes. */
static void check_pieces(struct esk_slice input, enum esk_err expected) {
    enum esk_err err = ESK_ERR_AGAIN;
    size_t scanned = 0;
    for (size_t size = 1; size <= input.size && err == ESK_ERR_AGAIN; size++) {
        err = esk_http_head_parse(esk_slice(input.data, size), &scanned, &same, NULL);
    }
    ESK_ASSERT(err == expected);
    ESK_ASSERT(err != ESK_OK || same.size == head.size);
}

static enum esk_err feed(struct esk_slice input, size_t step, struct esk_buffer *body,
                         size_t *taken) {
    struct esk_http_chunks *chunks = esk_http_chunks_create();
    enum esk_err err = ESK_ERR_AGAIN;
    *taken = 0;
    while (err == ESK_ERR_AGAIN && *taken < input.size) {
        size_t size = input.size - *taken < step ? input.size - *taken : step;
        size_t consumed;
        err = esk_http_chunks_feed(chunks, esk_slice(input.data + *taken, size), BODY_BYTES_MAX,
                                   body, &consumed, NULL);
        ESK_ASSERT(consumed <= size && body->size <= BODY_BYTES_MAX);
        *taken += consumed;
    }
    esk_http_chunks_destroy(chunks);
    return err;
}

/* How much of the input the body takes; 0: it is not whole, or refused. */
static size_t check_chunks(struct esk_slice input) {
    struct esk_buffer whole;
    struct esk_buffer pieces;
    esk_buffer_init(&whole);
    esk_buffer_init(&pieces);
    size_t taken;
    size_t taken_again;
    enum esk_err err = feed(input, input.size, &whole, &taken);
    enum esk_err err_again = feed(input, 1, &pieces, &taken_again);
    if (err == ESK_OK) {
        ESK_ASSERT(err_again == ESK_OK && taken == taken_again);
        ESK_ASSERT(esk_slice_equal(esk_buffer_slice(&whole), esk_buffer_slice(&pieces)));
    }
    esk_buffer_fini(&whole);
    esk_buffer_fini(&pieces);
    return err == ESK_OK ? taken : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct esk_slice input = esk_slice(data, size);
    while (input.size) {
        size_t scanned = 0;
        struct esk_error error;
        error.text[0] = '\0';
        enum esk_err err = esk_http_head_parse(input, &scanned, &head, &error);
        ESK_ASSERT(err == ESK_OK || err == ESK_ERR_AGAIN || error.text[0]);
        check_pieces(input, err);
        if (err) {
            break;
        }
        check_head(input);
        input = esk_slice(input.data + head.size, input.size - head.size);
        size_t taken = head.content_length < input.size ? (size_t)head.content_length : 0;
        if (head.is_chunked && (taken = check_chunks(input)) == 0) {
            break;
        }
        input = esk_slice(input.data + taken, input.size - taken);
    }
    return 0;
}
