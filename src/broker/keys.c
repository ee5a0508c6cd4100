/* SPDX-License-Identifier: Apache-2.0 */
/* Creating, revoking and listing keys. A secret is made in the client's shard; its hash is all that
 * leaves it. */
#include "broker/keys_private.h"

#include <stdlib.h>

static enum esk_err unknown_key(uint64_t id, struct esk_error *error) {
    char text[ESK_KEY_ID_BYTES];
    esk_key_id_format(id, text);
    return esk_fail(error, ESK_ERR_NOT_FOUND, "key '%s' does not exist", text);
}

/* --- create --- */

static enum esk_err create_decide(struct esk_change *change, const struct esk_catalogue *catalogue,
                                  struct esk_catalogue_change *entry, struct esk_error *error) {
    struct esk_key_creation *creation = ESK_CONTAINER(change, struct esk_key_creation, change);
    const struct esk_keys *keys = &catalogue->keys;
    struct esk_key_description description = {
        .id = creation->key_id,
        .owner = creation->key_id,
        .replaces = creation->replaces,
        .created_ms = creation->created_ms,
        .produce_bytes_per_sec = creation->produce_bytes_per_sec,
        .consume_bytes_per_sec = creation->consume_bytes_per_sec,
        .name = creation->name,
        .grants = creation->grants,
        .grant_count = creation->grant_count,
    };
    memcpy(description.hash, creation->hash, sizeof(description.hash));
    if (creation->replaces != 0) {
        const struct esk_key *replaced = esk_keys_find(keys, creation->replaces);
        if (replaced == NULL) {
            return unknown_key(creation->replaces, error);
        }
        description.owner = replaced->about.owner;
    }
    if (keys->by_id.count >= ESK_KEYS_MAX) {
        return esk_fail(error, ESK_ERR_CONFLICT, "there are %d keys: revoke some", ESK_KEYS_MAX);
    }
    if (esk_keys_find(keys, description.id) != NULL ||
        esk_keys_hash_taken(keys, description.hash)) { /* once in the life of a universe */
        return esk_fail(error, ESK_ERR_UNAVAILABLE, "two keys would be the same; try again");
    }
    *entry = esk_keys_creation(&description, &creation->grant_bytes);
    entry->key_created.hash =
        esk_slice(creation->hash, sizeof(creation->hash)); /* this one stays */
    return ESK_OK;
}

static void create_done(struct esk_change *change, enum esk_err err) {
    struct esk_key_creation *creation = ESK_CONTAINER(change, struct esk_key_creation, change);
    esk_buffer_fini(&creation->grant_bytes);
    creation->error = change->error;
    if (err != ESK_OK) {
        esk_secret_wipe(creation->secret, sizeof(creation->secret));
    }
    creation->done(creation, err);
}

void eski_key_creation_prepare(struct esk_broker_shard *shard, struct esk_key_creation *creation) {
    struct esk_platform *platform = shard->broker->options.platform;
    uint8_t bits[ESK_SECRET_RANDOM_BYTES];
    esk_random_bytes(platform, bits, sizeof(bits));
    esk_secret_format(bits, creation->secret);
    esk_secret_wipe(bits, sizeof(bits));
    esk_secret_hash(esk_slice_text(creation->secret), creation->hash);
    do {
        esk_random_bytes(platform, &creation->key_id, sizeof(creation->key_id));
    } while (creation->key_id == 0);
    creation->created_ms = esk_wall_ms(platform);
    esk_buffer_init(&creation->grant_bytes);
    creation->change = (struct esk_change){.decide = create_decide, .done = create_done};
}

/* In place of the catalogue's checks: the entry is refused as the fields are. */
static enum esk_err refuse_decide(struct esk_change *change, const struct esk_catalogue *catalogue,
                                  struct esk_catalogue_change *entry, struct esk_error *error) {
    const struct esk_key_creation *creation =
        ESK_CONTAINER(change, struct esk_key_creation, change);
    (void)catalogue;
    (void)entry;
    return esk_key_creation_check(creation, error);
}

void esk_broker_key_create(struct esk_broker_shard *shard, struct esk_key_creation *creation) {
    eski_key_creation_prepare(shard, creation);
    if (esk_key_creation_check(creation, NULL) != ESK_OK) {
        creation->change.decide = refuse_decide;
    }
    esk_change_submit(shard, &creation->change);
}

/* --- revoke --- */

static enum esk_err revoke_decide(struct esk_change *change, const struct esk_catalogue *catalogue,
                                  struct esk_catalogue_change *entry, struct esk_error *error) {
    uint64_t id = ESK_CONTAINER(change, struct esk_key_revocation, change)->key_id;
    const struct esk_key *key = esk_keys_find(&catalogue->keys, id);
    if (key == NULL) {
        return unknown_key(id, error);
    }
    if (key->admin && catalogue->keys.admins == 1) {
        return esk_fail(error, ESK_ERR_CONFLICT,
                        "it is the last admin key: create another one first");
    }
    *entry = (struct esk_catalogue_change){.kind = ESK_CATALOGUE_KEY_REVOKED, .key_revoked = {id}};
    return ESK_OK;
}

static void revoke_done(struct esk_change *change, enum esk_err err) {
    struct esk_key_revocation *revocation =
        ESK_CONTAINER(change, struct esk_key_revocation, change);
    revocation->error = change->error;
    revocation->done(revocation, err);
}

void esk_broker_key_revoke(struct esk_broker_shard *shard, struct esk_key_revocation *revocation) {
    revocation->change =
        (struct esk_change){.decide = revoke_decide, .done = revoke_done, .frees_room = true};
    esk_change_submit(shard, &revocation->change);
}

/* --- list --- */

static int compare_names(const void *a, const void *b) {
    const struct esk_key *const *left = a;
    const struct esk_key *const *right = b;
    int order = esk_slice_compare((*left)->about.name, (*right)->about.name);
    if (order != 0) {
        return order;
    }
    return (*left)->about.id < (*right)->about.id ? -1 : 1; /* ids differ */
}

void esk_broker_key_list(struct esk_broker_shard *shard, struct esk_key_list *list) {
    const struct esk_u64_map *keys = &shard->catalogue.keys.by_id;
    size_t position = 0;
    void *key;
    list->keys = esk_alloc((keys->count + 1) * sizeof(*list->keys));
    list->count = 0;
    while (esk_u64_map_next(keys, &position, NULL, &key)) {
        list->keys[list->count++] = esk_key_hold(key);
    }
    qsort(list->keys, list->count, sizeof(*list->keys), compare_names);
}

void esk_key_list_fini(struct esk_key_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        esk_key_release(list->keys[i]);
    }
    free(list->keys);
    *list = (struct esk_key_list){0};
}
