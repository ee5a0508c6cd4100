/* SPDX-License-Identifier: Apache-2.0 */
/* Answers. One that is small goes straight into the connection's output; others wait in the
 * client's line and are written piece by piece, as the client takes them, since nothing may come
 * between the pieces of a frame. Compressed ones are made whole first: their length comes before
 * them. */
#include "server/es01/es01_private.h"

#include "base/assert.h"
#include "broker/quotas.h"

#include <stdio.h>

#define DIRECT_BYTES_MAX (ESK_CONNECTION_RESERVE_BYTES_MAX - ESK_ES01_FRAME_HEAD_BYTES)

/* --- metrics --- */

static enum eski_es01_operation operation_of(uint8_t opcode) {
    return opcode == ESK_ES01_PRODUCE   ? ESKI_ES01_OPERATION_PRODUCE
           : opcode == ESK_ES01_CONSUME ? ESKI_ES01_OPERATION_CONSUME
           : opcode == ESK_ES01_PING    ? ESKI_ES01_OPERATION_PING
                                        : ESKI_ES01_OPERATION_NONE;
}

void eski_es01_count(struct eski_es01_shard *shard, uint8_t opcode, bool is_error,
                     uint64_t started_ns) {
    enum eski_es01_operation operation = operation_of(opcode);
    esk_counter_add(&shard->requests[operation], 1);
    if (is_error) {
        esk_counter_add(&shard->errors[operation], 1);
    }
    uint64_t now_ns = esk_loop_now_ns(shard->loop);
    esk_histogram_record(&shard->durations[operation],
                         now_ns > started_ns ? now_ns - started_ns : 0);
}

/* --- writing --- */

static struct esk_slice deflate_here(struct eski_es01_shard *shard, struct esk_slice payload) {
    shard->deflated.size = 0;
    esk_es01_deflate(shard->deflater, payload, &shard->deflated);
    return esk_buffer_slice(&shard->deflated);
}

/* Records, without copying large values: the request stays until these are sent. */
static void lend_piece(struct eski_es01_request *request) {
    struct esk_block *block = esk_connection_block_take(request->client->connection);
    if (!request->is_head_sent) {
        esk_es01_frame_write(block->data, request->answer_bytes, request->id,
                             request->answer_opcode);
        block->size = ESK_ES01_FRAME_HEAD_BYTES;
        request->is_head_sent = true;
    }
    request->is_lent = true;
    eski_es01_lend_records(request, block);
}

/* The next piece of a request's answer. */
static void write_piece(struct eski_es01_request *request) {
    struct esk_connection *connection = request->client->connection;
    uint64_t left = request->answer_bytes - request->written_bytes;
    if (request->answer == ESKI_ES01_ANSWER_RECORDS && left > DIRECT_BYTES_MAX) {
        lend_piece(request);
        return;
    }
    size_t head_bytes = request->is_head_sent ? 0 : ESK_ES01_FRAME_HEAD_BYTES;
    struct esk_block *block = NULL;
    uint8_t *start;
    uint8_t *end;
    if (left <= DIRECT_BYTES_MAX) {
        start = esk_connection_reserve(connection, head_bytes + left);
        end = start + head_bytes + left;
    } else {
        block = esk_connection_block_take(connection);
        start = block->data;
        end = start + block->capacity;
    }
    if (!request->is_head_sent) {
        esk_es01_frame_write(start, request->answer_bytes, request->id, request->answer_opcode);
        request->is_head_sent = true;
    }
    uint8_t *at = left ? eski_es01_encode(request, start + head_bytes, end) : start + head_bytes;
    request->written_bytes += (uint64_t)(at - start) - head_bytes;
    if (block) {
        block->size = (uint32_t)(at - start);
        esk_connection_write_block(connection, &block, 0, (uint32_t)(at - start));
    } else {
        esk_connection_commit(connection, (size_t)(at - start));
    }
}

static bool is_written(const struct eski_es01_request *request) {
    return request->is_head_sent && request->written_bytes == request->answer_bytes;
}

/* What is lent leaves at once, as far as the socket takes it. The answers behind such a request
 * wait until all of it is sent. */
