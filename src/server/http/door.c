/* SPDX-License-Identifier: Apache-2.0 */
/* The door on the connection layer. A connection serves one request at a time; pipelined ones wait
 * in its input, so answers keep their order. Its data is NULL between requests, the mark below
 * while a head is incomplete, else its request.
 *
 * A client that goes while its request is with the broker: the request ends as if nothing were, and
 * nobody gets the answer; only a long poll is told to end early. */
#include "server/http/http_private.h"
#include "server/http/room_private.h"

#include "model/limits.h"
#include "observe/exposition.h"
#include "runtime/loop.h"

#include <stdlib.h>

#define HEAD_MS_DEFAULT 10000
#define BODY_MS_DEFAULT 30000
#define IDLE_MS_DEFAULT 75000
#define REQUESTS_PER_TURN 16 /* of one connection */

#define PLAIN_ANSWER "{\"error\":\"this port speaks TLS: use https\"}"
static const char answer_without_tls[] =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 43\r\n"
    "Connection: close\r\n\r\n" PLAIN_ANSWER;
_Static_assert(sizeof PLAIN_ANSWER - 1 == 43, "the Content-Length above");

static char head_mark; /* its address is a connection's data while a head is incomplete */

static struct eski_http_shard *shard_of(const struct esk_connection *connection) {
    struct esk_http *http = esk_connection_door(connection)->context;
    return &http->shards[esk_connection_shard(connection)];
}

static struct eski_request *request_of(const struct esk_connection *connection) {
    void *data = esk_connection_data(connection);
    return data == &head_mark ? NULL : data;
}

static const struct esk_http_options *options_of(const struct esk_connection *connection) {
    return &shard_of(connection)->http->options;
}

/* --- a head --- */

/* Answers what was no request, and ends. */
static void refuse(struct esk_connection *connection, enum esk_err err, const char *text) {
    struct eski_request *request = eski_request_create(shard_of(connection), connection);
    esk_connection_set_data(connection, request);
    request->state = ESKI_STATE_RUNNING;
    request->keep_alive = false;
    eski_fail_text(request, err, "%s", text);
}

/* Nothing to do: waits for a request, or for the rest of its head. */
static void wait_for_head(struct esk_connection *connection, bool has_begun) {
    if (esk_connection_input_ended(connection) || esk_connection_stopping(connection)) {
        esk_connection_finish(connection);
        return;
    }
    esk_connection_want_input(connection, true);
    void *data = has_begun ? &head_mark : NULL;
    if (!has_begun || esk_connection_data(connection) == NULL) {
        const struct esk_http_options *options = options_of(connection);
        esk_connection_set_deadline(connection, has_begun ? options->head_ms : options->idle_ms);
    }
    esk_connection_set_data(connection, data);
}

/* Begins the next request, if its head is whole; false: there is nothing to do now. */
static bool begin(struct esk_connection *connection) {
    struct eski_http_shard *shard = shard_of(connection);
    struct esk_slice input = esk_connection_input(connection);
    if (input.size == 0) {
        wait_for_head(connection, false);
        return false;
    }
    struct esk_error error;
    size_t scanned = 0; /* anew each time: that is cheaper than to remember it, 16 KiB at most */
    enum esk_err err = esk_http_head_parse(input, &scanned, &shard->head, &error);
    if (err == ESK_ERR_AGAIN) {
        wait_for_head(connection, true);
        return false;
    }
    esk_connection_want_input(connection, false);
    esk_connection_set_deadline(connection, 0);
    if (err) {
        refuse(connection, err, error.text);
        return true;
    }
    esk_connection_consume(connection, shard->head.size);
    struct eski_request *request = eski_request_create(shard, connection);
    esk_connection_set_data(connection, request);
    eski_request_route(request, &shard->head);
    return true;
}

/* --- serving --- */

static void leave(struct eski_request *request) {
    if (request->cancel) {
        void (*cancel)(struct eski_request *) = request->cancel;
        request->cancel = NULL;
        cancel(request);
    }
}

static void leave_if_ending(struct eski_request *request) {
    if (esk_connection_input_ending(request->connection) ||
        esk_connection_stopping(request->connection) || esk_caller_is_revoked(&request->caller)) {
        leave(request);
    }
}

