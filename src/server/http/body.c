/* SPDX-License-Identifier: Apache-2.0 */
/* A request's body, as it comes: taken from the connection's input, whole or piece by piece, within
 * its time and its room; then the request is dispatched. What is wrong with it is answered, and the
 * connection ends behind the answer. */
#include "server/http/http_private.h"
#include "server/http/room_private.h"

/* Waits for more of the body, for longer the more of it has come; true: there is no more, which has
 * been answered. */
static bool wait_for_body(struct eski_request *request) {
    struct esk_connection *connection = request->connection;
    if (esk_connection_input_ended(connection)) {
        request->keep_alive = false;
        eski_fail_text(request, ESK_ERR_INVALID, "malformed request: its body ends early");
        return true;
    }
    if (request->expects_continue) {
        request->expects_continue = false;
        esk_connection_write(connection, ESK_HTTP_CONTINUE, sizeof ESK_HTTP_CONTINUE - 1);
    }
    uint64_t now_ns = esk_monotonic_ns(request->shard->http->options.platform);
    if (request->body_started_ns == 0) {
        request->body_started_ns = now_ns;
    }
    esk_connection_set_deadline(
        connection, esk_connection_receive_ms(now_ns - request->body_started_ns,
                                              request->shard->http->options.body_ms,
                                              request->room.is_granted, request->body.size));
    esk_connection_want_input(connection, true);
    return false;
}

static void body_is_whole(struct eski_request *request, struct esk_slice body) {
    esk_connection_want_input(request->connection, false);
    esk_connection_set_deadline(request->connection, 0);
    eski_request_dispatch(request, body);
}

/* Makes room for `more` bytes, and padding; the budget is charged for what is allocated, unless
 * there is a claim for all of it. */
static bool reserve(struct eski_request *request, size_t more) {
    struct esk_buffer *body = &request->body;
    size_t before = body->capacity;
    (void)esk_buffer_grow(body, more + ESK_JSON_PADDING);
    return body->capacity == before || request->room.is_granted ||
           eski_request_charge(request, body->capacity - before);
}

static bool collect_chunks(struct eski_request *request, struct esk_slice input) {
    struct esk_connection *connection = request->connection;
    if (!reserve(request, input.size)) {
        return true;
    }
    struct esk_error error;
    size_t consumed;
    enum esk_err err =
        esk_http_chunks_feed(request->chunks, input, request->shard->http->options.body_bytes_max,
                             &request->body, &consumed, &error);
    esk_connection_consume(connection, consumed);
    if (err == ESK_ERR_AGAIN) {
        return wait_for_body(request);
    }
    if (err) {
        request->keep_alive = false;
        if (err == ESK_ERR_TOO_LARGE) {
            esk_wrap(&error, "--max-request-body-bytes");
        }
        eski_fail(request, err, &error);
        return true;
    }
    body_is_whole(request, esk_buffer_slice(&request->body));
    return true;
}

bool eski_body_collect(struct eski_request *request) {
    struct esk_connection *connection = request->connection;
    struct esk_slice input = esk_connection_input(connection);
    if (eski_room_is_missing(request, input.size) && !eski_room_claim(request)) {
        return false;
    }
    if (request->chunks) {
        return collect_chunks(request, input);
    }
    size_t missing = request->content_length - request->body.size;
    if (request->body.size == 0 && input.size >= missing) {
        body_is_whole(request, esk_slice(input.data, missing)); /* parsed where it lies */
        esk_connection_consume(connection, missing);
        return true;
    }
    size_t size = input.size < missing ? input.size : missing;
    if (size) {
        if (!reserve(request, request->room.is_granted ? missing : size)) {
            return true;
        }
        esk_buffer_append(&request->body, input.data, size);
        esk_connection_consume(connection, size);
    }
    if (size < missing) {
        return wait_for_body(request);
    }
    body_is_whole(request, esk_buffer_slice(&request->body));
    return true;
}
