/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a group's membership, and what is done with one that was read: written and read
 * again it is the same, topics can be dropped, and the assignment made of it is complete. */
#include "fuzz.h"

#include "base/assert.h"
#include "groups/assign.h"
#include "groups/edit.h"

static void check_same(const struct esk_membership *membership) {
    struct esk_buffer bytes, again;
    struct esk_membership read;
    esk_buffer_init(&bytes);
    esk_buffer_init(&again);
    esk_membership_encode(membership, &bytes);
    ESK_ASSERT(esk_membership_decode(esk_buffer_slice(&bytes), &read, NULL) == ESK_OK);
    esk_membership_encode(&read, &again);
    ESK_ASSERT(esk_slice_equal(esk_buffer_slice(&bytes), esk_buffer_slice(&again)));
    esk_membership_fini(&read);
    esk_buffer_fini(&bytes);
    esk_buffer_fini(&again);
}

/* A topic that somebody reads has no partition left over, and the same again changes nothing. */
static void check_assignment(struct esk_membership *membership) {
    esk_membership_assign(membership);
    for (uint32_t t = 0; t < membership->topic_count; t++) {
        bool is_read = false;
        for (uint32_t m = 0; m < membership->member_count; m++) {
            const struct esk_group_member *member = &membership->members[m];
            for (uint32_t i = 0; i < member->topic_count; i++) {
                is_read |= member->topics[i] == t;
            }
        }
        for (uint32_t p = 0; p < membership->topics[t].partition_count; p++) {
            ESK_ASSERT((membership->topics[t].owners[p] < membership->member_count) == is_read);
        }
    }
    struct esk_membership made;
    struct esk_group_edit nothing = {.err = ESK_ERR_NOT_FOUND};
    if (esk_membership_edit(membership, &nothing, 1, &made)) { /* topics that nobody reads go */
        check_same(&made);
        esk_membership_fini(&made);
    }
    struct esk_membership before = esk_membership_copy(membership);
    esk_membership_assign(membership);
    for (uint32_t t = 0; t < membership->topic_count; t++) {
        ESK_ASSERT(memcmp(membership->topics[t].owners, before.topics[t].owners,
                          membership->topics[t].partition_count * sizeof(uint16_t)) == 0);
    }
    esk_membership_fini(&before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct esk_membership membership;
    if (size > 1u << 16 ||
        esk_membership_decode(esk_slice(data, size), &membership, NULL) != ESK_OK) {
        return 0;
    }
    check_same(&membership);
    check_assignment(&membership);
    check_same(&membership);
    while (membership.topic_count > 0) {
        ESK_ASSERT(esk_membership_drop_topic(&membership, membership.topics[0].id));
    }
    check_same(&membership);
    esk_membership_fini(&membership);
    return 0;
}
