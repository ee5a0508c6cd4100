/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking client: a pipeline with one request at a time. */
#include "client/pipeline_private.h"

#include <stdlib.h>

struct esk_client {
    struct esk_pipeline *pipeline;
    bool is_done;
    enum esk_client_code code;
    struct esk_client_error *error;     /* of the call; may be NULL */
    struct esk_client_written *written; /* of the call; may be NULL */
    struct esk_client_batch *batch;
};

enum esk_client_code esk_client_open(const struct esk_client_options *options,
                                     struct esk_client **client, struct esk_client_error *error) {
    struct esk_pipeline *pipeline;
    *client = NULL;
    enum esk_client_code code = esk_pipeline_open(options, &pipeline, error);
    if (code == ESK_CLIENT_OK) {
        pipeline->is_single = true;
        *client = esk_alloc_zeroed(1, sizeof(**client));
        (*client)->pipeline = pipeline;
    }
    return code;
}

void esk_client_close(struct esk_client *client) {
    if (client) {
        esk_pipeline_close(client->pipeline);
        free(client);
    }
}

static void take(void *context, const struct esk_pipeline_answer *answer) {
    struct esk_client *client = context;
    client->is_done = true;
    client->code = answer->code;
    if (answer->code != ESK_CLIENT_OK) {
        eski_client_fail(client->error, answer->code, "%s", answer->text);
        return;
    }
    if (client->written) {
        memcpy(client->written, answer->written, answer->written_count * sizeof(*client->written));
    }
    if (client->batch) {
        *client->batch = answer->batch;
    }
}

/* Waits for the answer to what was submitted, when that went well. */
static enum esk_client_code finish(struct esk_client *client, enum esk_client_code code) {
    while (code == ESK_CLIENT_OK && !client->is_done) {
        (void)esk_pipeline_wait(client->pipeline, INT32_MAX);
    }
    return code == ESK_CLIENT_OK ? client->code : code;
}

static void begin(struct esk_client *client, struct esk_client_error *error) {
    client->is_done = false;
    client->error = error;
    client->written = NULL;
    client->batch = NULL;
}

enum esk_client_code esk_client_produce(struct esk_client *client, const char *topic,
                                        const struct esk_client_record *records, size_t count,
                                        struct esk_client_written *written,
                                        struct esk_client_error *error) {
    begin(client, error);
    client->written = written;
    return finish(
        client, esk_pipeline_produce(client->pipeline, topic, records, count, take, client, error));
}

enum esk_client_code esk_client_consume(struct esk_client *client, const char *topic,
                                        uint32_t partition, uint64_t offset, uint32_t max_records,
                                        uint32_t max_bytes, struct esk_client_batch *batch,
                                        struct esk_client_error *error) {
    begin(client, error);
    client->batch = batch;
    return finish(client, esk_pipeline_consume(client->pipeline, topic, partition, offset,
                                               max_records, max_bytes, take, client, error));
}

enum esk_client_code esk_client_ping(struct esk_client *client, struct esk_client_error *error) {
    static const char payload[] = "ping";
    begin(client, error);
    return finish(client, esk_pipeline_ping(client->pipeline, payload, sizeof(payload) - 1, take,
                                            client, error));
}
