/* SPDX-License-Identifier: Apache-2.0 */
/* The machine below a pipeline: it moves bytes, and sees to it that the descriptor of the pipeline
 * is readable when there is something to do. */
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
    eski_pipeline_check_attempt(pipeline);
    if (pipeline->state == ESKI_PIPELINE_DOWN && pipeline->in_flight &&
        pipeline->now_ns >= pipeline->attempt_ns) {
        eski_pipeline_start(pipeline);
    }
    if (pipeline->state == ESKI_PIPELINE_CONNECTING) {
        eski_pipeline_connect(pipeline);
    }
    if (pipeline->state == ESKI_PIPELINE_HELLO) {
        eski_pipeline_greet(pipeline);
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
