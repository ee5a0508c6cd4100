/* SPDX-License-Identifier: Apache-2.0 */
/* Loops and workers. A thread of an executor takes one mail after the other; which of those that
 * arrived is up to chance, as long as the mails of one sender keep their order and a mail to
 * oneself waits for all that were there. */
#include "world_private.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"

#include <stdlib.h>

static struct sim_executor *of(const struct esk_executor *executor) {
    return (struct sim_executor *)(uintptr_t)executor;
}

void simi_executor_wake(struct sim_executor *executor) {
    struct sim_world *world = executor->world;
    for (size_t i = 0; i < world->thread_count; i++) {
        struct sim_thread *thread = world->threads[i];
        if (thread->executor == executor && !thread->busy && thread->state == SIMI_WAITING) {
            thread->state = SIMI_RUNNABLE;
        }
    }
}

static bool is_current(const struct esk_executor *executor) {
    const struct sim_thread *thread = of(executor)->world->current;
    return thread && thread->executor == of(executor);
}

/* Whether the sender of `later` knew of `earlier`. */
static bool is_known(const struct simi_post *earlier, const struct simi_post *later) {
    size_t place = earlier->sender % SIMI_CLOCK_PLACES;
    return later->clock.posts[place] >= earlier->clock.posts[place];
}

static void learn(struct simi_clock *clock, const struct simi_clock *other) {
    for (size_t i = 0; i < SIMI_CLOCK_PLACES; i++) {
        clock->posts[i] = other->posts[i] > clock->posts[i] ? other->posts[i] : clock->posts[i];
    }
}

static void post(struct esk_executor *to, struct esk_mail *mail) {
    struct sim_executor *executor = of(to);
    struct sim_world *world = executor->world;
    simi_point(world);
    if (executor->post_count == executor->post_capacity) {
        executor->post_capacity = executor->post_capacity * 2 + 16;
        executor->posts =
            esk_realloc(executor->posts, executor->post_capacity * sizeof(struct simi_post));
    }
    struct simi_post *made = &executor->posts[executor->post_count++];
    *made = (struct simi_post){.mail = mail, .own = is_current(to)};
    if (world->current) {
        made->sender = world->current->id;
        world->current->clock.posts[made->sender % SIMI_CLOCK_PLACES]++;
        made->clock = world->current->clock;
    }
    simi_executor_wake(executor);
}

/* Any of them, but not before one that its sender knew of. */
static size_t pick(struct sim_executor *executor) {
    struct sim_world *world = executor->world;
    if (executor->post_count == 1 || sim_one_in(&world->random, 4)) {
        return 0;
    }
    size_t wanted = (size_t)sim_below(&world->random, executor->post_count);
    if (executor->posts[wanted].own) {
        return 0;
    }
    size_t index = 0;
    while (index < wanted && (executor->posts[index].own ||
                              !is_known(&executor->posts[index], &executor->posts[wanted]))) {
        index++;
    }
    world->counts[SIM_COUNT_MAIL_OVERTOOK] += index > 0;
    return index;
}

static void run_mail(struct sim_executor *executor, struct sim_thread *thread) {
    size_t index = pick(executor);
    struct esk_mail *mail = executor->posts[index].mail;
    learn(&thread->clock, &executor->posts[index].clock);
    sim_trace(executor->world, "mail", executor->name, executor->posts[index].sender, index);
    executor->post_count--;
    memmove(&executor->posts[index], &executor->posts[index + 1],
            (executor->post_count - index) * sizeof(struct simi_post));
    thread->busy = true;
    mail->run(mail);
    thread->busy = false;
}

/* --- timers --- */

static struct sim_executor *of_loop(struct esk_loop *loop) {
    return of(&loop->executor);
}

uint64_t simi_executor_due(const struct sim_executor *executor) {
    const struct esk_deadline *first = esk_deadlines_min(&executor->timers);
    return first ? first->due_ns : UINT64_MAX;
}

static void timer_stop(struct esk_loop *loop, struct esk_timer *timer) {
    esk_deadlines_remove(&of_loop(loop)->timers, &timer->deadline);
}

static void timer_start(struct esk_loop *loop, struct esk_timer *timer, uint64_t due_ns) {
    esk_deadlines_push(&of_loop(loop)->timers, &timer->deadline, due_ns);
}

