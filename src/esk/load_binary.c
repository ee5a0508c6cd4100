/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of one thread over the binary protocol: each connection is a pipeline of libesker, whose
 * descriptor is polled. In a closed loop a request is sent again from its own callback. */
#include "esk/load_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX 256

static void take(void *context, const struct esk_pipeline_answer *answer);

static void add_idle(struct eski_load_thread *thread, struct eski_load_request *request) {
    uint32_t at = (thread->idle_first + thread->idle_count++) % thread->request_count;
    thread->idle[at] = (uint32_t)(request - thread->requests);
}

static void submit(struct eski_load_thread *thread, struct eski_load_request *request,
                   uint64_t due_ns) {
    const struct esk_load *load = thread->load;
    struct esk_pipeline *pipeline = request->connection->pipeline;
    struct esk_client_error error;
    enum esk_client_code code;
    request->due_ns = due_ns;
    request->connection->has_news = true;
    thread->issued++;
    thread->busy++;
    if (load->variant_count) {
        /* Each goes through all of them, from a place of its own. */
        size_t variant = request->variant++ % load->variant_count;
        code = esk_pipeline_produce(pipeline, load->topic,
                                    load->records + variant * load->records_per_request,
                                    load->records_per_request, take, request, &error);
    } else {
        code = esk_pipeline_consume(pipeline, load->topic, request->variant % load->partitions,
                                    request->offset, load->max_records, load->max_bytes, take,
                                    request, &error);
    }
    if (code != ESK_CLIENT_OK) {
        thread->busy--;
        add_idle(thread, request);
        thread->err = esk_fail(&thread->error, ESK_ERR_INVALID, "%s", error.text);
    }
}

static uint64_t bytes_of(const struct esk_client_batch *batch) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < batch->count; i++) {
        bytes += batch->messages[i].key_size + batch->messages[i].value_size;
    }
    return bytes;
}

static void count(struct eski_load_thread *thread, struct eski_load_request *request,
                  const struct esk_pipeline_answer *answer) {
    const struct esk_load *load = thread->load;
    atomic_fetch_add_explicit(&thread->load->answered, 1, memory_order_relaxed);
    if (answer->code != ESK_CLIENT_OK) {
        eski_load_count_error(thread, answer->text, (int)strlen(answer->text));
        return;
    }
    uint64_t records = load->records_per_request;
    uint64_t bytes = load->bytes_per_request;
    if (load->variant_count == 0) {
        const struct esk_client_batch *batch = &answer->batch;
        records = batch->count;
        bytes = bytes_of(batch);
        request->offset = batch->next_offset >= batch->high_watermark ? 0 : batch->next_offset;
        if (records == 0) {
            eski_load_count_error(thread, "an answer without records", 25);
            return;
        }
    }
    eski_load_count(thread, request->due_ns, thread->now_ns, records, bytes);
}

static void take(void *context, const struct esk_pipeline_answer *answer) {
    struct eski_load_request *request = context;
    struct eski_load_thread *thread = request->thread;
    if (thread->is_over) {
        return;
    }
    thread->busy--;
    count(thread, request, answer);
    if (thread->load->rate == 0 && eski_load_has_more(thread, thread->now_ns)) {
        submit(thread, request, thread->now_ns);
    } else {
        add_idle(thread, request);
    }
}

/* Gives due requests to idle ones; returns when it wants to be woken (0: no need). */
static uint64_t send_due(struct eski_load_thread *thread) {
    for (;;) {
        uint64_t due = eski_load_due_ns(thread);
        if (!eski_load_has_more(thread, due ? due : thread->now_ns)) {
            return 0;
        }
        if (due > thread->now_ns) {
            return due;
        }
        if (thread->idle_count == 0) {
            return thread->load->rate ? 0 : thread->end_ns;
        }
        struct eski_load_request *request = &thread->requests[thread->idle[thread->idle_first]];
        thread->idle_first = (thread->idle_first + 1) % thread->request_count;
        thread->idle_count--;
        submit(thread, request, due ? due : thread->now_ns);
    }
}

