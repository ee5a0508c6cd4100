/* SPDX-License-Identifier: Apache-2.0 */
/* A key as one shard sees it. Its fields are constant but for `revoked`, `uses` and `watches`,
 * which belong to the shard's loop; what all shards count together is in `usage`. */
#ifndef ESK_SECURITY_KEY_H
#define ESK_SECURITY_KEY_H

#include "base/list.h"
#include "security/grants.h"
#include "security/secret.h"

struct esk_usage;

struct esk_key_description {
    uint64_t id;       /* random, never 0 */
    uint64_t owner;    /* id of the first key of those that replaced each other; its own for one */
    uint64_t replaces; /* 0: none */
    int64_t created_ms;
    uint64_t produce_bytes_per_sec; /* 0: no quota */
    uint64_t consume_bytes_per_sec;
    struct esk_slice name;
    const struct esk_grant *grants;
    uint32_t grant_count;
    uint8_t hash[ESK_SECRET_HASH_BYTES];
};

struct esk_key {
    struct esk_key_description about; /* slices and grants point into this allocation */
    bool admin;
    bool revoked;  /* refused from now on; the struct stays while it is in use */
    uint32_t uses; /* the catalogue's one, connections, requests */
    struct esk_link watches;
    struct esk_usage *usage;
};

/* One use. usage: one reference of it is taken. */
struct esk_key *esk_key_create(const struct esk_key_description *description,
                               struct esk_usage *usage);
static inline struct esk_key *esk_key_hold(struct esk_key *key) {
    key->uses++;
    return key;
}
void esk_key_release(struct esk_key *key); /* NULL does nothing */

/* Who waits on behalf of a key hears of its revocation, so as to end the wait. Zeroed before its
 * first use. */
struct esk_key_watch {
    struct esk_link link;
    void (*revoked)(struct esk_key_watch *watch); /* once, the watch has ended */
};
/* Until the end or the revocation; at once if it is revoked already. The key must stay in use. */
void esk_key_watch(struct esk_key *key, struct esk_key_watch *watch);
void esk_key_watch_end(struct esk_key_watch *watch); /* harmless when it is no watch */
/* Marks it, and tells those who watch. */
void esk_key_revoke(struct esk_key *key);

#define ESK_KEY_ID_BYTES 20 /* "k_", 16 hexadecimal digits, NUL */
void esk_key_id_format(uint64_t id, char text[ESK_KEY_ID_BYTES]);
bool esk_key_id_parse(struct esk_slice text, uint64_t *id);

#endif
