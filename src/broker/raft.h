/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the Raft groups. */
#ifndef ESK_BROKER_RAFT_H
#define ESK_BROKER_RAFT_H

#include "broker/broker.h"
#include "consensus/consensus.h"

/* What the partitions that hold groups' commits belong to: no user can give a topic this name. */
#define ESK_OFFSETS_TOPIC "$offsets"

struct esk_raft_group {
    uint64_t group_id;
    const char *topic; /* NULL: the catalogue. Owned by the listing */
    uint32_t partition;
    bool is_there; /* false: it went while it was asked */
    enum esk_role role;
    uint64_t term, last_index, commit_index, applied_index;
};

struct esk_raft_listing {
    void (*done)(struct esk_raft_listing *listing);
    /* out: the catalogue, the commits' partitions, then topics by name; esk_raft_listing_fini. */
    struct esk_raft_group *groups;
    size_t count;
    uint32_t node; /* this broker, which leads all of them while there is no other */
    char **names;
    size_t name_count;
    /* internal */
    struct esk_mail mail;
    struct esk_broker_shard *home;
    uint32_t shard; /* being asked */
    size_t next;
};
/* Gathers all groups' states from their shards, a bounded number a turn. */
void esk_broker_raft(struct esk_broker_shard *shard, struct esk_raft_listing *listing);
void esk_raft_listing_fini(struct esk_raft_listing *listing);

#endif
