/* SPDX-License-Identifier: Apache-2.0 */
/* Answers. One that is whole at its first piece has a Content-Length; a longer one is sent in
 * chunks (to HTTP/1.0, until the connection ends), each made only when the client has taken most of
 * those before it. An internal error keeps its text for the log; the client gets an id to ask
 * about. */
#include "server/http/access_private.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>

#define JSON "application/json"
#define ANSWER_BYTES (ESK_CONNECTION_OUTPUT_BYTES_MAX + ESK_CONNECTION_BLOCK_BYTES) /* queued */

static void count(struct eski_request *request) {
    struct eski_http_shard *shard = request->shard;
    enum eski_operation operation =
        request->route ? request->route->operation : ESKI_OPERATION_NONE;
    esk_counter_add(&shard->requests[operation], 1);
    if (request->response.status >= 400) {
        esk_counter_add(&shard->errors[operation], 1);
    }
    eski_audit(request);
    uint64_t now = esk_monotonic_ns(shard->http->options.platform);
    esk_histogram_record(&shard->durations[operation], now - request->started_ns);
}

/* --- what to answer --- */

struct esk_json_writer eski_respond_begin(struct eski_request *request) {
    request->text.size = 0;
    return esk_json_writer(&request->text);
}

/* The next piece of request->text. */
static bool fill_from_text(struct eski_request *request, struct esk_buffer *out) {
    size_t left = request->text.size - request->position;
    size_t size = left < ESKI_FILL_BYTES ? left : ESKI_FILL_BYTES;
    if (size) {
        esk_buffer_append(out, request->text.data + request->position, size);
    }
    request->position += size;
    return request->position == request->text.size;
}

/* The client has gone: nobody reads this answer. */
static void on_orphaned(struct esk_mail *mail) {
    struct eski_request *request = ESK_CONTAINER(mail, struct eski_request, mail);
    count(request);
    eski_request_destroy(request);
}

static void answer(struct eski_request *request, int status, eski_fill fill) {
    ESK_ASSERT(request->state != ESKI_STATE_ANSWERING);
    request->state = ESKI_STATE_ANSWERING;
    request->response.status = status;
    if (!request->response.content_type) {
        request->response.content_type = JSON;
    }
    request->fill = fill;
    request->position = 0;
    request->cancel = NULL;
    if (!esk_connection_is_open(request->connection)) {
        request->mail.run = on_orphaned;
        esk_post(&esk_broker_shard_loop(request->shard->broker)->executor, &request->mail);
    } else if (request->shard->serving != request->connection) {
        esk_connection_wake(request->connection);
    }
}

void eski_respond(struct eski_request *request, int status) {
    answer(request, status, fill_from_text);
}

void eski_respond_empty(struct eski_request *request) {
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}

void eski_respond_fill(struct eski_request *request, eski_fill fill) {
    answer(request, 200, fill);
}

/* --- errors --- */

void eski_log_internal(struct eski_request *request, enum esk_err err, const char *text,
                       char visible[40]) {
    const struct esk_http_options *options = &request->shard->http->options;
    uint32_t number;
    esk_random_bytes(options->platform, &number, sizeof number);
    char id[9];
    (void)snprintf(id, sizeof id, "%08x", number);
    (void)snprintf(visible, 40, "internal error (id %s)", id);
    enum eski_operation operation =
        request->route ? request->route->operation : ESKI_OPERATION_NONE;
    ESK_LOG(options->log, ESK_LOG_ERROR, "internal-error", text, esk_field_text("id", id),
            esk_field_text("code", esk_err_name(err)),
            esk_field_text("operation", eski_operation_names[operation]));
}

static void fail(struct eski_request *request, enum esk_err err, const char *text) {
    char visible[40];
    int status = esk_err_http_status(err);
    if (status == 500) {
        eski_log_internal(request, err, text, visible);
        text = visible;
    }
    /* A fill function may find the error: then the answer begins anew. */
    ESK_ASSERT(!request->is_head_sent);
    request->state = ESKI_STATE_RUNNING;
    request->response.asks_for_key = status == 401;
    request->response.content_type = JSON;
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "error");
    text = text && *text ? text : esk_err_meaning(err);
    esk_json_write_text(&writer, text);
    if (request->route && eski_registry_speaks(request->route)) {
        eski_registry_write_error(&writer, status, text);
    }
    esk_json_close_object(&writer);
    eski_respond(request, status);
}

