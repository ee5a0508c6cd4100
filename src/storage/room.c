/* SPDX-License-Identifier: Apache-2.0 */
/* The one place that decides what gives way on a full disk. Each step is tried whether or not the
 * one before freed anything: another writer may have just made the room. */
#include "storage/room.h"

#include "base/mutation.h"
#include "storage/pool.h"
#include "storage/reserve.h"
#include "storage/segment_private.h"

bool eski_room_again(const struct esk_storage *storage, unsigned *tries, enum esk_err *err,
                     struct esk_error *error) {
    if (*err != ESK_ERR_NO_SPACE) {
        return false;
    }
    switch ((*tries)++) {
    case 0:
        ESK_REACHED(APPLY_NO_SPACE);
        esk_pool_empty(storage->pool);
        return true;
    case 1: {
        enum esk_err spent = esk_reserve_spend(storage->reserve, error);
        if (spent != ESK_OK) {
            *err = spent;
        }
        return spent == ESK_OK;
    }
    default:
        return false;
    }
}

enum esk_err esk_room_grow_reserve(const struct esk_storage *storage, uint64_t more,
                                   struct esk_error *error) {
    enum esk_err err = esk_reserve_grow(storage->reserve, more, error);
    if (err == ESK_ERR_NO_SPACE && esk_pool_empty(storage->pool) > 0) {
        err = esk_reserve_grow(storage->reserve, more, error);
    }
    return err;
}
