/* SPDX-License-Identifier: Apache-2.0 */
/* The ballast file and the account of admitted bytes. Loops touch two atomics only; the file is
 * changed by one worker at a time, which has the turn (no lock is held over a platform call, since
 * the simulation may switch tasks in each).
 *
 * A take adds first and looks at the limit afterwards; whoever lowers the limit does so first and
 * looks at the admitted bytes afterwards. So one of the two always notices the other. */
#include "storage/reserve.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/mutation.h"

#include <inttypes.h>
#include <stdlib.h>

#define TURN_WAIT_NS 1000000    /* a worker that waits for another's change of the file */
#define AHEAD_STEPS 4           /* at most, of what is made before it is needed */
#define ZEROS_BYTES (64 * 1024) /* written at once where the file system can't allocate */

struct esk_reserve {
    struct esk_platform *platform;
    char *path;
    uint64_t step_bytes;
    uint64_t bytes_max;
    atomic_uint_fast64_t admitted;
    atomic_uint_fast64_t limit; /* what may be admitted: `allocated`, or a step before any growth */
    atomic_bool refused;        /* the last growth failed, or the ballast was spent */
    atomic_flag turn;
    uint64_t allocated; /* bytes of the file; only with the turn */
};

struct esk_reserve *esk_reserve_create(struct esk_platform *platform, const char *path,
                                       uint64_t step_bytes, uint64_t bytes_max) {
    ESK_ASSERT(step_bytes > 0);
    ESK_ASSERT(step_bytes <= bytes_max);
    struct esk_reserve *reserve = esk_alloc_zeroed(1, sizeof(*reserve));
    reserve->platform = platform;
    reserve->path = esk_text_copy(path);
    reserve->step_bytes = step_bytes;
    reserve->bytes_max = bytes_max;
    atomic_init(&reserve->limit, step_bytes);
    atomic_flag_clear(&reserve->turn);
    return reserve;
}

void esk_reserve_destroy(struct esk_reserve *reserve) {
    if (reserve) {
        free(reserve->path);
        free(reserve);
    }
}

enum esk_err esk_reserve_take(struct esk_reserve *reserve, uint64_t bytes) {
    ESK_ASSERT(bytes <= reserve->bytes_max);
    uint64_t admitted = atomic_fetch_add(&reserve->admitted, bytes) + bytes;
    if (admitted <= atomic_load(&reserve->limit)) {
        return ESK_OK;
    }
    atomic_fetch_sub(&reserve->admitted, bytes);
    return atomic_load(&reserve->refused) ? ESK_ERR_NO_SPACE : ESK_ERR_AGAIN;
}

void esk_reserve_give(struct esk_reserve *reserve, uint64_t bytes) {
    uint64_t before = atomic_fetch_sub(&reserve->admitted, bytes);
    ESK_ASSERT(before >= bytes);
}

uint64_t esk_reserve_wanted(struct esk_reserve *reserve) {
    uint64_t limit = atomic_load(&reserve->limit);
    uint64_t admitted = atomic_load(&reserve->admitted);
    if (admitted <= limit / 2 || limit >= reserve->bytes_max || atomic_load(&reserve->refused)) {
        return 0;
    }
    uint64_t most = AHEAD_STEPS * reserve->step_bytes;
    return (limit > admitted ? limit - admitted : 0) + (limit < most ? limit : most);
}

static void turn_begin(struct esk_reserve *reserve) {
    while (atomic_flag_test_and_set(&reserve->turn)) {
        esk_pause(reserve->platform, TURN_WAIT_NS);
    }
}

static void turn_end(struct esk_reserve *reserve) {
    atomic_flag_clear(&reserve->turn);
}

/* Whole steps for so many bytes: at least one, at most the bound. */
static uint64_t whole_steps(const struct esk_reserve *reserve, uint64_t bytes) {
    uint64_t steps = bytes / reserve->step_bytes + (bytes % reserve->step_bytes != 0);
    uint64_t size;
    if (ESK_MULTIPLY_OVERFLOWS(steps ? steps : 1, reserve->step_bytes, &size) ||
        size > reserve->bytes_max) {
        return reserve->bytes_max;
    }
    return size;
}

static enum esk_err write_zeros(struct esk_file *file, uint64_t from, uint64_t to,
                                struct esk_error *error) {
    uint8_t *zeros = esk_alloc_zeroed(1, ZEROS_BYTES);
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && from < to) {
        struct esk_slice slice =
            esk_slice(zeros, to - from < ZEROS_BYTES ? (size_t)(to - from) : ZEROS_BYTES);
        err = esk_file_write(file, &slice, 1, from, error);
        from += slice.size;
    }
    free(zeros);
    return err;
}

/* Makes the file exactly `target` bytes with blocks behind all of them. What an earlier run left
 * is used again. */
