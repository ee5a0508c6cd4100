/* SPDX-License-Identifier: Apache-2.0 */
/* Faults over real files. */
#include "runtime/faults.h"

#include "base/memory.h"
#include "runtime/platform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct esk_platform *real;
static char path[64];
static char mark[64];

static int set_up(void **state) {
    (void)state;
    real = esk_runtime_platform_create();
    strcpy(path, "/tmp/esker-faults-test-XXXXXX");
    int fd = mkstemp(path);
    snprintf(mark, sizeof(mark), "%s.mark", path);
    return fd < 0 || close(fd);
}

static int tear_down(void **state) {
    (void)state;
    esk_runtime_platform_destroy(real);
    return unlink(path);
}

static struct esk_platform *with_rules(const char *rules) {
    struct esk_platform *faulty = NULL;
    struct esk_error error = {0};
    if (esk_faults_create(real, rules, &faulty, &error) != ESK_OK) {
        fail_msg("%s", error.text);
    }
    return faulty;
}

static struct esk_file *open_file(struct esk_platform *platform) {
    struct esk_file *file = NULL;
    assert_int_equal(esk_file_open(platform, path, ESK_FILE_READ | ESK_FILE_WRITE, &file, NULL),
                     ESK_OK);
    return file;
}

static void the_nth_sync_fails_and_no_other(void **state) {
    (void)state;
    struct esk_platform *faulty = with_rules("sync:3:EIO;sync:5-6:ENOSPC:*;sync:1-:EIO:*other");
    struct esk_file *file = open_file(faulty);
    const enum esk_err expected[] = {ESK_OK,           ESK_OK,           ESK_ERR_IO, ESK_OK,
                                     ESK_ERR_NO_SPACE, ESK_ERR_NO_SPACE, ESK_OK};
    for (size_t i = 0; i < 7; i++) {
        /* Waiting for write-back counts as a sync, starting it does not. */
        assert_int_equal(esk_file_write_back(file, 4096, 4096, 0, NULL), ESK_OK);
        assert_int_equal(i % 2 ? esk_file_write_back(file, 4096, 4096, 4096, NULL)
                               : esk_file_sync(file, NULL),
                         expected[i]);
    }
    esk_file_close(file);
    esk_faults_destroy(faulty);
}

static void a_short_write_is_made_whole_and_a_lost_one_is_not(void **state) {
    (void)state;
    struct esk_platform *faulty = with_rules("write:%2:lost;write:1:short");
    struct esk_file *file = open_file(faulty);
    struct esk_slice slice = esk_slice_text("abcdefgh");
    struct esk_error error = {0};
    /* The first call writes half, the second, for the other half, half of that. */
    assert_int_equal(esk_file_write(file, &slice, 1, 0, &error), ESK_ERR_IO);
    assert_non_null(strstr(error.text, "at position 4 (fault of a test)"));
    char got[16];
    size_t count = 0;
    assert_int_equal(esk_file_read(file, got, 16, 0, 0, &count, NULL), ESK_OK);
    assert_int_equal(count, 6);
    assert_memory_equal(got, "abcdef", 6);
    assert_int_equal(esk_file_write(file, &slice, 1, 0, NULL), ESK_OK);
    esk_file_close(file);
    esk_faults_destroy(faulty);
}

static void a_fault_lasts_as_long_as_its_file(void **state) {
    (void)state;
    char rules[256];
    snprintf(rules, sizeof(rules), "write:@%s:ENOSPC;open:@%s:EACCES", mark, mark);
    struct esk_platform *faulty = with_rules(rules);
    struct esk_file *file = open_file(faulty);
    struct esk_slice slice = esk_slice_text("x");
    assert_int_equal(esk_file_write(file, &slice, 1, 0, NULL), ESK_OK);
    fclose(fopen(mark, "w"));
    struct esk_file *second = NULL;
    assert_int_equal(esk_file_write(file, &slice, 1, 0, NULL), ESK_ERR_NO_SPACE);
    assert_int_equal(esk_file_open(faulty, path, ESK_FILE_READ, &second, NULL), ESK_ERR_PERMISSION);
    unlink(mark);
    assert_int_equal(esk_file_write(file, &slice, 1, 0, NULL), ESK_OK);
    esk_file_close(file);
    esk_faults_destroy(faulty);
}

static void wrong_rules_are_refused(void **state) {
    (void)state;
    const char *wrong[] = {"sink:1:EIO",   "sync",         "sync:0:EIO",
                           "sync:1",       "sync:1:EWHAT", "sync:1:short",
                           "sync:1-x:EIO", "write:%:EIO",  "write:@:EIO"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct esk_platform *faulty = NULL;
        struct esk_error error = {0};
        assert_int_equal(esk_faults_create(real, wrong[i], &faulty, &error), ESK_ERR_INVALID);
        assert_non_null(strstr(error.text, wrong[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_sync_fails_and_no_other),
        cmocka_unit_test(a_short_write_is_made_whole_and_a_lost_one_is_not),
        cmocka_unit_test(a_fault_lasts_as_long_as_its_file),
        cmocka_unit_test(wrong_rules_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
