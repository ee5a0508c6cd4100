/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer groups: the state machine of one offset partition, with committed offsets and
 * memberships. A group lives in the partition that its name hashes to (fnv1a), whose leader is the
 * group's coordinator. Topics are known by id, so nothing passes to a later topic of the same name.
 * Owned by one loop. */
#ifndef ESK_GROUPS_OFFSETS_H
#define ESK_GROUPS_OFFSETS_H

#include "base/map.h"
#include "groups/membership.h"
#include "model/entries.h"
#include "partition/partition.h"

struct esk_committed {
    uint64_t topic;
    uint32_t partition;
    uint64_t offset;
};

/* Changed by entries only. It exists while it has commits, or once it had members, until it is
 * deleted. */
struct esk_consumer_group {
    uint64_t generation; /* of the membership; 0: it never had members */
    struct esk_membership membership;
    struct esk_committed *commits; /* by topic id and partition */
    size_t commit_count;
    size_t commit_capacity;
    size_t name_size;
    uint8_t name[];
};

struct esk_offsets {
    struct esk_machine machine;
    struct esk_map groups;
};

void esk_offsets_init(struct esk_offsets *offsets);
void esk_offsets_fini(struct esk_offsets *offsets);

/* NULL: an unknown group. Borrowed until the next entry. */
const struct esk_consumer_group *esk_offsets_group(const struct esk_offsets *offsets,
                                                   struct esk_slice name);
/* The group's commits, in order of topic id and partition; *commits is borrowed until the next
 * entry. 0: an unknown group, or one without commits. */
size_t esk_offsets_find(const struct esk_offsets *offsets, struct esk_slice group,
                        const struct esk_committed **commits);

/* Visits every group; order unspecified. */
void esk_offsets_each(const struct esk_offsets *offsets,
                      void (*visit)(void *context, const struct esk_consumer_group *group),
                      void *context);
static inline struct esk_slice esk_consumer_group_name(const struct esk_consumer_group *group) {
    return esk_slice(group->name, group->name_size);
}
/* Whether the group committed an offset of the topic. */
bool esk_consumer_group_reads(const struct esk_consumer_group *group, uint64_t topic);

/* The partition of `count` in which a group lives. */
uint32_t esk_offsets_partition(struct esk_slice group, uint32_t count);

/* Payloads of entries; owned by the caller. */
struct esk_block *esk_offsets_commit_payload(struct esk_slice group,
                                             const struct esk_committed *committed);
struct esk_block *esk_offsets_drop_payload(uint64_t topic);
/* generation: the one that this is to be; it becomes a later one when a deleted topic has raised
 * it meanwhile. Any thread. */
struct esk_block *esk_offsets_assign_payload(struct esk_slice group, uint64_t generation,
                                             const struct esk_membership *membership);
struct esk_block *esk_offsets_delete_payload(struct esk_slice group);
struct esk_block *esk_offsets_reset_payload(uint64_t topic, const uint64_t *starts, uint32_t count);

#endif
