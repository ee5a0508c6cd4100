/* SPDX-License-Identifier: Apache-2.0 */
/* Texts read outermost first, are cut rather than overrun, and codes survive wrapping. */
#include "base/assert.h"
#include "base/error.h"
#include "base/list.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void context_is_wrapped_outermost_first(void **state) {
    (void)state;
    struct esk_error error;
    assert_int_equal(esk_fail(&error, ESK_ERR_CORRUPT, "%d of %d bytes", 12, 64), ESK_ERR_CORRUPT);
    esk_wrap(&error, "read header");
    esk_wrap(&error, "open segment %d of %s", 42, "orders/3");
    assert_string_equal(error.text, "open segment 42 of orders/3: read header: 12 of 64 bytes");
    assert_int_equal(error.code, ESK_ERR_CORRUPT);
    assert_int_equal(esk_fail_errno(&error, ESK_ERR_NO_SPACE, ENOSPC, "write"), ESK_ERR_NO_SPACE);
    assert_string_equal(error.text, "write: No space left on device");
    assert_int_equal(esk_fail(NULL, ESK_ERR_INVALID, "unseen"), ESK_ERR_INVALID);
    esk_wrap(NULL, "unseen");
}

static void long_texts_are_cut(void **state) {
    (void)state;
    char text[ESK_ERROR_TEXT_BYTES * 2];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    struct esk_error error;
    esk_fail_errno(&error, ESK_ERR_IO, EIO, "%s", text);
    assert_int_equal(strlen(error.text), ESK_ERROR_TEXT_BYTES - 1);
    esk_wrap(&error, "outer");
    assert_int_equal(strlen(error.text), ESK_ERROR_TEXT_BYTES - 1);
    assert_memory_equal(error.text, "outer: xxx", 10);
    for (int length = ESK_ERROR_TEXT_BYTES - 4; length <= ESK_ERROR_TEXT_BYTES + 4; length++) {
        esk_wrap(&error, "%.*s", length, text);
        assert_true(strlen(error.text) < ESK_ERROR_TEXT_BYTES);
    }
}

static void errno_values_have_their_codes(void **state) {
    (void)state;
    assert_int_equal(esk_err_from_errno(ENOSPC), ESK_ERR_NO_SPACE);
    assert_int_equal(esk_err_from_errno(EDQUOT), ESK_ERR_NO_SPACE);
    assert_int_equal(esk_err_from_errno(EFBIG), ESK_ERR_NO_SPACE);
    assert_int_equal(esk_err_from_errno(ENOENT), ESK_ERR_NOT_FOUND);
    assert_int_equal(esk_err_from_errno(EIO), ESK_ERR_IO);
    assert_int_equal(esk_err_from_errno(123456), ESK_ERR_IO);
}

static void a_failed_assertion_ends_the_process(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        volatile int zero = 0;
        ESK_ASSERT(zero == 1);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void list_keeps_order_through_removals(void **state) {
    (void)state;
    struct item {
        int number;
        struct esk_link link;
    } items[3] = {{1, {0}}, {2, {0}}, {3, {0}}};
    struct esk_link head;
    esk_list_init(&head);
    assert_null(esk_list_first(&head));
    esk_list_append(&head, &items[1].link);
    esk_list_append(&head, &items[2].link);
    esk_list_prepend(&head, &items[0].link);
    esk_list_remove(&items[1].link);
    esk_list_remove(&items[1].link);
    int expected[] = {1, 3};
    for (int i = 0; i < 2; i++) {
        struct esk_link *first = esk_list_first(&head);
        assert_int_equal(ESK_CONTAINER(first, struct item, link)->number, expected[i]);
        esk_list_remove(first);
    }
    assert_true(esk_list_empty(&head));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_is_wrapped_outermost_first),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(errno_values_have_their_codes),
        cmocka_unit_test(a_failed_assertion_ends_the_process),
        cmocka_unit_test(list_keeps_order_through_removals),
    };
    return cmocka_run_group_tests_name("base.error", tests, NULL, NULL);
}
