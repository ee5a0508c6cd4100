/* SPDX-License-Identifier: Apache-2.0 */
/* esk_sim: runs seeds of the simulation, or shows that it notices broken rules. */
#include "run.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEDS_DEFAULT 2000

static const char *const usage =
    "esk_sim [--scenario broker|journal] [--first S] [--jobs J] and one of\n"
    "  --seeds N       runs N seeds (2000); from 2000 on every state must be reached\n"
    "  --seed S        runs one seed; --trace prints what happens\n"
    "  --twice N       runs N seeds twice and compares the hashes of all that happened\n"
    "  --mutations N   with each broken rule some seed of N must fail\n"
    "  --mutation NAME breaks one rule in what is run\n";

#define TEXT_OF(name, text) #name,
static const char *const mutation_names[] = {"NONE", ESK_MUTATION_TABLE(TEXT_OF)};
static const char *const reached_names[] = {ESK_REACHED_TABLE(TEXT_OF)};
static const char *const count_names[] = {
    "FAULT_READ",  "FAULT_WRITE",         "FAULT_WRITE_NO_SPACE", "FAULT_WRITE_SHORT",
    "FAULT_SYNC",  "FAULT_SYNC_NO_SPACE", "FAULT_WRITE_BACK",     "FAULT_FOLDER",
    "FAULT_STALL", "FAULT_CLOCK_STEP",    "FAULT_DISK_FULL",      "FAULT_DISK_ROOM",
    "POWER_LOSS",  "PROCESS_DEATH",       "CLEAN_STOP",           "TORN",
    "ERROR_TOLD",  "ERROR_UNTOLD",        "MAIL_OVERTOOK",        "NO_ROOM",
};
_Static_assert(sizeof(count_names) / sizeof(*count_names) == SIM_COUNT_COUNT, "a name for each");

struct scenario {
    const char *name;
    sim_scenario run;
    const enum esk_reached *reaches; /* NULL: all */
    size_t reach_count;
};

static const enum esk_reached journal_reaches[] = {
    ESK_REACHED_TWO_WRITES_OUT,      ESK_REACHED_LATER_WRITE_FIRST, ESK_REACHED_JOURNAL_ROLL,
    ESK_REACHED_JOURNAL_UNPREPARED,  ESK_REACHED_JOURNAL_RECYCLE,   ESK_REACHED_JOURNAL_CARRY,
    ESK_REACHED_JOURNAL_CUT,         ESK_REACHED_JOURNAL_DAMAGE,    ESK_REACHED_JOURNAL_BUFFERED,
    ESK_REACHED_JOURNAL_EMPTY_FRAME, ESK_REACHED_JOURNAL_FULL,      ESK_REACHED_JOURNAL_FAILED,
    ESK_REACHED_JOURNAL_NO_SPACE,    ESK_REACHED_RELAXED_FLUSH,     ESK_REACHED_JOURNAL_WRITE_AGAIN,
};
static const struct scenario scenarios[] = {
    {"journal", sim_journal_scenario, journal_reaches,
     sizeof(journal_reaches) / sizeof(*journal_reaches)},
    {"broker", sim_broker_scenario, NULL, ESK_REACHED_COUNT},
};
#define SCENARIO_COUNT (sizeof(scenarios) / sizeof(*scenarios))

struct tally {
    uint64_t seeds, failures, points;
    uint64_t failed_seed;
    uint64_t hash;
    unsigned counts[SIM_COUNT_COUNT];
    unsigned reached[ESK_REACHED_COUNT];
    bool quiet; /* a failure is what is looked for: the first one ends it */
    const char *scenario;
    char text[SIM_TEXT_BYTES];
};

static bool tally_add(void *context, uint64_t seed, const struct sim_result *result) {
    struct tally *tally = context;
    tally->seeds++;
    tally->points += result->points;
    tally->hash = sim_mix(tally->hash ^ result->hash);
    for (size_t i = 0; i < SIM_COUNT_COUNT; i++) {
        tally->counts[i] += result->counts[i];
    }
    for (size_t i = 0; i < ESK_REACHED_COUNT; i++) {
        tally->reached[i] += result->reached[i];
    }
    if (!result->failed) {
        return true;
    }
    tally->failures++;
    tally->failed_seed = seed;
    memcpy(tally->text, result->text, sizeof(tally->text));
    if (!tally->quiet) {
        printf("seed %llu: %s\n  again: esk_sim --scenario %s --seed %llu --trace\n",
               (unsigned long long)seed, result->text, tally->scenario, (unsigned long long)seed);
        fflush(stdout);
    }
    return !tally->quiet && tally->failures < 20;
}

static unsigned states_print(const struct tally *tally, const struct scenario *scenario) {
    unsigned missed = 0;
    for (size_t i = 0; i < SIM_COUNT_COUNT; i++) {
        printf("  %-24s %u\n", count_names[i], tally->counts[i]);
        missed += tally->counts[i] == 0;
    }
    for (size_t i = 0; i < scenario->reach_count; i++) {
        size_t which = scenario->reaches ? scenario->reaches[i] : i;
        printf("  %-24s %u\n", reached_names[which], tally->reached[which]);
        missed += tally->reached[which] == 0;
    }
    return missed;
}

