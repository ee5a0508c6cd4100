/* SPDX-License-Identifier: Apache-2.0 */
/* Committed offsets as a state machine, and where groups live. */
#include "groups/offsets.h"

#include "groups/edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static enum esk_err apply(struct esk_offsets *offsets, struct esk_block *payload) {
    const struct esk_entry entry = {.kind = ESK_ENTRY_OFFSETS,
                                    .payload = esk_slice(payload->data, payload->size)};
    struct esk_error error;
    enum esk_err err = offsets->machine.ops->apply(&offsets->machine, &entry, &error);
    esk_block_release(payload);
    return err;
}

static void commit(struct esk_offsets *offsets, const char *group, uint64_t topic,
                   uint32_t partition, uint64_t offset) {
    const struct esk_committed committed = {topic, partition, offset};
    assert_int_equal(apply(offsets, esk_offsets_commit_payload(esk_slice_text(group), &committed)),
                     ESK_OK);
}

static void expect(const struct esk_offsets *offsets, const char *group,
                   const struct esk_committed *wanted, size_t count) {
    const struct esk_committed *commits = NULL;
    assert_int_equal(esk_offsets_find(offsets, esk_slice_text(group), &commits), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(commits[i].topic, wanted[i].topic);
        assert_int_equal(commits[i].partition, wanted[i].partition);
        assert_int_equal(commits[i].offset, wanted[i].offset);
    }
}

static int setup(void **state) {
    struct esk_offsets *offsets = esk_alloc_zeroed(1, sizeof(*offsets));
    esk_offsets_init(offsets);
    *state = offsets;
    return 0;
}

static int teardown(void **state) {
    esk_offsets_fini(*state);
    free(*state);
    return 0;
}

static void the_last_commit_counts_also_a_lower_one(void **state) {
    struct esk_offsets *offsets = *state;
    commit(offsets, "g", 20, 1, 7);
    commit(offsets, "g", 17, 3, 1);
    commit(offsets, "g", 20, 0, 9);
    commit(offsets, "g", 20, 1, 4);
    commit(offsets, "other", 20, 1, 100);
    expect(offsets, "g", (struct esk_committed[]){{17, 3, 1}, {20, 0, 9}, {20, 1, 4}}, 3);
    expect(offsets, "other", (struct esk_committed[]){{20, 1, 100}}, 1);
    expect(offsets, "none", NULL, 0);
}

static void a_dropped_topic_takes_its_commits_and_empty_groups_along(void **state) {
    struct esk_offsets *offsets = *state;
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "g%d", i);
        commit(offsets, name, 20, (uint32_t)i, 1);
        if (i % 2 == 0) {
            commit(offsets, name, 21, 0, 5);
        }
    }
    assert_int_equal(apply(offsets, esk_offsets_drop_payload(20)), ESK_OK);
    assert_int_equal(offsets->groups.count, 50);
    expect(offsets, "g0", (struct esk_committed[]){{21, 0, 5}}, 1);
    expect(offsets, "g1", NULL, 0);
    assert_int_equal(apply(offsets, esk_offsets_drop_payload(20)), ESK_OK); /* twice is fine */
    assert_int_equal(apply(offsets, esk_offsets_drop_payload(21)), ESK_OK);
    assert_int_equal(offsets->groups.count, 0);
}

/* Two members of two topics, each with half. */
static struct esk_membership example(void) {
    struct esk_membership membership = {0};
    struct esk_group_topic topics[] = {{20, 4, NULL}, {30, 3, NULL}};
    struct esk_group_edit edits[] = {
        {.join = true, .fresh_id = 7, .owner = 1, .topics = topics, .topic_count = 2},
        {.join = true, .fresh_id = 5, .owner = 2, .topics = topics, .topic_count = 1}};
    const struct esk_membership nobody = {0};
    assert_true(esk_membership_edit(&nobody, edits, 2, &membership));
    return membership;
}

static void assign(struct esk_offsets *offsets, const char *group, uint64_t generation,
                   const struct esk_membership *membership) {
    assert_int_equal(
        apply(offsets, esk_offsets_assign_payload(esk_slice_text(group), generation, membership)),
        ESK_OK);
}

static void collect(void *context, struct esk_slice payload) {
    struct esk_buffer *buffer = context;
    esk_buffer_u32(buffer, (uint32_t)payload.size);
    esk_buffer_append(buffer, payload.data, payload.size);
}

