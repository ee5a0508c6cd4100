/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a running journal: rolls, recycling, bounds, full and failing disks, and the ways of
 * writing other than O_DIRECT. */
#include "journal/fixture.inc"

static struct fixture f;

static int setup(void **unused) {
    (void)unused;
    fixture_init(&f);
    return 0;
}

static int teardown(void **unused) {
    (void)unused;
    fixture_fini(&f);
    return 0;
}

static void start(void) {
    fixture_recover(&f);
    fixture_reopen(&f);
    run_all(&f.fake);
}

/* Appends entries first..last of group 7, each a commit of its own. */
static void append_many(uint64_t first, uint64_t last) {
    for (uint64_t i = first; i <= last; i++) {
        append_index(&f, 7, i);
        run_all(&f.fake);
    }
}

static void assert_range(uint64_t first, uint64_t last) {
    struct esk_buffer expected;
    esk_buffer_init(&expected);
    for (uint64_t i = first; i <= last; i++) {
        esk_buffer_format(&expected, "7/%" PRIu64 ":%" PRIu64 " ", i, i);
    }
    esk_buffer_u8(&expected, 0);
    assert_entries(&f, (const char *)expected.data);
    esk_buffer_fini(&expected);
}

static void the_first_file_is_made_behind_the_first_answer(void **unused) {
    (void)unused;
    start();
    assert_null(f.journal->next);
    assert_int_equal(f.journal->current->prepared_bytes, 0);
    append_many(1, 1);
    assert_non_null(f.journal->next);
    assert_int_equal(f.journal->next->prepared_bytes, FILE_BYTES);
    append_many(2, 2);
    assert_int_equal(f.journal->current->prepared_bytes, FILE_BYTES);
}

/* Appends entries, one each so many ns, until so much of the current file is used. */
static void fill(uint64_t *index, uint64_t bytes, uint64_t ns) {
    while (f.journal->current->position < bytes) {
        advance(&f.fake, ns);
        append_many(*index, *index);
        (*index)++;
    }
}

static void the_next_file_is_made_in_time_for_the_pace(void **unused) {
    (void)unused;
    const uint64_t bytes = 16 * FILE_BYTES;
    uint64_t index = 2;
    f.options.file_bytes = bytes;
    f.options.held_bytes_max = 4 * bytes;
    start();
    append_many(1, 1);
    fill(&index, bytes / 4, 100000000);
    assert_int_equal(f.journal->current->prepared_bytes, bytes);
    assert_null(f.journal->next); /* there is time until it is half full */
    fill(&index, bytes / 8 * 3, 1000000);
    assert_non_null(f.journal->next); /* at this pace there is not */
    assert_true(f.journal->hurry);
}

static void files_are_recycled_once_checkpoints_pass(void **unused) {
    (void)unused;
    start();
    append_state(&f, 7, 1, 0);
    append_state(&f, 9, 5, 0); /* never stored again: it has to be carried */
    for (uint64_t i = 0; i < 20; i++) {
        append_many(i * 20 + 1, i * 20 + 20);
        append_state(&f, 7, 1, i * 20 + 15);
        run_all(&f.fake);
        advance(&f.fake, 20000000);
    }
    assert_true(f.journal->current->number > 15);
    assert_true(count_files(&f, ".journal") <= 4);
    assert_true(count_files(&f, ".spare") <= ESKI_SPARES_MAX);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_range(396, 400);
    assert_int_equal(esk_journal_recovery_find(f.recovery, 9)->term, 5);
}

static void without_room_for_a_spares_name_the_file_goes(void **unused) {
    (void)unused;
    start();
    f.fake.spare_result = ESK_ERR_NO_SPACE;
    append_state(&f, 7, 1, 0);
    for (uint64_t i = 0; i < 20; i++) {
        append_many(i * 20 + 1, i * 20 + 20);
        append_state(&f, 7, 1, i * 20 + 15);
        run_all(&f.fake);
        advance(&f.fake, 20000000);
    }
    assert_true(f.journal->current->number > 15);
    assert_true(count_files(&f, ".journal") <= 4);
    assert_int_equal(count_files(&f, ".spare"), 0);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_range(396, 400);
}

static void an_entry_above_its_checkpoint_holds_its_file(void **unused) {
    (void)unused;
    f.options.held_bytes_max = UINT64_MAX;
    start();
    append(&f, 3, 1, "held");
    run_all(&f.fake);
    for (uint64_t i = 0; i < 5; i++) {
        append_many(i * 20 + 1, i * 20 + 20);
        append_state(&f, 7, 1, i * 20 + 20);
        run_all(&f.fake);
    }
    assert_true(count_files(&f, ".journal") >= 6);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "3/1:held ");
    fixture_reopen(&f);
    append_state(&f, 3, 1, 1);
    run_all(&f.fake);
    advance(&f.fake, 100000000);
    assert_true(count_files(&f, ".journal") <= 3);
}

