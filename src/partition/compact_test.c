/* SPDX-License-Identifier: Apache-2.0 */
/* Passes of compaction: what is read during and after them, what a crash at any call leaves, and
 * what retention, deletions, reads and a stop make of one that runs. */
#include "partition/shard_fixture.inc"

#define KEYS 7
#define RECORDS 120

static int setup(void **state) {
    struct world *world = world_create(false);
    *state = world;
    world->compaction = true;
    world->tombstone_retention_ms = 86400000;
    return 0;
}

static int teardown(void **state) {
    world_destroy(*state);
    return 0;
}

/* --- records with keys --- */

/* Number n has the key n % KEYS, so the newest of each key are the last KEYS. value_size 0: a
 * tombstone. */
static void write_keyed(struct world *world, uint64_t number, size_t value_size) {
    uint8_t value[512] = {0};
    uint8_t key = (uint8_t)(number % KEYS);
    struct esk_batch_builder builder;
    esk_store_u64(value, number);
    esk_batch_builder_begin(&builder, 1700000000000, 64);
    assert_int_equal(
        esk_batch_builder_add(&builder, esk_slice(&key, 1),
                              value_size == 0 ? esk_slice(NULL, 0) : esk_slice(value, value_size),
                              NULL, 0),
        ESK_OK);
    struct write write = {.submit = {.kind = ESK_ENTRY_BATCH,
                                     .block = esk_batch_builder_finish(&builder),
                                     .record_count = 1,
                                     .timestamp_ms = 1700000000000,
                                     .done = write_done}};
    esk_partition_submit(world->partitions[0], &write.submit);
    run_all(world);
    assert_int_equal(write.done, 1);
    assert_int_equal(write.err, ESK_OK);
}

static void write_many(struct world *world, uint64_t from, uint64_t to) {
    for (uint64_t number = from; number < to; number++) {
        write_keyed(world, number, 400);
    }
}

/* The offsets of the next records from `offset` on; offsets are numbers here. */
static size_t take_offsets(struct reading *reading, uint64_t from, uint64_t *offsets) {
    size_t count = 0;
    for (uint32_t i = 0; i < reading->read.part_count; i++) {
        const struct esk_read_part *part = &reading->read.parts[i];
        struct esk_slice bytes = esk_slice(part->block->data + part->position, part->size);
        while (bytes.size > 0) {
            struct esk_batch_header header;
            assert_int_equal(esk_batch_parse(bytes, &header, NULL), ESK_OK);
            assert_true(esk_batch_crc_valid(bytes.data, &header));
            struct esk_record_iterator iterator =
                esk_record_iterator(esk_slice(bytes.data + ESK_BATCH_HEADER_BYTES,
                                              header.size_bytes - ESK_BATCH_HEADER_BYTES),
                                    header.record_count);
            struct esk_record record;
            while (esk_record_next(&iterator, &record)) {
                uint64_t offset = (uint64_t)header.base_offset + (uint64_t)record.offset_delta;
                assert_int_equal(record.key.data[0], offset % KEYS);
                assert_true(record.value.size == 0 || esk_load_u64(record.value.data) == offset);
                if (offset >= from) {
                    offsets[count++] = offset;
                }
            }
            assert_false(iterator.failed);
            bytes = esk_slice(bytes.data + header.size_bytes, bytes.size - header.size_bytes);
        }
    }
    return count;
}

static bool present[4096];

/* Reads all from `offset` on, into `present`. */
static void scan_from(struct world *world, uint64_t offset) {
    uint64_t high_watermark = UINT64_MAX;
    memset(present, 0, sizeof(present));
    while (offset < high_watermark) {
        struct reading reading;
        uint64_t offsets[600];
        read_begin(world, 0, &reading, offset, 3000, 0);
        run_all(world);
        assert_int_equal(reading.done, 1);
        assert_int_equal(reading.err, ESK_OK);
        high_watermark = reading.read.high_watermark;
        size_t count = take_offsets(&reading, offset, offsets);
        for (size_t i = 0; i < count; i++) {
            assert_false(present[offsets[i]]);
            present[offsets[i]] = true;
        }
        esk_read_release(&reading.read);
        assert_true(reading.read.next_offset > offset || offset >= high_watermark);
        offset = reading.read.next_offset;
    }
}

