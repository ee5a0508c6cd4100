/* SPDX-License-Identifier: Apache-2.0 */
/* The engine for groups of one voter: terms, votes and commits as Raft has them when a node's own
 * vote is a majority. A start raises the term and votes for itself; once that is stored the node is
 * leader and its term's first entry is TERM; an index is committed when it is stored and belongs to
 * the leader's own term (earlier ones are committed with it: Raft 5.4.2).
 *
 * Life: created -> START -> STATE_STORED -> leader until destroyed. A submit before that is
 * ESK_ERR_UNAVAILABLE. Events for several voters are refused: ESK_ERR_UNSUPPORTED. */
#include "consensus/consensus.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>

struct esk_group {
    uint64_t term;
    uint64_t last_index;
    uint64_t term_first_index; /* of the TERM entry; commits begin here */
    uint64_t persisted_index;
    uint64_t commit_index;
    struct esk_configuration configuration;
    uint32_t node;
    uint32_t voted_for;
    enum esk_role role;
    bool stored; /* term and vote */
};

struct esk_group *esk_group_create(uint32_t node, const struct esk_group_state *state,
                                   uint64_t last_index, uint64_t last_term) {
    ESK_ASSERT(node != 0);
    ESK_ASSERT(state->configuration.count <= 1);
    ESK_ASSERT(last_term <= state->term);
    struct esk_group *group = esk_alloc_zeroed(1, sizeof(*group));
    group->node = node;
    group->term = state->term;
    group->voted_for = state->voted_for;
    group->configuration = (struct esk_configuration){.count = 1, .nodes = {node}};
    group->last_index = last_index;
    group->persisted_index = last_index;
    group->commit_index = state->checkpoint.applied_index; /* what was applied was committed */
    ESK_ASSERT(group->commit_index <= last_index);
    return group;
}

void esk_group_destroy(struct esk_group *group) {
    free(group);
}

static void start(struct esk_group *group, struct esk_update *update) {
    ESK_ASSERT(group->role == ESK_ROLE_FOLLOWER && !group->stored);
    group->term++;
    group->voted_for = group->node;
    group->role = ESK_ROLE_CANDIDATE;
    update->store_state = true;
}

static void state_stored(struct esk_group *group, struct esk_update *update) {
    ESK_ASSERT(group->role == ESK_ROLE_CANDIDATE);
    group->stored = true;
    group->role = ESK_ROLE_LEADER;
    group->term_first_index = ++group->last_index;
    update->append_term_entry = true;
    update->first_index = update->last_index = group->last_index;
}

static enum esk_err submit(struct esk_group *group, uint32_t count, struct esk_update *update) {
    ESK_ASSERT(count > 0);
    if (group->role != ESK_ROLE_LEADER) {
        return ESK_ERR_UNAVAILABLE;
    }
    update->append = true;
    update->first_index = group->last_index + 1;
    group->last_index += count;
    update->last_index = group->last_index;
    return ESK_OK;
}

static void persisted(struct esk_group *group, uint64_t index, uint64_t term) {
    ESK_ASSERT(group->role == ESK_ROLE_LEADER);
    ESK_ASSERT(index <= group->last_index && term <= group->term);
    if (index > group->persisted_index) {
        group->persisted_index = index;
    }
    if (term == group->term && index >= group->term_first_index && index > group->commit_index) {
        group->commit_index = index;
    }
}

enum esk_err esk_group_step(struct esk_group *group, const struct esk_event *event,
                            struct esk_update *update) {
    enum esk_err err = ESK_OK;
    *update = (struct esk_update){.store_state = false};
    switch (event->kind) {
    case ESK_EVENT_START:
        start(group, update);
        break;
    case ESK_EVENT_STATE_STORED:
        state_stored(group, update);
        break;
    case ESK_EVENT_SUBMIT:
        err = submit(group, event->count, update);
        break;
    case ESK_EVENT_PERSISTED:
        persisted(group, event->index, event->term);
        break;
    case ESK_EVENT_TIMEOUT:
        break; /* nobody else to hear of: heartbeats and elections are for several voters */
    case ESK_EVENT_SNAPSHOT:
        ESK_ASSERT(event->index <= group->commit_index);
        break;
    case ESK_EVENT_MESSAGE:
    case ESK_EVENT_CONFIGURATION:
        err = ESK_ERR_UNSUPPORTED;
        break;
    }
    update->term = group->term;
    update->voted_for = group->voted_for;
    update->commit_index = group->commit_index;
    update->role = group->role;
    update->leader = group->role == ESK_ROLE_LEADER ? group->node : 0;
    return err;
}

enum esk_role esk_group_role(const struct esk_group *group) {
    return group->role;
}

uint64_t esk_group_term(const struct esk_group *group) {
    return group->term;
}

uint64_t esk_group_last_index(const struct esk_group *group) {
    return group->last_index;
}

uint64_t esk_group_commit_index(const struct esk_group *group) {
    return group->commit_index;
}

size_t esk_group_replicas(const struct esk_group *group, struct esk_consensus_replica *replicas,
                          size_t count) {
    if (count > 0) {
        replicas[0] = (struct esk_consensus_replica){group->node, true, group->persisted_index};
    }
    return group->configuration.count;
}
