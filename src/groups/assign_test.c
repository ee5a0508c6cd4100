/* SPDX-License-Identifier: Apache-2.0 */
/* Even, sticky, complete and quick, over random members and topics; and the next generation of a
 * membership by joins and leaves, which is how assignments come about. */
#include "groups/assign.h"

#include "groups/edit.h"
#include "model/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* splitmix64 */
static uint64_t random_state;
static uint64_t draw(void) {
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
static uint32_t below(uint32_t bound) {
    return (uint32_t)(draw() % bound);
}

/* --- what the world looks like --- */

struct world {
    struct esk_group_topic *topics; /* without owners */
    uint32_t topic_count;
    struct esk_membership membership;
};

static void world_init(struct world *world, uint32_t topics, uint32_t partitions_max) {
    *world = (struct world){.topic_count = topics};
    world->topics = esk_alloc_zeroed(topics, sizeof(*world->topics));
    for (uint32_t t = 0; t < topics; t++) {
        world->topics[t].id = 17 + t * 3;
        world->topics[t].partition_count = 1 + below(partitions_max);
    }
}

static void world_fini(struct world *world) {
    esk_membership_fini(&world->membership);
    free(world->topics);
}

static enum esk_err edit(struct world *world, struct esk_group_edit change, uint64_t *member_id) {
    struct esk_membership made;
    change.fresh_id = draw();
    if (esk_membership_edit(&world->membership, &change, 1, &made)) {
        esk_membership_fini(&world->membership);
        world->membership = made;
    }
    if (member_id != NULL) {
        *member_id = change.member_id;
    }
    return change.err;
}

/* Joins with the topics whose number passes the filter. */
static uint64_t join(struct world *world, uint64_t member_id, uint32_t one_in) {
    struct esk_group_topic topics[ESK_MEMBER_TOPICS_MAX];
    uint32_t count = 0;
    while (count == 0) {
        for (uint32_t t = 0; t < world->topic_count && count < ESK_MEMBER_TOPICS_MAX; t++) {
            if (below(one_in) == 0) {
                topics[count++] = world->topics[t];
            }
        }
    }
    assert_int_equal(
        edit(world,
             (struct esk_group_edit){
                 .join = true, .member_id = member_id, .topics = topics, .topic_count = count},
             &member_id),
        ESK_OK);
    return member_id;
}

static void leave(struct world *world, uint32_t position) {
    const struct esk_group_edit change = {.member_id = world->membership.members[position].id};
    assert_int_equal(edit(world, change, NULL), ESK_OK);
}

/* --- what must hold --- */

static bool reads(const struct esk_membership *membership, uint32_t member, uint32_t topic) {
    const struct esk_group_member *of = &membership->members[member];
    for (uint32_t i = 0; i < of->topic_count; i++) {
        if (of->topics[i] == topic) {
            return true;
        }
    }
    return false;
}

static uint32_t *count_loads(const struct esk_membership *membership) {
    uint32_t *loads = esk_alloc_zeroed(membership->member_count + 1, sizeof(*loads));
    for (uint32_t t = 0; t < membership->topic_count; t++) {
        for (uint32_t p = 0; p < membership->topics[t].partition_count; p++) {
            uint16_t owner = membership->topics[t].owners[p];
            assert_true(owner < membership->member_count); /* somebody has it */
            assert_true(reads(membership, owner, t));      /* who reads it */
            loads[owner]++;
        }
    }
    return loads;
}

/* Nobody can give to somebody with two less, by any chain: a plain search over topics. */
static void check_even(const struct esk_membership *membership) {
    uint32_t members = membership->member_count;
    uint32_t *loads = count_loads(membership);
    bool *has = esk_alloc_zeroed((size_t)members * membership->topic_count + 1, sizeof(bool));
    for (uint32_t t = 0; t < membership->topic_count; t++) {
        for (uint32_t p = 0; p < membership->topics[t].partition_count; p++) {
            has[(size_t)membership->topics[t].owners[p] * membership->topic_count + t] = true;
        }
    }
    bool *seen = esk_alloc(members + 1);
    uint32_t *queue = esk_alloc((members + 1) * sizeof(*queue));
    for (uint32_t from = 0; from < members; from++) {
        memset(seen, 0, members);
        uint32_t count = 1;
        queue[0] = from;
        seen[from] = true;
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t to = 0; to < members; to++) {
                for (uint32_t t = 0; t < membership->topic_count && !seen[to]; t++) {
                    if (has[(size_t)queue[i] * membership->topic_count + t] &&
                        reads(membership, to, t)) {
                        seen[to] = true;
                        queue[count++] = to;
                        assert_true(loads[from] <= loads[to] + 1);
                    }
                }
            }
        }
    }
    free(has);
    free(seen);
    free(queue);
    free(loads);
}

