/* SPDX-License-Identifier: Apache-2.0 */
/* A shard as a whole: records and states through crashes, stops, removals, full and failing
 * disks. */
#include "partition/shard_fixture.inc"

static int setup(void **state) {
    *state = world_create(false);
    assert_int_equal(world_start(*state), ESK_OK);
    return 0;
}

static int setup_machine(void **state) {
    *state = world_create(true);
    assert_int_equal(world_start(*state), ESK_OK);
    return 0;
}

static int setup_relaxed(void **state) {
    struct world *world = world_create(false);
    world->options.journal.flush_every_records = 0;
    *state = world;
    assert_int_equal(world_start(world), ESK_OK);
    return 0;
}

static int teardown(void **state) {
    world_destroy(*state);
    return 0;
}

static void write_numbers(struct world *world, unsigned partition, uint64_t from, uint64_t to,
                          size_t size) {
    for (uint64_t number = from; number < to; number++) {
        assert_int_equal(write_number(world, partition, number, size), ESK_OK);
    }
}

/* --- records through crashes --- */

static void records_survive_crashes_and_stops(void **state) {
    struct world *world = *state;
    uint64_t count = 0;
    for (int round = 0; round < 6; round++) {
        write_numbers(world, 0, count, count + 30, 300);
        write_numbers(world, 1, count, count + 30, 10);
        count += 30;
        if (round % 3 == 2) {
            world_stop(world);
            assert_int_equal(world_start(world), ESK_OK);
            assert_int_equal(world->partitions[0]->tail.count, 0); /* all was checkpointed */
        } else {
            assert_int_equal(world_crash(world), ESK_OK);
        }
        expect_numbers(world, 0, 0, count);
        expect_numbers(world, 1, 0, count);
    }
    assert_true(world->partitions[0]->segment_count > 10);
    assert_true(world->shard->open_files <= world->options.open_files_max);
}

static void a_second_crash_before_anything_new_changes_nothing(void **state) {
    struct world *world = *state;
    write_numbers(world, 0, 0, 100, 500);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(world_crash(world), ESK_OK);
    }
    expect_numbers(world, 0, 0, 100);
}

static void nothing_acknowledged_is_lost_whichever_write_or_sync_fails(void **state) {
    struct world *world = *state;
    uint64_t count = 0;
    unsigned failures = 0;
    for (uint64_t call = 1; call < 60; call++) {
        uint64_t first = count;
        fake_disk_fail(&world->storage.disk, call, FAKE_WRITE | FAKE_SYNC, ESK_ERR_IO);
        struct write writes[20];
        for (unsigned i = 0; i < 20; i++) {
            write_begin(world, 2, &writes[i], count, 700);
            run_all(world);
            if (writes[i].done == 0 || writes[i].err != ESK_OK) {
                break;
            }
            count++;
        }
        failures += world->failed;
        assert_true(world->failed <= 1);
        assert_int_equal(world_crash(world), ESK_OK);
        /* What was not acknowledged may be there. */
        const struct esk_partition *partition = world->partitions[2];
        assert_true(partition->next_offset == count || partition->next_offset == count + 1);
        count = partition->next_offset;
        expect_numbers(world, 2, 0, count);
        assert_true(count > first || call < 5);
    }
    assert_true(failures > 20);
}

/* --- removal --- */

static void removed(struct esk_partition_removal *removal) {
    removal->count = 0;
}

static void a_removed_partition_gives_back_all_that_it_admitted(void **state) {
    struct world *world = *state;
    struct write writes[8];
    struct reading reading;
    write_numbers(world, 1, 0, 10, 500); /* in the tail */
    for (unsigned i = 0; i < 8; i++) {
        write_begin(world, 1, &writes[i], i, 500); /* on their way; then waiting for room */
        world->shard->options.tail_bytes_max = i < 4 ? 64u << 10 : 1;
    }
    read_begin(world, 1, &reading, 1000, 1, 30000);
    uint64_t id = FIRST_GROUP + 1;
    struct esk_partition_removal removal = {.group_ids = &id, .count = 1, .done = removed};
    esk_shard_remove_partitions(world->shard, &removal);
    world->shard->options.tail_bytes_max = 64u << 10;
    run_all(world);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(writes[i].done, 1);
        assert_int_equal(writes[i].err, ESK_ERR_NOT_FOUND);
    }
    assert_int_equal(reading.done, 1);
    assert_int_equal(reading.err, ESK_ERR_NOT_FOUND);
    assert_int_equal(removal.count, 0);
    assert_int_equal(world->shard->tail_bytes, 0);
    assert_int_equal(world->shard->reserved_bytes, 0);
    assert_null(esk_shard_find(world->shard, id));
}

