/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused, where, and that everything else comes back exact. */
#include "base/memory.h"
#include "model/limits.h"
#include "wire/json/document.h"
#include "wire/json/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct esk_json_document *document;

static int create(void **state) {
    (void)state;
    document = esk_json_document_create();
    return 0;
}

static int destroy(void **state) {
    (void)state;
    esk_json_document_destroy(document);
    return 0;
}

/* Parses a padded copy, which is gone afterwards: values may not depend on the text. */
static enum esk_err parse_bytes(const char *text, size_t size, struct esk_json_value *root,
                                struct esk_error *error) {
    uint8_t *copy = esk_alloc(size + ESK_JSON_PADDING);
    memcpy(copy, text, size);
    memset(copy + size, ']', ESK_JSON_PADDING); /* padding is not part of the text */
    enum esk_err err = esk_json_document_parse(document, esk_slice(copy, size), root, error);
    free(copy);
    return err;
}

static void expect_refused(const char *text, size_t size, const char *expected) {
    struct esk_json_value root;
    struct esk_error error;
    assert_int_equal(parse_bytes(text, size, &root, &error), ESK_ERR_INVALID);
    char whole[200];
    snprintf(whole, sizeof(whole), "invalid JSON at byte %s", expected);
    assert_string_equal(error.text, whole);
}

#define REFUSED(text, expected) expect_refused(text, sizeof(text) - 1, expected)

static struct esk_json_value parsed(const char *text) {
    struct esk_json_value root;
    struct esk_error error = {0};
    if (parse_bytes(text, strlen(text), &root, &error) != ESK_OK) {
        fail_msg("%s: %s", text, error.text);
    }
    return root;
}

static void errors_name_the_byte(void **state) {
    (void)state;
    REFUSED("", "0: unexpected end");
    REFUSED("  ", "2: unexpected end");
    REFUSED("{\"records\":[1,2,}", "16: expected a value");
    REFUSED("{\"a\" 1}", "5: expected ':'");
    REFUSED("{\"a\":1 \"b\":2}", "7: expected ',' or '}'");
    REFUSED("[1 2]", "3: expected ',' or ']'");
    REFUSED("[1,]", "3: expected a value");
    REFUSED("{a:1}", "1: expected a key in quotes");
    REFUSED("{\"a\":1,}", "7: expected a key in quotes");
    REFUSED("{\"a\":1", "6: unexpected end");
    REFUSED("\"abc", "4: unexpected end");
    REFUSED("{} x", "3: text behind the document");
    REFUSED("{}{}", "2: text behind the document");
    REFUSED("1\0", "1: text behind the document");
    REFUSED("nul", "3: unexpected end");
    REFUSED("trux", "3: expected a value");
    REFUSED("'a'", "0: expected a value");
    REFUSED("\xef\xbb\xbf{}", "0: byte order mark");
}

static void numbers_follow_the_grammar_and_fit(void **state) {
    (void)state;
    REFUSED("01", "1: a number may not begin with 0");
    REFUSED("-", "1: unexpected end");
    REFUSED("[1.]", "3: expected a digit");
    REFUSED("[.5]", "1: expected a value");
    REFUSED("[+5]", "1: expected a value");
    REFUSED("[1e]", "3: expected a digit");
    REFUSED("[0x10]", "2: expected ',' or ']'");
    REFUSED("[NaN]", "1: expected a value");
    REFUSED("[18446744073709551616]", "1: number out of range");
    REFUSED("[-9223372036854775809]", "1: number out of range");
    REFUSED("[1e400]", "1: number out of range");
    int64_t number;
    uint64_t large;
    struct esk_json_value value = parsed("-9223372036854775808");
    assert_true(esk_json_int64(&value, &number) && number == INT64_MIN);
    assert_false(esk_json_uint64(&value, &large));
    value = parsed("9223372036854775807");
    assert_true(esk_json_int64(&value, &number) && number == INT64_MAX);
    assert_true(esk_json_uint64(&value, &large) && large == INT64_MAX);
    value = parsed("9223372036854775808");
    assert_int_equal(value.type, ESK_JSON_UINT64);
    assert_false(esk_json_int64(&value, &number));
    value = parsed("18446744073709551615");
    assert_true(esk_json_uint64(&value, &large) && large == UINT64_MAX);
    value = parsed("1.0");
    assert_int_equal(value.type, ESK_JSON_REAL);
    assert_false(esk_json_int64(&value, &number) || esk_json_uint64(&value, &large));
    assert_true(parsed("1e3").real > 999.9);
}