void eski_fail(struct eski_request *request, enum esk_err err, const struct esk_error *error) {
    ESK_ASSERT(err != ESK_OK);
    fail(request, err, error->text);
}

void eski_fail_text(struct eski_request *request, enum esk_err err, const char *format, ...) {
    char text[ESK_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail(request, err, text);
}

/* --- sending --- */

static void send_head(struct eski_request *request, bool is_whole, size_t size) {
    struct esk_http_response *response = &request->response;
    request->is_head_sent = true;
    bool has_body = response->status != 204;
    response->has_length = is_whole && has_body;
    response->content_type = has_body ? response->content_type : NULL;
    response->content_length = size;
    response->is_chunked = !is_whole && !request->is_http_1_0;
    if (!is_whole && request->is_http_1_0) {
        request->keep_alive = false;
    }
    if (esk_connection_stopping(request->connection)) {
        request->keep_alive = false;
    }
    response->closes = !request->keep_alive;
    response->keeps_alive = request->keep_alive && request->is_http_1_0;
    uint8_t *head = esk_connection_reserve(request->connection, ESK_HTTP_RESPONSE_HEAD_BYTES_MAX);
    esk_connection_commit(request->connection, esk_http_response_head(response, head));
    count(request);
}

static void send_piece(struct eski_request *request, const struct esk_buffer *piece) {
    if (piece->size <= ESK_CONNECTION_RESERVE_BYTES_MAX) {
        esk_connection_write(request->connection, piece->data, piece->size);
        return;
    }
    for (size_t sent = 0; sent < piece->size;) {
        struct esk_block *block = esk_connection_block_take(request->connection);
        size_t left = piece->size - sent;
        uint32_t size = left < block->capacity ? (uint32_t)left : block->capacity;
        memcpy(block->data, piece->data + sent, size);
        block->size = size;
        esk_connection_write_block(request->connection, &block, 0, size);
        sent += size;
    }
}

static void send_chunk(struct eski_request *request, const struct esk_buffer *piece) {
    uint8_t head[ESK_HTTP_CHUNK_HEAD_BYTES_MAX];
    size_t size = esk_http_chunk_head((uint32_t)piece->size, head);
    esk_connection_write(request->connection, head, size);
    send_piece(request, piece);
    esk_connection_write(request->connection, "\r\n", 2);
}

/* A revoked key reads nothing more, though its request was begun before; what it wrote is told. */
static bool is_cut_off(const struct eski_request *request) {
    return esk_caller_is_revoked(&request->caller) && request->response.status < 400 &&
           request->route->method == ESK_HTTP_GET;
}

bool eski_answer_continue(struct eski_request *request) {
    if (is_cut_off(request)) {
        struct esk_error error;
        if (!request->is_head_sent) {
            eski_fail(request, esk_caller_revoked_error(&error), &error);
        } else if (!request->cut_off || !request->cut_off(request)) {
            request->keep_alive = false;
            esk_connection_abort(request->connection);
            return true;
        }
    }
    struct esk_buffer *out = &request->shard->out;
    out->size = 0;
    eski_fill fill = request->fill;
    bool is_last = fill(request, out);
    if (request->fill != fill) { /* it became an error */
        out->size = 0;
        is_last = request->fill(request, out);
    }
    if (out->size == 0 && !is_last) {
        return false;
    }
    if (!request->is_head_sent) {
        if (!is_last && !eski_request_charge(request, ANSWER_BYTES)) {
            return false; /* that answers instead */
        }
        send_head(request, is_last, out->size);
        if (request->is_head) {
            return true;
        }
    }
    if (!request->response.is_chunked) {
        send_piece(request, out);
        return is_last;
    }
    if (out->size) {
        send_chunk(request, out);
    }
    if (is_last) {
        esk_connection_write(request->connection, ESK_HTTP_LAST_CHUNK,
                             sizeof ESK_HTTP_LAST_CHUNK - 1);
    }
    return is_last;
}
