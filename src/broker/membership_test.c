/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer groups through the broker's calls, on a disk in memory and with virtual time: members
 * come, fall silent and go, topics are deleted, the broker starts anew with other shards, and
 * groups belong to keys. */
#include "broker/scene_fixture.inc"

#include "broker/membership.h"

#define SECOND_NS UINT64_C(1000000000)

static uint64_t random_state = 1;
static void random_bytes(struct esk_platform *platform, void *bytes, size_t size) {
    (void)platform;
    for (size_t i = 0; i < size; i++) {
        random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ((uint8_t *)bytes)[i] = (uint8_t)(random_state >> 56);
    }
}

static int setup(void **state) {
    struct scene *scene = scene_create();
    scene->ops.random_bytes = random_bytes;
    *state = scene;
    start(scene);
    return 0;
}

static void start_again(struct scene *scene, uint32_t shards) {
    stop(scene);
    scene->options.shard_count = shards;
    start(scene);
}

/* Lets time pass a tenth of a second at a time. */
static void pass(struct scene *scene, unsigned tenths) {
    for (unsigned i = 0; i < tenths; i++) {
        advance(scene->world, SECOND_NS / 10);
        run_all(scene->world);
    }
}

/* --- calls --- */

static unsigned answers;
static enum esk_err answer;

static void topic_changed(struct esk_topic_operation *operation, enum esk_err err) {
    (void)operation;
    answers++;
    answer = err;
}

static void topic(struct scene *scene, const char *name, uint32_t partitions) {
    struct esk_topic_operation operation = {
        .name = esk_slice_text(name), .partition_count = partitions, .done = topic_changed};
    (partitions > 0 ? esk_broker_topic_create : esk_broker_topic_delete)(shard(scene, 1),
                                                                         &operation);
    run_all(scene->world);
    assert_int_equal(answer, ESK_OK);
}

struct member {
    char id[ESK_MEMBER_ID_BYTES + 1]; /* empty: none yet */
    uint64_t owner;
    bool admin;
    uint64_t generation;
    struct esk_member_operation operation;
    enum esk_err err;
    unsigned answers;
};

static void member_done(struct esk_member_operation *operation, enum esk_err err) {
    struct member *member = ESK_CONTAINER(operation, struct member, operation);
    member->err = err;
    member->answers++;
    if (err == ESK_OK && operation->generation > 0) {
        memcpy(member->id, operation->member, sizeof(member->id));
    }
}

typedef void (*member_call)(struct esk_broker_shard *shard, struct esk_member_operation *operation);

/* Begins a call in the group "readers"; topics end with NULL. */
static void begin(struct scene *scene, struct member *member, member_call call,
                  const char *const *topics) {
    static struct esk_slice names[8][200];
    static unsigned next;
    struct esk_slice *slices = names[next++ % 8];
    esk_member_operation_fini(&member->operation);
    member->answers = 0;
    member->operation = (struct esk_member_operation){
        .group = esk_slice_text("readers"),
        .member_id = member->id[0] ? esk_slice_text(member->id) : (struct esk_slice){0},
        .topics = slices,
        .known_generation = member->generation,
        .owner = member->owner,
        .admin = member->admin,
        .done = member_done,
    };
    for (; topics != NULL && topics[member->operation.topic_count] != NULL;
         member->operation.topic_count++) {
        slices[member->operation.topic_count] =
            esk_slice_text(topics[member->operation.topic_count]);
    }
    call(shard(scene, next), &member->operation);
}

