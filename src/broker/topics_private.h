/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of topics: a job goes to shard 0, waits in line there (one catalogue entry at a time, so
 * that each is checked against the state that it will meet), becomes an entry of group 0 and is
 * then carried to the other shards. */
#ifndef ESK_BROKER_TOPICS_PRIVATE_H
#define ESK_BROKER_TOPICS_PRIVATE_H

#include "broker/broker_private.h"

enum eski_change_kind { ESKI_CREATE, ESKI_CONFIGURE, ESKI_DELETE, ESKI_FORGET };

/* One catalogue change. Owned by shard 0 from its first mail on. */
struct eski_topic_job {
    struct esk_mail mail;
    struct esk_link link;
    struct esk_broker_shard *home;
    struct esk_broker_shard *zero;
    struct esk_topic_operation *operation; /* the client's; not touched in shard 0 */
    enum eski_change_kind kind;
    struct esk_slice name;                        /* borrowed from the operation */
    uint32_t partition_count;                     /* create */
    const struct esk_topic_config_change *config; /* borrowed likewise */
    struct esk_topic_config resolved;
    uint64_t first_group;
    bool counted; /* among shard 0's operations */
    struct esk_submit submit;
    struct esk_block *payload; /* for the other shards' copies */
};

/* A stop waits for it from here on. In shard 0. */
void eski_topic_job_count(struct eski_topic_job *job);
/* Puts the job in line. In shard 0. */
void eski_topic_job_queue(struct eski_topic_job *job);
/* The entry is applied: what follows for this kind. In shard 0; they own the job. */
void eski_topic_create_applied(struct eski_topic_job *job);
void eski_topic_delete_applied(struct eski_topic_job *job);

/* Answers the client, if there is one, in its shard; error may be NULL. */
void eski_topic_reply(struct eski_topic_job *job, enum esk_err err, const struct esk_error *error);
void eski_topic_job_destroy(struct eski_topic_job *job);

/* Carries the payload to the copies of all shards but 0. */
void eski_topic_publish(struct esk_broker *broker, struct esk_block *payload,
                        struct esk_topic_cursor *cursor);
/* Carries the job's payload to them, answers its client when all have it, and ends the job. */
void eski_topic_publish_and_reply(struct eski_topic_job *job, struct esk_topic_cursor *cursor);

#endif
