/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to and from the client, through TLS where the connection has it. Counts, 0 at the end of
 * input, or -1 with errno; EAGAIN means that an event will say when to go on. */
#include "server/connection/tls_private.h"

#include <errno.h>
#include <sys/socket.h>

ssize_t eski_socket_read(struct esk_connection *connection, void *bytes, size_t size) {
    /* After our last byte nobody looks at the client's any more: they need no decryption. */
    if (connection->tls && !connection->is_lingering) {
        return eski_tls_read(connection, bytes, size);
    }
    ssize_t count;
    do {
        count = recv(connection->fd, bytes, size, 0);
    } while (count < 0 && errno == EINTR);
    /* A short read has emptied the socket; the next bytes will be an event, its end was one. */
    connection->readable = count > 0 && ((size_t)count == size || connection->peer_finished);
    return count;
}

ssize_t eski_socket_write(struct esk_connection *connection, const struct iovec *pieces,
                          int count) {
    if (connection->tls) {
        if (connection->tls->state == ESKI_TLS_ESTABLISHED) {
            return eski_tls_write(connection, pieces, count);
        }
        errno = EPIPE;
        return -1;
    }
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces,
                             .msg_iovlen = (size_t)count};
    ssize_t sent;
    do {
        sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent;
}

int eski_socket_finish(struct esk_connection *connection) {
    if (connection->tls && connection->tls->state == ESKI_TLS_ESTABLISHED &&
        eski_tls_goodbye(connection) < 0) {
        return -1;
    }
    return shutdown(connection->fd, SHUT_WR);
}
