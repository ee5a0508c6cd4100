/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over libuv. In the order of libuv's iteration: its timer (our due timers), prepare (the
 * turn before is over: measure it, arm the timer, do not sleep when there is work), poll (I/O
 * callbacks), check (mails).
 *
 * Wake-ups: a sender whose mail is the first in the mailbox wakes the loop if that sleeps or is
 * about to. The loop says that it sleeps before it looks into the mailbox a last time, the sender
 * looks after its mail is in; so one of both sees the other. The wake-up is an eventfd of our own:
 * uv_async makes the receiver spin while a sender is between two steps of sending, which took 5 %
 * of the CPU time on two crowded cores. */
#include "runtime/loop.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/list.h"
#include "runtime/aio.h"
#include "runtime/mailbox_private.h"
#include "runtime/runtime_private.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

/* At most so many mails, and timers, a turn: at 4 µs each, half of the 2 ms that a turn may take.
 */
#define MAILS_PER_TURN 256
#define TIMERS_PER_TURN 256
#define CLOCK_EVERY 16 /* mails or timers between two looks at the clock */

/* Mails in order; `last` is the place for the next. */
struct queue {
    struct esk_mail *first;
    struct esk_mail **last;
};

struct runtime_loop {
    struct esk_loop loop;
    uv_loop_t uv;
    uv_poll_t wake;
    int wake_fd;
    struct eski_aio aio; /* its ends wake as mails do */
    uv_timer_t timer;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;     /* active: the next poll does not sleep */
    struct queue ready; /* arrived, in the order in which they run */
    struct queue own;   /* posted by the loop itself, behind what has arrived by the next look */
    struct esk_deadlines deadlines;
    uint64_t armed_ms; /* what the libuv timer waits for, in its time; 0: nothing */
    uint64_t now_ns;   /* of this turn; 0: not looked at yet */
    uint64_t turn_started_cpu_ns;
    struct esk_counter turn_max_ns;
    struct esk_counter turn_recent_max_ns;
    struct esk_mail stop;
    pthread_t thread;
    char name[16];
    /* Touched by senders: away from the rest. */
    _Alignas(64) struct eski_mailbox mailbox;
    atomic_bool sleeping;
};

static struct runtime_loop *runtime_loop(const struct esk_loop *loop) {
    return (struct runtime_loop *)(uintptr_t)loop;
}

static void queue_append(struct queue *queue, struct esk_mail *first, struct esk_mail *last) {
    if (first) {
        *queue->last = first;
        queue->last = &last->next;
    }
}

static void queue_move(struct queue *to, struct queue *from) {
    if (from->first) {
        *to->last = from->first;
        to->last = from->last;
        from->first = NULL;
        from->last = &from->first;
    }
}

static bool is_current(const struct esk_executor *executor) {
    return eski_current_executor == executor;
}

static void post(struct esk_executor *to, struct esk_mail *mail) {
    struct runtime_loop *l = (struct runtime_loop *)to;
    if (is_current(to)) {
        mail->next = NULL;
        queue_append(&l->own, mail, mail);
        return;
    }
    if (eski_mailbox_push(&l->mailbox, mail) && atomic_load(&l->sleeping)) {
        (void)eventfd_write(l->wake_fd, 1); /* a full counter wakes as well */
    }
}

static uint64_t now_ns(struct esk_loop *loop) {
    struct runtime_loop *l = runtime_loop(loop);
    if (l->now_ns == 0) {
        l->now_ns = eski_monotonic_ns();
    }
    return l->now_ns;
}

bool esk_loop_turn_spent(struct esk_loop *loop) {
    return eski_monotonic_ns() - now_ns(loop) > ESK_LOOP_TURN_NS;
}

static void timer_start(struct esk_loop *loop, struct esk_timer *timer, uint64_t due_ns) {
    struct runtime_loop *l = runtime_loop(loop);
    esk_deadlines_push(&l->deadlines, &timer->deadline, due_ns);
}

static void timer_stop(struct esk_loop *loop, struct esk_timer *timer) {
    esk_deadlines_remove(&runtime_loop(loop)->deadlines, &timer->deadline);
}