static void a_partition_may_be_removed_while_it_is_moved_and_read(void **state) {
    struct world *world = *state;
    struct reading reading;
    write_numbers(world, 1, 0, 60, 500);
    world->storage.disk.cold = true;
    assert_true(world->partitions[1]->moved_offset > 0);
    struct write write;
    write_begin(world, 1, &write, 60, 20000); /* its tail is to be moved */
    while (!world->shard->moving) {
        assert_true(
            run_one(&world->loop) + run_one(&world->workers[1]) + run_one(&world->workers[2]) > 0);
    }
    read_begin(world, 1, &reading, 0, 1u << 20, 0); /* cold: a helper's */
    assert_int_equal(reading.done, 0);
    uint64_t id = FIRST_GROUP + 1;
    struct esk_partition_removal removal = {.group_ids = &id, .count = 1, .done = removed};
    esk_shard_remove_partitions(world->shard, &removal);
    run_all(world);
    assert_int_equal(reading.done, 1);
    esk_read_release(&reading.read);
    assert_int_equal(world->shard->tail_bytes, 0);
    assert_false(fake_disk_has(&world->storage.disk, "/data/groups/0000000000000065"));
    assert_int_equal(world->failed, 0);
}

/* --- admission --- */

static void many_small_tails_make_room_for_a_large_submit(void **state) {
    struct world *world = *state;
    for (unsigned p = 0; p < PARTITIONS_MAX; p++) { /* 40 of 64 KiB, none large by itself */
        write_numbers(world, p, 0, 20, 400);
    }
    assert_true(world->shard->tail_bytes > 30000);
    assert_int_equal(write_number(world, 0, 20, 45000), ESK_OK); /* by itself: the clock stands */
    expect_numbers(world, 0, 0, 21);
}

static void the_ballast_is_made_behind_the_first_answer_and_shrinks_when_idle(void **state) {
    struct world *world = *state;
    struct fake_disk *disk = &world->storage.disk;
    assert_false(fake_disk_has(disk, "/data/reserve"));
    assert_int_equal(write_number(world, 0, 0, 10), ESK_OK);
    assert_int_equal(fake_find(disk, "/data/reserve")->size, 64u << 10);
    esk_reserve_grow(world->storage.storage.reserve, 200u << 10, NULL);
    assert_int_equal(fake_find(disk, "/data/reserve")->size, 256u << 10);
    for (int i = 0; i < 2; i++) { /* the first pass sees that something was admitted */
        eski_ballast_shrink_if_idle(world->shard);
        run_all(world);
    }
    assert_int_equal(fake_find(disk, "/data/reserve")->size, 64u << 10);
}

static void a_full_disk_refuses_serves_and_recovers(void **state) {
    struct world *world = *state;
    struct fake_disk *disk = &world->storage.disk;
    uint64_t count = 0;
    write_numbers(world, 0, 0, 40, 1000);
    count = 40;
    disk->capacity = disk->used + (100u << 10);
    enum esk_err err = ESK_OK;
    for (int i = 0; i < 2000 && err == ESK_OK; i++) {
        struct write write;
        write_begin(world, 0, &write, count, 1000);
        advance(world, 3000000000);
        assert_int_equal(write.done, 1);
        err = write.err;
        count += err == ESK_OK;
    }
    assert_int_equal(err, ESK_ERR_NO_SPACE);
    expect_numbers(world, 0, 0, count);
    disk->capacity = 1u << 30;
    advance(world, 1000000000);
    (void)write_number(world, 0, count, 10); /* this one may still tell it to look again */
    advance(world, 1000000000);
    count = world->partitions[0]->next_offset;
    assert_int_equal(write_number(world, 0, count, 10), ESK_OK);
    expect_numbers(world, 0, 0, count + 1);
    assert_int_equal(world->failed, 0);
    disk->capacity = disk->used;
    world_stop(world); /* does not wait for room */
    disk->capacity = 1u << 30;
    assert_int_equal(world_start(world), ESK_OK);
    expect_numbers(world, 0, 0, count + 1);
}

