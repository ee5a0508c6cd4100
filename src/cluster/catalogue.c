/* SPDX-License-Identifier: Apache-2.0 */
/* Applying changes must end in the same state everywhere: nothing here depends on a clock, on
 * memory addresses or on the order of a hash map (snapshots list topics by id). */
#include "cluster/catalogue.h"

#include "base/list.h"
#include "model/limits.h"
#include "model/names.h"

#include <stdlib.h>
#include <string.h>

static int compare_ids(const void *a, const void *b) {
    const struct esk_topic *const *left = a;
    const struct esk_topic *const *right = b;
    return (*left)->first_group < (*right)->first_group ? -1 : 1; /* ids differ */
}

static const struct esk_topic **all_by_id(const struct esk_catalogue *catalogue, size_t *count) {
    const struct esk_topic **topics =
        esk_alloc((catalogue->by_id.count + 1) * sizeof(struct esk_topic *));
    size_t position = 0;
    uint64_t id;
    void *topic;
    *count = 0;
    while (esk_u64_map_next(&catalogue->by_id, &position, &id, &topic)) {
        topics[(*count)++] = topic;
    }
    qsort(topics, *count, sizeof(topics[0]), compare_ids);
    return topics;
}

void esk_topic_cursor_retain(struct esk_topic_cursor *cursor) {
    atomic_fetch_add(&cursor->references, 1);
}

void esk_topic_cursor_release(struct esk_topic_cursor *cursor) {
    if (atomic_fetch_sub(&cursor->references, 1) == 1) {
        free(cursor);
    }
}

static void topic_destroy(struct esk_topic *topic) {
    esk_topic_cursor_release(topic->cursor);
    free(topic);
}

void esk_catalogue_fini(struct esk_catalogue *catalogue) {
    size_t position = 0;
    uint64_t id;
    void *topic;
    while (esk_u64_map_next(&catalogue->by_id, &position, &id, &topic)) {
        topic_destroy(topic);
    }
    esk_map_fini(&catalogue->by_name);
    esk_u64_map_fini(&catalogue->by_id);
    esk_owners_fini(&catalogue->owners);
    esk_producers_fini(&catalogue->producers);
    esk_keys_fini(&catalogue->keys);
    esk_schemas_fini(&catalogue->schemas);
}

static struct esk_slice topic_name(const struct esk_topic *topic) {
    return esk_slice(topic->name, topic->name_size);
}

static enum esk_err misfit(struct esk_error *error, const char *what, uint64_t id) {
    return esk_fail(error, ESK_ERR_CORRUPT,
                    "the catalogue's entry does not fit: %s (topic id %llu)", what,
                    (unsigned long long)id);
}

static enum esk_err apply_created(struct esk_catalogue *catalogue,
                                  const struct esk_catalogue_topic_created *created,
                                  struct esk_topic_cursor *cursor, struct esk_error *error) {
    if (esk_map_get(&catalogue->by_name, created->name) != NULL ||
        esk_catalogue_topic(catalogue, created->first_group) != NULL) {
        return misfit(error, "the topic exists", created->first_group);
    }
    if (created->partition_count == 0) {
        return misfit(error, "no partitions", created->first_group);
    }
    struct esk_topic *topic = esk_alloc_zeroed(1, sizeof(*topic) + created->name.size + 1);
    topic->first_group = created->first_group;
    topic->partition_count = created->partition_count;
    topic->config = (struct esk_topic_config){
        .retention_ms = created->retention_ms,
        .retention_bytes = created->retention_bytes,
        .cleanup_policy = created->cleanup_policy,
        .segment_bytes = created->segment_bytes,
        .tombstone_retention_ms = created->tombstone_retention_ms,
        .partitioner = (enum esk_partitioner)created->partitioner,
    };
    if (cursor == NULL) {
        cursor = esk_alloc_zeroed(1, sizeof(*cursor));
    }
    esk_topic_cursor_retain(cursor);
    topic->cursor = cursor;
    topic->name_size = created->name.size;
    memcpy(topic->name, created->name.data, created->name.size);
    esk_map_put(&catalogue->by_name, topic_name(topic), topic);
    esk_u64_map_put(&catalogue->by_id, topic->first_group, topic);
    uint64_t end = topic->first_group + topic->partition_count;
    catalogue->next_group = end > catalogue->next_group ? end : catalogue->next_group;
    return ESK_OK;
}

