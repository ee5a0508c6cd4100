/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. A broker shard belongs to its loop; the broker's own fields
 * are set before the loops see it and constant afterwards, but for the atomics. */
#ifndef ESK_BROKER_BROKER_PRIVATE_H
#define ESK_BROKER_BROKER_PRIVATE_H

#include "broker/broker.h"
#include "broker/memory.h"
#include "cluster/catalogue.h"
#include "groups/offsets.h"
#include "partition/shard.h"
#include "storage/pool.h"
#include "storage/reserve.h"

#define ESKI_NODE 1 /* this broker's id while there is one */

struct esk_broker_shard {
    struct esk_broker *broker;
    uint32_t index;
    struct esk_loop *loop;
    struct esk_shard *log;
    struct esk_catalogue catalogue; /* shard 0: group 0's machine; else a copy */
    struct esk_offsets **offsets;   /* by offset partition; NULL where another shard owns it */
    struct eski_coordinator *coordinator; /* of the groups in them */
    atomic_uint_fast64_t memory_used;     /* of requests: memory.c, as the next five */
    struct esk_link memory_lines[ESK_MEMORY_KINDS];
    atomic_uint memory_held[ESK_MEMORY_KINDS]; /* claims that are granted */
    atomic_bool memory_awaited;                /* some claim waits */
    atomic_bool memory_posted;                 /* the mail is on its way */
    struct esk_mail memory_mail;
    struct esk_link changes; /* shard 0: catalogue changes in line */
    bool changing;           /* the first of them is on its way */
    struct esk_timer retention_timer;
    struct esk_timer producers_timer; /* shard 0's */
    struct esk_retention_pass retention_pass;
    struct esk_timer compaction_timer;
    struct esk_compaction_pass compaction_pass;
    /* Begun in this shard and not answered yet, changes of topics, passes: a stop waits for them.
     */
    unsigned operations;
    bool stopping;
    char *journal_folder;
    struct eski_token_cache *token_cache; /* authenticate.c; NULL at first */
    struct esk_metrics *metrics;
    struct esk_mail mail; /* start and stop */
};

struct esk_broker {
    struct esk_broker_options options;
    char *data_folder;
    char *groups_folder;
    struct esk_file *lock;
    struct esk_storage storage;
    struct esk_executor *helpers;
    struct esk_usage_registry *usages; /* of keys */
    struct esk_broker_shard *shards;
    uint32_t shard_count;
    uint64_t layout;                /* of the journals, see layout.h */
    uint64_t memory_share;          /* of requests, a shard's */
    atomic_uint_fast64_t active_ns; /* when any shard persisted an entry */
    atomic_bool serving;
    atomic_bool failed;
    atomic_uint waiting;    /* shards that start or stop has not heard of */
    atomic_uint operations; /* that a stop has heard of */
    atomic_uint full;       /* and shards whose disk is full */
};

static inline void eski_begin(struct esk_broker_shard *shard) {
    shard->operations++;
}

static inline void eski_end(struct esk_broker_shard *shard) {
    shard->operations--;
}

static inline struct esk_broker_shard *eski_owner(struct esk_broker *broker, uint64_t group_id) {
    return &broker->shards[group_id % broker->shard_count];
}

struct esk_partition_settings eski_partition_settings(const struct esk_topic_config *config);

/* Runs the mail here later, or in another shard: the same call for both. */
static inline void eski_post(struct esk_broker_shard *to, struct esk_mail *mail,
                             void (*run)(struct esk_mail *mail)) {
    mail->run = run;
    esk_post(&to->loop->executor, mail);
}

/* topics.c: goes on with a deletion that a crash cut off; in shard 0's loop. */
void eski_topic_delete_again(struct esk_broker_shard *shard, uint64_t first_group);

/* memory.c */
void eski_memory_start(struct esk_broker_shard *shard);

/* retention.c */
void eski_cleaning_start(struct esk_broker_shard *shard);
void eski_cleaning_stop(struct esk_broker_shard *shard);

/* authenticate.c */
void eski_token_cache_destroy(struct eski_token_cache *cache); /* NULL does nothing */

/* keys_bootstrap.c: the first key, where keys are required and there is none. The main thread, once
 * the loops serve. */
enum esk_err eski_keys_bootstrap(struct esk_broker *broker, struct esk_error *error);

/* scrape.c: the shard's registry, before the loops run. */
void eski_metrics_start(struct esk_broker_shard *shard);

/* The topic to serve a request by, or NULL. */
static inline struct esk_topic *eski_serving_topic(const struct esk_broker_shard *shard,
                                                   struct esk_slice name) {
    struct esk_topic *topic = esk_catalogue_find(&shard->catalogue, name);
    return topic != NULL && topic->serving ? topic : NULL;
}

enum esk_err eski_unknown_topic(struct esk_slice name, struct esk_error *error);
enum esk_err eski_unknown_partition(struct esk_slice topic, uint64_t partition,
                                    struct esk_error *error);
/* A clear text for errors that come without one. */
enum esk_err eski_explain(enum esk_err err, struct esk_error *error);

#endif