/* --- relaxed flushes --- */

static void relaxed_answers_come_with_the_write_and_a_stop_does_not_wait(void **state) {
    struct world *world = *state;
    write_numbers(world, 0, 0, 100, 100); /* the clock stands: no flush is due for an hour */
    assert_true(world->partitions[0]->durable_index < world->partitions[0]->applied_index);
    expect_numbers(world, 0, 0, 100);
    world_stop(world);
    assert_false(fake_disk_dirty(&world->storage.disk, JOURNAL));
    assert_int_equal(world_start(world), ESK_OK);
    expect_numbers(world, 0, 0, 100);
}

static void relaxed_tails_at_their_bound_are_made_durable_and_moved(void **state) {
    struct world *world = *state;
    write_numbers(world, 0, 0, 200, 1000); /* three times what the tails may hold */
    expect_numbers(world, 0, 0, 200);
}

static void pass_done(struct esk_retention_pass *pass) {
    pass->link.next = NULL;
}

static void files_go_only_behind_a_durable_log_start(void **state) {
    struct world *world = *state;
    for (unsigned p = 0; p < 4; p++) {
        write_numbers(world, p, 0, 60, 500);
    }
    advance(world, UINT64_C(1000000000));
    world_stop(world); /* checkpoints: only what lies below them may go */
    world->retention_bytes = 8000;
    assert_int_equal(world_start(world), ESK_OK);
    struct esk_retention_pass pass = {.done = pass_done};
    esk_shard_run_retention(world->shard, &pass);
    run_all(world);
    assert_null(pass.link.next);
    assert_true(pass.segments_deleted >= 8);
    for (unsigned p = 0; p < 4; p++) {
        assert_int_equal(world->partitions[p]->durable_index, world->partitions[p]->applied_index);
        expect_numbers(world, p, world->partitions[p]->log_start, 60);
    }
    assert_int_equal(world_crash(world), ESK_OK);
    expect_numbers(world, 3, world->partitions[3]->log_start, 60);
    assert_true(world->partitions[3]->log_start > 0);
}

static void retention_settles_what_it_waits_for(void **state) {
    struct world *world = *state;
    struct esk_partition_settings settings = world->partitions[0]->settings;
    settings.retention = true;
    settings.retention_bytes = 8000;
    esk_partition_configure(world->partitions[0], &settings);
    write_numbers(world, 0, 0, 60, 500); /* sealed segments, all still in the tail */
    struct esk_retention_pass pass = {.done = pass_done};
    esk_shard_run_retention(world->shard, &pass);
    run_all(world);
    esk_shard_run_retention(world->shard, &pass);
    run_all(world);
    assert_true(pass.segments_deleted >= 2);
    expect_numbers(world, 0, world->partitions[0]->log_start, 60);
}

/* --- stops --- */

static void a_stop_waits_for_a_pass_that_it_overtakes(void **state) {
    struct world *world = *state;
    write_numbers(world, 0, 0, 60, 500);
    world_stop(world);
    world->retention_bytes = 8000;
    assert_int_equal(world_start(world), ESK_OK);
    struct esk_retention_pass pass = {.done = pass_done};
    esk_shard_run_retention(world->shard, &pass);
    world_stop(world); /* before the pass has run at all */
    assert_null(pass.link.next);
    assert_int_equal(world_start(world), ESK_OK);
    expect_numbers(world, 0, world->partitions[0]->log_start, 60);
}

static void a_shard_that_was_opened_but_not_started_can_be_closed(void **state) {
    struct world *world = *state;
    write_numbers(world, 0, 0, 20, 100);
    world_stop(world);
    world->stopped = 0;
    world->worker_count = 0;
    executor_init(&world->loop);
    world->options.helpers = world_worker_create(NULL, "helper", 1);
    assert_int_equal(world_recover(world), ESK_OK);
    assert_int_equal(esk_shard_open(world->shard, &world->error), ESK_OK);
    world_stop(world);
    assert_int_equal(world_start(world), ESK_OK);
    expect_numbers(world, 0, 0, 20);
}

/* --- machines --- */

static void expect_machine(const struct world *world, size_t count) {
    assert_int_equal(world->numbers.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(world->numbers.items[i], i);
    }
}

