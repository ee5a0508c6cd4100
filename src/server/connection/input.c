/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's input: read into the shard's window, shown to the door, and what the door leaves
 * kept in memory of just its size, which is of the budget for requests. A door that collects much
 * has it read to where it collects, without a copy. */
#include "server/connection/connection_private.h"

#include <errno.h>
#include <stdlib.h>

#define HEAD_BYTES 4096 /* read behind what a door had read to itself */

void eski_input_forget(struct esk_connection *connection) {
    if (connection->kept) {
        if (connection->shard->broker) {
            esk_broker_memory_give(connection->shard->broker, connection->kept_bytes);
        }
        free(connection->kept);
        connection->kept = NULL;
    }
}

/* Notes what a read says besides its bytes; returns how many there are. */
static size_t note_read(struct esk_connection *connection, ssize_t count) {
    if (count < 0) {
        connection->is_aborted |= errno != EAGAIN;
    } else if (count == 0) {
        connection->input_ended = true;
        connection->peer_finished = true;
    }
    return count > 0 ? (size_t)count : 0;
}

/* Reads behind what was kept, all of it in the shard's window. Behind what went to the door
 * directly comes the head of something new, which is likely to want the same. */
void eski_input_read(struct esk_connection *connection) {
    uint8_t *window = connection->shard->window;
    size_t have = connection->input.size;
    size_t room = ESK_CONNECTION_WINDOW_BYTES - have;
    if (connection->direct_bytes && have == 0) {
        size_t count = note_read(
            connection, eski_socket_read(connection, connection->direct, connection->direct_bytes));
        connection->direct += count;
        connection->direct_bytes -= count;
        connection->direct_count += count;
        if (count == 0 || connection->direct_bytes || !connection->readable) {
            return;
        }
        room = HEAD_BYTES;
    }
    if (room == 0) {
        return;
    }
    if (have) {
        memcpy(window, connection->input.data, have);
    }
    size_t count = note_read(connection, eski_socket_read(connection, window + have, room));
    if (count) {
        connection->input = esk_slice(window, have + count);
    }
}

void esk_connection_read_into(struct esk_connection *connection, uint8_t *room, size_t size) {
    connection->direct = room;
    connection->direct_bytes = size;
}

size_t esk_connection_read_count(struct esk_connection *connection) {
    size_t count = connection->direct_count;
    connection->direct_count = 0;
    return count;
}

/* Bytes that were read cannot be left with the client. */
static void lose_input(struct esk_connection *connection) {
    if (!connection->door->overloaded) {
        connection->is_aborted = true;
        return;
    }
    connection->wants_input = false;
    connection->door->overloaded(connection);
    eski_shard_ready(connection->shard, connection);
}

/* Keeps what the door left, so that the window is free for the next connection. */
void eski_input_keep(struct esk_connection *connection) {
    struct esk_slice left = connection->input;
    if (left.size == 0 || connection->is_finishing) {
        eski_input_forget(connection);
        connection->input = esk_slice(NULL, 0);
        return;
    }
    if (connection->kept && left.data >= connection->kept &&
        left.data <= connection->kept + connection->kept_bytes) {
        return;
    }
    size_t bytes = left.size + ESK_CONNECTION_PADDING_BYTES;
    eski_input_forget(connection);
    if (connection->shard->broker && !esk_broker_memory_take(connection->shard->broker, bytes)) {
        connection->input = esk_slice(NULL, 0);
        lose_input(connection);
        return;
    }
    connection->kept = esk_alloc(bytes);
    connection->kept_bytes = bytes;
    memcpy(connection->kept, left.data, left.size);
    memset(connection->kept + left.size, 0, ESK_CONNECTION_PADDING_BYTES);
    connection->input = esk_slice(connection->kept, left.size);
}

/* A client that still sends gets more time, up to a bound. */
static void go_on_lingering(struct esk_connection *connection) {
    uint64_t due =
        eski_deadlines_tick(connection->shard, connection->shard->server->options.linger_ms);
    uint64_t last = connection->linger_last_tick;
    connection->stall_due_tick = due < last ? due : last; /* later: seen when the wheel is there */
}

/* While lingering: reads and drops, so that no reset overtakes the answer. */
void eski_input_drop(struct esk_connection *connection) {
    while (connection->readable && !connection->input_ended && !connection->is_aborted) {
        ssize_t count =
            eski_socket_read(connection, connection->shard->window, ESK_CONNECTION_WINDOW_BYTES);
        if (count > 0) {
            go_on_lingering(connection);
            eski_shard_ready(connection->shard, connection);
            return; /* one read a turn */
        }
        connection->input_ended = count == 0;
        connection->is_aborted = count < 0 && errno != EAGAIN;
    }
}
