/* SPDX-License-Identifier: Apache-2.0 */
#include "esker/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct esk_options options;
static struct esk_error error;
static char file_path[64];

/* Parses up to 8 arguments with an environment that ends with NULL. */
static enum esk_err parse(char *const *environment, const char *const *arguments) {
    char *argv[10] = {(char *)"esker"};
    int argc = 1;
    while (arguments[argc - 1]) {
        argv[argc] = (char *)(uintptr_t)arguments[argc - 1];
        argc++;
    }
    esk_options_fini(&options);
    error.text[0] = '\0';
    return esk_options_parse(&options, argc, argv, environment, &error);
}

static char *no_environment[] = {NULL};
#define PARSE(...) parse(no_environment, (const char *const[]){__VA_ARGS__, NULL})
#define NUMBER(name) options.values[ESK_OPTION_##name].number
#define TEXT(name) options.values[ESK_OPTION_##name].text

static void write_file(const char *text) {
    FILE *file = fopen(file_path, "w");
    fputs(text, file);
    fclose(file);
}

static void assert_refused(enum esk_err err, const char *text) {
    assert_int_equal(err, ESK_ERR_INVALID);
    if (!strstr(error.text, text)) {
        fail_msg("'%s' is not in '%s'", text, error.text);
    }
}

static void defaults_are_those_of_the_product(void **state) {
    (void)state;
    assert_int_equal(parse(no_environment, (const char *const[]){NULL}), ESK_OK);
    assert_string_equal(TEXT(DATA_DIR), "./esker-data");
    assert_string_equal(TEXT(BIND), "127.0.0.1:9000");
    assert_int_equal(NUMBER(FLUSH_EVERY_RECORDS), 1);
    assert_int_equal(NUMBER(FLUSH_INTERVAL), 1000);
    assert_int_equal(NUMBER(MAX_REQUEST_BODY_BYTES), 10 << 20);
    assert_int_equal(NUMBER(MAX_RECORD_BYTES), 8 << 20);
    assert_int_equal(NUMBER(MAX_FETCH_RECORDS), 10000);
    assert_int_equal(NUMBER(MAX_FETCH_BYTES), 8 << 20);
    assert_int_equal(NUMBER(RETENTION_INTERVAL), 60000);
    assert_string_equal(TEXT(LOG_LEVEL), "info");
    assert_int_equal(NUMBER(LOG_FORMAT), 0);
    assert_null(TEXT(SHARDS));
    assert_null(TEXT(MEMORY));
    assert_int_equal(NUMBER(HELP), 0);
}

static void both_forms_and_all_units_are_read(void **state) {
    (void)state;
    assert_int_equal(PARSE("--memory", "3GB", "--memory=64MiB", "--flush-interval=2m", "--help",
                           "--log-format", "json"),
                     ESK_OK);
    assert_int_equal(NUMBER(MEMORY), 64 << 20); /* the later one */
    assert_int_equal(NUMBER(FLUSH_INTERVAL), 120000);
    assert_int_equal(NUMBER(HELP), 1);
    assert_int_equal(NUMBER(LOG_FORMAT), 1);
    const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {{"40000000", 40000000}, {"50000kB", 50000000}, {"50MB", 50000000},
                 {"1GB", 1000000000},    {"65536KiB", 1 << 26}, {"33 MiB", 33 << 20},
                 {"1GiB", 1 << 30}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_int_equal(PARSE("--memory", sizes[i].text), ESK_OK);
        assert_int_equal(NUMBER(MEMORY), sizes[i].bytes);
    }
    const struct {
        const char *text;
        uint64_t ms;
    } times[] = {{"15ms", 15}, {"3s", 3000}, {"1h", 3600000}, {"2d", 172800000}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        assert_int_equal(PARSE("--retention-interval", times[i].text), ESK_OK);
        assert_int_equal(NUMBER(RETENTION_INTERVAL), times[i].ms);
    }
}

