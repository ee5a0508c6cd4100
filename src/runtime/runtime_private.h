/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: the operations of the platform's table, and which executor
 * the calling thread serves. */
#ifndef ESK_RUNTIME_PRIVATE_H
#define ESK_RUNTIME_PRIVATE_H

#include "platform/platform.h"

#include <pthread.h>

/* The loop or worker whose thread this is; NULL in others. */
extern _Thread_local const struct esk_executor *eski_current_executor;

/* Starts a thread of ours: named, and with all signals blocked, so that they reach main. */
void eski_thread_start(pthread_t *thread, const char *name, void *(*run)(void *context),
                       void *context);

uint64_t eski_monotonic_ns(void);

struct eski_aio *eski_loop_aio(struct esk_loop *loop);

struct esk_executor *eski_worker_create(struct esk_platform *platform, const char *name,
                                        unsigned threads);
void eski_worker_destroy(struct esk_platform *platform, struct esk_executor *worker);

enum esk_err eski_file_open(struct esk_platform *platform, const char *path, unsigned flags,
                            struct esk_file **file, struct esk_error *error);
/* Sets the write's result: bytes written, or a negative errno value. */
void eski_file_write_ended(struct esk_write *write, int64_t result);
enum esk_err eski_runtime_folder_make(struct esk_platform *platform, const char *path,
                                      struct esk_error *error);
enum esk_err eski_runtime_folder_sync(struct esk_platform *platform, const char *path,
                                      struct esk_error *error);
enum esk_err eski_runtime_folder_list(struct esk_platform *platform, const char *path,
                                      enum esk_err (*visit)(void *context, const char *name,
                                                            bool is_folder),
                                      void *context, struct esk_error *error);
enum esk_err eski_runtime_path_rename(struct esk_platform *platform, const char *from,
                                      const char *to, struct esk_error *error);
enum esk_err eski_runtime_path_remove(struct esk_platform *platform, const char *path,
                                      struct esk_error *error);
enum esk_err eski_runtime_path_space(struct esk_platform *platform, const char *path,
                                     uint64_t *free_bytes, uint64_t *total_bytes,
                                     struct esk_error *error);
enum esk_err eski_runtime_path_sync_all(struct esk_platform *platform, const char *path,
                                        struct esk_error *error);

#endif
