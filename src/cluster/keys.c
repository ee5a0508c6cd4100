/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/keys.h"

#include "model/names.h"

#include <stdlib.h>

void esk_keys_init(struct esk_keys *keys) {
    *keys = (struct esk_keys){0};
    esk_u64_map_init(&keys->by_id);
    esk_u64_map_init(&keys->by_hash);
}

void esk_keys_fini(struct esk_keys *keys) {
    size_t position = 0;
    void *key;
    while (esk_u64_map_next(&keys->by_id, &position, NULL, &key)) {
        ((struct esk_key *)key)->revoked = true;
        esk_key_release(key);
    }
    esk_u64_map_fini(&keys->by_id);
    esk_u64_map_fini(&keys->by_hash);
    if (!keys->shares_usages) {
        esk_usage_registry_destroy(keys->usages);
    }
}

void esk_keys_share(struct esk_keys *keys, struct esk_usage_registry *usages) {
    keys->usages = usages;
    keys->shares_usages = true;
}

/* --- look-ups --- */

static uint64_t hash_prefix(const uint8_t hash[ESK_SECRET_HASH_BYTES]) {
    return esk_load_u64(hash);
}

struct esk_key *esk_keys_find(const struct esk_keys *keys, uint64_t id) {
    return esk_u64_map_get(&keys->by_id, id);
}

struct esk_key *esk_keys_find_hash(const struct esk_keys *keys,
                                   const uint8_t hash[ESK_SECRET_HASH_BYTES]) {
    struct esk_key *key = esk_u64_map_get(&keys->by_hash, hash_prefix(hash));
    return key != NULL && esk_secret_equal(key->about.hash, hash, ESK_SECRET_HASH_BYTES) ? key
                                                                                         : NULL;
}

bool esk_keys_hash_taken(const struct esk_keys *keys, const uint8_t hash[ESK_SECRET_HASH_BYTES]) {
    return esk_u64_map_get(&keys->by_hash, hash_prefix(hash)) != NULL;
}

static int compare_ids(const void *a, const void *b) {
    const struct esk_key *const *left = a;
    const struct esk_key *const *right = b;
    return (*left)->about.id < (*right)->about.id ? -1 : 1; /* ids differ */
}

const struct esk_key **esk_keys_sorted(const struct esk_keys *keys, size_t *count) {
    const struct esk_key **sorted = esk_alloc((keys->by_id.count + 1) * sizeof(*sorted));
    size_t position = 0;
    void *key;
    *count = 0;
    while (esk_u64_map_next(&keys->by_id, &position, NULL, &key)) {
        sorted[(*count)++] = key;
    }
    qsort(sorted, *count, sizeof(*sorted), compare_ids);
    return sorted;
}

/* --- entries --- */

struct esk_catalogue_change esk_keys_creation(const struct esk_key_description *description,
                                              struct esk_buffer *grants) {
    for (uint32_t i = 0; i < description->grant_count; i++) {
        const struct esk_grant *grant = &description->grants[i];
        esk_buffer_u8(grants, (uint8_t)grant->action);
        esk_buffer_u16(grants, (uint16_t)grant->prefix.size);
        esk_buffer_append(grants, grant->prefix.data, grant->prefix.size);
    }
    return (struct esk_catalogue_change){
        .kind = ESK_CATALOGUE_KEY_CREATED,
        .key_created =
            {
                .key_id = description->id,
                .owner = description->owner,
                .replaces = description->replaces,
                .created_ms = description->created_ms,
                .produce_bytes_per_sec = description->produce_bytes_per_sec,
                .consume_bytes_per_sec = description->consume_bytes_per_sec,
                .name = description->name,
                .hash = esk_slice(description->hash, ESK_SECRET_HASH_BYTES),
                .grants = esk_buffer_slice(grants),
            },
    };
}

static enum esk_err misfit(struct esk_error *error, const char *what, uint64_t id) {
    return esk_fail(error, ESK_ERR_CORRUPT,
                    "the catalogue's entry does not fit: %s (key id k_%016llx)", what,
                    (unsigned long long)id);
}

