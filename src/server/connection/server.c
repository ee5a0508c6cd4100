/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop. The main thread sends each shard orders by mail and waits for their answers; the
 * shards' state is touched in their loops only. */
#include "server/connection/connection_private.h"

#include "base/assert.h"
#include "security/certificates.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define HANDSHAKE_MS_DEFAULT 10000
#define STALL_MS_DEFAULT 30000
#define LINGER_MS_DEFAULT 5000
#define STOP_MS_DEFAULT 10000
#define HELPER_THREADS_MAX 4

void esk_server_options_init(struct esk_server_options *options) {
    *options = (struct esk_server_options){.handshake_ms = HANDSHAKE_MS_DEFAULT,
                                           .stall_ms = STALL_MS_DEFAULT,
                                           .linger_ms = LINGER_MS_DEFAULT,
                                           .stop_ms = STOP_MS_DEFAULT};
}

/* --- orders --- */

static void answer(struct esk_server *server, int error_number) {
    pthread_mutex_lock(&server->mutex);
    server->orders_pending--;
    if (server->order_error == 0) {
        server->order_error = error_number;
    }
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->mutex);
}

/* Sends an order to the first `count` shards and waits; the first error of any, or 0. */
static int order(struct esk_server *server, uint32_t count, void (*run)(struct esk_mail *mail)) {
    pthread_mutex_lock(&server->mutex);
    server->orders_pending = count;
    server->order_error = 0;
    pthread_mutex_unlock(&server->mutex);
    for (uint32_t i = 0; i < count; i++) {
        server->shards[i].order.run = run;
        esk_post(&server->shards[i].loop->executor, &server->shards[i].order);
    }
    pthread_mutex_lock(&server->mutex);
    while (server->orders_pending) {
        pthread_cond_wait(&server->changed, &server->mutex);
    }
    int result = server->order_error;
    pthread_mutex_unlock(&server->mutex);
    return result;
}

static struct eski_shard *ordered(struct esk_mail *mail) {
    return ESK_CONTAINER(mail, struct eski_shard, order);
}

static void run_open(struct esk_mail *mail) {
    answer(ordered(mail)->server, eski_shard_open(ordered(mail)));
}

static void run_listen(struct esk_mail *mail) {
    struct esk_server *server = ordered(mail)->server;
    answer(server, eski_listener_watch(server->listeners));
}

static void run_certificates(struct esk_mail *mail) {
    struct eski_shard *shard = ordered(mail);
    esk_certificates_release(shard->certificates);
    shard->certificates = esk_certificates_retain(shard->server->certificates);
    answer(shard->server, 0);
}

static void run_deafen(struct esk_mail *mail) {
    struct esk_server *server = ordered(mail)->server;
    eski_listener_close_all(server);
    answer(server, 0);
}

static void run_stop(struct esk_mail *mail) {
    eski_shard_stop(ordered(mail));
    answer(ordered(mail)->server, 0);
}

static void run_abort(struct esk_mail *mail) {
    eski_shard_abort(ordered(mail));
    answer(ordered(mail)->server, 0);
}

static void on_closed(uv_handle_t *handle) {
    struct eski_shard *shard = handle->data;
    answer(shard->server, 0);
}

static void run_close(struct esk_mail *mail) {
    struct eski_shard *shard = ordered(mail);
    if (shard->epoll_fd >= 0) {
        eski_shard_close(shard, on_closed);
    } else {
        answer(shard->server, 0);
    }
}

static void run_resume(struct esk_mail *mail) {
    struct esk_server *server = ESK_CONTAINER(mail, struct esk_server, resume);
    atomic_store(&server->is_resuming, false);
    eski_listener_resume_all(server);
}

/* --- start --- */

/* What is not for connections is for segments, journals and the like. */
static uint32_t connections_max(uint32_t asked) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return asked ? asked : 512;
    }
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    rlim_t share = limit.rlim_cur / 4 * 3;
    uint32_t most = share < 1000000 ? (uint32_t)share : 1000000;
    return asked && asked < most ? asked : most;
}

