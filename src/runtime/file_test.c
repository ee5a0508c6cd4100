/* SPDX-License-Identifier: Apache-2.0 */
/* Files on the real file system of the temporary folder. */
#include "platform/file.h"

#include "base/memory.h"
#include "runtime/platform.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct esk_platform *platform;
static char folder[64];
static char path_memory[4][128];

static const char *path(const char *name) {
    static unsigned next;
    char *memory = path_memory[next++ % 4];
    snprintf(memory, sizeof(path_memory[0]), "%s/%s", folder, name);
    return memory;
}

static int set_up(void **state) {
    (void)state;
    platform = esk_runtime_platform_create();
    strcpy(folder, "/tmp/esker-file-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static enum esk_err remove_entry(void *context, const char *name, bool is_folder) {
    (void)context;
    (void)is_folder;
    return esk_path_remove(platform, path(name), NULL);
}

static int tear_down(void **state) {
    (void)state;
    int failed = esk_folder_list(platform, folder, remove_entry, NULL, NULL) ||
                 esk_path_remove(platform, folder, NULL);
    esk_runtime_platform_destroy(platform);
    return failed;
}

static struct esk_file *open_file(const char *name, unsigned flags) {
    struct esk_file *file = NULL;
    struct esk_error error = {0};
    if (esk_file_open(platform, path(name), flags, &file, &error) != ESK_OK) {
        fail_msg("%s", error.text);
    }
    return file;
}

static void write_text(struct esk_file *file, const char *text, uint64_t position) {
    struct esk_slice slice = esk_slice_text(text);
    assert_int_equal(esk_file_write(file, &slice, 1, position, NULL), ESK_OK);
}

static void what_was_written_reads_back(void **state) {
    (void)state;
    struct esk_file *file = open_file("a", ESK_FILE_READ | ESK_FILE_WRITE | ESK_FILE_CREATE);
    struct esk_slice slices[300];
    for (size_t i = 0; i < 300; i++) {
        slices[i] = esk_slice(&"0123456789"[i % 10], i % 10 == 3 ? 0 : 1);
    }
    assert_int_equal(esk_file_write(file, slices, 300, 5, NULL), ESK_OK);
    assert_int_equal(esk_file_sync(file, NULL), ESK_OK);
    uint64_t size = 0;
    assert_int_equal(esk_file_size(file, &size, NULL), ESK_OK);
    assert_int_equal(size, 275);
    char got[300];
    size_t count = 0;
    assert_int_equal(esk_file_read(file, got, sizeof(got), 0, 0, &count, NULL), ESK_OK);
    assert_int_equal(count, 275);
    assert_memory_equal(got,
                        "\0\0\0\0\0"
                        "012456789012",
                        17);
    assert_memory_equal(got + 266, "012456789", 9);
    assert_int_equal(esk_file_read(file, got, sizeof(got), 275, 0, &count, NULL), ESK_OK);
    assert_int_equal(count, 0);
    assert_int_equal(esk_file_truncate(file, 7, NULL), ESK_OK);
    assert_int_equal(esk_file_allocate(file, 0, 100, NULL), ESK_OK);
    assert_int_equal(esk_file_size(file, &size, NULL), ESK_OK);
    assert_int_equal(size, 100);
    esk_file_close(file);
}

static void direct_durable_writes_and_reads_to_the_end(void **state) {
    (void)state;
    struct esk_file *file = NULL;
    enum esk_err err = esk_file_open(platform, path("d"),
                                     ESK_FILE_READ | ESK_FILE_WRITE | ESK_FILE_CREATE |
                                         ESK_FILE_DIRECT | ESK_FILE_DSYNC,
                                     &file, NULL);
    if (err == ESK_ERR_UNSUPPORTED) {
        skip(); /* this file system has none; the journal falls back */
    }
    assert_int_equal(err, ESK_OK);
    uint8_t *block = aligned_alloc(4096, 8192);
    memset(block, 'x', 8192);
    struct esk_slice slice = {block, 8192};
    assert_int_equal(esk_file_write(file, &slice, 1, 0, NULL), ESK_OK);
    assert_int_equal(esk_file_truncate(file, 5000, NULL), ESK_OK);
    size_t got = 0;
    assert_int_equal(esk_file_read(file, block, 8192, 0, 0, &got, NULL), ESK_OK);
    assert_int_equal(got, 5000);
    /* Not aligned: refused in words that the caller can fall back on. */
    struct esk_error error = {0};
    slice = (struct esk_slice){block + 1, 512};
    err = esk_file_write(file, &slice, 1, 4096, &error);
    assert_true(err == ESK_ERR_UNSUPPORTED || err == ESK_OK);
    free(block);
    esk_file_close(file);
}

static void a_nowait_read_gives_cached_bytes_or_says_again(void **state) {
    (void)state;
    struct esk_file *file = open_file("n", ESK_FILE_READ | ESK_FILE_WRITE | ESK_FILE_CREATE);
    write_text(file, "cached", 0);
    char got[16];
    size_t count = 0;
    enum esk_err err = esk_file_read(file, got, 16, 0, ESK_READ_NOWAIT, &count, NULL);
    if (err == ESK_OK) {
        assert_int_equal(count, 6);
        assert_memory_equal(got, "cached", 6);
        assert_int_equal(esk_file_sync(file, NULL), ESK_OK);
        assert_int_equal(esk_file_drop_cache(file, NULL), ESK_OK);
        err = esk_file_read(file, got, 16, 0, ESK_READ_NOWAIT, &count, NULL);
    }
    /* Dropped pages may stay, and some file systems know no such reads. */
    assert_true(err == ESK_OK || err == ESK_ERR_AGAIN);
    assert_int_equal(esk_file_read(file, got, 16, 0, 0, &count, NULL), ESK_OK);
    assert_memory_equal(got, "cached", 6);
    esk_file_close(file);
}

static void a_file_over_its_size_limit_is_no_space(void **state) {
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    struct rlimit small = {4096, before.rlim_max};
    struct esk_file *file = open_file("big", ESK_FILE_WRITE | ESK_FILE_CREATE);
    setrlimit(RLIMIT_FSIZE, &small);
    uint8_t *bytes = esk_alloc_zeroed(1, 8192);
    struct esk_slice slice = {bytes, 8192};
    struct esk_error error = {0};
    enum esk_err err = esk_file_write(file, &slice, 1, 0, &error);
    struct esk_error store_error = {0};
    enum esk_err stored = esk_file_store(platform, path("store"), slice, &store_error);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(err, ESK_ERR_NO_SPACE);
    assert_non_null(strstr(error.text, "big at position 4096: File too large"));
    uint64_t size = 0;
    assert_int_equal(esk_file_size(file, &size, NULL), ESK_OK);
    assert_int_equal(size, 4096); /* the short write stays */
    assert_int_equal(stored, ESK_ERR_NO_SPACE);
    assert_int_equal(access(path("store"), F_OK), -1);
    assert_int_equal(access(path("store.new"), F_OK), -1);
    free(bytes);
    esk_file_close(file);
}

static void errors_name_the_path_and_the_kind(void **state) {
    (void)state;
    struct esk_file *file = NULL;
    struct esk_error error = {0};
    assert_int_equal(esk_file_open(platform, path("none"), ESK_FILE_READ, &file, &error),
                     ESK_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, path("none")));
    esk_file_close(open_file("there", ESK_FILE_WRITE | ESK_FILE_CREATE));
    unsigned exclusive = ESK_FILE_WRITE | ESK_FILE_CREATE | ESK_FILE_EXCLUSIVE;
    assert_int_equal(esk_file_open(platform, path("there"), exclusive, &file, &error),
                     ESK_ERR_CONFLICT);
    assert_int_equal(esk_folder_make(platform, path("there"), &error), ESK_ERR_CONFLICT);
    assert_int_equal(esk_folder_make(platform, path("none/deeper"), &error), ESK_ERR_NOT_FOUND);
}