static enum esk_err allocate(struct esk_reserve *reserve, struct esk_file *file, uint64_t target,
                             struct esk_error *error) {
    uint64_t from = reserve->allocated;
    enum esk_err err = esk_file_allocate(file, from, target - from, error);
    if (err == ESK_ERR_UNSUPPORTED) {
        err = write_zeros(file, from, target, error);
    }
    uint64_t size = 0;
    if (err == ESK_OK) {
        err = esk_file_size(file, &size, error);
    }
    if (err == ESK_OK && size > target) {
        err = esk_file_truncate(file, target, error);
    }
    return err;
}

/* All or nothing. */
static enum esk_err extend(struct esk_reserve *reserve, uint64_t target, struct esk_error *error) {
    struct esk_file *file = NULL;
    enum esk_err err = esk_file_open(reserve->platform, reserve->path,
                                     ESK_FILE_WRITE | ESK_FILE_CREATE, &file, error);
    if (err == ESK_OK) {
        err = allocate(reserve, file, target, error);
    }
    if (err == ESK_OK) {
        reserve->allocated = target;
    } else if (file) { /* a part of it helps nobody; failing here only leaves the file longer */
        esk_file_truncate(file, reserve->allocated, NULL);
    }
    esk_file_close(file);
    return err;
}

static enum esk_err grow(struct esk_reserve *reserve, uint64_t more, struct esk_error *error) {
    uint64_t admitted = atomic_load(&reserve->admitted);
    uint64_t needed;
    if (ESK_ADD_OVERFLOWS(admitted, more, &needed)) {
        needed = reserve->bytes_max;
    }
    if (needed > reserve->bytes_max && reserve->allocated == reserve->bytes_max) {
        return esk_fail(error, ESK_ERR_AGAIN,
                        "%s: the bound of %" PRIu64 " bytes is reached: wait for writers",
                        reserve->path, reserve->bytes_max);
    }
    uint64_t target = whole_steps(reserve, needed);
    if (target > reserve->allocated) {
        enum esk_err err = extend(reserve, target, error);
        uint64_t next = reserve->allocated + reserve->step_bytes;
        if (err == ESK_ERR_NO_SPACE && next < target && next > admitted) {
            err = extend(reserve, next, error); /* nobody is refused while that fits */
        }
        if (err != ESK_OK) {
            atomic_store(&reserve->limit, reserve->allocated);
            atomic_store(&reserve->refused, err == ESK_ERR_NO_SPACE); /* others end the broker */
            return err;
        }
    }
    atomic_store(&reserve->limit, reserve->allocated);
    atomic_store(&reserve->refused, false);
    return ESK_OK;
}

enum esk_err esk_reserve_grow(struct esk_reserve *reserve, uint64_t more, struct esk_error *error) {
    turn_begin(reserve);
    enum esk_err err = grow(reserve, more, error);
    if (err != ESK_OK) {
        esk_wrap(error, "grow the reserve");
    }
    turn_end(reserve);
    return err;
}

/* Cuts the file, whatever its size; a missing one is fine. */
static enum esk_err cut(struct esk_reserve *reserve, uint64_t size, struct esk_error *error) {
    struct esk_file *file = NULL;
    enum esk_err err =
        esk_file_open(reserve->platform, reserve->path, ESK_FILE_WRITE, &file, error);
    if (err == ESK_ERR_NOT_FOUND) {
        reserve->allocated = 0;
        return ESK_OK;
    }
    if (err == ESK_OK) {
        err = esk_file_truncate(file, size, error);
    }
    if (err == ESK_OK) {
        reserve->allocated = size;
    }
    esk_file_close(file);
    return err;
}

enum esk_err esk_reserve_spend(struct esk_reserve *reserve, struct esk_error *error) {
    turn_begin(reserve);
    atomic_store(&reserve->refused, true);
    atomic_store(&reserve->limit, 0);
    if (reserve->allocated > 0) {
        ESK_REACHED(BALLAST_USED);
    }
    enum esk_err err = cut(reserve, 0, error); /* also what an earlier run left */
    if (err != ESK_OK) {
        esk_wrap(error, "spend the reserve");
    }
    turn_end(reserve);
    return err;
}

enum esk_err esk_reserve_shrink(struct esk_reserve *reserve, struct esk_error *error) {
    turn_begin(reserve);
    enum esk_err err = ESK_OK;
    uint64_t size = whole_steps(reserve, atomic_load(&reserve->admitted));
    if (size < reserve->allocated) {
        atomic_store(&reserve->limit, size);
        if (atomic_load(&reserve->admitted) > size) {
            atomic_store(&reserve->limit, reserve->allocated); /* a take was faster */
        } else {
            err = cut(reserve, size, error);
        }
    }
    if (err != ESK_OK) {
        esk_wrap(error, "shrink the reserve");
    }
    turn_end(reserve);
    return err;
}
