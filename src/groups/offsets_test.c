/* SPDX-License-Identifier: Apache-2.0 */
/* Committed offsets as a state machine, and where groups live. */
#include "groups/offsets.h"

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
    esk_buffer_init(&first);
    offsets->machine.ops->snapshot(&offsets->machine, collect, &first);
    struct esk_reader reader = esk_reader(esk_buffer_slice(&first));
    while (esk_reader_left(&reader) > 0) {
        struct esk_slice payload = esk_read_bytes(&reader, esk_read_u32(&reader));
        assert_int_equal(apply(&again, esk_block_copy(payload)), ESK_OK);
    }
    assert_int_equal(again.groups.count, 30);
    esk_buffer_init(&second);
    again.machine.ops->snapshot(&again.machine, collect, &second);
    assert_true(esk_slice_equal(esk_buffer_slice(&first), esk_buffer_slice(&second)));
    esk_buffer_fini(&first);
    esk_buffer_fini(&second);
    esk_offsets_fini(&again);
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
        TEST(a_group_without_a_valid_name_is_refused),
        TEST(a_group_lives_where_fnv1a_of_its_name_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
