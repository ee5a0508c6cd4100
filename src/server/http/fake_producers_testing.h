/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: there are no idempotent producers. Included by one source of a
 * program. */
#ifndef ESK_SERVER_HTTP_FAKE_PRODUCERS_TESTING_H
#define ESK_SERVER_HTTP_FAKE_PRODUCERS_TESTING_H

#include "broker/producers.h"
#include "server/http/fake_broker_testing.h"

static inline void producers_listed(void *context, enum esk_err err) {
    struct esk_producer_list *list = context;
    list->done(list, err);
}
void esk_broker_producer_list(struct esk_broker_shard *shard, struct esk_producer_list *list) {
    answer_later(shard, list, ESK_OK, producers_listed);
}
void esk_producer_list_fini(struct esk_producer_list *list) {
    assert_int_equal(list->count, 0);
}

static inline void producer_removed(void *context, enum esk_err err) {
    struct esk_producer_removal *removal = context;
    removal->done(removal, err);
}
void esk_broker_producer_remove(struct esk_broker_shard *shard,
                                struct esk_producer_removal *removal) {
    answer_later(shard, removal,
                 esk_fail(&removal->error, ESK_ERR_NOT_FOUND, "producer does not exist"),
                 producer_removed);
}

#endif
