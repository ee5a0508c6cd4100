/* SPDX-License-Identifier: Apache-2.0 */
/* Produce. Most frames are small and join a merge; the others are requests of their own.
 *
 * Order: produces of a client to one topic reach the broker in the order of their frames. What
 * can't be handed over at once, since the helper or the broker prepares it, is *held*: it stands in
 * client->produces, and later frames to its topic stand behind it. */
#include "server/es01/es01_private.h"

#include "base/assert.h"
#include "model/limits.h"

#include <inttypes.h>

#define LOOP_BYTES_MAX (256u << 10) /* of a payload that the loop takes apart: about 0.1 ms */
#define OTHERS_SHARE 8 /* of a payload: guess for the batches of all partitions but the first */

static void advance(struct eski_es01_client *client, struct esk_slice topic);

static struct eski_es01_request *request_of(struct esk_produce *produce) {
    return ESK_CONTAINER(produce, struct eski_es01_request, produce);
}

/* --- holding --- */

static struct eski_es01_request *first_held(const struct eski_es01_client *client,
                                            struct esk_slice topic) {
    for (struct esk_link *link = client->produces.next; link != &client->produces;
         link = link->next) {
        struct eski_es01_request *request = ESK_CONTAINER(link, struct eski_es01_request, link);
        if (esk_slice_equal(eski_es01_topic(request), topic)) {
            return request;
        }
    }
    return NULL;
}

static void hold(struct eski_es01_request *request, enum eski_es01_state state) {
    request->state = state;
    request->is_held = true;
    esk_list_append(&request->client->produces, &request->link);
}

static void release(struct eski_es01_request *request) {
    if (request->is_held) {
        request->is_held = false;
        esk_list_remove(&request->link);
    }
}

/* --- the way to the broker and back --- */

/* Ends the request with an error, after those behind it have been let go. */
static void fail(struct eski_es01_request *request, enum esk_err err, const char *text) {
    if (request->is_held) {
        release(request);
        advance(request->client, eski_es01_topic(request));
    }
    eski_es01_fail(request, err, text);
}

static void produced(struct esk_produce *produce, enum esk_err err) {
    struct eski_es01_request *request = request_of(produce);
    if (err != ESK_OK) {
        fail(request, err, produce->error.text);
        return;
    }
    if (request->is_held) {
        release(request);
        advance(request->client, eski_es01_topic(request));
    }
    request->answer = ESKI_ES01_ANSWER_RESULTS;
    request->answer_bytes = 4 + (uint64_t)produce->record_count * ESK_ES01_RESULT_BYTES;
    request->run.count = 0;
    eski_es01_respond(request);
}

/* Its turn has come. The grant is asked for again: it may have waited for long. */
static void start(struct eski_es01_request *request) {
    struct esk_error error;
    enum esk_err err =
        eski_es01_authorise(request->client, ESK_ES01_PRODUCE, eski_es01_topic(request), &error);
    if (err != ESK_OK) {
        release(request);
        eski_es01_fail(request, err, error.text);
        return;
    }
    eski_es01_merge_flush(request->shard, eski_es01_topic(request));
    request->state = ESKI_ES01_RUNNING;
    request->produce.done = produced;
    request->produce.owner = request->client->caller.owner;
    request->produce.caller = &request->client->caller;
    esk_broker_produce(request->shard->broker, &request->produce);
    if (!esk_broker_produce_waits(&request->produce)) {
        release(request);
    } else if (!request->is_held) {
        hold(request, ESKI_ES01_RUNNING);
    }
}

/* Starts what waits for the topic, in order, up to the first that is not ready. */
static void advance(struct eski_es01_client *client, struct esk_slice topic) {
    uint8_t name[ESK_TOPIC_NAME_BYTES_MAX]; /* the request that it belongs to may go */
    memcpy(name, topic.data, topic.size);
    topic.data = name;
    client->in_flight++;
    struct eski_es01_request *request;
    while ((request = first_held(client, topic)) && request->state == ESKI_ES01_WAITING) {
        start(request);
    }
    eski_es01_client_done(client);
}

/* --- records --- */

/* What a record can't have on the wire already. */
static enum esk_err check_record(const struct esk_es01_record *sent, uint32_t number,
                                 struct esk_error *error) {
    if (sent->partition < ESK_ES01_PARTITION_ANY) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "records[%" PRIu32 "].partition must be an integer from 0 to %d, or -1",
                        number, INT32_MAX);
    }
    if (sent->sequence < 0 && sent->sequence != ESK_ES01_SEQUENCE_NONE) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "records[%" PRIu32 "].sequence must be an integer from 0 to %" PRId64,
                        number, INT64_MAX);
    }
    return ESK_OK;
}

/* Begins the broker's produce, with a guess at the size of its payload. In the loop. */
static enum esk_err open_produce(struct eski_es01_request *request, size_t bytes) {
    struct esk_produce *produce = &request->produce;
    produce->topic = eski_es01_topic(request);
    enum esk_err err =
        esk_produce_open(request->shard->broker, produce, bytes, bytes / OTHERS_SHARE);
    if (err != ESK_OK) {
        request->error = produce->error;
    }
    return err;
}

/* The payload, which is whole, into the batches of the produce, unless there is an error already.
 * All of it is looked at: lengths that do not fit end the connection. In the loop, or on the
 * helper. */
