/* SPDX-License-Identifier: Apache-2.0 */
/* Consume, from an offset or from a group's commit; both end in the same read. */
#include "server/http/access_private.h"

#include "model/limits.h"
#include "model/names.h"

static struct eski_request *request_of(struct esk_consume *consume) {
    return ESK_CONTAINER(consume, struct eski_request, read.consume);
}

/* --- parameters --- */

enum { PARTITION, OFFSET, TOPIC, MAX_RECORDS, MAX_BYTES, WAIT_MS, ENCODING, PARAMETER_COUNT };

static uint64_t clamp(int64_t value, uint64_t most) {
    return (uint64_t)value < most ? (uint64_t)value : most;
}

static enum esk_err read_parameters(struct eski_request *request,
                                    struct eski_parameter given[PARAMETER_COUNT],
                                    struct esk_error *error) {
    const struct eski_parameter parameters[PARAMETER_COUNT] = {
        [PARTITION] = {.name = "partition", .high = INT32_MAX},
        [OFFSET] = {.name = "offset", .high = INT64_MAX},
        [TOPIC] = {.name = "topic", .is_text = true},
        [MAX_RECORDS] = {.name = "max_records",
                         .low = 1,
                         .high = INT64_MAX,
                         .number = ESK_FETCH_RECORDS_DEFAULT},
        [MAX_BYTES] = {.name = "max_bytes",
                       .low = 1,
                       .high = INT64_MAX,
                       .number = ESK_FETCH_BYTES_DEFAULT},
        [WAIT_MS] = {.name = "wait_ms", .high = ESK_FETCH_WAIT_MS_MAX},
        [ENCODING] = {.name = "encoding", .is_text = true, .text = esk_slice_text("utf8")},
    };
    memcpy(given, parameters, sizeof parameters);
    enum esk_err err = eski_query_read(request, given, PARAMETER_COUNT, error);
    if (err) {
        return err;
    }
    if (!given[PARTITION].is_given) {
        return eski_field_missing("partition", error);
    }
    request->read.is_base64 = esk_slice_equal(given[ENCODING].text, esk_slice_text("base64"));
    if (!request->read.is_base64 &&
        !esk_slice_equal(given[ENCODING].text, esk_slice_text("utf8"))) {
        return esk_fail(error, ESK_ERR_INVALID, "encoding must be utf8 or base64");
    }
    const struct esk_broker_options *limits = esk_broker_shard_options(request->shard->broker);
    struct esk_consume *consume = &request->read.consume;
    consume->partition = (uint32_t)given[PARTITION].number;
    consume->offset = (uint64_t)given[OFFSET].number;
    consume->records_max = (uint32_t)clamp(given[MAX_RECORDS].number, limits->fetch_records_max);
    consume->bytes_max = clamp(given[MAX_BYTES].number, limits->fetch_bytes_max);
    consume->wait_ms = (uint32_t)given[WAIT_MS].number;
    return ESK_OK;
}

/* --- the read and its answer --- */

static void clean(struct eski_request *request) {
    eski_consume_encoder_fini(&request->read.encoder);
    esk_consume_fini(&request->read.consume);
}

static bool fill_records(struct eski_request *request, struct esk_buffer *out) {
    struct esk_error error;
    error.text[0] = '\0';
    struct eski_consume_encoder *encoder = &request->read.encoder;
    uint64_t before = encoder->record_bytes;
    enum esk_err err = eski_consume_encode(encoder, ESKI_FILL_BYTES, out, &error);
    esk_quota_charge_consume(&request->caller, encoder->record_bytes - before,
                             esk_loop_now_ns(esk_broker_shard_loop(request->shard->broker)));
    if (err == ESK_OK || err == ESK_ERR_AGAIN) {
        return err == ESK_OK;
    }
    if (!request->is_head_sent) {
        eski_fail(request, err, &error);
        return false;
    }
    /* Part of the answer is out; only a broken connection can say that the rest is not to come. */
    ESK_LOG(request->shard->http->options.log, ESK_LOG_ERROR, "consume-broken-off", error.text);
    out->size = 0;
    request->keep_alive = false;
    esk_connection_abort(request->connection);
    return true;
}

static void consumed(struct esk_consume *consume, enum esk_err err) {
    struct eski_request *request = request_of(consume);
    if (err) {
        request->response.retry_after_s = err == ESK_ERR_THROTTLED ? consume->retry_after_s : 0;
        eski_fail(request, err, &consume->error);
        return;
    }
    eski_consume_encoder_init(&request->read.encoder, consume, request->read.is_base64);
    request->clean = clean;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < consume->part_count; i++) {
        bytes += consume->parts[i].size;
    }
    if (!eski_request_charge(request, bytes)) {
        return;
    }
    eski_respond_fill(request, fill_records);
}

static void cancel(struct eski_request *request) {
    esk_broker_consume_cancel(request->shard->broker, &request->read.consume);
}

static void start(struct eski_request *request) {
    request->read.consume.done = consumed;
    request->read.consume.caller = &request->caller;
    if (request->read.consume.wait_ms) {
        request->cancel = cancel;
        eski_watch_key(request);
    }
    esk_broker_consume(request->shard->broker, &request->read.consume);
}

/* --- from an offset --- */

enum esk_err eski_consume_read(struct eski_request *request, const struct esk_json_value *body,
                               struct esk_error *error) {
    (void)body;
    struct eski_parameter given[PARAMETER_COUNT];
    enum esk_err err = eski_topic_parameter(request, error);
    if (err == ESK_OK) {
        err = read_parameters(request, given, error);
    }
    if (err == ESK_OK && !given[OFFSET].is_given) {
        err = eski_field_missing("offset", error);
    }
    request->read.consume.topic = request->parameters[0];
    return err;
}

void eski_consume_run(struct eski_request *request) {
    start(request);
}

/* --- from a group's commit --- */

enum esk_err eski_group_consume_read(struct eski_request *request,
                                     const struct esk_json_value *body, struct esk_error *error) {
    (void)body;
    struct eski_parameter given[PARAMETER_COUNT];
    enum esk_err err = eski_group_parameter(request, error);
    if (err == ESK_OK) {
        err = read_parameters(request, given, error);
    }
    if (err == ESK_OK && !given[TOPIC].is_given) {
        err = eski_field_missing("topic", error);
    }
    if (err == ESK_OK) {
        err = esk_topic_name_check(given[TOPIC].text, error);
        request->read.consume.topic = given[TOPIC].text;
        request->read.consume.offset = 0; /* the start, unless there is a commit */
    }
    return err;
}

static void fetched(struct esk_offset_fetch *fetch, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(fetch, struct eski_request, read.fetch);
    if (err) {
        eski_fail(request, err, &fetch->error);
        return;
    }
    for (size_t i = 0; i < fetch->count; i++) {
        if (fetch->offsets[i].partition == request->read.consume.partition) {
            request->read.consume.offset = fetch->offsets[i].offset;
        }
    }
    esk_offset_fetch_fini(fetch);
    start(request);
}

void eski_group_consume_run(struct eski_request *request) {
    if (!eski_may(request, ESK_ACTION_READ, request->read.consume.topic)) {
        return;
    }
    struct esk_offset_fetch *fetch = &request->read.fetch;
    fetch->group = request->parameters[0];
    fetch->owner = request->caller.owner;
    fetch->admin = request->caller.admin;
    fetch->topic = request->read.consume.topic;
    fetch->done = fetched;
    esk_broker_offset_fetch(request->shard->broker, fetch);
}
