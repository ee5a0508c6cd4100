/* SPDX-License-Identifier: Apache-2.0 */
/* A produce on its way: what the request became, one batch per partition. */
#ifndef ESK_BROKER_PRODUCE_PRIVATE_H
#define ESK_BROKER_PRODUCE_PRIVATE_H

#include "broker/broker_private.h"
#include "broker/producers_private.h"
#include "model/record_batch.h"

struct eski_produce_job;
struct eski_sequenced;

/* One partition's batch. It has its place, and these fields their values, from the seal on; while
 * records are put there are only partition, bytes and builder. */
struct eski_produce_part {
    struct esk_mail mail;
    struct eski_produce_job *job;
    struct esk_broker_shard *owner;
    uint32_t partition;
    uint32_t record_count;
    uint64_t bytes; /* of its records, as quotas count */
    struct esk_batch_builder builder;
    struct esk_submit submit;
    struct eski_sequenced_part *sequenced; /* NULL without a producer_id */
    uint64_t next;                         /* while the answer is read: offset, or item */
    enum esk_err err;                      /* the owner's, as submit is, until it is back */
    bool is_back;                          /* home's: written, or failed */
};

struct eski_produce_job {
    struct esk_broker_shard *home;
    struct esk_produce *produce;
    /* What a request needs to know of its topic; survives the topic's deletion. */
    uint64_t first_group;
    uint32_t partition_count;
    enum esk_partitioner partitioner;
    struct esk_topic_cursor *cursor; /* a reference */

    bool is_array;         /* the request's records tell where they went */
    bool is_sent;          /* the round-robin has moved */
    uint32_t record_count; /* put so far */
    uint32_t routed_count; /* of these, by the round-robin */
    uint64_t bytes;        /* of these, as quotas count */
    size_t guess_bytes;    /* of the next part's batch */
    size_t other_bytes;    /* and of those behind it */
    uint32_t last;         /* part of the record before */
    uint32_t part_count;
    uint32_t part_capacity;
    struct eski_produce_part *parts; /* `first`, or many */
    struct eski_produce_part first;
    uint32_t *slots;  /* by partition: number of its part, and one; with several parts */
    uint32_t *places; /* by record: its part; NULL: there is one part */
    uint32_t place_capacity;
    int64_t *sequences; /* by record; NULL without a producer_id */
    uint32_t sequence_capacity;
    uint32_t waiting;                 /* parts that are being written */
    uint32_t shown_waiting;           /* the same when `advanced` ran last; all at the start */
    struct esk_mail show;             /* to oneself: runs it, or the end */
    bool is_show_posted;              /* `show` is on its way */
    uint32_t told_count;              /* records that the answer has told of */
    struct eski_sequenced *sequenced; /* with a producer_id, when sealed; else NULL */
};

static inline uint32_t eski_produce_place(const struct eski_produce_job *job, uint32_t record) {
    return job->places != NULL ? job->places[record] : 0;
}

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

/* Puts all of the request's array, and seals. Any thread. */
enum esk_err eski_produce_put_array(struct esk_produce *produce);

/* produce.c: the part's result, in its owner's loop; not from inside another part's call. */
void eski_produce_part_fail(struct esk_mail *mail);
void eski_produce_part_written(struct esk_submit *submit, enum esk_err err);
/* Answers a request of which nothing was written. produce->error has the text. */
void eski_produce_refuse(struct eski_produce_job *job, enum esk_err err);

/* --- produce_sequences.c --- */

void eski_sequenced_init(struct eski_produce_job *job); /* when it is sealed. Any thread. */
/* Resolves the name, takes the turns, judges, and submits what is new or answers. Home's loop. */
void eski_sequenced_start(struct eski_produce_job *job);
/* Where the next record of the part went, when all parts were written. */
void eski_sequenced_tell(struct eski_produce_part *part, struct esk_produce_run *run);

/* --- produce_filter.c --- */

/* The records of a part's batch that are no duplicates, as a batch with room for its trailer; the
 * part's block is replaced. Any thread. */
void eski_sequenced_filter(struct eski_sequenced_part *part);

#endif