/* Whether a run of mails or timers must stop after `done` of them. */
static bool over_budget(struct runtime_loop *l, unsigned done, unsigned most) {
    return done >= most || (done % CLOCK_EVERY == 0 && esk_loop_turn_spent(&l->loop));
}

/* Runs due timers; those that are left make the next arming immediate. */
static void on_timer(uv_timer_t *handle) {
    struct runtime_loop *l = handle->data;
    l->armed_ms = 0;
    l->now_ns = eski_monotonic_ns(); /* the time of the I/O before may be behind libuv's */
    uint64_t now = l->now_ns;
    unsigned done = 0;
    struct esk_deadline *due;
    while ((due = esk_deadlines_pop(&l->deadlines, now))) {
        struct esk_timer *timer = ESK_CONTAINER(due, struct esk_timer, deadline);
        timer->run(timer);
        if (over_budget(l, ++done, TIMERS_PER_TURN)) {
            return;
        }
    }
}

static void arm_timer(struct runtime_loop *l) {
    struct esk_deadline *first = esk_deadlines_min(&l->deadlines);
    if (!first) {
        if (l->armed_ms != 0) {
            uv_timer_stop(&l->timer);
            l->armed_ms = 0;
        }
        return;
    }
    /* libuv counts the milliseconds of the same clock: rounded up it is never early. */
    uint64_t due_ms = first->due_ns / 1000000 + (first->due_ns % 1000000 != 0);
    if (due_ms == l->armed_ms && due_ms != 0) {
        return;
    }
    uint64_t loop_ms = uv_now(&l->uv);
    uv_timer_start(&l->timer, on_timer, due_ms > loop_ms ? due_ms - loop_ms : 0, 0);
    l->armed_ms = due_ms ? due_ms : 1;
}

static uint64_t cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A turn reaches from one prepare to the next; while the poll sleeps, CPU time stands still. */
static void end_turn(struct runtime_loop *l) {
    uint64_t now = cpu_ns();
    uint64_t turn = now - l->turn_started_cpu_ns;
    l->turn_started_cpu_ns = now;
    if (turn > esk_counter_get(&l->turn_max_ns)) {
        esk_counter_set(&l->turn_max_ns, turn);
    }
    if (turn > esk_counter_get(&l->turn_recent_max_ns)) {
        esk_counter_set(&l->turn_recent_max_ns, turn);
    }
    l->now_ns = 0;
}

static void on_idle(uv_idle_t *handle) {
    (void)handle;
}

static void on_wake(uv_poll_t *handle, int status, int events) {
    struct runtime_loop *l = handle->data;
    eventfd_t ignored;
    (void)status;
    (void)events;
    (void)eventfd_read(l->wake_fd, &ignored); /* for mails, that the poll ended is all it is for */
    eski_aio_reap(&l->aio);
}

static void on_prepare(uv_prepare_t *handle) {
    struct runtime_loop *l = handle->data;
    end_turn(l);
    arm_timer(l);
    bool busy = l->ready.first || l->own.first;
    if (!busy) {
        atomic_store(&l->sleeping, true);
        ck_pr_fence_memory();
        busy = !eski_mailbox_empty(&l->mailbox);
    }
    if (busy) {
        uv_idle_start(&l->idle, on_idle);
    } else {
        uv_idle_stop(&l->idle);
    }
}

static void collect(struct runtime_loop *l) {
    struct esk_mail *last = NULL;
    struct esk_mail *first = eski_mailbox_take(&l->mailbox, &last);
    queue_append(&l->ready, first, last);
    queue_move(&l->ready, &l->own);
}

/* What has arrived, then once more what these mails posted to the loop itself; what those post
 * waits for the next turn, so that I/O has its turn too. */
static void on_check(uv_check_t *handle) {
    struct runtime_loop *l = handle->data;
    atomic_store_explicit(&l->sleeping, false, memory_order_relaxed);
    unsigned done = 0;
    for (int round = 0; round < 2; round++) {
        collect(l);
        while (l->ready.first) {
            struct esk_mail *mail = l->ready.first;
            l->ready.first = mail->next;
            if (!l->ready.first) {
                l->ready.last = &l->ready.first;
            }
            mail->run(mail);
            if (over_budget(l, ++done, MAILS_PER_TURN)) {
                return;
            }
        }
    }
}

