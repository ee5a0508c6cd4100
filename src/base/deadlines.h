/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of deadlines: intrusive handles, the earliest first, equal ones in the order in which they
 * were pushed, so that the same pushes always give the same firing order. One owner, no threads,
 * no clock: the caller says what time it is. */
#ifndef ESK_BASE_DEADLINES_H
#define ESK_BASE_DEADLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lives inside what it wakes; all zero is a deadline that is not queued. */
struct esk_deadline {
    uint64_t due_ns;
    size_t position; /* in the heap, counted from 1; 0: not queued */
};

struct esk_deadlines_entry;
struct esk_deadlines {
    struct esk_deadlines_entry *entries;
    size_t count;
    size_t capacity;
    uint64_t sequence; /* of the next push */
};

void esk_deadlines_init(struct esk_deadlines *deadlines);
/* Frees the heap; deadlines still in it must not be used with it afterwards. */
void esk_deadlines_fini(struct esk_deadlines *deadlines);

static inline bool esk_deadline_queued(const struct esk_deadline *deadline) {
    return deadline->position != 0;
}

/* Queues a deadline at due_ns; one that is queued moves, and counts as pushed now. */
void esk_deadlines_push(struct esk_deadlines *deadlines, struct esk_deadline *deadline,
                        uint64_t due_ns);
/* Takes it out; does nothing when it is not queued. */
void esk_deadlines_remove(struct esk_deadlines *deadlines, struct esk_deadline *deadline);
/* The earliest, which stays queued; NULL when there is none. */
struct esk_deadline *esk_deadlines_min(const struct esk_deadlines *deadlines);
/* Takes out the earliest if it is due at now_ns, else NULL. UINT64_MAX takes any. */
struct esk_deadline *esk_deadlines_pop(struct esk_deadlines *deadlines, uint64_t now_ns);

#endif
