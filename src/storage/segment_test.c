/* SPDX-License-Identifier: Apache-2.0 */
/* Segments on a disk that is short, slow to write, full or failing; recycled files; what a sync
 * must cover. */
#include "storage/fake_disk.inc"
#include "storage/room.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define GROUP 0x2a
#define FOLDER "/data/groups/000000000000002a"
#define SEGMENT0 FOLDER "/00000000000000000000.segment"
#define INDEX0 FOLDER "/00000000000000000000.index"

static int start(void **state) {
    *state = fixture_create(1u << 20);
    return 0;
}

static int stop(void **state) {
    fixture_destroy(*state);
    return 0;
}

static struct esk_segment *create(struct fixture *fixture, uint64_t base) {
    struct esk_segment *segment = NULL;
    assert_int_equal(esk_segment_create(&fixture->storage, GROUP, base, &segment, &fixture->error),
                     ESK_OK);
    return segment;
}

static void append(struct esk_segment *segment, uint64_t position, const void *bytes, size_t size) {
    struct esk_slice slice = esk_slice(bytes, size);
    assert_int_equal(esk_segment_append(segment, position, &slice, 1, 0, NULL), ESK_OK);
}

static struct fake_node *node(struct fixture *fixture, const char *path) {
    struct fake_node *found = fake_find(&fixture->disk, path);
    assert_non_null(found);
    return found;
}

