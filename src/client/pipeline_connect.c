/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline's connection: address after address until one answers, the hello, and its end. */
#include "client/pipeline_private.h"

#include <sys/epoll.h>

uint64_t eski_pipeline_pause_ns(struct esk_pipeline *pipeline, uint32_t number) {
    uint64_t pause = pipeline->backoff_ns_min << (number < 30 ? number : 30);
    if (pause > pipeline->backoff_ns_max || pause < pipeline->backoff_ns_min) {
        pause = pipeline->backoff_ns_max;
    }
    pipeline->random = pipeline->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return pause - pause / 4 + (pipeline->random >> 33) % (pause / 2 + 1);
}

static void unwatch(struct esk_pipeline *pipeline) {
    if (pipeline->events && pipeline->channel.fd >= 0) {
        (void)epoll_ctl(pipeline->epoll_fd, EPOLL_CTL_DEL, pipeline->channel.fd, NULL);
    }
    pipeline->events = 0; /* a closed descriptor leaves by itself */
}

void eski_pipeline_lose(struct esk_pipeline *pipeline, const struct esk_client_error *error) {
    enum esk_client_code code = error->code;
    pipeline->error = *error;
    unwatch(pipeline);
    eski_channel_close(&pipeline->channel);
    bool was_up = pipeline->state == ESKI_PIPELINE_UP;
    pipeline->state = was_up && !pipeline->reconnects ? ESKI_PIPELINE_BROKEN : ESKI_PIPELINE_DOWN;
    pipeline->input.size = pipeline->input_begin = 0;
    pipeline->told.code = ESK_CLIENT_OK;
    pipeline->attempt_ns = pipeline->now_ns;
    if (pipeline->attempts) {
        pipeline->attempt_ns += eski_pipeline_pause_ns(pipeline, pipeline->attempts - 1);
    }
    pipeline->attempts++;
    eski_requests_lost(pipeline);
    bool is_hopeless =
        code == ESK_CLIENT_UNAUTHENTICATED || code == ESK_CLIENT_TLS || code == ESK_CLIENT_PROTOCOL;
    if (pipeline->state == ESKI_PIPELINE_BROKEN) {
        eski_requests_fail_all(pipeline, ESK_CLIENT_LOST, pipeline->error.text);
    } else if (is_hopeless) {
        eski_requests_fail_all(pipeline, code, pipeline->error.text);
    }
}

/* Tries addresses until one does not fail at once. */
static void try_addresses(struct esk_pipeline *pipeline) {
    for (; pipeline->address; pipeline->address = pipeline->address->ai_next) {
        if (eski_channel_begin(&pipeline->channel, &pipeline->target, pipeline->address)) {
            return;
        }
    }
    eski_pipeline_lose(pipeline, &pipeline->channel.error);
}

void eski_pipeline_start(struct esk_pipeline *pipeline) {
    struct esk_client_error error;
    pipeline->state = ESKI_PIPELINE_CONNECTING;
    pipeline->attempt_ns = pipeline->now_ns + pipeline->connect_timeout_ns;
    pipeline->hello_sent = 0;
    pipeline->has_gzip = false;
    bool is_known = pipeline->target.addresses && pipeline->attempts <= 1;
    if (!is_known && eski_target_resolve(&pipeline->target, &error) != ESK_CLIENT_OK) {
        eski_pipeline_lose(pipeline, &error);
        return;
    }
    pipeline->address = pipeline->target.addresses;
    try_addresses(pipeline);
}

void eski_pipeline_connect(struct esk_pipeline *pipeline) {
    if (!eski_channel_step(&pipeline->channel)) {
        pipeline->events = 0;
        /* The name's other addresses are for connections; a wrong certificate is an answer. */
        pipeline->address =
            pipeline->channel.error.code == ESK_CLIENT_CONNECT ? pipeline->address->ai_next : NULL;
        try_addresses(pipeline);
    }
    if (pipeline->channel.state == ESKI_CHANNEL_READY) {
        pipeline->state = ESKI_PIPELINE_HELLO;
    }
}

void eski_pipeline_greet(struct esk_pipeline *pipeline) {
    if (!eski_channel_flush(&pipeline->channel)) {
        eski_pipeline_lose(pipeline, &pipeline->channel.error);
        return;
    }
    while (pipeline->hello_sent < pipeline->hello_size) {
        struct iovec part = {pipeline->hello + pipeline->hello_sent,
                             pipeline->hello_size - pipeline->hello_sent};
        ssize_t count = eski_channel_write(&pipeline->channel, &part, 1);
        if (count < 0) {
            eski_pipeline_lose(pipeline, &pipeline->channel.error);
        }
        if (count <= 0) {
            return;
        }
        pipeline->hello_sent += (size_t)count;
    }
}

void eski_pipeline_check_attempt(struct esk_pipeline *pipeline) {
    bool is_trying =
        pipeline->state == ESKI_PIPELINE_CONNECTING || pipeline->state == ESKI_PIPELINE_HELLO;
    if (is_trying && pipeline->now_ns >= pipeline->attempt_ns) {
        struct esk_client_error error;
        eski_client_fail(&error, ESK_CLIENT_CONNECT, "%s port %s: no %s within %llu ms",
                         pipeline->target.host, pipeline->target.port,
                         pipeline->state == ESKI_PIPELINE_HELLO ? "handshake" : "connection",
                         (unsigned long long)(pipeline->connect_timeout_ns / 1000000));
        eski_pipeline_lose(pipeline, &error);
    }
}
