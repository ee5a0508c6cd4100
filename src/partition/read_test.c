/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: at the borders of segments, tail and files, cold and warm, waiting, and what a damaged
 * file gives. */
#include "partition/shard_fixture.inc"

#define RECORDS 100

static size_t value_bytes;

/* Most of the records in segment files, the rest in the tail. */
static int setup_records(struct world *world, size_t size) {
    value_bytes = size;
    assert_int_equal(world_start(world), ESK_OK);
    for (uint64_t number = 0; number < RECORDS; number++) {
        assert_int_equal(write_number(world, 0, number, value_bytes), ESK_OK);
    }
    assert_true(world->partitions[0]->moved_offset > 20);
    assert_true(world->partitions[0]->moved_offset < RECORDS);
    return 0;
}

static int setup(void **state) {
    *state = world_create(false);
    return setup_records(*state, 400);
}

/* Of another shard, of which only what a reader needs is there. */
static struct esk_shard reader;

/* In segments that are worth a mail. */
static int setup_away(void **state) {
    struct world *world = world_create(false);
    *state = world;
    world->segment_bytes = 128u << 10;
    setup_records(world, 2000);
    struct executor *executor = (struct executor *)world_worker_create(NULL, "reader", 1);
    reader = (struct esk_shard){.loop = &executor->loop};
    esk_list_init(&reader.reads);
    world->reader = &reader;
    return 0;
}

static int teardown(void **state) {
    world_destroy(*state);
    return 0;
}

static void removed(struct esk_partition_removal *removal) {
    removal->count = 0;
}

static void expect_read(struct world *world, uint64_t offset, uint64_t bytes_max, size_t least) {
    struct reading reading;
    uint64_t numbers[RECORDS];
    read_begin(world, 0, &reading, offset, bytes_max, 0);
    run_all(world);
    assert_int_equal(reading.done, 1);
    assert_int_equal(reading.err, ESK_OK);
    size_t count = read_numbers(&reading, numbers);
    assert_true(count >= least);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(numbers[i], offset + i);
    }
    assert_int_equal(reading.read.next_offset, offset + count);
    assert_int_equal(reading.read.high_watermark, RECORDS);
    esk_read_release(&reading.read);
}

static void every_offset_reads_warm_and_cold_alone_and_with_the_rest(void **state) {
    struct world *world = *state;
    for (int cold = 0; cold < 2; cold++) {
        world->storage.disk.cold = cold;
        for (uint64_t offset = 0; offset < RECORDS; offset++) {
            expect_read(world, offset, 1, 1);
            expect_read(world, offset, 5 * value_bytes,
                        offset + 5 <= RECORDS ? 5 : RECORDS - offset);
            expect_read(world, offset, UINT64_MAX, RECORDS - offset);
        }
    }
    assert_int_equal(world->shard->reads_away, 0);
}

static void what_the_cache_has_is_copied_and_told_in_the_readers_loop(void **state) {
    struct world *world = *state;
    struct reading reading;
    expect_read(world, 3, 1, 1); /* opens the file */
    world->shard->read_bytes = 0;
    read_begin(world, 0, &reading, 3, 80000, 0);
    assert_int_equal(reading.done, 0);
    assert_false(run_one(&world->loop));
    while (run_one((struct executor *)reader.loop)) {
    }
    assert_int_equal(reading.done, 1);
    assert_true(reading.read.away);
    assert_int_equal(reading.read.high_watermark, RECORDS);
    assert_int_equal(world->shard->read_bytes, 0);
    assert_true(reader.read_bytes > 0);
    uint64_t before = world->partitions[0]->records_out;
    run_all(world); /* the partition hears of it */
    assert_int_equal(world->partitions[0]->records_out, before + reading.read.records);
    esk_read_release(&reading.read);

    read_begin(world, 0, &reading, 3, UINT64_MAX, 0); /* up to the tail: it comes back */
    run_all(world);
    assert_int_equal(reading.done, 1);
    assert_false(reading.read.away);
    assert_int_equal(reading.read.next_offset, RECORDS);
    esk_read_release(&reading.read);
}