static void fill(uint8_t *bytes, size_t size, uint32_t seed) {
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

#define BULK_BYTES (300 * 1024)

/* Many slices, none, empty ones and one of several writes, at every length of a short write. */
static void appended_bytes_are_read_back_with_an_end_mark_behind(void **state) {
    struct fixture *fixture = *state;
    uint8_t *bytes = esk_alloc(BULK_BYTES);
    uint8_t *read = esk_alloc(BULK_BYTES);
    fill(bytes, BULK_BYTES, 1);
    const uint64_t shorts[] = {UINT64_MAX, 100 * 1024, 997};
    for (size_t s = 0; s < 3; s++) {
        fixture->disk.write_max = shorts[s];
        struct esk_segment *segment = create(fixture, s);
        struct esk_slice slices[1000];
        size_t size = 0;
        for (size_t i = 0; i < 999; i++) {
            size_t part = i % 7 == 0 ? 0 : 50 + i % 100;
            slices[i] = esk_slice(bytes + size, part);
            size += part;
        }
        slices[999] = esk_slice(bytes + size, BULK_BYTES - size);
        assert_int_equal(esk_segment_append(segment, 0, slices, 999, 0, NULL), ESK_OK);
        assert_int_equal(esk_segment_append(segment, size, slices + 999, 1, 0, NULL), ESK_OK);
        assert_int_equal(esk_segment_append(segment, BULK_BYTES, NULL, 0, 0, NULL), ESK_OK);
        size_t got = 0;
        assert_int_equal(esk_segment_read(segment, read, BULK_BYTES, 0, BULK_BYTES, 0, &got, NULL),
                         ESK_OK);
        assert_int_equal(got, BULK_BYTES);
        assert_memory_equal(read, bytes, BULK_BYTES);
        const uint8_t mark[ESKI_END_MARK_BYTES] = {0};
        assert_int_equal(esk_file_read_exactly(segment->file, read, sizeof(mark),
                                               ESK_SEGMENT_HEADER_BYTES + BULK_BYTES, NULL),
                         ESK_OK);
        assert_memory_equal(read, mark, sizeof(mark));
        esk_segment_release(segment);
    }
    free(bytes);
    free(read);
}

static void long_appends_pause_between_slices_and_send_them_on(void **state) {
    struct fixture *fixture = *state;
    uint8_t *bytes = esk_alloc_zeroed(1, 4 * ESK_SEGMENT_WRITE_BYTES);
    struct esk_segment *segment = create(fixture, 0);
    struct esk_slice slice = esk_slice(bytes, 4 * ESK_SEGMENT_WRITE_BYTES - 1);
    assert_int_equal(esk_segment_append(segment, 0, &slice, 1, 1000, NULL), ESK_OK);
    assert_int_equal(fixture->disk.pauses, 3);
    assert_int_equal(fixture->disk.written_back, 3 * ESK_SEGMENT_WRITE_BYTES);
    assert_int_equal(fixture->disk.lag, 0);
    esk_segment_release(segment);
    free(bytes);
}

static void an_append_runs_only_so_far_ahead_of_the_device(void **state) {
    struct fixture *fixture = *state;
    const size_t size = 5u << 20;
    uint8_t *bytes = esk_alloc_zeroed(1, size);
    struct esk_segment *segment = create(fixture, 0);
    struct esk_slice slice = esk_slice(bytes, size);
    assert_int_equal(esk_segment_append(segment, 0, &slice, 1, 0, NULL), ESK_OK);
    assert_int_equal(fixture->disk.written_back, size);
    assert_int_equal(fixture->disk.lag, 4u << 20);
    fixture->disk.kind = FAKE_SYNC; /* what waits for the device learns what a sync would */
    fixture->disk.fail_in = 1;
    fixture->disk.fail_with = ESK_ERR_NO_SPACE;
    assert_int_equal(esk_segment_append(segment, size, &slice, 1, 0, NULL), ESK_ERR_IO);
    esk_segment_release(segment);
    free(bytes);
}

static void a_read_is_bounded_by_the_end_it_is_told(void **state) {
    struct fixture *fixture = *state;
    struct esk_segment *segment = create(fixture, 0);
    append(segment, 0, "0123456789", 10);
    char read[20] = "";
    size_t got = 0;
    assert_int_equal(esk_segment_read(segment, read, 20, 4, 8, 0, &got, NULL), ESK_OK);
    assert_int_equal(got, 4);
    assert_memory_equal(read, "4567", 4);
    assert_int_equal(esk_segment_read(segment, read, 20, 8, 8, 0, &got, NULL), ESK_OK);
    assert_int_equal(got, 0);
    struct esk_error error = {0};
    assert_int_equal(esk_segment_read(segment, read, 20, 9, 40, 0, &got, &error), ESK_ERR_CORRUPT);
    assert_non_null(strstr(error.text, SEGMENT0));
    fixture->disk.cold = true;
    assert_int_equal(esk_segment_read(segment, read, 4, 0, 8, ESK_READ_NOWAIT, &got, NULL),
                     ESK_ERR_AGAIN);
    esk_segment_release(segment);
}

static void syncs_cover_the_file_and_every_name(void **state) {
    struct fixture *fixture = *state;
    struct esk_segment *segment = create(fixture, 0);
    append(segment, 0, "abc", 3);
    assert_int_equal(esk_segment_sync(segment, NULL), ESK_OK);
    assert_false(fake_disk_dirty(&fixture->disk, SEGMENT0));
    assert_true(node(fixture, FOLDER)->dirty);
    assert_true(node(fixture, "/data/groups")->dirty);
    assert_int_equal(esk_segment_sync_names(&fixture->storage, GROUP, NULL), ESK_OK);
    assert_false(fake_disk_dirty(&fixture->disk, "/data/groups"));

    /* The parent is synced for new folders only, and after a start in any case. */
    uint64_t before = fixture->disk.syncs;
    assert_int_equal(esk_segment_sync_names(&fixture->storage, GROUP, NULL), ESK_OK);
    assert_int_equal(fixture->disk.syncs, before + 1);
    esk_segment_release(segment);
    fixture_stop(fixture);
    fixture_start(fixture, 1u << 20);
    before = fixture->disk.syncs;
    assert_int_equal(esk_segment_sync_names(&fixture->storage, GROUP, NULL), ESK_OK);
    assert_int_equal(fixture->disk.syncs, before + 2);
}

static const struct esk_segment_summary summary10 = {0, 10, 6000, 90, ESK_HORIZON_NONE, 0};

static void add_entries(struct esk_index *index) {
    esk_index_init(index);
    esk_index_add(index, 0, 0, 80);
    esk_index_add(index, 6, 5000, 90);
}

static void a_sealed_segment_is_known_by_its_index_file(void **state) {
    struct fixture *fixture = *state;
    struct esk_index index;
    struct esk_index loaded;
    add_entries(&index);
    esk_index_init(&loaded);
    struct esk_segment *segment = create(fixture, 0);
    uint8_t bytes[9000];
    fill(bytes, sizeof(bytes), 2);
    append(segment, 0, bytes, 6000);
    append(segment, 6000, bytes, 9000); /* as a recycled file is longer */
    assert_int_equal(esk_segment_seal(&fixture->storage, GROUP, segment, &summary10, &index, NULL),
                     ESK_OK);
    assert_int_equal(node(fixture, SEGMENT0)->size,
                     ESK_SEGMENT_HEADER_BYTES + 6000 + ESKI_END_MARK_BYTES);
    assert_false(fake_disk_dirty(&fixture->disk, INDEX0));
    assert_false(fake_disk_has(&fixture->disk, INDEX0 ESKI_TEMPORARY_SUFFIX));

    struct esk_segment_summary summary;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(esk_segment_load(&fixture->storage, GROUP, 0, &summary, &loaded, NULL),
                         ESK_OK);
        assert_memory_equal(&summary, &summary10, sizeof(summary));
        assert_int_equal(loaded.count, 2);
        assert_memory_equal(loaded.entries, index.entries, 2 * sizeof(*index.entries));
    }
    assert_int_equal(esk_segment_load(&fixture->storage, GROUP, 0, &summary, NULL, NULL), ESK_OK);
    struct esk_error error = {0};
    assert_int_equal(esk_segment_load(&fixture->storage, GROUP, 5, &summary, NULL, &error),
                     ESK_ERR_NOT_FOUND);
    /* An index file of another segment is not taken for this one's. */
    assert_int_equal(esk_path_rename(&fixture->disk.platform, INDEX0,
                                     FOLDER "/00000000000000000005.index", NULL),
                     ESK_OK);
    assert_int_equal(esk_segment_load(&fixture->storage, GROUP, 5, &summary, &loaded, &error),
                     ESK_ERR_CORRUPT);
    assert_non_null(strstr(error.text, "00000000000000000005.index"));
    assert_int_equal(loaded.count, 0);
    esk_segment_release(segment);
    esk_index_fini(&index);
}