static void strings_are_strict_unicode(void **state) {
    (void)state;
    REFUSED("\"\\ud800\"", "1: lone surrogate");
    REFUSED("\"a\\udc00\"", "2: lone surrogate");
    REFUSED("\"\\ud800\\ud800\"", "1: lone surrogate");
    REFUSED("\"\\ud800x\"", "1: lone surrogate");
    REFUSED("\"\\u12g4\"", "5: expected four hex digits");
    REFUSED("\"\\x41\"", "2: unknown escape");
    REFUSED("\"a\nb\"", "2: control character in a string");
    REFUSED("\"\0\"", "1: control character in a string");
    REFUSED("\"\xff\"", "1: not UTF-8");
    REFUSED("\"\xed\xa0\x80\"", "1: not UTF-8");
    REFUSED("\"\xc0\x80\"", "1: not UTF-8");
    REFUSED("[\"\xc3\", oops]", "2: not UTF-8");
    REFUSED("[oops, \"\xc3\"]", "1: expected a value");
    struct esk_json_value value = parsed("\"\\u0000\\ud83d\\ude00\\/\\b\\u00e4\xc3\xa4\x7f\"");
    assert_int_equal(value.type, ESK_JSON_STRING);
    assert_true(
        esk_slice_equal(value.string, esk_slice("\0\xf0\x9f\x98\x80/\b\xc3\xa4\xc3\xa4\x7f", 12)));
    value = parsed("\"\"");
    assert_non_null(value.string.data);
    assert_int_equal(value.string.size, 0);
}

static void nesting_is_bounded_exactly(void **state) {
    (void)state;
    const struct {
        const char *open;
        const char *inner;
        const char *close;
    } shapes[] = {{"[", "", "]"}, {"[", "1", "]"}, {"{\"a\":", "1", "}"}, {"[", "{}", "]"}};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        bool nested = shapes[i].inner[0] == '{';
        for (int depth = 60; depth <= 70; depth++) {
            struct esk_buffer text;
            esk_buffer_init(&text);
            for (int level = 0; level < depth; level++) {
                esk_buffer_append_text(&text, shapes[i].open);
            }
            esk_buffer_append_text(&text, shapes[i].inner);
            for (int level = 0; level < depth; level++) {
                esk_buffer_append_text(&text, shapes[i].close);
            }
            struct esk_json_value root;
            struct esk_error error;
            enum esk_err err = parse_bytes((char *)text.data, text.size, &root, &error);
            assert_int_equal(err, depth + nested <= ESK_JSON_DEPTH_MAX ? ESK_OK : ESK_ERR_INVALID);
            if (err) {
                assert_non_null(strstr(error.text, "nesting over 64 levels"));
            }
            esk_buffer_fini(&text);
        }
    }
}

static void duplicate_keys_are_found_in_small_and_large_objects(void **state) {
    (void)state;
    REFUSED("{\"a\":1,\"b\":2,\"a\":3}", "13: duplicate key 'a'");
    REFUSED("[\"a\",{\"x\":{\"k\\u0065y\":1, \"key\":2}}]", "25: duplicate key 'key'");
    parsed("{\"a\":{\"a\":1},\"b\":{\"a\":1}}");
    for (int fields = 7; fields < 300; fields += 41) {
        for (int repeat = 0; repeat < fields; repeat += fields / 3) {
            struct esk_buffer text;
            esk_buffer_init(&text);
            esk_buffer_append_text(&text, "{");
            for (int i = 0; i < fields; i++) {
                esk_buffer_format(&text, "\"k%d\":{\"k1\":%d},", i, i);
            }
            size_t position = text.size;
            esk_buffer_append_text(&text, "\"last\":0}");
            struct esk_json_value root;
            struct esk_error error;
            assert_int_equal(parse_bytes((char *)text.data, text.size, &root, &error), ESK_OK);
            assert_int_equal(esk_json_count(&root), fields + 1);
            text.size = position;
            esk_buffer_format(&text, "\"k%d\":0}", repeat);
            assert_int_equal(parse_bytes((char *)text.data, text.size, &root, &error),
                             ESK_ERR_INVALID);
            char expected[100];
            snprintf(expected, sizeof(expected), "invalid JSON at byte %zu: duplicate key 'k%d'",
                     position, repeat);
            assert_string_equal(error.text, expected);
            esk_buffer_fini(&text);
        }
    }
}