static void room_ends_at_the_bound_and_comes_back_with_a_checkpoint(void **unused) {
    (void)unused;
    enum esk_err err;
    start();
    uint64_t i = 0;
    while (esk_journal_has_room(f.journal, &err)) {
        append_many(i + 1, i + 1);
        i++;
    }
    assert_int_equal(err, ESK_ERR_AGAIN);
    assert_true(esk_journal_fullness(f.journal) >= 1);
    assert_true(i > 4 * 14 && i < 5 * 16);
    append_many(i + 1, i + 1); /* what was admitted still goes */
    assert_int_equal(f.rooms, 0);
    append_state(&f, 7, 1, i + 1);
    run_all(&f.fake);
    assert_int_equal(f.rooms, 1);
    assert_true(esk_journal_has_room(f.journal, &err));
    assert_true(esk_journal_fullness(f.journal) == 0);
}

static void a_full_disk_stalls_appends_until_there_is_room(void **unused) {
    (void)unused;
    enum esk_err err;
    start();
    f.fake.full = true;
    struct entry *entry = append(&f, 7, 1, "waits");
    run_all(&f.fake);
    append(&f, 7, 2, "waits too");
    run_all(&f.fake);
    assert_false(esk_journal_has_room(f.journal, &err));
    assert_int_equal(err, ESK_ERR_NO_SPACE);
    advance(&f.fake, 1000000000);
    assert_int_equal(entry->told, 0);
    assert_int_equal(f.failed, ESK_OK);
    f.fake.full = false;
    advance(&f.fake, 1000000000);
    assert_int_equal(f.told_durable, 2);
    assert_true(esk_journal_has_room(f.journal, &err));
    assert_int_equal(f.rooms, 1);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:waits 7/2:waits too ");
}

static void a_stop_on_a_full_disk_ends(void **unused) {
    (void)unused;
    start();
    f.fake.full = true;
    append(&f, 7, 1, "a");
    run_loop(&f.fake);
    append(&f, 7, 2, "b");
    run_loop(&f.fake);
    append(&f, 7, 3, "c");
    fixture_close(&f);
    assert_int_equal(f.told_durable, 0);
    assert_int_equal(f.failed, ESK_OK);
}

static void a_full_disk_leaves_room_for_checkpoints_which_free_files(void **unused) {
    (void)unused;
    enum esk_err err;
    start();
    append_many(1, 20);
    f.fake.full = true; /* in the third file; no further one can be made */
    uint64_t i = 20;
    while (esk_journal_has_room(f.journal, &err)) {
        i++;
        append_many(i, i);
    }
    assert_int_equal(err, ESK_ERR_NO_SPACE);
    assert_int_equal(f.told_durable, i);
    append_state(&f, 7, 1, i - 1);
    run_all(&f.fake);
    advance(&f.fake, 1000000000);
    assert_true(esk_journal_has_room(f.journal, &err));
    append_many(i + 1, i + 10);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_range(i, i + 10);
}

static void a_start_needs_no_room_when_a_prepared_file_is_left(void **unused) {
    (void)unused;
    start();
    append_many(1, 12);
    fixture_crash(&f);
    f.fake.full = true;
    start();
    append_many(13, 14);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_range(1, 14);
}

static void a_file_is_not_begun_without_room_to_finish_it(void **unused) {
    (void)unused;
    start();
    f.fake.no_free_bytes = true;
    append_many(1, 3);
    unsigned writes = f.fake.writes;
    advance(&f.fake, 1000000000);
    assert_true(f.fake.writes <= writes + 1); /* the empty frame */
    assert_null(f.journal->next);
    f.fake.no_free_bytes = false;
    advance(&f.fake, 1000000000);
    assert_non_null(f.journal->next);
}

static void a_failed_write_ends_the_journal(void **unused) {
    (void)unused;
    start();
    f.fake.write_result = ESK_ERR_IO;
    struct entry *entry = append(&f, 7, 1, "lost");
    run_all(&f.fake);
    assert_int_equal(f.failed, ESK_ERR_IO);
    f.fake.write_result = ESK_OK;
    append(&f, 7, 2, "too late");
    run_all(&f.fake);
    advance(&f.fake, 1000000000);
    assert_int_equal(entry->told, 0);
    assert_int_equal(f.told_durable, 0);
    fixture_close(&f);
    assert_int_equal(f.told_durable, 0);
}

