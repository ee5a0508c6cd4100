/* SPDX-License-Identifier: Apache-2.0 */
/* From lines to the body of a request, and from a record to a line. */
#include "esk/lines.h"
#include "esk/produce_request.h"
#include "esk/record_print.h"
#include "esk/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[64];

static void write_file(const char *bytes, size_t size) {
    FILE *file = fopen(path, "w");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void lines_are_whole_whatever_their_length(void **state) {
    (void)state;
    size_t long_size = 700 * 1000; /* over several reads */
    char *text = esk_alloc(long_size + 16);
    memcpy(text, "a\n\nb\r\n", 6);
    memset(text + 6, 'x', long_size);
    memcpy(text + 6 + long_size, "\nend", 4);
    write_file(text, long_size + 10);
    free(text);
    const char *const paths[] = {path, path};
    const size_t sizes[] = {1, 0, 2, long_size, 3};
    struct esk_lines lines;
    struct esk_slice line;
    esk_lines_init(&lines, paths, 2);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(esk_lines_next(&lines, true, &line, NULL), ESK_LINES_LINE);
        assert_int_equal(line.size, sizes[i % 5]);
    }
    assert_int_equal(esk_lines_next(&lines, true, &line, NULL), ESK_LINES_END);
    esk_lines_fini(&lines);
}

static void a_slow_input_is_told_from_an_ended_one(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    char name[32];
    snprintf(name, sizeof(name), "/dev/fd/%d", ends[0]);
    const char *const paths[] = {name};
    struct esk_lines lines;
    struct esk_slice line;
    esk_lines_init(&lines, paths, 1);
    assert_int_equal(write(ends[1], "one\ntw", 6), 6);
    assert_int_equal(esk_lines_next(&lines, false, &line, NULL), ESK_LINES_LINE);
    assert_int_equal(line.size, 3);
    assert_int_equal(esk_lines_next(&lines, false, &line, NULL), ESK_LINES_WAIT);
    assert_int_equal(write(ends[1], "o", 1), 1);
    close(ends[1]);
    assert_int_equal(esk_lines_next(&lines, false, &line, NULL), ESK_LINES_LINE);
    assert_memory_equal(line.data, "two", 3);
    assert_int_equal(esk_lines_next(&lines, false, &line, NULL), ESK_LINES_END);
    esk_lines_fini(&lines);
    close(ends[0]);
}

static void a_missing_file_is_named(void **state) {
    (void)state;
    const char *const paths[] = {"/nonexistent/file"};
    struct esk_lines lines;
    struct esk_slice line;
    struct esk_error error;
    esk_lines_init(&lines, paths, 1);
    assert_int_equal(esk_lines_next(&lines, true, &line, &error), ESK_LINES_FAILED);
    assert_non_null(strstr(error.text, "/nonexistent/file"));
    esk_lines_fini(&lines);
}

static void assert_body(struct esk_produce_request *request, const char *expected) {
    struct esk_slice body = esk_produce_request_body(request);
    assert_int_equal(body.size, strlen(expected));
    assert_memory_equal(body.data, expected, body.size);
}

static void text_that_is_mostly_escaped_goes_in_base64(void **state) {
    (void)state;
    size_t size = 2 * 1024 * 1024;
    uint8_t *value = esk_alloc(size);
    memset(value, 1, size); /* six bytes of JSON each */
    struct esk_produce_request request;
    esk_produce_request_init(&request, NULL, 0, -1);
    esk_produce_request_add(&request, esk_slice(NULL, 0), esk_slice(value, size));
    struct esk_slice body = esk_produce_request_body(&request);
    assert_memory_equal(body.data, "{\"encoding\":\"base64\"", 20);
    assert_true(body.size < size * 3 / 2);
    esk_produce_request_fini(&request);
    free(value);
}

static void records_go_as_text_where_they_are(void **state) {
    (void)state;
    const char *const headers[] = {"a=1", "b=", "a=2=3"};
    struct esk_produce_request request;
    esk_produce_request_init(&request, headers, 3, 7);
    esk_produce_request_add(&request, esk_slice_text("k"), esk_slice_text("v\"\n"));
    assert_body(&request, "{\"records\":[{\"key\":\"k\",\"value\":\"v\\\"\\n\",\"partition\":7,"
                          "\"headers\":{\"a\":[\"1\",\"2=3\"],\"b\":\"\"}}]}");
    esk_produce_request_fini(&request);
}