static void a_damaged_or_foreign_header_is_refused(void **state) {
    struct fixture *fixture = *state;
    esk_segment_release(create(fixture, 0));
    struct esk_segment *segment = NULL;
    struct esk_error error = {0};
    struct fake_node *file = node(fixture, SEGMENT0);
    for (size_t i = 0; i < ESK_SEGMENT_HEADER_BYTES; i += i < 64 ? 1 : 501) {
        file->bytes[i] ^= 0x10;
        assert_int_equal(esk_segment_open(&fixture->storage, GROUP, 0, &segment, &error),
                         i >= 8 && i < 12 ? ESK_ERR_VERSION : ESK_ERR_CORRUPT);
        assert_non_null(strstr(error.text, SEGMENT0));
        file->bytes[i] ^= 0x10;
    }
    assert_int_equal(esk_segment_open(&fixture->storage, GROUP, 0, &segment, &error), ESK_OK);
    esk_segment_release(segment);
    /* As if a directory entry led to another segment's file. */
    assert_int_equal(esk_path_rename(&fixture->disk.platform, SEGMENT0,
                                     FOLDER "/00000000000000000009.segment", NULL),
                     ESK_OK);
    assert_int_equal(esk_segment_open(&fixture->storage, GROUP, 9, &segment, &error),
                     ESK_ERR_CORRUPT);
    assert_int_equal(esk_segment_open(&fixture->storage, GROUP, 0, &segment, &error),
                     ESK_ERR_NOT_FOUND);
    node(fixture, FOLDER "/00000000000000000009.segment")->size = 100; /* cut short */
    assert_int_equal(esk_segment_open(&fixture->storage, GROUP, 9, &segment, &error),
                     ESK_ERR_CORRUPT);
}