/* It ends well with what it found, however much of that is gone when the partition hears of it. */
static void a_partition_and_its_shard_may_end_while_a_read_is_away(void **state) {
    struct world *world = *state;
    struct reading first, second;
    expect_read(world, 3, 1, 1); /* opens the file */
    read_begin(world, 0, &first, 3, 80000, 0);
    read_begin(world, 0, &second, 3, UINT64_MAX, 0);
    uint64_t id = FIRST_GROUP;
    struct esk_partition_removal removal = {.group_ids = &id, .count = 1, .done = removed};
    esk_shard_remove_partitions(world->shard, &removal);
    esk_shard_stop(world->shard, on_stopped, world);
    struct executor *executor = (struct executor *)reader.loop;
    struct executor held = *executor; /* its mails */
    executor_init(executor);
    advance(world, UINT64_C(10000000000));
    assert_int_equal(first.done, 0);
    assert_int_equal(second.done, 0);
    assert_int_equal(world->stopped, 0);
    *executor = held;
    while (run_one(executor)) {
    }
    assert_int_equal(first.done, 1);
    assert_int_equal(first.err, ESK_OK);
    advance(world, UINT64_C(1000000000));
    assert_int_equal(world->stopped, 1);
    assert_int_equal(second.done, 1);
    assert_int_equal(second.err, ESK_OK);
    esk_read_release(&first.read);
    esk_read_release(&second.read);
    esk_shard_destroy(world->shard);
    world->shard = NULL;
}

static void after_a_restart_files_and_indexes_are_opened_by_need(void **state) {
    struct world *world = *state;
    world_stop(world);
    assert_int_equal(world_start(world), ESK_OK);
    assert_int_equal(world->shard->open_files, 0);
    for (uint64_t offset = RECORDS; offset-- > 0;) {
        expect_read(world, offset, 1, 1);
    }
    assert_int_equal(world->shard->open_files, world->options.open_files_max);
    size_t with_index = 0;
    for (size_t i = 0; i < world->partitions[0]->segment_count; i++) {
        const struct eski_segment *segment = world->partitions[0]->segments[i];
        with_index += segment->stored && segment->index_ready;
    }
    assert_true(with_index <= world->options.open_files_max); /* memory does not grow with reads */
}

static void reads_for_which_a_turn_has_no_bytes_left_go_on_in_the_next(void **state) {
    struct world *world = *state;
    struct reading readings[3];
    uint64_t numbers[RECORDS];
    for (int cold = 0; cold < 2; cold++) {
        world->storage.disk.cold = cold;
        world->shard->read_bytes = reader.read_bytes = 1u << 20;
        for (uint64_t i = 0; i < 3; i++) {
            read_begin(world, 0, &readings[i], 10 * i, UINT64_MAX, 0);
            assert_int_equal(readings[i].done, 0);
        }
        run_all(world);
        for (uint64_t i = 0; i < 3; i++) {
            assert_int_equal(readings[i].done, 1);
            assert_int_equal(read_numbers(&readings[i], numbers), RECORDS - 10 * i);
            assert_int_equal(numbers[0], 10 * i);
            esk_read_release(&readings[i].read);
        }
    }
}

static void a_read_at_the_end_waits_for_a_record_or_its_time(void **state) {
    struct world *world = *state;
    struct reading first, second;
    read_begin(world, 0, &first, RECORDS, 1, 1000);
    read_begin(world, 0, &second, RECORDS + 1, 1, 1000);
    run_all(world);
    assert_int_equal(first.done + second.done, 0);
    assert_int_equal(write_number(world, 0, RECORDS, 10), ESK_OK);
    assert_int_equal(first.done, 1);
    assert_int_equal(first.read.part_count, 1);
    assert_int_equal(second.done, 0); /* it is not its record */
    advance(world, 1000000000);
    assert_int_equal(second.done, 1);
    assert_int_equal(second.err, ESK_OK);
    assert_int_equal(second.read.part_count, 0);
    assert_int_equal(second.read.next_offset, RECORDS + 1);
    esk_read_release(&first.read);
    esk_read_release(&second.read);
}

