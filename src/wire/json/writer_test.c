/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's exact text, every byte's escape at every place of a block, and base64 both ways. */
#include "wire/json/base64.h"
#include "wire/json/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect_text(const struct esk_buffer *buffer, const char *expected) {
    assert_int_equal(buffer->size, strlen(expected));
    assert_memory_equal(buffer->data, expected, buffer->size);
}

static void commas_come_by_themselves(void **state) {
    (void)state;
    struct esk_buffer buffer;
    esk_buffer_init(&buffer);
    struct esk_json_writer w = esk_json_writer(&buffer);
    esk_json_open_object(&w);
    esk_json_write_key(&w, "records");
    esk_json_open_array(&w);
    esk_json_open_object(&w);
    esk_json_write_key(&w, "key");
    esk_json_write_string(&w, esk_slice(NULL, 0));
    esk_json_write_key(&w, "value");
    esk_json_write_string(&w, esk_slice_text("a\"b"));
    esk_json_close_object(&w);
    esk_json_open_object(&w);
    esk_json_close_object(&w);
    esk_json_open_array(&w);
    esk_json_close_array(&w);
    esk_json_write_int64(&w, INT64_MIN);
    esk_json_write_uint64(&w, UINT64_MAX);
    esk_json_write_raw(&w, esk_slice_text("{\"x\":1}"));
    esk_json_close_array(&w);
    esk_json_write_key_bytes(&w, esk_slice_text("\n"));
    esk_json_write_bool(&w, true);
    esk_json_write_key(&w, "b");
    esk_json_write_bool(&w, false);
    esk_json_write_key(&w, "n");
    esk_json_write_null(&w);
    esk_json_write_key(&w, "e");
    esk_json_write_base64(&w, esk_slice_text("hi"));
    esk_json_write_key(&w, "z");
    esk_json_write_base64(&w, esk_slice(NULL, 0));
    esk_json_close_object(&w);
    expect_text(&buffer, "{\"records\":[{\"key\":null,\"value\":\"a\\\"b\"},{},[],"
                         "-9223372036854775808,18446744073709551615,{\"x\":1}],\"\\n\":true,"
                         "\"b\":false,\"n\":null,\"e\":\"aGk=\",\"z\":null}");
    esk_buffer_fini(&buffer);
}

static void every_byte_has_its_escape_at_every_place(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        for (size_t at = 0; at < 40; at++) {
            uint8_t text[40];
            char expected[100] = "\"";
            memset(text, 'x', sizeof(text));
            text[at] = (uint8_t)c;
            size_t size = 1;
            for (size_t i = 0; i < sizeof(text); i++) {
                const char *named =
                    text[i] < 128 ? strchr("\"\"\\\\\bb\ff\nn\rr\tt", text[i]) : NULL;
                bool escaped = text[i] == '"' || text[i] == '\\' || text[i] < 32;
                if (escaped && text[i] != 0 && named) {
                    size += (size_t)sprintf(expected + size, "\\%c", named[1]);
                } else if (escaped) {
                    size += (size_t)sprintf(expected + size, "\\u%04x", text[i]);
                } else {
                    expected[size++] = (char)text[i];
                }
            }
            expected[size++] = '"';
            struct esk_buffer buffer;
            esk_buffer_init(&buffer);
            struct esk_json_writer w = esk_json_writer(&buffer);
            esk_json_write_string(&w, esk_slice(text, sizeof(text)));
            assert_int_equal(buffer.size, size);
            assert_memory_equal(buffer.data, expected, size);
            esk_buffer_fini(&buffer);
        }
    }
}

static void a_string_of_escapes_alone_grows_six_times(void **state) {
    (void)state;
    const size_t size = 100000;
    uint8_t *ones = esk_alloc(size);
    memset(ones, 1, size);
    struct esk_buffer buffer;
    esk_buffer_init(&buffer);
    struct esk_json_writer w = esk_json_writer(&buffer);
    esk_json_write_string(&w, esk_slice(ones, size));
    assert_int_equal(buffer.size, 6 * size + 2);
    assert_memory_equal(buffer.data + buffer.size - 7, "\\u0001\"", 7);
    esk_buffer_fini(&buffer);
    free(ones);
}

static void texts_that_are_not_utf8_are_mended(void **state) {
    (void)state;
    struct esk_buffer buffer;
    esk_buffer_init(&buffer);
    struct esk_json_writer w = esk_json_writer(&buffer);
    esk_json_write_text(&w, "a\xff\xc3\xa4\n\xc3");
    expect_text(&buffer, "\"a\xef\xbf\xbd\xc3\xa4\\n\xef\xbf\xbd\"");
    esk_buffer_fini(&buffer);
}