static enum esk_err end(struct scene *scene, struct member *member) {
    run_all(scene->world);
    assert_int_equal(member->answers, 1);
    member->generation = member->operation.generation;
    return member->err;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static enum esk_err join(struct scene *scene, struct member *member, const char *const *topics) {
    begin(scene, member, esk_broker_group_join, topics);
    return end(scene, member);
}

static enum esk_err leave(struct scene *scene, struct member *member) {
    begin(scene, member, esk_broker_group_leave, NULL);
    return end(scene, member);
}

static enum esk_err assignment(struct scene *scene, struct member *member) {
    begin(scene, member, esk_broker_group_assignment, NULL);
    return end(scene, member);
}

static enum esk_err delete_group(struct scene *scene, struct member *member) {
    begin(scene, member, esk_broker_group_delete, NULL);
    return end(scene, member);
}

/* Without learning of a new generation. */
static enum esk_member_status heartbeat(struct scene *scene, struct member *member) {
    uint64_t known = member->generation;
    begin(scene, member, esk_broker_group_heartbeat, NULL);
    assert_int_equal(end(scene, member), ESK_OK);
    member->generation = known;
    return member->operation.status;
}

/* Fetches what all have and expects every partition of the topic once, in one generation. */
static void expect_shared(struct scene *scene, struct member *members, size_t count,
                          const char *topic, uint32_t partitions, size_t most) {
    bool taken[1000] = {false};
    uint32_t found = 0;
    for (size_t m = 0; m < count; m++) {
        assert_int_equal(assignment(scene, &members[m]), ESK_OK);
        assert_int_equal(members[m].generation, members[0].generation);
        size_t held = 0;
        for (size_t i = 0; i < members[m].operation.partition_count; i++) {
            const struct esk_member_partition *partition = &members[m].operation.partitions[i];
            if (strcmp(partition->topic, topic) == 0) {
                assert_true(partition->partition < partitions);
                assert_false(taken[partition->partition]);
                taken[partition->partition] = true;
                found++;
                held++;
            }
        }
        assert_true(held <= most);
    }
    assert_int_equal(found, partitions);
}

static void fini(struct member *members, size_t count) {
    for (size_t i = 0; i < count; i++) {
        esk_member_operation_fini(&members[i].operation);
    }
}

static void committed(struct esk_offset_commit *commit, enum esk_err err) {
    (void)commit;
    answers++;
    answer = err;
}

static enum esk_err commit(struct scene *scene, const char *topic, uint32_t partition,
                           uint64_t owner, bool admin) {
    struct esk_offset_commit request = {.group = esk_slice_text("readers"),
                                        .topic = esk_slice_text(topic),
                                        .partition = partition,
                                        .offset = 5,
                                        .owner = owner,
                                        .admin = admin,
                                        .done = committed};
    answers = 0;
    esk_broker_offset_commit(shard(scene, 1), &request);
    run_all(scene->world);
    assert_int_equal(answers, 1);
    return answer;
}

/* --- tests --- */

static void joins_share_partitions_and_others_learn_by_heartbeat(void **state) {
    struct scene *scene = *state;
    struct member members[3] = {0};
    topic(scene, "a", 10);
    topic(scene, "b", 1);
    assert_int_equal(join(scene, &members[0], LIST("a", "a")), ESK_OK);
    assert_int_equal(members[0].generation, 1);
    assert_int_equal(members[0].operation.partition_count, 10);
    assert_int_equal(join(scene, &members[1], LIST("a")), ESK_OK);
    assert_int_equal(members[1].generation, 2);
    assert_int_equal(members[1].operation.partition_count, 5);
    assert_int_equal(heartbeat(scene, &members[0]), ESK_MEMBER_REBALANCE_REQUIRED);
    assert_int_equal(members[0].operation.generation, 2);
    expect_shared(scene, members, 2, "a", 10, 5);
    assert_int_equal(heartbeat(scene, &members[0]), ESK_MEMBER_OK);
    assert_int_equal(join(scene, &members[0], LIST("a")), ESK_OK); /* the same: no rebalance */
    assert_int_equal(members[0].generation, 2);
    char id[sizeof(members[0].id)];
    memcpy(id, members[0].id, sizeof(id));
    assert_int_equal(join(scene, &members[0], LIST("b", "a")), ESK_OK);
    assert_string_equal(id, members[0].id);
    assert_int_equal(members[0].generation, 3);
    expect_shared(scene, members, 2, "b", 1, 1);
    strcpy(members[2].id, "m_00000000000000zz"); /* unknown: a new one */
    assert_int_equal(join(scene, &members[2], LIST("a")), ESK_OK);
    assert_string_not_equal(members[2].id, "m_00000000000000zz");
    expect_shared(scene, members, 3, "a", 10, 4);
    assert_int_equal(leave(scene, &members[1]), ESK_OK);
    assert_int_equal(leave(scene, &members[1]), ESK_ERR_NOT_FOUND);
    assert_int_equal(heartbeat(scene, &members[1]), ESK_MEMBER_UNKNOWN);
    assert_int_equal(assignment(scene, &members[1]), ESK_ERR_NOT_FOUND);
    members[1] = members[2];
    memset(&members[2], 0, sizeof(members[2]));
    expect_shared(scene, members, 2, "a", 10, 6);
    fini(members, 3);
}

static void joins_at_once_are_one_rebalance(void **state) {
    struct scene *scene = *state;
    struct member members[8] = {0};
    topic(scene, "a", 900);
    for (size_t i = 0; i < 8; i++) {
        begin(scene, &members[i], esk_broker_group_join, LIST("a"));
    }
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(end(scene, &members[i]), ESK_OK);
    }
    assert_true(members[0].generation <= 3);
    expect_shared(scene, members, 8, "a", 900, 113);
    fini(members, 8);
}

