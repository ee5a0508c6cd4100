/* SPDX-License-Identifier: Apache-2.0 */
/* A produce on its way: what the request became, one batch per partition. */
#ifndef ESK_BROKER_PRODUCE_PRIVATE_H
#define ESK_BROKER_PRODUCE_PRIVATE_H

#include "broker/broker_private.h"
#include "broker/producers_private.h"
#include "model/record_batch.h"

struct eski_produce_job;
struct eski_sequenced;

/* One partition's batch. */
struct eski_produce_part {
    struct esk_mail mail;
    struct eski_produce_job *job;
    struct esk_broker_shard *owner;
    uint32_t partition;
    uint32_t record_count;
    uint64_t size_hint;
    struct esk_batch_builder builder;
    struct esk_submit submit;
    uint64_t next_offset; /* while the answer is made */
    enum esk_err err;
};

struct eski_produce_job {
    struct esk_broker_shard *home;
    struct esk_produce *produce;
    uint64_t first_group;
    uint32_t part_count;
    uint32_t waiting;
    struct eski_sequenced *sequenced; /* with a producer_id; else NULL */
    struct eski_produce_part parts[];
};

/* The records of one part of a request with a producer_id. */
struct eski_sequenced_part {
    struct esk_mail mail;
    struct eski_sequenced *sequenced;
    struct eski_produce_part *part;
    bool held; /* it has its turn */
    struct esk_sequences sequences;
};

/* What a request with a producer_id has besides. Parts are in ascending order of shard and
 * partition. */
struct eski_sequenced {
    struct esk_mail mail;
    struct eski_produce_job *job;
    uint64_t producer_id; /* numeric */
    struct eski_sequenced_part *parts;
    struct esk_broker_shard *here; /* in whose loop it is */
    uint32_t at;                   /* parts before it have their turn, and fit */
    uint32_t end;                  /* of the parts of this shard */
    uint32_t waiting;              /* for turns, or for their end */
    enum esk_err err;              /* of the part that did not */
    bool told;                     /* its text is in produce->error */
};

/* What a request needs to know of its topic; survives the topic's deletion. */
struct eski_produce_target {
    uint64_t first_group;
    uint32_t partition_count;
    enum esk_partitioner partitioner;
    struct esk_topic_cursor *cursor; /* a reference */
};

/* Key, value and headers: what limits and quotas count. */
uint64_t eski_record_bytes(const struct esk_produce_record *record);
/* Checks every record, routes it, builds the batches. Any thread, while the request is left alone.
 * *job is NULL for a request without records. ESK_ERR_INVALID, _NOT_FOUND, _TOO_LARGE with a text
 * in produce->error: nothing was made and the round-robin did not move. What it took of the quota
 * is settled by produce.c. */
enum esk_err eski_produce_prepare(struct esk_broker_shard *home, struct esk_produce *produce,
                                  const struct eski_produce_target *target,
                                  struct eski_produce_job **job);

/* produce.c: the part's result, in its owner's loop; not from inside another part's call. */
void eski_produce_part_fail(struct esk_mail *mail);
void eski_produce_part_written(struct esk_submit *submit, enum esk_err err);
/* Answers a request of which nothing was written. produce->error has the text. */
void eski_produce_refuse(struct eski_produce_job *job, enum esk_err err);

/* --- produce_sequences.c --- */

/* Behind the parts of a job: their records and sequences. Any thread. */
size_t eski_sequenced_bytes(const struct esk_produce *produce, uint32_t part_count);
void eski_sequenced_init(struct eski_produce_job *job); /* when the parts are counted */
/* Resolves the name, takes the turns, judges, and submits what is new or answers. Home's loop. */
void eski_sequenced_start(struct eski_produce_job *job);
/* Where the job's records went, when all its parts were written. */
void eski_sequenced_fill(struct eski_produce_job *job);

/* --- produce_filter.c --- */

/* The records of a part's batch that are no duplicates, as a batch with room for its trailer; the
 * part's block is replaced. Any thread. */
void eski_sequenced_filter(struct eski_sequenced_part *part);

#endif
