/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler. */
#include "world_private.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>

#include <stdio.h>

#define PREEMPTED_ONE_IN 50
#define TURNS_MAX 3000000 /* of one process; a run needs some thousands */

void sim_world_init(struct sim_world *world, uint64_t seed, uint64_t disk_bytes) {
    *world = (struct sim_world){.platform = {&simi_platform_ops}};
    world->random = sim_random_seed(seed, 0);
    world->bytes = sim_random_seed(seed, 1);
    sim_image_init(&world->image, seed, disk_bytes / SIM_PAGE);
    world->wall_ms = 1700000000000 + (int64_t)sim_below(&world->random, 1000000000);
    world->now_ns = sim_between(&world->random, 1, 1000 * SIM_S);
    world->hash = seed;
}

void sim_trace(struct sim_world *world, const char *text, const char *name, uint64_t a,
               uint64_t b) {
    uint64_t hash = world->hash ^ world->now_ns;
    for (const char *at = text; *at; at++) {
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
    }
    for (const char *at = name ? name : ""; *at; at++) {
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
    }
    world->hash = sim_mix(sim_mix(hash ^ a) ^ b);
    if (world->trace) {
        const struct sim_thread *thread = world->current;
        printf("%14.3f us  %-14s %-18s %s %llu %llu\n", (double)world->now_ns / 1000.0,
               thread ? thread->name : "-", text, name ? name : "", (unsigned long long)a,
               (unsigned long long)b);
    }
}

bool simi_fault(struct sim_world *world, enum sim_fault fault) {
    if (world->faults[fault] == 0 || --world->faults[fault] > 0) {
        return false;
    }
    world->counts[SIM_COUNT_FAULTS + fault]++;
    sim_trace(world, "FAULT", "", fault, 0);
    return true;
}

/* --- threads --- */

static void thread_main(void *argument) {
    struct sim_thread *thread = argument;
    thread->run(thread->argument);
}

struct sim_thread *simi_thread_create(struct sim_world *world, struct sim_executor *executor,
                                      const char *name, void (*run)(void *), void *argument) {
    struct sim_thread *thread = esk_alloc_zeroed(1, sizeof(*thread));
    thread->world = world;
    thread->executor = executor;
    thread->name = name;
    thread->id = ++world->next_id;
    thread->run = run;
    thread->argument = argument;
    sim_coroutine_start(&thread->coroutine, thread_main, thread);
    if (world->thread_count == world->thread_capacity) {
        world->thread_capacity = world->thread_capacity * 2 + 16;
        world->threads =
            esk_realloc(world->threads, world->thread_capacity * sizeof(struct sim_thread *));
    }
    world->threads[world->thread_count++] = thread;
    return thread;
}

void sim_thread_start(struct sim_world *world, const char *name, void (*run)(void *),
                      void *argument) {
    simi_thread_create(world, NULL, name, run, argument);
}

static void thread_free(struct sim_thread *thread) {
    sim_coroutine_abandon(&thread->coroutine);
    free(thread);
}

void simi_point(struct sim_world *world) {
    if (!world->current) {
        return; /* a test that calls the disk from outside */
    }
    world->points++;
    if (world->crash_at && world->points >= world->crash_at) {
        world->crashed = true;
        sim_coroutine_yield();
        ESK_ASSERT(false && "a thread of a dead process runs");
    }
    if (sim_one_in(&world->random, 3)) {
        sim_coroutine_yield();
    }
}

void simi_sleep(struct sim_world *world, uint64_t ns) {
    struct sim_thread *thread = world->current;
    if (!thread) {
        world->now_ns += ns;
        return;
    }
    thread->state = SIMI_SLEEPING;
    thread->wake_ns = world->now_ns + ns;
    sim_coroutine_yield();
}

void simi_wait(struct sim_world *world) {
    world->current->state = SIMI_WAITING;
    sim_coroutine_yield();
}

/* --- the scheduler --- */

static bool held(const struct sim_world *world, const struct sim_thread *thread) {
    return thread->executor && thread->executor->is_loop && world->now_ns < world->loops_held_ns;
}