static void a_cut_leaves_the_bytes_and_an_end_mark(void **state) {
    struct fixture *fixture = *state;
    struct esk_segment *segment = create(fixture, 0);
    uint8_t bytes[1000];
    fill(bytes, sizeof(bytes), 3);
    append(segment, 0, bytes, sizeof(bytes));
    assert_int_equal(esk_segment_cut(segment, 600, NULL), ESK_OK);
    struct fake_node *file = node(fixture, SEGMENT0);
    assert_int_equal(file->size, ESK_SEGMENT_HEADER_BYTES + 600 + ESKI_END_MARK_BYTES);
    assert_memory_equal(file->bytes + ESK_SEGMENT_HEADER_BYTES, bytes, 600);
    const uint8_t mark[ESKI_END_MARK_BYTES] = {0};
    assert_memory_equal(file->bytes + ESK_SEGMENT_HEADER_BYTES + 600, mark, sizeof(mark));
    struct esk_error error = {0};
    assert_int_equal(esk_segment_cut(segment, 613, &error), ESK_ERR_CORRUPT);
    assert_non_null(strstr(error.text, SEGMENT0));
    esk_segment_release(segment);
}

/* A file for the pool: a segment long enough to be worth it. */
static void make_removed(struct fixture *fixture, uint64_t base, size_t size, uint32_t seed) {
    uint8_t *bytes = esk_alloc(size);
    fill(bytes, size, seed);
    struct esk_segment *segment = create(fixture, base);
    append(segment, 0, bytes, size);
    esk_segment_release(segment);
    assert_int_equal(esk_segment_remove(&fixture->storage, GROUP, base, 0, NULL), ESK_OK);
    free(bytes);
}

static void a_recycled_file_shows_nothing_of_its_old_use(void **state) {
    struct fixture *fixture = *state;
    make_removed(fixture, 0, 20000, 4);
    struct esk_segment *segment = create(fixture, 70);
    struct fake_node *file = node(fixture, FOLDER "/00000000000000000070.segment");
    assert_true(file->size > 20000); /* it is that file */
    struct eski_segment_header header;
    assert_int_equal(eski_segment_header_parse(file->bytes, "file", &header, NULL), ESK_OK);
    assert_int_equal(header.generation, 2);
    assert_int_equal(header.base_offset, 70);
    size_t got = 1;
    uint8_t read[16];
    assert_int_equal(esk_segment_read(segment, read, 16, 0, 0, 0, &got, NULL), ESK_OK);
    assert_int_equal(got, 0);
    const uint8_t mark[ESKI_END_MARK_BYTES] = {0};
    assert_memory_equal(file->bytes + ESK_SEGMENT_HEADER_BYTES, mark, sizeof(mark));
    /* Nothing is found of what lies behind a shorter new use. */
    uint8_t batch[200];
    size_t size = fake_batch(batch, 70, 3, 50, 1);
    append(segment, 0, batch, size);
    struct esk_index index;
    esk_index_init(&index);
    assert_int_equal(esk_index_build(segment, 70, size, &index, NULL), ESK_OK);
    assert_int_equal(index.count, 1);
    assert_int_equal(esk_index_build(segment, 70, size + 61, &index, NULL), ESK_ERR_CORRUPT);
    esk_index_fini(&index);
    esk_segment_release(segment);
}

static void a_file_left_by_a_crash_is_replaced(void **state) {
    struct fixture *fixture = *state;
    struct esk_segment *segment = create(fixture, 0);
    append(segment, 0, "old bytes", 9);
    esk_segment_release(segment);
    esk_segment_release(create(fixture, 0));
    assert_int_equal(node(fixture, SEGMENT0)->size, ESK_SEGMENT_HEADER_BYTES + ESKI_END_MARK_BYTES);
}

/* --- full disks and failing calls --- */