static void addresses_need_a_host_and_a_port(void **state) {
    (void)state;
    const char *good[] = {"0.0.0.0:0", "[::1]:9000", "[::]:65535", "localhost:9000"};
    const char *bad[] = {"",
                         "9000",
                         ":9000",
                         "127.0.0.1",
                         "127.0.0.1:",
                         "127.0.0.1:65536",
                         "127.0.0.1:90x",
                         "::1:9000",
                         "[::1]",
                         "[::1:9000",
                         "[x]:9000",
                         "[]:1",
                         "127.0.0.1:-1",
                         "a b:1",
                         "127.0.0.1:000001"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(PARSE("--bind", good[i]), ESK_OK);
        assert_string_equal(TEXT(BIND), good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_refused(PARSE("--bind", bad[i]), "not an address; allowed is ADDR:PORT");
    }
}

static void h_is_help(void **state) {
    (void)state;
    assert_int_equal(PARSE("-h"), ESK_OK);
    assert_int_equal(NUMBER(HELP), 1);
}

static void a_wrong_value_says_which_why_and_what_is_allowed(void **state) {
    (void)state;
    assert_refused(PARSE("--flush-interval", "5"),
                   "--flush-interval '5': not a duration (a whole number with ms, s, m, h or d); "
                   "allowed is 1ms to 1h");
    assert_refused(PARSE("--flush-interval=0ms"), "too small; allowed is 1ms to 1h");
    assert_refused(PARSE("--flush-interval=2h"), "too large");
    assert_refused(PARSE("--flush-interval=-1s"), "not a duration");
    assert_refused(PARSE("--flush-interval=18446744073709551617s"), "not a duration");
    assert_refused(PARSE("--flush-interval=18446744073709551615d"), "not a duration");
    assert_refused(PARSE("--memory=1.5GiB"), "--memory '1.5GiB': not a size");
    assert_refused(PARSE("--memory=64mib"), "not a size");
    assert_refused(PARSE("--shards", "0"), "--shards '0': too small; allowed is 1 to 256");
    assert_refused(PARSE("--shards", "2x"), "not a whole number");
    assert_refused(PARSE("--log-level", "loud"), "allowed is error|warn|info|debug");
    assert_refused(PARSE("--data-dir="), "empty");
    assert_refused(PARSE("--bind"), "--bind: its value is missing: ADDR:PORT");
    assert_refused(PARSE("--bind", "--shards=1"), "--bind: its value is missing");
    assert_refused(PARSE("--help=yes"), "takes no value");
}

static void unknown_options_name_the_nearest(void **state) {
    (void)state;
    assert_refused(PARSE("--flush-intervall=1s"), "--flush-intervall: unknown option, perhaps "
                                                  "flush-interval is meant");
    assert_refused(PARSE("--mem", "1"), "perhaps memory is meant");
    assert_refused(PARSE("--frobnicate"), "--frobnicate: unknown option; esker --help");
    assert_refused(PARSE("-he"), "-he: unknown option, perhaps help is meant");
    assert_refused(PARSE("data"), "'data': esker takes options only");
    assert_refused(PARSE("--"), "--: unknown option");
    assert_refused(PARSE("--bind-kafka=none"), "unknown option");
}

static void the_command_line_goes_before_environment_file_and_default(void **state) {
    (void)state;
    char config[96];
    snprintf(config, sizeof(config), "ESKER_CONFIG=%s", file_path);
    char *environment[] = {(char *)"ESKER_SHARDS=3",       (char *)"ESKER_BIND=",   config,
                           (char *)"ESKER_LOG_LEVEL=warn", (char *)"ESKER_OTHER=x", NULL};
    write_file("# a comment\n\n shards = 5 \r\nbind=[::1]:1\n\tdata-dir =  /a b/#c \nlog-level = "
               "debug\nmemory = 1GiB");
    const char *arguments[] = {"--log-level", "error", NULL};
    assert_int_equal(parse(environment, arguments), ESK_OK);
    assert_string_equal(TEXT(LOG_LEVEL), "error");  /* command line */
    assert_int_equal(NUMBER(SHARDS), 3);            /* environment */
    assert_string_equal(TEXT(BIND), "[::1]:1");     /* file: the variable is empty */
    assert_string_equal(TEXT(DATA_DIR), "/a b/#c"); /* file */
    assert_int_equal(NUMBER(MEMORY), 1 << 30);
    assert_int_equal(NUMBER(FLUSH_INTERVAL), 1000); /* default */
    environment[0] = (char *)"ESKER_SHARDS=many";
    assert_refused(parse(environment, arguments), "ESKER_SHARDS 'many': not a whole number");
}

static void a_wrong_file_is_refused_with_its_line(void **state) {
    (void)state;
    const struct {
        const char *text;
        const char *refused;
    } files[] = {
        {"\nshards\n", ":2: the line has no '='"},
        {"shards = 2 # two\n", ":1: shards: a comment needs a line of its own"},
        {"shard = 2", ":1: shard: unknown option, perhaps shards is meant"},
        {"shards = 2\n\nshards = 2", ":3: shards: given in line 1 already"},
        {"shards = none", ":1: shards 'none': not a whole number"},
        {"bind = x", ":1: bind 'x': not an address"},
        {"config = a", ":1: config: not for the file"},
        {"help = 1", ":1: help: not for the file"},
    };
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        write_file(files[i].text);
        /* Also where the command line overrules it. */
        assert_refused(PARSE("--config", file_path, "--bind", "127.0.0.1:0"), files[i].refused);
    }
    assert_refused(PARSE("--config", "/nonexistent/x"), "--config /nonexistent/x: No such file");
    assert_refused(PARSE("--config", "/"), "--config /: Is a directory");
    FILE *file = fopen(file_path, "w");
    for (int i = 0; i < 65537; i++) {
        fputc('\n', file);
    }
    fclose(file);
    assert_refused(PARSE("--config", file_path), "larger than 65536 bytes");
}

