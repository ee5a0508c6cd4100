/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks. A door makes a caller of the token that came with a connection or a request, keeps it
 * for as long as it answers to it, and asks it what it may do. One shard's loop, but for
 * esk_caller_may, which any thread may ask while the loop keeps the caller.
 *
 * A revocation shows in every caller of the key at once: a door asks esk_caller_is_revoked before
 * each frame or request, and again before it hands out what it read. What waits for long watches
 * its key besides (esk_key_watch), in order to end then. */
#ifndef ESK_BROKER_CALLER_H
#define ESK_BROKER_CALLER_H

#include "base/error.h"
#include "security/key.h"

struct esk_broker_shard;

/* All zero: may do nothing. With auth off: {.admin = true}, which may do everything. */
struct esk_caller {
    uint64_t key_id; /* 0: none, auth is off */
    uint64_t owner;  /* whose groups and producer ids it may use; 0: the anonymous owner */
    bool admin;      /* may do everything */
    struct esk_key *key;
};

bool esk_broker_auth_required(const struct esk_broker_shard *shard);
/* The caller with this token, which is not read when auth is off; to be released. ESK_ERR_
 * UNAUTHENTICATED: no such key, or none (size 0). Well under 1 us for a token seen lately. */
enum esk_err esk_broker_authenticate(struct esk_broker_shard *shard, struct esk_slice token,
                                     struct esk_caller *caller, struct esk_error *error);
/* One more of the same, to be released, too. */
struct esk_caller esk_caller_hold(const struct esk_caller *caller);
void esk_caller_release(struct esk_caller *caller); /* it may do nothing afterwards */

static inline bool esk_caller_is_revoked(const struct esk_caller *caller) {
    return caller->key != NULL && caller->key->revoked;
}
/* ESK_ERR_UNAUTHENTICATED, with its text. */
enum esk_err esk_caller_revoked_error(struct esk_error *error);

/* Changes whenever a key is revoked in this shard's copy. */
uint64_t esk_broker_key_generation(const struct esk_broker_shard *shard);

/* Whether its grants allow the action on the topic, which need not exist; or on a schema's subject.
 */
static inline bool esk_caller_may(const struct esk_caller *caller, enum esk_action action,
                                  struct esk_slice topic) {
    return caller->admin ||
           (caller->key != NULL && esk_grants_allow(caller->key->about.grants,
                                                    caller->key->about.grant_count, action, topic));
}
/* ESK_ERR_FORBIDDEN with a text that does not tell whether the topic exists. */
enum esk_err esk_caller_check(const struct esk_caller *caller, enum esk_action action,
                              struct esk_slice topic, struct esk_error *error);
/* Whether it may use what belongs to this owner: groups, members. */
static inline bool esk_caller_owns(const struct esk_caller *caller, uint64_t owner) {
    return caller->admin || caller->owner == owner;
}

#endif