static void process(struct eski_load_thread *thread, struct eski_load_connection *connection) {
    connection->has_news = false;
    thread->now_ns = eski_load_now_ns();
    (void)esk_pipeline_process(connection->pipeline);
    connection->has_news = false; /* its callbacks' submits went out with it */
}

static enum esk_err open_connection(struct eski_load_thread *thread,
                                    struct eski_load_connection *connection) {
    struct esk_client_error error;
    if (esk_pipeline_open(thread->load->binary, &connection->pipeline, &error) != ESK_CLIENT_OK) {
        thread->err = esk_fail(&thread->error, ESK_ERR_UNAVAILABLE, "%s", error.text);
        return thread->err;
    }
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, esk_pipeline_fd(connection->pipeline), &event)) {
        thread->err = esk_fail_errno(&thread->error, ESK_ERR_UNAVAILABLE, errno, "epoll_ctl");
    }
    return thread->err;
}

enum esk_err eski_load_binary_open(struct eski_load_thread *thread) {
    thread->requests = esk_alloc_zeroed(thread->request_count, sizeof(*thread->requests));
    for (uint32_t i = 0; i < thread->request_count; i++) {
        struct eski_load_request *request = &thread->requests[i];
        request->thread = thread;
        request->connection = &thread->connections[i % thread->connection_count];
        request->variant = request->connection->variant;
        if (thread->load->variant_count) {
            request->variant += i / thread->connection_count;
        }
        add_idle(thread, request);
    }
    if (eski_load_open_epoll(thread) != ESK_OK) {
        return thread->err;
    }
    for (uint32_t i = 0; i < thread->connection_count; i++) {
        if (open_connection(thread, &thread->connections[i]) != ESK_OK) {
            return thread->err;
        }
    }
    return ESK_OK;
}

void eski_load_binary_close(struct eski_load_thread *thread) {
    thread->is_over = true;
    for (uint32_t i = 0; i < thread->connection_count; i++) {
        esk_pipeline_close(thread->connections[i].pipeline);
    }
    if (thread->epoll_fd >= 0) {
        close(thread->epoll_fd);
    }
    if (thread->timer_fd >= 0) {
        close(thread->timer_fd);
    }
    free(thread->connections);
    free(thread->requests);
    free(thread->idle);
}

static void take_events(struct eski_load_thread *thread, const struct epoll_event *events,
                        int event_count) {
    for (int i = 0; i < event_count; i++) {
        if (events[i].data.ptr) {
            process(thread, events[i].data.ptr);
        } else {
            uint64_t expired;
            (void)!read(thread->timer_fd, &expired, sizeof(expired));
            thread->timer_ns = 0;
        }
    }
}

void eski_load_binary_loop(struct eski_load_thread *thread) {
    struct epoll_event events[EVENTS_MAX];
    while (thread->err == ESK_OK) {
        thread->now_ns = eski_load_now_ns();
        uint64_t wake_ns = send_due(thread);
        for (uint32_t i = 0; i < thread->connection_count; i++) {
            if (thread->connections[i].has_news) {
                process(thread, &thread->connections[i]);
            }
        }
        uint64_t due = eski_load_due_ns(thread);
        bool is_over = !eski_load_has_more(thread, due ? due : eski_load_now_ns());
        if ((is_over && thread->busy == 0) || eski_load_is_too_late(thread)) {
            break;
        }
        if (wake_ns) {
            eski_load_set_timer(thread, wake_ns);
        }
        int event_count =
            epoll_wait(thread->epoll_fd, events, EVENTS_MAX, (int)thread->load->timeout_ms);
        if (event_count == 0 && thread->busy) {
            break; /* what is out stays unanswered */
        }
        take_events(thread, events, event_count);
    }
    thread->is_over = true;
    eski_load_count_unanswered(thread);
}
