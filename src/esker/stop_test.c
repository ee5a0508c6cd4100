/* SPDX-License-Identifier: Apache-2.0 */
/* Signals end processes, so each case runs in a child and shows as its exit code. */
#include "esker/stop.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int exit_code_of(int run(void)) {
    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* only bounds a failure */
        esk_stop_begin(NULL);
        _exit(run());
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int one_signal(void) {
    kill(getpid(), SIGPIPE); /* ignored */
    kill(getpid(), SIGXFSZ);
    bool before = esk_stop_asked();
    kill(getpid(), SIGTERM);
    bool failed = esk_stop_wait();
    return before || failed || !esk_stop_asked() ? 10 : 11;
}

static void a_signal_asks_for_the_end(void **state) {
    (void)state;
    assert_int_equal(exit_code_of(one_signal), 11);
}

static int two_signals(void) {
    kill(getpid(), SIGINT);
    esk_stop_wait();
    kill(getpid(), SIGTERM);
    while (pause() != 0) { /* as a stop that takes for ever */
    }
    return 0;
}

static void a_second_signal_ends_at_once(void **state) {
    (void)state;
    assert_int_equal(exit_code_of(two_signals), ESK_EXIT_FAILURE);
}

static int failure(void) {
    struct esk_error error = {ESK_ERR_IO, "sync failed"};
    esk_stop_fail(&error);
    return esk_stop_wait() && esk_stop_asked() ? 12 : 13;
}

static void a_failure_asks_for_the_end_and_is_told_apart(void **state) {
    (void)state;
    assert_int_equal(exit_code_of(failure), 12);
}

static void end_by_hangup(void *count) {
    if (++*(int *)count == 2) {
        kill(getpid(), SIGTERM);
    } else {
        kill(getpid(), SIGHUP);
    }
}

static int hangups(void) {
    int count = 0;
    esk_stop_on_hangup(end_by_hangup, &count);
    kill(getpid(), SIGHUP); /* before the wait */
    return esk_stop_wait() ? 14 : 15 + count;
}

static void a_hangup_runs_what_was_set_and_goes_on(void **state) {
    (void)state;
    assert_int_equal(exit_code_of(hangups), 17);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_asks_for_the_end),
        cmocka_unit_test(a_second_signal_ends_at_once),
        cmocka_unit_test(a_failure_asks_for_the_end_and_is_told_apart),
        cmocka_unit_test(a_hangup_runs_what_was_set_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
