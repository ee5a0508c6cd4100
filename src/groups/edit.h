/* SPDX-License-Identifier: Apache-2.0 */
/* The next generation of a group's membership: who joins, who leaves, and the assignment that
 * follows. Pure; any thread, meant for a helper. */
#ifndef ESK_GROUPS_EDIT_H
#define ESK_GROUPS_EDIT_H

#include "groups/membership.h"

struct esk_group_edit {
    bool join;          /* else it leaves */
    bool forced;        /* a leave that its coordinator decides: whosoever the member is */
    uint64_t member_id; /* join: 0 or unknown makes a new member. Out: the member's */
    uint64_t fresh_id;  /* join: random; the new member's id */
    uint64_t owner;     /* who asks */
    const struct esk_group_topic *topics; /* join: id and partition_count, by id, each once */
    uint32_t topic_count;
    /* In and out: an edit with an error is passed over. ESK_ERR_FORBIDDEN: the member is of another
     * key, or the group would be too large. ESK_ERR_NOT_FOUND: an unknown member leaves. */
    enum esk_err err;
};

/* Whether a member may be used by a key. What the anonymous owner made passes on, and with auth off
 * everything is open. */
static inline bool esk_group_member_fits(uint64_t member_owner, uint64_t owner) {
    return member_owner == owner || member_owner == 0 || owner == 0;
}

/* Makes *made from *old by the edits, in their order. false: it is as the old one, and *made is
 * empty. */
bool esk_membership_edit(const struct esk_membership *old, struct esk_group_edit *edits,
                         size_t count, struct esk_membership *made);

/* Owned, to be handed to esk_membership_fini. */
struct esk_membership esk_membership_copy(const struct esk_membership *membership);

#endif