static void a_snapshot_makes_the_same_state_whatever_the_order_of_commits(void **state) {
    struct esk_offsets *offsets = *state;
    struct esk_offsets again;
    struct esk_buffer first, second;
    esk_offsets_init(&again);
    for (uint32_t i = 0; i < 300; i++) {
        char name[16];
        snprintf(name, sizeof(name), "g%u", i * 7 % 30);
        commit(offsets, name, 17 + i % 5, i % 11, i);
    }
    struct esk_membership membership = example();
    assign(offsets, "g3", 12, &membership);
    assign(offsets, "members only", 2, &membership);
    esk_membership_fini(&membership);
    esk_buffer_init(&first);
    offsets->machine.ops->snapshot(&offsets->machine, collect, &first);
    struct esk_reader reader = esk_reader(esk_buffer_slice(&first));
    while (esk_reader_left(&reader) > 0) {
        struct esk_slice payload = esk_read_bytes(&reader, esk_read_u32(&reader));
        assert_int_equal(apply(&again, esk_block_copy(payload)), ESK_OK);
    }
    assert_int_equal(again.groups.count, 31);
    esk_buffer_init(&second);
    again.machine.ops->snapshot(&again.machine, collect, &second);
    assert_true(esk_slice_equal(esk_buffer_slice(&first), esk_buffer_slice(&second)));
    esk_buffer_fini(&first);
    esk_buffer_fini(&second);
    esk_offsets_fini(&again);
}

static void a_rebalance_is_the_state_and_generations_only_grow(void **state) {
    struct esk_offsets *offsets = *state;
    struct esk_membership membership = example();
    assign(offsets, "g", 1, &membership);
    const struct esk_consumer_group *group = esk_offsets_group(offsets, esk_slice_text("g"));
    assert_int_equal(group->generation, 1);
    assert_int_equal(group->membership.member_count, 2);
    assert_int_equal(group->membership.members[0].id, 5);
    assert_int_equal(group->membership.members[1].owner, 1);
    assert_memory_equal(group->membership.topics[1].owners, membership.topics[1].owners, 6);
    assign(offsets, "g", 1, &membership); /* decided before something else raised it */
    assert_int_equal(group->generation, 2);
    const struct esk_membership nobody = {0};
    assign(offsets, "g", 3, &nobody);
    assert_int_equal(group->generation, 3);
    assert_int_equal(group->membership.member_count, 0);
    assert_int_equal(apply(offsets, esk_offsets_delete_payload(esk_slice_text("g"))), ESK_OK);
    assert_null(esk_offsets_group(offsets, esk_slice_text("g")));
    assert_int_equal(apply(offsets, esk_offsets_delete_payload(esk_slice_text("g"))), ESK_OK);
    esk_membership_fini(&membership);
}

static void a_dropped_topic_leaves_memberships_and_raises_the_generation(void **state) {
    struct esk_offsets *offsets = *state;
    struct esk_membership membership = example();
    assign(offsets, "g", 4, &membership);
    assert_int_equal(apply(offsets, esk_offsets_drop_payload(20)), ESK_OK);
    const struct esk_consumer_group *group = esk_offsets_group(offsets, esk_slice_text("g"));
    assert_int_equal(group->generation, 5);
    assert_int_equal(group->membership.topic_count, 1);
    assert_int_equal(group->membership.members[0].topic_count, 0);
    assert_int_equal(group->membership.members[1].topic_count, 1);
    assert_int_equal(group->membership.members[1].topics[0], 0);
    assert_int_equal(apply(offsets, esk_offsets_drop_payload(20)), ESK_OK);
    assert_int_equal(group->generation, 5);
    esk_membership_fini(&membership);
}

static void a_reset_moves_the_commits_of_one_topic(void **state) {
    struct esk_offsets *offsets = *state;
    const uint64_t starts[] = {3, 0, 9};
    commit(offsets, "a", 20, 0, 100);
    commit(offsets, "a", 20, 2, 100);
    commit(offsets, "a", 21, 0, 100);
    commit(offsets, "b", 20, 2, 1);
    assert_int_equal(apply(offsets, esk_offsets_reset_payload(20, starts, 3)), ESK_OK);
    expect(offsets, "a", (struct esk_committed[]){{20, 0, 3}, {20, 2, 9}, {21, 0, 100}}, 3);
    expect(offsets, "b", (struct esk_committed[]){{20, 2, 9}}, 1);
    assert_true(esk_consumer_group_reads(esk_offsets_group(offsets, esk_slice_text("a")), 21));
    assert_false(esk_consumer_group_reads(esk_offsets_group(offsets, esk_slice_text("b")), 21));
}