/* Wakes what is due; returns how many can run, or 0 and when the next one is due. */
static size_t wake(struct sim_world *world, uint64_t *next_ns) {
    size_t runnable = 0;
    *next_ns = UINT64_MAX;
    for (size_t i = 0; i < world->thread_count; i++) {
        struct sim_thread *thread = world->threads[i];
        uint64_t due = UINT64_MAX;
        if (thread->state == SIMI_SLEEPING) {
            due = thread->wake_ns;
        } else if (thread->state == SIMI_WAITING && thread->executor && !thread->busy) {
            due = simi_executor_due(thread->executor);
        }
        if (due <= world->now_ns) {
            thread->state = SIMI_RUNNABLE;
        }
        if (thread->state == SIMI_RUNNABLE && held(world, thread)) {
            due = world->loops_held_ns;
        } else {
            runnable += thread->state == SIMI_RUNNABLE;
        }
        *next_ns = due < *next_ns ? due : *next_ns;
    }
    return runnable;
}

static void turn(struct sim_world *world, size_t which) {
    size_t i = 0;
    for (;; i++) {
        if (world->threads[i]->state == SIMI_RUNNABLE && !held(world, world->threads[i]) &&
            which-- == 0) {
            break;
        }
    }
    struct sim_thread *thread = world->threads[i];
    if (sim_one_in(&world->random, PREEMPTED_ONE_IN)) { /* the system runs others meanwhile */
        thread->state = SIMI_SLEEPING;
        thread->wake_ns = world->now_ns + sim_scaled(&world->random, 5 * SIM_MS);
        return;
    }
    world->current = thread;
    sim_coroutine_resume(&thread->coroutine);
    world->current = NULL;
    if (thread->coroutine.done) {
        for (i = 0; world->threads[i] != thread; i++) {
        }
        memmove(&world->threads[i], &world->threads[i + 1],
                (--world->thread_count - i) * sizeof(struct sim_thread *));
        thread_free(thread);
    }
}

static void kernel(struct sim_world *world) {
    if (sim_one_in(&world->random, 16) &&
        sim_image_background(&world->image, simi_fault(world, SIM_FAULT_WRITE_BACK))) {
        sim_trace(world, "write-back failed", "", 0, 0);
    }
    if (sim_one_in(&world->random, 64) && simi_fault(world, SIM_FAULT_CLOCK_STEP)) {
        int64_t step = (int64_t)sim_below(&world->random, 7200000) - 3600000;
        world->wall_ms += step;
        sim_trace(world, "clock steps", "", (uint64_t)step, 0);
    }
    if (simi_fault(world, SIM_FAULT_DISK_FULL)) {
        uint64_t left = sim_below(&world->random, 4), room = sim_image_room(&world->image);
        world->image.pages_foreign += room > left ? room - left : 0;
    }
    if (simi_fault(world, SIM_FAULT_DISK_ROOM)) {
        world->image.pages_foreign = 0;
    }
}

enum sim_outcome sim_world_run(struct sim_world *world, bool (*until)(void *), void *context) {
    for (unsigned turns = 0; turns < TURNS_MAX; turns++) {
        if (until && until(context)) {
            return SIM_DONE;
        }
        kernel(world);
        if (sim_one_in(&world->random, 8)) {
            world->now_ns += sim_below(&world->random, 5 * SIM_US);
        }
        uint64_t next_ns;
        size_t runnable = wake(world, &next_ns);
        if (runnable == 0) {
            if (next_ns == UINT64_MAX) {
                return SIM_IDLE;
            }
            world->now_ns = next_ns;
            continue;
        }
        turn(world, (size_t)sim_below(&world->random, runnable));
        if (world->crashed) {
            return SIM_CRASHED;
        }
    }
    return SIM_STUCK;
}

void sim_world_end(struct sim_world *world, bool power_loss) {
    ESK_ASSERT(!world->current);
    sim_trace(world, power_loss ? "POWER LOSS" : "PROCESS ENDS", "", world->points, 0);
    while (world->thread_count) {
        thread_free(world->threads[--world->thread_count]);
    }
    while (world->executor_count) {
        simi_executor_free(world->executors[--world->executor_count]);
    }
    simi_files_forget(world);
    world->image.torn = 0;
    if (power_loss) {
        sim_image_power_loss(&world->image);
    } else {
        sim_image_process_death(&world->image);
    }
    world->counts[power_loss ? SIM_COUNT_POWER_LOSS : SIM_COUNT_PROCESS_DEATH]++;
    world->counts[SIM_COUNT_TORN] += world->image.torn;
    world->now_ns += sim_scaled(&world->random, 3600 * SIM_S);
    world->image.pages_foreign = 0;
    world->loops_held_ns = 0;
    world->crashed = false;
    world->crash_at = 0;
    memset(world->faults, 0, sizeof(world->faults));
}
