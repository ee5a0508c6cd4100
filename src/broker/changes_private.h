/* SPDX-License-Identifier: Apache-2.0 */
/* The line of catalogue changes in shard 0: one entry at a time, so that each is checked against
 * the state that it will meet. */
#ifndef ESK_BROKER_CHANGES_PRIVATE_H
#define ESK_BROKER_CHANGES_PRIVATE_H

#include "broker/broker_private.h"
#include "broker/changes.h"

struct eski_change;
struct eski_change_ops {
    /* As esk_change's. */
    enum esk_err (*decide)(struct eski_change *change, const struct esk_catalogue *catalogue,
                           struct esk_catalogue_change *entry, struct esk_error *error);
    /* The entry is applied here: what follows; ends in eski_change_publish_and_reply or
     * eski_change_destroy. NULL: the former at once. */
    void (*applied)(struct eski_change *change);
    /* Answers who waits, in its shard. Called at most once. */
    void (*reply)(struct eski_change *change, enum esk_err err, const struct esk_error *error);
};

/* Embedded in an allocation of its own, at its beginning. Owned by shard 0 from its first mail
 * on. */
struct eski_change {
    const struct eski_change_ops *ops;
    struct esk_mail mail;
    struct esk_link link;
    struct esk_broker_shard *home; /* who waits for it */
    struct esk_broker_shard *zero;
    bool frees_room;
    bool replied;
    bool counted; /* among shard 0's operations: a stop waits for it */
    struct esk_submit submit;
    struct esk_block *payload; /* for the other shards' copies */
};

/* In any shard: sends it to shard 0, counts it there and puts it in line. */
void eski_change_start(struct eski_change *change, struct esk_broker_shard *home,
                       const struct eski_change_ops *ops);
/* In shard 0. */
void eski_change_count(struct eski_change *change);
void eski_change_queue(struct eski_change *change);
void eski_change_reply(struct eski_change *change, enum esk_err err, const struct esk_error *error);
void eski_change_destroy(struct eski_change *change);
/* Carries the payload to the copies of all shards but 0. cursor: a topic's, or NULL. */
void eski_change_publish(struct eski_change *change, struct esk_topic_cursor *cursor);
/* Likewise, replies when all have it, and destroys the change. */
void eski_change_publish_and_reply(struct eski_change *change, struct esk_topic_cursor *cursor);

/* topics.c: a copy has applied this change; in its loop. */
void eski_topic_change_arrived(struct esk_broker_shard *shard,
                               const struct esk_catalogue_change *entry);

#endif
