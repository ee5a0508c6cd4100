/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of one thread: requests that are due go to idle connections, a timer wakes it for the
 * next one (epoll's own time-out counts in milliseconds), sockets are polled edge by edge. */
#include "esk/load_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define INPUT_BYTES (256 * 1024)

static enum esk_err fail(struct eski_load_thread *thread, const char *what) {
    thread->err = esk_fail_errno(&thread->error, ESK_ERR_UNAVAILABLE, errno, "%s", what);
    return thread->err;
}

static enum esk_err open_connection(struct eski_load_thread *thread,
                                    struct eski_load_connection *connection) {
    enum esk_err err = esk_http_connect(thread->load->server, thread->load->timeout_ms,
                                        &connection->stream, &thread->error);
    if (err != ESK_OK) {
        thread->err = err;
        return err;
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = connection};
    return epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, connection->stream.fd, &event) == 0
               ? ESK_OK
               : fail(thread, "epoll_ctl");
}

static void add_idle(struct eski_load_thread *thread, struct eski_load_connection *connection) {
    uint32_t at = (thread->idle_first + thread->idle_count++) % thread->connection_count;
    thread->idle[at] = (uint32_t)(connection - thread->connections);
}

/* A connection whose request is done, well or not, is idle again; a lost one is opened anew when it
 * is needed. */
static void settle(struct eski_load_thread *thread, struct eski_load_connection *connection) {
    if (!connection->is_busy && connection->due_ns) {
        connection->due_ns = 0;
        thread->busy--;
        add_idle(thread, connection);
    }
}

enum esk_err eski_load_open_epoll(struct eski_load_thread *thread) {
    thread->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    thread->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (thread->epoll_fd < 0 || thread->timer_fd < 0 ||
        epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, thread->timer_fd, &event) != 0) {
        return fail(thread, "epoll");
    }
    return ESK_OK;
}

enum esk_err eski_load_open(struct eski_load_thread *thread) {
    thread->input = esk_alloc(INPUT_BYTES);
    if (eski_load_open_epoll(thread) != ESK_OK) {
        return thread->err;
    }
    for (uint32_t i = 0; i < thread->connection_count; i++) {
        struct eski_load_connection *connection = &thread->connections[i];
        esk_buffer_init(&connection->text);
        esk_http_answer_init(&connection->answer, false);
        add_idle(thread, connection);
        if (open_connection(thread, connection) != ESK_OK) {
            return thread->err;
        }
    }
    return ESK_OK;
}

void eski_load_close(struct eski_load_thread *thread) {
    for (uint32_t i = 0; i < thread->connection_count; i++) {
        struct eski_load_connection *connection = &thread->connections[i];
        esk_http_stream_close(&connection->stream);
        esk_buffer_fini(&connection->text);
        esk_http_answer_fini(&connection->answer);
    }
    if (thread->epoll_fd >= 0) {
        close(thread->epoll_fd);
    }
    if (thread->timer_fd >= 0) {
        close(thread->timer_fd);
    }
    free(thread->connections);
    free(thread->idle);
    free(thread->input);
}

/* --- due requests --- */

uint64_t eski_load_due_ns(const struct eski_load_thread *thread) {
    const struct esk_load *load = thread->load;
    if (load->rate == 0) {
        return 0;
    }
    uint32_t threads = load->threads < load->connections ? load->threads : load->connections;
    unsigned __int128 number = (unsigned __int128)thread->issued * threads + thread->index;
    return thread->start_ns + (uint64_t)(number * 1000000000 / load->rate);
}

/* Gives due requests to idle connections; returns when it wants to be woken (0: no need). */
static uint64_t send_due(struct eski_load_thread *thread) {
    uint64_t now = eski_load_now_ns();
    for (;;) {
        uint64_t due = eski_load_due_ns(thread);
        if (!eski_load_has_more(thread, due ? due : now)) {
            return 0;
        }
        if (due > now) {
            return due;
        }
        if (thread->idle_count == 0) {
            return thread->load->rate ? 0 : thread->end_ns;
        }
        uint32_t index = thread->idle[thread->idle_first];
        thread->idle_first = (thread->idle_first + 1) % thread->connection_count;
        thread->idle_count--;
        thread->issued++;
        thread->busy++;
        struct eski_load_connection *connection = &thread->connections[index];
        if (connection->stream.fd < 0 && open_connection(thread, connection) != ESK_OK) {
            return 0;
        }
        if (due == 0) {
            now = eski_load_now_ns();
        }
        eski_load_send(thread, connection, due ? due : now);
        settle(thread, connection);
    }
}

void eski_load_set_timer(struct eski_load_thread *thread, uint64_t at_ns) {
    if (at_ns == thread->timer_ns || at_ns == UINT64_MAX) {
        return;
    }
    struct itimerspec spec = {
        .it_value = {(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)}};
    (void)timerfd_settime(thread->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
    thread->timer_ns = at_ns;
}

static void take_events(struct eski_load_thread *thread, const struct epoll_event *events,
                        int count) {
    for (int i = 0; i < count; i++) {
        struct eski_load_connection *connection = events[i].data.ptr;
        if (connection) {
            eski_load_ready(thread, connection);
            settle(thread, connection);
        } else {
            uint64_t expired;
            (void)!read(thread->timer_fd, &expired, sizeof(expired));
            thread->timer_ns = 0;
        }
    }
}

/* Requests that are out, or that were due and never sent, at the end. */
void eski_load_count_unanswered(struct eski_load_thread *thread) {
    uint64_t count = thread->busy;
    while (thread->load->rate && eski_load_has_more(thread, eski_load_due_ns(thread))) {
        thread->issued++;
        count++;
    }
    thread->result.errors += count;
    if (count && !thread->result.first_error[0]) {
        strcpy(thread->result.first_error, "a request was not answered in time");
    }
}

/* A server that is slower than the rate is not waited for without end. */
bool eski_load_is_too_late(const struct eski_load_thread *thread) {
    uint64_t patience_ns = (uint64_t)thread->load->timeout_ms * 1000000;
    return thread->end_ns != UINT64_MAX && eski_load_now_ns() > thread->end_ns + patience_ns;
}

void eski_load_loop(struct eski_load_thread *thread) {
    struct epoll_event events[EVENTS_MAX];
    while (thread->err == ESK_OK) {
        uint64_t wake_ns = send_due(thread);
        uint64_t due = eski_load_due_ns(thread);
        bool is_over = !eski_load_has_more(thread, due ? due : eski_load_now_ns());
        if ((is_over && thread->busy == 0) || eski_load_is_too_late(thread)) {
            break;
        }
        if (wake_ns) {
            eski_load_set_timer(thread, wake_ns);
        }
        int count = epoll_wait(thread->epoll_fd, events, EVENTS_MAX, (int)thread->load->timeout_ms);
        if (count == 0 && thread->busy) {
            break; /* what is out stays unanswered */
        }
        if (count < 0 && errno != EINTR) {
            (void)fail(thread, "epoll_wait");
        }
        take_events(thread, events, count);
    }
    eski_load_count_unanswered(thread);
}
