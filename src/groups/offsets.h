/* SPDX-License-Identifier: Apache-2.0 */
/* Committed offsets of consumer groups: the state machine of one offset partition. A group lives in
 * the partition that its name hashes to (fnv1a), whose leader is the group's coordinator. Topics
 * are known by id, so commits never pass to a later topic of the same name. Owned by one loop. */
#ifndef ESK_GROUPS_OFFSETS_H
#define ESK_GROUPS_OFFSETS_H

#include "base/map.h"
#include "model/entries.h"
#include "partition/partition.h"

struct esk_committed {
    uint64_t topic;
    uint32_t partition;
    uint64_t offset;
};

struct esk_consumer_group; /* a name and its commits */

struct esk_offsets {
    struct esk_machine machine;
    struct esk_map groups;
};

void esk_offsets_init(struct esk_offsets *offsets);
void esk_offsets_fini(struct esk_offsets *offsets);

/* The group's commits, in order of topic id and partition; *commits is borrowed until the next
 * entry. 0: an unknown group. */
size_t esk_offsets_find(const struct esk_offsets *offsets, struct esk_slice group,
                        const struct esk_committed **commits);

/* Visits every group; order unspecified. */
void esk_offsets_each(const struct esk_offsets *offsets,
                      void (*visit)(void *context, struct esk_slice group,
                                    const struct esk_committed *commits, size_t count),
                      void *context);

/* The partition of `count` in which a group lives. */
uint32_t esk_offsets_partition(struct esk_slice group, uint32_t count);

/* Payloads of entries; owned by the caller. */
struct esk_block *esk_offsets_commit_payload(struct esk_slice group,
                                             const struct esk_committed *committed);
struct esk_block *esk_offsets_drop_payload(uint64_t topic);

#endif
