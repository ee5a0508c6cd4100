/* SPDX-License-Identifier: Apache-2.0 */
/* The broker from start to stop on a disk in memory: starts that fail at any call, stops that
 * overtake changes, another number of shards, deletions. */
#include "broker/scene_fixture.inc"

#define PARTITIONS 40
#define RECORDS 60

#define MANY UINT64_C(1000000)

static uint64_t calls_before_loops; /* of the disk, in a start */

/* The main thread waits once the loops have to run. */
static void pause_and_count(struct esk_platform *platform, uint64_t ns) {
    struct fake_disk *disk = (struct fake_disk *)platform;
    if (calls_before_loops == 0 && disk->fail_in > 0) {
        calls_before_loops = MANY - disk->fail_in;
    }
    pause_and_run(platform, ns);
}

static int setup(void **state) {
    struct scene *scene = scene_create();
    scene->ops.pause = pause_and_count;
    *state = scene;
    return 0;
}

/* --- operations --------------------------------------------------------------------------------
 */

struct change {
    struct esk_topic_operation operation;
    unsigned done;
    enum esk_err err;
};

static void changed(struct esk_topic_operation *operation, enum esk_err err) {
    struct change *change = ESK_CONTAINER(operation, struct change, operation);
    change->done++;
    change->err = err;
}

static struct change change_of(const char *name, uint32_t partitions) {
    return (struct change){.operation = {.name = esk_slice_text(name),
                                         .partition_count = partitions,
                                         .done = changed}};
}

static enum esk_err create(struct scene *scene, const char *name, uint32_t partitions) {
    struct change change = change_of(name, partitions);
    esk_broker_topic_create(shard(scene, 1), &change.operation);
    run_all(scene->world);
    assert_int_equal(change.done, 1);
    return change.err;
}

static enum esk_err delete (struct scene *scene, const char *name) {
    struct change change = change_of(name, 0);
    esk_broker_topic_delete(shard(scene, 1), &change.operation);
    run_all(scene->world);
    assert_int_equal(change.done, 1);
    return change.err;
}

static unsigned operations_done;
static enum esk_err operation_err;

static void produced(struct esk_produce *produce, enum esk_err err) {
    (void)produce;
    operations_done++;
    operation_err = err;
}

static enum esk_err produce(struct scene *scene, const char *topic, uint64_t number,
                            int32_t partition) {
    uint8_t value[100] = {0};
    esk_store_u64(value, number);
    struct esk_produce_record record = {.value = esk_slice(value, sizeof(value)),
                                        .sequence = ESK_SEQUENCE_NONE,
                                        .partition = partition};
    struct esk_produce request = {
        .topic = esk_slice_text(topic), .records = &record, .record_count = 1, .done = produced};
    operations_done = 0;
    esk_broker_produce(shard(scene, (uint32_t)number), &request);
    run_all(scene->world);
    assert_int_equal(operations_done, 1);
    assert_true(operation_err != ESK_OK || record.written_partition == (uint32_t)partition);
    return operation_err;
}

static void consumed(struct esk_consume *consume, enum esk_err err) {
    (void)consume;
    operations_done++;
    operation_err = err;
}

/* Bytes of all batches of a partition, and its high watermark. */
static uint64_t consume(struct scene *scene, const char *topic, uint32_t partition,
                        uint64_t *high_watermark) {
    struct esk_consume request = {.topic = esk_slice_text(topic),
                                  .partition = partition,
                                  .records_max = 100000,
                                  .bytes_max = 1u << 20,
                                  .done = consumed};
    operations_done = 0;
    esk_broker_consume(shard(scene, partition + 1), &request);
    run_all(scene->world);
    assert_int_equal(operations_done, 1);
    assert_int_equal(operation_err, ESK_OK);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < request.part_count; i++) {
        bytes += request.parts[i].size;
    }
    *high_watermark = request.high_watermark;
    esk_consume_fini(&request);
    return bytes;
}

static void committed(struct esk_offset_commit *commit, enum esk_err err) {
    (void)commit;
    operations_done++;
    operation_err = err;
}

static void fetched(struct esk_offset_fetch *fetch, enum esk_err err) {
    (void)fetch;
    operations_done++;
    operation_err = err;
}

