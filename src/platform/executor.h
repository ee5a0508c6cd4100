/* SPDX-License-Identifier: Apache-2.0 */
/* What runs code, and how it is told what to run.
 *
 * There are two kinds of executor. A *loop* is a shard's thread: it never blocks. A *worker* is a
 * helper or a flusher: it may block in platform/file.h. Both take mails: small intrusive messages
 * that carry the function to run in the receiver. A mail is part of the request that sends it, so
 * its slot exists before it is posted: posting never fails and never finds a full queue, and the
 * queues are bounded by what bounds the requests (memory budget, outstanding requests).
 *
 * Mails to one receiver arrive in causal order: those of one sender in order, and none before one
 * that its sender had sent, or had heard of by mail. Nothing else is promised between senders, and
 * nothing about mails to oneself but what esk_post says; the simulation delivers in any order that
 * this allows. */
#ifndef ESK_PLATFORM_EXECUTOR_H
#define ESK_PLATFORM_EXECUTOR_H

#include "base/deadlines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct esk_mail {
    struct esk_mail *next;              /* the queue's, from post to run */
    void (*run)(struct esk_mail *mail); /* in the receiver; may free or post the mail again */
};

struct esk_executor;
struct esk_executor_ops {
    void (*post)(struct esk_executor *to, struct esk_mail *mail);
    bool (*is_current)(const struct esk_executor *executor);
};
struct esk_executor {
    const struct esk_executor_ops *ops;
};

/* Hands the mail over: it belongs to the receiver until it runs. Any executor's thread; a mail to
 * oneself runs after all mails that have arrived already. */
static inline void esk_post(struct esk_executor *to, struct esk_mail *mail) {
    to->ops->post(to, mail);
}

/* Whether the caller runs in this executor; for assertions. */
static inline bool esk_executor_is_current(const struct esk_executor *executor) {
    return executor->ops->is_current(executor);
}

/* A timer of one loop. `run` is called once, in the loop, at or after the due time; equal due times
 * run in the order in which they were started. The struct belongs to the owner; it must be stopped
 * before it is freed. */
struct esk_timer {
    struct esk_deadline deadline; /* the loop's; all zero before the first start */
    void (*run)(struct esk_timer *timer);
};

struct esk_loop;
struct esk_loop_ops {
    uint64_t (*now_ns)(struct esk_loop *loop);
    void (*timer_start)(struct esk_loop *loop, struct esk_timer *timer, uint64_t due_ns);
    void (*timer_stop)(struct esk_loop *loop, struct esk_timer *timer);
};
struct esk_loop {
    struct esk_executor executor;
    const struct esk_loop_ops *ops;
};

/* Monotonic time of the current turn, nanoseconds. The loop's thread only, as the timers. */
static inline uint64_t esk_loop_now_ns(struct esk_loop *loop) {
    return loop->ops->now_ns(loop);
}

/* Starts the timer, or moves it when it runs already. */
static inline void esk_timer_start(struct esk_loop *loop, struct esk_timer *timer,
                                   uint64_t due_ns) {
    loop->ops->timer_start(loop, timer, due_ns);
}

/* Harmless when it is not started. */
static inline void esk_timer_stop(struct esk_loop *loop, struct esk_timer *timer) {
    loop->ops->timer_stop(loop, timer);
}

#endif
