/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of a journal: the newest state of each, and which files it still needs. A group needs a
 * file while its checkpoint is below its last entry there, so an entry that is not committed always
 * holds its file: no checkpoint passes it. One owner: a recovery, then the journal's loop. */
#include "journal/files_private.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutation.h"

#include <stdlib.h>

void eski_groups_init(struct eski_groups *groups) {
    esk_u64_map_init(&groups->map);
    groups->free_holds = NULL;
}

static void hold_free(struct eski_groups *groups, struct eski_hold *hold) {
    hold->next = groups->free_holds;
    groups->free_holds = hold;
}

void eski_groups_fini(struct eski_groups *groups) {
    size_t position = 0;
    void *value;
    while (esk_u64_map_next(&groups->map, &position, NULL, &value)) {
        struct eski_group *group = value;
        while (group->first) {
            struct eski_hold *hold = group->first;
            group->first = hold->next;
            hold_free(groups, hold);
        }
        free(group);
    }
    while (groups->free_holds) {
        struct eski_hold *hold = groups->free_holds;
        groups->free_holds = hold->next;
        free(hold);
    }
    esk_u64_map_fini(&groups->map);
}

struct eski_group *eski_group_find(const struct eski_groups *groups, uint64_t id) {
    return esk_u64_map_get(&groups->map, id);
}

struct eski_group *eski_group_obtain(struct eski_groups *groups, uint64_t id) {
    struct eski_group *group = eski_group_find(groups, id);
    if (!group) {
        group = esk_alloc_zeroed(1, sizeof(*group));
        group->state.group_id = id;
        esk_list_init(&group->link);
        esk_u64_map_put(&groups->map, id, group);
    }
    return group;
}

static void release_upto(struct eski_groups *groups, struct eski_group *group, uint64_t index) {
    while (group->first && group->first->index_max <= index) {
        struct eski_hold *hold = group->first;
        group->first = hold->next;
        ESK_ASSERT(hold->file->held > 0);
        hold->file->held--;
        hold_free(groups, hold);
    }
    if (!group->first) {
        group->last = NULL;
    }
}

void eski_group_remove(struct eski_groups *groups, struct eski_group *group) {
    release_upto(groups, group, UINT64_MAX);
    esk_list_remove(&group->link);
    esk_u64_map_remove(&groups->map, group->state.group_id);
    free(group);
}

void eski_group_store(struct eski_groups *groups, struct eski_group *group,
                      const struct esk_group_state *state, struct eski_file *file) {
    ESK_ASSERT(state->group_id == group->state.group_id);
    group->state = *state;
    group->has_state = true;
    group->state_file = file;
    esk_list_remove(&group->link);
    if (file) {
        esk_list_append(&file->states, &group->link);
    }
    bool all = ESK_MUTATED(RECYCLE_BEFORE_SYNC);
    release_upto(groups, group, all ? UINT64_MAX : state->checkpoint.applied_index);
}

bool eski_group_enter(struct eski_groups *groups, struct eski_group *group, uint64_t index,
                      struct eski_file *file) {
    if (index <= group->state.checkpoint.applied_index) {
        return false;
    }
    bool cuts = group->last && group->last->index_max >= index;
    if (cuts) {
        for (struct eski_hold *hold = group->first; hold; hold = hold->next) {
            if (hold->index_max >= index) {
                hold->index_max = index - 1;
            }
        }
        release_upto(groups, group, group->state.checkpoint.applied_index);
    }
    if (group->last && group->last->file == file) {
        group->last->index_max = index;
        return cuts;
    }
    struct eski_hold *hold = groups->free_holds;
    if (hold) {
        groups->free_holds = hold->next;
    } else {
        hold = esk_alloc(sizeof(*hold));
    }
    *hold = (struct eski_hold){NULL, file, index};
    if (group->last) {
        group->last->next = hold;
    } else {
        group->first = hold;
    }
    group->last = hold;
    file->held++;
    return cuts;
}
