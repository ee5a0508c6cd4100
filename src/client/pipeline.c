/* SPDX-License-Identifier: Apache-2.0 */
/* The public face of a pipeline: options, its life, and the calls that drive it. */
#include "base/assert.h"
#include "client/pipeline_private.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NS_OF_MS(ms) ((uint64_t)(ms)*1000000)

void esk_client_options_init(struct esk_client_options *options) {
    *options = (struct esk_client_options){
        .connect_timeout_ms = 10000,
        .request_timeout_ms = 30000,
        .reconnects = true,
        .backoff_ms_min = 50,
        .backoff_ms_max = 5000,
        .in_flight_max = ESK_CONNECTION_REQUESTS_MAX,
        .answer_bytes_max = 80 * ESK_MIB,
    };
}

static enum esk_client_code check_options(const struct esk_client_options *options,
                                          struct esk_client_error *error) {
    const char *problem = NULL;
    if (options->key && strlen(options->key) > ESK_TOKEN_BYTES_MAX) {
        problem = "key is longer than 1,024 bytes";
    } else if (options->in_flight_max == 0 || options->in_flight_max > ESKI_SLOTS_MAX) {
        problem = "in_flight_max: allowed is 1 to 65,536";
    } else if (options->answer_bytes_max < 1024) {
        problem = "answer_bytes_max: allowed is 1,024 and more";
    } else if (options->connect_timeout_ms == 0 || options->request_timeout_ms == 0) {
        problem = "a time-out of 0 ms leaves no time";
    } else if (options->backoff_ms_min == 0 || options->backoff_ms_max < options->backoff_ms_min) {
        problem = "backoff_ms_min: allowed is 1 to backoff_ms_max";
    } else if (options->idempotent && options->producer_id) {
        problem = "idempotent makes a producer id itself: producer_id must be NULL";
    } else if (options->producer_id && (options->producer_id[0] == '\0' ||
                                        strlen(options->producer_id) > ESK_ID_BYTES_MAX)) {
        problem = "producer_id: allowed are 1 to 200 bytes";
    }
    return problem ? eski_client_fail(error, ESK_CLIENT_INVALID, "%s", problem) : ESK_CLIENT_OK;
}

static void set_options(struct esk_pipeline *pipeline, const struct esk_client_options *options) {
    pipeline->key = options->key ? esk_text_copy(options->key) : NULL;
    pipeline->producer_id = options->producer_id ? esk_text_copy(options->producer_id) : NULL;
    pipeline->wants_gzip = options->gzip;
    pipeline->reconnects = options->reconnects;
    pipeline->connect_timeout_ns = NS_OF_MS(options->connect_timeout_ms);
    pipeline->request_timeout_ns = NS_OF_MS(options->request_timeout_ms);
    pipeline->backoff_ns_min = NS_OF_MS(options->backoff_ms_min);
    pipeline->backoff_ns_max = NS_OF_MS(options->backoff_ms_max);
    pipeline->answer_bytes_max = options->answer_bytes_max;
    pipeline->slots_max = options->in_flight_max;
    pipeline->is_idempotent = options->idempotent;
    eski_numbering_init(&pipeline->numbering);
    struct esk_es01_hello hello = {
        .features = options->gzip ? ESK_ES01_FEATURE_GZIP : 0,
        .token = pipeline->key ? esk_slice_text(pipeline->key) : esk_slice(NULL, 0),
    };
    pipeline->hello_size = esk_es01_hello_write(&hello, pipeline->hello);
}

static enum esk_client_code open_descriptors(struct esk_pipeline *pipeline,
                                             struct esk_client_error *error) {
    pipeline->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    pipeline->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (pipeline->epoll_fd < 0 || pipeline->timer_fd < 0 ||
        epoll_ctl(pipeline->epoll_fd, EPOLL_CTL_ADD, pipeline->timer_fd, &event) != 0) {
        return eski_client_fail(error, ESK_CLIENT_CONNECT, "no descriptors are left to open");
    }
    return ESK_CLIENT_OK;
}

enum esk_client_code eski_pipeline_create(const struct esk_client_options *options,
                                          struct esk_pipeline **result,
                                          struct esk_client_error *error) {
    struct esk_client_options defaults;
    *result = NULL;
    if (!options) {
        esk_client_options_init(&defaults);
        options = &defaults;
    }
    enum esk_client_code code = check_options(options, error);
    if (code != ESK_CLIENT_OK) {
        return code;
    }
    struct esk_pipeline *pipeline = esk_alloc_zeroed(1, sizeof(*pipeline));
    pipeline->epoll_fd = pipeline->timer_fd = -1;
    pipeline->now_ns = eski_clock_ns();
    pipeline->random = pipeline->now_ns ^ (uint64_t)(uintptr_t)pipeline;
    eski_channel_init(&pipeline->channel);
    esk_list_init(&pipeline->free);
    esk_list_init(&pipeline->requests);
    esk_buffer_init(&pipeline->input);
    esk_buffer_init(&pipeline->plain);
    set_options(pipeline, options);
    code = eski_target_init(&pipeline->target, options, error);
    if (code == ESK_CLIENT_OK) {
        code = open_descriptors(pipeline, error);
    }
    if (code != ESK_CLIENT_OK) {
        esk_pipeline_close(pipeline);
        return code;
    }
    *result = pipeline;
    return ESK_CLIENT_OK;
}

