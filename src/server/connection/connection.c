/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's life: it arrives by mail in its shard, is attended to whenever something changed,
 * finishes (output sent, input drained for a while) or is aborted, and is freed with its last hold.
 */
#include "server/connection/tls_private.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINGER_TIMES 6 /* a client that goes on sending: so many times the server's linger_ms */

/* --- the end --- */

static void free_connection(struct esk_connection *connection) {
    struct esk_server *server = connection->shard->server;
    free(connection);
    eski_server_connection_freed(server);
}

static void close_now(struct esk_connection *connection) {
    connection->is_closed = true;
    close(connection->fd); /* which also takes it out of the epoll set */
    connection->fd = -1;
    eski_tls_destroy(connection->tls);
    connection->tls = NULL;
    esk_list_remove(&connection->link);
    esk_list_remove(&connection->ready_link);
    eski_deadlines_remove(connection);
    eski_output_drop(connection);
    eski_input_forget(connection);
    connection->input = esk_slice(NULL, 0);
    atomic_fetch_sub_explicit(&connection->door->connections, 1, memory_order_relaxed);
    connection->door->ops->closed(connection);
    eski_listener_descriptor_freed(connection->shard->server);
}

void esk_connection_hold(struct esk_connection *connection) {
    connection->holds++;
}

void esk_connection_release(struct esk_connection *connection) {
    ESK_ASSERT(connection->holds > 0);
    if (--connection->holds == 0) {
        free_connection(connection);
    }
}

static void set_stall_deadline(struct esk_connection *connection, uint32_t delay_ms) {
    connection->stall_due_tick = eski_deadlines_tick(connection->shard, delay_ms);
    eski_deadlines_place(connection);
}

/* --- the start --- */

static void on_arrival(struct esk_mail *mail) {
    struct esk_connection *connection = ESK_CONTAINER(mail, struct esk_connection, arrival);
    struct eski_shard *shard = connection->shard;
    esk_list_append(&shard->connections, &connection->link);
    eski_deadlines_start(shard);
    if (shard->certificates) {
        connection->tls = eski_tls_create(connection);
        set_stall_deadline(connection, shard->server->options.handshake_ms);
    }
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                .data.ptr = connection};
    connection->door->ops->opened(connection);
    if (epoll_ctl(shard->epoll_fd, EPOLL_CTL_ADD, connection->fd, &event) < 0) {
        esk_connection_abort(connection); /* no kernel memory for one more watch */
    }
    eski_shard_ready(shard, connection); /* bytes may be there already */
}

/* In the listener's loop; the connection goes to its shard by mail. */
struct esk_connection *eski_connection_create(struct eski_shard *shard, struct esk_door *door,
                                              int fd, const struct esk_peer *peer) {
    struct esk_connection *connection = esk_alloc_zeroed(1, sizeof *connection);
    connection->shard = shard;
    connection->door = door;
    connection->fd = fd;
    connection->peer = *peer;
    connection->holds = 1; /* the layer's, until closed */
    connection->readable = true;
    connection->writable = true;
    connection->wants_input = true;
    connection->arrival.run = on_arrival;
    esk_list_init(&connection->link);
    esk_list_init(&connection->ready_link);
    esk_list_init(&connection->wheel_link);
    eski_output_init(connection);
    atomic_fetch_add_explicit(&door->connections, 1, memory_order_relaxed);
    esk_post(&shard->loop->executor, &connection->arrival);
    return connection;
}

/* --- attending --- */

static void flush(struct esk_connection *connection) {
    if (!eski_output_flush(connection)) {
        connection->is_aborted = true;
        return;
    }
    if (connection->output_bytes == 0) {
        if (!connection->is_lingering) {
            connection->stall_due_tick = 0;
        }
        return;
    }
    if (connection->writable) { /* enough for one turn */
        eski_shard_ready(connection->shard, connection);
    } else if (connection->output_bytes_max &&
               connection->output_bytes > connection->output_bytes_max) {
        connection->is_aborted = true;
    } else if (connection->stall_due_tick == 0) {
        set_stall_deadline(connection, connection->shard->server->options.stall_ms);
    }
}

static bool can_read(const struct esk_connection *connection) {
    return connection->wants_input && connection->readable && !connection->input_ended;
}

static void serve(struct esk_connection *connection) {
    if (connection->output_bytes && connection->writable) {
        flush(connection);
    }
    if (can_read(connection)) {
        eski_input_read(connection);
    }
    if (!connection->is_aborted) {
        connection->door->ops->serve(connection);
    }
    eski_input_keep(connection);
    size_t before = connection->output_bytes;
    if (before && !connection->is_aborted) {
        flush(connection);
    }
    if (before >= ESK_CONNECTION_OUTPUT_BYTES_MAX &&
        connection->output_bytes < ESK_CONNECTION_OUTPUT_BYTES_MAX) {
        eski_shard_ready(connection->shard, connection);
    }
}

/* Even the last words of TLS need room; or the client has gone. */
static void wait_to_finish(struct esk_connection *connection) {
    connection->writable = false;
    connection->is_aborted |= errno != EAGAIN;
    if (connection->stall_due_tick == 0) {
        set_stall_deadline(connection, connection->shard->server->options.stall_ms);
    }
}

