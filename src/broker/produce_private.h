/* SPDX-License-Identifier: Apache-2.0 */
/* A produce on its way: what the request became, one batch per partition. */
#ifndef ESK_BROKER_PRODUCE_PRIVATE_H
#define ESK_BROKER_PRODUCE_PRIVATE_H

#include "broker/broker_private.h"
#include "model/record_batch.h"

struct eski_produce_job;

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
    struct eski_produce_part parts[];
};

/* What a request needs to know of its topic; survives the topic's deletion. */
struct eski_produce_target {
    uint64_t first_group;
    uint32_t partition_count;
    enum esk_partitioner partitioner;
    struct esk_topic_cursor *cursor; /* a reference */
};

/* Checks every record, routes it, builds the batches. Any thread, while the request is left alone.
 * *job is NULL for a request without records. ESK_ERR_INVALID, _NOT_FOUND, _TOO_LARGE with a text
 * in produce->error: nothing was made and the round-robin did not move. */
enum esk_err eski_produce_prepare(struct esk_broker_shard *home, struct esk_produce *produce,
                                  const struct eski_produce_target *target,
                                  struct eski_produce_job **job);

#endif
