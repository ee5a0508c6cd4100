/* SPDX-License-Identifier: Apache-2.0 */
/* One run: a seed, a world, a scenario that drives it, and what came of it. A run is a process of
 * its own, so nothing it leaves behind matters and nothing carries over to the next. */
#ifndef ESK_SIM_RUN_H
#define ESK_SIM_RUN_H

#include "base/mutation.h"
#include "observe/log.h"
#include "world.h"

#define SIM_TEXT_BYTES 1024

struct sim_run {
    struct sim_world world;
    struct sim_random random; /* the workload's */
    struct esk_log log;       /* what the broker says; printed when tracing */
    bool failed;
    char text[SIM_TEXT_BYTES]; /* why */
};

typedef void (*sim_scenario)(struct sim_run *run);

/* What a child tells its parent. */
struct sim_result {
    bool complete;
    bool failed;
    char text[SIM_TEXT_BYTES];
    uint64_t hash;
    uint64_t points;
    unsigned counts[SIM_COUNT_COUNT];
    unsigned reached[ESK_REACHED_COUNT];
};

/* Notes the first reason; the scenario returns as soon as it can. */
void sim_run_fail(struct sim_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* In this process. */
void sim_run_seed(sim_scenario scenario, uint64_t seed, bool trace, struct sim_result *result);

/* Seeds first .. first+count-1, each in a child, `jobs` at a time; `each` gets the results in order
 * of seed and ends it by returning false. */
void sim_run_seeds(sim_scenario scenario, uint64_t first, uint64_t count, unsigned jobs,
                   bool (*each)(void *context, uint64_t seed, const struct sim_result *result),
                   void *context);

/* Draws what goes wrong in the next process: at most a few things, some of them never. */
void sim_run_plan_faults(struct sim_run *run);

/* The scenarios. */
void sim_journal_scenario(struct sim_run *run);
void sim_broker_scenario(struct sim_run *run);

#endif
