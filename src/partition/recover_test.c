/* SPDX-License-Identifier: Apache-2.0 */
/* What recovery makes of files that are missing, left over or later than the journal, and that what
 * a checkpoint names is durable by then. */
#include "partition/shard_fixture.inc"

#define GROUP_FOLDER "/data/groups/0000000000000064"

static int setup(void **state) {
    struct world *world = world_create(false);
    *state = world;
    assert_int_equal(world_start(world), ESK_OK);
    for (uint64_t number = 0; number < 60; number++) {
        assert_int_equal(write_number(world, 0, number, 400), ESK_OK);
    }
    world_stop(world);
    return 0;
}

static int teardown(void **state) {
    world_destroy(*state);
    return 0;
}

static void remove_file(struct world *world, uint64_t base_offset, const char *suffix) {
    char path[100];
    snprintf(path, sizeof(path), GROUP_FOLDER "/%020llu%s", (unsigned long long)base_offset,
             suffix);
    assert_int_equal(esk_path_remove(&world->storage.disk.platform, path, NULL), ESK_OK);
}

static uint64_t base_of(struct world *world, size_t segment) {
    struct esk_segment_file *files;
    size_t count;
    assert_int_equal(esk_segment_list(&world->storage.storage, FIRST_GROUP, &files, &count, NULL),
                     ESK_OK);
    assert_true(segment + 1 < count);
    uint64_t base = files[segment].base_offset;
    free(files);
    return base;
}

static void expect_refused(struct world *world, const char *name) {
    assert_int_equal(world_start(world), ESK_ERR_CORRUPT);
    assert_non_null(strstr(world->error.text, name));
}

static void a_missing_segment_or_index_is_named(void **state) {
    struct world *world = *state;
    char name[32];
    snprintf(name, sizeof(name), "%020llu", (unsigned long long)base_of(world, 2));
    remove_file(world, base_of(world, 2), ".index");
    expect_refused(world, name);
    expect_refused(world, name); /* and nothing was removed meanwhile */
    remove_file(world, base_of(world, 2), ".segment");
    expect_refused(world, name);
    assert_int_equal(base_of(world, 0), 0);
}

static void pass_done(struct esk_retention_pass *pass) {
    pass->link.next = NULL;
}

/* A removal cut off by a power loss: of the files below the log start any may be left. */
static void what_is_left_below_the_log_start_goes(void **state) {
    struct world *world = *state;
    static const struct {
        size_t segment;
        const char *suffix;
    } gone[] = {{0, ".index"}, {1, ".segment"}, {1, ".index"}};
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        struct fake_disk *disk = &world->storage.disk;
        uint64_t bases[4];
        for (size_t s = 0; s < 4; s++) {
            bases[s] = base_of(world, s);
        }
        world->retention_bytes = 8000;
        assert_int_equal(world_start(world), ESK_OK);
        disk->fail_in = 0;
        struct esk_retention_pass pass = {.done = pass_done};
        esk_shard_run_retention(world->shard, &pass);
        while (world->partitions[0]->log_start == bases[0]) { /* applied, and no file gone yet */
            assert_true(run_one(&world->loop) + run_one(&world->workers[1]) +
                            run_one(&world->workers[2]) >
                        0);
        }
        remove_file(world, bases[gone[i].segment], gone[i].suffix);
        assert_int_equal(world_crash(world), ESK_OK);
        uint64_t start = world->partitions[0]->log_start;
        assert_true(start >= bases[3]);
        expect_numbers(world, 0, start, world->partitions[0]->next_offset);
        for (uint64_t number = world->partitions[0]->next_offset, to = number + 60; number < to;
             number++) {
            assert_int_equal(write_number(world, 0, number, 400), ESK_OK);
        }
        world_stop(world);
        assert_true(base_of(world, 0) >= start - 20);
    }
}

static void segments_of_a_group_that_the_journal_does_not_know_stay(void **state) {
    struct world *world = *state;
    struct fake_disk *disk = &world->storage.disk;
    for (size_t i = 0; i < disk->count; i++) { /* the journal is lost */
        const char *path = disk->nodes[i]->path;
        if (path != NULL && strncmp(path, JOURNAL "/", strlen(JOURNAL "/")) == 0) {
            assert_int_equal(esk_path_remove(&disk->platform, path, NULL), ESK_OK);
            i = 0;
        }
    }
    expect_refused(world, "journal knows nothing");
    struct esk_segment_file *files;
    size_t count;
    assert_int_equal(esk_segment_list(&world->storage.storage, FIRST_GROUP, &files, &count, NULL),
                     ESK_OK);
    assert_true(count > 5);
    free(files);
}