/* Sends what is ready; false: nothing more can be done now. */
static bool send_answer(struct eski_request *request, unsigned *served) {
    struct esk_connection *connection = request->connection;
    if (esk_connection_output_bytes(connection) >= ESK_CONNECTION_OUTPUT_BYTES_MAX) {
        return false;
    }
    if (!request->is_sent) {
        request->is_sent = eski_answer_continue(request);
        if (!request->is_sent) {
            if (!request->is_waiting) {
                esk_connection_wake(connection); /* when it is this connection's turn again */
            }
            return false;
        }
        if (esk_connection_output_bytes(connection) >= ESK_CONNECTION_OUTPUT_BYTES_MAX) {
            return false; /* the memory it waits in is the request's */
        }
    }
    bool keep_alive = request->keep_alive;
    esk_connection_set_data(connection, NULL);
    eski_request_destroy(request);
    if (!keep_alive) {
        esk_connection_finish(connection);
        return false;
    }
    if (++*served == REQUESTS_PER_TURN) {
        esk_connection_want_input(connection, true);
        esk_connection_wake(connection);
        return false;
    }
    return true;
}

static bool serve_request(struct eski_request *request, unsigned *served) {
    switch (request->state) {
    case ESKI_STATE_BODY:
        return eski_body_collect(request);
    case ESKI_STATE_ANSWERING:
        if (!request->is_waiting) {
            return send_answer(request, served);
        }
        leave_if_ending(request);
        return false;
    case ESKI_STATE_ROOM:
        if (esk_connection_stopping(request->connection)) {
            eski_room_refuse(request);
            return true;
        }
        return false;
    case ESKI_STATE_PARSER:
        return false;
    case ESKI_STATE_READING:
    case ESKI_STATE_RUNNING:
        leave_if_ending(request);
        return false;
    }
    return false;
}

static void on_serve(struct esk_connection *connection) {
    struct eski_http_shard *shard = shard_of(connection);
    unsigned served = 0;
    shard->serving = connection;
    for (bool goes_on = true; goes_on;) {
        struct eski_request *request = request_of(connection);
        goes_on = request ? serve_request(request, &served) : begin(connection);
    }
    shard->serving = NULL;
}

static void on_opened(struct esk_connection *connection) {
    esk_connection_set_deadline(connection, options_of(connection)->idle_ms);
}

static void on_expired(struct esk_connection *connection) {
    if (esk_connection_data(connection) == NULL) {
        esk_connection_finish(connection);
        return;
    }
    struct eski_request *request = request_of(connection);
    if (!request) {
        refuse(connection, ESK_ERR_TIMEOUT, "the request's head took too long");
    } else if (request->state == ESKI_STATE_BODY) {
        request->keep_alive = false;
        eski_fail_text(request, ESK_ERR_TIMEOUT, "the request's body took too long");
    } else if (request->state == ESKI_STATE_ROOM || request->state == ESKI_STATE_PARSER) {
        eski_room_refuse(request);
    }
}

/* What the client sent cannot be kept, and is lost. */
static void on_overloaded(struct esk_connection *connection) {
    struct eski_request *request = request_of(connection);
    if (!request) {
        refuse(connection, ESK_ERR_UNAVAILABLE, "the broker's memory for requests is in use");
        request = request_of(connection);
        request->response.retry_after_s = 1;
    } else if (request->state == ESKI_STATE_ROOM || request->state == ESKI_STATE_BODY) {
        eski_room_refuse(request);
    } else {
        request->keep_alive = false; /* what follows this request is not looked at */
    }
}

static void on_closed(struct esk_connection *connection) {
    struct eski_request *request = request_of(connection);
    if (!request) {
        return;
    }
    if (request->is_waiting || request->state == ESKI_STATE_READING ||
        request->state == ESKI_STATE_RUNNING) {
        leave(request); /* it is orphaned: its answer will end it */
        return;
    }
    eski_request_destroy(request);
}