static void what_cannot_be_is_refused(void **state) {
    struct scene *scene = *state;
    struct member member = {0};
    const char *many[102];
    topic(scene, "a", 1);
    for (size_t i = 0; i < 101; i++) {
        many[i] = "a";
    }
    many[101] = NULL;
    assert_int_equal(join(scene, &member, many), ESK_ERR_INVALID);
    assert_int_equal(join(scene, &member, NULL), ESK_ERR_INVALID);
    assert_int_equal(join(scene, &member, LIST("a", "none")), ESK_ERR_NOT_FOUND);
    assert_non_null(strstr(member.operation.error.text, "none"));
    assert_int_equal(delete_group(scene, &member), ESK_ERR_NOT_FOUND);
    assert_int_equal(heartbeat(scene, &member), ESK_MEMBER_UNKNOWN);
    many[100] = NULL;
    assert_int_equal(join(scene, &member, many), ESK_OK);
    fini(&member, 1);
}

static void silent_members_go_and_a_start_gives_all_the_whole_time_out(void **state) {
    struct scene *scene = *state;
    struct member members[3] = {0};
    topic(scene, "a", 9);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(join(scene, &members[i], LIST("a")), ESK_OK);
    }
    for (unsigned second = 0; second < 9; second++) {
        pass(scene, 10);
        assert_int_equal(heartbeat(scene, &members[1]) == ESK_MEMBER_UNKNOWN, false);
    }
    assert_int_equal(heartbeat(scene, &members[0]), ESK_MEMBER_REBALANCE_REQUIRED);
    pass(scene, 15); /* member 2 was silent for 10.5 s */
    assert_int_equal(heartbeat(scene, &members[2]), ESK_MEMBER_UNKNOWN);
    expect_shared(scene, members, 2, "a", 9, 5);
    uint64_t generation = members[0].generation;
    assert_int_equal(generation, 4);
    assert_int_equal(heartbeat(scene, &members[0]), ESK_MEMBER_OK);
    assert_int_equal(heartbeat(scene, &members[1]), ESK_MEMBER_OK);
    for (uint32_t shards = 1; shards <= 3; shards++) {
        pass(scene, 90);
        start_again(scene, shards);
        expect_shared(scene, members, 2, "a", 9, 5);
        assert_int_equal(members[0].generation, generation);
        pass(scene, 90);
        assert_int_equal(heartbeat(scene, &members[0]), ESK_MEMBER_OK);
        assert_int_equal(heartbeat(scene, &members[1]), ESK_MEMBER_OK);
    }
    pass(scene, 110);
    assert_int_equal(heartbeat(scene, &members[0]), ESK_MEMBER_UNKNOWN);
    assert_int_equal(join(scene, &members[0], LIST("a")), ESK_OK);
    assert_int_equal(members[0].generation, generation + 2);
    fini(members, 3);
}