void eski_es01_answers_write(struct eski_es01_client *client) {
    struct esk_connection *connection = client->connection;
    struct esk_link *link;
    while ((link = esk_list_first(&client->answers))) {
        struct eski_es01_request *request = ESK_CONTAINER(link, struct eski_es01_request, link);
        size_t output_bytes = esk_connection_output_bytes(connection);
        if (output_bytes >= ESK_CONNECTION_OUTPUT_BYTES_MAX ||
            (output_bytes && is_written(request))) {
            return; /* `serve` comes when the client has taken some of it */
        }
        if (!is_written(request)) {
            write_piece(request);
        }
        bool is_lent = request->is_lent;
        if (is_lent) {
            esk_connection_flush(connection);
        }
        bool is_done =
            is_written(request) && (!is_lent || esk_connection_output_bytes(connection) == 0);
        if (is_done) {
            eski_es01_request_destroy(request);
        }
        if (is_lent || !is_done) {
            esk_connection_wake(connection); /* the others have their turn first */
            return;
        }
    }
}

/* --- answers without a request --- */

void eski_es01_answer(struct eski_es01_client *client, uint32_t id, uint8_t opcode,
                      struct esk_slice payload, bool is_packed, uint64_t started_ns) {
    if (client->is_closed) {
        return;
    }
    if (client->gzip && !is_packed && payload.size) {
        payload = deflate_here(client->shard, payload);
    }
    if (payload.size > DIRECT_BYTES_MAX || !esk_list_empty(&client->answers)) {
        struct eski_es01_request *request = eski_es01_request_create(client, id, opcode);
        request->started_ns = started_ns;
        esk_buffer_append(&request->text, payload.data, payload.size);
        eski_es01_respond_text(request, true);
        return;
    }
    size_t size = ESK_ES01_FRAME_HEAD_BYTES + payload.size;
    uint8_t *out = esk_connection_reserve(client->connection, size);
    esk_es01_frame_write(out, payload.size, id, (uint8_t)(opcode | 0x80));
    if (payload.size) {
        memcpy(out + ESK_ES01_FRAME_HEAD_BYTES, payload.data, payload.size);
    }
    esk_connection_commit(client->connection, size);
    eski_es01_count(client->shard, opcode, false, started_ns);
    eski_es01_client_wake(client);
}

/* What the client may see; internal errors keep their text for the log, the client gets an id. */
static const char *visible(struct eski_es01_shard *shard, enum esk_err *err, const char *text,
                           char internal[40]) {
    if (esk_err_http_status(*err) != 500) {
        return text && *text ? text : esk_err_meaning(*err);
    }
    const struct esk_es01_options *options = &shard->es01->options;
    uint32_t number;
    esk_random_bytes(options->platform, &number, sizeof number);
    char id[9];
    (void)snprintf(id, sizeof id, "%08x", number);
    (void)snprintf(internal, 40, "internal error (id %s)", id);
    ESK_LOG(options->log, ESK_LOG_ERROR, "internal-error", text ? text : "",
            esk_field_text("id", id), esk_field_text("code", esk_err_name(*err)),
            esk_field_text("operation", "es01"));
    *err = ESK_ERR_INTERNAL;
    return internal;
}

void eski_es01_answer_error(struct eski_es01_client *client, uint32_t id, uint8_t opcode,
                            enum esk_err err, const char *text) {
    if (client->is_closed) {
        return;
    }
    struct eski_es01_request *request = eski_es01_request_create(client, id, opcode);
    eski_es01_fail(request, err, text);
}

/* --- the answers of requests --- */

/* Into the line; the answer is as it goes out. */
static void queue(struct eski_es01_request *request) {
    struct eski_es01_client *client = request->client;
    bool is_error = request->answer_opcode == ESK_ES01_ERROR;
    eski_es01_count(request->shard, request->opcode, is_error, request->started_ns);
    if (client->is_closed) {
        eski_es01_request_destroy(request);
        return;
    }
    if (request->record_bytes) {
        esk_quota_charge_consume(&client->caller, request->record_bytes,
                                 esk_loop_now_ns(request->shard->loop));
    }
    request->state = ESKI_ES01_ANSWERING;
    esk_list_append(&client->answers, &request->link);
    eski_es01_client_wake(client);
}

