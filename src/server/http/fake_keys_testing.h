/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: keys of the broker in memory. There are none, and nobody is asked
 * for one. Included by one source of a program. */
#ifndef ESK_SERVER_HTTP_FAKE_KEYS_TESTING_H
#define ESK_SERVER_HTTP_FAKE_KEYS_TESTING_H

#include "broker/keys.h"
#include "server/http/fake_broker_testing.h"

bool esk_broker_auth_required(const struct esk_broker_shard *shard) {
    (void)shard;
    return false;
}
enum esk_err esk_broker_authenticate(struct esk_broker_shard *shard, struct esk_slice token,
                                     struct esk_caller *caller, struct esk_error *error) {
    (void)shard;
    (void)token;
    (void)error;
    *caller = (struct esk_caller){.admin = true};
    return ESK_OK;
}

static inline void key_created(void *context, enum esk_err err) {
    struct esk_key_creation *creation = context;
    creation->done(creation, err);
}
void esk_broker_key_create(struct esk_broker_shard *shard, struct esk_key_creation *creation) {
    creation->key_id = 1;
    answer_later(shard, creation, ESK_OK, key_created);
}

static inline void key_revoked(void *context, enum esk_err err) {
    struct esk_key_revocation *revocation = context;
    revocation->done(revocation, err);
}
void esk_broker_key_revoke(struct esk_broker_shard *shard, struct esk_key_revocation *revocation) {
    answer_later(shard, revocation, esk_fail(&revocation->error, ESK_ERR_NOT_FOUND, "no such key"),
                 key_revoked);
}

void esk_broker_key_list(struct esk_broker_shard *shard, struct esk_key_list *list) {
    (void)shard;
    *list = (struct esk_key_list){0};
}
void esk_key_list_fini(struct esk_key_list *list) {
    (void)list;
}

#endif
