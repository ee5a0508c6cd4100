/* SPDX-License-Identifier: Apache-2.0 */
/* Names at their limits, and UTF-8 against every code point and every pair of bytes. */
#include "model/names.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static enum esk_err topic(const char *name) {
    return esk_topic_name_check(esk_slice_text(name), NULL);
}

static enum esk_err id(const void *bytes, size_t size) {
    return esk_id_check(esk_slice(bytes, size), "group", NULL);
}

static void topic_names_have_their_alphabet_and_length(void **state) {
    (void)state;
    char name[202];
    memset(name, 'n', sizeof(name));
    name[200] = '\0';
    assert_int_equal(topic(name), ESK_OK);
    name[200] = 'n';
    name[201] = '\0';
    assert_int_equal(topic(name), ESK_ERR_INVALID);
    assert_int_equal(topic("AZaz09.-_"), ESK_OK);
    assert_int_equal(topic("..."), ESK_OK);
    assert_int_equal(topic(".a"), ESK_OK);
    const char *refused[] = {"", ".", "..", "a/b", "../a", "a b", "a\n", "\xc3\xa4", "a%2f", "a:b"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_int_equal(topic(refused[i]), ESK_ERR_INVALID);
    }
    assert_int_equal(esk_topic_name_check(esk_slice("a\0b", 3), NULL), ESK_ERR_INVALID);
    struct esk_error error;
    esk_topic_name_check(esk_slice(NULL, 0), &error);
    assert_string_equal(error.text, "topic name must have 1 to 200 characters, not 0");
}

static void ids_are_text_without_control_characters(void **state) {
    (void)state;
    char long_id[201];
    memset(long_id, 'x', sizeof(long_id));
    assert_int_equal(id(long_id, 200), ESK_OK);
    assert_int_equal(id(long_id, 201), ESK_ERR_INVALID);
    assert_int_equal(id(NULL, 0), ESK_ERR_INVALID);
    assert_int_equal(id("checkout svc/1 \xe2\x82\xac", 18), ESK_OK);
    assert_int_equal(id("\xc2\xa0", 2), ESK_OK);
    assert_int_equal(id("\xc2\x9f", 2), ESK_ERR_INVALID);
    assert_int_equal(id("\xc3\x80", 2), ESK_OK); /* its second byte is no C1 control */
    assert_int_equal(id("\x7f", 1), ESK_ERR_INVALID);
    assert_int_equal(id("a\0", 2), ESK_ERR_INVALID);
    assert_int_equal(id("\xff", 1), ESK_ERR_INVALID);
    assert_int_equal(id("a\xc2", 2), ESK_ERR_INVALID);
}

static size_t encode(uint32_t point, uint8_t *at) {
    if (point < 0x80) {
        at[0] = (uint8_t)point;
        return 1;
    }
    if (point < 0x800) {
        at[0] = (uint8_t)(0xc0 | point >> 6);
        at[1] = (uint8_t)(0x80 | (point & 63));
        return 2;
    }
    if (point < 0x10000) {
        at[0] = (uint8_t)(0xe0 | point >> 12);
        at[1] = (uint8_t)(0x80 | (point >> 6 & 63));
        at[2] = (uint8_t)(0x80 | (point & 63));
        return 3;
    }
    at[0] = (uint8_t)(0xf0 | point >> 18);
    at[1] = (uint8_t)(0x80 | (point >> 12 & 63));
    at[2] = (uint8_t)(0x80 | (point >> 6 & 63));
    at[3] = (uint8_t)(0x80 | (point & 63));
    return 4;
}

static void utf8_accepts_exactly_the_scalar_values(void **state) {
    (void)state;
    for (uint32_t point = 0; point < 0x140000; point++) {
        uint8_t bytes[4];
        size_t size = encode(point, bytes);
        bool valid = point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
        if (esk_utf8_valid(esk_slice(bytes, size)) != valid ||
            (size > 1 && esk_utf8_valid(esk_slice(bytes, size - 1)))) {
            fail_msg("U+%04X", point);
        }
    }
    const char *refused[] = {"\xc0\x80",         "\xc1\xbf", "\xe0\x80\x80",         "\xe0\x9f\xbf",
                             "\xf0\x8f\xbf\xbf", "\x80",     "\xf8\x88\x80\x80\x80", "\xfe"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_false(esk_utf8_valid(esk_slice_text(refused[i])));
    }
}

static void utf8_finds_the_first_bad_byte_at_every_place(void **state) {
    (void)state;
    uint8_t bytes[100];
    for (size_t at = 0; at < sizeof(bytes); at++) {
        memset(bytes, 'a', sizeof(bytes));
        assert_int_equal(esk_utf8_valid_size(esk_slice(bytes, sizeof(bytes))), sizeof(bytes));
        bytes[at] = 0xff;
        assert_int_equal(esk_utf8_valid_size(esk_slice(bytes, sizeof(bytes))), at);
    }
    assert_true(esk_utf8_valid(esk_slice(NULL, 0)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topic_names_have_their_alphabet_and_length),
        cmocka_unit_test(ids_are_text_without_control_characters),
        cmocka_unit_test(utf8_accepts_exactly_the_scalar_values),
        cmocka_unit_test(utf8_finds_the_first_bad_byte_at_every_place),
    };
    return cmocka_run_group_tests_name("model.names", tests, NULL, NULL);
}