/* Everything from the open segment on is there, and of what is below the newest of each key. */
static void expect_newest(struct world *world, uint64_t end) {
    uint64_t newest[KEYS] = {0};
    uint64_t settled =
        world->partitions[0]->segments[eski_settled_segments(world->partitions[0])]->base_offset;
    scan_from(world, 0);
    for (uint64_t number = 0; number < settled; number++) {
        newest[number % KEYS] = number;
    }
    for (uint64_t number = 0; number < end; number++) {
        bool kept = number >= settled || newest[number % KEYS] == number;
        assert_int_equal(present[number], kept);
    }
}

/* In the middle of passes: nothing newest is missing. */
static void expect_no_loss(struct world *world, uint64_t end) {
    scan_from(world, 0);
    for (uint64_t number = end - KEYS; number < end; number++) {
        assert_true(present[number]);
    }
}

/* --- passes --- */

struct pass {
    struct esk_compaction_pass pass;
    unsigned done;
};

static void pass_done(struct esk_compaction_pass *base) {
    ESK_CONTAINER(base, struct pass, pass)->done++;
}

static void pass_begin(struct world *world, struct pass *pass) {
    *pass = (struct pass){.pass = {.done = pass_done, .everything = true}};
    esk_shard_run_compaction(world->shard, &pass->pass);
}

static void run_pass(struct world *world, struct pass *pass) {
    pass_begin(world, pass);
    for (int i = 0; i < 100 && pass->done == 0 && world->failed == 0; i++) {
        advance(world, UINT64_C(100000000));
    }
    assert_true(pass->done == 1 || world->failed > 0);
}

static struct executor *cleaner_of(struct world *world) {
    assert_non_null(world->shard->cleaner);
    return (struct executor *)world->shard->cleaner;
}

/* Everything but the cleaner. */
static void run_others(struct world *world) {
    bool ran = true;
    while (ran) {
        ran = run_one(&world->loop);
        for (unsigned i = 0; i < world->worker_count; i++) {
            ran |= &world->workers[i].loop.executor != world->shard->cleaner &&
                   run_one(&world->workers[i]);
        }
    }
}

/* Until the cleaner has a job to write segments anew. */
static void run_to_rewrite(struct world *world, struct pass *pass) {
    pass_begin(world, pass);
    while (true) {
        run_others(world);
        bool marked = false;
        for (size_t i = 0; i < world->partitions[0]->segment_count; i++) {
            marked |= world->partitions[0]->segments[i]->compacting;
        }
        if (marked) {
            return;
        }
        assert_true(run_one(cleaner_of(world)));
    }
}

static void expect_files(struct world *world) {
    const struct esk_partition *partition = world->partitions[0];
    struct esk_segment_file *files;
    size_t count;
    assert_int_equal(esk_segment_list(&world->storage.storage, FIRST_GROUP, &files, &count, NULL),
                     ESK_OK);
    size_t expected = 0;
    for (size_t i = 0; i < partition->segment_count; i++) {
        const struct eski_segment *segment = partition->segments[i];
        if (segment->on_disk) {
            assert_true(expected < count);
            assert_int_equal(files[expected].base_offset, segment->base_offset);
            assert_int_equal(files[expected].revision, segment->revision);
            assert_false(files[expected].lone_index);
            expected++;
        }
    }
    assert_int_equal(count, expected);
    free(files);
}

static void a_pass_keeps_the_newest_of_each_key_and_all_offsets(void **state) {
    struct world *world = *state;
    struct pass pass;
    assert_int_equal(world_start(world), ESK_OK);
    write_many(world, 0, RECORDS);
    uint64_t before = 0;
    struct esk_partition_figures figures;
    esk_partition_figures(world->partitions[0], &figures);
    before = figures.size_bytes;
    size_t sealed = world->partitions[0]->segment_count - 1;
    run_pass(world, &pass);
    expect_newest(world, RECORDS);
    expect_files(world);
    esk_partition_figures(world->partitions[0], &figures);
    assert_true(sealed > 8);
    assert_int_equal(pass.pass.segments_compacted, sealed); /* once, though some were also joined */
    assert_true(pass.pass.records_removed > 90);
    assert_int_equal(before - figures.size_bytes, pass.pass.bytes_freed);
    assert_int_equal(figures.high_watermark, RECORDS);
    assert_int_equal(figures.start_offset, 0);
    assert_true(figures.segments <= 3); /* small ones became one */
    run_pass(world, &pass);             /* nothing is left to do */
    assert_int_equal(pass.pass.segments_compacted, 0);
    assert_int_equal(world_crash(world), ESK_OK);
    expect_newest(world, RECORDS);
    expect_files(world);
    for (uint64_t offset = 0; offset < RECORDS; offset++) { /* a read in a gap gets what follows */
        scan_from(world, offset);
        assert_true(present[RECORDS - 1]);
    }
    run_pass(world, &pass); /* a restart does not begin from the start */
    assert_int_equal(pass.pass.segments_compacted, 0);
}