static void a_deleted_topic_leaves_assignments_and_does_not_come_back(void **state) {
    struct scene *scene = *state;
    struct member members[2] = {0};
    topic(scene, "a", 4);
    topic(scene, "b", 3);
    assert_int_equal(join(scene, &members[0], LIST("a", "b")), ESK_OK);
    assert_int_equal(join(scene, &members[1], LIST("a")), ESK_OK);
    topic(scene, "b", 0);
    assert_int_equal(heartbeat(scene, &members[1]), ESK_MEMBER_REBALANCE_REQUIRED);
    expect_shared(scene, members, 2, "a", 4, 2);
    topic(scene, "b", 3);
    assert_int_equal(assignment(scene, &members[0]), ESK_OK);
    assert_int_equal(members[0].operation.partition_count, 2);
    assert_int_equal(join(scene, &members[0], LIST("a", "b")), ESK_OK);
    expect_shared(scene, members, 2, "b", 3, 3);
    topic(scene, "a", 0);
    topic(scene, "b", 0);
    assert_int_equal(assignment(scene, &members[1]), ESK_OK);
    assert_int_equal(members[1].operation.partition_count, 0);
    start_again(scene, 2);
    assert_int_equal(assignment(scene, &members[1]), ESK_OK);
    fini(members, 2);
}

static void a_group_belongs_to_the_first_key_that_uses_it(void **state) {
    struct scene *scene = *state;
    struct member anonymous = {.admin = true};
    struct member first = {.owner = 11};
    struct member second = {.owner = 22};
    struct member admin = {.owner = 33, .admin = true};
    topic(scene, "a", 2);
    assert_int_equal(join(scene, &anonymous, LIST("a")), ESK_OK);
    assert_int_equal(commit(scene, "a", 0, 0, true), ESK_OK);
    assert_int_equal(heartbeat(scene, &second), ESK_MEMBER_UNKNOWN); /* nobody's so far */
    assert_int_equal(join(scene, &first, LIST("a")), ESK_OK);
    assert_int_equal(join(scene, &second, LIST("a")), ESK_ERR_FORBIDDEN);
    assert_int_equal(commit(scene, "a", 0, 22, false), ESK_ERR_FORBIDDEN);
    assert_int_equal(commit(scene, "a", 0, 11, false), ESK_OK);
    assert_int_equal(commit(scene, "a", 0, 33, true), ESK_OK);
    assert_int_equal(join(scene, &admin, LIST("a")), ESK_OK);
    memcpy(admin.id, first.id, sizeof(first.id)); /* a member is its key's alone */
    assert_int_equal(join(scene, &admin, LIST("a")), ESK_ERR_FORBIDDEN);
    assert_int_equal(leave(scene, &admin), ESK_ERR_FORBIDDEN);
    start_again(scene, 3);
    assert_int_equal(delete_group(scene, &second), ESK_ERR_FORBIDDEN);
    assert_int_equal(delete_group(scene, &first), ESK_ERR_CONFLICT);
    pass(scene, 120); /* all of them were silent */
    assert_int_equal(delete_group(scene, &first), ESK_OK);
    assert_int_equal(delete_group(scene, &first), ESK_ERR_NOT_FOUND);
    assert_int_equal(commit(scene, "a", 0, 22, false), ESK_OK);
    assert_int_equal(join(scene, &first, LIST("a")), ESK_ERR_FORBIDDEN);
    start_again(scene, 1);
    assert_int_equal(commit(scene, "a", 1, 11, false), ESK_ERR_FORBIDDEN);
    fini(&anonymous, 1);
    fini(&first, 1);
    fini(&second, 1);
    fini(&admin, 1);
}