static void containers_are_visited_in_order(void **state) {
    (void)state;
    struct esk_json_value root =
        parsed(" {\"records\" : [ {\"key\":\"k1\",\"value\":null}, true, [], -7 ], \"x\":{} } ");
    struct esk_json_value records;
    struct esk_json_value value;
    struct esk_slice key;
    assert_int_equal(root.type, ESK_JSON_OBJECT);
    assert_true(esk_json_find(&root, "records", &records));
    assert_false(esk_json_find(&root, "record", &value));
    assert_false(esk_json_find(&records, "records", &value));
    assert_int_equal(esk_json_count(&records), 4);
    struct esk_json_iterator elements = esk_json_each(&records);
    assert_true(esk_json_next_element(&elements, &value));
    struct esk_json_iterator fields = esk_json_each(&value);
    assert_true(esk_json_next_field(&fields, &key, &value));
    assert_true(esk_slice_equal(key, esk_slice_text("key")));
    assert_true(esk_slice_equal(value.string, esk_slice_text("k1")));
    assert_true(esk_json_next_field(&fields, &key, &value));
    assert_true(esk_slice_equal(key, esk_slice_text("value")));
    assert_int_equal(value.type, ESK_JSON_NULL);
    assert_false(esk_json_next_field(&fields, &key, &value));
    assert_true(esk_json_next_element(&elements, &value));
    assert_true(value.type == ESK_JSON_BOOL && value.boolean);
    assert_true(esk_json_next_element(&elements, &value));
    assert_int_equal(value.type, ESK_JSON_ARRAY);
    struct esk_json_iterator none = esk_json_each(&value);
    struct esk_json_value unused;
    assert_false(esk_json_next_element(&none, &unused));
    assert_true(esk_json_next_element(&elements, &value));
    assert_int_equal(value.int64, -7);
    assert_false(esk_json_next_element(&elements, &value));
    none = esk_json_each(&value);
    assert_false(esk_json_next_field(&none, &key, &unused));
    assert_int_equal(esk_json_count(&value), 0);
}

static void a_document_is_used_again_and_trimmed(void **state) {
    (void)state;
    struct esk_buffer text;
    esk_buffer_init(&text);
    esk_buffer_append_text(&text, "[0");
    while (text.size < 600000) {
        esk_buffer_append_text(&text, ",\"abc\",17");
    }
    esk_buffer_append_text(&text, "]");
    struct esk_json_value root;
    assert_int_equal(parse_bytes((char *)text.data, text.size, &root, NULL), ESK_OK);
    assert_true(esk_json_document_bytes(document) >= 12 * text.size);
    assert_int_equal(parsed("[1]").type, ESK_JSON_ARRAY);
    esk_json_document_trim(document, 1 << 20);
    assert_int_equal(esk_json_document_bytes(document), 0);
    assert_int_equal(parsed("[1]").type, ESK_JSON_ARRAY);
    size_t small = esk_json_document_bytes(document);
    esk_json_document_trim(document, 1 << 20);
    assert_int_equal(esk_json_document_bytes(document), small);
    esk_buffer_fini(&text);
}

static void parser_and_validator_agree_on_every_small_change(void **state) {
    (void)state;
    static const char seed[] =
        "{\"k\":[1,-0.5e+3,true,null,\"\\u00e4\\n\xc3\xa4\"],\"m\":{\"n\":7}}";
    static const char bytes[] = "\"\\{}[]:,0-.eEtn \n\x01\x80\xff";
    char text[sizeof(seed)];
    for (size_t at = 0; at < sizeof(seed) - 1; at++) {
        for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
            memcpy(text, seed, sizeof(seed));
            text[at] = bytes[i];
            struct esk_json_value root;
            struct esk_json_fault fault;
            struct esk_error error = {0};
            bool accepted = parse_bytes(text, sizeof(seed) - 1, &root, &error) == ESK_OK;
            bool valid = esk_json_validate(esk_slice(text, sizeof(seed) - 1), &fault);
            if (accepted != valid && !strstr(error.text, "duplicate key")) {
                fail_msg("%s: %s", text, error.text);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_name_the_byte),
        cmocka_unit_test(numbers_follow_the_grammar_and_fit),
        cmocka_unit_test(strings_are_strict_unicode),
        cmocka_unit_test(nesting_is_bounded_exactly),
        cmocka_unit_test(duplicate_keys_are_found_in_small_and_large_objects),
        cmocka_unit_test(containers_are_visited_in_order),
        cmocka_unit_test(a_document_is_used_again_and_trimmed),
        cmocka_unit_test(parser_and_validator_agree_on_every_small_change),
    };
    return cmocka_run_group_tests_name("wire.json.document", tests, create, destroy);
}
