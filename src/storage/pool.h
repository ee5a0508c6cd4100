/* SPDX-License-Identifier: Apache-2.0 */
/* Files kept for reuse as segments: recycled files are written three times as fast as growing ones,
 * and unlinking large files stalls the journal (bench/RESULTS.md). At most 1 GiB or 2 % of the disk;
 * beyond it a file shrinks step by step before it is unlinked. Thread-safe; for workers. */
#ifndef ESK_STORAGE_POOL_H
#define ESK_STORAGE_POOL_H

#include "base/error.h"
#include "platform/platform.h"

struct esk_pool;

/* folder: <data-dir>/pool, made when missing; finds what is there. limit_bytes 0: the default. */
enum esk_err esk_pool_create(struct esk_platform *platform, const char *folder,
                             uint64_t limit_bytes, struct esk_pool **pool, struct esk_error *error);
void esk_pool_destroy(struct esk_pool *pool);
/* Renames a pooled file to path; false when there is none. Its old bytes are still in it. */
bool esk_pool_take(struct esk_pool *pool, const char *path);
/* Takes the file at path out of service: into the pool, or away. */
enum esk_err esk_pool_give(struct esk_pool *pool, const char *path, struct esk_error *error);
/* Gives everything back to the disk: on ENOSPC. Returns the bytes freed. */
uint64_t esk_pool_empty(struct esk_pool *pool);

#endif