static void a_full_disk_takes_the_pool_first_then_the_reserve(void **state) {
    struct fixture *fixture = *state;
    struct fake_disk *disk = &fixture->disk;
    uint8_t bytes[4000];
    fill(bytes, sizeof(bytes), 5);
    struct esk_segment *segment = create(fixture, 100);
    make_removed(fixture, 0, 2000, 6);
    assert_int_equal(esk_reserve_grow(fixture->storage.reserve, 1024, NULL), ESK_OK);
    disk->capacity = disk->used;
    append(segment, 0, bytes, 3000); /* the pool's 6 KiB are enough */
    assert_int_equal(node(fixture, "/data/reserve")->size, 1024);
    disk->capacity = disk->used + 100;
    append(segment, 3000, bytes, 1000);
    assert_int_equal(node(fixture, "/data/reserve")->size, 0);
    assert_int_equal(esk_reserve_take(fixture->storage.reserve, 1), ESK_ERR_NO_SPACE);

    disk->capacity = disk->used + 10;
    struct esk_slice slice = esk_slice(bytes, 500);
    struct esk_error error = {0};
    assert_int_equal(esk_segment_append(segment, 4000, &slice, 1, 0, &error), ESK_ERR_NO_SPACE);
    assert_non_null(strstr(error.text, "00000000000000000100.segment"));
    struct esk_segment *none = NULL;
    assert_int_equal(esk_segment_create(&fixture->storage, GROUP, 200, &none, &error),
                     ESK_ERR_NO_SPACE);
    assert_false(fake_disk_has(disk, FOLDER "/00000000000000000200.segment"));
    disk->capacity += 10000;
    assert_int_equal(esk_segment_append(segment, 4000, &slice, 1, 0, &error), ESK_OK);
    uint8_t read[4500];
    size_t got = 0;
    assert_int_equal(esk_segment_read(segment, read, 4500, 0, 4500, 0, &got, NULL), ESK_OK);
    assert_memory_equal(read, bytes, 3000);
    assert_memory_equal(read + 4000, bytes, 500);
    esk_segment_release(segment);
}

static void the_reserve_grows_at_the_cost_of_the_pool(void **state) {
    struct fixture *fixture = *state;
    make_removed(fixture, 0, 2000, 6);
    fixture->disk.capacity = fixture->disk.used;
    assert_int_equal(esk_reserve_grow(fixture->storage.reserve, 100, NULL), ESK_ERR_NO_SPACE);
    assert_int_equal(esk_room_grow_reserve(&fixture->storage, 100, NULL), ESK_OK);
    fixture->disk.capacity = fixture->disk.used;
    assert_int_equal(esk_room_grow_reserve(&fixture->storage, 1000, NULL), ESK_ERR_NO_SPACE);
}

/* The life of a segment after one that is recycled for it. Ends at the first error. */
static enum esk_err live(struct fixture *fixture) {
    const struct esk_storage *storage = &fixture->storage;
    struct esk_error *error = &fixture->error;
    uint8_t bytes[6000];
    fill(bytes, sizeof(bytes), 7);
    struct esk_slice slice = esk_slice(bytes, sizeof(bytes));
    struct esk_index index;
    add_entries(&index);
    struct esk_segment *segment = NULL;
    enum esk_err err = ESK_OK;
    for (int round = 0; round < 2; round++) {
        err = esk_segment_create(storage, GROUP, 0, &segment, error);
        if (err == ESK_OK) {
            err = esk_segment_append(segment, 0, &slice, 1, 0, error);
            err = err == ESK_OK ? esk_segment_sync(segment, error) : err;
            err = err == ESK_OK ? esk_segment_cut(segment, 6000, error) : err;
            err = err == ESK_OK
                      ? esk_segment_seal(storage, GROUP, segment, &summary10, &index, error)
                      : err;
            err = err == ESK_OK ? esk_segment_sync_names(storage, GROUP, error) : err;
            err = err == ESK_OK ? esk_snapshot_store(storage, GROUP, 9, 1, slice, error) : err;
            esk_segment_release(segment);
        }
        if (err == ESK_OK && round == 0) {
            err = esk_segment_remove(storage, GROUP, 0, 0, error);
        }
        if (err != ESK_OK) {
            break;
        }
    }
    esk_index_fini(&index);
    return err;
}

