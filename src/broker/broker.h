/* SPDX-License-Identifier: Apache-2.0 */
/* What Esker does, free of any protocol: topics, produce, consume, consumer groups. Every door
 * calls these functions, on the shard that serves the connection; they route to the shards that own
 * the partitions and call back, in the same shard's loop, exactly once.
 *
 * An operation struct belongs to the caller's request: it must stay until `done` ran. Inputs are
 * borrowed for as long. `done` is never called from inside the starting call. An error's text is
 * fit for the client, except that of ESK_ERR_INTERNAL, _IO and _CORRUPT, which the door replaces by
 * an id and logs. */
#ifndef ESK_BROKER_BROKER_H
#define ESK_BROKER_BROKER_H

#include "base/error.h"
#include "base/memory.h"
#include "broker/options.h"
#include "broker/produce.h"
#include "model/topic_config.h"
#include "observe/metrics.h"

struct esk_broker;
struct esk_caller;
struct esk_broker_shard; /* the part of the broker that one loop sees */

/* Locks the data folder, recovers, and starts to serve. Blocks: called in the main thread or a
 * worker, never in a loop; the loops must be able to run meanwhile. */
enum esk_err esk_broker_start(const struct esk_broker_options *options, struct esk_broker **broker,
                              struct esk_error *error);
/* Answers what is in flight, checkpoints, closes the journals; blocks likewise. No operation may be
 * started afterwards. Frees the broker. */
enum esk_err esk_broker_stop(struct esk_broker *broker, struct esk_error *error);

/* The shard's view; NULL before start has returned. */
struct esk_broker_shard *esk_broker_shard(struct esk_broker *broker, uint32_t shard);
struct esk_loop *esk_broker_shard_loop(const struct esk_broker_shard *shard);
const struct esk_broker_options *esk_broker_shard_options(const struct esk_broker_shard *shard);

/* Whether it serves: false once it failed or stops. Any thread. */
bool esk_broker_ready(const struct esk_broker *broker);

/* --- request memory: one budget for all doors --- */

/* Any loop. false: over the budget, answer 503 or wait. */
bool esk_broker_memory_take(struct esk_broker_shard *shard, uint64_t bytes);
void esk_broker_memory_give(struct esk_broker_shard *shard, uint64_t bytes);

/* --- topics --- */

struct esk_topic_view {
    struct esk_slice name;
    uint32_t partition_count;
    struct esk_topic_config config;
};

/* Synchronous reads of this shard's copy of the catalogue; views are borrowed until the loop's turn
 * ends. Topics come sorted by name. */
size_t esk_broker_topic_count(const struct esk_broker_shard *shard);
bool esk_broker_topic_find(const struct esk_broker_shard *shard, struct esk_slice name,
                           struct esk_topic_view *view);
void esk_broker_topic_each(const struct esk_broker_shard *shard,
                           void (*visit)(void *context, const struct esk_topic_view *view),
                           void *context);

/* Creates, changes, deletes. done comes when every partition serves, the change is durable and this
 * shard sees it, or the topic is gone and its data will not come back. */
struct esk_topic_operation {
    struct esk_slice name;
    uint32_t partition_count;                     /* create */
    const struct esk_topic_config_change *config; /* create, configure: the fields given */
    void (*done)(struct esk_topic_operation *operation, enum esk_err err);
    struct esk_topic_config resolved; /* out: create, configure */
    struct esk_error error;           /* out */
    void *internal;
};
void esk_broker_topic_create(struct esk_broker_shard *shard, struct esk_topic_operation *operation);
void esk_broker_topic_configure(struct esk_broker_shard *shard,
                                struct esk_topic_operation *operation);
void esk_broker_topic_delete(struct esk_broker_shard *shard, struct esk_topic_operation *operation);

