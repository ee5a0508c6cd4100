/* SPDX-License-Identifier: Apache-2.0 */
/* A group's commits are a sorted array: most groups read one topic, and look-ups are by binary
 * search. Snapshots list groups in order of name, so that equal states give equal bytes. What
 * follows from an entry depends on the state and the entry alone, never on what is in flight. */
#include "groups/offsets.h"

#include "base/list.h"
#include "model/names.h"
#include "model/partitioner.h"

#include <stdlib.h>
#include <string.h>

#define GENERATION_MAX (UINT64_C(1) << 62) /* more than a group can reach */

static void group_destroy(struct esk_consumer_group *group) {
    esk_membership_fini(&group->membership);
    free(group->commits);
    free(group);
}

/* Position of (topic, partition), or where it belongs. */
static size_t find_commit(const struct esk_consumer_group *group, uint64_t topic,
                          uint32_t partition) {
    size_t low = 0;
    size_t high = group->commit_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const struct esk_committed *commit = &group->commits[middle];
        if (commit->topic < topic || (commit->topic == topic && commit->partition < partition)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void commit_offset(struct esk_consumer_group *group, const struct esk_committed *committed) {
    size_t at = find_commit(group, committed->topic, committed->partition);
    if (at < group->commit_count && group->commits[at].topic == committed->topic &&
        group->commits[at].partition == committed->partition) {
        group->commits[at].offset = committed->offset;
        return;
    }
    if (group->commit_count == group->commit_capacity) {
        group->commit_capacity = group->commit_capacity == 0 ? 4 : 2 * group->commit_capacity;
        group->commits =
            esk_realloc(group->commits, group->commit_capacity * sizeof(*group->commits));
    }
    memmove(&group->commits[at + 1], &group->commits[at],
            (group->commit_count - at) * sizeof(*group->commits));
    group->commits[at] = *committed;
    group->commit_count++;
}

static struct esk_consumer_group *find_or_add(struct esk_offsets *offsets, struct esk_slice name) {
    struct esk_consumer_group *group = esk_map_get(&offsets->groups, name);
    if (group == NULL) {
        group = esk_alloc_zeroed(1, sizeof(*group) + name.size);
        group->name_size = name.size;
        memcpy(group->name, name.data, name.size);
        esk_map_put(&offsets->groups, name, group);
    }
    return group;
}

static enum esk_err apply_commit(struct esk_offsets *offsets,
                                 const struct esk_offsets_offset_committed *change,
                                 struct esk_error *error) {
    if (esk_id_check(change->group, "group", NULL) != ESK_OK) {
        return esk_fail(error, ESK_ERR_CORRUPT, "a commit's group has no valid name");
    }
    const struct esk_committed committed = {change->topic, change->partition, change->offset};
    commit_offset(find_or_add(offsets, change->group), &committed);
    return ESK_OK;
}

static void drop_commits(struct esk_consumer_group *group, uint64_t topic) {
    size_t kept = 0;
    for (size_t i = 0; i < group->commit_count; i++) {
        if (group->commits[i].topic != topic) {
            group->commits[kept++] = group->commits[i];
        }
    }
    group->commit_count = kept;
}

/* Groups that are left with nothing go. */
static void apply_drop(struct esk_offsets *offsets, uint64_t topic) {
    struct esk_consumer_group **empty = NULL;
    size_t empty_count = 0;
    size_t position = 0;
    void *value;
    while (esk_map_next(&offsets->groups, &position, NULL, &value)) {
        struct esk_consumer_group *group = value;
        drop_commits(group, topic);
        group->generation += esk_membership_drop_topic(&group->membership, topic);
        if (group->commit_count == 0 && group->generation == 0) {
            empty = esk_realloc(empty, (empty_count + 1) * sizeof(*empty));
            empty[empty_count++] = group;
        }
    }
    for (size_t i = 0; i < empty_count; i++) {
        esk_map_remove(&offsets->groups, esk_consumer_group_name(empty[i]));
        group_destroy(empty[i]);
    }
    free(empty);
}

static enum esk_err apply_assigned(struct esk_offsets *offsets,
                                   const struct esk_offsets_group_assigned *change,
                                   struct esk_error *error) {
    if (esk_id_check(change->group, "group", NULL) != ESK_OK ||
        change->generation > GENERATION_MAX) {
        return esk_fail(error, ESK_ERR_CORRUPT,
                        "a rebalance's group has no valid name or generation");
    }
    struct esk_membership membership;
    enum esk_err err = esk_membership_decode(change->membership, &membership, error);
    if (err != ESK_OK) {
        return err;
    }
    struct esk_consumer_group *group = find_or_add(offsets, change->group);
    esk_membership_fini(&group->membership);
    group->membership = membership;
    group->generation =
        change->generation > group->generation ? change->generation : group->generation + 1;
    return ESK_OK;
}

static void apply_deleted(struct esk_offsets *offsets, struct esk_slice name) {
    struct esk_consumer_group *group = esk_map_remove(&offsets->groups, name);
    if (group != NULL) {
        group_destroy(group);
    }
}

static enum esk_err apply_reset(struct esk_offsets *offsets,
                                const struct esk_offsets_commits_reset *change,
                                struct esk_error *error) {
    if (change->starts.size % 8 != 0) {
        return esk_fail(error, ESK_ERR_CORRUPT, "a reset of commits with half an offset");
    }
    size_t position = 0;
    void *value;
    while (esk_map_next(&offsets->groups, &position, NULL, &value)) {
        struct esk_consumer_group *group = value;
        for (size_t i = find_commit(group, change->topic, 0);
             i < group->commit_count && group->commits[i].topic == change->topic &&
             group->commits[i].partition < change->starts.size / 8;
             i++) {
            struct esk_committed *commit = &group->commits[i];
            commit->offset = esk_load_u64(change->starts.data + (size_t)commit->partition * 8);
        }
    }
    return ESK_OK;
}

static enum esk_err machine_apply(struct esk_machine *machine, const struct esk_entry *entry,
                                  struct esk_error *error) {
    struct esk_offsets *offsets = ESK_CONTAINER(machine, struct esk_offsets, machine);
    struct esk_offsets_change change;
    enum esk_err err = esk_offsets_decode(entry->payload, &change, error);
    if (err != ESK_OK) {
        return err;
    }
    switch (change.kind) {
    case ESK_OFFSETS_OFFSET_COMMITTED:
        return apply_commit(offsets, &change.offset_committed, error);
    case ESK_OFFSETS_TOPIC_DROPPED:
        apply_drop(offsets, change.topic_dropped.topic);
        return ESK_OK;
    case ESK_OFFSETS_GROUP_ASSIGNED:
        return apply_assigned(offsets, &change.group_assigned, error);
    case ESK_OFFSETS_GROUP_DELETED:
        apply_deleted(offsets, change.group_deleted.group);
        return ESK_OK;
    case ESK_OFFSETS_COMMITS_RESET:
        return apply_reset(offsets, &change.commits_reset, error);
    }
    return ESK_OK;
}

static int compare_groups(const void *a, const void *b) {
    const struct esk_consumer_group *const *left = a;
    const struct esk_consumer_group *const *right = b;
    return esk_slice_compare(esk_consumer_group_name(*left), esk_consumer_group_name(*right));
}

static struct esk_block *payload_of(const struct esk_offsets_change *change) {
    struct esk_buffer payload;
    esk_buffer_init(&payload);
    esk_offsets_encode(&payload, change);
    struct esk_block *block = esk_block_copy(esk_buffer_slice(&payload));
    esk_buffer_fini(&payload);
    return block;
}

static void emit_group(const struct esk_consumer_group *group, struct esk_buffer *payload,
                       void (*emit)(void *context, struct esk_slice payload), void *context) {
    if (group->generation > 0) {
        struct esk_block *block = esk_offsets_assign_payload(esk_consumer_group_name(group),
                                                             group->generation, &group->membership);
        emit(context, esk_slice(block->data, block->size));
        esk_block_release(block);
    }
    for (size_t i = 0; i < group->commit_count; i++) {
        const struct esk_offsets_change change = {
            .kind = ESK_OFFSETS_OFFSET_COMMITTED,
            .offset_committed = {group->commits[i].topic, group->commits[i].partition,
                                 group->commits[i].offset, esk_consumer_group_name(group)},
        };
        payload->size = 0;
        esk_offsets_encode(payload, &change);
        emit(context, esk_buffer_slice(payload));
    }
}

static void machine_snapshot(struct esk_machine *machine,
                             void (*emit)(void *context, struct esk_slice payload), void *context) {
    struct esk_offsets *offsets = ESK_CONTAINER(machine, struct esk_offsets, machine);
    const struct esk_consumer_group **groups =
        esk_alloc((offsets->groups.count + 1) * sizeof(*groups));
    size_t count = 0;
    size_t position = 0;
    void *value;
    while (esk_map_next(&offsets->groups, &position, NULL, &value)) {
        groups[count++] = value;
    }
    qsort(groups, count, sizeof(groups[0]), compare_groups);
    struct esk_buffer payload;
    esk_buffer_init(&payload);
    for (size_t i = 0; i < count; i++) {
        emit_group(groups[i], &payload, emit, context);
    }
    esk_buffer_fini(&payload);
    free(groups);
}

static const struct esk_machine_ops machine_ops = {machine_apply, machine_snapshot};

void esk_offsets_init(struct esk_offsets *offsets) {
    *offsets =
        (struct esk_offsets){.machine = {.ops = &machine_ops, .entry_kind = ESK_ENTRY_OFFSETS}};
    esk_map_init(&offsets->groups);
}

void esk_offsets_fini(struct esk_offsets *offsets) {
    size_t position = 0;
    void *group;
    while (esk_map_next(&offsets->groups, &position, NULL, &group)) {
        group_destroy(group);
    }
    esk_map_fini(&offsets->groups);
}

const struct esk_consumer_group *esk_offsets_group(const struct esk_offsets *offsets,
                                                   struct esk_slice name) {
    return esk_map_get(&offsets->groups, name);
}

size_t esk_offsets_find(const struct esk_offsets *offsets, struct esk_slice group,
                        const struct esk_committed **commits) {
    const struct esk_consumer_group *found = esk_offsets_group(offsets, group);
    if (found == NULL) {
        return 0;
    }
    *commits = found->commits;
    return found->commit_count;
}

void esk_offsets_each(const struct esk_offsets *offsets,
                      void (*visit)(void *context, const struct esk_consumer_group *group),
                      void *context) {
    size_t position = 0;
    void *value;
    while (esk_map_next(&offsets->groups, &position, NULL, &value)) {
        visit(context, value);
    }
}

bool esk_consumer_group_reads(const struct esk_consumer_group *group, uint64_t topic) {
    size_t at = find_commit(group, topic, 0);
    return at < group->commit_count && group->commits[at].topic == topic;
}

uint32_t esk_offsets_partition(struct esk_slice group, uint32_t count) {
    return (uint32_t)esk_partition_for_key(ESK_PARTITIONER_FNV1A, group, (int32_t)count);
}

struct esk_block *esk_offsets_commit_payload(struct esk_slice group,
                                             const struct esk_committed *committed) {
    return payload_of(&(struct esk_offsets_change){
        .kind = ESK_OFFSETS_OFFSET_COMMITTED,
        .offset_committed = {committed->topic, committed->partition, committed->offset, group},
    });
}

struct esk_block *esk_offsets_drop_payload(uint64_t topic) {
    return payload_of(&(struct esk_offsets_change){
        .kind = ESK_OFFSETS_TOPIC_DROPPED,
        .topic_dropped = {topic},
    });
}

struct esk_block *esk_offsets_assign_payload(struct esk_slice group, uint64_t generation,
                                             const struct esk_membership *membership) {
    struct esk_buffer bytes;
    esk_buffer_init(&bytes);
    esk_membership_encode(membership, &bytes);
    struct esk_block *block = payload_of(&(struct esk_offsets_change){
        .kind = ESK_OFFSETS_GROUP_ASSIGNED,
        .group_assigned = {generation, group, esk_buffer_slice(&bytes)},
    });
    esk_buffer_fini(&bytes);
    return block;
}

struct esk_block *esk_offsets_delete_payload(struct esk_slice group) {
    return payload_of(&(struct esk_offsets_change){
        .kind = ESK_OFFSETS_GROUP_DELETED,
        .group_deleted = {group},
    });
}

struct esk_block *esk_offsets_reset_payload(uint64_t topic, const uint64_t *starts,
                                            uint32_t count) {
    struct esk_buffer bytes;
    esk_buffer_init(&bytes);
    for (uint32_t i = 0; i < count; i++) {
        esk_buffer_u64(&bytes, starts[i]);
    }
    struct esk_block *block = payload_of(&(struct esk_offsets_change){
        .kind = ESK_OFFSETS_COMMITS_RESET,
        .commits_reset = {topic, esk_buffer_slice(&bytes)},
    });
    esk_buffer_fini(&bytes);
    return block;
}
