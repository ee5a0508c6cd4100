/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's promises: no file is used again while it is read or before its names are durable, the
 * limit holds, and a start sorts out what a crash left. */
#include "storage/fake_disk.inc"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define LIMIT (64u * 1024)
#define GROUP 1
#define FOLDER "/data/groups/0000000000000001"
#define POOLED0 "/data/pool/0000000000000000"

static int start(void **state) {
    *state = fixture_create(LIMIT);
    return 0;
}

static int stop(void **state) {
    fixture_destroy(*state);
    return 0;
}

static struct esk_segment *create(struct fixture *fixture, uint64_t group, uint64_t base,
                                  uint8_t byte, size_t size) {
    struct esk_segment *segment = NULL;
    enum esk_err err = esk_segment_create(&fixture->storage, group, base, &segment, NULL);
    ESK_ASSERT(err == ESK_OK);
    uint8_t *bytes = esk_alloc(size);
    memset(bytes, byte, size);
    struct esk_slice slice = esk_slice(bytes, size);
    err = esk_segment_append(segment, 0, &slice, 1, 0, NULL);
    ESK_ASSERT(err == ESK_OK);
    free(bytes);
    return segment;
}

static bool reads_only(struct esk_segment *segment, uint8_t byte, size_t size) {
    uint8_t *bytes = esk_alloc(size);
    size_t got = 0;
    enum esk_err err = esk_segment_read(segment, bytes, size, 0, size, 0, &got, NULL);
    bool only = err == ESK_OK && got == size;
    for (size_t i = 0; only && i < size; i++) {
        only = bytes[i] == byte;
    }
    free(bytes);
    return only;
}

static enum esk_err remove_segment(struct fixture *fixture, uint64_t group, uint64_t base) {
    return esk_segment_remove(&fixture->storage, group, base, 0, &fixture->error);
}

static bool take(struct fixture *fixture, const char *path) {
    bool taken = false;
    assert_int_equal(esk_pool_take(fixture->storage.pool, path, &taken, NULL), ESK_OK);
    return taken;
}

static void a_given_file_is_marked_and_its_old_name_durably_gone(void **state) {
    struct fixture *fixture = *state;
    esk_segment_release(create(fixture, GROUP, 0, 1, 1000));
    assert_int_equal(remove_segment(fixture, GROUP, 0), ESK_OK);
    assert_false(fake_disk_has(&fixture->disk, FOLDER "/00000000000000000000.segment"));
    struct fake_node *file = fake_find(&fixture->disk, POOLED0);
    assert_non_null(file);
    assert_false(file->dirty);
    assert_false(fake_disk_dirty(&fixture->disk, FOLDER));
    struct eski_segment_header header;
    assert_int_equal(eski_segment_header_parse(file->bytes, "file", &header, NULL), ESK_OK);
    assert_int_equal(header.use, ESKI_USE_POOLED);
    assert_true(take(fixture, "/data/taken"));
    assert_false(fake_disk_dirty(&fixture->disk, "/data/pool"));
    assert_true(fake_find(&fixture->disk, "/data/taken") == file);
    assert_false(take(fixture, "/data/more"));
}

static void a_file_is_not_used_again_while_it_is_read(void **state) {
    struct fixture *fixture = *state;
    struct esk_segment *reader = create(fixture, GROUP, 0, 1, 1000);
    struct esk_segment *other = NULL;
    assert_int_equal(esk_segment_open(&fixture->storage, GROUP, 0, &other, NULL), ESK_OK);
    assert_int_equal(remove_segment(fixture, GROUP, 0), ESK_OK);
    assert_false(take(fixture, "/data/taken"));
    assert_int_equal(esk_pool_empty(fixture->storage.pool), 0);
    struct esk_segment *next = create(fixture, GROUP, 0, 2, 1000); /* the same name again */
    esk_segment_release(other);
    assert_false(take(fixture, "/data/taken"));
    assert_true(reads_only(reader, 1, 1000));
    esk_segment_release(reader);
    assert_true(take(fixture, "/data/taken"));
    esk_segment_release(next);
}

static void small_and_foreign_files_are_not_kept(void **state) {
    struct fixture *fixture = *state;
    struct fake_disk *disk = &fixture->disk;
    fixture_stop(fixture);
    fixture_start(fixture, 1u << 23); /* a file counts from 8 KiB on */
    esk_segment_release(create(fixture, GROUP, 0, 1, 4096 - ESKI_END_MARK_BYTES - 1));
    assert_int_equal(remove_segment(fixture, GROUP, 0), ESK_OK);
    assert_false(take(fixture, "/data/taken"));
    esk_segment_release(create(fixture, GROUP, 0, 1, 4096));
    fake_find(disk, FOLDER "/00000000000000000000.segment")->bytes[30] ^= 1;
    assert_int_equal(remove_segment(fixture, GROUP, 0), ESK_OK);
    assert_false(take(fixture, "/data/taken"));
    assert_false(fake_disk_has(disk, FOLDER "/00000000000000000000.segment"));
    assert_int_equal(remove_segment(fixture, GROUP, 0), ESK_OK); /* a missing one is fine */
}

