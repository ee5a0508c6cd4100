/* SPDX-License-Identifier: Apache-2.0 */
/* GET /topics/:topic/tail: records as server-sent events, for as long as the client stays.
 *
 * The answer goes round: a read that waits up to 15 s for records, their events piece by piece as
 * the client takes them, the next read. So at most one read's records are held, and nothing is read
 * while the client does not take what there is. A read that found nothing becomes a comment. Until
 * the first read is done the answer may still be a plain error; later, trouble is an event `error`,
 * and the end; so it is when the key is revoked, unless that cuts a record. While a read is out
 * (is_waiting) the request must stay: who wants to end it cancels the read, and the end comes when
 * that is back. */
#include "server/http/access_private.h"
#include "server/http/http_private.h"

#include "base/assert.h"

#include <inttypes.h>

#define WAIT_MS 15000                /* between comments; keeps proxies from giving up */
#define READ_BYTES_MAX (256u * 1024) /* of records a read, and one record of any size */
#define READ_RECORDS_MAX 1000

static struct eski_request *request_of(struct esk_consume *consume) {
    return ESK_CONTAINER(consume, struct eski_request, tail.consume);
}

static struct esk_loop *loop_of(const struct eski_request *request) {
    return esk_broker_shard_loop(request->shard->broker);
}

/* --- parameters --- */

enum { PARTITION, OFFSET, ENCODING, PARAMETER_COUNT };

/* The header that a browser sends when it comes back: the `id` of the last event that it got. */
static enum esk_err read_last_event(struct eski_request *request, struct esk_error *error) {
    struct esk_slice text = request->last_event_id;
    uint64_t value = 0;
    bool is_number = true;
    for (size_t i = 0; i < text.size; i++) {
        is_number = is_number && text.data[i] >= '0' && text.data[i] <= '9' &&
                    value <= (uint64_t)INT64_MAX / 10 - 1;
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (!is_number) {
        return esk_fail(error, ESK_ERR_INVALID, "Last-Event-ID must be an offset");
    }
    if (text.size > 0) {
        request->tail.consume.offset = value;
        request->tail.is_at_end = false;
    }
    return ESK_OK;
}

enum esk_err eski_tail_read(struct eski_request *request, const struct esk_json_value *body,
                            struct esk_error *error) {
    (void)body;
    struct eski_parameter given[PARAMETER_COUNT] = {
        [PARTITION] = {.name = "partition", .high = INT32_MAX},
        [OFFSET] = {.name = "offset", .high = INT64_MAX},
        [ENCODING] = {.name = "encoding", .is_text = true, .text = esk_slice_text("utf8")},
    };
    enum esk_err err = eski_topic_parameter(request, error);
    if (err == ESK_OK) {
        err = eski_query_read(request, given, PARAMETER_COUNT, error);
    }
    if (err == ESK_OK && !given[PARTITION].is_given) {
        err = eski_field_missing("partition", error);
    }
    if (err) {
        return err;
    }
    request->tail.is_base64 = esk_slice_equal(given[ENCODING].text, esk_slice_text("base64"));
    if (!request->tail.is_base64 &&
        !esk_slice_equal(given[ENCODING].text, esk_slice_text("utf8"))) {
        return esk_fail(error, ESK_ERR_INVALID, "encoding must be utf8 or base64");
    }
    request->tail.consume.topic = request->parameters[0];
    request->tail.consume.partition = (uint32_t)given[PARTITION].number;
    request->tail.consume.offset = (uint64_t)given[OFFSET].number;
    request->tail.is_at_end = !given[OFFSET].is_given;
    return read_last_event(request, error);
}

/* --- reads --- */

/* What the last read gave goes; its memory was the request's. */
static void drop(struct eski_request *request) {
    if (request->tail.has_records) {
        request->tail.has_records = false;
        eski_consume_encoder_fini(&request->tail.encoder);
    }
    esk_consume_fini(&request->tail.consume);
    esk_broker_memory_give(request->shard->broker, request->tail.charged_bytes);
    request->charged_bytes -= request->tail.charged_bytes;
    request->tail.charged_bytes = 0;
}

static void clean(struct eski_request *request) {
    ESK_ASSERT(!request->is_waiting);
    drop(request);
}

/* A read is back. false: the client has gone meanwhile, and so has the request. */
static bool is_back(struct eski_request *request) {
    request->is_waiting = false;
    request->cancel = NULL;
    if (!esk_connection_is_open(request->connection)) {
        eski_request_destroy(request);
        return false;
    }
    esk_connection_wake(request->connection);
    return true;
}

static void over_quota_passed(struct esk_timer *timer) {
    (void)is_back(ESK_CONTAINER(timer, struct eski_request, tail.timer));
}

static void cancel_timer(struct eski_request *request) {
    esk_timer_start(loop_of(request), &request->tail.timer, 0);
}

static void cancel_read(struct eski_request *request) {
    request->tail.is_over = true;
    esk_broker_consume_cancel(request->shard->broker, &request->tail.consume);
}

static void keep(struct eski_request *request) {
    struct esk_consume *consume = &request->tail.consume;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < consume->part_count; i++) {
        bytes += consume->parts[i].size;
    }
    if (!eski_request_take(request, bytes)) {
        request->tail.err = eski_out_of_memory(&request->error);
        return;
    }
    request->tail.charged_bytes = bytes;
    eski_consume_encoder_init(&request->tail.encoder, consume, request->tail.is_base64);
    request->tail.encoder.is_stream = true;
    request->tail.has_records = true;
}

