/* SPDX-License-Identifier: Apache-2.0 */
/* Files kept for reuse as segments: recycled files are written three times as fast as growing ones,
 * and unlinking large files stalls the journal (bench/RESULTS.md). At most 1 GiB or 2 % of the
 * disk; beyond it a file shrinks step by step before it is unlinked, and small files are not worth
 * keeping. Thread-safe; for workers. No lock is held over a call of the platform.
 *
 * A file in the pool says so in its header, durably, before it may be used again, and its old and
 * new names are gone, durably, before it is written: after a crash no file is both a segment and
 * free, whatever the disk made of the renames. What does not say so at the start is unlinked. */
#ifndef ESK_STORAGE_POOL_H
#define ESK_STORAGE_POOL_H

#include "base/error.h"
#include "platform/platform.h"

struct esk_pool;

/* folder: <data-dir>/pool, made when missing; finds what is there. limit_bytes 0: the default. */
enum esk_err esk_pool_create(struct esk_platform *platform, const char *folder,
                             uint64_t limit_bytes, struct esk_pool **pool, struct esk_error *error);
void esk_pool_destroy(struct esk_pool *pool); /* all segments are closed */
/* Renames a pooled file to path, *taken tells whether there was one; its old bytes are still in it.
 * The pool no longer has its name, durably. ESK_ERR_NOT_FOUND: path's folder is missing. */
enum esk_err esk_pool_take(struct esk_pool *pool, const char *path, bool *taken,
                           struct esk_error *error);
/* Takes the segment file at path, that of the group, base offset and revision, out of service: into
 * the pool, or away; a missing one is fine. A file whose header says otherwise only loses this
 * name: a power loss may have kept the old name of a file that is another segment by now. Segments
 * still open on it keep reading: it is not used again before they are closed. */
enum esk_err esk_pool_give(struct esk_pool *pool, const char *path, uint64_t group_id,
                           uint64_t base_offset, uint32_t revision, struct esk_error *error);
/* Gives everything back to the disk: on ENOSPC. Returns the bytes freed. */
uint64_t esk_pool_empty(struct esk_pool *pool);

#endif