static void run_quiet_pass(struct world *world, struct pass *pass) {
    advance(world, UINT64_C(5000000000)); /* idle: what is sealed is settled */
    *pass = (struct pass){.pass = {.done = pass_done}};
    esk_shard_run_compaction(world->shard, &pass->pass);
    advance(world, UINT64_C(1000000000));
    assert_int_equal(pass->done, 1);
}

static void a_pass_in_the_background_waits_until_half_is_new(void **state) {
    struct world *world = *state;
    struct pass pass;
    assert_int_equal(world_start(world), ESK_OK);
    for (uint64_t number = 0; number < 60; number++) { /* without keys: they stay */
        assert_int_equal(write_number(world, 0, number, 400), ESK_OK);
    }
    run_pass(world, &pass);
    for (uint64_t number = 0; number < 20; number++) {
        write_keyed(world, 60 + number, 400);
    }
    run_quiet_pass(world, &pass);
    assert_int_equal(pass.pass.segments_compacted, 0);
    for (uint64_t number = 20; number < 100; number++) {
        write_keyed(world, 60 + number, 400);
    }
    run_quiet_pass(world, &pass);
    assert_true(pass.pass.records_removed > 70);
}

static void a_small_map_takes_several_rounds(void **state) {
    struct world *world = *state;
    struct pass pass;
    world->options.key_map_bytes = 0; /* 12 keys */
    world->options.tail_bytes_max = 1u << 20;
    assert_int_equal(world_start(world), ESK_OK);
    for (uint64_t number = 0; number < 300; number++) { /* 200 keys, then some of them again */
        uint8_t value[200] = {0};
        uint64_t key = number % 200;
        struct esk_batch_builder builder;
        esk_batch_builder_begin(&builder, 1700000000000, 64);
        assert_int_equal(esk_batch_builder_add(&builder, esk_slice(&key, sizeof(key)),
                                               esk_slice(value, sizeof(value)), NULL, 0),
                         ESK_OK);
        struct write write = {.submit = {.kind = ESK_ENTRY_BATCH,
                                         .block = esk_batch_builder_finish(&builder),
                                         .record_count = 1,
                                         .timestamp_ms = 1700000000000,
                                         .done = write_done}};
        esk_partition_submit(world->partitions[0], &write.submit);
        run_all(world);
        assert_int_equal(write.done, 1);
    }
    run_pass(world, &pass);
    const struct esk_partition *partition = world->partitions[0];
    uint64_t settled = partition->segments[eski_settled_segments(partition)]->base_offset;
    assert_true(settled > 250);
    assert_int_equal(pass.pass.records_removed, settled - 200);
    assert_int_equal(partition->cleaned_offset, settled);
}

/* The call fails, the broker ends and starts again on what is there. */
static void a_crash_at_any_call_loses_nothing_and_leaves_nothing(void **state) {
    struct world *world = *state;
    struct pass pass;
    bool failed = true;
    uint64_t end = 0;
    assert_int_equal(world_start(world), ESK_OK);
    for (uint64_t n = 1; failed; n++) {
        write_many(world, end, end + 45);
        end += 45;
        advance(world, UINT64_C(5000000000)); /* idle: all is settled */
        fake_disk_fail(&world->storage.disk, n, FAKE_ANY, ESK_ERR_IO);
        run_pass(world, &pass);
        failed = world->storage.disk.failed != 0;
        world->storage.disk.fail_in = 0;
        world->storage.disk.failed = 0;
        assert_int_equal(world_crash(world), ESK_OK);
        expect_no_loss(world, end);
        run_pass(world, &pass);
        assert_int_equal(world->failed, 0);
        expect_newest(world, end);
        expect_files(world);
        assert_true(end < 4000);
        n += n > 20 ? 2 : 0; /* each file takes some twenty calls */
    }
}