struct esk_partition_view {
    uint32_t partition;
    uint64_t start_offset;
    uint64_t high_watermark;
    uint64_t size_bytes; /* logical, see product docs */
    uint32_t segments;
};
struct esk_topic_description {
    struct esk_slice name;
    void (*done)(struct esk_topic_description *description, enum esk_err err);
    struct esk_partition_view
        *partitions; /* out: in order, owned by the description's caller: free() */
    uint32_t partition_count;
    struct esk_topic_config config;
    struct esk_error error;
    void *internal;
};
void esk_broker_topic_describe(struct esk_broker_shard *shard,
                               struct esk_topic_description *description);

/* --- consume --- */

struct esk_consume {
    struct esk_slice topic;
    uint32_t partition;
    uint64_t offset;
    uint32_t records_max; /* clamped to the broker's limits by the caller */
    uint64_t bytes_max;
    uint32_t wait_ms; /* long poll: answer when there is a record, or then */
    /* Whose quota is looked at; NULL: nobody's. The door charges what it hands out: quotas.h. */
    const struct esk_caller *caller;
    void (*done)(struct esk_consume *consume, enum esk_err err);
    /* out, on ESK_OK: whole batches, in order, checked; from the one that holds the first record
     * at or after the effective offset; enough for records_max and bytes_max, or all there is.
     * They may be compressed. Released by esk_consume_fini. */
    struct esk_consume_part {
        struct esk_block *block;
        uint32_t position;
        uint32_t size;
    } * parts;
    uint32_t part_count;
    uint64_t start_offset; /* first kept one: an offset below it starts there */
    uint64_t high_watermark;
    struct esk_error error;
    uint32_t retry_after_s; /* out, with ESK_ERR_THROTTLED */
    void *internal;
};
void esk_broker_consume(struct esk_broker_shard *shard, struct esk_consume *consume);
/* The client is gone: done comes soon, with whatever there is. Same loop. */
void esk_broker_consume_cancel(struct esk_broker_shard *shard, struct esk_consume *consume);
void esk_consume_fini(struct esk_consume *consume);

/* --- consumer groups --- */

struct esk_offset_commit {
    struct esk_slice group;
    struct esk_slice topic;
    uint32_t partition;
    uint64_t offset;
    uint64_t owner; /* of the caller's key; 0: anonymous */
    bool admin;
    void (*done)(struct esk_offset_commit *commit, enum esk_err err);
    struct esk_error error;
    void *internal;
};
/* Durable when done. ESK_ERR_NOT_FOUND: unknown topic or partition. ESK_ERR_FORBIDDEN: the group
 * belongs to another key; it becomes the caller's when it is nobody's. */
void esk_broker_offset_commit(struct esk_broker_shard *shard, struct esk_offset_commit *commit);

struct esk_offset_view {
    const char *topic;
    uint32_t partition;
    uint64_t offset;
};
struct esk_offset_fetch {
    struct esk_slice group;
    struct esk_slice topic; /* size 0: all */
    uint64_t owner;         /* as of a commit */
    bool admin;
    const struct esk_caller *caller; /* whose readable topics are shown; NULL: all */
    void (*done)(struct esk_offset_fetch *fetch, enum esk_err err);
    /* out: sorted by topic, then partition; freed by esk_offset_fetch_fini. Empty: no commits. */
    struct esk_offset_view *offsets;
    size_t count;
    struct esk_error error;
    void *internal;
};
void esk_broker_offset_fetch(struct esk_broker_shard *shard, struct esk_offset_fetch *fetch);
void esk_offset_fetch_fini(struct esk_offset_fetch *fetch);

/* --- observation --- */

/* The broker's own series (partitions, groups, journal, memory, topics) in Prometheus text,
 * gathered from all shards; doors add theirs. */
struct esk_metrics_scrape {
    struct esk_buffer text; /* initialised by the caller; appended to */
    /* Who looks: an admin sees all, others topics that they can read, groups that they own, and
     * their key; NULL: all. */
    const struct esk_caller *caller;
    void (*done)(struct esk_metrics_scrape *scrape);
    void *internal;
};
void esk_broker_metrics(struct esk_broker_shard *shard, struct esk_metrics_scrape *scrape);

#endif