static void on_encoded(struct esk_mail *mail) {
    struct eski_es01_request *request = ESK_CONTAINER(mail, struct eski_es01_request, mail);
    if (request->result) {
        eski_es01_fail(request, request->result, request->error.text);
        return;
    }
    queue(request);
}

static void answer_by_text(struct eski_es01_request *request, struct esk_buffer *text) {
    esk_buffer_fini(&request->text);
    request->text = *text;
    request->answer = ESKI_ES01_ANSWER_BYTES;
    request->answer_bytes = text->size;
    request->written_bytes = 0;
}

/* All of the payload, compressed, into request->text. Any thread that owns the request. */
static void encode_packed(struct eski_es01_request *request, struct esk_es01_deflater *deflater,
                          struct esk_buffer *scratch) {
    struct esk_buffer packed;
    esk_buffer_init(&packed);
    esk_es01_deflate_begin(deflater);
    while (request->written_bytes < request->answer_bytes) {
        scratch->size = 0;
        uint8_t *start = esk_buffer_grow(scratch, ESK_CONNECTION_BLOCK_BYTES);
        uint8_t *end = eski_es01_encode(request, start, start + ESK_CONNECTION_BLOCK_BYTES);
        request->written_bytes += (uint64_t)(end - start);
        esk_es01_deflate_more(deflater, esk_slice(start, (size_t)(end - start)), false, &packed);
    }
    esk_es01_deflate_more(deflater, esk_slice(NULL, 0), true, &packed);
    answer_by_text(request, &packed);
}

/* The same, as it is. */
static void encode_plain(struct eski_es01_request *request) {
    struct esk_buffer plain;
    esk_buffer_init(&plain);
    uint8_t *start = esk_buffer_grow(&plain, request->answer_bytes);
    uint8_t *end = eski_es01_encode(request, start, start + request->answer_bytes);
    plain.size = (size_t)(end - start);
    ESK_ASSERT(plain.size == request->answer_bytes);
    answer_by_text(request, &plain);
}

static void on_helper(struct esk_mail *mail) {
    struct eski_es01_request *request = ESK_CONTAINER(mail, struct eski_es01_request, mail);
    request->result = ESK_OK;
    if (request->is_to_measure) {
        request->result = eski_es01_measure(request, &request->error);
    }
    if (request->result == ESK_OK && request->client->gzip) {
        struct esk_buffer scratch;
        esk_buffer_init(&scratch);
        encode_packed(request, request->shard->es01->helper_deflater, &scratch);
        esk_buffer_fini(&scratch);
    } else if (request->result == ESK_OK) {
        encode_plain(request);
    }
    eski_es01_request_back(request, on_encoded);
}

static void encode_on_helper(struct eski_es01_request *request) {
    request->state = ESKI_ES01_ENCODING;
    eski_es01_request_to_helper(request, on_helper);
}

void eski_es01_respond(struct eski_es01_request *request) {
    struct eski_es01_client *client = request->client;
    struct eski_es01_shard *shard = request->shard;
    request->written_bytes = 0;
    if (!client->gzip || request->is_packed || request->answer_bytes == 0 || client->is_closed) {
        queue(request);
    } else if (request->answer_bytes <= ESKI_ES01_DEFLATE_BYTES_MAX) {
        encode_packed(request, shard->deflater, &shard->encoded);
        queue(request);
    } else {
        encode_on_helper(request);
    }
}

void eski_es01_respond_measured(struct eski_es01_request *request) {
    request->is_to_measure = true;
    encode_on_helper(request);
}

void eski_es01_respond_text(struct eski_es01_request *request, bool is_packed) {
    request->answer = ESKI_ES01_ANSWER_BYTES;
    request->answer_bytes = request->text.size;
    request->is_packed = is_packed;
    eski_es01_respond(request);
}

void eski_es01_fail(struct eski_es01_request *request, enum esk_err err, const char *text) {
    ESK_ASSERT(err != ESK_OK);
    char internal[40];
    text = visible(request->shard, &err, text, internal);
    request->text.size = 0;
    uint8_t *out = esk_buffer_grow(&request->text, ESK_ES01_ERROR_BYTES_MAX);
    request->text.size = esk_es01_error_write(err, text, out);
    request->answer_opcode = ESK_ES01_ERROR;
    eski_es01_respond_text(request, false);
}
