/* SPDX-License-Identifier: Apache-2.0 */
/* What is listed, removed, set aside and pruned in groups' folders, and snapshots in them. */
#include "storage/fake_disk.inc"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define GROUP 0xbeef
#define FOLDER "/data/groups/000000000000beef"

static int start(void **state) {
    *state = fixture_create(1u << 20);
    return 0;
}

static int stop(void **state) {
    fixture_destroy(*state);
    return 0;
}

static void make_segment(struct fixture *fixture, uint64_t group, uint64_t base) {
    struct esk_segment *segment = NULL;
    assert_int_equal(esk_segment_create(&fixture->storage, group, base, &segment, NULL), ESK_OK);
    esk_segment_release(segment);
}

static void make_file(struct fixture *fixture, const char *path) {
    struct esk_file *file = NULL;
    assert_int_equal(
        esk_file_open(&fixture->disk.platform, path, ESK_FILE_WRITE | ESK_FILE_CREATE, &file, NULL),
        ESK_OK);
    esk_file_close(file);
}

static void segments_are_listed_in_order_of_offset(void **state) {
    struct fixture *fixture = *state;
    struct esk_segment_file *files = NULL;
    size_t count = 9;
    assert_int_equal(esk_segment_list(&fixture->storage, GROUP, &files, &count, NULL), ESK_OK);
    assert_int_equal(count, 0);
    free(files);
    make_segment(fixture, GROUP, UINT64_MAX);
    make_segment(fixture, GROUP, 100);
    make_segment(fixture, GROUP, 9);
    const char *others[] = {
        "/18446744073709551616.segment",     /* 2^64 */
        "/9.segment",                        /* not our form */
        "/00000000000000000009.segment.bak", /* somebody's copy */
        "/00000000000000000009.index",
        "/00000000000000000050.index", /* without its segment */
        "/00000000000000000100.0000000a.segment",
        "/00000000000000000100.00000002.segment",
        "/00000000000000000100.00000000.segment", /* revision 0 has no number */
        "/00000000000000000100.0000000A.segment",
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        char *path = esk_text_format(FOLDER "%s", others[i]);
        make_file(fixture, path);
        free(path);
    }
    make_file(fixture, FOLDER "/00000000000000000009.index" ESKI_TEMPORARY_SUFFIX);
    assert_int_equal(esk_segment_list(&fixture->storage, GROUP, &files, &count, NULL), ESK_OK);
    const struct esk_segment_file expected[] = {{9, 0, false},    {50, 0, true},
                                                {100, 0, false},  {100, 2, false},
                                                {100, 10, false}, {UINT64_MAX, 0, false}};
    assert_int_equal(count, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(files[i].base_offset, expected[i].base_offset);
        assert_int_equal(files[i].revision, expected[i].revision);
        assert_int_equal(files[i].lone_index, expected[i].lone_index);
    }
    free(files);
    assert_false(
        fake_disk_has(&fixture->disk, FOLDER "/00000000000000000009.index" ESKI_TEMPORARY_SUFFIX));
    assert_true(fake_disk_has(&fixture->disk, FOLDER "/9.segment"));
}

static void removing_a_group_leaves_nothing_durably(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(esk_group_files_remove(&fixture->storage, GROUP, NULL), ESK_OK);
    for (uint64_t n = 1;; n++) {
        make_segment(fixture, GROUP, 0);
        make_segment(fixture, GROUP, 7);
        assert_int_equal(
            esk_snapshot_store(&fixture->storage, GROUP, 1, 1, esk_slice_text("x"), NULL), ESK_OK);
        make_file(fixture, FOLDER "/whatever");
        fake_disk_fail(&fixture->disk, n, FAKE_ANY, ESK_ERR_IO);
        enum esk_err err = esk_group_files_remove(&fixture->storage, GROUP, NULL);
        bool failed = fixture->disk.failed != 0;
        fixture->disk.fail_in = 0;
        assert_int_equal(err, failed ? ESK_ERR_IO : ESK_OK);
        assert_int_equal(esk_group_files_remove(&fixture->storage, GROUP, NULL), ESK_OK);
        assert_false(fake_disk_has(&fixture->disk, FOLDER));
        assert_false(fake_disk_dirty(&fixture->disk, "/data/groups"));
        if (!failed) {
            assert_true(n > 10);
            return;
        }
    }
}

static void collect(void *context, const char *name) {
    char *names = context;
    strcat(strcat(names, name), " ");
}

static void groups_are_listed_and_strangers_named(void **state) {
    struct fixture *fixture = *state;
    make_segment(fixture, 300, 0);
    make_segment(fixture, 0, 0);
    make_file(fixture, "/data/groups/0000000000000001");
    assert_int_equal(
        esk_folder_make(&fixture->disk.platform, "/data/groups/00000000000000AB", NULL), ESK_OK);
    assert_int_equal(esk_folder_make(&fixture->disk.platform, "/data/groups/lost+found", NULL),
                     ESK_OK);
    uint64_t *ids = NULL;
    size_t count = 0;
    char names[200] = "";
    assert_int_equal(esk_group_files_list(&fixture->storage, &ids, &count, collect, names, NULL),
                     ESK_OK);
    assert_int_equal(count, 2);
    assert_true(ids[0] == 0 && ids[1] == 300);
    free(ids);
    assert_string_equal(names, "0000000000000001 00000000000000AB lost+found ");
    assert_int_equal(esk_group_files_list(&fixture->storage, &ids, &count, NULL, NULL, NULL),
                     ESK_OK);
    free(ids);
}