static int run_seeds(const struct scenario *scenario, uint64_t first, uint64_t count,
                     unsigned jobs) {
    struct tally tally = {.scenario = scenario->name};
    sim_run_seeds(scenario->run, first, count, jobs, tally_add, &tally);
    unsigned missed = states_print(&tally, scenario);
    printf("%s: %llu seeds, %llu failed, %llu calls of the platform, hash %016llx\n",
           scenario->name, (unsigned long long)tally.seeds, (unsigned long long)tally.failures,
           (unsigned long long)tally.points, (unsigned long long)tally.hash);
    if (count >= SEEDS_DEFAULT && missed) {
        printf("%u states were never reached\n", missed);
        return 1;
    }
    return tally.failures ? 1 : 0;
}

static int run_twice(const struct scenario *scenario, uint64_t first, uint64_t count,
                     unsigned jobs) {
    struct tally tallies[2] = {{.scenario = scenario->name}, {.scenario = scenario->name}};
    for (int i = 0; i < 2; i++) {
        sim_run_seeds(scenario->run, first, count, jobs, tally_add, &tallies[i]);
    }
    printf("%s: hashes %016llx and %016llx\n", scenario->name, (unsigned long long)tallies[0].hash,
           (unsigned long long)tallies[1].hash);
    return tallies[0].hash == tallies[1].hash ? 0 : 1;
}

/* Whether the journal alone can notice it. */
static bool in_journal(unsigned mutation) {
    switch (mutation) {
    case ESK_MUTATION_CHECKPOINT_UNSYNCED_SNAPSHOT:
    case ESK_MUTATION_SEGMENT_TAKES_UNDURABLE:
    case ESK_MUTATION_CHECKPOINT_TAKES_UNDURABLE:
    case ESK_MUTATION_SEGMENTS_NOT_CUT:
    case ESK_MUTATION_PRODUCERS_NOT_IN_CHECKPOINT:
    case ESK_MUTATION_RETRY_WRITTEN_TWICE:
    case ESK_MUTATION_CLEANING_ABOVE_CHECKPOINT:
    case ESK_MUTATION_COMPACTION_UNSYNCED:
    case ESK_MUTATION_COMPACTION_TOMBSTONE_FIRST:
        return false;
    default:
        return true;
    }
}

static int run_mutations(uint64_t first, uint64_t count, unsigned jobs) {
    int survivors = 0;
    for (unsigned m = ESK_MUTATION_NONE + 1; m < ESK_MUTATION_COUNT; m++) {
        esk_mutation_active = (enum esk_mutation)m;
        bool found = false;
        for (size_t s = in_journal(m) ? 0 : 1; s < SCENARIO_COUNT && !found; s++) {
            struct tally tally = {.quiet = true, .scenario = scenarios[s].name};
            sim_run_seeds(scenarios[s].run, first, count, jobs, tally_add, &tally);
            found = tally.failures > 0;
            if (found) {
                printf("%-30s %s seed %llu: %s\n", mutation_names[m], scenarios[s].name,
                       (unsigned long long)tally.failed_seed, tally.text);
            }
        }
        if (!found) {
            printf("%-30s SURVIVES\n", mutation_names[m]);
            survivors++;
        }
        fflush(stdout);
    }
    return survivors ? 1 : 0;
}

static int run_seed(const struct scenario *scenario, uint64_t seed, bool trace) {
    static struct sim_result result;
    sim_run_seed(scenario->run, seed, trace, &result);
    printf("seed %llu: %s, %llu calls of the platform, hash %016llx\n", (unsigned long long)seed,
           result.failed ? result.text : "ok", (unsigned long long)result.points,
           (unsigned long long)result.hash);
    return result.failed ? 1 : 0;
}

static const struct scenario *scenario_of(const char *name) {
    for (size_t i = 0; i < SCENARIO_COUNT; i++) {
        if (strcmp(scenarios[i].name, name) == 0) {
            return &scenarios[i];
        }
    }
    return NULL;
}

static bool mutation_set(const char *name) {
    for (unsigned m = 0; m < ESK_MUTATION_COUNT; m++) {
        if (strcmp(mutation_names[m], name) == 0) {
            esk_mutation_active = (enum esk_mutation)m;
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 's'},
        {"first", required_argument, NULL, 'f'},
        {"jobs", required_argument, NULL, 'j'},
        {"twice", required_argument, NULL, 't'},
        {"mutations", required_argument, NULL, 'm'},
        {"mutation", required_argument, NULL, 'b'},
        {"scenario", required_argument, NULL, 'c'},
        {"trace", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    uint64_t first = 1, count = SEEDS_DEFAULT, seed = 0;
    unsigned jobs = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    bool trace = false;
    int mode = 'n', option;
    const struct scenario *scenario = &scenarios[SCENARIO_COUNT - 1];
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;
        if (option == 'n' || option == 't' || option == 'm') {
            mode = option;
            count = number;
        } else if (option == 's') {
            mode = option;
            seed = number;
        } else if (option == 'f') {
            first = number;
        } else if (option == 'j') {
            jobs = (unsigned)number;
        } else if (option == 'v') {
            trace = true;
        } else if (option == 'h') {
            fputs(usage, stdout);
            return 0;
        } else if (!(option == 'b' && mutation_set(optarg)) &&
                   !(option == 'c' && (scenario = scenario_of(optarg)))) {
            fputs(usage, stderr);
            return 2;
        }
    }
    switch (mode) {
    case 's':
        return run_seed(scenario, seed, trace);
    case 't':
        return run_twice(scenario, first, count, jobs);
    case 'm':
        return run_mutations(first, count, jobs);
    default:
        return run_seeds(scenario, first, count, jobs);
    }
}