static void destroy(struct esk_server *server) {
    for (uint32_t i = 0; i < server->options.shard_count; i++) {
        eski_shard_free(&server->shards[i]);
    }
    while (server->listeners) {
        struct eski_listener *next = server->listeners->next;
        free(server->listeners);
        server->listeners = next;
    }
    if (server->tls_helper) {
        esk_worker_destroy(server->options.platform, server->tls_helper);
    }
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->mutex);
    free(server->shards);
    free(server);
}

/* A handshake costs a few tenths of a millisecond: one helper for a few shards' new connections. */
static unsigned helper_threads(uint32_t shard_count) {
    return shard_count < 4 * HELPER_THREADS_MAX ? 1 + shard_count / 4 : HELPER_THREADS_MAX;
}

enum esk_err esk_server_create(const struct esk_server_options *options, struct esk_server **server,
                               struct esk_error *error) {
    struct esk_server *made = esk_alloc_zeroed(1, sizeof *made);
    made->options = *options;
    made->connections_max = connections_max(options->connections_max);
    made->resume.run = run_resume;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&made->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    made->shards = esk_alloc_zeroed(options->shard_count, sizeof *made->shards);
    for (uint32_t i = 0; i < options->shard_count; i++) {
        eski_shard_init(&made->shards[i], made, i);
    }
    if (options->certificates) {
        made->tls_helper =
            esk_worker_create(options->platform, "tls", helper_threads(options->shard_count));
    }
    int failed = order(made, options->shard_count, run_open);
    if (failed) {
        order(made, options->shard_count, run_close);
        destroy(made);
        return esk_fail_errno(error, ESK_ERR_IO, failed, "start the connection layer");
    }
    if (options->certificates) {
        esk_server_set_certificates(made, options->certificates);
    }
    *server = made;
    return ESK_OK;
}

enum esk_err esk_server_listen(struct esk_server *server, struct esk_door *door, const char *where,
                               char address[ESK_SERVER_ADDRESS_BYTES], struct esk_error *error) {
    struct eski_listener *listener = esk_alloc_zeroed(1, sizeof *listener);
    listener->server = server;
    listener->door = door;
    enum esk_err err = eski_listener_open(where, address, &listener->fd, error);
    if (err) {
        free(listener);
        return err;
    }
    /* Shard 0 reads the list while a listener is paused: it is changed before it can be. */
    listener->next = server->listeners;
    server->listeners = listener;
    int failed = order(server, 1, run_listen);
    return failed ? esk_fail_errno(error, ESK_ERR_IO, failed, "listen at %s", where) : ESK_OK;
}

void esk_server_set_certificates(struct esk_server *server, struct esk_certificates *certificates) {
    ESK_ASSERT(server->options.certificates);
    server->certificates = certificates;
    (void)order(server, server->options.shard_count, run_certificates);
    server->certificates = NULL;
}

/* --- stop --- */

void eski_server_connection_freed(struct esk_server *server) {
    if (atomic_fetch_sub(&server->connections, 1) == 1) {
        pthread_mutex_lock(&server->mutex);
        pthread_cond_broadcast(&server->changed);
        pthread_mutex_unlock(&server->mutex);
    }
}

/* Waits until no connection is left; false when that takes longer than wait_ms (0: for ever). */
static bool wait_for_connections(struct esk_server *server, uint32_t wait_ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int result = 0;
    pthread_mutex_lock(&server->mutex);
    while (atomic_load(&server->connections) && result == 0) {
        result = wait_ms ? pthread_cond_timedwait(&server->changed, &server->mutex, &until)
                         : pthread_cond_wait(&server->changed, &server->mutex);
    }
    pthread_mutex_unlock(&server->mutex);
    return result == 0;
}

void esk_server_stop(struct esk_server *server) {
    uint32_t shards = server->options.shard_count;
    order(server, 1, run_deafen);
    order(server, shards, run_stop);
    if (server->options.stop_ms == 0 || !wait_for_connections(server, server->options.stop_ms)) {
        order(server, shards, run_abort);
        (void)wait_for_connections(server, 0);
    }
    order(server, shards, run_close);
    destroy(server);
}
