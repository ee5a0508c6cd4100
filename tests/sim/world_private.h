/* SPDX-License-Identifier: Apache-2.0 */
/* What world.c, executor.c and files.c share. */
#ifndef ESK_SIM_WORLD_PRIVATE_H
#define ESK_SIM_WORLD_PRIVATE_H

#include "base/deadlines.h"
#include "coroutine.h"
#include "world.h"

enum simi_state { SIMI_RUNNABLE, SIMI_SLEEPING, SIMI_WAITING };

/* What a thread knows of the others' posts: how many of each have come to its ears. Threads share
 * the places when there are many, which forbids some overtaking that could be. */
#define SIMI_CLOCK_PLACES 64
struct simi_clock {
    uint32_t posts[SIMI_CLOCK_PLACES];
};

struct sim_thread {
    struct sim_coroutine coroutine;
    struct sim_world *world;
    struct sim_executor *executor; /* NULL: a bare thread */
    const char *name;
    uint64_t id;
    enum simi_state state;
    uint64_t wake_ns; /* sleeping: when */
    bool busy;        /* runs a mail */
    struct simi_clock clock;
    void (*run)(void *argument);
    void *argument;
};

struct simi_post {
    struct esk_mail *mail;
    uint64_t sender;         /* id of the thread; 0: outside */
    bool own;                /* from a thread of the executor itself */
    struct simi_clock clock; /* of the sender, this post counted */
};

struct sim_executor {
    struct esk_loop loop; /* a worker uses its first member alone */
    struct sim_world *world;
    char *name;
    bool is_loop;
    bool stopping;
    unsigned threads;        /* alive */
    struct simi_post *posts; /* in order of posting */
    size_t post_count, post_capacity;
    struct esk_deadlines timers;
    uint64_t turn_ns; /* loop: time of its turn */
};

/* world.c */
/* A call of the platform: the process may end here, another thread may go first. */
void simi_point(struct sim_world *world);
void simi_sleep(struct sim_world *world, uint64_t ns);
/* Until somebody sets the thread runnable. */
void simi_wait(struct sim_world *world);
struct sim_thread *simi_thread_create(struct sim_world *world, struct sim_executor *executor,
                                      const char *name, void (*run)(void *), void *argument);
bool simi_fault(struct sim_world *world, enum sim_fault fault);

/* executor.c */
void simi_executor_wake(struct sim_executor *executor);
uint64_t simi_executor_due(const struct sim_executor *executor); /* next timer; UINT64_MAX: none */
void simi_executor_free(struct sim_executor *executor);
struct esk_executor *simi_worker_create(struct esk_platform *platform, const char *name,
                                        unsigned threads);
void simi_worker_destroy(struct esk_platform *platform, struct esk_executor *worker);

/* files.c */
void simi_take_time(struct sim_world *world); /* the device at work */
void simi_begin(struct sim_world *world, const char *what, const char *path, uint64_t a,
                uint64_t b);
enum esk_err simi_fail(struct esk_error *error, int number, const char *what, const char *path);
/* Starts to write the dirty pages of a file; with a failure some of them (at least one, when there
 * are any) stay as they were on the device, clean in the cache. */
void simi_sync_begin(struct sim_world *world, struct sim_inode *inode, enum esk_err failure);
void simi_sync_end(struct sim_inode *inode, uint64_t size); /* size: when it began */
enum esk_err simi_sync_fault(struct sim_world *world);
enum esk_err simi_file_open(struct esk_platform *platform, const char *path, unsigned flags,
                            struct esk_file **result, struct esk_error *error);
void simi_files_forget(struct sim_world *world);

/* folders.c */
static inline struct sim_world *simi_world_of(struct esk_platform *platform) {
    return (struct sim_world *)platform;
}
/* The first part of name gets this inode, or none, in folder. */
void simi_assign(struct sim_world *world, struct sim_inode *folder, const char *name,
                 struct sim_inode *inode);
extern const struct esk_platform_ops simi_platform_ops;

#endif