static void assert_whole(struct fixture *fixture) {
    struct esk_segment_summary summary;
    uint8_t bytes[6000];
    uint8_t read[6000];
    size_t got = 0;
    struct esk_segment *segment = NULL;
    fill(bytes, sizeof(bytes), 7);
    assert_int_equal(esk_segment_load(&fixture->storage, GROUP, 0, &summary, NULL, NULL), ESK_OK);
    assert_memory_equal(&summary, &summary10, sizeof(summary));
    assert_int_equal(esk_segment_open(&fixture->storage, GROUP, 0, &segment, NULL), ESK_OK);
    assert_int_equal(esk_segment_read(segment, read, 6000, 0, 6000, 0, &got, NULL), ESK_OK);
    assert_memory_equal(read, bytes, sizeof(bytes));
    esk_segment_release(segment);
    uint8_t *payload = NULL;
    assert_int_equal(esk_snapshot_load(&fixture->storage, GROUP, 9, &payload, &got, NULL), ESK_OK);
    assert_int_equal(got, 6000);
    assert_memory_equal(payload, bytes, sizeof(bytes));
    free(payload);
}

/* Fails the Nth call for every N; then starts anew on that disk and lives again. */
static void fail_each(enum fake_call kind, enum esk_err injected) {
    for (uint64_t n = 1;; n++) {
        struct fixture *fixture = fixture_create(1u << 20);
        fake_disk_fail(&fixture->disk, n, kind, injected);
        enum esk_err err = live(fixture);
        enum fake_call failed = fixture->disk.failed;
        fixture->disk.fail_in = 0;
        if (failed == FAKE_SYNC) {
            assert_int_equal(err, ESK_ERR_IO); /* never told as "no room", never tried again */
            assert_non_null(strstr(fixture->error.text, "sync "));
        } else if (failed && injected == ESK_ERR_NO_SPACE) {
            assert_int_equal(err, ESK_OK); /* room was made once: that was enough */
        } else {
            assert_int_equal(err, failed ? injected : ESK_OK);
        }
        if (err == ESK_OK) {
            assert_whole(fixture);
        }
        fixture_stop(fixture);
        fixture_start(fixture, 1u << 20);
        assert_int_equal(live(fixture), ESK_OK);
        assert_whole(fixture);
        fixture_destroy(fixture);
        if (!failed) {
            assert_true(n > 10);
            return;
        }
    }
}

static void any_failing_call_is_told_and_leaves_what_a_start_can_use(void **state) {
    (void)state;
    fail_each(FAKE_ANY, ESK_ERR_IO);
}

static void a_failing_sync_is_never_taken_for_a_full_disk(void **state) {
    (void)state;
    fail_each(FAKE_SYNC, ESK_ERR_NO_SPACE);
}

static void a_write_that_finds_no_room_is_tried_again(void **state) {
    (void)state;
    fail_each(FAKE_WRITE, ESK_ERR_NO_SPACE);
}

#define WITH_DISK(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DISK(appended_bytes_are_read_back_with_an_end_mark_behind),
        WITH_DISK(long_appends_pause_between_slices_and_send_them_on),
        WITH_DISK(an_append_runs_only_so_far_ahead_of_the_device),
        WITH_DISK(a_read_is_bounded_by_the_end_it_is_told),
        WITH_DISK(syncs_cover_the_file_and_every_name),
        WITH_DISK(a_sealed_segment_is_known_by_its_index_file),
        WITH_DISK(a_damaged_or_foreign_header_is_refused),
        WITH_DISK(a_cut_leaves_the_bytes_and_an_end_mark),
        WITH_DISK(a_recycled_file_shows_nothing_of_its_old_use),
        WITH_DISK(a_file_left_by_a_crash_is_replaced),
        WITH_DISK(a_full_disk_takes_the_pool_first_then_the_reserve),
        WITH_DISK(the_reserve_grows_at_the_cost_of_the_pool),
        cmocka_unit_test(any_failing_call_is_told_and_leaves_what_a_start_can_use),
        cmocka_unit_test(a_failing_sync_is_never_taken_for_a_full_disk),
        cmocka_unit_test(a_write_that_finds_no_room_is_tried_again),
    };
    return cmocka_run_group_tests_name("storage.segment", tests, NULL, NULL);
}
