/* SPDX-License-Identifier: Apache-2.0 */
/* From input to frames. A small frame is looked at where it lies in the input, once it is whole; a
 * larger one is collected in a request, and refused at its beginning if its topic is not the
 * client's. What remains of a refused frame is skipped. */
#include "server/es01/es01_private.h"

#include <stdio.h>

#define COLLECT_AT_ONCE_BYTES (256 * 1024) /* memory for a frame before its bytes are there */
#define DIRECT_BYTES_MIN (32 * 1024)       /* of a frame that is read to where it is collected */

static bool is_known(uint8_t opcode) {
    return opcode == ESK_ES01_PRODUCE || opcode == ESK_ES01_CONSUME || opcode == ESK_ES01_PING;
}

void eski_es01_frames_end(struct eski_es01_client *client, uint32_t id, enum esk_err err,
                          const char *text) {
    client->is_ending = true;
    eski_es01_answer_error(client, id, 0, err, text);
}

/* Answers a frame that is not to be carried out; `request` may be NULL. */
static void refuse(struct eski_es01_client *client, uint32_t id, uint8_t opcode,
                   struct eski_es01_request *request, bool is_malformed, enum esk_err err,
                   const char *text) {
    client->is_ending |= is_malformed;
    eski_es01_answer_error(client, id, opcode, err, text);
    if (request) {
        eski_es01_request_destroy(request);
    }
}

/* --- whole frames --- */

/* A ping's answer is its payload as it came; with gzip that is looked through before. */
static void ping(struct eski_es01_client *client, uint32_t id, struct esk_slice payload,
                 struct eski_es01_request *request) {
    struct esk_error error;
    struct esk_slice packed = payload;
    bool is_malformed = false;
    enum eski_es01_inflated inflated = ESKI_ES01_INFLATED;
    if (client->gzip && payload.size) {
        inflated = eski_es01_inflate(client, ESK_ES01_PING, &packed, &is_malformed, &error);
    } else if (eski_es01_authorise(client, ESK_ES01_PING, esk_slice(NULL, 0), &error) != ESK_OK) {
        inflated = ESKI_ES01_INFLATED_REFUSED;
    }
    if (inflated == ESKI_ES01_INFLATED_REFUSED) {
        refuse(client, id, ESK_ES01_PING, request, is_malformed, error.code, error.text);
    } else if (inflated == ESKI_ES01_INFLATED_PART) {
        if (!request) {
            request = eski_es01_request_create(client, id, ESK_ES01_PING);
            esk_buffer_append(&request->body, payload.data, payload.size);
        }
        size_t begun = payload.size - packed.size;
        request->packed = esk_slice(request->body.data + begun, packed.size);
        eski_es01_ping_packed(request);
    } else if (request) {
        eski_es01_ping_echo(request);
    } else {
        eski_es01_answer(client, id, ESK_ES01_PING, payload, true,
                         esk_loop_now_ns(client->shard->loop));
    }
}

/* The rest of a compressed produce, which is more than the loop inflates. */
static void go_on_packed(struct eski_es01_client *client, uint32_t id, struct esk_slice rest,
                         struct eski_es01_request *request) {
    if (!request) {
        request = eski_es01_request_create(client, id, ESK_ES01_PRODUCE);
        esk_buffer_append(&request->body, rest.data, rest.size);
        rest = esk_buffer_slice(&request->body);
    }
    request->packed = rest;
    eski_es01_produce_packed(request);
}

/* A produce or consume. */
static void carry_out(struct eski_es01_client *client, uint32_t id, uint8_t opcode,
                      struct esk_slice payload, struct eski_es01_request *request) {
    struct esk_error error;
    bool is_malformed = false;
    if (client->gzip && payload.size) {
        enum eski_es01_inflated inflated =
            eski_es01_inflate(client, opcode, &payload, &is_malformed, &error);
        if (inflated == ESKI_ES01_INFLATED_REFUSED) {
            refuse(client, id, opcode, request, is_malformed, error.code, error.text);
            return;
        }
        if (inflated == ESKI_ES01_INFLATED_PART) {
            go_on_packed(client, id, payload, request);
            return;
        }
        payload = esk_buffer_slice(&client->shard->inflated);
    } else {
        struct esk_slice topic;
        enum esk_err err = esk_es01_topic_parse(payload, &topic);
        if (err != ESK_OK) {
            refuse(client, id, opcode, request, true, ESK_ERR_INVALID,
                   "topic_len goes beyond the payload");
            return;
        }
        err = eski_es01_authorise(client, opcode, topic, &error);
        if (err != ESK_OK) {
            refuse(client, id, opcode, request, false, err, error.text);
            return;
        }
    }
    if (opcode == ESK_ES01_PRODUCE) {
        eski_es01_produce(client, id, payload, request);
        return;
    }
    eski_es01_consume(client, id, payload);
    if (request) {
        eski_es01_request_destroy(request);
    }
}