/* Where a partition moved from one who still reads it, moving it back would not be as even. */
static void check_moves(const struct esk_membership *before, const struct esk_membership *after) {
    uint32_t *loads = count_loads(after);
    for (uint32_t t = 0; t < after->topic_count; t++) {
        uint32_t old = esk_membership_topic(before, after->topics[t].id);
        for (uint32_t p = 0; old < before->topic_count && p < after->topics[t].partition_count;
             p++) {
            uint16_t was = before->topics[old].owners[p];
            uint32_t is = after->topics[t].owners[p];
            uint32_t still = was == ESK_NOBODY
                                 ? after->member_count
                                 : esk_membership_find(after, before->members[was].id);
            if (still < after->member_count && still != is && reads(after, still, t)) {
                assert_true(loads[is] <= loads[still]);
            }
        }
    }
    free(loads);
}

static void same(const struct esk_membership *a, const struct esk_membership *b) {
    struct esk_buffer left, right;
    esk_buffer_init(&left);
    esk_buffer_init(&right);
    esk_membership_encode(a, &left);
    esk_membership_encode(b, &right);
    assert_true(esk_slice_equal(esk_buffer_slice(&left), esk_buffer_slice(&right)));
    esk_buffer_fini(&left);
    esk_buffer_fini(&right);
}

static void check_stays(const struct esk_membership *membership) {
    struct esk_membership again = esk_membership_copy(membership);
    esk_membership_assign(&again);
    same(membership, &again);
    esk_membership_fini(&again);
}

/* --- tests --- */

static void random_joins_and_leaves_stay_even_and_move_only_what_they_must(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_state = seed;
        struct world world;
        uint32_t topics = 1 + below(12);
        uint32_t members_max = 1 + below(seed % 10 == 0 ? 60 : 12);
        uint32_t one_in = 1 + below(3);
        world_init(&world, topics, 1 + below(40));
        for (unsigned step = 0; step < 60; step++) {
            struct esk_membership before = esk_membership_copy(&world.membership);
            uint32_t count = world.membership.member_count;
            if (count > 0 && (count >= members_max || below(3) == 0)) {
                leave(&world, below(count));
            } else if (count > 0 && below(5) == 0) { /* other topics for the same member */
                uint64_t id = world.membership.members[below(count)].id;
                assert_int_equal(join(&world, id, one_in), id);
                assert_int_equal(world.membership.member_count, count);
            } else {
                join(&world, 0, one_in);
                assert_int_equal(world.membership.member_count, count + 1);
            }
            check_even(&world.membership);
            check_moves(&before, &world.membership);
            check_stays(&world.membership);
            esk_membership_fini(&before);
        }
        world_fini(&world);
    }
}

