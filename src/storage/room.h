/* SPDX-License-Identifier: Apache-2.0 */
/* Room on a full disk, in this order: the pool is emptied, then the ballast is spent, then the
 * write is tried for the last time. Everything that writes here goes through it. */
#ifndef ESK_STORAGE_ROOM_H
#define ESK_STORAGE_ROOM_H

#include "storage/segment.h"

/* Worker: esk_reserve_grow, and when the disk is full, once more with the pool emptied: files kept
 * for reuse must not be the reason why produces are refused. Errors as esk_reserve_grow. */
enum esk_err esk_room_grow_reserve(const struct esk_storage *storage, uint64_t more,
                                   struct esk_error *error);

#endif