static void on_handshake_ended(struct esk_connection *connection, bool succeeded) {
    struct eski_http_shard *shard = shard_of(connection);
    esk_counter_add(succeeded ? &shard->handshakes_done : &shard->handshakes_failed, 1);
}

static const struct esk_door_ops ops = {on_opened, on_serve, on_expired, on_closed};

/* --- life --- */

void esk_http_options_init(struct esk_http_options *options) {
    *options = (struct esk_http_options){.body_bytes_max = ESK_BODY_BYTES_MAX_DEFAULT,
                                         .head_ms = HEAD_MS_DEFAULT,
                                         .body_ms = BODY_MS_DEFAULT,
                                         .idle_ms = IDLE_MS_DEFAULT};
}

static void register_metrics(struct eski_http_shard *shard) {
    shard->metrics = esk_metrics_create(shard->number);
    for (enum eski_operation operation = 0; operation < ESKI_OPERATION_COUNT; operation++) {
        const char *labels[] = {"http", eski_operation_names[operation]};
        esk_metrics_add(shard->metrics, ESK_METRIC_REQUESTS_TOTAL, labels,
                        &shard->requests[operation]);
        esk_metrics_add(shard->metrics, ESK_METRIC_REQUEST_ERRORS_TOTAL, labels,
                        &shard->errors[operation]);
        esk_metrics_add_histogram(shard->metrics, ESK_METRIC_REQUEST_DURATION_SECONDS, labels,
                                  &shard->durations[operation]);
    }
    const char *door[] = {"http"};
    esk_metrics_add(shard->metrics, ESK_METRIC_CONNECTIONS, door, &shard->connections);
    const char *done[] = {"http", "done"};
    const char *failed[] = {"http", "failed"};
    esk_metrics_add(shard->metrics, ESK_METRIC_TLS_HANDSHAKES_TOTAL, done, &shard->handshakes_done);
    esk_metrics_add(shard->metrics, ESK_METRIC_TLS_HANDSHAKES_TOTAL, failed,
                    &shard->handshakes_failed);
    const struct esk_loop *loop = esk_broker_shard_loop(shard->broker);
    esk_metrics_add(shard->metrics, ESK_METRIC_LOOP_TURN_MAX_SECONDS, NULL,
                    esk_loop_turn_max_ns(loop));
    esk_metrics_add(shard->metrics, ESK_METRIC_LOOP_TURN_RECENT_MAX_SECONDS, NULL,
                    esk_loop_turn_recent_max_ns(loop));
}

struct esk_http *esk_http_create(const struct esk_http_options *options) {
    struct esk_http *http = esk_alloc_zeroed(1, sizeof *http);
    http->options = *options;
    http->door.ops = &ops;
    http->door.context = http;
    http->door.overloaded = on_overloaded;
    http->door.handshake_ended = on_handshake_ended;
    http->door.alpn = "http/1.1";
    http->door.answer_without_tls = answer_without_tls;
    http->helper = esk_worker_create(options->platform, "http-json", 1);
    http->shards = esk_alloc_zeroed(options->shard_count, sizeof *http->shards);
    for (uint32_t i = 0; i < options->shard_count; i++) {
        struct eski_http_shard *shard = &http->shards[i];
        shard->http = http;
        shard->broker = esk_broker_shard(options->broker, i);
        shard->number = i;
        shard->document = esk_json_document_create();
        esk_buffer_init(&shard->out);
        register_metrics(shard);
    }
    return http;
}

void esk_http_destroy(struct esk_http *http) {
    esk_worker_destroy(http->options.platform, http->helper);
    for (uint32_t i = 0; i < http->options.shard_count; i++) {
        struct eski_http_shard *shard = &http->shards[i];
        while (shard->pool) {
            struct eski_request *next = shard->pool->next;
            esk_arena_fini(&shard->pool->arena);
            esk_buffer_fini(&shard->pool->text);
            free(shard->pool);
            shard->pool = next;
        }
        esk_json_document_destroy(shard->document);
        esk_buffer_fini(&shard->out);
        esk_metrics_destroy(shard->metrics);
    }
    free(http->shards);
    free(http);
}

struct esk_door *esk_http_door(struct esk_http *http) {
    return &http->door;
}
