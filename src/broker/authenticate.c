/* SPDX-License-Identifier: Apache-2.0 */
/* From a token to a caller. Tokens seen lately are remembered with their key, so that requests of a
 * busy client cost no cryptography: a cache of each shard, whose tokens are compared in constant
 * time. */
#include "broker/caller.h"

#include "broker/broker_private.h"

#include <stdlib.h>

#define TOKENS 128     /* 2^7 places; keys that fall on the same one drive each other out */
#define TOKEN_BYTES 56 /* our secrets have 47; longer tokens are looked up each time */

struct place {
    struct esk_key *key; /* a use of it; NULL: empty */
    uint32_t size;
    uint8_t token[TOKEN_BYTES];
};

struct eski_token_cache {
    struct place places[TOKENS];
};

/* By the token's last bits: those of a secret are random, and what is no secret is never kept. */
static struct place *place_of(struct eski_token_cache *cache, struct esk_slice token) {
    uint64_t last = esk_load_u64(token.data + token.size - 8);
    return &cache->places[last * UINT64_C(0x9e3779b97f4a7c15) >> 57];
}

static void place_clear(struct place *place) {
    esk_key_release(place->key);
    place->key = NULL;
    esk_secret_wipe(place->token, sizeof(place->token));
}

void eski_token_cache_destroy(struct eski_token_cache *cache) {
    for (unsigned i = 0; cache != NULL && i < TOKENS; i++) {
        place_clear(&cache->places[i]);
    }
    free(cache);
}

static struct esk_key *find_key(struct esk_broker_shard *shard, struct esk_slice token) {
    struct place *place = NULL;
    if (token.size >= 8 && token.size <= TOKEN_BYTES) {
        if (shard->token_cache == NULL) {
            shard->token_cache = esk_alloc_zeroed(1, sizeof(*shard->token_cache));
        }
        place = place_of(shard->token_cache, token);
        if (place->key != NULL && place->size == token.size &&
            esk_secret_equal(place->token, token.data, token.size)) {
            if (!place->key->revoked) {
                return place->key;
            }
            place_clear(place);
            return NULL;
        }
    }
    uint8_t hash[ESK_SECRET_HASH_BYTES];
    esk_secret_hash(token, hash);
    struct esk_key *key = esk_keys_find_hash(&shard->catalogue.keys, hash);
    if (key != NULL && place != NULL) {
        place_clear(place);
        place->key = esk_key_hold(key);
        place->size = (uint32_t)token.size;
        memcpy(place->token, token.data, token.size);
    }
    return key;
}

bool esk_broker_auth_required(const struct esk_broker_shard *shard) {
    return shard->broker->options.auth_required;
}

enum esk_err esk_broker_authenticate(struct esk_broker_shard *shard, struct esk_slice token,
                                     struct esk_caller *caller, struct esk_error *error) {
    *caller = (struct esk_caller){0};
    if (!shard->broker->options.auth_required) {
        caller->admin = true;
        return ESK_OK;
    }
    if (token.size == 0) {
        return esk_fail(error, ESK_ERR_UNAUTHENTICATED, "a key is required");
    }
    struct esk_key *key = token.size <= ESK_TOKEN_BYTES_MAX ? find_key(shard, token) : NULL;
    if (key == NULL) {
        return esk_caller_revoked_error(error);
    }
    *caller = (struct esk_caller){
        .key_id = key->about.id,
        .owner = key->about.owner,
        .admin = key->admin,
        .key = esk_key_hold(key),
    };
    return ESK_OK;
}

uint64_t esk_broker_key_generation(const struct esk_broker_shard *shard) {
    return shard->catalogue.keys.generation;
}
