/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the catalogue: the part of its state that entries key_created and key_revoked make.
 * One owner per copy, as the catalogue; the copies share the keys' usage (security/usage.h). */
#ifndef ESK_CLUSTER_KEYS_H
#define ESK_CLUSTER_KEYS_H

#include "base/map.h"
#include "base/memory.h"
#include "model/entries.h"
#include "security/key.h"
#include "security/usage.h"

#define ESK_KEYS_MAX 10000 /* at a time; keeps lists, snapshots and scrapes short */

struct esk_keys {
    struct esk_u64_map by_id;
    struct esk_u64_map by_hash; /* of the hash its first 8 bytes: no two keys have the same */
    uint32_t admins;
    uint64_t generation; /* one more with each revocation */
    struct esk_usage_registry *usages;
    bool shares_usages;
};

void esk_keys_init(struct esk_keys *keys);
void esk_keys_fini(struct esk_keys *keys);
/* Before the first entry: the copies' common registry, borrowed. Without it a copy has its own. */
void esk_keys_share(struct esk_keys *keys, struct esk_usage_registry *usages);

/* NULL: no such key, or it was revoked. */
struct esk_key *esk_keys_find(const struct esk_keys *keys, uint64_t id);
struct esk_key *esk_keys_find_hash(const struct esk_keys *keys,
                                   const uint8_t hash[ESK_SECRET_HASH_BYTES]);
/* Whether a key with another hash stands in the way of this one. */
bool esk_keys_hash_taken(const struct esk_keys *keys, const uint8_t hash[ESK_SECRET_HASH_BYTES]);
/* All of them by id; owned, free(). */
const struct esk_key **esk_keys_sorted(const struct esk_keys *keys, size_t *count);

/* The entry that makes this key; borrows from the description, and from `grants`, an empty buffer
 * of the caller's. */
struct esk_catalogue_change esk_keys_creation(const struct esk_key_description *description,
                                              struct esk_buffer *grants);

/* ESK_ERR_CORRUPT: the entry does not fit the state, or is none that the broker makes. */
enum esk_err esk_keys_apply_created(struct esk_keys *keys,
                                    const struct esk_catalogue_key_created *created,
                                    struct esk_error *error);
enum esk_err esk_keys_apply_revoked(struct esk_keys *keys, uint64_t id, struct esk_error *error);
/* Emits the payloads that make the same keys anew, in order of their ids. */
void esk_keys_snapshot(const struct esk_keys *keys,
                       void (*emit)(void *context, struct esk_slice payload), void *context);

#endif
