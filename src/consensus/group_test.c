/* SPDX-License-Identifier: Apache-2.0 */
/* Consensus of one voter, tested against the seam alone: events in, updates out. */
#include "consensus/consensus.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define NODE 3
#define GROUP_BYTES_MAX 1536
#define SUBMIT_NS_MAX 1000 /* thread CPU time; it takes some 10 */

static struct esk_update step(struct esk_group *group, struct esk_event event) {
    struct esk_update update;
    assert_int_equal(esk_group_step(group, &event, &update), ESK_OK);
    return update;
}

static struct esk_group *create(uint64_t term, uint64_t applied, uint64_t last_index) {
    const struct esk_group_state state = {
        .group_id = 7, .term = term, .voted_for = NODE, .checkpoint = {.applied_index = applied}};
    return esk_group_create(NODE, &state, last_index, term);
}

static struct esk_group *create_leader(void) {
    struct esk_group *group = create(0, 0, 0);
    step(group, (struct esk_event){.kind = ESK_EVENT_START});
    step(group, (struct esk_event){.kind = ESK_EVENT_STATE_STORED});
    step(group, (struct esk_event){.kind = ESK_EVENT_PERSISTED, .index = 1, .term = 1});
    return group;
}

static void start_raises_the_term_and_votes_for_itself(void **unused) {
    (void)unused;
    struct esk_group *group = create(4, 10, 12);
    struct esk_update update = step(group, (struct esk_event){.kind = ESK_EVENT_START});
    assert_true(update.store_state);
    assert_int_equal(update.term, 5);
    assert_int_equal(update.voted_for, NODE);
    assert_int_equal(update.role, ESK_ROLE_CANDIDATE);
    assert_int_equal(update.leader, 0);
    assert_int_equal(update.commit_index, 10);
    assert_false(update.append);
    esk_group_destroy(group);
}

static void stored_state_makes_a_leader_whose_first_entry_is_its_term(void **unused) {
    (void)unused;
    struct esk_group *group = create(4, 10, 12);
    step(group, (struct esk_event){.kind = ESK_EVENT_START});
    struct esk_update update = step(group, (struct esk_event){.kind = ESK_EVENT_STATE_STORED});
    assert_true(update.append_term_entry);
    assert_false(update.store_state);
    assert_int_equal(update.first_index, 13);
    assert_int_equal(update.role, ESK_ROLE_LEADER);
    assert_int_equal(update.leader, NODE);
    assert_int_equal(esk_group_last_index(group), 13);
    esk_group_destroy(group);
}

static void submit_is_refused_before_the_term_is_stored(void **unused) {
    (void)unused;
    struct esk_group *group = create(0, 0, 0);
    const struct esk_event submit = {.kind = ESK_EVENT_SUBMIT, .count = 1};
    struct esk_update update;
    assert_int_equal(esk_group_step(group, &submit, &update), ESK_ERR_UNAVAILABLE);
    assert_false(update.append);
    step(group, (struct esk_event){.kind = ESK_EVENT_START});
    assert_int_equal(esk_group_step(group, &submit, &update), ESK_ERR_UNAVAILABLE);
    assert_int_equal(esk_group_last_index(group), 0);
    step(group, (struct esk_event){.kind = ESK_EVENT_STATE_STORED});
    assert_int_equal(esk_group_step(group, &submit, &update), ESK_OK);
    assert_int_equal(update.first_index, 2);
    esk_group_destroy(group);
}

static void submit_gives_consecutive_indexes_and_commits_nothing(void **unused) {
    (void)unused;
    struct esk_group *group = create_leader();
    struct esk_update update =
        step(group, (struct esk_event){.kind = ESK_EVENT_SUBMIT, .count = 3});
    assert_true(update.append);
    assert_int_equal(update.first_index, 2);
    assert_int_equal(update.last_index, 4);
    assert_int_equal(update.commit_index, 1);
    update = step(group, (struct esk_event){.kind = ESK_EVENT_SUBMIT, .count = 1});
    assert_int_equal(update.first_index, 5);
    esk_group_destroy(group);
}

static void commit_follows_what_is_persisted_in_the_own_term(void **unused) {
    (void)unused;
    struct esk_group *group = create(4, 10, 12);
    step(group, (struct esk_event){.kind = ESK_EVENT_START});
    step(group, (struct esk_event){.kind = ESK_EVENT_STATE_STORED});
    struct esk_event persisted = {.kind = ESK_EVENT_PERSISTED, .index = 12, .term = 4};
    assert_int_equal(step(group, persisted).commit_index, 10); /* an earlier term's alone: no */
    persisted.index = 13;
    persisted.term = 5;
    assert_int_equal(step(group, persisted).commit_index, 13); /* takes the earlier ones along */
    persisted.index = 12;
    assert_int_equal(step(group, persisted).commit_index, 13); /* never back */
    struct esk_consensus_replica replica;
    assert_int_equal(esk_group_replicas(group, &replica, 1), 1);
    assert_int_equal(replica.node, NODE);
    assert_true(replica.voter);
    assert_int_equal(replica.match_index, 13);
    esk_group_destroy(group);
}

static void events_of_several_voters_are_refused_or_do_nothing(void **unused) {
    (void)unused;
    struct esk_group *group = create_leader();
    const struct esk_event message = {.kind = ESK_EVENT_MESSAGE};
    const struct esk_event configuration = {.kind = ESK_EVENT_CONFIGURATION};
    struct esk_update update;
    assert_int_equal(esk_group_step(group, &message, &update), ESK_ERR_UNSUPPORTED);
    assert_int_equal(esk_group_step(group, &configuration, &update), ESK_ERR_UNSUPPORTED);
    update = step(group, (struct esk_event){.kind = ESK_EVENT_TIMEOUT});
    assert_false(update.store_state || update.append || update.truncate);
    assert_int_equal(update.message_count, 0);
    assert_int_equal(update.term, 1);
    esk_group_destroy(group);
}

static uint64_t thread_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void a_group_is_small_and_a_submit_is_fast(void **unused) {
    (void)unused;
    enum { ROUNDS = 100000 };
    struct esk_group *group = create_leader();
    assert_true(malloc_usable_size(group) <= GROUP_BYTES_MAX);
    uint64_t begin = thread_ns();
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct esk_update update;
        struct esk_event event = {.kind = ESK_EVENT_SUBMIT, .count = 1};
        (void)esk_group_step(group, &event, &update);
        event = (struct esk_event){
            .kind = ESK_EVENT_PERSISTED, .index = update.last_index, .term = update.term};
        (void)esk_group_step(group, &event, &update);
    }
    uint64_t each = (thread_ns() - begin) / ROUNDS;
    assert_int_equal(esk_group_commit_index(group), ROUNDS + 1);
    print_message("submit and persisted: %llu ns, group: %zu bytes\n", (unsigned long long)each,
                  malloc_usable_size(group));
    assert_true(each < SUBMIT_NS_MAX);
    esk_group_destroy(group);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_raises_the_term_and_votes_for_itself),
        cmocka_unit_test(stored_state_makes_a_leader_whose_first_entry_is_its_term),
        cmocka_unit_test(submit_is_refused_before_the_term_is_stored),
        cmocka_unit_test(submit_gives_consecutive_indexes_and_commits_nothing),
        cmocka_unit_test(commit_follows_what_is_persisted_in_the_own_term),
        cmocka_unit_test(events_of_several_voters_are_refused_or_do_nothing),
        cmocka_unit_test(a_group_is_small_and_a_submit_is_fast),
    };
    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