/* Their number, or 0: not as they should be. */
static uint32_t read_grants(struct esk_slice bytes, struct esk_grant grants[ESK_KEY_GRANTS_MAX]) {
    struct esk_reader reader = esk_reader(bytes);
    uint32_t count = 0;
    while (esk_reader_left(&reader) > 0 && count < ESK_KEY_GRANTS_MAX) {
        uint8_t action = esk_read_u8(&reader);
        struct esk_grant *grant = &grants[count++];
        grant->prefix = esk_read_bytes(&reader, esk_read_u16(&reader));
        grant->action = (enum esk_action)action;
        if (reader.failed || action > ESK_ACTION_ADMIN || esk_grant_check(grant, NULL) != ESK_OK) {
            return 0;
        }
    }
    return esk_reader_left(&reader) > 0 ? 0 : count;
}

enum esk_err esk_keys_apply_created(struct esk_keys *keys,
                                    const struct esk_catalogue_key_created *created,
                                    struct esk_error *error) {
    uint64_t id = created->key_id;
    if (id == 0 || created->owner == 0 || esk_keys_find(keys, id) != NULL) {
        return misfit(error, "the id is taken or none", id);
    }
    if (created->hash.size != ESK_SECRET_HASH_BYTES ||
        esk_keys_hash_taken(keys, created->hash.data)) {
        return misfit(error, "the hash is taken or none", id);
    }
    if (esk_id_check(created->name, "name", NULL) != ESK_OK) {
        return misfit(error, "not a key's name", id);
    }
    struct esk_grant grants[ESK_KEY_GRANTS_MAX];
    uint32_t grant_count = read_grants(created->grants, grants);
    if (grant_count == 0) {
        return misfit(error, "no valid grants", id);
    }
    struct esk_key_description description = {
        .id = id,
        .owner = created->owner,
        .replaces = created->replaces,
        .created_ms = created->created_ms,
        .produce_bytes_per_sec = created->produce_bytes_per_sec,
        .consume_bytes_per_sec = created->consume_bytes_per_sec,
        .name = created->name,
        .grants = grants,
        .grant_count = grant_count,
    };
    memcpy(description.hash, created->hash.data, ESK_SECRET_HASH_BYTES);
    if (keys->usages == NULL) {
        keys->usages = esk_usage_registry_create();
    }
    struct esk_key *key = esk_key_create(
        &description, esk_usage_find(keys->usages, id, created->produce_bytes_per_sec,
                                     created->consume_bytes_per_sec));
    esk_u64_map_put(&keys->by_id, id, key);
    esk_u64_map_put(&keys->by_hash, hash_prefix(key->about.hash), key);
    keys->admins += key->admin;
    return ESK_OK;
}

enum esk_err esk_keys_apply_revoked(struct esk_keys *keys, uint64_t id, struct esk_error *error) {
    struct esk_key *key = esk_u64_map_remove(&keys->by_id, id);
    if (key == NULL) {
        return misfit(error, "no such key to revoke", id);
    }
    esk_u64_map_remove(&keys->by_hash, hash_prefix(key->about.hash));
    keys->admins -= key->admin;
    keys->generation++;
    esk_key_revoke(key);
    esk_key_release(key);
    return ESK_OK;
}

void esk_keys_snapshot(const struct esk_keys *keys,
                       void (*emit)(void *context, struct esk_slice payload), void *context) {
    size_t count;
    const struct esk_key **sorted = esk_keys_sorted(keys, &count);
    struct esk_buffer grants;
    struct esk_buffer payload;
    esk_buffer_init(&grants);
    esk_buffer_init(&payload);
    for (size_t i = 0; i < count; i++) {
        grants.size = 0;
        payload.size = 0;
        const struct esk_catalogue_change change = esk_keys_creation(&sorted[i]->about, &grants);
        esk_catalogue_encode(&payload, &change);
        emit(context, esk_buffer_slice(&payload));
    }
    esk_buffer_fini(&grants);
    esk_buffer_fini(&payload);
    free(sorted);
}