static void linger(struct esk_connection *connection) {
    if (!connection->is_lingering) {
        if (eski_socket_finish(connection) < 0) {
            wait_to_finish(connection);
            return;
        }
        connection->is_lingering = true;
        connection->due_tick = 0;
        uint32_t linger_ms = connection->shard->server->options.linger_ms;
        connection->linger_last_tick =
            eski_deadlines_tick(connection->shard, LINGER_TIMES * linger_ms);
        set_stall_deadline(connection, linger_ms);
    }
    eski_input_drop(connection);
    connection->is_aborted |=
        connection->input_ended || (connection->shard->is_stopping && !connection->readable);
}

/* All that can be done now for one that goes on. */
static void advance(struct esk_connection *connection) {
    if (!connection->is_finishing) {
        serve(connection);
    } else if (connection->output_bytes) {
        flush(connection);
    }
    if (connection->is_aborted) {
        return;
    }
    if (connection->is_finishing) {
        if (connection->output_bytes == 0) {
            linger(connection);
        }
    } else if (can_read(connection) && connection->input.size < ESK_CONNECTION_WINDOW_BYTES) {
        eski_shard_ready(connection->shard, connection);
    }
}

static bool has_state(const struct esk_connection *connection, enum eski_tls_state state) {
    return connection->tls && connection->tls->state == state;
}

void eski_connection_attend(struct esk_connection *connection) {
    if (connection->is_closed || has_state(connection, ESKI_TLS_STEPPING)) {
        return; /* whatever happens during a step is looked at when it has ended */
    }
    esk_connection_hold(connection);
    if (!connection->is_aborted && has_state(connection, ESKI_TLS_WAITING)) {
        eski_tls_handshake(connection);
    }
    bool has_session =
        !has_state(connection, ESKI_TLS_WAITING) && !has_state(connection, ESKI_TLS_STEPPING);
    if (!connection->is_aborted && has_session) {
        advance(connection);
    }
    if (connection->is_aborted && !has_state(connection, ESKI_TLS_STEPPING)) {
        close_now(connection);
        connection->holds--; /* the layer's; this function has one of its own */
    }
    esk_connection_release(connection);
}

void eski_connection_expire(struct esk_connection *connection) {
    uint64_t now = eski_deadlines_tick(connection->shard, 0);
    if (connection->stall_due_tick && connection->stall_due_tick < now) {
        connection->is_aborted = true;
    } else if (connection->due_tick && connection->due_tick < now) {
        connection->due_tick = 0;
        connection->door->ops->expired(connection);
    }
    eski_deadlines_place(connection);
    eski_shard_ready(connection->shard, connection);
}

/* --- for doors --- */

void esk_connection_flush(struct esk_connection *connection) {
    bool can_send = !connection->tls || has_state(connection, ESKI_TLS_ESTABLISHED);
    if (can_send && connection->output_bytes && !connection->is_aborted && !connection->is_closed) {
        flush(connection);
    }
}

void *esk_connection_data(const struct esk_connection *connection) {
    return connection->data;
}

void esk_connection_set_data(struct esk_connection *connection, void *data) {
    connection->data = data;
}

struct esk_door *esk_connection_door(const struct esk_connection *connection) {
    return connection->door;
}

uint32_t esk_connection_shard(const struct esk_connection *connection) {
    return connection->shard->number;
}

struct esk_peer esk_connection_peer(const struct esk_connection *connection) {
    return connection->peer;
}

struct esk_slice esk_connection_input(const struct esk_connection *connection) {
    return connection->input;
}

void esk_connection_consume(struct esk_connection *connection, size_t size) {
    ESK_ASSERT(size <= connection->input.size);
    connection->input.data += size;
    connection->input.size -= size;
}

void esk_connection_want_input(struct esk_connection *connection, bool wanted) {
    connection->wants_input = wanted;
}

bool esk_connection_input_ending(const struct esk_connection *connection) {
    return connection->peer_finished;
}

bool esk_connection_input_ended(const struct esk_connection *connection) {
    return connection->input_ended;
}

void esk_connection_set_output_bound(struct esk_connection *connection, size_t bytes) {
    connection->output_bytes_max = bytes;
}

void esk_connection_wake(struct esk_connection *connection) {
    if (!connection->is_closed) {
        eski_shard_ready(connection->shard, connection);
    }
}

void esk_connection_set_deadline(struct esk_connection *connection, uint32_t delay_ms) {
    uint64_t due = delay_ms ? eski_deadlines_tick(connection->shard, delay_ms) : 0;
    if (due != connection->due_tick && !connection->is_closed) {
        bool later = due == 0 || (connection->due_tick && due > connection->due_tick);
        connection->due_tick = due;
        if (!later) { /* a later one is noticed when the wheel comes to the earlier */
            eski_deadlines_place(connection);
        }
    }
}

void esk_connection_finish(struct esk_connection *connection) {
    if (!connection->is_closed) {
        connection->is_finishing = true;
        eski_shard_ready(connection->shard, connection);
    }
}

void esk_connection_abort(struct esk_connection *connection) {
    if (!connection->is_closed) {
        connection->is_aborted = true;
        eski_shard_ready(connection->shard, connection);
    }
}

bool esk_connection_is_open(const struct esk_connection *connection) {
    return !connection->is_closed;
}

bool esk_connection_stopping(const struct esk_connection *connection) {
    return connection->shard->is_stopping;
}
