/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: groups in which everybody is the one member and has partition 0 of
 * "orders". Included by one source of a program. */
#ifndef ESK_SERVER_HTTP_FAKE_GROUPS_TESTING_H
#define ESK_SERVER_HTTP_FAKE_GROUPS_TESTING_H

#include "broker/membership.h"
#include "server/http/fake_broker_testing.h"

static inline void member_done(void *context, enum esk_err err) {
    struct esk_member_operation *operation = context;
    operation->done(operation, err);
}

static inline void assign_later(struct esk_broker_shard *shard,
                                struct esk_member_operation *operation) {
    operation->generation = 1;
    strcpy(operation->member, "m_0000000000000001");
    operation->partition_count = 1;
    operation->partitions = esk_alloc(sizeof *operation->partitions);
    operation->partitions[0] = (struct esk_member_partition){"orders", 0};
    operation->names = NULL;
    operation->name_count = 0;
    answer_later(shard, operation, ESK_OK, member_done);
}
void esk_broker_group_join(struct esk_broker_shard *shard, struct esk_member_operation *operation) {
    assign_later(shard, operation);
}
void esk_broker_group_assignment(struct esk_broker_shard *shard,
                                 struct esk_member_operation *operation) {
    assign_later(shard, operation);
}
void esk_broker_group_leave(struct esk_broker_shard *shard,
                            struct esk_member_operation *operation) {
    answer_later(shard, operation, ESK_OK, member_done);
}
void esk_broker_group_heartbeat(struct esk_broker_shard *shard,
                                struct esk_member_operation *operation) {
    operation->generation = 1;
    operation->status =
        operation->known_generation == 1 ? ESK_MEMBER_OK : ESK_MEMBER_REBALANCE_REQUIRED;
    answer_later(shard, operation, ESK_OK, member_done);
}
void esk_broker_group_delete(struct esk_broker_shard *shard,
                             struct esk_member_operation *operation) {
    answer_later(shard, operation, ESK_OK, member_done);
}
void esk_member_operation_fini(struct esk_member_operation *operation) {
    free(operation->partitions);
    operation->partitions = NULL;
    operation->partition_count = 0;
}

static inline void listing_done(void *context, enum esk_err err) {
    struct esk_group_listing *listing = context;
    listing->done(listing, err);
}
void esk_broker_group_list(struct esk_broker_shard *shard, struct esk_group_listing *listing) {
    listing->groups = NULL;
    listing->count = 0;
    answer_later(shard, listing, ESK_OK, listing_done);
}
void esk_group_listing_fini(struct esk_group_listing *listing) {
    (void)listing;
}

static inline void reset_done(void *context, enum esk_err err) {
    struct esk_offset_reset *reset = context;
    reset->done(reset, err);
}
void esk_broker_offset_reset(struct esk_broker_shard *shard, struct esk_offset_reset *reset) {
    reset->groups = 0;
    answer_later(shard, reset, ESK_OK, reset_done);
}

#endif