/* With the same topics for all: the most that can stay does stay. */
static uint64_t most_kept(const struct esk_membership *before, const struct esk_membership *after) {
    uint64_t all = 0;
    uint64_t kept = 0;
    uint64_t above = 0;
    for (uint32_t t = 0; t < after->topic_count; t++) {
        all += after->topics[t].partition_count;
    }
    uint64_t low = all / after->member_count;
    uint64_t high_count = all % after->member_count;
    uint32_t *loads = count_loads(before);
    for (uint32_t m = 0; m < before->member_count; m++) {
        if (esk_membership_find(after, before->members[m].id) < after->member_count) {
            kept += loads[m] < low ? loads[m] : low;
            above += loads[m] > low;
        }
    }
    free(loads);
    return kept + (above < high_count ? above : high_count);
}

static uint64_t kept_count(const struct esk_membership *before,
                           const struct esk_membership *after) {
    uint64_t kept = 0;
    for (uint32_t t = 0; t < after->topic_count; t++) {
        for (uint32_t p = 0; p < after->topics[t].partition_count; p++) {
            uint64_t was = before->members[before->topics[t].owners[p]].id;
            kept += was == after->members[after->topics[t].owners[p]].id;
        }
    }
    return kept;
}

static void with_the_same_topics_counts_differ_by_one_and_moves_are_the_fewest(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        random_state = seed * 1000;
        struct world world;
        world_init(&world, 1 + below(4), seed % 4 == 0 ? 2500 : 60);
        uint32_t members_max = seed % 4 == 0 ? 200 : 20;
        for (unsigned step = 0; step < 40; step++) {
            struct esk_membership before = esk_membership_copy(&world.membership);
            uint32_t count = world.membership.member_count;
            if (count > 1 && (count >= members_max || below(3) == 0)) {
                leave(&world, below(count));
            } else {
                join(&world, 0, 1);
            }
            uint32_t *loads = count_loads(&world.membership);
            uint32_t least = UINT32_MAX;
            uint32_t most = 0;
            for (uint32_t m = 0; m < world.membership.member_count; m++) {
                least = loads[m] < least ? loads[m] : least;
                most = loads[m] > most ? loads[m] : most;
            }
            assert_true(most <= least + 1);
            free(loads);
            if (count > 0) {
                assert_int_equal(kept_count(&before, &world.membership),
                                 most_kept(&before, &world.membership));
            }
            esk_membership_fini(&before);
        }
        world_fini(&world);
    }
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The limit is ten times the 10 ms that are asked for: sanitizers are slow. bench/ has the figure.
 */
static void two_hundred_members_and_ten_thousand_partitions_are_quick(void **state) {
    (void)state;
    static const uint32_t shapes[][3] = {
        {1, 10000, 1}, {100, 100, 1}, {100, 100, 4}, {1000, 10, 12}};
    for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++) {
        random_state = shape;
        struct world world;
        world_init(&world, shapes[shape][0], 1);
        for (uint32_t t = 0; t < world.topic_count; t++) {
            world.topics[t].partition_count = shapes[shape][1];
        }
        uint64_t longest = 0;
        for (unsigned step = 0; step < 260; step++) {
            struct esk_membership before = esk_membership_copy(&world.membership);
            uint64_t start = now_ns();
            if (step < 200) {
                join(&world, 0, shapes[shape][2]);
            } else {
                leave(&world, below(world.membership.member_count));
            }
            uint64_t took = now_ns() - start;
            longest = took > longest ? took : longest;
            esk_membership_fini(&before);
        }
        print_message("%u topics of %u: at most %llu us\n", shapes[shape][0], shapes[shape][1],
                      (unsigned long long)longest / 1000);
        assert_true(longest < 100000000u);
        world_fini(&world);
    }
}

static void members_are_bound_to_their_key(void **state) {
    (void)state;
    random_state = 7;
    struct world world;
    world_init(&world, 1, 1);
    struct esk_group_edit change = {
        .join = true, .owner = 5, .topics = world.topics, .topic_count = 1};
    uint64_t id;
    assert_int_equal(edit(&world, change, &id), ESK_OK);
    assert_true(id != 0);
    change.member_id = id;
    change.owner = 6;
    assert_int_equal(edit(&world, change, NULL), ESK_ERR_FORBIDDEN);
    change.join = false;
    assert_int_equal(edit(&world, change, NULL), ESK_ERR_FORBIDDEN);
    change.member_id = id + 1;
    assert_int_equal(edit(&world, change, NULL), ESK_ERR_NOT_FOUND);
    assert_int_equal(world.membership.member_count, 1);
    change.member_id = id;
    change.forced = true;
    assert_int_equal(edit(&world, change, NULL), ESK_OK);
    assert_int_equal(world.membership.member_count, 0);
    assert_int_equal(world.membership.topic_count, 0);
    world_fini(&world);
}

