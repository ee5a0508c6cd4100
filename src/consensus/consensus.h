/* SPDX-License-Identifier: Apache-2.0 */
/* Consensus of one group as a function: step(event) -> update. No I/O, no clock, no threads, no
 * allocation per step: the caller stores, sends and applies what the update says, in this order:
 * state to the journal, entries to the journal, then messages, then applying up to commit_index.
 *
 * The engine here serves groups with one voter. Event and update kinds are those that an engine
 * for several voters needs; it fits in unchanged (docs/consensus.md has the table). */
#ifndef ESK_CONSENSUS_CONSENSUS_H
#define ESK_CONSENSUS_CONSENSUS_H

#include "base/error.h"
#include "model/entry.h"
#include "model/group_state.h"

enum esk_role { ESK_ROLE_FOLLOWER, ESK_ROLE_CANDIDATE, ESK_ROLE_LEADER };

enum esk_event_kind {
    ESK_EVENT_START,         /* after recovery: term may be raised, a TERM entry be submitted */
    ESK_EVENT_MESSAGE,       /* from another node */
    ESK_EVENT_SUBMIT,        /* entries to append; only their kind and count matter here */
    ESK_EVENT_PERSISTED,     /* entries up to index are stored */
    ESK_EVENT_STATE_STORED,  /* term and vote of the last update are durable */
    ESK_EVENT_TIMEOUT,       /* election or heartbeat */
    ESK_EVENT_SNAPSHOT,      /* the log now begins behind index */
    ESK_EVENT_CONFIGURATION, /* change of voters asked for */
};

struct esk_event {
    enum esk_event_kind kind;
    uint64_t index;           /* persisted up to, snapshot at */
    uint64_t term;            /* of that index */
    uint32_t count;           /* submit: entries */
    struct esk_slice message; /* encoded, our own format */
    const struct esk_configuration *configuration;
};

/* Borrowed from the group until its next step. */
struct esk_update {
    bool store_state; /* term, vote or configuration changed: store before anything else counts */
    uint64_t term;
    uint32_t voted_for;
    bool append; /* the submitted entries were accepted as first_index .. last_index */
    uint64_t first_index;
    uint64_t last_index;
    bool append_term_entry; /* append an ESK_ENTRY_TERM at first_index as well, before any other */
    bool truncate;          /* entries from truncate_index on are void */
    uint64_t truncate_index;
    const struct esk_slice *messages;
    const uint32_t *message_nodes;
    size_t message_count;
    uint64_t commit_index;
    enum esk_role role;
    uint32_t leader; /* node id, 0: unknown */
};

struct esk_consensus_replica { /* for /raft */
    uint32_t node;
    bool voter;
    uint64_t match_index;
};

struct esk_group; /* at most 1.5 KB */

/* state is what recovery found (or a new group's: term 0), last_index/last_term the last entry
 * stored. The group does nothing before its START event. */
struct esk_group *esk_group_create(uint32_t node, const struct esk_group_state *state,
                                   uint64_t last_index, uint64_t last_term);
void esk_group_destroy(struct esk_group *group);

/* ESK_ERR_UNAVAILABLE: a submit to a group that is not the leader; nothing was taken. */
enum esk_err esk_group_step(struct esk_group *group, const struct esk_event *event,
                            struct esk_update *update);

enum esk_role esk_group_role(const struct esk_group *group);
uint64_t esk_group_term(const struct esk_group *group);
uint64_t esk_group_last_index(const struct esk_group *group);
uint64_t esk_group_commit_index(const struct esk_group *group);
size_t esk_group_replicas(const struct esk_group *group, struct esk_consensus_replica *replicas,
                          size_t count);

#endif