static void numbers_are_printed_at_every_length(void **state) {
    (void)state;
    uint64_t number = 1;
    for (int i = 0; i < 20; i++, number *= 10) {
        for (int64_t delta = -1; delta <= 1; delta++) {
            struct esk_buffer buffer;
            esk_buffer_init(&buffer);
            struct esk_json_writer w = esk_json_writer(&buffer);
            uint64_t value = number + (uint64_t)delta;
            esk_json_write_uint64(&w, value);
            esk_json_write_int64(&w, (int64_t)value);
            char expected[60];
            snprintf(expected, sizeof(expected), "%llu,%lld", (unsigned long long)value,
                     (long long)value);
            expect_text(&buffer, expected);
            esk_buffer_fini(&buffer);
        }
    }
}

static void base64_has_the_vectors_of_the_rfc(void **state) {
    (void)state;
    const char *vectors[][2] = {{"", ""},
                                {"f", "Zg=="},
                                {"fo", "Zm8="},
                                {"foo", "Zm9v"},
                                {"foob", "Zm9vYg=="},
                                {"fooba", "Zm9vYmE="},
                                {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        uint8_t text[8];
        uint8_t bytes[6];
        size_t size;
        struct esk_slice plain = esk_slice_text(vectors[i][0]);
        struct esk_slice encoded = esk_slice_text(vectors[i][1]);
        esk_base64_encode(plain, text);
        assert_true(esk_slice_equal(esk_slice(text, esk_base64_encoded_size(plain.size)), encoded));
        assert_true(esk_base64_decode(encoded, bytes, &size));
        assert_true(esk_slice_equal(esk_slice(bytes, size), plain));
    }
}

static void base64_round_trips_at_every_size_in_exact_memory(void **state) {
    (void)state;
    for (size_t size = 0; size < 200; size++) {
        uint8_t *bytes = esk_alloc(size);
        uint8_t *text = esk_alloc(esk_base64_encoded_size(size));
        for (size_t i = 0; i < size; i++) {
            bytes[i] = (uint8_t)(i * 73 + size * 31);
        }
        esk_base64_encode(esk_slice(bytes, size), text);
        struct esk_slice encoded = esk_slice(text, esk_base64_encoded_size(size));
        uint8_t *decoded = esk_alloc(esk_base64_decoded_max(encoded.size));
        size_t decoded_size;
        assert_true(esk_base64_decode(encoded, decoded, &decoded_size));
        assert_int_equal(decoded_size, size);
        assert_memory_equal(decoded, bytes, size);
        assert_true(esk_base64_decode(encoded, text, &decoded_size)); /* in its own memory */
        assert_int_equal(decoded_size, size);
        assert_memory_equal(text, bytes, size);
        free(bytes);
        free(text);
        free(decoded);
    }
}

static void base64_refuses_all_but_its_alphabet(void **state) {
    (void)state;
    uint8_t bytes[48];
    size_t size;
    for (int c = 0; c < 256; c++) {
        bool known = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     c == '+' || c == '/';
        for (size_t at = 0; at < 64; at++) {
            uint8_t text[64];
            memset(text, 'A', sizeof(text));
            text[at] = (uint8_t)c;
            bool padding = c == '=' && at == 63;
            assert_int_equal(esk_base64_decode(esk_slice(text, sizeof(text)), bytes, &size),
                             known || padding);
        }
    }
    const char *refused[] = {"A",     "AA",   "AAA",  "====",     "A===",  "AA=A",
                             "AAAA=", "AB==", "AAB=", "AA==AAAA", "AAA\n", "AA__"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (esk_base64_decode(esk_slice_text(refused[i]), bytes, &size)) {
            fail_msg("%s", refused[i]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_come_by_themselves),
        cmocka_unit_test(every_byte_has_its_escape_at_every_place),
        cmocka_unit_test(a_string_of_escapes_alone_grows_six_times),
        cmocka_unit_test(texts_that_are_not_utf8_are_mended),
        cmocka_unit_test(numbers_are_printed_at_every_length),
        cmocka_unit_test(base64_has_the_vectors_of_the_rfc),
        cmocka_unit_test(base64_round_trips_at_every_size_in_exact_memory),
        cmocka_unit_test(base64_refuses_all_but_its_alphabet),
    };
    return cmocka_run_group_tests_name("wire.json.writer", tests, NULL, NULL);
}
