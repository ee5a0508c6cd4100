/* SPDX-License-Identifier: Apache-2.0 */
/* On Concurrency Kit's stack. Its atomics are assembly, which the thread sanitizer does not see, so
 * the hand-over is told to it in words. */
#include "runtime/mailbox_private.h"

#include <stddef.h>

#ifdef __SANITIZE_THREAD__
#define ESKI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ESKI_TSAN 1
#endif
#endif
#ifdef ESKI_TSAN
#include <sanitizer/tsan_interface.h>
#define HANDS_OVER(address) __tsan_release(address)
#define TAKES_OVER(address) __tsan_acquire(address)
#else
#define HANDS_OVER(address) ((void)(address))
#define TAKES_OVER(address) ((void)(address))
#endif

_Static_assert(offsetof(struct esk_mail, next) == offsetof(struct ck_stack_entry, next),
               "a mail begins as a stack entry does");

/* As ck_stack_push_upmc, which does not tell whether the stack was empty; afterwards the entry is
 * the receiver's and cannot be asked. */
bool eski_mailbox_push(struct eski_mailbox *mailbox, struct esk_mail *mail) {
    struct ck_stack_entry *entry = (struct ck_stack_entry *)mail;
    struct ck_stack_entry *head = ck_pr_load_ptr(&mailbox->arrived.head);
    for (;;) {
        struct ck_stack_entry *expected = head;
        entry->next = expected;
        HANDS_OVER(mailbox);
        ck_pr_fence_store_atomic();
        if (ck_pr_cas_ptr_value(&mailbox->arrived.head, expected, entry, &head)) {
            ck_pr_fence_atomic_load();
            return expected == NULL;
        }
    }
}

bool eski_mailbox_empty(const struct eski_mailbox *mailbox) {
    return ck_pr_load_ptr(&mailbox->arrived.head) == NULL;
}

struct esk_mail *eski_mailbox_take(struct eski_mailbox *mailbox, struct esk_mail **last) {
    if (eski_mailbox_empty(mailbox)) {
        return NULL;
    }
    struct esk_mail *newest = (struct esk_mail *)ck_stack_batch_pop_upmc(&mailbox->arrived);
    TAKES_OVER(mailbox);
    struct esk_mail *first = NULL;
    *last = newest;
    while (newest) {
        struct esk_mail *next = newest->next;
        newest->next = first;
        first = newest;
        newest = next;
    }
    return first;
}