static void a_second_lock_is_a_conflict_until_the_first_closes(void **state) {
    (void)state;
    struct esk_file *first = open_file("lock", ESK_FILE_WRITE | ESK_FILE_CREATE);
    struct esk_file *second = open_file("lock", ESK_FILE_WRITE);
    struct esk_error error = {0};
    assert_int_equal(esk_file_lock(first, NULL), ESK_OK);
    assert_int_equal(esk_file_lock(second, &error), ESK_ERR_CONFLICT);
    assert_non_null(strstr(error.text, "in use by another process"));
    esk_file_close(first);
    assert_int_equal(esk_file_lock(second, NULL), ESK_OK);
    esk_file_close(second);
}

static void a_store_replaces_the_whole_file(void **state) {
    (void)state;
    uint8_t *bytes = NULL;
    size_t size = 0;
    assert_int_equal(esk_file_store(platform, path("s"), esk_slice_text("long text"), NULL), 0);
    assert_int_equal(esk_file_store(platform, path("s"), esk_slice_text("short"), NULL), 0);
    assert_int_equal(access(path("s.new"), F_OK), -1);
    assert_int_equal(esk_file_load(platform, path("s"), 5, &bytes, &size, NULL), ESK_OK);
    assert_int_equal(size, 5);
    assert_memory_equal(bytes, "short", 5);
    free(bytes);
    struct esk_error error = {0};
    assert_int_equal(esk_file_load(platform, path("s"), 4, &bytes, &size, &error),
                     ESK_ERR_TOO_LARGE);
}

