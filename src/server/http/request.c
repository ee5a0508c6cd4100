/* SPDX-License-Identifier: Apache-2.0 */
/* A request's memory, its route, and its way through `read` and `run`. Requests are reused by their
 * shard; each keeps the first chunk of its arena. Bodies up to ESK_JSON_LOOP_BYTES_MAX are parsed
 * in the loop by the shard's parser, larger ones on the helper by one of their own. */
#include "server/http/access_private.h"
#include "server/http/room_private.h"

#include "base/assert.h"
#include "model/limits.h"

#include <inttypes.h>
#include <stdlib.h>

#define POOL_MAX 256
#define TEXT_BYTES_KEPT 4096
#define PARSER_BYTES_KEPT ((size_t)1024 * 1024)
#define PARSER_FACTOR 14 /* memory of a parser of its own for each byte of the document */

struct eski_request *eski_request_create(struct eski_http_shard *shard,
                                         struct esk_connection *connection) {
    struct eski_request *request = shard->pool;
    if (request) {
        shard->pool = request->next;
        shard->pool_count--;
        struct esk_arena arena = request->arena;
        struct esk_buffer text = request->text;
        memset(request, 0, sizeof *request);
        request->arena = arena;
        request->text = text;
    } else {
        request = esk_alloc_zeroed(1, sizeof *request);
        esk_arena_init(&request->arena, ESKI_ARENA_BYTES_MAX);
        esk_buffer_init(&request->text);
    }
    request->shard = shard;
    request->connection = connection;
    request->response.varies = shard->http->options.cors_origin_count > 0;
    request->started_ns = esk_monotonic_ns(shard->http->options.platform);
    esk_buffer_init(&request->body);
    esk_connection_hold(connection);
    return request;
}

static void free_request(struct eski_request *request) {
    esk_json_document_destroy(request->document);
    esk_arena_fini(&request->arena);
    esk_buffer_fini(&request->text);
    free(request);
}

static void on_discarded(struct esk_mail *mail) {
    free_request(ESK_CONTAINER(mail, struct eski_request, mail));
}

void eski_request_destroy(struct eski_request *request) {
    struct eski_http_shard *shard = request->shard;
    if (request->clean) {
        request->clean(request);
    }
    esk_http_chunks_destroy(request->chunks);
    esk_buffer_fini(&request->body);
    if (request->charged_bytes) {
        esk_broker_memory_give(shard->broker, request->charged_bytes);
    }
    eski_room_settle(request);
    esk_connection_release(request->connection);
    esk_key_watch_end(&request->watch);
    esk_caller_release(&request->caller);
    if (request->document) { /* giving back 100 MB takes milliseconds */
        request->mail.run = on_discarded;
        esk_post(shard->http->helper, &request->mail);
        return;
    }
    if (shard->pool_count < POOL_MAX) {
        esk_arena_reset(&request->arena);
        if (request->text.capacity > TEXT_BYTES_KEPT) {
            esk_buffer_fini(&request->text);
            esk_buffer_init(&request->text);
        }
        request->next = shard->pool;
        shard->pool = request;
        shard->pool_count++;
        return;
    }
    free_request(request);
}

bool eski_request_take(struct eski_request *request, uint64_t bytes) {
    struct esk_broker_shard *broker = request->shard->broker;
    if (request->parser.is_granted) {
        bool given = esk_broker_memory_take_more(broker, &request->parser, bytes);
        request->charged_bytes += given ? bytes : 0;
        return given;
    }
    uint64_t total = request->charged_bytes + bytes;
    /* All of it anew: what one request alone needs is always given. */
    esk_broker_memory_give(broker, request->charged_bytes);
    bool given = esk_broker_memory_take(broker, total);
    request->charged_bytes = given ? total : 0;
    return given;
}

bool eski_request_charge(struct eski_request *request, uint64_t bytes) {
    if (!eski_request_take(request, bytes)) {
        eski_room_refuse(request);
        return false;
    }
    return true;
}

/* --- the beginning --- */

/* A path that is none: only who has a key hears of it, but where pages are. */
static bool is_unknown_call(const struct eski_request *request) {
    static const char pages[] = "/kafka";
    size_t size = sizeof pages - 1;
    struct esk_slice path = request->path;
    bool is_page = path.size == 1 || (path.size >= size && memcmp(path.data, pages, size) == 0 &&
                                      (path.size == size || path.data[size] == '/'));
    return !request->route && !request->response.allow && !is_page;
}

