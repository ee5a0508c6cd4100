/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer groups between the client's shard and the group's coordinator, which is the shard that
 * owns the group's offset partition. What is durable is in groups/offsets.h; the coordinator adds
 * deadlines of members and the line of a group's changes, in memory only. */
#ifndef ESK_BROKER_MEMBERSHIP_PRIVATE_H
#define ESK_BROKER_MEMBERSHIP_PRIVATE_H

#include "broker/broker_private.h"
#include "broker/changes.h"
#include "broker/membership.h"
#include "groups/edit.h"

/* --- ownership --- */

enum eski_ownership {
    ESKI_OWNED,   /* the caller may use the group */
    ESKI_UNOWNED, /* likewise, and by a join or commit it becomes the caller's */
    ESKI_FOREIGN,
};
/* By this shard's copy of the catalogue. */
enum eski_ownership eski_group_ownership(const struct esk_broker_shard *shard,
                                         struct esk_slice group, uint64_t owner, bool admin);
enum esk_err eski_foreign_group(struct esk_slice group, struct esk_error *error);

/* Makes the group the caller's where it is nobody's. Embedded in a job of the client's shard. */
struct eski_claim {
    struct esk_change change;
    struct esk_slice group; /* borrowed until done */
    uint64_t owner;
    bool admin;
    void (*done)(struct eski_claim *claim, enum esk_err err); /* text in change.error */
};
void eski_claim_start(struct esk_broker_shard *home, struct eski_claim *claim);

/* --- jobs --- */

enum eski_member_act {
    ESKI_JOIN,
    ESKI_LEAVE,
    ESKI_HEARTBEAT,
    ESKI_ASSIGNMENT,
    ESKI_GROUP_DELETE,
    ESKI_EXPIRE, /* the coordinator's own from here on: a silent member goes */
    ESKI_TIDY,   /* topics went: make the assignment even again */
};

struct eski_held {
    uint64_t topic;
    uint32_t partition;
};

/* One operation, or one change of the coordinator's own. It travels: from the client's shard to the
 * coordinator and back, and within a rebalance it is the helper's to read. */
struct eski_member_job {
    struct esk_mail mail;
    struct esk_link link; /* in the group's line, or in a rebalance */
    enum eski_member_act act;
    struct esk_broker_shard *home;
    struct esk_broker_shard *coordinator;
    struct esk_member_operation *operation; /* NULL: the coordinator's own */
    struct eski_claim claim;
    struct esk_slice group; /* borrowed from the operation or the group */
    uint32_t partition;     /* the offset partition */
    uint64_t member_id;
    uint64_t owner;
    bool admin;
    struct esk_group_topic *topics; /* join: by id */
    uint32_t topic_count;
    /* out */
    enum esk_err err;
    struct esk_error error;
    bool claim_again; /* the group is nobody's any more */
    enum esk_member_status status;
    uint64_t generation;
    struct eski_held *held;
    size_t held_count;
};

/* Sends the job back to its client, or frees it when there is none. In the coordinator's loop. */
void eski_member_answer(struct eski_member_job *job, enum esk_err err);

/* --- the coordinator --- */

/* A member's deadline. */
struct eski_watch {
    struct esk_deadline deadline;
    struct eski_group *group;
    uint64_t member_id;
    bool expired; /* its job is in line; a heartbeat revives it */
};

/* A group that has members, or changes in line. */
struct eski_group {
    struct eski_coordinator *coordinator;
    uint32_t partition;
    struct esk_u64_map watches; /* by member id */
    struct esk_link line;       /* changes that wait */
    struct esk_mail mail;       /* begins with them, once what has arrived besides is in line */
    bool busy;                  /* one is on its way */
    bool deleting;
    struct esk_mail *waiting; /* commits that wait for the deletion, newest first */
    uint64_t generation;      /* as of the last look */
    uint64_t rebalances;      /* since the start */
    size_t name_size;
    uint8_t name[];
};

struct eski_coordinator {
    struct esk_broker_shard *shard;
    struct esk_map groups;
    struct esk_deadlines deadlines;
    struct esk_timer timer;
    uint64_t timer_due_ns; /* 0: not started */
};

/* membership_coordinator.c: before the loops run; in the loop once the shard serves; in the loop,
 * several times, while the broker stops; afterwards. */
void eski_membership_init(struct esk_broker_shard *shard);
void eski_membership_serve(struct esk_broker_shard *shard);
void eski_membership_stop(struct esk_broker_shard *shard);
void eski_membership_fini(struct esk_broker_shard *shard);
/* A topic's entry was applied to this offset partition: groups that read it are evened out. */
void eski_membership_topic_dropped(struct esk_broker_shard *shard, uint32_t partition);
/* Visits the groups that had a rebalance since the start. */
void eski_membership_each(const struct esk_broker_shard *shard,
                          void (*visit)(void *context, struct esk_slice group, uint64_t rebalances),
                          void *context);
/* Whether a commit has to wait for the group's deletion; then the mail is posted again. */
bool eski_membership_hold(struct esk_broker_shard *shard, struct esk_slice group,
                          struct esk_mail *mail);

static inline struct esk_slice eski_group_name(const struct eski_group *group) {
    return esk_slice(group->name, group->name_size);
}
/* NULL: neither members nor entries. */
static inline const struct esk_consumer_group *eski_group_state(const struct eski_group *group) {
    return esk_offsets_group(group->coordinator->shard->offsets[group->partition],
                             eski_group_name(group));
}

/* A mail from the client's shard. */
void eski_member_arrive(struct esk_mail *mail);
/* Watches exactly the members that there are. */
void eski_group_sync(struct eski_group *group);
void eski_group_refresh(struct eski_group *group, uint64_t member_id, uint64_t in_ms);
/* The job is a sign of life of its member, if that is the caller's. */
void eski_group_hear(struct eski_group *group, const struct eski_member_job *job);
/* Fills in what a member has; false: there is no such member. */
bool eski_group_collect(const struct eski_group *group, struct eski_member_job *job);
void eski_group_queue(struct eski_group *group, struct eski_member_job *job);
/* The change on its way is done: the next one, or nothing is left of the group. */
void eski_group_next(struct eski_group *group);

/* membership_rebalance.c: takes what is in the line, up to a deletion; calls eski_group_next. */
void eski_rebalance_start(struct eski_group *group);
/* membership_groups.c: likewise for the deletion at the line's head. */
void eski_group_delete_start(struct eski_group *group);

#endif