static enum esk_err apply_configured(struct esk_catalogue *catalogue,
                                     const struct esk_catalogue_topic_configured *configured,
                                     struct esk_error *error) {
    struct esk_topic *topic = esk_catalogue_topic(catalogue, configured->first_group);
    if (topic == NULL) {
        return misfit(error, "no such topic to configure", configured->first_group);
    }
    topic->config.retention_ms = configured->retention_ms;
    topic->config.retention_bytes = configured->retention_bytes;
    topic->config.cleanup_policy = configured->cleanup_policy;
    topic->config.segment_bytes = configured->segment_bytes;
    topic->config.tombstone_retention_ms = configured->tombstone_retention_ms;
    return ESK_OK;
}

static enum esk_err apply_deleted(struct esk_catalogue *catalogue, uint64_t id,
                                  struct esk_error *error) {
    struct esk_topic *topic = esk_catalogue_topic(catalogue, id);
    if (topic == NULL || topic->deleted) {
        return misfit(error, "no such topic to delete", id);
    }
    topic->deleted = true;
    esk_map_remove(&catalogue->by_name, topic_name(topic));
    return ESK_OK;
}

static enum esk_err apply_gone(struct esk_catalogue *catalogue, uint64_t id,
                               struct esk_error *error) {
    struct esk_topic *topic = esk_catalogue_topic(catalogue, id);
    if (topic == NULL || !topic->deleted) {
        return misfit(error, "no such deleted topic", id);
    }
    esk_u64_map_remove(&catalogue->by_id, id);
    topic_destroy(topic);
    return ESK_OK;
}

static enum esk_err apply_change(struct esk_catalogue *catalogue,
                                 const struct esk_catalogue_change *change,
                                 struct esk_topic_cursor *cursor, struct esk_error *error) {
    switch (change->kind) {
    case ESK_CATALOGUE_TOPIC_CREATED:
        return apply_created(catalogue, &change->topic_created, cursor, error);
    case ESK_CATALOGUE_TOPIC_CONFIGURED:
        return apply_configured(catalogue, &change->topic_configured, error);
    case ESK_CATALOGUE_TOPIC_DELETED:
        return apply_deleted(catalogue, change->topic_deleted.first_group, error);
    case ESK_CATALOGUE_TOPIC_GONE:
        return apply_gone(catalogue, change->topic_gone.first_group, error);
    case ESK_CATALOGUE_NEXT_GROUP:
        catalogue->next_group = change->next_group.next_group;
        return ESK_OK;
    case ESK_CATALOGUE_GROUP_OWNED:
        return esk_owners_apply_owned(&catalogue->owners, &change->group_owned, error);
    case ESK_CATALOGUE_GROUP_RELEASED:
        return esk_owners_apply_released(&catalogue->owners, change->group_released.group, error);
    case ESK_CATALOGUE_PRODUCER_BLOCK:
    case ESK_CATALOGUE_PRODUCER_IDS:
    case ESK_CATALOGUE_PRODUCER_CREATED:
    case ESK_CATALOGUE_PRODUCER_OWNED:
    case ESK_CATALOGUE_PRODUCERS_USED:
    case ESK_CATALOGUE_PRODUCERS_FORGOTTEN:
        return esk_producers_apply(&catalogue->producers, change, error);
    case ESK_CATALOGUE_KEY_CREATED:
        return esk_keys_apply_created(&catalogue->keys, &change->key_created, error);
    case ESK_CATALOGUE_KEY_REVOKED:
        return esk_keys_apply_revoked(&catalogue->keys, change->key_revoked.key_id, error);
    case ESK_CATALOGUE_SCHEMA_REGISTERED:
        return esk_schemas_apply(&catalogue->schemas, &change->schema_registered, error);
    }
    return ESK_OK;
}

