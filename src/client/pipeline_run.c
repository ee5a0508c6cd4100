/* SPDX-License-Identifier: Apache-2.0 */
/* The machine below a pipeline: it connects, moves bytes, and sees to it that the descriptor of the
 * pipeline is readable when there is something to do. */
#include "client/pipeline_private.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES_MIN (64 * 1024) /* room for one read */
#define PARTS_MAX 64               /* frames of one write */

uint64_t eski_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t eski_pipeline_pause_ns(struct esk_pipeline *pipeline, uint32_t number) {
    uint64_t pause = pipeline->backoff_ns_min << (number < 30 ? number : 30);
    if (pause > pipeline->backoff_ns_max || pause < pipeline->backoff_ns_min) {
        pause = pipeline->backoff_ns_max;
    }
    pipeline->random = pipeline->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    return pause - pause / 4 + (pipeline->random >> 33) % (pause / 2 + 1);
}

/* --- the connection --- */

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

static void step_connecting(struct esk_pipeline *pipeline) {
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

static void send_hello(struct esk_pipeline *pipeline) {
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

static void check_attempt(struct esk_pipeline *pipeline) {
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

/* --- bytes --- */

/* Room behind what is read and not parsed yet. It grows with what arrives, not with what a length
 * promises. */
static size_t make_room(struct esk_pipeline *pipeline) {
    struct esk_buffer *input = &pipeline->input;
    size_t left = input->size - pipeline->input_begin;
    if (pipeline->input_begin) {
        memmove(input->data, input->data + pipeline->input_begin, left);
        input->size = left;
        pipeline->input_begin = 0;
    }
    if (input->capacity - input->size < READ_BYTES_MIN) {
        (void)esk_buffer_grow(input, left > READ_BYTES_MIN ? left : READ_BYTES_MIN);
    }
    return input->capacity - input->size;
}

static void receive(struct esk_pipeline *pipeline) {
    for (;;) {
        if (!eski_pipeline_take(pipeline)) {
            eski_pipeline_lose(pipeline, &pipeline->error);
            return;
        }
        if (pipeline->is_single && pipeline->callbacks) {
            return;
        }
        size_t room = make_room(pipeline);
        ssize_t count = eski_channel_read(&pipeline->channel,
                                          pipeline->input.data + pipeline->input.size, room);
        if (count < 0) {
            bool is_told = pipeline->told.code != ESK_CLIENT_OK;
            struct esk_client_error error = is_told ? pipeline->told : pipeline->channel.error;
            eski_pipeline_lose(pipeline, &error);
            return;
        }
        if (count == 0) {
            return;
        }
        pipeline->input.size += (size_t)count;
        if ((size_t)count < room && !eski_channel_has_more(&pipeline->channel)) {
            if (!eski_pipeline_take(pipeline)) {
                eski_pipeline_lose(pipeline, &pipeline->error);
            }
            return;
        }
    }
}

static struct esk_slice bytes_of(struct esk_pipeline *pipeline, struct eski_slot *slot) {
    if (!pipeline->has_gzip) {
        return esk_buffer_slice(&slot->frame);
    }
    eski_request_pack(pipeline, slot);
    return esk_buffer_slice(&slot->packed);
}

/* Marks what was written, from the first unsent request on. */
static void advance(struct esk_pipeline *pipeline, size_t count) {
    while (count) {
        struct eski_slot *slot = pipeline->unsent;
        size_t left = bytes_of(pipeline, slot).size - pipeline->unsent_sent;
        if (count < left) {
            pipeline->unsent_sent += count;
            return;
        }
        count -= left;
        pipeline->unsent_sent = 0;
        slot->is_sent = true;
        slot->is_retried = slot->is_uncertain;
        slot->is_uncertain = false;
        pipeline->sent++;
        struct esk_link *next = slot->link.next;
        pipeline->unsent = next == &pipeline->requests ? NULL : eski_slot_at(next);
    }
}

/* The frames that go out next; a frame that has begun must end, whatever else holds. */
static int gather(struct esk_pipeline *pipeline, struct iovec *parts, size_t *total) {
    bool is_held = pipeline->is_settling || pipeline->hold_ns;
    int count = 0;
    *total = 0;
    for (struct esk_link *at = &pipeline->unsent->link;
         at != &pipeline->requests && count < PARTS_MAX; at = at->next) {
        size_t skipped = count == 0 ? pipeline->unsent_sent : 0;
        struct eski_slot *slot = eski_slot_at(at);
        bool waits = is_held || (slot->topic && !eski_topic_may_send(slot->topic, slot->frame.data,
                                                                     slot->frame.size));
        if (waits && skipped == 0) {
            break;
        }
        struct esk_slice bytes = bytes_of(pipeline, slot);
        parts[count++] =
            (struct iovec){(uint8_t *)(uintptr_t)bytes.data + skipped, bytes.size - skipped};
        *total += bytes.size - skipped;
    }
    return count;
}

static void transmit(struct esk_pipeline *pipeline) {
    struct iovec parts[PARTS_MAX];
    if (pipeline->hold_ns && pipeline->now_ns >= pipeline->hold_ns) {
        pipeline->hold_ns = 0;
    }
    if (!eski_channel_flush(&pipeline->channel)) {
        eski_pipeline_lose(pipeline, &pipeline->channel.error);
        return;
    }
    while (pipeline->unsent && !pipeline->channel.wants_write) {
        size_t total;
        int count = gather(pipeline, parts, &total);
        if (count == 0) {
            return;
        }
        ssize_t sent = eski_channel_write(&pipeline->channel, parts, count);
        if (sent < 0) {
            eski_pipeline_lose(pipeline, &pipeline->channel.error);
            return;
        }
        advance(pipeline, (size_t)sent);
        if (sent == 0) {
            return;
        }
    }
}

/* --- waking --- */

static void watch(struct esk_pipeline *pipeline) {
    if (pipeline->channel.fd < 0) {
        pipeline->events = 0;
        return;
    }
    uint32_t events = pipeline->channel.wants_write ? EPOLLOUT : 0;
    if (pipeline->channel.state != ESKI_CHANNEL_CONNECTING) {
        events |= EPOLLIN;
    }
    if (events != pipeline->events) {
        struct epoll_event event = {.events = events};
        (void)epoll_ctl(pipeline->epoll_fd, pipeline->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                        pipeline->channel.fd, &event);
        pipeline->events = events;
    }
}

static void earlier(uint64_t *due_ns, uint64_t at_ns) {
    *due_ns = at_ns < *due_ns ? at_ns : *due_ns;
}

/* Sets the timer when it would come too late; one that comes too early does no harm. */
static void arm(struct esk_pipeline *pipeline) {
    struct esk_link *first = esk_list_first(&pipeline->requests);
    uint64_t due_ns = UINT64_MAX;
    bool is_trying =
        pipeline->state == ESKI_PIPELINE_CONNECTING || pipeline->state == ESKI_PIPELINE_HELLO;
    if (first) {
        earlier(&due_ns, eski_slot_at(first)->deadline_ns);
    }
    if (is_trying || (first && pipeline->state == ESKI_PIPELINE_DOWN)) {
        earlier(&due_ns, pipeline->attempt_ns);
    }
    if (pipeline->hold_ns && pipeline->state == ESKI_PIPELINE_UP) {
        earlier(&due_ns, pipeline->hold_ns);
    }
    if (due_ns == UINT64_MAX || (pipeline->timer_ns && pipeline->timer_ns <= due_ns)) {
        return;
    }
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(due_ns / 1000000000),
                                         .tv_nsec = (long)(due_ns % 1000000000)}};
    (void)timerfd_settime(pipeline->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
    pipeline->timer_ns = due_ns;
}

static void disarm(struct esk_pipeline *pipeline) {
    if (pipeline->timer_ns && pipeline->now_ns >= pipeline->timer_ns) {
        uint64_t expired;
        (void)!read(pipeline->timer_fd, &expired, sizeof(expired));
        pipeline->timer_ns = 0;
    }
}

void eski_pipeline_step(struct esk_pipeline *pipeline) {
    disarm(pipeline);
    check_attempt(pipeline);
    if (pipeline->state == ESKI_PIPELINE_DOWN && pipeline->in_flight &&
        pipeline->now_ns >= pipeline->attempt_ns) {
        eski_pipeline_start(pipeline);
    }
    if (pipeline->state == ESKI_PIPELINE_CONNECTING) {
        step_connecting(pipeline);
    }
    if (pipeline->state == ESKI_PIPELINE_HELLO) {
        send_hello(pipeline);
    }
    if (pipeline->state == ESKI_PIPELINE_HELLO || pipeline->state == ESKI_PIPELINE_UP) {
        receive(pipeline);
    }
    eski_requests_expire(pipeline);
    if (pipeline->is_settling) {
        eski_requests_settle(pipeline);
    }
    if (pipeline->state == ESKI_PIPELINE_UP) {
        transmit(pipeline);
    }
    watch(pipeline);
    arm(pipeline);
}

void eski_pipeline_sleep(struct esk_pipeline *pipeline, uint64_t until_ns) {
    struct epoll_event event;
    uint64_t now_ns = eski_clock_ns();
    uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    uint64_t left_ms = (left_ns + 999999) / 1000000;
    (void)epoll_wait(pipeline->epoll_fd, &event, 1, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
}
