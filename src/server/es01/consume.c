/* SPDX-License-Identifier: Apache-2.0 */
/* Consume: the limits are clamped as on HTTP. What a client's reads may come to hold at once is
 * bounded; the next ones wait until it has taken their predecessors' answers. */
#include "server/es01/es01_private.h"

#include "base/assert.h"
#include "model/limits.h"
#include "model/names.h"
#include "runtime/loop.h"

#include <inttypes.h>

static struct eski_es01_request *request_of(struct esk_consume *consume) {
    return ESK_CONTAINER(consume, struct eski_es01_request, consume);
}

/* The texts are those of HTTP's fields. */
static enum esk_err out_of_range(const char *name, int64_t low, int64_t high,
                                 struct esk_error *error) {
    return esk_fail(error, ESK_ERR_INVALID, "%s must be an integer from %" PRId64 " to %" PRId64,
                    name, low, high);
}

static enum esk_err check(const struct esk_es01_consume *asked, struct esk_error *error) {
    enum esk_err err = esk_topic_name_check(asked->topic, error);
    if (err != ESK_OK) {
        return err;
    }
    if (asked->partition > INT32_MAX) {
        return out_of_range("partition", 0, INT32_MAX, error);
    }
    if (asked->offset > INT64_MAX) {
        return out_of_range("offset", 0, INT64_MAX, error);
    }
    if (asked->max_records == 0) {
        return out_of_range("max_records", 1, INT64_MAX, error);
    }
    return asked->max_bytes == 0 ? out_of_range("max_bytes", 1, INT64_MAX, error) : ESK_OK;
}

static void consumed(struct esk_consume *consume, enum esk_err err) {
    struct eski_es01_request *request = request_of(consume);
    if (err != ESK_OK) {
        eski_es01_fail(request, err, consume->error.text);
        return;
    }
    struct esk_error error;
    if (esk_caller_is_revoked(&request->client->caller)) {
        err = esk_caller_revoked_error(&error);
        eski_es01_fail(request, err, error.text);
        return;
    }
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < consume->part_count; i++) {
        bytes += consume->parts[i].size;
    }
    bool is_compressed = esk_consume_is_compressed(consume);
    if (is_compressed || request->client->gzip) {
        bytes += consume->bytes_max; /* the helper makes the answer whole */
    }
    if (!eski_es01_request_charge(request, bytes)) {
        eski_es01_out_of_memory(&error);
        eski_es01_fail(request, error.code, error.text);
        return;
    }
    request->answer = ESKI_ES01_ANSWER_RECORDS;
    if (is_compressed) {
        eski_es01_respond_measured(request);
        return;
    }
    err = eski_es01_measure(request, &error);
    if (err != ESK_OK) {
        eski_es01_fail(request, err, error.text);
        return;
    }
    struct eski_es01_client *client = request->client;
    bool is_open = !client->is_closed;
    eski_es01_respond(request);
    if (is_open && !esk_loop_turn_spent(client->shard->loop)) {
        eski_es01_answers_write(client); /* while what was read is in the processor's cache */
        if (!eski_es01_frames_may_take(client)) { /* else what is read could not be left */
            esk_connection_want_input(client->connection, false);
        }
    }
}

/* --- starting --- */

static void start(struct eski_es01_request *request) {
    struct esk_consume *consume = &request->consume;
    request->state = ESKI_ES01_RUNNING;
    request->read_bytes = consume->bytes_max;
    request->client->read_bytes += request->read_bytes;
    consume->done = consumed;
    consume->caller = &request->client->caller;
    esk_broker_consume(request->shard->broker, consume);
}

static bool has_room(const struct eski_es01_client *client, uint64_t bytes) {
    uint64_t most = 2 * esk_broker_shard_options(client->shard->broker)->fetch_bytes_max;
    return client->read_bytes == 0 || client->read_bytes + bytes <= most;
}

void eski_es01_consume_waiting(struct eski_es01_client *client) {
    struct esk_link *link;
    while ((link = esk_list_first(&client->consumes))) {
        struct eski_es01_request *request = ESK_CONTAINER(link, struct eski_es01_request, link);
        if (!has_room(client, request->consume.bytes_max)) {
            return;
        }
        esk_list_remove(link);
        start(request);
    }
}

void eski_es01_consume(struct eski_es01_client *client, uint32_t id, struct esk_slice payload) {
    struct esk_es01_consume asked;
    struct esk_error error;
    enum esk_err err = esk_es01_consume_parse(payload, &asked, &error);
    client->is_ending |= err != ESK_OK; /* a length lied */
    if (err == ESK_OK) {
        err = check(&asked, &error);
    }
    if (err != ESK_OK) {
        eski_es01_answer_error(client, id, ESK_ES01_CONSUME, err, error.text);
        return;
    }
    const struct esk_broker_options *limits = esk_broker_shard_options(client->shard->broker);
    struct eski_es01_request *request = eski_es01_request_create(client, id, ESK_ES01_CONSUME);
    err = eski_es01_set_topic(request, asked.topic, &error);
    ESK_ASSERT(err == ESK_OK); /* checked above */
    request->consume = (struct esk_consume){
        .topic = eski_es01_topic(request),
        .partition = asked.partition,
        .offset = asked.offset,
        .records_max = asked.max_records < limits->fetch_records_max ? asked.max_records
                                                                     : limits->fetch_records_max,
        .bytes_max =
            asked.max_bytes < limits->fetch_bytes_max ? asked.max_bytes : limits->fetch_bytes_max,
    };
    if (!esk_list_empty(&client->consumes) || !has_room(client, request->consume.bytes_max)) {
        request->state = ESKI_ES01_WAITING;
        esk_list_append(&client->consumes, &request->link);
        return;
    }
    start(request);
}
