/* SPDX-License-Identifier: Apache-2.0 */
/* Whom consumer groups belong to: the part of the catalogue that the entries group_owned and
 * group_released make. A group without a row belongs to the anonymous owner, so with auth off
 * nothing is written here. One owner per copy, as the catalogue. */
#ifndef ESK_CLUSTER_OWNERS_H
#define ESK_CLUSTER_OWNERS_H

#include "base/map.h"
#include "base/memory.h"
#include "model/entries.h"

struct esk_owners {
    struct esk_map groups;
};

void esk_owners_init(struct esk_owners *owners);
void esk_owners_fini(struct esk_owners *owners);

/* 0: the anonymous owner, or an unknown group. */
uint64_t esk_owners_find(const struct esk_owners *owners, struct esk_slice group);
/* Visits every group that has an owner; order unspecified. */
void esk_owners_each(const struct esk_owners *owners,
                     void (*visit)(void *context, struct esk_slice group, uint64_t owner),
                     void *context);

/* ESK_ERR_CORRUPT: the entry does not fit the state, or is none that the broker makes. */
enum esk_err esk_owners_apply_owned(struct esk_owners *owners,
                                    const struct esk_catalogue_group_owned *owned,
                                    struct esk_error *error);
enum esk_err esk_owners_apply_released(struct esk_owners *owners, struct esk_slice group,
                                       struct esk_error *error);
/* Emits the payloads that make the same rows anew, in order of the groups' names. */
void esk_owners_snapshot(const struct esk_owners *owners,
                         void (*emit)(void *context, struct esk_slice payload), void *context);

#endif