static void help_shows_each_option_within_its_width(void **state) {
    (void)state;
    struct esk_buffer help;
    esk_buffer_init(&help);
    esk_options_help(&help);
    esk_buffer_u8(&help, 0);
    const char *text = (const char *)help.data;
    for (unsigned i = 0; i < ESK_OPTION_COUNT; i++) {
        char line[64];
        snprintf(line, sizeof(line), "\n  --%s", esk_option_table[i].name);
        assert_non_null(strstr(text, line));
    }
    assert_non_null(strstr(text, "\nLimits\n"));
    assert_non_null(strstr(text, "(1ms to 1h; default: 1s)\n"));
    for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
        assert_true(strchr(at, '\n') - at <= 100);
        assert_true(strchr(at, '\n') == at || strchr(at, '\n')[-1] != ' ');
    }
    esk_buffer_fini(&help);
}

static int set_up(void **state) {
    (void)state;
    strcpy(file_path, "/tmp/esker-options-test-XXXXXX");
    int fd = mkstemp(file_path);
    return fd < 0 || close(fd);
}

static int tear_down(void **state) {
    (void)state;
    esk_options_fini(&options);
    return unlink(file_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_those_of_the_product),
        cmocka_unit_test(both_forms_and_all_units_are_read),
        cmocka_unit_test(addresses_need_a_host_and_a_port),
        cmocka_unit_test(h_is_help),
        cmocka_unit_test(a_wrong_value_says_which_why_and_what_is_allowed),
        cmocka_unit_test(unknown_options_name_the_nearest),
        cmocka_unit_test(the_command_line_goes_before_environment_file_and_default),
        cmocka_unit_test(a_wrong_file_is_refused_with_its_line),
        cmocka_unit_test(help_shows_each_option_within_its_width),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