void eski_request_route(struct eski_request *request, const struct esk_http_head *head) {
    request->is_head = head->method == ESK_HTTP_HEAD;
    request->is_http_1_0 = head->is_http_1_0;
    request->keep_alive = head->keep_alive;
    request->expects_continue = head->expects_continue;
    request->content_length = head->content_length;
    request->is_chunked = head->is_chunked;
    request->state = ESKI_STATE_BODY;
    request->path = esk_arena_copy(&request->arena, head->path);
    request->query = esk_arena_copy(&request->arena, head->query);
    request->route = eski_router_find(head->method, request->path, request->parameters,
                                      &request->arena, &request->response.allow);
    if (request->route && request->route->operation == ESKI_OPERATION_TAIL) {
        request->last_event_id =
            esk_arena_copy(&request->arena, esk_http_header_find(head, "last-event-id"));
    }
    if (eski_cors_begin(request, head)) {
        eski_cors_preflight(request);
        return;
    }
    bool is_guarded = request->route && request->route->access != ESKI_ACCESS_NONE;
    if ((is_guarded || is_unknown_call(request)) && !eski_access_identify(request, head)) {
        return;
    }
    uint64_t limit = request->shard->http->options.body_bytes_max;
    if (request->content_length > limit) {
        request->keep_alive = false;
        eski_fail_text(request, ESK_ERR_TOO_LARGE,
                       "the body is over %" PRIu64 " bytes, --max-request-body-bytes", limit);
        return;
    }
    if (is_guarded && !eski_access_judge(request)) {
        return;
    }
    if (!request->route && head->expects_continue) { /* no need to wait for the body */
        request->keep_alive = false;
        eski_request_dispatch(request, esk_slice(NULL, 0));
        return;
    }
    if (head->is_chunked) {
        request->chunks = esk_http_chunks_create();
    }
}

/* --- the body is whole --- */

static void run(struct eski_request *request, enum esk_err err, const struct esk_error *error) {
    struct esk_error revoked;
    if (esk_caller_is_revoked(&request->caller)) { /* while the body was taken apart */
        err = esk_caller_revoked_error(&revoked);
        error = &revoked;
    }
    if (err) {
        eski_fail(request, err, error);
        return;
    }
    request->state = ESKI_STATE_RUNNING;
    request->route->run(request);
}

static void on_read(struct esk_mail *mail) {
    struct eski_request *request = ESK_CONTAINER(mail, struct eski_request, mail);
    run(request, request->read_result, &request->error);
}

/* On the helper: touches nothing but the request. */
static void on_helper(struct esk_mail *mail) {
    struct eski_request *request = ESK_CONTAINER(mail, struct eski_request, mail);
    request->document = esk_json_document_create();
    struct esk_json_value body;
    size_t size = request->body.size;
    request->read_result = esk_json_document_parse(
        request->document, esk_slice(request->body.data, size), &body, &request->error);
    esk_buffer_fini(&request->body);
    esk_buffer_init(&request->body);
    if (request->read_result == ESK_OK) {
        request->read_result = request->route->read(request, &body, &request->error);
    }
    request->mail.run = on_read;
    esk_post(&esk_broker_shard_loop(request->shard->broker)->executor, &request->mail);
}

static void read_here(struct eski_request *request, struct esk_slice text) {
    struct esk_json_document *document = request->shard->document;
    struct esk_json_value body;
    struct esk_error error;
    error.text[0] = '\0';
    enum esk_err err = esk_json_document_parse(document, text, &body, &error);
    if (err == ESK_OK) {
        err = request->route->read(request, &body, &error);
    }
    esk_json_document_trim(document, PARSER_BYTES_KEPT);
    run(request, err, &error);
}

static bool is_made_to_fail(struct eski_request *request) {
#ifdef ESK_TEST_HOOKS
    const char *name = request->shard->http->options.failing_operation;
    if (name && (strcmp(name, "all") == 0 ||
                 strcmp(name, eski_operation_names[request->route->operation]) == 0)) {
        eski_fail_text(request, ESK_ERR_INTERNAL, "made to fail by a test: secret detail");
        return true;
    }
#endif
    (void)request;
    return false;
}

void eski_request_dispatch(struct eski_request *request, struct esk_slice body) {
    const struct eski_route *route = request->route;
    if (request->refusal) {
        eski_fail(request, request->refusal, &request->error);
        return;
    }
    if (!route) {
        if (request->response.allow) {
            eski_fail_text(request, ESK_ERR_METHOD, "method not allowed; allowed: %s",
                           request->response.allow);
        } else {
            eski_fail_text(request, ESK_ERR_NOT_FOUND, "no such path");
        }
        return;
    }
    if (is_made_to_fail(request)) {
        return;
    }
    if (!route->has_body) {
        struct esk_error error;
        error.text[0] = '\0';
        enum esk_err err = route->read(request, NULL, &error);
        run(request, err, &error);
        return;
    }
    if (body.size > ESK_JSON_LOOP_BYTES_MAX) {
        ESK_ASSERT(body.data == request->body.data); /* collected: the window is smaller */
        eski_room_parse(request, body.size * PARSER_FACTOR);
    } else if (eski_request_charge(request, body.size)) {
        read_here(request, body);
    }
}

void eski_request_read_on_helper(struct eski_request *request) {
    request->state = ESKI_STATE_READING;
    request->strings_stay = true;
    request->mail.run = on_helper;
    esk_post(request->shard->http->helper, &request->mail);
}
