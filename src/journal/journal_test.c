/* SPDX-License-Identifier: Apache-2.0 */
/* The journal from append to recovery, over a disk in memory. */
#include "journal/fixture.inc"

static void an_append_is_told_once_durable_and_replayed(void **unused) {
    (void)unused;
    struct fixture f;
    fixture_open(&f, NULL, 0);
    struct entry *entry = append(&f, 7, 1, "hello");
    run_loop(&f.fake);
    assert_int_equal(entry->told, 0);
    run_all(&f.fake);
    assert_int_equal(entry->told, PERSISTED | DURABLE);
    assert_true(entry->append.position > 0);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:hello ");
    fixture_fini(&f);
}

static void appends_of_one_turn_share_a_write(void **unused) {
    (void)unused;
    struct fixture f;
    fixture_open(&f, NULL, 0);
    run_all(&f.fake);
    unsigned before = f.fake.writes;
    for (uint64_t i = 1; i <= 10; i++) {
        append(&f, i, 1, "x");
    }
    run_loop(&f.fake);
    while (run_one(&f.fake.workers[0]) || run_one(&f.fake.workers[1])) {
    }
    assert_int_equal(f.fake.writes, before + 1);
    run_all(&f.fake);
    assert_int_equal(f.told_durable, 10);
    fixture_fini(&f);
}

static void a_later_write_acknowledges_nothing_while_an_earlier_one_is_out(void **unused) {
    (void)unused;
    struct fixture f;
    fixture_open(&f, NULL, 0);
    run_all(&f.fake);
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
    fixture_fini(&f);
}

static void a_write_without_its_earlier_one_is_cut(void **unused) {
    (void)unused;
    struct fixture f;
    fixture_open(&f, NULL, 0);
    append(&f, 7, 1, "kept");
    run_all(&f.fake);
    append(&f, 7, 2, "lost");
    run_loop(&f.fake);
    append(&f, 7, 3, "behind it");
    run_loop(&f.fake);
    /* Only the later of the two reaches the disk. */
    assert_true(run_one(&f.fake.workers[1]));
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:kept ");
    fixture_reopen(&f);
    append(&f, 7, 2, "anew");
    run_all(&f.fake);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:kept 7/2:anew ");
    fixture_fini(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_append_is_told_once_durable_and_replayed),
        cmocka_unit_test(appends_of_one_turn_share_a_write),
        cmocka_unit_test(a_later_write_acknowledges_nothing_while_an_earlier_one_is_out),
        cmocka_unit_test(a_write_without_its_earlier_one_is_cut),
    };
    return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
