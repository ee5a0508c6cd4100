/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: a server on real loops and sockets whose door sends back what
 * comes, and ends when the client has. */
#ifndef ESK_SERVER_CONNECTION_ECHO_WORLD_TESTING_H
#define ESK_SERVER_CONNECTION_ECHO_WORLD_TESTING_H

#include "runtime/loop.h"
#include "runtime/platform.h"
#include "server/connection/connection.h"
#include "server/connection/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARDS 2

static struct {
    struct esk_platform *platform;
    struct esk_loop *loops[SHARDS];
    struct esk_server *server;
    char address[ESK_SERVER_ADDRESS_BYTES];
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    unsigned closed;      /* connections that have ended */
    struct esk_peer peer; /* of the last one */
} world = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static inline void echo_opened(struct esk_connection *connection) {
    pthread_mutex_lock(&world.mutex);
    world.peer = esk_connection_peer(connection);
    pthread_mutex_unlock(&world.mutex);
}

static inline void echo_serve(struct esk_connection *connection) {
    struct esk_slice input = esk_connection_input(connection);
    if (input.size > 0 &&
        esk_connection_output_bytes(connection) < ESK_CONNECTION_OUTPUT_BYTES_MAX) {
        esk_connection_write(connection, input.data, input.size);
        esk_connection_consume(connection, input.size);
    }
    bool has_all =
        esk_connection_input_ended(connection) && esk_connection_input(connection).size == 0;
    if (has_all || esk_connection_stopping(connection)) {
        esk_connection_finish(connection);
    }
}

static inline void echo_expired(struct esk_connection *connection) {
    esk_connection_abort(connection);
}

static inline void echo_closed(struct esk_connection *connection) {
    (void)connection;
    pthread_mutex_lock(&world.mutex);
    world.closed++;
    pthread_cond_broadcast(&world.changed);
    pthread_mutex_unlock(&world.mutex);
}

static const struct esk_door_ops echo_ops
    __attribute__((unused)) = {echo_opened, echo_serve, echo_expired, echo_closed};

static inline void start_loops(void) {
    world.closed = 0;
    world.platform = esk_runtime_platform_create();
    for (uint32_t i = 0; i < SHARDS; i++) {
        world.loops[i] = esk_loop_create("loop");
        esk_loop_start(world.loops[i]);
    }
}

/* `more` may be NULL; its platform, loops and shard count are set here. */
static inline void start(struct esk_door *door, const char *where,
                         const struct esk_server_options *more) {
    start_loops();
    struct esk_server_options options;
    esk_server_options_init(&options);
    if (more) {
        options = *more;
    }
    options.platform = world.platform;
    options.loops = world.loops;
    options.shard_count = SHARDS;
    struct esk_error error;
    assert_int_equal(esk_server_create(&options, &world.server, &error), ESK_OK);
    assert_int_equal(esk_server_listen(world.server, door, where, world.address, &error), ESK_OK);
}

static inline void stop(void) {
    esk_server_stop(world.server);
    for (uint32_t i = 0; i < SHARDS; i++) {
        esk_loop_stop(world.loops[i]);
        esk_loop_join(world.loops[i]);
        esk_loop_destroy(world.loops[i]);
    }
    esk_runtime_platform_destroy(world.platform);
}

static inline void wait_for_closed(unsigned count) {
    pthread_mutex_lock(&world.mutex);
    while (world.closed < count) {
        pthread_cond_wait(&world.changed, &world.mutex);
    }
    pthread_mutex_unlock(&world.mutex);
}

static inline int dial(void) {
    const char *port = strrchr(world.address, ':') + 1;
    struct sockaddr_in where = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static inline void send_all(int fd, const void *bytes, size_t size) {
    const char *at = bytes;
    while (size) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        assert_true(sent > 0);
        at += sent;
        size -= (size_t)sent;
    }
}

/* What comes until the end, up to size; *result is what ended it: 0, or an errno value. */
static inline size_t receive_all(int fd, void *bytes, size_t size, int *result) {
    size_t have = 0;
    ssize_t count = 0;
    while (have < size && (count = recv(fd, (char *)bytes + have, size - have, 0)) > 0) {
        have += (size_t)count;
    }
    *result = count < 0 ? errno : 0;
    return have;
}

#endif
