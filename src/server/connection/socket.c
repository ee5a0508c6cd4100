/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to and from the socket. Both return a count, 0 at the end of input, or -1 with errno;
 * EAGAIN means that an event will say when to go on. */
#include "server/connection/connection_private.h"

#include <errno.h>
#include <sys/socket.h>

ssize_t eski_socket_read(struct esk_connection *connection, void *bytes, size_t size) {
    ssize_t count;
    do {
        count = recv(connection->fd, bytes, size, 0);
    } while (count < 0 && errno == EINTR);
    return count;
}

ssize_t eski_socket_write(struct esk_connection *connection, const struct iovec *pieces,
                          int count) {
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces,
                             .msg_iovlen = (size_t)count};
    ssize_t sent;
    do {
        sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent;
}