static void an_unknown_member_gets_a_new_id_and_the_same_join_again_changes_nothing(void **state) {
    (void)state;
    random_state = 8;
    struct world world;
    world_init(&world, 2, 5);
    uint64_t first = join(&world, 4711, 1);
    assert_true(first != 4711);
    struct esk_group_edit change = {
        .join = true, .member_id = first, .topics = world.topics, .topic_count = world.topic_count};
    struct esk_membership made;
    assert_false(esk_membership_edit(&world.membership, &change, 1, &made));
    assert_int_equal(change.member_id, first);
    world_fini(&world);
}

static void a_group_does_not_grow_beyond_its_limits(void **state) {
    (void)state;
    random_state = 9;
    struct world world;
    world_init(&world, 1, 3);
    struct esk_group_edit *edits = esk_alloc_zeroed(ESK_GROUP_MEMBERS_MAX + 1, sizeof(*edits));
    for (uint32_t i = 0; i <= ESK_GROUP_MEMBERS_MAX; i++) {
        edits[i] = (struct esk_group_edit){
            .join = true, .fresh_id = draw(), .topics = world.topics, .topic_count = 1};
    }
    struct esk_membership made;
    assert_true(esk_membership_edit(&world.membership, edits, ESK_GROUP_MEMBERS_MAX + 1, &made));
    world.membership = made;
    assert_int_equal(world.membership.member_count, ESK_GROUP_MEMBERS_MAX);
    assert_int_equal(edits[ESK_GROUP_MEMBERS_MAX].err, ESK_ERR_FORBIDDEN);
    free(edits);
    world_fini(&world);

    struct esk_group_topic topics[ESK_MEMBER_TOPICS_MAX];
    struct esk_group_edit crowd[3];
    for (uint32_t i = 0; i < 3; i++) {
        crowd[i] = (struct esk_group_edit){.join = true,
                                           .fresh_id = draw(),
                                           .topics = topics,
                                           .topic_count = ESK_MEMBER_TOPICS_MAX};
    }
    struct esk_group_topic others[2][ESK_MEMBER_TOPICS_MAX];
    for (uint32_t t = 0; t < ESK_MEMBER_TOPICS_MAX; t++) {
        topics[t] = (struct esk_group_topic){.id = 1 + t, .partition_count = 10000};
        others[0][t] = (struct esk_group_topic){.id = 1000 + t, .partition_count = 10000};
        others[1][t] = (struct esk_group_topic){.id = 2000 + t, .partition_count = 10000};
    }
    crowd[1].topics = others[0];
    crowd[2].topics = others[1];
    const struct esk_membership nobody = {0};
    assert_false(esk_membership_edit(&nobody, crowd, 3, &made)); /* three million partitions */
    assert_int_equal(crowd[0].err, ESK_ERR_FORBIDDEN);
    assert_int_equal(crowd[2].err, ESK_ERR_FORBIDDEN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_joins_and_leaves_stay_even_and_move_only_what_they_must),
        cmocka_unit_test(with_the_same_topics_counts_differ_by_one_and_moves_are_the_fewest),
        cmocka_unit_test(two_hundred_members_and_ten_thousand_partitions_are_quick),
        cmocka_unit_test(members_are_bound_to_their_key),
        cmocka_unit_test(an_unknown_member_gets_a_new_id_and_the_same_join_again_changes_nothing),
        cmocka_unit_test(a_group_does_not_grow_beyond_its_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
