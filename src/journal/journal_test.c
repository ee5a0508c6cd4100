/* SPDX-License-Identifier: Apache-2.0 */
/* A running journal: what is told when, files, bounds, failures; over a disk in memory. */
#include "journal/fixture.inc"

static struct fixture f;

static int setup(void **unused) {
    (void)unused;
    fixture_open(&f, NULL, 0);
    run_all(&f.fake);
    return 0;
}

static int teardown(void **unused) {
    (void)unused;
    fixture_fini(&f);
    return 0;
}

static void an_append_is_told_once_durable_and_replayed(void **unused) {
    (void)unused;
    struct entry *entry = append(&f, 7, 1, "hello");
    run_loop(&f.fake);
    assert_int_equal(entry->told, 0);
    run_all(&f.fake);
    assert_int_equal(entry->told, PERSISTED | DURABLE);
    assert_true(entry->append.position > 0);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:hello ");
}

static void appends_of_one_turn_share_a_write(void **unused) {
    (void)unused;
    unsigned before = f.fake.writes;
    for (uint64_t i = 1; i <= 10; i++) {
        append(&f, i, 1, "x");
    }
    run_loop(&f.fake);
    while (run_one(&f.fake.workers[0]) || run_one(&f.fake.workers[1])) {
    }
    assert_int_equal(f.fake.writes, before + 1);
    run_loop(&f.fake);
    assert_int_equal(f.told_durable, 10);
    assert_int_equal(esk_counter_get(&f.metrics.flushes), 1);
}

static void appends_gather_while_all_slots_are_busy(void **unused) {
    (void)unused;
    for (uint64_t i = 1; i <= 5; i++) {
        append(&f, 7, i, "x");
        run_loop(&f.fake);
    }
    assert_non_null(f.fake.workers[0].first);
    assert_non_null(f.fake.workers[1].first);
    unsigned before = f.fake.writes;
    while (run_one(&f.fake.workers[0]) || run_one(&f.fake.workers[1])) {
    }
    run_loop(&f.fake);
    assert_int_equal(f.told_durable, 2);
    while (run_one(&f.fake.workers[0]) || run_one(&f.fake.workers[1])) {
    }
    run_loop(&f.fake);
    assert_int_equal(f.told_durable, 5);
    assert_int_equal(f.fake.writes, before + 3); /* the last three went together */
}

static void a_later_write_acknowledges_nothing_while_an_earlier_one_is_out(void **unused) {
    (void)unused;
    struct entry *first = append(&f, 7, 1, "first");
    run_loop(&f.fake);
    struct entry *second = append(&f, 7, 2, "second");
    run_loop(&f.fake);
    assert_true(run_one(&f.fake.workers[1])); /* the second one's flusher */
    run_loop(&f.fake);
    assert_int_equal(second->told, 0);
    assert_true(run_one(&f.fake.workers[0]));
    run_loop(&f.fake);
    assert_int_equal(first->told, PERSISTED | DURABLE);
    assert_int_equal(second->told, PERSISTED | DURABLE);
    assert_true(first->order < second->order);
}

static void a_write_without_its_earlier_one_is_cut(void **unused) {
    (void)unused;
    append(&f, 7, 1, "kept");
    run_all(&f.fake);
    append(&f, 7, 2, "lost");
    run_loop(&f.fake);
    append(&f, 7, 3, "behind it");
    run_loop(&f.fake);
    assert_true(run_one(&f.fake.workers[1])); /* only the later one reaches the disk */
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:kept ");
    fixture_reopen(&f);
    append(&f, 7, 2, "anew");
    run_all(&f.fake);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:kept 7/2:anew ");
}

static void an_entry_larger_than_a_file_is_written_and_its_buffer_given_back(void **unused) {
    (void)unused;
    size_t size = 5u << 20;
    uint8_t *payload = esk_alloc(size);
    memset(payload, 'p', size);
    struct entry *entry = append_bytes(&f, 7, 1, esk_slice(payload, size));
    append(&f, 7, 2, "small");
    run_all(&f.fake);
    assert_int_equal(entry->told, PERSISTED | DURABLE);
    for (unsigned i = 0; i < f.options.writes_max; i++) {
        assert_true(f.journal->slots[i].capacity <= 128u << 10);
    }
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:pppppppppppppppppppppppppppppppppppppppp 7/2:small ");
    free(payload);
}

static void an_idle_journal_vouches_for_its_last_frame_and_frees_its_buffers(void **unused) {
    (void)unused;
    append(&f, 7, 1, "x");
    run_all(&f.fake);
    unsigned before = f.fake.writes;
    advance(&f.fake, 20000000);
    uint64_t last = f.journal->sequence_next - 1;
    assert_int_equal(f.journal->vouched_sequence, last - 1);
    assert_int_equal(f.journal->content_sequence, last - 1);
    assert_true(f.fake.writes > before);
    before = f.fake.writes;
    advance(&f.fake, 10000000000);
    assert_int_equal(f.fake.writes, before);
    assert_null(f.journal->slots[0].buffer);
    assert_null(f.fake.timer);
}