static void a_full_disk_leaves_the_partition_as_it_is(void **state) {
    struct world *world = *state;
    struct pass pass;
    assert_int_equal(world_start(world), ESK_OK);
    write_many(world, 0, RECORDS);
    advance(world, UINT64_C(5000000000));
    world->storage.disk.capacity = world->storage.disk.used + 100;
    run_pass(world, &pass);
    assert_int_equal(world->failed, 0);
    assert_int_equal(pass.pass.segments_compacted, 0);
    expect_files(world);
    world->storage.disk.capacity = 1u << 30;
    run_pass(world, &pass);
    assert_true(pass.pass.segments_compacted > 0);
    expect_newest(world, RECORDS);
}

static void retained(struct esk_retention_pass *pass) {
    pass->link.next = NULL;
}

static void retention_drops_what_is_written_anew_when_that_is_done(void **state) {
    struct world *world = *state;
    struct pass pass;
    struct esk_retention_pass retention = {.done = retained};
    world->retention_bytes = 3000;
    assert_int_equal(world_start(world), ESK_OK);
    write_many(world, 0, RECORDS);
    advance(world, UINT64_C(5000000000));
    run_to_rewrite(world, &pass);
    uint64_t first = world->partitions[0]->segments[0]->base_offset;
    esk_shard_run_retention(world->shard, &retention);
    run_others(world);
    assert_true(world->partitions[0]->log_start > 100);
    assert_int_equal(world->partitions[0]->segments[0]->base_offset, first);
    run_all(world);
    assert_int_equal(pass.done, 1);
    assert_true(world->partitions[0]->segments[0]->base_offset >= 100);
    expect_files(world);
    expect_no_loss(world, RECORDS);
    assert_int_equal(world_crash(world), ESK_OK);
    expect_no_loss(world, RECORDS);
    expect_files(world);
}

static void retention_on_demand_settles_what_is_due_first(void **state) {
    struct world *world = *state;
    struct esk_retention_pass retention = {.done = retained};
    world->compaction = false;
    world->retention_bytes = 3000;
    world->options.tail_bytes_max = 1u << 20;
    world->options.move_bytes = 1u << 20;
    assert_int_equal(world_start(world), ESK_OK);
    write_many(world, 0, RECORDS); /* all of it is in memory */
    assert_int_equal(world->partitions[0]->moved_offset, 0);
    esk_shard_run_retention(world->shard, &retention);
    run_all(world);
    assert_int_equal(retention.segments_deleted, 0);
    assert_null(world->shard->retention);
    write_many(world, RECORDS, 2 * RECORDS);
    retention.everything = true;
    esk_shard_run_retention(world->shard, &retention);
    run_all(world);
    assert_null(world->shard->retention);
    assert_true(retention.segments_deleted > 8);
    assert_int_equal(world->partitions[0]->segment_count, 1);
    world->storage.disk.capacity = world->storage.disk.used; /* no checkpoint will come */
    write_many(world, 2 * RECORDS, 3 * RECORDS);
    esk_shard_run_retention(world->shard, &retention);
    advance(world, UINT64_C(20000000000));
    assert_null(world->shard->retention);
    world->storage.disk.capacity = 1u << 30;
}

static void removal_done(struct esk_partition_removal *removal) {
    removal->count = 0;
}

static void a_removed_partition_s_files_go_behind_the_job(void **state) {
    struct world *world = *state;
    struct pass pass;
    static const uint64_t group = FIRST_GROUP;
    struct esk_partition_removal removal = {.group_ids = &group, .count = 1, .done = removal_done};
    assert_int_equal(world_start(world), ESK_OK);
    write_many(world, 0, RECORDS);
    advance(world, UINT64_C(5000000000));
    run_to_rewrite(world, &pass);
    esk_shard_remove_partitions(world->shard, &removal);
    run_others(world);
    assert_int_equal(removal.count, 1);
    assert_true(fake_disk_has(&world->storage.disk, "/data/groups/0000000000000064"));
    run_all(world);
    assert_int_equal(removal.count, 0);
    assert_int_equal(pass.done, 1);
    assert_false(fake_disk_has(&world->storage.disk, "/data/groups/0000000000000064"));
}

