/* SPDX-License-Identifier: Apache-2.0 */
/* A 4-ary heap in one array. Entries carry their keys, so sifting touches the array and only the
 * positions of what moves. */
#include "base/deadlines.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>

#define BRANCHES 4
#define FIRST_CAPACITY 16

struct esk_deadlines_entry {
    uint64_t due_ns;
    uint64_t sequence;
    struct esk_deadline *deadline;
};

void esk_deadlines_init(struct esk_deadlines *deadlines) {
    *deadlines = (struct esk_deadlines){NULL, 0, 0, 0};
}

void esk_deadlines_fini(struct esk_deadlines *deadlines) {
    free(deadlines->entries);
    esk_deadlines_init(deadlines);
}

static bool before(const struct esk_deadlines_entry *a, const struct esk_deadlines_entry *b) {
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->sequence < b->sequence;
}

static void place(struct esk_deadlines *d, size_t i, struct esk_deadlines_entry entry) {
    d->entries[i] = entry;
    entry.deadline->position = i + 1;
}

static void sift_up(struct esk_deadlines *d, size_t i, struct esk_deadlines_entry entry) {
    while (i > 0) {
        size_t parent = (i - 1) / BRANCHES;
        if (!before(&entry, &d->entries[parent])) {
            break;
        }
        place(d, i, d->entries[parent]);
        i = parent;
    }
    place(d, i, entry);
}

static void sift_down(struct esk_deadlines *d, size_t i, struct esk_deadlines_entry entry) {
    for (;;) {
        size_t first = i * BRANCHES + 1;
        if (first >= d->count) {
            break;
        }
        size_t end = first + BRANCHES < d->count ? first + BRANCHES : d->count;
        size_t least = first;
        for (size_t child = first + 1; child < end; child++) {
            if (before(&d->entries[child], &d->entries[least])) {
                least = child;
            }
        }
        if (!before(&d->entries[least], &entry)) {
            break;
        }
        place(d, i, d->entries[least]);
        i = least;
    }
    place(d, i, entry);
}

void esk_deadlines_push(struct esk_deadlines *deadlines, struct esk_deadline *deadline,
                        uint64_t due_ns) {
    esk_deadlines_remove(deadlines, deadline);
    if (deadlines->count == deadlines->capacity) {
        deadlines->capacity = deadlines->capacity ? deadlines->capacity * 2 : FIRST_CAPACITY;
        deadlines->entries =
            esk_realloc(deadlines->entries, deadlines->capacity * sizeof(*deadlines->entries));
    }
    deadline->due_ns = due_ns;
    struct esk_deadlines_entry entry = {due_ns, deadlines->sequence++, deadline};
    sift_up(deadlines, deadlines->count++, entry);
}

void esk_deadlines_remove(struct esk_deadlines *deadlines, struct esk_deadline *deadline) {
    if (!esk_deadline_queued(deadline)) {
        return;
    }
    size_t i = deadline->position - 1;
    ESK_ASSERT(i < deadlines->count);
    ESK_ASSERT(deadlines->entries[i].deadline == deadline);
    deadline->position = 0;
    struct esk_deadlines_entry last = deadlines->entries[--deadlines->count];
    if (i == deadlines->count) {
        return;
    }
    if (i > 0 && before(&last, &deadlines->entries[(i - 1) / BRANCHES])) {
        sift_up(deadlines, i, last);
    } else {
        sift_down(deadlines, i, last);
    }
}

struct esk_deadline *esk_deadlines_min(const struct esk_deadlines *deadlines) {
    return deadlines->count ? deadlines->entries[0].deadline : NULL;
}

struct esk_deadline *esk_deadlines_pop(struct esk_deadlines *deadlines, uint64_t now_ns) {
    struct esk_deadline *first = esk_deadlines_min(deadlines);
    if (!first || first->due_ns > now_ns) {
        return NULL;
    }
    esk_deadlines_remove(deadlines, first);
    return first;
}
