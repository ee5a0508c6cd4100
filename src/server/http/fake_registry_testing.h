/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: a registry with one schema whose text is long, and one Raft group.
 * Included by one source of a program. */
#ifndef ESK_SERVER_HTTP_FAKE_REGISTRY_TESTING_H
#define ESK_SERVER_HTTP_FAKE_REGISTRY_TESTING_H

#include "broker/raft.h"
#include "broker/schemas.h"
#include "server/http/fake_broker_testing.h"

#define FAKE_SCHEMA_BYTES (1u << 20) /* more than one piece of an answer, all of them escaped */

bool esk_broker_schema_find(const struct esk_broker_shard *shard, uint32_t id,
                            struct esk_schema_view *view) {
    static uint8_t text[FAKE_SCHEMA_BYTES];
    (void)shard;
    memset(text, '"', sizeof text);
    *view = (struct esk_schema_view){.id = id,
                                     .version = 1,
                                     .type = ESK_SCHEMA_JSON,
                                     .subject = esk_slice_text("orders-value"),
                                     .text = esk_slice(text, sizeof text)};
    return id == 1;
}
bool esk_broker_schema_version(const struct esk_broker_shard *shard, struct esk_slice subject,
                               uint32_t version, struct esk_schema_view *view) {
    (void)subject;
    return version < 2 && esk_broker_schema_find(shard, 1, view);
}
uint32_t esk_broker_schema_count(const struct esk_broker_shard *shard) {
    (void)shard;
    return 1;
}
uint32_t esk_broker_schema_version_count(const struct esk_broker_shard *shard,
                                         struct esk_slice subject) {
    (void)shard;
    return esk_slice_equal(subject, esk_slice_text("orders-value"));
}
void esk_broker_subject_each(const struct esk_broker_shard *shard,
                             void (*visit)(void *context, struct esk_slice subject),
                             void *context) {
    (void)shard;
    visit(context, esk_slice_text("orders-value"));
}

static inline void schema_done(void *context, enum esk_err err) {
    struct esk_schema_operation *operation = context;
    operation->done(operation, err);
}
static inline void schema_operation(struct esk_broker_shard *shard,
                                    struct esk_schema_operation *operation) {
    operation->id = 1;
    operation->version = 1;
    answer_later(shard, operation, ESK_OK, schema_done);
}
void esk_broker_schema_register(struct esk_broker_shard *shard,
                                struct esk_schema_operation *operation) {
    schema_operation(shard, operation);
}
void esk_broker_schema_look_up(struct esk_broker_shard *shard,
                               struct esk_schema_operation *operation) {
    schema_operation(shard, operation);
}
void esk_broker_schema_check(struct esk_broker_shard *shard,
                             struct esk_schema_operation *operation) {
    schema_operation(shard, operation);
}

static inline void raft_done(void *context, enum esk_err err) {
    struct esk_raft_listing *listing = context;
    (void)err;
    listing->done(listing);
}
void esk_broker_raft(struct esk_broker_shard *shard, struct esk_raft_listing *listing) {
    listing->groups = esk_alloc_zeroed(1, sizeof *listing->groups);
    listing->groups[0] = (struct esk_raft_group){.is_there = true, .role = ESK_ROLE_LEADER};
    listing->count = 1;
    listing->node = 1;
    answer_later(shard, listing, ESK_OK, raft_done);
}
void esk_raft_listing_fini(struct esk_raft_listing *listing) {
    free(listing->groups);
}

#endif