static void a_clean_stop_writes_what_is_queued_and_vouches_for_it(void **unused) {
    (void)unused;
    append(&f, 7, 1, "last words");
    fixture_close(&f);
    assert_int_equal(f.told_durable, 1);
    fixture_recover(&f);
    assert_entries(&f, "7/1:last words ");
    struct disk_file *file = newest_file(&f);
    flip(file, last_frame_with_records(file) + 100);
    assert_int_equal(try_recover(&f), ESK_ERR_CORRUPT);
}

static void states_are_kept_and_the_newest_counts(void **unused) {
    (void)unused;
    append_state(&f, 7, 3, 0);
    append_state(&f, 8, 1, 0);
    append_state(&f, 7, 4, 0);
    assert_null(esk_journal_state(f.journal, 7));
    run_all(&f.fake);
    assert_int_equal(esk_journal_state(f.journal, 7)->term, 4);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_int_equal(esk_journal_recovery_count(f.recovery), 2);
    assert_int_equal(esk_journal_recovery_state(f.recovery, 0)->group_id, 7);
    assert_int_equal(esk_journal_recovery_find(f.recovery, 7)->term, 4);
    assert_null(esk_journal_recovery_find(f.recovery, 9));
}

static void a_checkpoint_hides_what_it_covers(void **unused) {
    (void)unused;
    append(&f, 7, 1, "a");
    append(&f, 7, 2, "b");
    append(&f, 7, 3, "c");
    append_state(&f, 7, 1, 2);
    run_all(&f.fake);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/3:c ");
}

static void an_entry_replaces_later_ones_of_its_group(void **unused) {
    (void)unused;
    append(&f, 7, 1, "a");
    append(&f, 7, 2, "b");
    append(&f, 8, 1, "other");
    append(&f, 7, 3, "c");
    run_all(&f.fake);
    append(&f, 7, 2, "B");
    append(&f, 7, 3, "C");
    append(&f, 7, 3, "D");
    run_all(&f.fake);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:a 8/1:other 7/2:B 7/3:D ");
}

static void a_forgotten_group_is_gone_and_holds_nothing(void **unused) {
    (void)unused;
    append_state(&f, 7, 1, 0);
    append(&f, 7, 1, "a");
    append(&f, 8, 1, "b");
    run_all(&f.fake);
    esk_journal_forget(f.journal, 7);
    run_all(&f.fake);
    assert_null(esk_journal_state(f.journal, 7));
    uint64_t held = 0;
    for (struct esk_link *link = f.journal->files.next; link != &f.journal->files;
         link = link->next) {
        held += ESK_CONTAINER(link, struct eski_file, link)->held;
    }
    assert_int_equal(held, 1);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_int_equal(esk_journal_recovery_count(f.recovery), 0);
    assert_entries(&f, "8/1:b ");
}

static void open_forgets_groups_without_a_state(void **unused) {
    (void)unused;
    append_state(&f, 7, 1, 0);
    append_state(&f, 8, 1, 0);
    append(&f, 7, 1, "a");
    append(&f, 8, 1, "b");
    run_all(&f.fake);
    fixture_crash(&f);
    fixture_recover(&f);
    const struct esk_group_state kept = *esk_journal_recovery_find(f.recovery, 8);
    fixture_open_recovered(&f, &kept, 1);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_int_equal(esk_journal_recovery_count(f.recovery), 1);
    assert_entries(&f, "8/1:b ");
}

static void callbacks_of_a_large_commit_are_spread_over_turns(void **unused) {
    (void)unused;
    for (uint64_t i = 1; i <= 300; i++) {
        append(&f, 7, i, "");
    }
    run_one(&f.fake.loop);
    while (run_one(&f.fake.workers[0]) || run_one(&f.fake.workers[1])) {
    }
    assert_true(run_one(&f.fake.loop));
    assert_true(f.told_durable > 0 && f.told_durable < 300);
    run_loop(&f.fake);
    assert_int_equal(f.told_durable, 300);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_append_is_told_once_durable_and_replayed),
        TEST(appends_of_one_turn_share_a_write),
        TEST(appends_gather_while_all_slots_are_busy),
        TEST(a_later_write_acknowledges_nothing_while_an_earlier_one_is_out),
        TEST(a_write_without_its_earlier_one_is_cut),
        TEST(an_entry_larger_than_a_file_is_written_and_its_buffer_given_back),
        TEST(an_idle_journal_vouches_for_its_last_frame_and_frees_its_buffers),
        TEST(a_clean_stop_writes_what_is_queued_and_vouches_for_it),
        TEST(states_are_kept_and_the_newest_counts),
        TEST(a_checkpoint_hides_what_it_covers),
        TEST(an_entry_replaces_later_ones_of_its_group),
        TEST(a_forgotten_group_is_gone_and_holds_nothing),
        TEST(open_forgets_groups_without_a_state),
        TEST(callbacks_of_a_large_commit_are_spread_over_turns),
    };
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
