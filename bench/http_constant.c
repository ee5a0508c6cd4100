/* SPDX-License-Identifier: Apache-2.0 */
/* The ceiling that durable produce over HTTP is measured against: the broker's connection layer and
 * HTTP parser, answering every request with the same bytes. No JSON is read, nothing is stored.
 *
 *   bench_http_constant [ADDR:PORT] [SHARDS]    prints "listening ADDR:PORT", ends on SIGTERM or
 * SIGINT
 */
#include "base/assert.h"
#include "runtime/loop.h"
#include "runtime/platform.h"
#include "server/connection/connection.h"
#include "server/connection/server.h"
#include "wire/http/head.h"
#include "wire/http/response.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define SHARDS_MAX 64
#define ANSWER "{\"results\":[{\"partition\":0,\"offset\":0}]}"

static struct esk_http_head heads[SHARDS_MAX]; /* scratch of each shard */

static void opened(struct esk_connection *connection) {
    (void)connection;
}

static void answer(struct esk_connection *connection) {
    struct esk_http_response response = {.status = 200,
                                         .content_type = "application/json",
                                         .has_length = true,
                                         .content_length = sizeof ANSWER - 1};
    uint8_t *head = esk_connection_reserve(connection, ESK_HTTP_RESPONSE_HEAD_BYTES_MAX);
    esk_connection_commit(connection, esk_http_response_head(&response, head));
    esk_connection_write(connection, ANSWER, sizeof ANSWER - 1);
}

static void serve(struct esk_connection *connection) {
    struct esk_http_head *head = &heads[esk_connection_shard(connection)];
    for (;;) {
        struct esk_slice input = esk_connection_input(connection);
        size_t scanned = 0;
        enum esk_err err =
            input.size ? esk_http_head_parse(input, &scanned, head, NULL) : ESK_ERR_AGAIN;
        if (err == ESK_ERR_AGAIN) {
            break;
        }
        if (err || head->is_chunked || head->content_length > ESK_CONNECTION_WINDOW_BYTES / 2) {
            esk_connection_abort(connection);
            return;
        }
        size_t size = head->size + head->content_length;
        if (input.size < size) {
            break;
        }
        esk_connection_consume(connection, size);
        answer(connection);
    }
    if (esk_connection_input_ended(connection) || esk_connection_stopping(connection)) {
        esk_connection_finish(connection);
    }
}

static void expired(struct esk_connection *connection) {
    esk_connection_abort(connection);
}

static void closed(struct esk_connection *connection) {
    (void)connection;
}

static const struct esk_door_ops ops = {opened, serve, expired, closed};

int main(int count, char **arguments) {
    const char *where = count > 1 ? arguments[1] : "127.0.0.1:0";
    uint32_t shards = count > 2 ? (uint32_t)atoi(arguments[2]) : 2;
    ESK_ASSERT(shards >= 1 && shards <= SHARDS_MAX);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    struct esk_platform *platform = esk_runtime_platform_create();
    struct esk_loop *loops[SHARDS_MAX];
    for (uint32_t i = 0; i < shards; i++) {
        loops[i] = esk_loop_create("constant");
        esk_loop_start(loops[i]);
    }
    struct esk_server_options options;
    esk_server_options_init(&options);
    options.platform = platform;
    options.loops = loops;
    options.shard_count = shards;
    struct esk_door door = {.ops = &ops};
    struct esk_server *server;
    char address[ESK_SERVER_ADDRESS_BYTES];
    struct esk_error error;
    if (esk_server_create(&options, &server, &error) ||
        esk_server_listen(server, &door, where, address, &error)) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("listening %s\n", address);
    (void)fflush(stdout);
    int number;
    sigwait(&signals, &number);

    esk_server_stop(server);
    for (uint32_t i = 0; i < shards; i++) {
        esk_loop_stop(loops[i]);
        esk_loop_join(loops[i]);
        esk_loop_destroy(loops[i]);
    }
    esk_runtime_platform_destroy(platform);
    return 0;
}
