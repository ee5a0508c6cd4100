/* SPDX-License-Identifier: Apache-2.0 */
/* A request's memory and its way to the helper and back. Requests are reused by their shard; each
 * keeps small buffers. */
#include "server/es01/es01_private.h"

#include "base/assert.h"
#include "model/names.h"

#include <stdlib.h>

#define POOL_MAX 256
#define BUFFER_BYTES_KEPT (16 * 1024) /* a request of the pool keeps this for its next payload */

enum esk_err eski_es01_out_of_memory(struct esk_error *error) {
    return esk_fail(error, ESK_ERR_UNAVAILABLE,
                    "the broker's memory for requests is in use; try again");
}

struct eski_es01_request *eski_es01_request_create(struct eski_es01_client *client, uint32_t id,
                                                   uint8_t opcode) {
    struct eski_es01_shard *shard = client->shard;
    struct eski_es01_request *request = shard->pool;
    if (request) {
        shard->pool = request->next;
        shard->pool_count--;
    } else {
        request = esk_alloc_zeroed(1, sizeof *request);
        esk_buffer_init(&request->body);
        esk_buffer_init(&request->plain);
        esk_buffer_init(&request->text);
    }
    esk_list_init(&request->link);
    request->shard = shard;
    request->client = client;
    request->id = id;
    request->opcode = opcode;
    request->answer_opcode = (uint8_t)(opcode | 0x80);
    request->started_ns = esk_loop_now_ns(shard->loop);
    client->in_flight++;
    return request;
}

static void forget(struct esk_buffer *buffer) {
    if (buffer->capacity > BUFFER_BYTES_KEPT) {
        esk_buffer_fini(buffer);
    }
    buffer->size = 0;
}

static void fini(struct eski_es01_request *request) {
    esk_buffer_fini(&request->body);
    esk_buffer_fini(&request->plain);
    esk_buffer_fini(&request->text);
}

/* Into the pool, all but its memory forgotten. */
static void recycle(struct eski_es01_request *request) {
    struct eski_es01_shard *shard = request->shard;
    forget(&request->body);
    forget(&request->plain);
    forget(&request->text);
    struct eski_es01_request empty = {.shard = shard,
                                      .body = request->body,
                                      .plain = request->plain,
                                      .text = request->text,
                                      .next = shard->pool};
    *request = empty;
    shard->pool = request;
    shard->pool_count++;
}

void eski_es01_request_destroy(struct eski_es01_request *request) {
    struct eski_es01_shard *shard = request->shard;
    struct eski_es01_client *client = request->client;
    ESK_ASSERT(!request->is_held);
    esk_list_remove(&request->link);
    if (request->opcode == ESK_ES01_CONSUME) {
        esk_consume_walk_end(&request->walk);
        esk_consume_fini(&request->consume);
        client->read_bytes -= request->read_bytes;
    } else if (request->opcode == ESK_ES01_PRODUCE) {
        esk_produce_end(&request->produce);
    }
    esk_es01_inflater_destroy(request->inflater);
    if (request->charged_bytes) {
        esk_broker_memory_give(shard->broker, request->charged_bytes);
    }
    esk_broker_memory_settle(shard->broker, &request->claim);
    if (shard->pool_count < POOL_MAX) {
        recycle(request);
    } else {
        fini(request);
        free(request);
    }
    eski_es01_client_done(client);
}

bool eski_es01_request_charge(struct eski_es01_request *request, uint64_t bytes) {
    struct esk_broker_shard *broker = request->shard->broker;
    if (request->claim.is_granted) {
        bool more = esk_broker_memory_take_more(broker, &request->claim, bytes);
        request->charged_bytes += more ? bytes : 0;
        return more;
    }
    uint64_t total = request->charged_bytes + bytes;
    /* All of it anew: what one request alone needs is always given. */
    esk_broker_memory_give(broker, request->charged_bytes);
    bool given = esk_broker_memory_take(broker, total);
    request->charged_bytes = given ? total : 0;
    return given;
}

void eski_es01_request_to_helper(struct eski_es01_request *request,
                                 void (*run)(struct esk_mail *mail)) {
    request->mail.run = run;
    esk_post(request->shard->es01->helper, &request->mail);
}

void eski_es01_request_back(struct eski_es01_request *request,
                            void (*back)(struct esk_mail *mail)) {
    request->mail.run = back;
    esk_post(&request->shard->loop->executor, &request->mail);
}

enum esk_err eski_es01_set_topic(struct eski_es01_request *request, struct esk_slice topic,
                                 struct esk_error *error) {
    enum esk_err err = esk_topic_name_check(topic, error);
    if (err == ESK_OK) {
        memcpy(request->topic, topic.data, topic.size);
        request->topic_bytes = (uint32_t)topic.size;
    }
    return err;
}