static const struct esk_loop_ops loop_ops = {now_ns, timer_start, timer_stop};
static const struct esk_executor_ops executor_ops = {post, is_current};

static void on_stop(struct esk_mail *mail) {
    uv_stop(&ESK_CONTAINER(mail, struct runtime_loop, stop)->uv);
}

struct esk_loop *esk_loop_create(const char *name) {
    size_t size = ESK_ALIGN_UP(sizeof(struct runtime_loop), 64);
    struct runtime_loop *l = aligned_alloc(64, size);
    ESK_ASSERT(l);
    memset(l, 0, size);
    l->loop.executor.ops = &executor_ops;
    l->loop.ops = &loop_ops;
    l->ready.last = &l->ready.first;
    l->own.last = &l->own.first;
    l->stop.run = on_stop;
    strncpy(l->name, name, sizeof(l->name) - 1);
    esk_deadlines_init(&l->deadlines);
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int failed = l->wake_fd < 0 || uv_loop_init(&l->uv) ||
                 uv_poll_init(&l->uv, &l->wake, l->wake_fd) || uv_timer_init(&l->uv, &l->timer) ||
                 uv_prepare_init(&l->uv, &l->prepare) || uv_check_init(&l->uv, &l->check) ||
                 uv_idle_init(&l->uv, &l->idle);
    ESK_ASSERT(!failed); /* out of descriptors at start-up, or a kernel without epoll */
    eski_aio_init(&l->aio, l->wake_fd);
    l->wake.data = l->timer.data = l->prepare.data = l->check.data = l;
    uv_poll_start(&l->wake, UV_READABLE, on_wake);
    uv_prepare_start(&l->prepare, on_prepare);
    uv_check_start(&l->check, on_check);
    return &l->loop;
}

void esk_loop_destroy(struct esk_loop *loop) {
    struct runtime_loop *l = runtime_loop(loop);
    uv_close((uv_handle_t *)&l->wake, NULL);
    uv_close((uv_handle_t *)&l->timer, NULL);
    uv_close((uv_handle_t *)&l->prepare, NULL);
    uv_close((uv_handle_t *)&l->check, NULL);
    uv_close((uv_handle_t *)&l->idle, NULL);
    uv_run(&l->uv, UV_RUN_NOWAIT);
    int failed = uv_loop_close(&l->uv);
    ESK_ASSERT(!failed); /* somebody left a handle open */
    eski_aio_fini(&l->aio);
    close(l->wake_fd);
    esk_deadlines_fini(&l->deadlines);
    free(l);
}

void esk_loop_run(struct esk_loop *loop) {
    struct runtime_loop *l = runtime_loop(loop);
    const struct esk_executor *before = eski_current_executor;
    eski_current_executor = &loop->executor;
    l->turn_started_cpu_ns = cpu_ns();
    uv_run(&l->uv, UV_RUN_DEFAULT);
    eski_current_executor = before;
}

static void *run_in_thread(void *context) {
    esk_loop_run(context);
    return NULL;
}

void esk_loop_start(struct esk_loop *loop) {
    struct runtime_loop *l = runtime_loop(loop);
    eski_thread_start(&l->thread, l->name, run_in_thread, loop);
}

void esk_loop_join(struct esk_loop *loop) {
    pthread_join(runtime_loop(loop)->thread, NULL);
}

void esk_loop_stop(struct esk_loop *loop) {
    esk_post(&loop->executor, &runtime_loop(loop)->stop);
}

struct eski_aio *eski_loop_aio(struct esk_loop *loop) {
    return &runtime_loop(loop)->aio;
}

struct uv_loop_s *esk_loop_uv(struct esk_loop *loop) {
    return &runtime_loop(loop)->uv;
}

const struct esk_counter *esk_loop_turn_max_ns(const struct esk_loop *loop) {
    return &runtime_loop(loop)->turn_max_ns;
}

const struct esk_counter *esk_loop_turn_recent_max_ns(const struct esk_loop *loop) {
    return &runtime_loop(loop)->turn_recent_max_ns;
}

void esk_loop_turn_reset(struct esk_loop *loop) {
    esk_counter_set(&runtime_loop(loop)->turn_recent_max_ns, 0);
}
