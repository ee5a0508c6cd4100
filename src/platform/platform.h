/* SPDX-License-Identifier: Apache-2.0 */
/* The one way to time, random numbers, disk and threads for everything between journal and broker.
 * Two implementations: src/runtime (libuv, files, threads) and tests/sim (virtual clock, faulty
 * disk, one seed). */
#ifndef ESK_PLATFORM_PLATFORM_H
#define ESK_PLATFORM_PLATFORM_H

#include "platform/executor.h"
#include "platform/file.h"

struct esk_platform_ops {
    uint64_t (*monotonic_ns)(struct esk_platform *platform);
    int64_t (*wall_ms)(struct esk_platform *platform); /* since 1970; may step */
    void (*random_bytes)(struct esk_platform *platform, void *bytes, size_t size);
    /* An executor of `threads` threads that serve one queue in order of arrival. Destroying waits
     * until its queue has run. */
    struct esk_executor *(*worker_create)(struct esk_platform *platform, const char *name,
                                          unsigned threads);
    void (*worker_destroy)(struct esk_platform *platform, struct esk_executor *worker);
    /* Blocks a worker: pacing of background writes only. */
    void (*pause)(struct esk_platform *platform, uint64_t ns);

    enum esk_err (*file_open)(struct esk_platform *platform, const char *path, unsigned flags,
                              struct esk_file **file, struct esk_error *error);
    enum esk_err (*folder_make)(struct esk_platform *platform, const char *path,
                                struct esk_error *error);
    enum esk_err (*folder_sync)(struct esk_platform *platform, const char *path,
                                struct esk_error *error);
    enum esk_err (*folder_list)(struct esk_platform *platform, const char *path,
                                enum esk_err (*visit)(void *context, const char *name,
                                                      bool is_folder),
                                void *context, struct esk_error *error);
    enum esk_err (*path_rename)(struct esk_platform *platform, const char *from, const char *to,
                                struct esk_error *error);
    enum esk_err (*path_remove)(struct esk_platform *platform, const char *path,
                                struct esk_error *error);
    enum esk_err (*path_space)(struct esk_platform *platform, const char *path,
                               uint64_t *free_bytes, uint64_t *total_bytes,
                               struct esk_error *error);
    enum esk_err (*path_sync_all)(struct esk_platform *platform, const char *path,
                                  struct esk_error *error);
};
struct esk_platform {
    const struct esk_platform_ops *ops;
};

static inline uint64_t esk_monotonic_ns(struct esk_platform *platform) {
    return platform->ops->monotonic_ns(platform);
}

static inline int64_t esk_wall_ms(struct esk_platform *platform) {
    return platform->ops->wall_ms(platform);
}

static inline void esk_random_bytes(struct esk_platform *platform, void *bytes, size_t size) {
    platform->ops->random_bytes(platform, bytes, size);
}

static inline struct esk_executor *esk_worker_create(struct esk_platform *platform,
                                                     const char *name, unsigned threads) {
    return platform->ops->worker_create(platform, name, threads);
}

static inline void esk_worker_destroy(struct esk_platform *platform, struct esk_executor *worker) {
    platform->ops->worker_destroy(platform, worker);
}

static inline void esk_pause(struct esk_platform *platform, uint64_t ns) {
    platform->ops->pause(platform, ns);
}

#endif