enum esk_err esk_catalogue_apply(struct esk_catalogue *catalogue, struct esk_slice payload,
                                 struct esk_topic_cursor *cursor, struct esk_error *error) {
    struct esk_catalogue_change change;
    enum esk_err err = esk_catalogue_decode(payload, &change, error);
    return err == ESK_OK ? apply_change(catalogue, &change, cursor, error) : err;
}

/* --- group 0's machine --- */

static enum esk_err check_config(const struct esk_topic_config *config, uint64_t id,
                                 struct esk_error *error) {
    const struct esk_topic_config_change all = {*config, true, true, true, true, true, true};
    struct esk_topic_config ignored;
    struct esk_error reason;
    esk_topic_config_init(&ignored);
    if (esk_topic_config_apply(&ignored, &all, true, &reason) != ESK_OK) {
        return misfit(error, reason.text, id);
    }
    return config->partitioner <= ESK_PARTITIONER_MURMUR2
               ? ESK_OK
               : misfit(error, "an unknown partitioner", id);
}

static enum esk_err check_created(const struct esk_catalogue *catalogue,
                                  const struct esk_catalogue_topic_created *created,
                                  struct esk_error *error) {
    uint64_t id = created->first_group;
    if (esk_topic_name_check(created->name, NULL) != ESK_OK) {
        return misfit(error, "not a topic's name", id);
    }
    if (created->partition_count > ESK_TOPIC_PARTITIONS_MAX) {
        return misfit(error, "too many partitions", id);
    }
    if (id < catalogue->next_group || id > UINT64_MAX - created->partition_count) {
        return misfit(error, "its group ids are taken", id);
    }
    const struct esk_topic_config config = {
        created->retention_ms,  created->retention_bytes,        created->cleanup_policy,
        created->segment_bytes, created->tombstone_retention_ms, created->partitioner};
    return check_config(&config, id, error);
}

static enum esk_err check_configured(const struct esk_catalogue_topic_configured *configured,
                                     struct esk_error *error) {
    const struct esk_topic_config config = {
        configured->retention_ms,  configured->retention_bytes,        configured->cleanup_policy,
        configured->segment_bytes, configured->tombstone_retention_ms, ESK_PARTITIONER_FNV1A};
    return check_config(&config, configured->first_group, error);
}

/* What comes from the journal or a snapshot is checked whole: a copy is fed with what passed here.
 */
static enum esk_err machine_apply(struct esk_machine *machine, const struct esk_entry *entry,
                                  struct esk_error *error) {
    struct esk_catalogue *catalogue = ESK_CONTAINER(machine, struct esk_catalogue, machine);
    struct esk_catalogue_change change;
    enum esk_err err = esk_catalogue_decode(entry->payload, &change, error);
    if (err == ESK_OK && change.kind == ESK_CATALOGUE_TOPIC_CREATED) {
        err = check_created(catalogue, &change.topic_created, error);
    } else if (err == ESK_OK && change.kind == ESK_CATALOGUE_TOPIC_CONFIGURED) {
        err = check_configured(&change.topic_configured, error);
    } else if (err == ESK_OK && change.kind == ESK_CATALOGUE_NEXT_GROUP &&
               change.next_group.next_group < catalogue->next_group) {
        err = misfit(error, "group ids would be used again", change.next_group.next_group);
    }
    return err == ESK_OK ? apply_change(catalogue, &change, NULL, error) : err;
}

static void machine_snapshot(struct esk_machine *machine,
                             void (*emit)(void *context, struct esk_slice payload), void *context) {
    struct esk_catalogue *catalogue = ESK_CONTAINER(machine, struct esk_catalogue, machine);
    struct esk_buffer payload;
    size_t count;
    const struct esk_topic **topics = all_by_id(catalogue, &count);
    esk_buffer_init(&payload);
    for (size_t i = 0; i < count; i++) {
        struct esk_catalogue_change change = esk_catalogue_creation(topics[i]);
        esk_catalogue_encode(&payload, &change);
        emit(context, esk_buffer_slice(&payload));
        payload.size = 0;
        if (topics[i]->deleted) {
            change.kind = ESK_CATALOGUE_TOPIC_DELETED;
            change.topic_deleted.first_group = topics[i]->first_group;
            esk_catalogue_encode(&payload, &change);
            emit(context, esk_buffer_slice(&payload));
            payload.size = 0;
        }
    }
    const struct esk_catalogue_change next = {.kind = ESK_CATALOGUE_NEXT_GROUP,
                                              .next_group = {catalogue->next_group}};
    esk_catalogue_encode(&payload, &next);
    emit(context, esk_buffer_slice(&payload));
    esk_buffer_fini(&payload);
    free(topics);
    esk_owners_snapshot(&catalogue->owners, emit, context);
    esk_producers_snapshot(&catalogue->producers, emit, context);
    esk_keys_snapshot(&catalogue->keys, emit, context);
    esk_schemas_snapshot(&catalogue->schemas, emit, context);
}