static void one_byte_that_is_no_text_makes_a_request_base64(void **state) {
    (void)state;
    struct esk_produce_request request;
    esk_produce_request_init(&request, NULL, 0, -1);
    esk_produce_request_add(&request, esk_slice(NULL, 0), esk_slice_text(""));
    esk_produce_request_add(&request, esk_slice("", 0), esk_slice_text("\xff"));
    assert_body(&request, "{\"encoding\":\"base64\",\"records\":[{\"value\":\"\"},"
                          "{\"key\":\"\",\"value\":\"/w==\"}]}");
    esk_produce_request_clear(&request);
    esk_produce_request_add(&request, esk_slice(NULL, 0), esk_slice_text("x"));
    assert_body(&request, "{\"records\":[{\"value\":\"x\"}]}");
    esk_produce_request_fini(&request);
}

static void assert_printed(const char *json, enum esk_print_form form, const char *separator,
                           const char *expected) {
    char padded[512] = {0};
    snprintf(padded, sizeof(padded) - ESK_JSON_PADDING, "%s", json);
    struct esk_json_document *document = esk_json_document_create();
    struct esk_json_value record;
    struct esk_buffer out;
    esk_buffer_init(&out);
    assert_int_equal(esk_json_document_parse(document, esk_slice_text(padded), &record, NULL),
                     ESK_OK);
    assert_int_equal(esk_record_print(&record, form, separator, &out), expected != NULL);
    if (expected) {
        assert_int_equal(out.size, strlen(expected));
        assert_memory_equal(out.data, expected, out.size);
    }
    esk_buffer_fini(&out);
    esk_json_document_destroy(document);
}

static void records_are_printed_in_each_form(void **state) {
    (void)state;
    const char *record = "{\"partition\":0,\"offset\":18446744073709551615,\"key\":\"aw==\","
                         "\"value\":\"/w==\",\"headers\":{\"a\":[\"1\",null]}}";
    assert_printed(record, ESK_PRINT_TEXT, ":", "aw==:/w==\n");
    assert_printed(record, ESK_PRINT_RAW, ":", "k:\xff\n");
    assert_printed(record, ESK_PRINT_RAW, NULL, "\xff\n");
    assert_printed(record, ESK_PRINT_JSON, NULL,
                   "{\"partition\":0,\"offset\":18446744073709551615,\"key\":\"aw==\","
                   "\"value\":\"/w==\",\"headers\":{\"a\":[\"1\",null]}}\n");
    assert_printed("{\"key\":null,\"value\":null}", ESK_PRINT_RAW, "=", "=\n");
    assert_printed("{\"key\":null,\"value\":\"no base64\"}", ESK_PRINT_RAW, NULL, NULL);
    assert_printed("{\"key\":null}", ESK_PRINT_TEXT, NULL, NULL);
    assert_printed("[]", ESK_PRINT_JSON, NULL, NULL);
}

static void columns_are_aligned(void **state) {
    (void)state;
    struct esk_table table;
    struct esk_buffer out;
    esk_buffer_init(&out);
    esk_table_init(&table, (const char *const[]){"NAME", ">N", "END", NULL});
    esk_table_text(&table, esk_slice_text("\xc3\xa9\x1b["));
    esk_table_number(&table, 1234);
    esk_table_text(&table, esk_slice_text("x"));
    esk_table_print(&table, &out);
    esk_buffer_u8(&out, '\0');
    assert_string_equal((char *)out.data, "NAME     N  END\n\xc3\xa9?[   1234  x\n");
    esk_table_fini(&table);
    esk_buffer_fini(&out);
}

static int setup(void **state) {
    (void)state;
    snprintf(path, sizeof(path), "/tmp/lines-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_whole_whatever_their_length),
        cmocka_unit_test(a_slow_input_is_told_from_an_ended_one),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(text_that_is_mostly_escaped_goes_in_base64),
        cmocka_unit_test(records_go_as_text_where_they_are),
        cmocka_unit_test(one_byte_that_is_no_text_makes_a_request_base64),
        cmocka_unit_test(records_are_printed_in_each_form),
        cmocka_unit_test(columns_are_aligned),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
