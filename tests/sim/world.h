/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated platform: one virtual clock, one disk, and the loops and workers of one process at
 * a time, all run by one scheduler from one seed. Implements platform/{platform,executor,file}.h.
 *
 * Each thread is a coroutine. At every call of the platform it may lose its turn to another, and
 * the process may end there: then none of its threads is ever resumed, and the next process starts
 * on the image that is left. Calls of the disk take virtual time. The clock moves by little while
 * something can run, and to the next thing that is due when nothing can.
 *
 * Life: sim_world_init; then for each process: sim_loop_create and sim_thread_start, sim_world_run
 * until it says how that went, sim_world_end. */
#ifndef ESK_SIM_WORLD_H
#define ESK_SIM_WORLD_H

#include "image.h"
#include "platform/platform.h"

#define SIM_US UINT64_C(1000) /* nanoseconds */
#define SIM_MS UINT64_C(1000000)
#define SIM_S UINT64_C(1000000000)

/* What goes wrong at the Nth call of a kind. */
enum sim_fault {
    SIM_FAULT_READ,
    SIM_FAULT_WRITE,
    SIM_FAULT_WRITE_NO_SPACE,
    SIM_FAULT_WRITE_SHORT,
    SIM_FAULT_SYNC,
    SIM_FAULT_SYNC_NO_SPACE,
    SIM_FAULT_WRITE_BACK,
    SIM_FAULT_FOLDER,
    SIM_FAULT_STALL,
    SIM_FAULT_CLOCK_STEP,
    SIM_FAULT_DISK_FULL, /* somebody else takes all but a few pages */
    SIM_FAULT_DISK_ROOM, /* and gives them back */
    SIM_FAULT_COUNT,
};

/* What a run of the simulation reached by itself. */
enum sim_count {
    SIM_COUNT_FAULTS, /* SIM_FAULT_COUNT of them: one a kind */
    SIM_COUNT_POWER_LOSS = SIM_COUNT_FAULTS + SIM_FAULT_COUNT,
    SIM_COUNT_PROCESS_DEATH,
    SIM_COUNT_CLEAN_STOP,
    SIM_COUNT_TORN,
    SIM_COUNT_ERROR_TOLD,    /* a sync told of a failed write-back */
    SIM_COUNT_ERROR_UNTOLD,  /* a sync of a descriptor that was told already */
    SIM_COUNT_MAIL_OVERTOOK, /* a mail ran before one that was posted earlier */
    SIM_COUNT_NO_ROOM,
    SIM_COUNT_COUNT,
};

struct sim_executor;
struct sim_thread;
struct sim_file;

struct sim_world {
    struct esk_platform platform;
    struct sim_image image;
    struct sim_random random; /* who runs, how long it takes */
    struct sim_random bytes;  /* what the process gets as random bytes */
    uint64_t now_ns;
    int64_t wall_ms;                  /* at now_ns 0 */
    bool direct_refused;              /* the file system knows no O_DIRECT */
    uint64_t faults[SIM_FAULT_COUNT]; /* calls to go; 0: never */
    unsigned counts[SIM_COUNT_COUNT];

    struct sim_executor **executors;
    size_t executor_count, executor_capacity;
    struct sim_thread **threads;
    size_t thread_count, thread_capacity;
    struct sim_thread *current;
    uint64_t loops_held_ns; /* until then the loops get no turn, as on a machine in trouble */
    struct sim_file *files; /* open ones */
    uint64_t next_id;

    uint64_t points;   /* calls of the platform so far */
    uint64_t crash_at; /* the process ends at this one; 0: never */
    bool crashed;
    uint64_t hash; /* over all that happened */
    bool trace;    /* print it */
};

enum sim_outcome {
    SIM_DONE,    /* `until` said so */
    SIM_IDLE,    /* nothing is left to do */
    SIM_CRASHED, /* crash_at was reached */
    SIM_STUCK,   /* no end after very many turns */
};

void sim_world_init(struct sim_world *world, uint64_t seed, uint64_t disk_bytes);
/* Runs threads until `until` (NULL: never) is true between two turns. */
enum sim_outcome sim_world_run(struct sim_world *world, bool (*until)(void *context),
                               void *context);
/* The process is gone, and with power_loss what the disk had not kept. Time passes. */
void sim_world_end(struct sim_world *world, bool power_loss);

/* A loop of the process; its thread runs until the process ends. */
struct esk_loop *sim_loop_create(struct sim_world *world, const char *name);
/* A bare thread that runs once. */
void sim_thread_start(struct sim_world *world, const char *name, void (*run)(void *),
                      void *argument);

/* Adds to the hash, and prints when tracing. text and name: no addresses in them. */
void sim_trace(struct sim_world *world, const char *text, const char *name, uint64_t a, uint64_t b);

#endif
