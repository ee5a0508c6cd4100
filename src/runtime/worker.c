/* SPDX-License-Identifier: Apache-2.0 */
/* Workers: threads of our own that serve one queue in order of arrival. What they run blocks for
 * tens of microseconds and more, so a mutex and a condition are cheap enough. A worker ends when it
 * is destroyed, after its queue has run dry. */
#include "base/assert.h"
#include "base/memory.h"
#include "runtime/runtime_private.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

struct worker {
    struct esk_executor executor;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    struct esk_mail *first;
    struct esk_mail **last;
    bool stopping;
    atomic_uint posting; /* threads within a post: the end waits for them */
    unsigned count;      /* not guarded: fixed after the start */
    pthread_t threads[];
};

static void post(struct esk_executor *to, struct esk_mail *mail) {
    struct worker *worker = (struct worker *)to;
    mail->next = NULL;
    atomic_fetch_add(&worker->posting, 1);
    pthread_mutex_lock(&worker->mutex);
    *worker->last = mail;
    worker->last = &mail->next;
    pthread_mutex_unlock(&worker->mutex);
    /* Behind the unlock: the thread that wakes takes the mutex at once. By now the mail may have
     * run, and what it did may end the worker. */
    pthread_cond_signal(&worker->changed);
    atomic_fetch_sub(&worker->posting, 1);
}

static bool is_current(const struct esk_executor *executor) {
    return eski_current_executor == executor;
}

static const struct esk_executor_ops ops = {post, is_current};

/* The next mail, waiting for one; NULL when the worker ends. */
static struct esk_mail *take(struct worker *worker) {
    pthread_mutex_lock(&worker->mutex);
    while (!worker->first && !worker->stopping) {
        pthread_cond_wait(&worker->changed, &worker->mutex);
    }
    struct esk_mail *mail = worker->first;
    if (mail) {
        worker->first = mail->next;
        if (!worker->first) {
            worker->last = &worker->first;
        }
    }
    pthread_mutex_unlock(&worker->mutex);
    return mail;
}

static void *serve(void *context) {
    struct worker *worker = context;
    eski_current_executor = &worker->executor;
    for (struct esk_mail *mail; (mail = take(worker));) {
        mail->run(mail);
    }
    return NULL;
}

struct esk_executor *eski_worker_create(struct esk_platform *platform, const char *name,
                                        unsigned threads) {
    (void)platform;
    ESK_ASSERT(threads > 0);
    struct worker *worker =
        esk_alloc_zeroed(1, sizeof(*worker) + threads * sizeof(worker->threads[0]));
    worker->executor.ops = &ops;
    worker->last = &worker->first;
    worker->count = threads;
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_cond_init(&worker->changed, NULL);
    for (unsigned i = 0; i < threads; i++) {
        eski_thread_start(&worker->threads[i], name, serve, worker);
    }
    return &worker->executor;
}

void eski_worker_destroy(struct esk_platform *platform, struct esk_executor *executor) {
    (void)platform;
    struct worker *worker = (struct worker *)executor;
    ESK_ASSERT(!is_current(executor));
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
    for (unsigned i = 0; i < worker->count; i++) {
        pthread_join(worker->threads[i], NULL);
    }
    ESK_ASSERT(!worker->first);
    while (atomic_load(&worker->posting) > 0) {
        sched_yield(); /* one is between its unlock and its return */
    }
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->mutex);
    free(worker);
}
