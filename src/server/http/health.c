/* SPDX-License-Identifier: Apache-2.0 */
/* Health, readiness, metrics. */
#include "server/http/http_private.h"

#include "observe/exposition.h"
#include "runtime/loop.h"

/* --- healthz --- */

enum esk_err eski_healthz_read(struct eski_request *request, const struct esk_json_value *body,
                               struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

void eski_healthz_run(struct eski_request *request) {
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "status");
    esk_json_write_text(&writer, "ok");
    esk_json_write_key(&writer, "topics");
    esk_json_write_uint64(&writer, esk_broker_topic_count(request->shard->broker));
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}

/* --- readyz --- */

enum esk_err eski_readyz_read(struct eski_request *request, const struct esk_json_value *body,
                              struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

void eski_readyz_run(struct eski_request *request) {
    if (esk_connection_stopping(request->connection) ||
        !esk_broker_ready(request->shard->http->options.broker)) {
        eski_fail_text(request, ESK_ERR_UNAVAILABLE, "not ready");
        return;
    }
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "status");
    esk_json_write_text(&writer, "ready");
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}

/* --- metrics --- */

enum esk_err eski_metrics_read(struct eski_request *request, const struct esk_json_value *body,
                               struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

static void clean(struct eski_request *request) {
    esk_buffer_fini(&request->scrape.text);
}

/* This door's own series; the registries are read while their shards write them. */
static void append_own(struct eski_request *request) {
    struct esk_http *http = request->shard->http;
    uint32_t count = http->options.shard_count;
    uint32_t other_count = http->options.other_metrics_count;
    const struct esk_metrics *registries[count + other_count];
    for (uint32_t i = 0; i < count; i++) {
        registries[i] = http->shards[i].metrics;
    }
    for (uint32_t i = 0; i < other_count; i++) {
        registries[count + i] = http->options.other_metrics[i];
    }
    unsigned connections = atomic_load_explicit(&http->door.connections, memory_order_relaxed);
    esk_counter_set(&http->shards[0].connections, connections);
    esk_metrics_write(&request->scrape.text, registries, count + other_count);
    for (uint32_t i = 0; i < count; i++) {
        esk_loop_turn_reset(esk_broker_shard_loop(http->shards[i].broker));
    }
}

static bool fill_metrics(struct eski_request *request, struct esk_buffer *out) {
    const struct esk_buffer *text = &request->scrape.text;
    size_t left = text->size - request->position;
    size_t size = left < ESKI_FILL_BYTES ? left : ESKI_FILL_BYTES;
    esk_buffer_append(out, text->data + request->position, size);
    request->position += size;
    return request->position == text->size;
}

static void scraped(struct esk_metrics_scrape *scrape) {
    struct eski_request *request = ESK_CONTAINER(scrape, struct eski_request, scrape);
    if (request->caller.admin) { /* they are about the whole broker */
        append_own(request);
    }
    request->response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    eski_respond_fill(request, fill_metrics);
}

void eski_metrics_run(struct eski_request *request) {
    request->clean = clean;
    request->scrape.caller = &request->caller;
    request->scrape.done = scraped;
    esk_buffer_init(&request->scrape.text);
    esk_broker_metrics(request->shard->broker, &request->scrape);
}