static void a_machine_survives_crashes_and_snapshots(void **state) {
    struct world *world = *state;
    size_t count = 0;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 6; i++) {
            struct write write;
            write_entry(world, &write, count++);
            run_all(world);
            assert_int_equal(write.err, ESK_OK);
        }
        if (round % 2 == 0) {
            assert_int_equal(world_crash(world), ESK_OK);
        } else {
            world_stop(world);
            assert_int_equal(world_start(world), ESK_OK);
        }
        expect_machine(world, count);
    }
}

static struct world *moving_world;
static bool move_was_made;

static void move_when_done(struct esk_submit *submit, enum esk_err err) {
    write_done(submit, err);
    struct eski_move *move = eski_move_create(moving_world->partitions[0], 1, true);
    move_was_made = move != NULL;
    if (move != NULL) {
        eski_move_destroy(move);
    }
}

/* Between applied and durable the state is ahead of the index that a checkpoint might name. */
static void a_snapshot_is_never_named_by_an_earlier_index(void **state) {
    struct world *world = *state;
    struct write writes[2];
    write_entry(world, &writes[0], 0);
    run_all(world);
    write_entry(world, &writes[1], 1);
    writes[1].submit.done = move_when_done;
    moving_world = world;
    move_was_made = true;
    run_all(world);
    assert_int_equal(writes[1].done, 1);
    assert_false(move_was_made);
}

/* While recovering, moves run ahead of what the journal names. */
static void settling_keeps_the_snapshot_that_the_journal_names(void **state) {
    struct world *world = *state;
    struct write writes[3];
    write_entry(world, &writes[0], 0);
    run_all(world);
    world_stop(world); /* the journal names a snapshot with one number */
    assert_int_equal(world_start(world), ESK_OK);
    write_entry(world, &writes[1], 1);
    run_all(world);
    uint64_t named = world->partitions[0]->checkpoint.snapshot_index;
    assert_int_equal(world_crash(world), ESK_OK);
    world_stop(world);
    world->numbers = (struct numbers){.machine = {&numbers_ops, ESK_ENTRY_CATALOGUE}};
    assert_int_equal(world_recover(world), ESK_OK);
    named = world->partitions[0]->checkpoint.snapshot_index;
    struct esk_group_state *states;
    size_t count;
    for (int i = 0; i < 2; i++) {
        world->partitions[0]->applied_index++; /* as if one entry more was replayed */
        world->partitions[0]->durable_index++;
        world->partitions[0]->machine_changed = true;
        assert_int_equal(esk_shard_settle(world->shard, &states, &count, &world->error), ESK_OK);
        free(states);
    }
    char path[100];
    snprintf(path, sizeof(path), "/data/groups/0000000000000064/%020llu.snapshot",
             (unsigned long long)named);
    assert_true(fake_disk_has(&world->storage.disk, path));
    esk_shard_destroy(world->shard);
    world->shard = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define RELAXED(name) cmocka_unit_test_setup_teardown(name, setup_relaxed, teardown)
#define MACHINE(name) cmocka_unit_test_setup_teardown(name, setup_machine, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(records_survive_crashes_and_stops),
        TEST(a_second_crash_before_anything_new_changes_nothing),
        TEST(nothing_acknowledged_is_lost_whichever_write_or_sync_fails),
        TEST(a_removed_partition_gives_back_all_that_it_admitted),
        TEST(a_partition_may_be_removed_while_it_is_moved_and_read),
        TEST(many_small_tails_make_room_for_a_large_submit),
        TEST(the_ballast_is_made_behind_the_first_answer_and_shrinks_when_idle),
        TEST(a_full_disk_refuses_serves_and_recovers),
        RELAXED(relaxed_answers_come_with_the_write_and_a_stop_does_not_wait),
        RELAXED(relaxed_tails_at_their_bound_are_made_durable_and_moved),
        RELAXED(files_go_only_behind_a_durable_log_start),
        TEST(retention_settles_what_it_waits_for),
        TEST(a_stop_waits_for_a_pass_that_it_overtakes),
        TEST(a_shard_that_was_opened_but_not_started_can_be_closed),
        MACHINE(a_machine_survives_crashes_and_snapshots),
        MACHINE(a_snapshot_is_never_named_by_an_earlier_index),
        MACHINE(settling_keeps_the_snapshot_that_the_journal_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
