/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, random numbers and threads of the operating system, and the table that joins them with
 * files and workers. */
#include "runtime/platform.h"

#include "base/assert.h"
#include "base/memory.h"
#include "runtime/runtime_private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

_Thread_local const struct esk_executor *eski_current_executor;

struct start {
    void *(*run)(void *context);
    void *context;
    char name[16]; /* what Linux keeps */
};

static void *begin(void *context) {
    struct start start = *(struct start *)context;
    free(context);
    pthread_setname_np(pthread_self(), start.name);
    return start.run(start.context);
}

void eski_thread_start(pthread_t *thread, const char *name, void *(*run)(void *context),
                       void *context) {
    struct start *start = esk_alloc(sizeof(*start));
    *start = (struct start){.run = run, .context = context};
    strncpy(start->name, name, sizeof(start->name) - 1);
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(thread, NULL, begin, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    ESK_ASSERT(failed == 0);
}

uint64_t eski_monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t monotonic_ns(struct esk_platform *platform) {
    (void)platform;
    return eski_monotonic_ns();
}

static int64_t wall_ms(struct esk_platform *platform) {
    (void)platform;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void random_bytes(struct esk_platform *platform, void *bytes, size_t size) {
    (void)platform;
    uint8_t *at = bytes;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        ESK_ASSERT(got > 0 || errno == EINTR);
        if (got > 0) {
            at += got;
            size -= (size_t)got;
        }
    }
}

static void pause_ns(struct esk_platform *platform, uint64_t ns) {
    (void)platform;
    struct timespec left = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

static const struct esk_platform_ops ops = {
    .monotonic_ns = monotonic_ns,
    .wall_ms = wall_ms,
    .random_bytes = random_bytes,
    .worker_create = eski_worker_create,
    .worker_destroy = eski_worker_destroy,
    .pause = pause_ns,
    .file_open = eski_file_open,
    .folder_make = eski_runtime_folder_make,
    .folder_sync = eski_runtime_folder_sync,
    .folder_list = eski_runtime_folder_list,
    .path_rename = eski_runtime_path_rename,
    .path_remove = eski_runtime_path_remove,
    .path_space = eski_runtime_path_space,
    .path_sync_all = eski_runtime_path_sync_all,
};

struct esk_platform *esk_runtime_platform_create(void) {
    struct esk_platform *platform = esk_alloc(sizeof(*platform));
    platform->ops = &ops;
    return platform;
}

void esk_runtime_platform_destroy(struct esk_platform *platform) {
    free(platform);
}