static void waits_end_when_cancelled_and_before_a_stop(void **state) {
    struct world *world = *state;
    struct reading first, second, third;
    read_begin(world, 0, &first, RECORDS, 1, 30000);
    esk_partition_read_cancel(&first.read);
    assert_int_equal(first.done, 1);
    read_begin(world, 0, &second, RECORDS, 1, 30000);
    esk_shard_end_waits(world->shard);
    assert_int_equal(second.done, 1);
    read_begin(world, 0, &third, RECORDS, 1, 30000); /* and none waits from now on */
    assert_int_equal(third.done, 1);
    assert_int_equal(third.err, ESK_OK);
    esk_read_release(&first.read);
    esk_read_release(&second.read);
    esk_read_release(&third.read);
}

static struct fake_node *segment_node(struct world *world, uint64_t base_offset) {
    char path[100];
    snprintf(path, sizeof(path), "/data/groups/0000000000000064/%020llu.segment",
             (unsigned long long)base_offset);
    struct fake_node *node = fake_find(&world->storage.disk, path);
    assert_non_null(node);
    return node;
}

static void a_damaged_batch_is_never_served_and_what_lies_before_it_is(void **state) {
    struct world *world = *state;
    const struct eski_segment *segment = world->partitions[0]->segments[1];
    uint64_t base = segment->base_offset;
    struct fake_node *node = segment_node(world, base);
    uint64_t batch = segment->bytes / (segment->end_offset - base);
    uint64_t third = ESK_SEGMENT_HEADER_BYTES + 2 * batch;
    static const uint64_t places[] = {0, 7, 8, 11, 16, 17, 23, 40, 60, 61, 200}; /* of the batch */
    for (int cold = 0; cold < 2; cold++) {
        world->storage.disk.cold = cold;
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
            struct reading reading;
            uint64_t numbers[RECORDS];
            node->bytes[third + places[i]] ^= 0x40;
            read_begin(world, 0, &reading, base, UINT64_MAX, 0);
            run_all(world);
            assert_int_equal(reading.err, ESK_OK);
            assert_int_equal(read_numbers(&reading, numbers), 2);
            esk_read_release(&reading.read);
            read_begin(world, 0, &reading, base + 2, UINT64_MAX, 0);
            run_all(world);
            assert_int_equal(reading.err, ESK_ERR_CORRUPT);
            assert_non_null(strstr(reading.read.error.text, "0000000000000064"));
            esk_read_release(&reading.read);
            node->bytes[third + places[i]] ^= 0x40;
        }
    }
    expect_read(world, base, UINT64_MAX, RECORDS - base);
}

static void a_truncated_segment_is_an_error_not_an_end(void **state) {
    struct world *world = *state;
    uint64_t base = world->partitions[0]->segments[1]->base_offset;
    struct fake_node *node = segment_node(world, base);
    fake_resize(&world->storage.disk, node, ESK_SEGMENT_HEADER_BYTES + 700);
    world->storage.disk.cold = true;
    struct reading reading;
    read_begin(world, 0, &reading, base + 1, UINT64_MAX, 0);
    run_all(world);
    assert_int_equal(reading.err, ESK_ERR_CORRUPT);
    esk_read_release(&reading.read);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_AWAY(name) cmocka_unit_test_setup_teardown(name, setup_away, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_offset_reads_warm_and_cold_alone_and_with_the_rest),
        TEST(after_a_restart_files_and_indexes_are_opened_by_need),
        TEST(reads_for_which_a_turn_has_no_bytes_left_go_on_in_the_next),
        TEST(a_read_at_the_end_waits_for_a_record_or_its_time),
        TEST(waits_end_when_cancelled_and_before_a_stop),
        TEST(a_damaged_batch_is_never_served_and_what_lies_before_it_is),
        TEST(a_truncated_segment_is_an_error_not_an_end),
        TEST_AWAY(every_offset_reads_warm_and_cold_alone_and_with_the_rest),
        TEST_AWAY(reads_for_which_a_turn_has_no_bytes_left_go_on_in_the_next),
        TEST_AWAY(a_damaged_batch_is_never_served_and_what_lies_before_it_is),
        TEST_AWAY(what_the_cache_has_is_copied_and_told_in_the_readers_loop),
        TEST_AWAY(a_partition_and_its_shard_may_end_while_a_read_is_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