static const struct esk_machine_ops machine_ops = {machine_apply, machine_snapshot};

void esk_catalogue_init(struct esk_catalogue *catalogue, uint64_t first_topic_group) {
    *catalogue = (struct esk_catalogue){
        .machine = {.ops = &machine_ops, .entry_kind = ESK_ENTRY_CATALOGUE},
        .next_group = first_topic_group,
    };
    esk_map_init(&catalogue->by_name);
    esk_u64_map_init(&catalogue->by_id);
    esk_owners_init(&catalogue->owners);
    esk_producers_init(&catalogue->producers);
    esk_keys_init(&catalogue->keys);
    esk_schemas_init(&catalogue->schemas);
}

/* --- look-ups --- */

struct esk_topic *esk_catalogue_find(const struct esk_catalogue *catalogue, struct esk_slice name) {
    return esk_map_get(&catalogue->by_name, name);
}

struct esk_topic *esk_catalogue_topic(const struct esk_catalogue *catalogue, uint64_t id) {
    return esk_u64_map_get(&catalogue->by_id, id);
}

static int compare_names(const void *a, const void *b) {
    const struct esk_topic *const *left = a;
    const struct esk_topic *const *right = b;
    return strcmp((*left)->name, (*right)->name);
}

const struct esk_topic **esk_catalogue_sorted(const struct esk_catalogue *catalogue,
                                              size_t *count) {
    size_t all;
    const struct esk_topic **topics = all_by_id(catalogue, &all);
    size_t kept = 0;
    for (size_t i = 0; i < all; i++) {
        if (topics[i]->serving && !topics[i]->deleted) {
            topics[kept++] = topics[i];
        }
    }
    qsort(topics, kept, sizeof(topics[0]), compare_names);
    *count = kept;
    return topics;
}

struct esk_catalogue_change esk_catalogue_creation(const struct esk_topic *topic) {
    return (struct esk_catalogue_change){
        .kind = ESK_CATALOGUE_TOPIC_CREATED,
        .topic_created =
            {
                .first_group = topic->first_group,
                .partition_count = topic->partition_count,
                .name = topic_name(topic),
                .retention_ms = topic->config.retention_ms,
                .retention_bytes = topic->config.retention_bytes,
                .cleanup_policy = topic->config.cleanup_policy,
                .segment_bytes = topic->config.segment_bytes,
                .tombstone_retention_ms = topic->config.tombstone_retention_ms,
                .partitioner = (uint8_t)topic->config.partitioner,
            },
    };
}

struct esk_catalogue_change esk_catalogue_configuration(uint64_t first_group,
                                                        const struct esk_topic_config *config) {
    return (struct esk_catalogue_change){
        .kind = ESK_CATALOGUE_TOPIC_CONFIGURED,
        .topic_configured =
            {
                .first_group = first_group,
                .retention_ms = config->retention_ms,
                .retention_bytes = config->retention_bytes,
                .cleanup_policy = config->cleanup_policy,
                .segment_bytes = config->segment_bytes,
                .tombstone_retention_ms = config->tombstone_retention_ms,
            },
    };
}

struct esk_block *esk_catalogue_payload(const struct esk_catalogue_change *change) {
    struct esk_buffer payload;
    esk_buffer_init(&payload);
    esk_catalogue_encode(&payload, change);
    struct esk_block *block = esk_block_copy(esk_buffer_slice(&payload));
    esk_buffer_fini(&payload);
    return block;
}