enum esk_client_code esk_pipeline_open(const struct esk_client_options *options,
                                       struct esk_pipeline **result,
                                       struct esk_client_error *error) {
    enum esk_client_code code = eski_pipeline_create(options, result, error);
    if (code != ESK_CLIENT_OK) {
        return code;
    }
    struct esk_pipeline *pipeline = *result;
    eski_pipeline_start(pipeline);
    while (pipeline->state == ESKI_PIPELINE_CONNECTING || pipeline->state == ESKI_PIPELINE_HELLO) {
        pipeline->now_ns = eski_clock_ns();
        eski_pipeline_step(pipeline);
        if (pipeline->state != ESKI_PIPELINE_UP && pipeline->state != ESKI_PIPELINE_DOWN) {
            eski_pipeline_sleep(pipeline, pipeline->attempt_ns);
        }
    }
    if (pipeline->state == ESKI_PIPELINE_UP) {
        return ESK_CLIENT_OK;
    }
    code = pipeline->error.code;
    if (error) {
        *error = pipeline->error;
    }
    esk_pipeline_close(pipeline);
    *result = NULL;
    return code;
}

void esk_pipeline_close(struct esk_pipeline *pipeline) {
    if (!pipeline) {
        return;
    }
    ESK_ASSERT(!pipeline->in_callback);
    eski_requests_fail_all(pipeline, ESK_CLIENT_CLOSED, "the pipeline was closed");
    eski_channel_fini(&pipeline->channel);
    eski_target_fini(&pipeline->target);
    eski_numbering_fini(&pipeline->numbering);
    esk_es01_deflater_destroy(pipeline->deflater);
    esk_es01_inflater_destroy(pipeline->inflater);
    for (uint32_t i = 0; i < pipeline->slot_count; i++) {
        esk_buffer_fini(&pipeline->slots[i]->frame);
        esk_buffer_fini(&pipeline->slots[i]->packed);
        free(pipeline->slots[i]);
    }
    free(pipeline->slots);
    esk_buffer_fini(&pipeline->input);
    esk_buffer_fini(&pipeline->plain);
    free(pipeline->written);
    free(pipeline->messages);
    if (pipeline->epoll_fd >= 0) {
        close(pipeline->epoll_fd);
    }
    if (pipeline->timer_fd >= 0) {
        close(pipeline->timer_fd);
    }
    free(pipeline->key);
    free(pipeline->producer_id);
    free(pipeline);
}

/* --- driving --- */

int esk_pipeline_fd(const struct esk_pipeline *pipeline) {
    return pipeline->epoll_fd;
}

size_t esk_pipeline_in_flight(const struct esk_pipeline *pipeline) {
    return pipeline->in_flight;
}

size_t esk_pipeline_process(struct esk_pipeline *pipeline) {
    ESK_ASSERT(!pipeline->in_callback);
    pipeline->now_ns = eski_clock_ns();
    pipeline->callbacks = 0;
    eski_pipeline_step(pipeline);
    return pipeline->callbacks;
}

size_t esk_pipeline_wait(struct esk_pipeline *pipeline, uint32_t timeout_ms) {
    size_t count = esk_pipeline_process(pipeline);
    uint64_t until_ns = pipeline->now_ns + NS_OF_MS(timeout_ms);
    while (count == 0 && pipeline->in_flight && pipeline->now_ns < until_ns) {
        eski_pipeline_sleep(pipeline, until_ns);
        count = esk_pipeline_process(pipeline);
    }
    return count;
}

enum esk_client_code esk_pipeline_flush(struct esk_pipeline *pipeline, uint32_t timeout_ms) {
    (void)esk_pipeline_process(pipeline);
    uint64_t until_ns = pipeline->now_ns + NS_OF_MS(timeout_ms);
    while (pipeline->in_flight && pipeline->now_ns < until_ns) {
        eski_pipeline_sleep(pipeline, until_ns);
        (void)esk_pipeline_process(pipeline);
    }
    return pipeline->in_flight ? ESK_CLIENT_TIMEOUT : ESK_CLIENT_OK;
}
