/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: the door on real loops and sockets over the broker in memory, and a
 * client that sends bytes as they are. */
#ifndef ESK_SERVER_HTTP_DOOR_WORLD_TESTING_H
#define ESK_SERVER_HTTP_DOOR_WORLD_TESTING_H

#include "runtime/loop.h"
#include "runtime/platform.h"
#include "server/connection/server.h"
#include "server/http/fake_groups_testing.h"
#include "server/http/fake_keys_testing.h"
#include "server/http/fake_producers_testing.h"
#include "server/http/fake_records_testing.h"
#include "server/http/fake_registry_testing.h"
#include "server/http/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    struct esk_platform *platform;
    struct esk_loop *loops[SHARDS];
    struct esk_server *server;
    struct esk_http *http;
    char address[ESK_SERVER_ADDRESS_BYTES];
} world;

static char logged[4096] __attribute__((unused)); /* the last line */

static inline int64_t log_wall_ms(void *context) {
    (void)context;
    return 0;
}
static inline void log_write(void *context, const char *line, size_t size) {
    (void)context;
    pthread_mutex_lock(&fake.mutex); /* loops write at the same time */
    (void)snprintf(logged, sizeof logged, "%.*s", (int)size, line);
    pthread_mutex_unlock(&fake.mutex);
}
static const struct esk_log test_log = {ESK_LOG_INFO, true, log_wall_ms, log_write, NULL};

static inline void start(uint32_t deadline_ms) {
    memset(&fake, 0, sizeof fake);
    pthread_mutex_init(&fake.mutex, NULL);
    pthread_cond_init(&fake.changed, NULL);
    fake.options.fetch_records_max = ESK_FETCH_RECORDS_MAX_DEFAULT;
    fake.options.fetch_bytes_max = ESK_FETCH_BYTES_MAX_DEFAULT;
    world.platform = esk_runtime_platform_create();
    for (uint32_t i = 0; i < SHARDS; i++) {
        world.loops[i] = esk_loop_create("loop");
        fake.shards[i].loop = world.loops[i];
        esk_loop_start(world.loops[i]);
    }
    struct esk_broker *broker = (struct esk_broker *)&fake;
    struct esk_server_options options;
    esk_server_options_init(&options);
    options.platform = world.platform;
    options.loops = world.loops;
    options.shard_count = SHARDS;
    options.broker = broker;
    options.log = &test_log;
    struct esk_http_options http;
    esk_http_options_init(&http);
    http.platform = world.platform;
    http.broker = broker;
    http.shard_count = SHARDS;
    http.log = &test_log;
    if (deadline_ms) {
        http.head_ms = http.body_ms = http.idle_ms = deadline_ms;
    }
    struct esk_error error;
    assert_int_equal(esk_server_create(&options, &world.server, &error), ESK_OK);
    world.http = esk_http_create(&http);
    assert_int_equal(esk_server_listen(world.server, esk_http_door(world.http), "127.0.0.1:0",
                                       world.address, &error),
                     ESK_OK);
}

static inline void stop(void) {
    esk_server_stop(world.server);
    esk_http_destroy(world.http);
    for (uint32_t i = 0; i < SHARDS; i++) {
        esk_loop_stop(world.loops[i]);
        esk_loop_join(world.loops[i]);
        esk_loop_destroy(world.loops[i]);
    }
    esk_runtime_platform_destroy(world.platform);
    for (int p = 0; p < 2; p++) {
        for (uint32_t i = 0; i < fake.batch_count[p]; i++) {
            esk_block_release(fake.batches[p][i]);
        }
    }
    assert_int_equal(fake.taken, 0); /* all of the budget came back */
}

static inline int dial(void) {
    const char *port = strrchr(world.address, ':') + 1;
    struct sockaddr_in where = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
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

static inline void send_text(int fd, const char *text) {
    send_all(fd, text, strlen(text));
}

/* All bytes until the end. */
static inline char *read_all(int fd) {
    struct esk_buffer got;
    esk_buffer_init(&got);
    for (;;) {
        ssize_t count = recv(fd, esk_buffer_grow(&got, 65536), 65536, 0);
        if (count <= 0) {
            break;
        }
        got.size += (size_t)count;
    }
    esk_buffer_u8(&got, 0);
    close(fd);
    return (char *)got.data;
}

/* One request on a connection of its own; the whole answer. */
static inline char *ask(const char *method, const char *path, const char *body) {
    int fd = dial();
    char *request = esk_text_format("%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                                    "Content-Length: %zu\r\n\r\n%s",
                                    method, path, strlen(body), body);
    send_text(fd, request);
    free(request);
    return read_all(fd);
}

static inline void expect(const char *method, const char *path, const char *body, int status,
                          const char *answer) {
    char *got = ask(method, path, body);
    char *found = strstr(got, "\r\n\r\n");
    if (!found || atoi(got + 9) != status || (answer && strcmp(found + 4, answer) != 0)) {
        print_error("%s %s %s\nwanted %d %s\ngot %s\n", method, path, body, status,
                    answer ? answer : "", got);
        fail();
    }
    free(got);
}

static inline void wait_until(const bool *what) {
    pthread_mutex_lock(&fake.mutex);
    while (!*what) {
        pthread_cond_wait(&fake.changed, &fake.mutex);
    }
    pthread_mutex_unlock(&fake.mutex);
}

static inline void wait_for_poll(void) {
    pthread_mutex_lock(&fake.mutex);
    while (!fake.waiting) {
        pthread_cond_wait(&fake.changed, &fake.mutex);
    }
    pthread_mutex_unlock(&fake.mutex);
}

#endif
