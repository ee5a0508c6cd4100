/* SPDX-License-Identifier: Apache-2.0 */
/* The ballast: an allocated file that guarantees room to apply what was admitted. A committed entry
 * can't be refused, so admitted but not yet written bytes never exceed the ballast: produces take
 * from it (any shard's loop, an atomic), the writers give back. It starts at 16 MiB, grows in steps
 * up to 512 MiB when asked, and shrinks when idle. When the disk is full, the pool is emptied
 * first, then the ballast is spent: esk_reserve_spend. */
#ifndef ESK_STORAGE_RESERVE_H
#define ESK_STORAGE_RESERVE_H

#include "base/error.h"
#include "platform/platform.h"

struct esk_reserve;

#define ESK_RESERVE_STEP_BYTES (16u << 20)
#define ESK_RESERVE_BYTES_MAX (512u << 20) /* the journal's bound: no more can be unapplied */

/* Nothing is allocated yet: the first grow does that (behind the first answer). Bounds are
 * run-time values so that a simulated run can be small. */
struct esk_reserve *esk_reserve_create(struct esk_platform *platform, const char *path,
                                       uint64_t step_bytes, uint64_t bytes_max);
void esk_reserve_destroy(struct esk_reserve *reserve);

/* Any loop. ESK_OK: bytes are admitted. ESK_ERR_AGAIN: they would exceed what is allocated: have a
 * worker call esk_reserve_grow, wait. ESK_ERR_NO_SPACE: growing failed lately, or the ballast was
 * spent. Up to one step is admitted before the file exists. bytes is at most bytes_max. */
enum esk_err esk_reserve_take(struct esk_reserve *reserve, uint64_t bytes);
void esk_reserve_give(struct esk_reserve *reserve, uint64_t bytes);
/* Any loop. How much `more` to let it grow before anyone has to wait: 0 while less than half of it
 * is taken, at its largest, and where growing failed lately. */
uint64_t esk_reserve_wanted(struct esk_reserve *reserve);

/* Worker: allocates so that everything admitted plus `more` has room, as far as bytes_max lets it,
 * or one step more where the disk has no room for all. After ESK_ERR_NO_SPACE it may be called
 * again at any time (the partition layer does so on a timer; through esk_room_grow_reserve, which
 * empties the pool first). ESK_ERR_AGAIN: bytes_max is reached, wait until writers give back. */
enum esk_err esk_reserve_grow(struct esk_reserve *reserve, uint64_t more, struct esk_error *error);
/* Worker: gives the ballast's blocks to the disk, so that writes of admitted bytes succeed. */
enum esk_err esk_reserve_spend(struct esk_reserve *reserve, struct esk_error *error);
/* Worker, when idle: back to one step. */
enum esk_err esk_reserve_shrink(struct esk_reserve *reserve, struct esk_error *error);

#endif