/* After a power loss both names of a renamed file may be there. */
static void an_old_name_of_another_segment_only_goes_away(void **state) {
    struct fixture *fixture = *state;
    esk_segment_release(create(fixture, GROUP, 0, 1, 1000));
    assert_int_equal(esk_path_rename(&fixture->disk.platform,
                                     FOLDER "/00000000000000000000.segment",
                                     FOLDER "/00000000000000000005.segment", NULL),
                     ESK_OK);
    assert_int_equal(remove_segment(fixture, GROUP, 5), ESK_OK);
    assert_false(fake_disk_has(&fixture->disk, FOLDER "/00000000000000000005.segment"));
    assert_false(take(fixture, "/data/taken"));
}

static void beyond_the_limit_the_oldest_files_shrink_away(void **state) {
    struct fixture *fixture = *state;
    for (uint64_t base = 0; base < 4; base++) {
        esk_segment_release(create(fixture, GROUP, base, 1, 10000));
        esk_segment_release(create(fixture, GROUP, base + 10, 1, 10000));
    }
    for (uint64_t base = 0; base < 4; base++) {
        assert_int_equal(remove_segment(fixture, GROUP, base), ESK_OK);
        assert_int_equal(remove_segment(fixture, GROUP, base + 10), ESK_OK);
    }
    uint64_t each = ESK_SEGMENT_HEADER_BYTES + 10000 + ESKI_END_MARK_BYTES;
    assert_int_equal(fixture->disk.used, LIMIT / each * each);
    assert_false(fake_disk_has(&fixture->disk, POOLED0));
    assert_int_equal(esk_pool_empty(fixture->storage.pool), LIMIT / each * each);
    assert_int_equal(fixture->disk.used, 0);

    fixture->disk.pauses = 0;
    esk_segment_release(create(fixture, GROUP, 0, 1, 20u << 20));
    assert_int_equal(remove_segment(fixture, GROUP, 0), ESK_OK);
    assert_int_equal(fixture->disk.used, 0);
    assert_int_equal(fixture->disk.pauses, 2); /* 20 MiB in steps of 8 */
}

static void the_default_limit_is_a_share_of_the_disk(void **state) {
    struct fixture *fixture = *state;
    fixture_stop(fixture);
    fixture->disk.capacity = 100 * 20000;
    fixture_start(fixture, 0); /* 40,000 bytes */
    for (uint64_t base = 0; base < 4; base++) {
        esk_segment_release(create(fixture, GROUP, base, 1, 10000));
    }
    for (uint64_t base = 0; base < 4; base++) {
        assert_int_equal(remove_segment(fixture, GROUP, base), ESK_OK);
    }
    assert_int_equal(fixture->disk.used,
                     2 * (ESK_SEGMENT_HEADER_BYTES + 10000 + ESKI_END_MARK_BYTES));
}

static void a_start_keeps_free_files_and_unlinks_the_rest(void **state) {
    struct fixture *fixture = *state;
    struct fake_disk *disk = &fixture->disk;
    esk_segment_release(create(fixture, GROUP, 0, 1, 1000));
    esk_segment_release(create(fixture, GROUP, 1, 1, 1000));
    assert_int_equal(remove_segment(fixture, GROUP, 0), ESK_OK);
    /* A crash within give: the new name is there, the mark is not. */
    assert_int_equal(esk_path_rename(&disk->platform, FOLDER "/00000000000000000001.segment",
                                     "/data/pool/0000000000000007", NULL),
                     ESK_OK);
    struct esk_file *file = NULL;
    assert_int_equal(esk_file_open(&disk->platform, "/data/pool/0000000000000008",
                                   ESK_FILE_WRITE | ESK_FILE_CREATE, &file, NULL),
                     ESK_OK);
    esk_file_close(file);
    fixture_stop(fixture);
    fixture_start(fixture, LIMIT);
    assert_true(fake_disk_has(disk, POOLED0));
    assert_false(fake_disk_has(disk, "/data/pool/0000000000000007"));
    assert_false(fake_disk_has(disk, "/data/pool/0000000000000008"));
    assert_false(fake_find(disk, "/data/pool")->dirty);
    assert_true(take(fixture, "/data/taken"));
    assert_false(take(fixture, "/data/more"));
}