static void a_journal_that_lost_its_end_is_noticed_and_nothing_cut(void **state) {
    struct world *world = *state;
    struct fake_disk *disk = &world->storage.disk;
    assert_int_equal(world_start(world), ESK_OK);
    char *kept = NULL;
    struct fake_node *journal = NULL;
    for (size_t i = 0; i < disk->count; i++) { /* the newest file, as it is now */
        char *path = disk->nodes[i]->path;
        if (path != NULL && strstr(path, ".journal") != NULL &&
            (kept == NULL || strcmp(path, kept) > 0)) {
            kept = path;
            journal = disk->nodes[i];
        }
    }
    kept = esk_text_copy(kept);
    uint64_t size = journal->size;
    uint8_t *bytes = esk_alloc(size);
    memcpy(bytes, journal->bytes, size);
    for (uint64_t number = 60; number < 160; number++) {
        assert_int_equal(write_number(world, 0, number, 400), ESK_OK);
    }
    world_stop(world);
    journal = fake_find(disk, kept);
    uint64_t whole_size = journal->size;
    uint8_t *whole = journal->bytes;
    journal->bytes = bytes; /* cut back to the start */
    journal->size = size;
    expect_refused(world, JOURNAL);
    journal = fake_find(disk, kept);
    free(journal->bytes);
    journal->bytes = whole;
    journal->size = whole_size;
    free(kept);
    assert_int_equal(world_start(world), ESK_OK);
    expect_numbers(world, 0, 0, 160);
}

/* A move that only seals leaves names that the next checkpoint needs. */
static void names_are_durable_before_a_checkpoint_that_writes_nothing_itself(void **state) {
    struct world *world = *state;
    assert_int_equal(world_start(world), ESK_OK);
    struct esk_partition *partition = world->partitions[0];
    struct esk_group_state group_state;
    bool checkpoint;
    for (uint64_t number = 60; number < 75; number++) { /* not enough to be moved by itself */
        assert_int_equal(write_number(world, 0, number, 400), ESK_OK);
    }
    size_t open = partition->segment_count - 1;
    assert_true(partition->tail.count > 0 && open > 0);
    const struct eski_segment *sealed = partition->segments[open - 1];
    uint64_t bytes = 0;
    for (size_t i = 0; i < partition->tail.count; i++) {
        const struct esk_tail_batch *batch = esk_tail_at(&partition->tail, i);
        bytes += batch->end_offset <= sealed->end_offset ? batch->block->size : 0;
    }
    struct eski_move *move = eski_move_create(partition, bytes, false);
    assert_non_null(move);
    assert_int_equal(eski_move_execute(move), ESK_OK);
    assert_int_equal(eski_move_finish(move, &checkpoint, &group_state, &world->error), ESK_OK);
    eski_move_destroy(move);
    eski_partition_let_go(partition);
    assert_true(sealed->stored);
    assert_int_equal(partition->segments[open]->written, 0);
    assert_true(fake_disk_dirty(&world->storage.disk, GROUP_FOLDER));
    move = eski_move_create(partition, 0, true); /* takes no batch: all that is before them */
    assert_non_null(move);
    assert_int_equal(eski_move_execute(move), ESK_OK);
    assert_int_equal(eski_move_finish(move, &checkpoint, &group_state, &world->error), ESK_OK);
    eski_move_destroy(move);
    eski_partition_let_go(partition);
    assert_true(checkpoint);
    assert_false(fake_disk_dirty(&world->storage.disk, GROUP_FOLDER));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_missing_segment_or_index_is_named),
        TEST(what_is_left_below_the_log_start_goes),
        TEST(segments_of_a_group_that_the_journal_does_not_know_stay),
        TEST(a_journal_that_lost_its_end_is_noticed_and_nothing_cut),
        TEST(names_are_durable_before_a_checkpoint_that_writes_nothing_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
