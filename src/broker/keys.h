/* SPDX-License-Identifier: Apache-2.0 */
/* Managing keys. Operations as in broker.h: the struct stays until done ran, in the same loop. */
#ifndef ESK_BROKER_KEYS_H
#define ESK_BROKER_KEYS_H

#include "broker/caller.h"
#include "broker/changes.h"

struct esk_key_creation {
    struct esk_slice name; /* 1 to 200 bytes of UTF-8 without control characters */
    const struct esk_grant *grants;
    uint32_t grant_count;           /* 1 to ESK_KEY_GRANTS_MAX */
    uint64_t produce_bytes_per_sec; /* 0: no quota */
    uint64_t consume_bytes_per_sec;
    uint64_t replaces; /* id of the key whose groups and producer ids it shares; 0: none */
    void (*done)(struct esk_key_creation *creation, enum esk_err err);
    /* out */
    uint64_t key_id;
    int64_t created_ms;
    char secret[ESK_SECRET_BYTES]; /* nowhere else, and never again */
    struct esk_error error;
    /* internal */
    uint8_t hash[ESK_SECRET_HASH_BYTES];
    struct esk_buffer grant_bytes;
    struct esk_change change;
};
/* ESK_ERR_INVALID: a field, which the text names. ESK_ERR_NOT_FOUND: no such key to replace.
 * ESK_ERR_CONFLICT: there are ESK_KEYS_MAX. */
void esk_broker_key_create(struct esk_broker_shard *shard, struct esk_key_creation *creation);
/* What a creation's fields must be. Any thread. */
enum esk_err esk_key_creation_check(const struct esk_key_creation *creation,
                                    struct esk_error *error);

struct esk_key_revocation {
    uint64_t key_id;
    void (*done)(struct esk_key_revocation *revocation, enum esk_err err);
    struct esk_error error; /* out */
    /* internal */
    struct esk_change change;
};
/* Every shard refuses the key when done. ESK_ERR_NOT_FOUND; ESK_ERR_CONFLICT: the last admin key.
 */
void esk_broker_key_revoke(struct esk_broker_shard *shard, struct esk_key_revocation *revocation);

/* All keys of this shard's copy by name, then id, each held: they stay as they are until the list
 * is given back, in the same loop. */
struct esk_key_list {
    struct esk_key **keys;
    size_t count;
};
void esk_broker_key_list(struct esk_broker_shard *shard, struct esk_key_list *list);
void esk_key_list_fini(struct esk_key_list *list);

#endif