static void consumed(struct esk_consume *consume, enum esk_err err) {
    struct eski_request *request = request_of(consume);
    if (err == ESK_ERR_THROTTLED && !request->tail.is_over) {
        request->cancel = cancel_timer;
        request->tail.timer.run = over_quota_passed;
        esk_timer_start(loop_of(request), &request->tail.timer,
                        esk_loop_now_ns(loop_of(request)) +
                            (uint64_t)consume->retry_after_s * 1000000000u);
        return;
    }
    if (err) {
        request->tail.err = err;
        request->error = consume->error;
    } else {
        keep(request);
    }
    (void)is_back(request);
}

static void read_on(struct eski_request *request) {
    struct esk_consume *consume = &request->tail.consume;
    consume->records_max = READ_RECORDS_MAX;
    consume->bytes_max = READ_BYTES_MAX;
    consume->wait_ms = WAIT_MS;
    consume->caller = &request->caller;
    consume->done = consumed;
    request->is_waiting = true;
    request->cancel = cancel_read;
    esk_broker_consume(request->shard->broker, consume);
}

/* --- the answer --- */

static void write_error(struct eski_request *request, struct esk_buffer *out) {
    struct esk_json_writer writer = esk_json_writer(out);
    const char *text = request->error.text;
    char visible[40];
    if (esk_err_http_status(request->tail.err) == 500) {
        eski_log_internal(request, request->tail.err, text, visible);
        text = visible;
    }
    esk_buffer_append_text(out, "event: error\ndata: ");
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "error");
    esk_json_write_text(&writer, *text ? text : esk_err_meaning(request->tail.err));
    esk_json_close_object(&writer);
    esk_buffer_append_text(out, "\n\n");
}

/* The next events of the last read; false: there are more of them. */
static bool encode(struct eski_request *request, struct esk_buffer *out) {
    struct eski_consume_encoder *encoder = &request->tail.encoder;
    struct esk_error error;
    error.text[0] = '\0';
    uint64_t before = encoder->record_bytes;
    enum esk_err err = eski_consume_encode(encoder, ESKI_FILL_BYTES, out, &error);
    esk_quota_charge_consume(&request->caller, encoder->record_bytes - before,
                             esk_loop_now_ns(loop_of(request)));
    if (err == ESK_ERR_AGAIN) {
        return false;
    }
    if (err) {
        request->tail.err = err;
        request->error = error;
        return true;
    }
    if (encoder->record_bytes == 0 && encoder->is_first_record) {
        esk_buffer_append_text(out, ": nothing new\n\n");
    }
    request->tail.consume.offset = encoder->walk.next_offset;
    return true;
}

static bool fill_tail(struct eski_request *request, struct esk_buffer *out) {
    if (request->tail.is_over || esk_connection_stopping(request->connection) ||
        esk_connection_input_ending(request->connection)) {
        request->keep_alive = false;
        return true;
    }
    if (!request->is_head_sent) { /* tells the client that it is connected */
        esk_buffer_append_text(out, ": tail\n\n");
        return false;
    }
    if (request->tail.has_records) {
        if (!encode(request, out)) {
            return false;
        }
        drop(request);
    }
    if (request->tail.err) {
        write_error(request, out);
        return true;
    }
    read_on(request);
    return false;
}

/* Within a record no event can follow: then the connection is cut. */
static bool cut_off(struct eski_request *request) {
    if (request->tail.has_records && eski_consume_encoder_is_within(&request->tail.encoder)) {
        return false;
    }
    drop(request);
    request->tail.is_over = false; /* its cancelled read is not the client's end */
    request->tail.err = esk_caller_revoked_error(&request->error);
    return true;
}

static void begin(struct eski_request *request) {
    request->clean = clean;
    request->cut_off = cut_off;
    eski_watch_key(request);
    request->response.content_type = "text/event-stream";
    request->response.more = "\r\nCache-Control: no-store";
    eski_respond_fill(request, fill_tail);
}

/* The read that finds out whether there is such a partition, and where it ends. */
static void found(struct esk_consume *consume, enum esk_err err) {
    struct eski_request *request = request_of(consume);
    uint64_t end = consume->high_watermark;
    esk_consume_fini(consume);
    if (err) {
        request->response.retry_after_s = err == ESK_ERR_THROTTLED ? consume->retry_after_s : 0;
        eski_fail(request, err, &consume->error);
        return;
    }
    bool is_within = !request->tail.is_at_end && request->tail.offset < end;
    consume->offset = is_within ? request->tail.offset : end;
    begin(request);
}

void eski_tail_run(struct eski_request *request) {
    struct esk_consume *consume = &request->tail.consume;
    request->tail.offset = consume->offset;
    consume->offset = INT64_MAX;
    consume->records_max = 1;
    consume->bytes_max = 1;
    consume->caller = &request->caller;
    consume->done = found;
    esk_broker_consume(request->shard->broker, consume);
}