static void whole(struct eski_es01_client *client, uint32_t id, uint8_t opcode,
                  struct esk_slice payload, struct eski_es01_request *request) {
    client->partial_since_ns = 0;
    if (opcode == ESK_ES01_PING) {
        ping(client, id, payload, request);
    } else {
        carry_out(client, id, opcode, payload, request);
    }
}

/* --- collecting --- */

static void note_partial(struct eski_es01_client *client, uint64_t bytes) {
    if (client->partial_since_ns == 0) {
        client->partial_since_ns = esk_loop_now_ns(client->shard->loop);
    }
    client->partial_bytes = bytes;
}

static bool skip(struct eski_es01_client *client) {
    size_t size = esk_connection_input(client->connection).size;
    size = size < client->skip_bytes ? size : client->skip_bytes;
    esk_connection_consume(client->connection, size);
    client->skip_bytes -= size;
    if (client->skip_bytes == 0) {
        client->partial_since_ns = 0;
    }
    return size > 0;
}

/* No bytes go to its memory any more. */
static struct eski_es01_request *take_incoming(struct eski_es01_client *client) {
    struct eski_es01_request *request = client->incoming;
    client->incoming = NULL;
    request->body.size += esk_connection_read_count(client->connection);
    esk_connection_read_into(client->connection, NULL, 0);
    return request;
}

void eski_es01_frames_refuse(struct eski_es01_client *client, enum esk_err err, const char *text) {
    struct eski_es01_request *request = take_incoming(client);
    client->skip_bytes = request->payload_bytes - request->body.size;
    refuse(client, request->id, request->opcode, request, false, err, text);
}

/* Room for `more` bytes of the payload, doubled as they come, never beyond the frame; the budget is
 * charged for what is allocated. false: it is not given, the frame is refused. */
static bool reserve(struct eski_es01_client *client, struct eski_es01_request *request,
                    size_t more) {
    struct esk_buffer *body = &request->body;
    if (body->capacity - body->size >= more) {
        return true;
    }
    size_t capacity =
        body->capacity * 2 > COLLECT_AT_ONCE_BYTES ? body->capacity * 2 : COLLECT_AT_ONCE_BYTES;
    capacity = capacity < body->size + more ? body->size + more : capacity;
    capacity = capacity < request->payload_bytes ? capacity : request->payload_bytes;
    size_t before = body->capacity;
    body->data = esk_realloc(body->data, capacity);
    body->capacity = capacity;
    if (request->claim.is_granted || eski_es01_request_charge(request, capacity - before)) {
        return true;
    }
    struct esk_error error;
    eski_es01_out_of_memory(&error);
    eski_es01_frames_refuse(client, error.code, error.text);
    return false;
}

/* Has the rest of a large frame, of which there is some, read to where it belongs. */
static bool read_rest(struct eski_es01_client *client, struct eski_es01_request *request) {
    struct esk_buffer *body = &request->body;
    if (request->payload_bytes < DIRECT_BYTES_MIN || body->size == 0) {
        return true;
    }
    if (!reserve(client, request, 1)) {
        return false;
    }
    size_t room = body->capacity - body->size;
    esk_connection_read_into(client->connection, body->data + body->size,
                             room < COLLECT_AT_ONCE_BYTES ? room : COLLECT_AT_ONCE_BYTES);
    return true;
}

/* As soon as the topic is there, asks whether the client may: the rest need not come then. */
static bool check_beginning(struct eski_es01_client *client, struct eski_es01_request *request) {
    if (request->is_authorised || request->opcode == ESK_ES01_PING) {
        return true;
    }
    struct esk_slice topic;
    struct esk_error error;
    enum esk_err err =
        eski_es01_peek_topic(client, esk_buffer_slice(&request->body), &topic, &error);
    if (err == ESK_OK) {
        err = eski_es01_authorise(client, request->opcode, topic, &error);
        if (err != ESK_OK) {
            eski_es01_frames_refuse(client, err, error.text);
            return false;
        }
    }
    request->is_authorised = err != ESK_ERR_AGAIN; /* what is no gzip is told when it is whole */
    return true;
}

/* Takes payload bytes from the input; false: more must come. */
static bool collect(struct eski_es01_client *client) {
    struct eski_es01_request *request = client->incoming;
    struct esk_slice input = esk_connection_input(client->connection);
    size_t direct = esk_connection_read_count(client->connection);
    request->body.size += direct;
    size_t missing = request->payload_bytes - request->body.size;
    size_t size = input.size < missing ? input.size : missing;
    if (size) {
        if (!reserve(client, request, size)) {
            return true;
        }
        esk_buffer_append(&request->body, input.data, size);
        esk_connection_consume(client->connection, size);
    }
    if (size < missing) {
        bool is_refused = (size || direct) && !check_beginning(client, request);
        return is_refused || !read_rest(client, request);
    }
    (void)take_incoming(client);
    whole(client, request->id, request->opcode, esk_buffer_slice(&request->body), request);
    return true;
}

