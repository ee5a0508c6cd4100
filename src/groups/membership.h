/* SPDX-License-Identifier: Apache-2.0 */
/* Who is in a consumer group, what each member reads and which partitions it has: one generation of
 * it. Topics are known by id (a topic that is deleted and made again is another one). A partition
 * has one owner by the form of the data: an array of owners per topic.
 *
 * A membership is a plain value: made, handed over, freed. One owner, no threads. Its bytes are the
 * field `membership` of the entry group_assigned, see docs/groups.md. */
#ifndef ESK_GROUPS_MEMBERSHIP_H
#define ESK_GROUPS_MEMBERSHIP_H

#include "base/error.h"
#include "base/memory.h"

#define ESK_NOBODY UINT16_MAX /* a partition without an owner: nobody reads the topic */

struct esk_group_member {
    uint64_t id;          /* random, never 0; shown as m_ and 16 hexadecimal digits */
    uint64_t owner;       /* the key that made it; 0: the anonymous owner */
    uint16_t *topics;     /* positions in the membership's topics, ascending; owned */
    uint32_t topic_count; /* 0: all of them were deleted */
};

struct esk_group_topic {
    uint64_t id;
    uint32_t partition_count;
    uint16_t *owners; /* by partition: position in members, or ESK_NOBODY; owned */
};

struct esk_membership {
    struct esk_group_member *members; /* by id, ascending */
    uint32_t member_count;
    struct esk_group_topic *topics; /* by id, ascending */
    uint32_t topic_count;
};

/* All zero is a membership of nobody. */
void esk_membership_fini(struct esk_membership *membership);

/* Position of the member; member_count: not there. */
uint32_t esk_membership_find(const struct esk_membership *membership, uint64_t member_id);
/* Position of the topic; topic_count: not there. */
uint32_t esk_membership_topic(const struct esk_membership *membership, uint64_t topic);

/* Takes the topic out: of what members read, and its partitions. false: it was not there. */
bool esk_membership_drop_topic(struct esk_membership *membership, uint64_t topic);

/* Appends the bytes. */
void esk_membership_encode(const struct esk_membership *membership, struct esk_buffer *out);
/* The reverse; *membership is set on ESK_OK only. ESK_ERR_CORRUPT: not in order, beyond a limit,
 * an owner that does not read the topic, too few or too many bytes. Memory is bounded by the
 * bytes. */
enum esk_err esk_membership_decode(struct esk_slice bytes, struct esk_membership *membership,
                                   struct esk_error *error);

#endif