/* Those that were started by now; one that a timer starts waits for the next turn. */
static void run_timers(struct sim_executor *executor) {
    struct esk_deadline *deadline;
    size_t most = executor->timers.count;
    while (most-- && (deadline = esk_deadlines_pop(&executor->timers, executor->turn_ns))) {
        struct esk_timer *timer = ESK_CONTAINER(deadline, struct esk_timer, deadline);
        sim_trace(executor->world, "timer", executor->name, deadline->due_ns, 0);
        timer->run(timer);
    }
}

static uint64_t now_ns(struct esk_loop *loop) {
    return of_loop(loop)->turn_ns;
}

/* --- threads --- */

static void loop_main(void *argument) {
    struct sim_executor *executor = argument;
    struct sim_world *world = executor->world;
    struct sim_thread *thread = world->current;
    for (;;) {
        executor->turn_ns = world->now_ns;
        uint64_t mails = sim_between(&world->random, 1, 4);
        while (mails-- && executor->post_count) {
            run_mail(executor, thread);
            simi_point(world);
        }
        thread->busy = true;
        run_timers(executor);
        thread->busy = false;
        if (executor->post_count == 0 && simi_executor_due(executor) > world->now_ns) {
            simi_wait(world);
        } else {
            sim_coroutine_yield();
        }
    }
}

static void worker_main(void *argument) {
    struct sim_executor *executor = argument;
    struct sim_world *world = executor->world;
    struct sim_thread *thread = world->current;
    for (;;) {
        if (executor->post_count) {
            run_mail(executor, thread);
            simi_point(world);
        } else if (executor->stopping) {
            executor->threads--;
            return;
        } else {
            simi_wait(world);
        }
    }
}

static const struct esk_executor_ops executor_ops = {post, is_current};
static const struct esk_loop_ops loop_ops = {now_ns, timer_start, timer_stop};

static struct sim_executor *executor_create(struct sim_world *world, const char *name) {
    struct sim_executor *executor = esk_alloc_zeroed(1, sizeof(*executor));
    executor->loop = (struct esk_loop){{&executor_ops}, &loop_ops};
    executor->world = world;
    esk_deadlines_init(&executor->timers);
    executor->name = esk_text_copy(name);
    if (world->executor_count == world->executor_capacity) {
        world->executor_capacity = world->executor_capacity * 2 + 8;
        world->executors =
            esk_realloc(world->executors, world->executor_capacity * sizeof(struct sim_executor *));
    }
    world->executors[world->executor_count++] = executor;
    return executor;
}

struct esk_loop *sim_loop_create(struct sim_world *world, const char *name) {
    struct sim_executor *executor = executor_create(world, name);
    executor->is_loop = true;
    executor->turn_ns = world->now_ns;
    simi_thread_create(world, executor, executor->name, loop_main, executor);
    return &executor->loop;
}

struct esk_executor *simi_worker_create(struct esk_platform *platform, const char *name,
                                        unsigned threads) {
    struct sim_world *world = (struct sim_world *)platform;
    struct sim_executor *executor = executor_create(world, name);
    executor->threads = threads;
    for (unsigned i = 0; i < threads; i++) {
        simi_thread_create(world, executor, executor->name, worker_main, executor);
    }
    return &executor->loop.executor;
}

void simi_executor_free(struct sim_executor *executor) {
    free(executor->name);
    free(executor->posts);
    esk_deadlines_fini(&executor->timers);
    free(executor);
}

/* Blocks the caller, by polling: it is a stop. */
void simi_worker_destroy(struct esk_platform *platform, struct esk_executor *worker) {
    struct sim_world *world = (struct sim_world *)platform;
    struct sim_executor *executor = of(worker);
    ESK_ASSERT(!is_current(worker));
    executor->stopping = true;
    simi_executor_wake(executor);
    while (executor->threads) {
        if (world->current) {
            simi_sleep(world, 10 * SIM_US);
            continue;
        }
        ESK_ASSERT(sim_world_run(world, NULL, NULL) == SIM_IDLE);
    }
    for (size_t i = 0; i < world->executor_count; i++) {
        if (world->executors[i] == executor) {
            memmove(&world->executors[i], &world->executors[i + 1],
                    (--world->executor_count - i) * sizeof(struct sim_executor *));
            break;
        }
    }
    simi_executor_free(executor);
}
