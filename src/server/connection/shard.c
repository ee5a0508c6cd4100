/* SPDX-License-Identifier: Apache-2.0 */
/* A shard's sockets. The one uv_poll watches the epoll set; its callback notes what the events say,
 * then attends to the ready connections until the turn is spent. What is left, and what becomes
 * ready outside of the callback, is attended to by the turn mail. */
#include "server/connection/tls_private.h"

#include "base/assert.h"
#include "runtime/loop.h"
#include "security/certificates.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_PER_TURN 128

void eski_shard_ready(struct eski_shard *shard, struct esk_connection *connection) {
    if (esk_list_empty(&connection->ready_link)) {
        esk_list_append(&shard->ready, &connection->ready_link);
    }
    if (!shard->is_turn_posted) {
        shard->is_turn_posted = true;
        esk_post(&shard->loop->executor, &shard->turn);
    }
}

/* A connection that becomes ready again meanwhile is behind all others. */
static void attend_to_ready(struct eski_shard *shard) {
    struct esk_link *link;
    while ((link = esk_list_first(&shard->ready))) {
        esk_list_remove(link);
        eski_connection_attend(ESK_CONTAINER(link, struct esk_connection, ready_link));
        if (esk_loop_turn_spent(shard->loop)) {
            break;
        }
    }
    if (!esk_list_empty(&shard->ready) && !shard->is_turn_posted) {
        shard->is_turn_posted = true;
        esk_post(&shard->loop->executor, &shard->turn);
    }
}

static void on_turn(struct esk_mail *mail) {
    struct eski_shard *shard = ESK_CONTAINER(mail, struct eski_shard, turn);
    shard->is_turn_posted = false;
    attend_to_ready(shard);
}

static void note(struct eski_shard *shard, const struct epoll_event *event) {
    if (event->data.u64 & ESKI_LISTENER_TAG) {
        eski_listener_accept(
            (struct eski_listener *)(uintptr_t)(event->data.u64 - ESKI_LISTENER_TAG));
        return;
    }
    struct esk_connection *connection = event->data.ptr;
    if (event->events & (EPOLLERR | EPOLLHUP)) {
        connection->is_aborted = true;
    }
    if (event->events & EPOLLRDHUP) {
        connection->peer_finished = true;
    }
    if (event->events & (EPOLLIN | EPOLLRDHUP)) {
        connection->readable = true;
    }
    if (event->events & EPOLLOUT) {
        connection->writable = true;
    }
    if (esk_list_empty(&connection->ready_link)) {
        esk_list_append(&shard->ready, &connection->ready_link);
    }
}

static void on_events(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    struct eski_shard *shard = poll->data;
    struct epoll_event found[EVENTS_PER_TURN];
    int count = epoll_wait(shard->epoll_fd, found, EVENTS_PER_TURN, 0);
    for (int i = 0; i < count; i++) {
        note(shard, &found[i]);
    }
    attend_to_ready(shard);
}

void eski_shard_init(struct eski_shard *shard, struct esk_server *server, uint32_t number) {
    shard->server = server;
    shard->number = number;
    shard->loop = server->options.loops[number];
    shard->broker =
        server->options.broker ? esk_broker_shard(server->options.broker, number) : NULL;
    shard->epoll_fd = -1;
    shard->turn.run = on_turn;
    esk_list_init(&shard->connections);
    esk_list_init(&shard->ready);
    eski_deadlines_init(shard);
    eski_pools_init(shard);
}

int eski_shard_open(struct eski_shard *shard) {
    shard->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (shard->epoll_fd < 0) {
        return errno;
    }
    int result = uv_poll_init(esk_loop_uv(shard->loop), &shard->poll, shard->epoll_fd);
    if (result == 0) {
        shard->poll.data = shard;
        result = uv_poll_start(&shard->poll, UV_READABLE, on_events);
    }
    ESK_ASSERT(result == 0); /* an epoll set can be watched */
    if (shard->server->options.certificates) {
        shard->tls_window = esk_alloc(ESKI_TLS_WINDOW_BYTES);
    }
    shard->window = esk_alloc(ESK_CONNECTION_WINDOW_BYTES + ESK_CONNECTION_PADDING_BYTES);
    return 0;
}

void eski_shard_stop(struct eski_shard *shard) {
    shard->is_stopping = true;
    for (struct esk_link *link = shard->connections.next; link != &shard->connections;
         link = link->next) {
        eski_shard_ready(shard, ESK_CONTAINER(link, struct esk_connection, link));
    }
}

void eski_shard_abort(struct eski_shard *shard) {
    for (struct esk_link *link = shard->connections.next; link != &shard->connections;
         link = link->next) {
        esk_connection_abort(ESK_CONTAINER(link, struct esk_connection, link));
    }
}

void eski_shard_close(struct eski_shard *shard, uv_close_cb closed) {
    esk_timer_stop(shard->loop, &shard->tick);
    uv_poll_stop(&shard->poll);
    uv_close((uv_handle_t *)&shard->poll, closed);
}

/* After the handle is closed, in any thread. */
void eski_shard_free(struct eski_shard *shard) {
    if (shard->epoll_fd >= 0) {
        close(shard->epoll_fd);
    }
    eski_pools_fini(shard);
    free(shard->window);
    free(shard->tls_window);
    esk_certificates_release(shard->certificates);
}