static size_t count_commits(struct scene *scene, const char *group) {
    struct esk_offset_fetch fetch = {.group = esk_slice_text(group), .done = fetched};
    operations_done = 0;
    esk_broker_offset_fetch(shard(scene, 1), &fetch);
    run_all(scene->world);
    assert_int_equal(operations_done, 1);
    assert_int_equal(operation_err, ESK_OK);
    size_t count = fetch.count;
    esk_offset_fetch_fini(&fetch);
    return count;
}

static void fill(struct scene *scene) {
    assert_int_equal(create(scene, "log", 3), ESK_OK);
    for (uint64_t i = 0; i < RECORDS; i++) {
        assert_int_equal(produce(scene, "log", i, (int32_t)(i % 3)), ESK_OK);
    }
    struct esk_offset_commit commit = {.group = esk_slice_text("readers"),
                                       .topic = esk_slice_text("log"),
                                       .partition = 2,
                                       .offset = 7,
                                       .done = committed};
    operations_done = 0;
    esk_broker_offset_commit(shard(scene, 0), &commit);
    run_all(scene->world);
    assert_int_equal(operation_err, ESK_OK);
}

static void expect_all(struct scene *scene) {
    for (uint32_t p = 0; p < 3; p++) {
        uint64_t high_watermark;
        assert_true(consume(scene, "log", p, &high_watermark) > RECORDS / 3 * 100);
        assert_int_equal(high_watermark, RECORDS / 3);
    }
    assert_int_equal(count_commits(scene, "readers"), 1);
}

/* --- tests -------------------------------------------------------------------------------------
 */

static void all_is_there_after_stops_with_any_number_of_shards(void **state) {
    struct scene *scene = *state;
    static const uint32_t shards[] = {2, 1, 4, 4, 3, 2};
    start(scene);
    fill(scene);
    for (size_t i = 0; i < sizeof(shards) / sizeof(shards[0]); i++) {
        stop(scene);
        scene->options.shard_count = shards[i];
        start(scene);
        expect_all(scene);
    }
    assert_int_equal(create(scene, "log", 1), ESK_ERR_CONFLICT);
    assert_int_equal(produce(scene, "none", 1, 0), ESK_ERR_NOT_FOUND);
    assert_int_equal(produce(scene, "log", 1, 3), ESK_ERR_NOT_FOUND);
}

#define ANY (FAKE_WRITE | FAKE_SYNC | FAKE_OTHER)

static void a_start_that_fails_at_any_call_can_be_tried_again(void **state) {
    struct scene *scene = *state;
    struct fake_disk *disk = &scene->world->storage.disk;
    start(scene);
    fill(scene);
    stop(scene);
    start(scene); /* releases journal files: from here on each start finds as many */
    stop(scene);
    for (uint32_t shards = 2; shards <= 3; shards++) {
        calls_before_loops = 0;
        uint64_t call = 0;
        do {
            scene->options.shard_count = shards == 3 && call % 2 ? 3 : 2; /* a new layout */
            fake_disk_fail(disk, call == 0 ? MANY : call, (enum fake_call)ANY, ESK_ERR_IO);
            enum esk_err err = try_start(scene);
            disk->fail_in = 0;
            assert_true(call == 0 || disk->failed);
            if (call > 0) {
                assert_int_equal(err, ESK_ERR_IO);
                assert_int_equal(scene->world->failed, 0);
                run_all(scene->world);
                start(scene);
            }
            expect_all(scene);
            stop(scene);
        } while (++call <= calls_before_loops);
        assert_true(call > 50);
    }
}

static void a_deleted_topic_takes_files_and_commits_along(void **state) {
    struct scene *scene = *state;
    start(scene);
    fill(scene);
    stop(scene); /* its segments are there */
    start(scene);
    assert_true(fake_disk_has(&scene->world->storage.disk, "/data/broker/groups/0000000000000003"));
    assert_int_equal(delete (scene, "log"), ESK_OK);
    assert_int_equal(delete (scene, "log"), ESK_ERR_NOT_FOUND);
    assert_false(
        fake_disk_has(&scene->world->storage.disk, "/data/broker/groups/0000000000000003"));
    assert_int_equal(count_commits(scene, "readers"), 0);
    assert_int_equal(create(scene, "log", 1), ESK_OK);
    uint64_t high_watermark;
    assert_int_equal(consume(scene, "log", 0, &high_watermark), 0);
    assert_int_equal(high_watermark, 0);
    assert_int_equal(count_commits(scene, "readers"), 0);
}