static void a_folder_set_aside_is_kept_under_lost(void **state) {
    struct fixture *fixture = *state;
    make_segment(fixture, GROUP, 5);
    assert_int_equal(esk_group_files_set_aside(&fixture->storage, GROUP, NULL), ESK_OK);
    assert_false(fake_disk_has(&fixture->disk, FOLDER));
    assert_true(fake_disk_has(
        &fixture->disk, "/data/lost/000000000000beef-1700000000000/00000000000000000005.segment"));
    assert_false(fake_find(&fixture->disk, "/data/lost")->dirty);
    assert_false(fake_find(&fixture->disk, "/data/groups")->dirty);
    assert_false(fake_find(&fixture->disk, "/data")->dirty);
    struct esk_error error = {0};
    assert_int_equal(esk_group_files_set_aside(&fixture->storage, GROUP, &error),
                     ESK_ERR_NOT_FOUND);
}

static void a_stored_snapshot_is_durable_and_comes_back(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(
        esk_snapshot_store(&fixture->storage, GROUP, 12, 3, esk_slice_text("first"), NULL), ESK_OK);
    assert_false(fake_disk_dirty(&fixture->disk, "/data/groups"));
    /* The same index again (a crash before its entry) replaces it. */
    assert_int_equal(
        esk_snapshot_store(&fixture->storage, GROUP, 12, 3, esk_slice_text("second"), NULL),
        ESK_OK);
    uint8_t *payload = NULL;
    size_t size = 0;
    assert_int_equal(esk_snapshot_load(&fixture->storage, GROUP, 12, &payload, &size, NULL),
                     ESK_OK);
    assert_int_equal(size, 6);
    assert_memory_equal(payload, "second", 6);
    free(payload);
    assert_int_equal(esk_snapshot_store(&fixture->storage, GROUP, 13, 3, esk_slice(NULL, 0), NULL),
                     ESK_OK);
    assert_int_equal(esk_snapshot_load(&fixture->storage, GROUP, 13, &payload, &size, NULL),
                     ESK_OK);
    assert_int_equal(size, 0);
    free(payload);
}

static void a_wrong_snapshot_is_named_and_refused(void **state) {
    struct fixture *fixture = *state;
    struct esk_error error = {0};
    uint8_t *payload = NULL;
    size_t size = 0;
    assert_int_equal(esk_snapshot_load(&fixture->storage, GROUP, 4, &payload, &size, &error),
                     ESK_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, FOLDER "/00000000000000000004.snapshot"));
    assert_int_equal(
        esk_snapshot_store(&fixture->storage, GROUP, 4, 1, esk_slice_text("state"), NULL), ESK_OK);
    struct fake_node *file = fake_find(&fixture->disk, FOLDER "/00000000000000000004.snapshot");
    file->bytes[ESKI_SNAPSHOT_HEADER_BYTES] ^= 4;
    assert_int_equal(esk_snapshot_load(&fixture->storage, GROUP, 4, &payload, &size, &error),
                     ESK_ERR_CORRUPT);
    assert_non_null(strstr(error.text, FOLDER "/00000000000000000004.snapshot"));
    file->bytes[ESKI_SNAPSHOT_HEADER_BYTES] ^= 4;
    assert_int_equal(esk_path_rename(&fixture->disk.platform,
                                     FOLDER "/00000000000000000004.snapshot",
                                     FOLDER "/00000000000000000005.snapshot", NULL),
                     ESK_OK);
    assert_int_equal(esk_snapshot_load(&fixture->storage, GROUP, 5, &payload, &size, &error),
                     ESK_ERR_CORRUPT);
}

static void pruning_keeps_the_named_snapshot_and_all_segments(void **state) {
    struct fixture *fixture = *state;
    assert_int_equal(esk_snapshot_prune(&fixture->storage, GROUP, 2, NULL), ESK_OK);
    make_segment(fixture, GROUP, 1);
    for (uint64_t index = 1; index <= 3; index++) {
        assert_int_equal(
            esk_snapshot_store(&fixture->storage, GROUP, index, 1, esk_slice_text("x"), NULL),
            ESK_OK);
    }
    assert_int_equal(esk_snapshot_prune(&fixture->storage, GROUP, 2, NULL), ESK_OK);
    assert_false(fake_disk_has(&fixture->disk, FOLDER "/00000000000000000001.snapshot"));
    assert_true(fake_disk_has(&fixture->disk, FOLDER "/00000000000000000002.snapshot"));
    assert_false(fake_disk_has(&fixture->disk, FOLDER "/00000000000000000003.snapshot"));
    assert_true(fake_disk_has(&fixture->disk, FOLDER "/00000000000000000001.segment"));
}

#define WITH_DISK(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DISK(segments_are_listed_in_order_of_offset),
        WITH_DISK(removing_a_group_leaves_nothing_durably),
        WITH_DISK(groups_are_listed_and_strangers_named),
        WITH_DISK(a_folder_set_aside_is_kept_under_lost),
        WITH_DISK(a_stored_snapshot_is_durable_and_comes_back),
        WITH_DISK(a_wrong_snapshot_is_named_and_refused),
        WITH_DISK(pruning_keeps_the_named_snapshot_and_all_segments),
    };
    return cmocka_run_group_tests_name("storage.folders", tests, NULL, NULL);
}
