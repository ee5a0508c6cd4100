/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char written[2 * ESK_LOG_LINE_BYTES];
static size_t writes;

static int64_t clock_ms(void *context) {
    (void)context;
    return 1764485040123;
}

static void keep(void *context, const char *line, size_t size) {
    (void)context;
    writes++;
    memcpy(written, line, size);
    written[size] = '\0';
}

static struct esk_log make(bool json) {
    writes = 0;
    return (struct esk_log){
        .level = ESK_LOG_INFO, .json = json, .wall_ms = clock_ms, .write = keep};
}

static void lines_have_event_text_and_fields(void **state) {
    (void)state;
    struct esk_log log = make(false);
    ESK_LOG(&log, ESK_LOG_INFO, "listening", "HTTP door open", esk_field_text("door", "http"),
            esk_field_i64("port", -1), esk_field_u64("most", UINT64_MAX));
    assert_string_equal(written,
                        "2025-11-30T06:44:00.123Z info listening: HTTP door open door=http "
                        "port=-1 most=18446744073709551615\n");
    log = make(true);
    ESK_LOG(&log, ESK_LOG_INFO, "listening", "HTTP door open", esk_field_text("door", "http"),
            esk_field_i64("port", -1), esk_field_u64("most", UINT64_MAX));
    assert_string_equal(written,
                        "{\"time\":\"2025-11-30T06:44:00.123Z\",\"level\":\"info\","
                        "\"event\":\"listening\",\"text\":\"HTTP door open\",\"door\":\"http\","
                        "\"port\":-1,\"most\":18446744073709551615}\n");
}

static void lines_above_the_level_are_dropped(void **state) {
    (void)state;
    struct esk_log log = make(false);
    esk_log_line(&log, ESK_LOG_DEBUG, "event", "text", NULL, 0);
    assert_int_equal(writes, 0);
    esk_log_line(&log, ESK_LOG_ERROR, "event", "text", NULL, 0);
    assert_int_equal(writes, 1);
    esk_log_line(NULL, ESK_LOG_ERROR, "event", "text", NULL, 0);
}

static void any_bytes_stay_one_line_and_valid(void **state) {
    (void)state;
    struct esk_field field =
        esk_field_text("v", "a\nb\"\\\x01\xc3\xa9\xff\xed\xa0\x80\xf0\x9f\x98\x80\xc3");
    struct esk_log log = make(true);
    esk_log_line(&log, ESK_LOG_INFO, "e", "t\r\n", &field, 1);
    assert_non_null(strstr(written, "\"text\":\"t\\u000d\\u000a\""));
    assert_non_null(strstr(written, "\"v\":\"a\\u000ab\\\"\\\\\\u0001\xc3\xa9\\ufffd\\ufffd\\ufffd"
                                    "\\ufffd\xf0\x9f\x98\x80\\ufffd\"}\n"));
    log = make(false);
    esk_log_line(&log, ESK_LOG_INFO, "e", "t\r\n", &field, 1);
    assert_non_null(strstr(written, "e: t\\x0d\\x0a v=\"a\\x0ab\\\"\\\\\\x01\xc3\xa9\\xff\\xed"));
    assert_ptr_equal(strchr(written, '\n'), written + strlen(written) - 1);
}

/* With lengths of all values around the bounds, a line keeps its form. */
static void long_values_are_cut_inside_their_quotes(void **state) {
    (void)state;
    static char value[3000];
    for (size_t size = 900; size < 1100; size += 7) {
        memset(value, '"', size);
        value[size] = '\0';
        struct esk_field fields[8];
        for (size_t i = 0; i < 8; i++) {
            fields[i] = i % 2 ? esk_field_i64("n", (int64_t)size) : esk_field_text("v", value);
        }
        for (int json = 0; json <= 1; json++) {
            struct esk_log log = make(json);
            esk_log_line(&log, ESK_LOG_INFO, "e", value, fields, 8);
            size_t length = strlen(written);
            assert_true(length < ESK_LOG_LINE_BYTES);
            assert_int_equal(written[length - 1], '\n');
            assert_non_null(strstr(written, "..."));
            size_t quotes = 0;
            for (size_t i = 0; i < length; i++) {
                if (written[i] == '\\') {
                    i++;
                } else {
                    quotes += written[i] == '"';
                }
            }
            assert_int_equal(quotes % 2, 0);
            assert_int_equal(written[length - 2] == '}', json);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_have_event_text_and_fields),
        cmocka_unit_test(lines_above_the_level_are_dropped),
        cmocka_unit_test(any_bytes_stay_one_line_and_valid),
        cmocka_unit_test(long_values_are_cut_inside_their_quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
