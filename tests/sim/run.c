/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds in children. */
#include "run.h"

#include "base/assert.h"
#include "base/memory.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_MAX 60 /* of CPU for a seed, which needs a tenth of one; sanitizers included */
#define JOBS_MAX 64

void sim_run_fail(struct sim_run *run, const char *format, ...) {
    if (run->failed) {
        return;
    }
    run->failed = true;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->text, sizeof(run->text), format, arguments);
    va_end(arguments);
    sim_trace(&run->world, "FAILED", run->text, 0, 0);
}

static int64_t log_wall_ms(void *context) {
    struct sim_world *world = &((struct sim_run *)context)->world;
    return world->wall_ms + (int64_t)(world->now_ns / SIM_MS);
}

static void log_write(void *context, const char *line, size_t size) {
    struct sim_run *run = context;
    char *copy = esk_alloc(size + 1);
    memcpy(copy, line, size);
    copy[size && line[size - 1] == '\n' ? size - 1 : size] = '\0';
    sim_trace(&run->world, "log", copy, 0, 0);
    free(copy);
}

void sim_run_seed(sim_scenario scenario, uint64_t seed, bool trace, struct sim_result *result) {
    struct sim_run *run = esk_alloc_zeroed(1, sizeof(*run));
    sim_world_init(&run->world, seed, 64u << 20);
    run->world.trace = trace;
    run->random = sim_random_seed(seed, 3);
    run->log = (struct esk_log){ESK_LOG_DEBUG, false, log_wall_ms, log_write, run};
    scenario(run);
    result->complete = true;
    result->failed = run->failed;
    result->hash = run->world.hash;
    result->points = run->world.points;
    memcpy(result->text, run->text, sizeof(result->text));
    memcpy(result->counts, run->world.counts, sizeof(result->counts));
    memcpy(result->reached, esk_reached_count, sizeof(result->reached));
    free(run);
}

struct child {
    pid_t process;
    int pipe;
};

static struct child child_start(sim_scenario scenario, uint64_t seed) {
    int ends[2];
    fflush(NULL);
    ESK_ASSERT(pipe(ends) == 0);
    pid_t process = fork();
    ESK_ASSERT(process >= 0);
    if (process == 0) {
        close(ends[0]);
        setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS_MAX, SECONDS_MAX + 1});
        ESK_ASSERT(freopen("/dev/null", "w", stderr));
        static struct sim_result result;
        sim_run_seed(scenario, seed, false, &result);
        ssize_t written = write(ends[1], &result, sizeof(result));
        _exit(written == (ssize_t)sizeof(result) ? 0 : 1);
    }
    close(ends[1]);
    return (struct child){process, ends[0]};
}

static void child_end(struct child *child, struct sim_result *result) {
    size_t got = 0;
    *result = (struct sim_result){0};
    while (got < sizeof(*result)) {
        ssize_t more = read(child->pipe, (char *)result + got, sizeof(*result) - got);
        if (more <= 0) {
            break;
        }
        got += (size_t)more;
    }
    close(child->pipe);
    int status = 0;
    waitpid(child->process, &status, 0);
    if (got < sizeof(*result)) {
        *result = (struct sim_result){.failed = true};
        if (WIFSIGNALED(status)) {
            snprintf(result->text, sizeof(result->text), "%s",
                     WTERMSIG(status) == SIGXCPU ? "it does not end" : strsignal(WTERMSIG(status)));
        } else {
            snprintf(result->text, sizeof(result->text), "exit %d", WEXITSTATUS(status));
        }
    }
}

void sim_run_seeds(sim_scenario scenario, uint64_t first, uint64_t count, unsigned jobs,
                   bool (*each)(void *, uint64_t, const struct sim_result *), void *context) {
    static struct sim_result result;
    struct child children[JOBS_MAX];
    jobs = jobs == 0 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
    bool go_on = true;
    uint64_t started = 0, ended = 0;
    while (ended < started || (go_on && started < count)) {
        while (go_on && started < count && started - ended < jobs) {
            children[started % jobs] = child_start(scenario, first + started);
            started++;
        }
        child_end(&children[ended % jobs], &result);
        if (go_on) {
            go_on = each(context, first + ended, &result);
        }
        ended++;
    }
}

void sim_run_plan_faults(struct sim_run *run) {
    struct sim_random *random = &run->random;
    uint64_t *faults = run->world.faults;
    memset(faults, 0, sizeof(run->world.faults));
    if (sim_one_in(random, 3)) {
        return;
    }
    if (sim_one_in(random, 2)) { /* harmless ones */
        faults[SIM_FAULT_WRITE_SHORT] = sim_scaled(random, 100);
        faults[SIM_FAULT_STALL] = sim_scaled(random, 200);
        faults[SIM_FAULT_CLOCK_STEP] = sim_scaled(random, 50);
    }
    if (sim_one_in(random, 4)) {
        faults[SIM_FAULT_DISK_FULL] = sim_scaled(random, 5000);
        faults[SIM_FAULT_DISK_ROOM] = faults[SIM_FAULT_DISK_FULL] + sim_scaled(random, 5000);
    }
    if (sim_one_in(random, 2)) {
        static const enum sim_fault hard[] = {
            SIM_FAULT_READ, SIM_FAULT_WRITE, SIM_FAULT_WRITE_NO_SPACE, SIM_FAULT_SYNC_NO_SPACE,
            SIM_FAULT_SYNC, SIM_FAULT_SYNC,  SIM_FAULT_WRITE_BACK,     SIM_FAULT_FOLDER};
        faults[hard[sim_below(random, sizeof(hard) / sizeof(*hard))]] = sim_scaled(random, 100);
    }
}
