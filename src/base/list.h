/* SPDX-License-Identifier: Apache-2.0 */
/* An intrusive doubly linked ring: the head is an esk_link too. One owner, no threads. */
#ifndef ESK_BASE_LIST_H
#define ESK_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct esk_link {
    struct esk_link *previous;
    struct esk_link *next;
};

/* The struct that holds the member at `pointer`. */
#define ESK_CONTAINER(pointer, type, member)                                                       \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void esk_list_init(struct esk_link *head) {
    head->previous = head->next = head;
}

static inline bool esk_list_empty(const struct esk_link *head) {
    return head->next == head;
}

static inline void esk_list_append(struct esk_link *head, struct esk_link *link) {
    link->previous = head->previous;
    link->next = head;
    head->previous->next = link;
    head->previous = link;
}

static inline void esk_list_prepend(struct esk_link *head, struct esk_link *link) {
    esk_list_append(head->next, link);
}

/* The link becomes a ring of its own, so removing twice is harmless. */
static inline void esk_list_remove(struct esk_link *link) {
    link->previous->next = link->next;
    link->next->previous = link->previous;
    esk_list_init(link);
}

/* First link, or NULL. */
static inline struct esk_link *esk_list_first(const struct esk_link *head) {
    return head->next == head ? NULL : head->next;
}

#endif