static char listed[64];
static enum esk_err note_entry(void *context, const char *name, bool is_folder) {
    (void)context;
    strcat(listed, name);
    strcat(listed, is_folder ? "/ " : " ");
    return strcmp(name, "c") == 0 ? ESK_ERR_CORRUPT : ESK_OK;
}

static void folders_are_closed_to_others(void **state) {
    (void)state;
    struct stat status;
    mode_t before = umask(0);
    assert_int_equal(esk_folder_make(platform, path("closed"), NULL), ESK_OK);
    umask(before);
    assert_int_equal(stat(path("closed"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0750);
}

static void folders_list_sorted_and_stop_at_an_error(void **state) {
    (void)state;
    listed[0] = '\0';
    assert_int_equal(esk_folder_make(platform, path("list"), NULL), ESK_OK);
    assert_int_equal(esk_folder_make(platform, path("list"), NULL), ESK_OK);
    const char *names[] = {"list/d", "list/c", "list/a"};
    for (size_t i = 0; i < 3; i++) {
        esk_file_close(open_file(names[i], ESK_FILE_WRITE | ESK_FILE_CREATE));
    }
    assert_int_equal(esk_folder_make(platform, path("list/b"), NULL), ESK_OK);
    assert_int_equal(esk_folder_list(platform, path("list"), note_entry, NULL, NULL),
                     ESK_ERR_CORRUPT);
    assert_string_equal(listed, "a b/ c ");
    assert_int_equal(esk_path_rename(platform, path("list/c"), path("list/e"), NULL), ESK_OK);
    assert_int_equal(esk_folder_sync(platform, path("list"), NULL), ESK_OK);
    assert_int_equal(esk_path_remove(platform, path("list/c"), NULL), ESK_ERR_NOT_FOUND);
    const char *left[] = {"list/a", "list/b", "list/d", "list/e", "list"};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(esk_path_remove(platform, path(left[i]), NULL), ESK_OK);
    }
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    assert_int_equal(esk_path_space(platform, folder, &free_bytes, &total_bytes, NULL), ESK_OK);
    assert_true(free_bytes > 0 && free_bytes <= total_bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_reads_back),
        cmocka_unit_test(direct_durable_writes_and_reads_to_the_end),
        cmocka_unit_test(a_nowait_read_gives_cached_bytes_or_says_again),
        cmocka_unit_test(a_file_over_its_size_limit_is_no_space),
        cmocka_unit_test(errors_name_the_path_and_the_kind),
        cmocka_unit_test(a_second_lock_is_a_conflict_until_the_first_closes),
        cmocka_unit_test(a_store_replaces_the_whole_file),
        cmocka_unit_test(folders_are_closed_to_others),
        cmocka_unit_test(folders_list_sorted_and_stop_at_an_error),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