static void without_direct_access_each_write_is_synced(void **unused) {
    (void)unused;
    f.fake.direct_refused = true;
    start();
    assert_int_equal(f.journal->mode, ESKI_MODE_SYNC);
    append_many(1, 40);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_range(1, 40);
}

static void a_failed_sync_ends_the_journal_even_for_want_of_room(void **unused) {
    (void)unused;
    f.fake.direct_refused = true;
    start();
    f.fake.sync_result = ESK_ERR_NO_SPACE;
    append(&f, 7, 1, "lost");
    run_all(&f.fake);
    assert_int_equal(f.failed, ESK_ERR_NO_SPACE);
    assert_int_equal(f.told_durable, 0);
    f.fake.sync_result = ESK_OK;
}

static void relaxed_entries_are_persisted_when_written_and_durable_when_synced(void **unused) {
    (void)unused;
    f.options.flush_every_records = 3;
    start();
    struct entry *first = append(&f, 7, 1, "a");
    run_all(&f.fake);
    assert_int_equal(first->told, PERSISTED);
    append(&f, 7, 2, "b");
    run_all(&f.fake);
    assert_int_equal(f.told_durable, 0);
    append(&f, 7, 3, "c"); /* the third record */
    run_all(&f.fake);
    assert_int_equal(f.told_durable, 3);
    append(&f, 7, 4, "d");
    run_all(&f.fake);
    assert_int_equal(f.told_durable, 3);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:a 7/2:b 7/3:c ");
}

static void a_killed_process_loses_no_relaxed_entry_that_was_written(void **unused) {
    (void)unused;
    f.options.flush_every_records = 0;
    start();
    struct entry *entry = append(&f, 7, 1, "written");
    run_all(&f.fake);
    assert_int_equal(entry->told, PERSISTED);
    fixture_kill(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:written ");
    fixture_reopen(&f); /* and it is durable from here on */
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:written ");
}

static void relaxed_entries_are_durable_after_the_interval(void **unused) {
    (void)unused;
    f.options.flush_every_records = 0;
    start();
    struct entry *entry = append(&f, 7, 1, "a");
    advance(&f.fake, 900000000);
    assert_int_equal(entry->told, PERSISTED);
    advance(&f.fake, 200000000);
    assert_int_equal(entry->told, PERSISTED | DURABLE);
}

static void a_strict_entry_is_synced_at_once_in_relaxed_mode(void **unused) {
    (void)unused;
    f.options.flush_every_records = 0;
    start();
    struct entry *relaxed = append(&f, 7, 1, "a");
    run_all(&f.fake);
    struct entry *strict = append_state(&f, 7, 1, 0);
    while (run_one(&f.fake.loop) || run_one(&f.fake.workers[0])) {
        assert_true(strict->told == 0 || strict->told == (PERSISTED | DURABLE));
    }
    run_all(&f.fake);
    assert_int_equal(strict->told, PERSISTED | DURABLE);
    assert_int_equal(relaxed->told, PERSISTED | DURABLE);
}

static void relaxed_mode_rolls_only_with_one_file_unsynced(void **unused) {
    (void)unused;
    f.options.flush_every_records = 0;
    f.options.held_bytes_max = UINT64_MAX;
    start();
    append_many(1, 100);
    advance(&f.fake, 2000000000);
    assert_int_equal(f.told_durable, 100);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_range(1, 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_first_file_is_made_behind_the_first_answer),
        TEST(the_next_file_is_made_in_time_for_the_pace),
        TEST(files_are_recycled_once_checkpoints_pass),
        TEST(without_room_for_a_spares_name_the_file_goes),
        TEST(an_entry_above_its_checkpoint_holds_its_file),
        TEST(room_ends_at_the_bound_and_comes_back_with_a_checkpoint),
        TEST(a_full_disk_stalls_appends_until_there_is_room),
        TEST(a_stop_on_a_full_disk_ends),
        TEST(a_full_disk_leaves_room_for_checkpoints_which_free_files),
        TEST(a_start_needs_no_room_when_a_prepared_file_is_left),
        TEST(a_file_is_not_begun_without_room_to_finish_it),
        TEST(a_failed_write_ends_the_journal),
        TEST(without_direct_access_each_write_is_synced),
        TEST(a_failed_sync_ends_the_journal_even_for_want_of_room),
        TEST(relaxed_entries_are_persisted_when_written_and_durable_when_synced),
        TEST(a_killed_process_loses_no_relaxed_entry_that_was_written),
        TEST(relaxed_entries_are_durable_after_the_interval),
        TEST(a_strict_entry_is_synced_at_once_in_relaxed_mode),
        TEST(relaxed_mode_rolls_only_with_one_file_unsynced),
    };
    return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