static void a_file_somebody_deleted_is_forgotten(void **state) {
    struct fixture *fixture = *state;
    esk_segment_release(create(fixture, GROUP, 0, 1, 1000));
    assert_int_equal(remove_segment(fixture, GROUP, 0), ESK_OK);
    assert_int_equal(esk_path_remove(&fixture->disk.platform, POOLED0, NULL), ESK_OK);
    assert_false(take(fixture, "/data/taken"));
    esk_segment_release(create(fixture, GROUP, 1, 1, 1000));
}

static void a_full_disk_lets_a_file_go_that_it_cannot_keep(void **state) {
    struct fixture *fixture = *state;
    for (uint64_t n = 1; n < 20; n++) {
        esk_segment_release(create(fixture, GROUP, n, 1, 1000));
        fake_disk_fail(&fixture->disk, n, FAKE_OTHER | FAKE_WRITE, ESK_ERR_NO_SPACE);
        enum esk_err err = remove_segment(fixture, GROUP, n);
        bool failed = fixture->disk.failed != 0;
        fixture->disk.fail_in = 0;
        if (err != ESK_OK) { /* the very call that removes: then it is tried again some time */
            assert_int_equal(err, ESK_ERR_NO_SPACE);
            assert_int_equal(remove_segment(fixture, GROUP, n), ESK_OK);
        }
        struct esk_segment_file *files = NULL;
        size_t count = 1;
        assert_int_equal(esk_segment_list(&fixture->storage, GROUP, &files, &count, NULL), ESK_OK);
        assert_int_equal(count, 0);
        free(files);
        if (!failed) {
            assert_true(n > 4);
            return;
        }
    }
    fail();
}

/* A failed sync of a give: the file must not come out of the pool. */
static void what_is_not_durably_free_is_never_given_out(void **state) {
    struct fixture *fixture = *state;
    for (uint64_t n = 1; n <= 2; n++) {
        esk_segment_release(create(fixture, GROUP, n, 1, 1000));
        fake_disk_fail(&fixture->disk, n, FAKE_SYNC, ESK_ERR_IO);
        assert_int_equal(remove_segment(fixture, GROUP, n), ESK_ERR_IO);
        fixture->disk.fail_in = 0;
        assert_false(take(fixture, "/data/taken"));
    }
}

#define THREADS 4
#define ROUNDS 300

struct user {
    struct fixture *fixture;
    uint8_t id;
};

/* Each makes, reads and removes segments of its own while the others take its files. */
static void *use(void *context) {
    struct user *user = context;
    struct fixture *fixture = user->fixture;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct esk_segment *segment = create(fixture, user->id, i % 3, user->id, 500);
        struct esk_segment *reader = NULL;
        if (esk_segment_open(&fixture->storage, user->id, i % 3, &reader, NULL) != ESK_OK ||
            esk_segment_remove(&fixture->storage, user->id, i % 3, 0, NULL) != ESK_OK) {
            return user;
        }
        esk_segment_release(segment);
        bool whole = reads_only(reader, user->id, 500);
        esk_segment_release(reader);
        if (!whole) {
            return user;
        }
    }
    return NULL;
}

static void readers_never_see_the_next_use_of_their_file(void **state) {
    struct fixture *fixture = *state;
    pthread_t threads[THREADS];
    struct user users[THREADS];
    for (uint8_t i = 0; i < THREADS; i++) {
        users[i] = (struct user){fixture, (uint8_t)(i + 1)};
        pthread_create(&threads[i], NULL, use, &users[i]);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    esk_pool_empty(fixture->storage.pool);
    assert_int_equal(fixture->disk.used, 0);
}

#define WITH_DISK(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_DISK(a_given_file_is_marked_and_its_old_name_durably_gone),
        WITH_DISK(a_file_is_not_used_again_while_it_is_read),
        WITH_DISK(small_and_foreign_files_are_not_kept),
        WITH_DISK(an_old_name_of_another_segment_only_goes_away),
        WITH_DISK(beyond_the_limit_the_oldest_files_shrink_away),
        WITH_DISK(the_default_limit_is_a_share_of_the_disk),
        WITH_DISK(a_start_keeps_free_files_and_unlinks_the_rest),
        WITH_DISK(a_file_somebody_deleted_is_forgotten),
        WITH_DISK(a_full_disk_lets_a_file_go_that_it_cannot_keep),
        WITH_DISK(what_is_not_durably_free_is_never_given_out),
        WITH_DISK(readers_never_see_the_next_use_of_their_file),
    };
    return cmocka_run_group_tests_name("storage.pool", tests, NULL, NULL);
}
