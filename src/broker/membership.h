/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer groups beyond commits: members, assignments, lists. The rules of broker.h hold: an
 * operation belongs to its caller until `done`, inputs are borrowed as long, `done` comes once in
 * the calling loop. */
#ifndef ESK_BROKER_MEMBERSHIP_H
#define ESK_BROKER_MEMBERSHIP_H

#include "broker/broker.h"

#define ESK_MEMBER_ID_BYTES 18 /* m_ and 16 hexadecimal digits */

/* A partition that a member has. */
struct esk_member_partition {
    const char *topic; /* one of the operation's names */
    uint32_t partition;
};

enum esk_member_status {
    ESK_MEMBER_OK,
    ESK_MEMBER_REBALANCE_REQUIRED,
    ESK_MEMBER_UNKNOWN,
};

struct esk_member_operation {
    struct esk_slice group;
    struct esk_slice member_id;     /* data NULL: none, for a join */
    const struct esk_slice *topics; /* join: 1 to ESK_MEMBER_TOPICS_MAX; twice counts once */
    uint32_t topic_count;
    uint64_t known_generation; /* heartbeat: the one that the member knows */
    uint64_t owner;            /* of the caller's key; 0: anonymous */
    bool admin;
    void (*done)(struct esk_member_operation *operation, enum esk_err err);
    /* out */
    enum esk_member_status status; /* heartbeat */
    uint64_t generation;
    char member[ESK_MEMBER_ID_BYTES + 1];
    struct esk_member_partition *partitions; /* join, assignment: by topic and partition */
    size_t partition_count;
    char **names;
    uint32_t name_count;
    struct esk_error error;
};

/* Durable when done. ESK_ERR_INVALID, ESK_ERR_FORBIDDEN (another key's group or member, or the
 * group is full), ESK_ERR_NOT_FOUND (a topic). */
void esk_broker_group_join(struct esk_broker_shard *shard, struct esk_member_operation *operation);
/* ESK_ERR_NOT_FOUND: no such member. */
void esk_broker_group_leave(struct esk_broker_shard *shard, struct esk_member_operation *operation);
void esk_broker_group_assignment(struct esk_broker_shard *shard,
                                 struct esk_member_operation *operation);
/* An unknown member is a status, not an error. */
void esk_broker_group_heartbeat(struct esk_broker_shard *shard,
                                struct esk_member_operation *operation);
void esk_member_operation_fini(struct esk_member_operation *operation);

/* --- groups as a whole --- */

struct esk_group_view {
    char *name; /* UTF-8, size bytes and a NUL */
    size_t name_size;
    uint32_t members;
    uint64_t generation;
    char **topics; /* those that members read or that it has commits of; by name */
    uint32_t topic_count;
};
struct esk_group_listing {
    uint64_t owner; /* its groups, */
    bool admin;     /* or all */
    void (*done)(struct esk_group_listing *listing, enum esk_err err);
    struct esk_group_view *groups; /* out: by name */
    size_t count;
    struct esk_error error;
};
void esk_broker_group_list(struct esk_broker_shard *shard, struct esk_group_listing *listing);
void esk_group_listing_fini(struct esk_group_listing *listing);

/* ESK_ERR_CONFLICT: it has members. ESK_ERR_NOT_FOUND. */
void esk_broker_group_delete(struct esk_broker_shard *shard,
                             struct esk_member_operation *operation);

/* Moves every group's commits on the topic to the partitions' start offsets. */
struct esk_offset_reset {
    struct esk_slice topic;
    void (*done)(struct esk_offset_reset *reset, enum esk_err err);
    uint64_t groups; /* out: that had commits on it */
    struct esk_error error;
};
void esk_broker_offset_reset(struct esk_broker_shard *shard, struct esk_offset_reset *reset);

#endif
