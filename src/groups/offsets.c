/* SPDX-License-Identifier: Apache-2.0 */
/* A group's commits are a sorted array: most groups read one topic, and look-ups are by binary
 * search. Snapshots list groups in order of name, so that equal states give equal bytes. */
#include "groups/offsets.h"

#include "base/list.h"
#include "model/names.h"
#include "model/partitioner.h"

#include <stdlib.h>
#include <string.h>

struct esk_consumer_group {
    struct esk_committed *commits;
    size_t count;
    size_t capacity;
    size_t name_size;
    uint8_t name[];
};

static struct esk_slice group_name(const struct esk_consumer_group *group) {
    return esk_slice(group->name, group->name_size);
}

static void group_destroy(struct esk_consumer_group *group) {
    free(group->commits);
    free(group);
}

/* Position of (topic, partition), or where it belongs. */
static size_t find_commit(const struct esk_consumer_group *group, uint64_t topic,
                          uint32_t partition) {
    size_t low = 0;
    size_t high = group->count;
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
    if (at < group->count && group->commits[at].topic == committed->topic &&
        group->commits[at].partition == committed->partition) {
        group->commits[at].offset = committed->offset;
        return;
    }
    if (group->count == group->capacity) {
        group->capacity = group->capacity == 0 ? 4 : 2 * group->capacity;
        group->commits = esk_realloc(group->commits, group->capacity * sizeof(*group->commits));
    }
    memmove(&group->commits[at + 1], &group->commits[at],
            (group->count - at) * sizeof(*group->commits));
    group->commits[at] = *committed;
    group->count++;
}

static void apply_commit(struct esk_offsets *offsets,
                         const struct esk_offsets_offset_committed *change) {
    struct esk_consumer_group *group = esk_map_get(&offsets->groups, change->group);
    if (group == NULL) {
        group = esk_alloc_zeroed(1, sizeof(*group) + change->group.size);
        group->name_size = change->group.size;
        memcpy(group->name, change->group.data, change->group.size);
        esk_map_put(&offsets->groups, change->group, group);
    }
    const struct esk_committed committed = {change->topic, change->partition, change->offset};
    commit_offset(group, &committed);
}

static void drop_topic(struct esk_consumer_group *group, uint64_t topic) {
    size_t kept = 0;
    for (size_t i = 0; i < group->count; i++) {
        if (group->commits[i].topic != topic) {
            group->commits[kept++] = group->commits[i];
        }
    }
    group->count = kept;
}

/* Groups without commits go: product rule, a group exists by what it committed. */
static void apply_drop(struct esk_offsets *offsets, uint64_t topic) {
    struct esk_consumer_group **empty = NULL;
    size_t empty_count = 0;
    size_t position = 0;
    void *value;
    while (esk_map_next(&offsets->groups, &position, NULL, &value)) {
        struct esk_consumer_group *group = value;
        drop_topic(group, topic);
        if (group->count == 0) {
            empty = esk_realloc(empty, (empty_count + 1) * sizeof(*empty));
            empty[empty_count++] = group;
        }
    }
    for (size_t i = 0; i < empty_count; i++) {
        esk_map_remove(&offsets->groups, group_name(empty[i]));
        group_destroy(empty[i]);
    }
    free(empty);
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
        if (esk_id_check(change.offset_committed.group, "group", NULL) != ESK_OK) {
            return esk_fail(error, ESK_ERR_CORRUPT, "a commit's group has no valid name");
        }
        apply_commit(offsets, &change.offset_committed);
        break;
    case ESK_OFFSETS_TOPIC_DROPPED:
        apply_drop(offsets, change.topic_dropped.topic);
        break;
    }
    return ESK_OK;
}

static int compare_groups(const void *a, const void *b) {
    const struct esk_consumer_group *const *left = a;
    const struct esk_consumer_group *const *right = b;
    return esk_slice_compare(group_name(*left), group_name(*right));
}

static void emit_group(const struct esk_consumer_group *group, struct esk_buffer *payload,
                       void (*emit)(void *context, struct esk_slice payload), void *context) {
    for (size_t i = 0; i < group->count; i++) {
        const struct esk_offsets_change change = {
            .kind = ESK_OFFSETS_OFFSET_COMMITTED,
            .offset_committed = {group->commits[i].topic, group->commits[i].partition,
                                 group->commits[i].offset, group_name(group)},
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

size_t esk_offsets_find(const struct esk_offsets *offsets, struct esk_slice group,
                        const struct esk_committed **commits) {
    const struct esk_consumer_group *found = esk_map_get(&offsets->groups, group);
    if (found == NULL) {
        return 0;
    }
    *commits = found->commits;
    return found->count;
}

void esk_offsets_each(const struct esk_offsets *offsets,
                      void (*visit)(void *context, struct esk_slice group,
                                    const struct esk_committed *commits, size_t count),
                      void *context) {
    size_t position = 0;
    void *value;
    while (esk_map_next(&offsets->groups, &position, NULL, &value)) {
        const struct esk_consumer_group *group = value;
        visit(context, group_name(group), group->commits, group->count);
    }
}

uint32_t esk_offsets_partition(struct esk_slice group, uint32_t count) {
    return (uint32_t)esk_partition_for_key(ESK_PARTITIONER_FNV1A, group, (int32_t)count);
}

static struct esk_block *payload_of(const struct esk_offsets_change *change) {
    struct esk_buffer payload;
    esk_buffer_init(&payload);
    esk_offsets_encode(&payload, change);
    struct esk_block *block = esk_block_copy(esk_buffer_slice(&payload));
    esk_buffer_fini(&payload);
    return block;
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
