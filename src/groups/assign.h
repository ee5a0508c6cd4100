/* SPDX-License-Identifier: Apache-2.0 */
/* Which member of a consumer group gets which partitions: even first, sticky second. Pure; any
 * thread. 10,000 partitions and 200 members take a millisecond or two: for helpers, not for loops.
 *
 * Even: no partition can be moved, alone or along a chain of members, so that the counts of two
 * members that differ by two or more come closer. Where all read the same topics the counts differ
 * by one at most. Sticky: a partition stays where it is unless evenness asks for the move; where
 * all read the same topics the moves are the fewest possible. What is even stays as it is. Every
 * partition of a topic that somebody reads has an owner. */
#ifndef ESK_GROUPS_ASSIGN_H
#define ESK_GROUPS_ASSIGN_H

#include "groups/membership.h"

/* In: members, topics, and owners as they are now (ESK_NOBODY: none; an owner that does not read
 * the topic counts as none). Out: owners. The same input gives the same output. */
void esk_membership_assign(struct esk_membership *membership);

#endif
