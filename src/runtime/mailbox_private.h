/* SPDX-License-Identifier: Apache-2.0 */
/* A loop's mailbox: many threads push, one takes all. A stack without locks, turned over when it is
 * taken, so mails of one sender keep their order. It never fills: a mail is its own slot. */
#ifndef ESK_RUNTIME_MAILBOX_PRIVATE_H
#define ESK_RUNTIME_MAILBOX_PRIVATE_H

#include "platform/executor.h"

#include <ck_stack.h>

struct eski_mailbox {
    struct ck_stack arrived;
};

/* Any thread. True when the mailbox was empty before. After it, memory orders like a full fence. */
bool eski_mailbox_push(struct eski_mailbox *mailbox, struct esk_mail *mail);
bool eski_mailbox_empty(const struct eski_mailbox *mailbox);
/* The receiver only: all mails, the oldest first; NULL when there is none. *last is the newest. */
struct esk_mail *eski_mailbox_take(struct eski_mailbox *mailbox, struct esk_mail **last);

#endif
