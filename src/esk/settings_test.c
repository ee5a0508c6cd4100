/* SPDX-License-Identifier: Apache-2.0 */
/* Where settings come from: the command line, then the environment, then the profile. */
#include "esk/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];
static struct esk_arguments arguments;
static struct esk_settings settings;
static struct esk_error error;

static void write_profiles(const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static enum esk_err read_settings(const char *const *words) {
    char *argv[16] = {(char *)(uintptr_t) "esk"};
    int argc = 1;
    for (; words[argc - 1]; argc++) {
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    }
    esk_arguments_fini(&arguments);
    esk_settings_fini(&settings);
    assert_int_equal(esk_arguments_parse(&arguments, argc, argv, &error), ESK_OK);
    return esk_settings_init(&settings, &arguments, &error);
}
#define READ(...) read_settings((const char *const[]){"topic", "list", __VA_ARGS__, NULL})

static int set_up(void **state) {
    (void)state;
    strcpy(path, "/tmp/settings_test.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    setenv("ESK_PROFILES", path, 1);
    unsetenv("ESK_SERVER");
    unsetenv("ESK_KEY");
    unsetenv("ESK_CA");
    unsetenv("ESK_PROFILE");
    unsetenv("ESK_BINARY_SERVER");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    esk_settings_fini(&settings);
    esk_arguments_fini(&arguments);
    memset(&arguments, 0, sizeof(arguments));
    unlink(path);
    return 0;
}

static void without_a_profile_there_are_defaults(void **state) {
    (void)state;
    unlink(path);
    assert_int_equal(READ("--json"), ESK_OK);
    assert_string_equal(settings.server, "http://127.0.0.1:9000");
    assert_null(settings.key);
    assert_null(settings.binary_server);
    assert_false(settings.insecure);
    assert_int_equal(settings.timeout_ms, 30000);
}

static void the_nearest_place_counts(void **state) {
    (void)state;
    write_profiles("# mine\n[default]\nserver = http://a:1\n key=one \n\n"
                   "[far]\r\nserver=https://b:2\r\nca = /ca file\ntimeout = 5s\n"
                   "insecure = true\nbinary-server = b:3\n");
    assert_int_equal(READ("--json"), ESK_OK);
    assert_string_equal(settings.server, "http://a:1");
    assert_string_equal(settings.key, "one");
    assert_int_equal(READ("--profile", "far"), ESK_OK);
    assert_string_equal(settings.server, "https://b:2");
    assert_string_equal(settings.ca, "/ca file");
    assert_string_equal(settings.binary_server, "b:3");
    assert_int_equal(settings.timeout_ms, 5000);
    assert_true(settings.insecure);
    assert_null(settings.key);
    setenv("ESK_PROFILE", "far", 1);
    setenv("ESK_SERVER", "http://c:3", 1);
    assert_int_equal(READ("--timeout", "1s"), ESK_OK);
    assert_string_equal(settings.server, "http://c:3");
    assert_int_equal(settings.timeout_ms, 1000);
    assert_int_equal(READ("--server", "http://d:4", "--key", "k"), ESK_OK);
    assert_string_equal(settings.server, "http://d:4");
    assert_string_equal(settings.key, "k");
}

static void refuse(const char *text) {
    if (!strstr(error.text, text)) {
        fail_msg("'%s' is not in '%s'", text, error.text);
    }
}

static void what_is_wrong_is_told_with_its_place(void **state) {
    (void)state;
    write_profiles("[default]\nserver http://a:1\n");
    assert_int_equal(READ("--json"), ESK_ERR_INVALID);
    refuse(", line 2: allowed are [SECTION] and NAME = VALUE");
    write_profiles("[default]\n\nserve = http://a:1\n");
    assert_int_equal(READ("--json"), ESK_ERR_INVALID);
    refuse(", line 3: allowed are server,");
    write_profiles("[default\n");
    assert_int_equal(READ("--json"), ESK_ERR_INVALID);
    write_profiles("[default]\ntimeout = soon\n");
    assert_int_equal(READ("--json"), ESK_ERR_INVALID);
    write_profiles("[other]\nserve = wrong, but not asked for\n");
    assert_int_equal(READ("--json"), ESK_OK);
    assert_int_equal(READ("--profile", "none"), ESK_ERR_NOT_FOUND);
    refuse("has no [none]");
    assert_int_equal(READ("--binary-server", "localhost"), ESK_ERR_INVALID);
    refuse("--binary-server 'localhost': allowed is HOST:PORT");
    assert_int_equal(READ("--binary-server", "[::1]"), ESK_ERR_INVALID);
    assert_int_equal(READ("--binary-server", "[::1]:9001"), ESK_OK);
    assert_int_equal(READ("--cert", "x"), ESK_ERR_INVALID);
    assert_int_equal(READ("--key", "a\nb"), ESK_ERR_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_profile_there_are_defaults, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_nearest_place_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_told_with_its_place, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
