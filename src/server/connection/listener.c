/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets, all in shard 0's epoll set. Connections go round the shards, which spreads few
 * of them evenly (SO_REUSEPORT would hash them). Out of descriptors, or at the bound, a listener
 * leaves the epoll set, so nothing spins; it returns when a connection has closed, or on a tick. */
#include "server/connection/connection_private.h"

#include "base/assert.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn */
#define ACCEPTS_PER_TURN 64

/* --- opening --- */

/* Splits "HOST:PORT" or "[HOST]:PORT". */
static bool split(const char *where, char *host, size_t host_bytes, const char **port) {
    const char *colon = strrchr(where, ':');
    if (!colon || colon == where) {
        return false;
    }
    const char *start = where;
    size_t size = (size_t)(colon - where);
    if (*start == '[') {
        if (size < 3 || start[size - 1] != ']') {
            return false;
        }
        start++;
        size -= 2;
    } else if (memchr(start, ':', size)) {
        return false; /* an IPv6 address needs brackets */
    }
    if (size >= host_bytes) {
        return false;
    }
    memcpy(host, start, size);
    host[size] = '\0';
    char *end;
    *port = colon + 1;
    unsigned long number = strtoul(*port, &end, 10);
    return **port >= '0' && **port <= '9' && *end == '\0' && number <= 65535;
}

static void describe(int fd, char address[ESK_SERVER_ADDRESS_BYTES]) {
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    char host[NI_MAXHOST] = "?";
    char port[NI_MAXSERV] = "?";
    if (getsockname(fd, (struct sockaddr *)&bound, &size) == 0) {
        (void)getnameinfo((struct sockaddr *)&bound, size, host, sizeof host, port, sizeof port,
                          NI_NUMERICHOST | NI_NUMERICSERV);
    }
    (void)snprintf(address, ESK_SERVER_ADDRESS_BYTES,
                   bound.ss_family == AF_INET6 ? "[%.60s]:%.5s" : "%.60s:%.5s", host, port);
}

static enum esk_err bind_to(const struct addrinfo *info, const char *where, int *fd,
                            struct esk_error *error) {
    *fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, info->ai_protocol);
    if (*fd < 0) {
        return esk_fail_errno(error, ESK_ERR_IO, errno, "open a socket for %s", where);
    }
    int on = 1;
    (void)setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(*fd, info->ai_addr, info->ai_addrlen) == 0 && listen(*fd, BACKLOG) == 0) {
        return ESK_OK;
    }
    int number = errno;
    close(*fd);
    *fd = -1;
    enum esk_err err = number == EADDRINUSE      ? ESK_ERR_CONFLICT
                       : number == EACCES        ? ESK_ERR_PERMISSION
                       : number == EADDRNOTAVAIL ? ESK_ERR_INVALID
                                                 : ESK_ERR_IO;
    return esk_fail_errno(error, err, number, "listen at %s", where);
}

enum esk_err eski_listener_open(const char *where, char address[ESK_SERVER_ADDRESS_BYTES], int *fd,
                                struct esk_error *error) {
    char host[256];
    const char *port;
    if (!split(where, host, sizeof host, &port)) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "'%s' is no address: it must be ADDR:PORT or [ADDR]:PORT", where);
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int result = getaddrinfo(host, port, &hints, &found);
    if (result != 0) {
        return esk_fail(error, ESK_ERR_INVALID, "'%s' is no address: %s", where,
                        gai_strerror(result));
    }
    enum esk_err err = bind_to(found, where, fd, error);
    freeaddrinfo(found);
    if (err == ESK_OK && address) {
        describe(*fd, address);
    }
    return err;
}

/* --- accepting --- */

static int watch(struct eski_listener *listener, int operation) {
    struct epoll_event event = {.events = EPOLLIN,
                                .data.u64 = (uintptr_t)listener + ESKI_LISTENER_TAG};
    int epoll_fd = listener->server->shards[0].epoll_fd;
    return epoll_ctl(epoll_fd, operation, listener->fd, &event) < 0 ? errno : 0;
}

int eski_listener_watch(struct eski_listener *listener) {
    return watch(listener, EPOLL_CTL_ADD);
}

static void pause_listener(struct eski_listener *listener) {
    listener->is_paused = true;
    atomic_store(&listener->server->is_paused, true);
    (void)watch(listener, EPOLL_CTL_DEL);
    eski_deadlines_start(&listener->server->shards[0]);
}

static struct esk_peer peer_of(const struct sockaddr_storage *address) {
    struct esk_peer peer = {0};
    if (address->ss_family == AF_INET6) {
        memcpy(peer.bytes, &((const struct sockaddr_in6 *)address)->sin6_addr, ESK_PEER_BYTES);
    } else if (address->ss_family == AF_INET) {
        peer.bytes[10] = 0xff;
        peer.bytes[11] = 0xff;
        memcpy(peer.bytes + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
    }
    return peer;
}

static void hand_over(struct eski_listener *listener, int fd, const struct esk_peer *peer) {
    struct esk_server *server = listener->server;
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    atomic_fetch_add(&server->sockets, 1);
    atomic_fetch_add(&server->connections, 1);
    struct eski_shard *shard = &server->shards[server->shard_next];
    server->shard_next = (server->shard_next + 1) % server->options.shard_count;
    (void)eski_connection_create(shard, listener->door, fd, peer);
}

void eski_listener_accept(struct eski_listener *listener) {
    struct esk_server *server = listener->server;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        if (atomic_load(&server->sockets) >= server->connections_max) {
            pause_listener(listener);
            return;
        }
        struct sockaddr_storage address = {0};
        socklen_t size = sizeof address;
        int fd =
            accept4(listener->fd, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            struct esk_peer peer = peer_of(&address);
            hand_over(listener, fd, &peer);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            ESK_LOG(server->options.log, ESK_LOG_WARN, "accept-paused",
                    "no descriptor or memory for a new connection",
                    esk_field_text("error", strerror(errno)),
                    esk_field_u64("connections", atomic_load(&server->sockets)));
            pause_listener(listener);
            return;
        } /* else: that client has gone already */
    }
}

void eski_listener_resume_all(struct esk_server *server) {
    if (!atomic_load(&server->is_paused)) {
        return;
    }
    atomic_store(&server->is_paused, false);
    for (struct eski_listener *listener = server->listeners; listener; listener = listener->next) {
        if (listener->is_paused && listener->fd >= 0) {
            listener->is_paused = false;
            eski_listener_accept(listener);
            if (!listener->is_paused) {
                (void)watch(listener, EPOLL_CTL_ADD);
            }
        }
    }
}

void eski_listener_descriptor_freed(struct esk_server *server) {
    atomic_fetch_sub(&server->sockets, 1);
    if (atomic_load(&server->is_paused) && !atomic_exchange(&server->is_resuming, true)) {
        esk_post(&server->shards[0].loop->executor, &server->resume);
    }
}

void eski_listener_close_all(struct esk_server *server) {
    for (struct eski_listener *listener = server->listeners; listener; listener = listener->next) {
        close(listener->fd);
        listener->fd = -1;
    }
}