static void check_there_and_back(const struct esk_membership *membership) {
    struct esk_membership read;
    struct esk_buffer bytes, again;
    esk_buffer_init(&bytes);
    esk_buffer_init(&again);
    esk_membership_encode(membership, &bytes);
    assert_int_equal(esk_membership_decode(esk_buffer_slice(&bytes), &read, NULL), ESK_OK);
    esk_membership_encode(&read, &again);
    assert_true(esk_slice_equal(esk_buffer_slice(&bytes), esk_buffer_slice(&again)));
    esk_membership_fini(&read);
    esk_buffer_fini(&bytes);
    esk_buffer_fini(&again);
}

/* Every cut of valid bytes, and every byte changed: refused, or a membership that goes there and
 * back (integers may be written longer than they need be). */
static void a_membership_that_cannot_be_is_refused(void **state) {
    (void)state;
    struct esk_membership membership = example();
    struct esk_buffer bytes;
    esk_buffer_init(&bytes);
    esk_membership_encode(&membership, &bytes);
    check_there_and_back(&membership);
    esk_membership_fini(&membership);
    for (size_t size = 0; size < bytes.size; size++) {
        struct esk_block *cut = esk_block_copy(esk_slice(bytes.data, size));
        assert_int_equal(esk_membership_decode(esk_slice(cut->data, size), &membership, NULL),
                         ESK_ERR_CORRUPT);
        esk_block_release(cut);
    }
    for (size_t at = 0; at < bytes.size; at++) {
        for (unsigned value = 0; value < 256; value++) {
            uint8_t before = bytes.data[at];
            bytes.data[at] = (uint8_t)value;
            if (esk_membership_decode(esk_buffer_slice(&bytes), &membership, NULL) == ESK_OK) {
                check_there_and_back(&membership);
                esk_membership_fini(&membership);
            }
            bytes.data[at] = before;
        }
    }
    esk_buffer_fini(&bytes);
}

static void a_group_without_a_valid_name_is_refused(void **state) {
    struct esk_offsets *offsets = *state;
    const struct esk_committed committed = {17, 0, 1};
    char name[202];
    memset(name, 'x', sizeof(name));
    assert_int_equal(apply(offsets, esk_offsets_commit_payload(esk_slice(name, 0), &committed)),
                     ESK_ERR_CORRUPT);
    assert_int_equal(apply(offsets, esk_offsets_commit_payload(esk_slice(name, 201), &committed)),
                     ESK_ERR_CORRUPT);
    assert_int_equal(apply(offsets, esk_offsets_commit_payload(esk_slice("a\0", 2), &committed)),
                     ESK_ERR_CORRUPT);
    assert_int_equal(offsets->groups.count, 0);
    assert_int_equal(apply(offsets, esk_offsets_commit_payload(esk_slice(name, 200), &committed)),
                     ESK_OK);
}

/* Which partition a group is in is on disk: it must never change. FNV-1a of the name, as Sarama. */
static void a_group_lives_where_fnv1a_of_its_name_says(void **state) {
    (void)state;
    static const struct {
        const char *group;
        uint32_t partition;
    } cases[] = {{"billing", 12},
                 {"a", 4},
                 {"gr\xc3\xbc\xc3\x9f"
                  "e",
                  8}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(esk_offsets_partition(esk_slice_text(cases[i].group), 16),
                         cases[i].partition);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_last_commit_counts_also_a_lower_one),
        TEST(a_dropped_topic_takes_its_commits_and_empty_groups_along),
        TEST(a_snapshot_makes_the_same_state_whatever_the_order_of_commits),
        TEST(a_rebalance_is_the_state_and_generations_only_grow),
        TEST(a_dropped_topic_leaves_memberships_and_raises_the_generation),
        TEST(a_reset_moves_the_commits_of_one_topic),
        TEST(a_membership_that_cannot_be_is_refused),
        TEST(a_group_without_a_valid_name_is_refused),
        TEST(a_group_lives_where_fnv1a_of_its_name_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
