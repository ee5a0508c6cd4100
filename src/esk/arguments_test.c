/* SPDX-License-Identifier: Apache-2.0 */
#include "esk/arguments.h"
#include "esk/help.h"
#include "esk/topic_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct esk_arguments arguments;
static struct esk_error error;

static enum esk_err parse(const char *const *words) {
    char *argv[16] = {(char *)(uintptr_t) "esk"};
    int argc = 1;
    for (; words[argc - 1]; argc++) {
        argv[argc] = (char *)(uintptr_t)words[argc - 1];
    }
    esk_arguments_fini(&arguments);
    error.text[0] = '\0';
    return esk_arguments_parse(&arguments, argc, argv, &error);
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void assert_refused(enum esk_err err, const char *text) {
    assert_int_equal(err, ESK_ERR_INVALID);
    if (!strstr(error.text, text)) {
        fail_msg("'%s' is not in '%s'", text, error.text);
    }
}

static void a_command_has_its_words_options_and_arguments(void **state) {
    (void)state;
    assert_int_equal(PARSE("--server", "http://a:1", "topic", "create", "-p", "3", "orders",
                           "--config=a=b", "--config", "c=d", "--json"),
                     ESK_OK);
    assert_string_equal(arguments.command->name, "topic create");
    assert_int_equal(arguments.count, 1);
    assert_string_equal(arguments.arguments[0], "orders");
    assert_int_equal(esk_arguments_number(&arguments, "partitions"), 3);
    const struct esk_tool_value *config = esk_arguments_value(&arguments, "config");
    assert_int_equal(config->count, 2);
    assert_string_equal(config->texts[0], "a=b");
    assert_string_equal(config->texts[1], "c=d");
    assert_string_equal(esk_arguments_text(&arguments, "server"), "http://a:1");
    assert_int_equal(esk_arguments_number(&arguments, "json"), 1);
}

static void options_may_surround_the_words(void **state) {
    (void)state;
    assert_int_equal(PARSE("--timeout", "5s", "consume", "-f", "orders"), ESK_OK);
    assert_string_equal(arguments.command->name, "consume");
    assert_int_equal(esk_arguments_number(&arguments, "timeout"), 5000);
    assert_int_equal(esk_arguments_number(&arguments, "follow"), 1);
    assert_string_equal(esk_arguments_text(&arguments, "offset"), "start");
    assert_null(esk_arguments_text(&arguments, "group"));
}

static void a_letter_may_have_its_value_behind_it(void **state) {
    (void)state;
    assert_int_equal(PARSE("topic", "create", "-p3", "orders", "--timeout", "5"), ESK_OK);
    assert_int_equal(esk_arguments_number(&arguments, "partitions"), 3);
    assert_int_equal(esk_arguments_number(&arguments, "timeout"), 5000);
    assert_int_equal(PARSE("bench", "produce", "-s2", "--warmup-seconds=2s"), ESK_OK);
    assert_int_equal(esk_arguments_number(&arguments, "seconds"), 2000);
}

static void letters_may_share_a_dash(void **state) {
    (void)state;
    assert_int_equal(PARSE("consume", "-bfn2", "orders", "-zfp", "7"), ESK_OK);
    assert_int_equal(esk_arguments_number(&arguments, "binary"), 1);
    assert_int_equal(esk_arguments_number(&arguments, "gzip"), 1);
    assert_int_equal(esk_arguments_number(&arguments, "follow"), 1);
    assert_int_equal(esk_arguments_number(&arguments, "max"), 2);
    assert_string_equal(esk_arguments_text(&arguments, "partition"), "7");
    assert_int_equal(arguments.count, 1);
    assert_refused(PARSE("consume", "-f3", "orders"), "-3: unknown option");
    assert_refused(PARSE("consume", "-xf", "orders"), "-xf: unknown option");
    assert_refused(PARSE("consume", "orders", "-fn"), "--max: its value is missing");
}

static void behind_two_dashes_nothing_is_an_option(void **state) {
    (void)state;
    assert_int_equal(PARSE("produce", "orders", "--", "--key-separator"), ESK_OK);
    assert_int_equal(arguments.count, 2);
    assert_string_equal(arguments.arguments[1], "--key-separator");
    assert_int_equal(PARSE("--", "topic", "list"), ESK_OK);
    assert_string_equal(arguments.command->name, "topic list");
    assert_int_equal(PARSE("produce", "orders", "-"), ESK_OK);
    assert_string_equal(arguments.arguments[1], "-");
}

static void wrong_lines_say_what_is_allowed(void **state) {
    (void)state;
    assert_refused(PARSE("topic", "create", "a", "--partitions", "0"),
                   "--partitions '0': too small; allowed is 1 to 10000");
    assert_refused(PARSE("topic", "create", "a", "--partitons", "3"),
                   "unknown option of esk topic create, perhaps --partitions is meant");
    assert_refused(PARSE("topic", "create", "a", "--partitions", "many"), "not a whole number");
    assert_refused(PARSE("topic", "create", "a", "--partitions"), "its value is missing (N)");
    assert_refused(PARSE("topic", "create"), "too few arguments; usage: esk topic create TOPIC");
    assert_refused(PARSE("topic", "list", "a"), "too many arguments");
    assert_refused(PARSE("topic", "list", "--partitions", "3"),
                   "--partitions: unknown option of esk topic list");
    assert_refused(PARSE("consume", "a", "--encoding", "latin1"),
                   "unknown; allowed is utf8|base64|raw");
    assert_refused(PARSE("consume", "a", "--follow=yes"), "it takes no value");
    assert_refused(PARSE("consume", "a", "-x"), "-x: unknown option of esk consume; esk");
    assert_refused(PARSE("-v"), "-v: unknown option, perhaps --version is meant");
    assert_refused(PARSE("-xf"), "-xf: unknown option; esk");
    assert_refused(PARSE("bench", "--binary"), "behind bench comes one of: produce, consume;");
    assert_refused(PARSE("frobnicate", "--binary"), "--binary: unknown option");
    assert_refused(PARSE("bench", "produce", "--size", "99999999999999999999"), "not a size");
}

static void half_a_command_is_none(void **state) {
    (void)state;
    assert_int_equal(PARSE("topic"), ESK_OK);
    assert_null(arguments.command);
    assert_string_equal(arguments.arguments[0], "topic");
    assert_int_equal(PARSE("topic", "frobnicate"), ESK_OK);
    assert_null(arguments.command);
    assert_int_equal(PARSE("help", "topic", "create"), ESK_OK);
    assert_null(arguments.command);
    assert_int_equal(arguments.count, 3);
}

static void a_command_may_read_its_own_options(void **state) {
    (void)state;
    assert_int_equal(PARSE("kafka", "show", "--version", "2"), ESK_OK);
    assert_int_equal(arguments.passed_on, 1);
    assert_int_equal(esk_arguments_number(&arguments, "version"), 0);
}

static void help_names_every_command_and_option(void **state) {
    (void)state;
    struct esk_buffer text;
    esk_buffer_init(&text);
    esk_help_all(&text);
    esk_buffer_u8(&text, '\0');
    for (unsigned i = 0; i < ESK_TOOL_COMMAND_COUNT; i++) {
        assert_non_null(strstr((char *)text.data, esk_tool_commands[i].name));
    }
    for (unsigned i = 0; i < ESK_TOOL_COMMAND_COUNT; i++) {
        const struct esk_tool_command *command = &esk_tool_commands[i];
        text.size = 0;
        esk_help_command(command, &text);
        esk_buffer_u8(&text, '\0');
        for (unsigned k = 0; k < command->option_count; k++) {
            assert_non_null(strstr((char *)text.data, command->options[k].name));
        }
        for (char *line = strtok((char *)text.data, "\n"); line; line = strtok(NULL, "\n")) {
            assert_true(strlen(line) <= 100);
        }
    }
    esk_buffer_fini(&text);
}

static const char *settings(const char *const *texts, uint32_t count) {
    static char made[512];
    struct esk_buffer buffer;
    esk_buffer_init(&buffer);
    struct esk_json_writer writer = esk_json_writer(&buffer);
    bool ok = esk_topic_settings_write(&writer, texts, count, &error) == ESK_OK;
    snprintf(made, sizeof(made), "%.*s", (int)buffer.size, (const char *)buffer.data);
    esk_buffer_fini(&buffer);
    return ok ? made : NULL;
}

static void settings_become_json(void **state) {
    (void)state;
    const char *good[] = {"retention_ms=7d",           "retention_bytes=unlimited",
                          "cleanup_policy=compact",    "segment_bytes=16MiB",
                          "tombstone_retention_ms=90", "partitioner=murmur2"};
    assert_string_equal(settings(good, 6),
                        "{\"retention_ms\":604800000,\"retention_bytes\":null,"
                        "\"cleanup_policy\":\"compact\",\"segment_bytes\":16777216,"
                        "\"tombstone_retention_ms\":90,\"partitioner\":\"murmur2\"}");
    const char *bad[] = {"retention=7d", "segment_bytes=unlimited", "segment_bytes=", "=1",
                         "retention_ms"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_null(settings(&bad[i], 1));
    }
}

static int teardown(void **state) {
    (void)state;
    esk_arguments_fini(&arguments);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_has_its_words_options_and_arguments),
        cmocka_unit_test(options_may_surround_the_words),
        cmocka_unit_test(a_letter_may_have_its_value_behind_it),
        cmocka_unit_test(letters_may_share_a_dash),
        cmocka_unit_test(behind_two_dashes_nothing_is_an_option),
        cmocka_unit_test(wrong_lines_say_what_is_allowed),
        cmocka_unit_test(half_a_command_is_none),
        cmocka_unit_test(a_command_may_read_its_own_options),
        cmocka_unit_test(help_names_every_command_and_option),
        cmocka_unit_test(settings_become_json),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
