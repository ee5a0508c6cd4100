/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a load: started together, joined, their results added up. */
#include "esk/load_private.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define PROGRESS_MS 500
#define FILES_OTHER 16 /* open besides those of the load */

uint64_t eski_load_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t cpu_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

static enum esk_err open_thread(struct eski_load_thread *thread) {
    return thread->load->binary ? eski_load_binary_open(thread) : eski_load_open(thread);
}

static void close_thread(struct eski_load_thread *thread) {
    if (thread->load->binary) {
        eski_load_binary_close(thread);
    } else {
        eski_load_close(thread);
    }
}

static void *run_thread(void *context) {
    struct eski_load_thread *thread = context;
    if (thread->load->binary) {
        eski_load_binary_loop(thread);
    } else {
        eski_load_loop(thread);
    }
    return NULL;
}

static void prepare(struct esk_load *load, struct eski_load_thread *threads, uint32_t count) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct eski_load_thread *thread = &threads[i];
        *thread = (struct eski_load_thread){.load = load, .index = i, .quota = UINT64_MAX};
        thread->connection_count = load->connections / count + (i < load->connections % count);
        if (load->requests) {
            thread->quota = load->requests / count + (i < load->requests % count);
        }
        thread->connections =
            esk_alloc_zeroed(thread->connection_count, sizeof(*thread->connections));
        thread->request_count = thread->connection_count * load->in_flight;
        thread->idle = esk_alloc_zeroed(thread->request_count, sizeof(*thread->idle));
        thread->epoll_fd = thread->timer_fd = -1;
        for (uint32_t k = 0; k < thread->connection_count; k++, first++) {
            thread->connections[k].stream = ESK_HTTP_STREAM_NONE;
            thread->connections[k].variant = first;
        }
    }
}

static void wait_for(struct esk_load *load, struct eski_load_thread *threads, uint32_t count,
                     pthread_t *ids) {
    uint64_t began = eski_load_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        while (load->shows_progress) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_nsec += PROGRESS_MS * 1000000L;
            until.tv_sec += until.tv_nsec / 1000000000L;
            until.tv_nsec %= 1000000000L;
            if (pthread_timedjoin_np(ids[i], NULL, &until) == 0) {
                break;
            }
            fprintf(stderr, "\r%.0f s, %llu requests", (double)(eski_load_now_ns() - began) / 1e9,
                    (unsigned long long)atomic_load(&load->answered));
        }
        if (!load->shows_progress) {
            pthread_join(ids[i], NULL);
        }
        close_thread(&threads[i]);
    }
    if (load->shows_progress) {
        fputs("\r\x1b[K", stderr);
    }
}

static enum esk_err add_up(const struct esk_load *load, struct eski_load_thread *threads,
                           uint32_t count, struct esk_load_result *result,
                           struct esk_error *error) {
    uint64_t last_ns = threads[0].measure_ns;
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < count; i++) {
        const struct esk_load_result *one = &threads[i].result;
        result->requests += one->requests;
        result->records += one->records;
        result->bytes += one->bytes;
        result->errors += one->errors;
        esk_latency_merge(&result->latency, &one->latency);
        last_ns = threads[i].last_ns > last_ns ? threads[i].last_ns : last_ns;
        if (one->first_error[0] && !result->first_error[0]) {
            memcpy(result->first_error, one->first_error, sizeof(result->first_error));
        }
        if (threads[i].err != ESK_OK && err == ESK_OK) {
            err = threads[i].err;
            *error = threads[i].error;
        }
    }
    result->elapsed_ns =
        load->requests ? last_ns - threads[0].measure_ns : load->measured_s * 1000000000;
    return err;
}

/* Raises the limit of open files, then refuses more connections than it or the machine's ports
 * allow: each has a port of its own. */
static enum esk_err check_connections(const struct esk_load *load, struct esk_error *error) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        uint64_t each = load->binary ? 3 : 1; /* a pipeline has an epoll and a timer besides */
        uint64_t needed = load->connections * each + load->threads * UINT64_C(2) + FILES_OTHER;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needed) {
            return esk_fail(error, ESK_ERR_INVALID,
                            "%u connections need %llu open files, and %llu are allowed (ulimit -n)",
                            load->connections, (unsigned long long)needed,
                            (unsigned long long)limit.rlim_cur);
        }
    }
    unsigned first;
    unsigned last;
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    bool is_known = file && fscanf(file, "%u %u", &first, &last) == 2 && first <= last;
    if (file) {
        fclose(file);
    }
    if (is_known && load->connections > last - first + 1) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "%u connections need as many ports, and this machine gives out %u "
                        "(net.ipv4.ip_local_port_range)",
                        load->connections, last - first + 1);
    }
    return ESK_OK;
}

enum esk_err esk_load_run(struct esk_load *load, struct esk_load_result *result,
                          struct esk_error *error) {
    enum esk_err err = check_connections(load, error);
    if (err != ESK_OK) {
        return err;
    }
    uint32_t count = load->threads < load->connections ? load->threads : load->connections;
    struct eski_load_thread *threads = esk_alloc_zeroed(count, sizeof(*threads));
    pthread_t *ids = esk_alloc_zeroed(count, sizeof(*ids));
    memset(result, 0, sizeof(*result));
    uint64_t cpu_before = cpu_ns();
    prepare(load, threads, count);
    for (uint32_t i = 0; i < count && err == ESK_OK; i++) {
        err = open_thread(&threads[i]);
        if (err != ESK_OK) {
            *error = threads[i].error;
        }
    }
    uint64_t start_ns = eski_load_now_ns();
    uint32_t started = 0;
    for (; started < count && err == ESK_OK; started += err == ESK_OK) {
        struct eski_load_thread *thread = &threads[started];
        thread->start_ns = start_ns;
        thread->measure_ns = start_ns + (load->requests ? 0 : load->warmup_s * 1000000000);
        thread->end_ns =
            load->requests ? UINT64_MAX : thread->measure_ns + load->measured_s * 1000000000;
        if (pthread_create(&ids[started], NULL, run_thread, thread) != 0) {
            thread->quota = 0;
            err = esk_fail(error, ESK_ERR_UNAVAILABLE, "no thread can be started");
        }
    }
    wait_for(load, threads, started, ids);
    for (uint32_t i = started; i < count; i++) {
        close_thread(&threads[i]);
    }
    if (err == ESK_OK) {
        err = add_up(load, threads, count, result, error);
    }
    result->client_cpu_ns = cpu_ns() - cpu_before;
    free(threads);
    free(ids);
    return err;
}