/* --- beginning --- */

static void on_granted(struct esk_memory_claim *claim) {
    struct eski_es01_request *request = ESK_CONTAINER(claim, struct eski_es01_request, claim);
    struct eski_es01_client *client = request->client;
    request->state = ESKI_ES01_COLLECTING;
    client->partial_since_ns = esk_loop_now_ns(request->shard->loop); /* its time begins anew */
    eski_es01_client_wake(client);
}

/* Whether the frame may be read now; else it is when its memory is granted. */
static bool has_claimed(struct eski_es01_request *request) {
    if (request->payload_bytes <= ESKI_ES01_UNCLAIMED_BYTES_MAX) {
        return true;
    }
    request->claim.kind = ESK_MEMORY_BODY;
    request->claim.bytes = request->payload_bytes;
    request->claim.granted = on_granted;
    if (esk_broker_memory_claim(request->shard->broker, &request->claim)) {
        return true;
    }
    request->state = ESKI_ES01_CLAIMING;
    return false;
}

/* The frame at the front of the input; false: more must come. */
static bool begin(struct eski_es01_client *client) {
    struct esk_connection *connection = client->connection;
    struct esk_slice input = esk_connection_input(connection);
    if (input.size == 0) {
        client->partial_since_ns = 0;
        return false;
    }
    struct esk_es01_frame frame;
    struct esk_error error;
    uint64_t length_max = esk_es01_length_max(client->shard->es01->options.body_bytes_max);
    enum esk_err err = esk_es01_frame_parse(input, length_max, &frame, &error);
    if (err == ESK_ERR_AGAIN) {
        note_partial(client, 0);
        return false;
    }
    if (err != ESK_OK) {
        eski_es01_frames_end(client, frame.request_id, err, error.text);
        return true;
    }
    size_t payload_bytes = esk_es01_payload_bytes(&frame);
    size_t there = input.size - ESK_ES01_FRAME_HEAD_BYTES;
    if (!is_known(frame.opcode)) {
        char text[64];
        (void)snprintf(text, sizeof text, "unknown opcode 0x%02x", frame.opcode);
        esk_connection_consume(connection, ESK_ES01_FRAME_HEAD_BYTES);
        client->skip_bytes = payload_bytes;
        eski_es01_answer_error(client, frame.request_id, frame.opcode, ESK_ERR_INVALID, text);
        return true;
    }
    if (there >= payload_bytes) {
        whole(client, frame.request_id, frame.opcode,
              esk_slice(input.data + ESK_ES01_FRAME_HEAD_BYTES, payload_bytes), NULL);
        esk_connection_consume(connection, ESK_ES01_FRAME_HEAD_BYTES + payload_bytes);
        return true;
    }
    note_partial(client, payload_bytes);
    if (payload_bytes <= ESKI_ES01_SMALL_BYTES) {
        return false; /* waits in the input */
    }
    client->incoming = eski_es01_request_create(client, frame.request_id, frame.opcode);
    client->incoming->payload_bytes = (uint32_t)payload_bytes;
    esk_connection_consume(connection, ESK_ES01_FRAME_HEAD_BYTES);
    return !has_claimed(client->incoming) || collect(client);
}

bool eski_es01_frames_may_take(const struct eski_es01_client *client) {
    const struct esk_connection *connection = client->connection;
    if (esk_connection_output_bytes(connection) >= ESK_CONNECTION_OUTPUT_BYTES_MAX) {
        return false;
    }
    if (client->incoming) {
        return client->incoming->state != ESKI_ES01_CLAIMING;
    }
    return client->in_flight < ESK_CONNECTION_REQUESTS_MAX;
}

static void drop_incoming(struct eski_es01_client *client) {
    client->partial_since_ns = 0;
    if (client->incoming) {
        eski_es01_request_destroy(take_incoming(client));
    }
}

void eski_es01_frames_take(struct eski_es01_client *client) {
    struct esk_connection *connection = client->connection;
    unsigned taken = 0;
    bool goes_on = true;
    while (!client->is_ending && !esk_connection_stopping(connection) && goes_on) {
        if (!eski_es01_frames_may_take(client)) { /* more is done, sent, or given back first */
            if (!client->incoming) {
                client->partial_since_ns = 0;
            }
            esk_connection_want_input(connection, false);
            return;
        }
        if (++taken > ESKI_ES01_FRAMES_PER_TURN) {
            esk_connection_wake(connection);
            return;
        }
        goes_on = client->skip_bytes && skip(client) ? true
                  : client->skip_bytes               ? false
                  : client->incoming                 ? collect(client)
                                                     : begin(client);
    }
    client->is_ending |= !goes_on && esk_connection_input_ended(connection);
    bool reads_on = !client->is_ending && !esk_connection_stopping(connection);
    esk_connection_want_input(connection, reads_on);
    if (!reads_on) {
        drop_incoming(client);
    }
}