static void a_stop_answers_the_changes_that_it_overtakes(void **state) {
    struct scene *scene = *state;
    start(scene);
    fill(scene);
    assert_int_equal(create(scene, "old", PARTITIONS), ESK_OK);
    struct change changes[] = {change_of("new", PARTITIONS), change_of("old", 0)};
    struct esk_consume waiting = {.topic = esk_slice_text("log"),
                                  .offset = 1000,
                                  .records_max = 1,
                                  .bytes_max = 1,
                                  .wait_ms = 30000,
                                  .done = consumed};
    operations_done = 0;
    esk_broker_consume(shard(scene, 1), &waiting);
    esk_broker_topic_create(shard(scene, 0), &changes[0].operation);
    esk_broker_topic_delete(shard(scene, 1), &changes[1].operation);
    uint64_t before_ns = scene->world->now_ns;
    stop(scene); /* nothing of it has run yet */
    assert_true(scene->world->now_ns - before_ns < UINT64_C(5000000000));
    assert_int_equal(operations_done, 1);
    esk_consume_fini(&waiting);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(changes[i].done, 1);
        assert_int_equal(changes[i].err, ESK_OK);
    }
    start(scene);
    assert_int_equal(esk_broker_topic_count(shard(scene, 0)), 2);
    struct esk_topic_view view;
    assert_true(esk_broker_topic_find(shard(scene, 1), esk_slice_text("new"), &view));
    assert_int_equal(view.partition_count, PARTITIONS);
    expect_all(scene);
}

static void a_folder_whose_identity_is_lost_is_not_begun_anew(void **state) {
    struct scene *scene = *state;
    struct esk_platform *platform = &scene->world->storage.disk.platform;
    start(scene); /* its first start: only journals have entries */
    struct fake_node *meta = fake_find(&scene->world->storage.disk, "/data/broker/esker.meta");
    assert_non_null(meta);
    stop(scene);
    assert_int_equal(
        esk_path_rename(platform, "/data/broker/esker.meta", "/data/broker/aside", NULL), ESK_OK);
    assert_int_equal(try_start(scene), ESK_ERR_CORRUPT);
    assert_non_null(strstr(scene->error.text, "esker.meta"));
    assert_int_equal(
        esk_path_rename(platform, "/data/broker/aside", "/data/broker/esker.meta", NULL), ESK_OK);
    start(scene);
}

static enum esk_err put(struct esk_produce *request, int32_t partition) {
    const struct esk_produce_record record = {
        .value = esk_slice("value", 5), .partition = partition, .sequence = ESK_SEQUENCE_NONE};
    return esk_produce_put(request, &record);
}

static void a_produce_that_is_ended_leaves_nothing_behind(void **state) {
    struct scene *scene = *state;
    struct esk_produce request = {.topic = esk_slice_text("log"), .done = produced};
    struct esk_produce_run run;
    start(scene);
    assert_int_equal(esk_produce_open(shard(scene, 0), &request, 0, 0), ESK_ERR_NOT_FOUND);
    esk_produce_end(&request);
    assert_int_equal(create(scene, "log", 3), ESK_OK);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(esk_produce_open(shard(scene, 0), &request, 0, 0), ESK_OK);
        for (int i = 0; i < 7; i++) {
            assert_int_equal(put(&request, ESK_PARTITION_ANY), ESK_OK);
        }
        assert_int_equal(put(&request, 2), ESK_OK);
        assert_int_equal(put(&request, 2), ESK_OK);
        if (round == 0) {
            assert_int_equal(put(&request, 3), ESK_ERR_NOT_FOUND);
            esk_produce_end(&request);
        }
    }
    assert_int_equal(esk_produce_seal(&request), ESK_OK);
    assert_int_equal(request.record_count, 9);
    operations_done = 0;
    esk_broker_produce(shard(scene, 0), &request);
    run_all(scene->world);
    assert_int_equal(operations_done, 1);
    assert_int_equal(operation_err, ESK_OK);
    for (uint32_t i = 0; i < 7; i++) { /* the round-robin goes on from where it was */
        assert_true(esk_produce_next_run(&request, &run));
        assert_int_equal(run.partition, i % 3);
        assert_int_equal(run.count, 1);
        assert_int_equal(run.offset, i / 3);
    }
    assert_true(esk_produce_next_run(&request, &run));
    assert_int_equal(run.partition, 2);
    assert_int_equal(run.count, 2);
    assert_int_equal(run.offset, 2);
    assert_false(esk_produce_next_run(&request, &run));
    esk_produce_end(&request);
    uint64_t high_watermark;
    assert_true(consume(scene, "log", 2, &high_watermark) > 0);
    assert_int_equal(high_watermark, 4);
}

