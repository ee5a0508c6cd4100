/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: a broker in memory with one topic, "orders", of two partitions. It
 * answers by mail, as the real one does, and fails or waits when a test says so. Included by one
 * source of a program. */
#ifndef ESK_SERVER_HTTP_FAKE_BROKER_TESTING_H
#define ESK_SERVER_HTTP_FAKE_BROKER_TESTING_H

#include "base/list.h"
#include "broker/broker.h"
#include "broker/memory.h"
#include "model/limits.h"
#include "model/record_batch.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SHARDS 2

struct esk_broker_shard {
    struct esk_loop *loop;
};
struct later {
    struct esk_mail mail;
    void (*run)(void *operation, enum esk_err err);
    void *operation;
    enum esk_err err;
};

static struct {
    struct esk_broker_shard shards[SHARDS];
    struct esk_broker_options options;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct esk_block *batches[2][16];
    uint32_t batch_count[2];
    uint64_t next_offset[2];
    enum esk_err failure; /* of the next produce */
    uint64_t taken;
    struct esk_consume *waiting; /* a long poll */
    struct esk_broker_shard *waiting_at;
    bool cancelled;
    uint32_t produced;
    bool refuses_memory;               /* every take */
    bool holds_back[ESK_MEMORY_KINDS]; /* claims of that kind wait */
    struct esk_memory_claim *claim;    /* the last one that waits */
    struct esk_broker_shard *claimed_at;
} fake;

static inline void run_later(struct esk_mail *mail) {
    struct later *later = ESK_CONTAINER(mail, struct later, mail);
    later->run(later->operation, later->err);
    free(later);
}

static inline void answer_later(struct esk_broker_shard *shard, void *operation, enum esk_err err,
                                void (*run)(void *operation, enum esk_err err)) {
    struct later *later = esk_alloc(sizeof *later);
    *later = (struct later){{NULL, run_later}, run, operation, err};
    esk_post(&shard->loop->executor, &later->mail);
}

static bool is_orders(struct esk_slice name) {
    return esk_slice_equal(name, esk_slice_text("orders"));
}

struct esk_broker_shard *esk_broker_shard(struct esk_broker *broker, uint32_t shard) {
    (void)broker;
    return &fake.shards[shard];
}
struct esk_loop *esk_broker_shard_loop(const struct esk_broker_shard *shard) {
    return shard->loop;
}
const struct esk_broker_options *esk_broker_shard_options(const struct esk_broker_shard *shard) {
    (void)shard;
    return &fake.options;
}
bool esk_broker_ready(const struct esk_broker *broker) {
    (void)broker;
    return true;
}
bool esk_broker_memory_take(struct esk_broker_shard *shard, uint64_t bytes) {
    (void)shard;
    if (__atomic_load_n(&fake.refuses_memory, __ATOMIC_SEQ_CST)) {
        return false;
    }
    __atomic_add_fetch(&fake.taken, bytes, __ATOMIC_RELAXED);
    return true;
}
void esk_broker_memory_give(struct esk_broker_shard *shard, uint64_t bytes) {
    (void)shard;
    __atomic_sub_fetch(&fake.taken, bytes, __ATOMIC_RELAXED);
}
bool esk_broker_memory_claim(struct esk_broker_shard *shard, struct esk_memory_claim *claim) {
    pthread_mutex_lock(&fake.mutex);
    claim->is_granted = !fake.holds_back[claim->kind];
    if (!claim->is_granted) {
        fake.claim = claim;
        fake.claimed_at = shard;
        pthread_cond_broadcast(&fake.changed);
    }
    pthread_mutex_unlock(&fake.mutex);
    return claim->is_granted && esk_broker_memory_take(shard, claim->bytes);
}
bool esk_broker_memory_take_more(struct esk_broker_shard *shard,
                                 const struct esk_memory_claim *claim, uint64_t bytes) {
    (void)claim;
    return esk_broker_memory_take(shard, bytes);
}
void esk_broker_memory_settle(struct esk_broker_shard *shard, struct esk_memory_claim *claim) {
    if (claim->is_granted) {
        claim->is_granted = false;
        esk_broker_memory_give(shard, claim->bytes);
    }
    pthread_mutex_lock(&fake.mutex);
    if (fake.claim == claim) {
        fake.claim = NULL;
        pthread_cond_broadcast(&fake.changed);
    }
    pthread_mutex_unlock(&fake.mutex);
}
size_t esk_broker_topic_count(const struct esk_broker_shard *shard) {
    (void)shard;
    return 1;
}
bool esk_broker_topic_find(const struct esk_broker_shard *shard, struct esk_slice name,
                           struct esk_topic_view *view) {
    (void)shard;
    *view = (struct esk_topic_view){.name = name, .partition_count = 2};
    esk_topic_config_init(&view->config);
    return is_orders(name);
}
void esk_broker_topic_each(const struct esk_broker_shard *shard,
                           void (*visit)(void *context, const struct esk_topic_view *view),
                           void *context) {
    struct esk_topic_view view;
    if (esk_broker_topic_find(shard, esk_slice_text("orders"), &view)) {
        visit(context, &view);
    }
}

static inline void topic_done(void *context, enum esk_err err) {
    struct esk_topic_operation *operation = context;
    operation->done(operation, err);
}
static inline void topic_operation(struct esk_broker_shard *shard,
                                   struct esk_topic_operation *operation, bool creating) {
    enum esk_err err = ESK_OK;
    if (creating == is_orders(operation->name)) {
        err = creating ? esk_fail(&operation->error, ESK_ERR_CONFLICT, "topic exists")
                       : esk_fail(&operation->error, ESK_ERR_NOT_FOUND, "unknown topic");
    }
    esk_topic_config_init(&operation->resolved);
    if (err == ESK_OK && operation->config) {
        err = esk_topic_config_apply(&operation->resolved, operation->config, creating,
                                     &operation->error);
    }
    answer_later(shard, operation, err, topic_done);
}
void esk_broker_topic_create(struct esk_broker_shard *shard,
                             struct esk_topic_operation *operation) {
    topic_operation(shard, operation, true);
}
void esk_broker_topic_configure(struct esk_broker_shard *shard,
                                struct esk_topic_operation *operation) {
    topic_operation(shard, operation, false);
}
void esk_broker_topic_delete(struct esk_broker_shard *shard,
                             struct esk_topic_operation *operation) {
    topic_operation(shard, operation, false);
}

static inline void describe_done(void *context, enum esk_err err) {
    struct esk_topic_description *description = context;
    description->done(description, err);
}
void esk_broker_topic_describe(struct esk_broker_shard *shard,
                               struct esk_topic_description *description) {
    /* As many partitions as a topic may have: the answer does not fit into one piece. */
    description->partition_count = ESK_TOPIC_PARTITIONS_MAX;
    description->partitions =
        esk_alloc_zeroed(ESK_TOPIC_PARTITIONS_MAX, sizeof *description->partitions);
    for (uint32_t i = 0; i < ESK_TOPIC_PARTITIONS_MAX; i++) {
        description->partitions[i].partition = i;
    }
    esk_topic_config_init(&description->config);
    answer_later(shard, description, ESK_OK, describe_done);
}

#endif