static void reads_go_on_over_a_segment_that_is_replaced(void **state) {
    struct world *world = *state;
    struct pass pass;
    struct reading readings[RECORDS];
    uint64_t offsets[600];
    for (int cold = 0; cold < 2; cold++) {
        uint64_t end = (uint64_t)(cold + 1) * RECORDS;
        if (cold == 0) {
            assert_int_equal(world_start(world), ESK_OK);
        }
        world->storage.disk.cold = cold;
        write_many(world, end - RECORDS, end);
        advance(world, UINT64_C(5000000000));
        run_to_rewrite(world, &pass);
        for (size_t i = 0; i < RECORDS; i++) { /* their helper runs behind the switch */
            read_begin(world, 0, &readings[i], i, 500, 0);
        }
        struct executor *helper = (struct executor *)world->options.helpers;
        struct esk_mail *queued = helper->first;
        executor_init(helper);
        run_all(world);
        assert_int_equal(pass.done, 1);
        for (struct esk_mail *next; queued != NULL; queued = next) {
            next = queued->next;
            esk_post(world->options.helpers, queued);
        }
        run_all(world);
        for (size_t i = 0; i < RECORDS; i++) {
            assert_int_equal(readings[i].done, 1);
            assert_int_equal(readings[i].err, ESK_OK);
            assert_true(take_offsets(&readings[i], i, offsets) > 0);
            assert_true(offsets[0] >= i);
            esk_read_release(&readings[i].read);
        }
        world->storage.disk.cold = false;
        expect_newest(world, end);
        expect_files(world);
    }
}

static void a_stop_ends_a_pass(void **state) {
    struct world *world = *state;
    struct pass pass;
    assert_int_equal(world_start(world), ESK_OK);
    write_many(world, 0, RECORDS);
    advance(world, UINT64_C(5000000000));
    run_to_rewrite(world, &pass);
    world_stop(world);
    assert_int_equal(pass.done, 1);
    assert_int_equal(world_start(world), ESK_OK);
    expect_no_loss(world, RECORDS);
    run_pass(world, &pass);
    expect_newest(world, RECORDS);
    expect_files(world);
}

static void tombstones_go_when_their_time_is_over(void **state) {
    struct world *world = *state;
    struct pass pass;
    world->tombstone_retention_ms = 0; /* the clock of the wall stands still here */
    assert_int_equal(world_start(world), ESK_OK);
    write_many(world, 0, 40);
    for (uint64_t number = 40; number < 47; number++) {
        write_keyed(world, number, 0);
    }
    for (uint64_t number = 0; number < 40; number++) { /* keyless ones, to roll the segment */
        assert_int_equal(write_number(world, 0, number, 400), ESK_OK);
    }
    run_pass(world, &pass);
    const struct esk_partition *partition = world->partitions[0];
    assert_true(partition->segments[eski_settled_segments(partition)]->base_offset >= 47);
    assert_int_equal(pass.pass.records_removed, 47);
    struct reading reading;
    read_begin(world, 0, &reading, 0, 1, 0);
    run_all(world);
    assert_int_equal(reading.err, ESK_OK);
    assert_int_equal(
        esk_load_u64(reading.read.parts[0].block->data + reading.read.parts[0].position), 47);
    esk_read_release(&reading.read);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_pass_keeps_the_newest_of_each_key_and_all_offsets),
        TEST(a_pass_in_the_background_waits_until_half_is_new),
        TEST(a_small_map_takes_several_rounds),
        TEST(a_crash_at_any_call_loses_nothing_and_leaves_nothing),
        TEST(a_full_disk_leaves_the_partition_as_it_is),
        TEST(retention_drops_what_is_written_anew_when_that_is_done),
        TEST(retention_on_demand_settles_what_is_due_first),
        TEST(a_removed_partition_s_files_go_behind_the_job),
        TEST(reads_go_on_over_a_segment_that_is_replaced),
        TEST(a_stop_ends_a_pass),
        TEST(tombstones_go_when_their_time_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