/* --- a produce whose journals are not equally fast --- */

struct looks {
    struct esk_produce produce;
    unsigned advanced; /* looks before the end */
    unsigned done;
    uint64_t first_offset;
};

/* Six records in turn for partitions 0 to 2. A bit for each that is known. */
static unsigned look(struct esk_produce *produce, uint64_t first_offset) {
    struct esk_produce_run run;
    unsigned known = 0;
    for (uint32_t i = 0; i < 6; i++) {
        assert_true(esk_produce_next_run(produce, &run));
        assert_int_equal(run.partition, i % 3);
        assert_int_equal(run.count, 1);
        assert_int_equal(run.err, ESK_OK);
        if (!run.is_out) {
            assert_int_equal(run.offset, first_offset + i / 3);
            known |= 1u << i;
        }
    }
    assert_false(esk_produce_next_run(produce, &run));
    return known;
}

static void look_before(struct esk_produce *produce) {
    struct looks *looks = ESK_CONTAINER(produce, struct looks, produce);
    unsigned known = look(produce, looks->first_offset);
    assert_int_equal(looks->done, 0);
    assert_true(known == 0x12 || known == 0x2d); /* of one shard */
    looks->advanced++;
}

static void look_at_the_end(struct esk_produce *produce, enum esk_err err) {
    struct looks *looks = ESK_CONTAINER(produce, struct looks, produce);
    assert_int_equal(err, ESK_OK);
    assert_int_equal(look(produce, looks->first_offset), 0x3f);
    esk_produce_end(produce);
    looks->done++;
}

/* Everything but one worker. */
static void run_without(struct world *world, unsigned held) {
    bool ran = true;
    while (ran) {
        ran = run_one(&world->loop);
        for (unsigned i = 0; i < world->worker_count; i++) {
            ran |= i != held && run_one(&world->workers[i]);
        }
    }
}

static void a_produce_tells_of_the_parts_that_are_back(void **state) {
    struct scene *scene = *state;
    unsigned slow = 0;
    start(scene);
    assert_int_equal(create(scene, "log", 3), ESK_OK);
    for (unsigned held = 0; held < scene->world->worker_count; held++) {
        struct looks looks = {.produce = {.topic = esk_slice_text("log"), .done = look_at_the_end},
                              .first_offset = 2 * held};
        looks.produce.advanced = look_before;
        assert_int_equal(esk_produce_open(shard(scene, 0), &looks.produce, 0, 0), ESK_OK);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(put(&looks.produce, i % 3), ESK_OK);
        }
        assert_int_equal(esk_produce_seal(&looks.produce), ESK_OK);
        esk_broker_produce(shard(scene, 0), &looks.produce);
        assert_int_equal(looks.advanced, 0);
        run_without(scene->world, held);
        assert_int_equal(looks.advanced, 1);
        slow += looks.done == 0; /* that worker writes one of the journals */
        run_all(scene->world);
        assert_int_equal(looks.advanced, 1);
        assert_int_equal(looks.done, 1);
    }
    assert_int_equal(slow, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_is_there_after_stops_with_any_number_of_shards),
        TEST(a_start_that_fails_at_any_call_can_be_tried_again),
        TEST(a_deleted_topic_takes_files_and_commits_along),
        TEST(a_stop_answers_the_changes_that_it_overtakes),
        TEST(a_folder_whose_identity_is_lost_is_not_begun_anew),
        TEST(a_produce_that_is_ended_leaves_nothing_behind),
        TEST(a_produce_tells_of_the_parts_that_are_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