static enum esk_err read_records(struct eski_es01_request *request, struct esk_slice payload,
                                 enum esk_err err) {
    struct esk_produce *produce = &request->produce;
    struct esk_error *error = &request->error;
    struct esk_es01_produce head;
    struct esk_reader reader;
    request->is_malformed = esk_es01_produce_parse(payload, &head, &reader, error) != ESK_OK;
    if (request->is_malformed) {
        return ESK_ERR_INVALID;
    }
    if (!eski_es01_request_charge(request, head.record_count * ESK_PRODUCE_RECORD_BYTES)) {
        return eski_es01_out_of_memory(error);
    }
    produce->producer_id = head.producer_id;
    for (uint32_t i = 0; i < head.record_count; i++) {
        struct esk_es01_record sent;
        esk_es01_record_read(&reader, &sent);
        if (err == ESK_OK && !reader.failed) {
            err = check_record(&sent, i, error);
        }
        if (err == ESK_OK && !reader.failed) {
            err = eski_es01_put(produce, &sent);
            if (err != ESK_OK) {
                *error = produce->error;
            }
        }
    }
    if (reader.failed || esk_reader_left(&reader)) {
        request->is_malformed = true;
        return esk_fail(error, ESK_ERR_INVALID,
                        "the lengths of the records do not fit the payload");
    }
    if (err == ESK_OK) {
        err = esk_produce_seal(produce);
        if (err != ESK_OK) {
            *error = produce->error;
        }
    }
    return err;
}

/* Read, or not: starts, or waits for its turn. */
static void arrange(struct eski_es01_request *request, enum esk_err err) {
    struct eski_es01_client *client = request->client;
    if (!request->produce.producer_id.data) { /* which is of the payload */
        esk_buffer_fini(&request->body);
        esk_buffer_fini(&request->plain);
    }
    if (err != ESK_OK) {
        client->is_ending |= request->is_malformed;
        fail(request, err, request->error.text);
    } else if (request->is_held) {
        request->state = ESKI_ES01_WAITING;
        advance(client, eski_es01_topic(request));
    } else if (first_held(client, eski_es01_topic(request))) {
        hold(request, ESKI_ES01_WAITING);
    } else {
        start(request);
    }
}

/* --- on the helper --- */

static void on_prepared(struct esk_mail *mail) {
    struct eski_es01_request *request = ESK_CONTAINER(mail, struct eski_es01_request, mail);
    arrange(request, request->result);
}

static void on_helper(struct esk_mail *mail) {
    struct eski_es01_request *request = ESK_CONTAINER(mail, struct eski_es01_request, mail);
    enum esk_err opened = request->result;
    struct esk_slice payload = esk_buffer_slice(&request->body);
    enum esk_err inflated = ESK_OK;
    if (request->inflater) {
        inflated = eski_es01_inflate_rest(request, &request->error);
        payload = esk_buffer_slice(&request->plain);
    }
    request->result = inflated != ESK_OK ? inflated : read_records(request, payload, opened);
    eski_es01_request_back(request, on_prepared);
}

static void prepare_on_helper(struct eski_es01_request *request) {
    hold(request, ESKI_ES01_PREPARING);
    eski_es01_request_to_helper(request, on_helper);
}

/* --- from the frame --- */

void eski_es01_produce_packed(struct eski_es01_request *request) {
    struct eski_es01_shard *shard = request->shard;
    struct esk_slice topic;
    enum esk_err err = esk_es01_topic_parse(esk_buffer_slice(&shard->inflated), &topic);
    ESK_ASSERT(err == ESK_OK); /* it was authorised by it */
    err = eski_es01_set_topic(request, topic, &request->error);
    if (err != ESK_OK) {
        eski_es01_fail(request, err, request->error.text);
        return;
    }
    request->result = open_produce(request, shard->inflated.size + request->packed.size);
    eski_es01_inflate_lend(request);
    prepare_on_helper(request);
}

void eski_es01_produce(struct eski_es01_client *client, uint32_t id, struct esk_slice payload,
                       struct eski_es01_request *request) {
    struct esk_es01_produce head;
    struct esk_reader records;
    struct esk_error error;
    enum esk_err err = esk_es01_produce_parse(payload, &head, &records, &error);
    /* By its fields: gcc would load it with one instruction, which waits until the two stores that
     * wrote it have left the processor: 5 % of the CPU of small frames. */
    struct esk_slice topic = esk_slice(head.topic.data, head.topic.size);
    if (err == ESK_OK && !head.producer_id.data && !first_held(client, topic) &&
        eski_es01_merge_add(client, id, topic, head.record_count,
                            esk_slice(records.at, esk_reader_left(&records)))) {
        if (request) {
            eski_es01_request_destroy(request);
        }
        return;
    }
    if (!request) {
        request = eski_es01_request_create(client, id, ESK_ES01_PRODUCE);
    }
    if (payload.data != request->body.data) {
        request->body.size = 0;
        esk_buffer_append(&request->body, payload.data, payload.size);
        payload = esk_buffer_slice(&request->body);
    }
    request->is_malformed = err != ESK_OK;
    if (err == ESK_OK) {
        err = eski_es01_set_topic(request, head.topic, &error);
    }
    if (err == ESK_OK && request->charged_bytes == 0 &&
        !eski_es01_request_charge(request, payload.size)) {
        err = eski_es01_out_of_memory(&error);
    }
    if (err != ESK_OK) {
        client->is_ending |= request->is_malformed;
        eski_es01_fail(request, err, error.text);
        return;
    }
    err = open_produce(request, payload.size);
    if (head.record_count > ESKI_ES01_LOOP_RECORDS_MAX || payload.size > LOOP_BYTES_MAX) {
        request->result = err;
        prepare_on_helper(request);
    } else {
        arrange(request, read_records(request, payload, err));
    }
}