static void listed(struct esk_group_listing *listing, enum esk_err err) {
    (void)listing;
    answers++;
    answer = err;
}

static void reset(struct esk_offset_reset *reset, enum esk_err err) {
    (void)reset;
    answers++;
    answer = err;
}

static void fetched(struct esk_offset_fetch *fetch, enum esk_err err) {
    (void)fetch;
    answers++;
    answer = err;
}

static void lists_show_own_groups_and_resets_move_commits(void **state) {
    struct scene *scene = *state;
    struct member member = {.owner = 11};
    topic(scene, "a", 2);
    topic(scene, "b", 1);
    assert_int_equal(join(scene, &member, LIST("b")), ESK_OK);
    assert_int_equal(commit(scene, "a", 1, 11, false), ESK_OK);
    struct esk_group_listing listing = {.owner = 11, .done = listed};
    esk_broker_group_list(shard(scene, 0), &listing);
    run_all(scene->world);
    assert_int_equal(listing.count, 1);
    assert_string_equal(listing.groups[0].name, "readers");
    assert_int_equal(listing.groups[0].members, 1);
    assert_int_equal(listing.groups[0].generation, 1);
    assert_int_equal(listing.groups[0].topic_count, 2);
    assert_string_equal(listing.groups[0].topics[0], "a");
    esk_group_listing_fini(&listing);
    listing.owner = 12;
    esk_broker_group_list(shard(scene, 1), &listing);
    run_all(scene->world);
    assert_int_equal(listing.count, 0);
    esk_group_listing_fini(&listing);

    struct esk_offset_reset all = {.topic = esk_slice_text("a"), .done = reset};
    answers = 0;
    esk_broker_offset_reset(shard(scene, 1), &all);
    run_all(scene->world);
    assert_int_equal(answers, 1);
    assert_int_equal(answer, ESK_OK);
    assert_int_equal(all.groups, 1);
    start_again(scene, 2);
    struct esk_offset_fetch fetch = {
        .group = esk_slice_text("readers"), .owner = 11, .done = fetched};
    esk_broker_offset_fetch(shard(scene, 1), &fetch);
    run_all(scene->world);
    assert_int_equal(fetch.count, 1);
    assert_int_equal(fetch.offsets[0].offset, 0);
    esk_offset_fetch_fini(&fetch);
    all.topic = esk_slice_text("none");
    esk_broker_offset_reset(shard(scene, 1), &all);
    run_all(scene->world);
    assert_int_equal(answer, ESK_ERR_NOT_FOUND);
    fini(&member, 1);
}

static void a_stop_answers_joins_and_leaves_that_it_overtakes(void **state) {
    struct scene *scene = *state;
    struct member members[4] = {0};
    topic(scene, "a", 8);
    assert_int_equal(join(scene, &members[0], LIST("a")), ESK_OK);
    begin(scene, &members[0], esk_broker_group_leave, NULL);
    for (size_t i = 1; i < 4; i++) {
        begin(scene, &members[i], esk_broker_group_join, LIST("a"));
    }
    stop(scene);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(members[i].answers, 1);
        assert_int_equal(members[i].err, ESK_OK);
    }
    start(scene);
    assert_int_equal(heartbeat(scene, &members[0]), ESK_MEMBER_UNKNOWN);
    expect_shared(scene, members + 1, 3, "a", 8, 3);
    fini(members, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(joins_share_partitions_and_others_learn_by_heartbeat),
        TEST(joins_at_once_are_one_rebalance),
        TEST(what_cannot_be_is_refused),
        TEST(silent_members_go_and_a_start_gives_all_the_whole_time_out),
        TEST(a_deleted_topic_leaves_assignments_and_does_not_come_back),
        TEST(a_group_belongs_to_the_first_key_that_uses_it),
        TEST(lists_show_own_groups_and_resets_move_commits),
        TEST(a_stop_answers_joins_and_leaves_that_it_overtakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
