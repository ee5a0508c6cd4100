/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that a loop begins, on a real file. Where the file system knows no direct access, or the
 * kernel gives no context for such writes, all of them are left to a worker: that is legal too. */
#include "base/list.h"
#include "base/memory.h"
#include "runtime/loop.h"
#include "runtime/platform.h"
#include "runtime/runtime_private.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define BLOCK 4096
#define BLOCKS 40 /* more than may be out at once */

static struct esk_platform *platform;
static char path[32];

static int set_up(void **state) {
    (void)state;
    platform = esk_runtime_platform_create();
    strcpy(path, "esker-aio-test-XXXXXX"); /* here: the usual place may be no disk */
    int fd = mkstemp(path);
    return fd < 0 || ftruncate(fd, (off_t)BLOCKS * BLOCK) != 0 || close(fd) != 0;
}

static int tear_down(void **state) {
    (void)state;
    esk_runtime_platform_destroy(platform);
    return unlink(path);
}

struct begun {
    struct esk_write write;
    unsigned *left;
};

static void on_written(struct esk_mail *mail) {
    struct begun *begun = ESK_CONTAINER(mail, struct begun, write.mail);
    assert_true(esk_executor_is_current(&begun->write.loop->executor));
    if (--*begun->left == 0) {
        esk_loop_stop(begun->write.loop);
    }
}

/* Begins a write for each block, writes those that are left to a worker; how many it began. */
static unsigned write_blocks(struct esk_file *file, const uint8_t *bytes) {
    struct esk_loop *loop = esk_loop_create("test");
    struct begun begun[BLOCKS + 1];
    unsigned left = 1;
    for (unsigned i = 0; i < BLOCKS; i++) {
        begun[i] = (struct begun){.write = {.mail = {.run = on_written},
                                            .loop = loop,
                                            .bytes = esk_slice(bytes + i * BLOCK, BLOCK),
                                            .position = (uint64_t)i * BLOCK,
                                            .result = ESK_ERR_AGAIN},
                                  .left = &left};
        left += esk_file_write_begin(file, &begun[i].write);
    }
    unsigned count = left - 1;
    begun[BLOCKS] = (struct begun){{.mail = {.run = on_written}, .loop = loop}, &left};
    esk_post(&loop->executor, &begun[BLOCKS].write.mail); /* there may be none */
    esk_loop_run(loop);
    esk_loop_destroy(loop);
    for (unsigned i = 0; i < BLOCKS; i++) {
        const struct esk_write *write = &begun[i].write;
        if (write->result == ESK_ERR_AGAIN) {
            assert_int_equal(esk_file_write(file, &write->bytes, 1, write->position, NULL), ESK_OK);
        } else {
            assert_int_equal(write->result, ESK_OK);
        }
    }
    return count;
}

static void begun_writes_end_in_the_loop_and_are_in_the_file(void **state) {
    (void)state;
    uint8_t *bytes = aligned_alloc(BLOCK, 2 * BLOCKS * BLOCK);
    uint8_t *back = bytes + (size_t)BLOCKS * BLOCK;
    struct esk_file *file;
    for (size_t i = 0; i < (size_t)BLOCKS * BLOCK; i++) {
        bytes[i] = (uint8_t)(i / BLOCK + i);
    }
    unsigned flags = ESK_FILE_READ | ESK_FILE_WRITE | ESK_FILE_DIRECT | ESK_FILE_DSYNC;
    enum esk_err err = esk_file_open(platform, path, flags, &file, NULL);
    if (err == ESK_ERR_UNSUPPORTED) {
        free(bytes);
        skip(); /* no direct access in this folder */
    }
    assert_int_equal(err, ESK_OK);
    print_message("%u of %d writes were begun\n", write_blocks(file, bytes), BLOCKS);
    assert_int_equal(esk_file_read_exactly(file, back, (size_t)BLOCKS * BLOCK, 0, NULL), ESK_OK);
    assert_memory_equal(back, bytes, (size_t)BLOCKS * BLOCK);
    esk_file_close(file);
    free(bytes);
}

static void what_the_kernel_says_becomes_a_result(void **state) {
    (void)state;
    struct esk_write write = {.bytes = esk_slice(NULL, BLOCK), .position = 3 * BLOCK};
    assert_int_equal(
        esk_file_open(platform, path, ESK_FILE_READ | ESK_FILE_WRITE, &write.file, NULL), ESK_OK);
    const struct {
        int64_t said;
        enum esk_err result;
    } cases[] = {
        {BLOCK, ESK_OK},          {512, ESK_ERR_AGAIN},         {0, ESK_ERR_AGAIN},
        {-EAGAIN, ESK_ERR_AGAIN}, {-EOPNOTSUPP, ESK_ERR_AGAIN}, {-EIO, ESK_ERR_IO},
        {-EINVAL, ESK_ERR_AGAIN}, {-ENOSPC, ESK_ERR_NO_SPACE},  {-EDQUOT, ESK_ERR_NO_SPACE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        eski_file_write_ended(&write, cases[i].said);
        assert_int_equal(write.result, cases[i].result);
    }
    assert_non_null(strstr(write.error.text, path));
    assert_non_null(strstr(write.error.text, "12288"));
    esk_file_close(write.file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(begun_writes_end_in_the_loop_and_are_in_the_file, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_the_kernel_says_becomes_a_result, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
