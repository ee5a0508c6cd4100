/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/es01/protocol.h"

#include "wire/es01/golden_testing.h"

static void a_hello_has_its_golden_bytes(void **state) {
    (void)state;
    uint8_t out[ESK_ES01_HELLO_BYTES_MAX];
    struct esk_es01_hello hello;
    size_t size;
    assert_int_equal(esk_es01_hello_parse(golden("hello"), &hello, &size, NULL), ESK_OK);
    assert_int_equal(hello.features, ESK_ES01_FEATURE_GZIP);
    assert_text(hello.token, "key");
    assert_int_equal(size, 15);
    size = esk_es01_hello_write(&hello, out);
    assert_golden(esk_slice(out, size), "hello");
    size = esk_es01_hello_write(&(struct esk_es01_hello){0}, out);
    assert_golden(esk_slice(out, size), "hello.bare");
}

static void a_welcome_has_its_golden_bytes(void **state) {
    (void)state;
    uint8_t out[64];
    struct esk_es01_welcome welcome;
    size_t size;
    assert_int_equal(esk_es01_welcome_parse(golden("welcome"), &welcome, &size, NULL), ESK_OK);
    assert_int_equal(welcome.status, ESK_ES01_STATUS_OK);
    assert_int_equal(welcome.features, ESK_ES01_FEATURE_GZIP);
    assert_int_equal(welcome.message.size, 0);
    size = esk_es01_welcome_write(&welcome, out);
    assert_golden(esk_slice(out, size), "welcome");
    assert_int_equal(esk_es01_welcome_parse(golden("welcome.refused"), &welcome, &size, NULL),
                     ESK_OK);
    assert_int_equal(welcome.status, ESK_ES01_STATUS_AUTH_FAILED);
    assert_text(welcome.message, "no");
    size = esk_es01_welcome_write(&welcome, out);
    assert_golden(esk_slice(out, size), "welcome.refused");
}

static void a_beginning_asks_for_more_whatever_its_size(void **state) {
    (void)state;
    struct esk_slice hello_bytes = golden("hello");
    struct esk_es01_hello hello;
    struct esk_es01_welcome welcome;
    struct esk_error error;
    size_t size;
    for (size_t i = 0; i < hello_bytes.size; i++) {
        assert_int_equal(
            esk_es01_hello_parse(esk_slice(hello_bytes.data, i), &hello, &size, &error),
            ESK_ERR_AGAIN);
    }
    struct esk_slice welcome_bytes = golden("welcome.refused");
    for (size_t i = 0; i < welcome_bytes.size; i++) {
        assert_int_equal(
            esk_es01_welcome_parse(esk_slice(welcome_bytes.data, i), &welcome, &size, &error),
            ESK_ERR_AGAIN);
    }
}

static void wrong_handshakes_are_told_at_the_first_wrong_byte(void **state) {
    (void)state;
    struct esk_es01_hello hello;
    struct esk_es01_welcome welcome;
    struct esk_error error;
    size_t size;
    assert_int_equal(esk_es01_hello_parse(esk_slice_text("ESK"), &hello, &size, &error),
                     ESK_ERR_INVALID);
    assert_int_equal(esk_es01_welcome_parse(esk_slice_text("H"), &welcome, &size, &error),
                     ESK_ERR_INVALID);
    static const uint8_t long_token[] = "ES01\0\0\0\0\0\0\x04\x01";
    assert_int_equal(esk_es01_hello_parse(esk_slice(long_token, 12), &hello, &size, &error),
                     ESK_ERR_TOO_LARGE);
    static const uint8_t long_message[] = "ES01\1\0\0\0\0\0\1\0\1";
    assert_int_equal(esk_es01_welcome_parse(esk_slice(long_message, 13), &welcome, &size, &error),
                     ESK_ERR_TOO_LARGE);
}

static void a_frame_s_head_has_its_golden_bytes(void **state) {
    (void)state;
    struct esk_es01_frame frame;
    uint8_t out[ESK_ES01_FRAME_HEAD_BYTES];
    assert_int_equal(esk_es01_frame_parse(golden("frame"), 14, &frame, NULL), ESK_OK);
    assert_int_equal(frame.request_id, 0x01020304);
    assert_int_equal(frame.opcode, ESK_ES01_PING);
    assert_int_equal(esk_es01_payload_bytes(&frame), 9);
    esk_es01_frame_write(out, 9, 0x01020304, ESK_ES01_PING);
    assert_golden(esk_slice(out, sizeof out), "frame");
}

static void a_frame_s_length_is_judged_before_the_rest_is_there(void **state) {
    (void)state;
    struct esk_slice head = golden("frame");
    struct esk_es01_frame frame;
    struct esk_error error;
    for (size_t i = 0; i < head.size; i++) {
        enum esk_err err = esk_es01_frame_parse(esk_slice(head.data, i), 13, &frame, &error);
        assert_int_equal(err, i < 4 ? ESK_ERR_AGAIN : ESK_ERR_TOO_LARGE);
        assert_true(i < 4 || frame.request_id == (i < 8 ? 0 : 0x01020304));
        assert_int_equal(esk_es01_frame_parse(esk_slice(head.data, i), 14, &frame, &error),
                         ESK_ERR_AGAIN);
    }
    static const uint8_t short_frame[] = {0, 0, 0, 4, 9, 9, 9, 9, 9};
    assert_int_equal(esk_es01_frame_parse(esk_slice(short_frame, 9), 100, &frame, &error),
                     ESK_ERR_INVALID);
    assert_int_equal(frame.request_id, 0);
}

static void errors_begin_with_their_phrase_once(void **state) {
    (void)state;
    uint8_t out[ESK_ES01_ERROR_BYTES_MAX];
    size_t size = esk_es01_error_write(ESK_ERR_NOT_FOUND, "topic 't' does not exist", out);
    assert_golden(esk_slice(out, size), "error");
    size = esk_es01_error_write(ESK_ERR_INTERNAL, "internal error (id 4f1c2a9b)", out);
    assert_text(esk_slice(out, size), "internal error (id 4f1c2a9b)");
    size = esk_es01_error_write(ESK_ERR_SEQUENCE_GAP, "sequence gap: send 5 first", out);
    assert_text(esk_slice(out, size), "sequence gap: send 5 first");
    size = esk_es01_error_write(ESK_ERR_CONFLICT, "conflicting", out);
    assert_text(esk_slice(out, size), "conflict: conflicting");
    size = esk_es01_error_write(ESK_ERR_NO_SPACE, "", out);
    assert_text(esk_slice(out, size), "disk full");
}

static void every_code_is_found_again_by_its_phrase(void **state) {
    (void)state;
    uint8_t out[ESK_ES01_ERROR_BYTES_MAX];
    for (int code = 1; code < ESK_ERR_COUNT; code++) {
        size_t size = esk_es01_error_write((enum esk_err)code, "something", out);
        assert_int_equal(esk_es01_error_code(esk_slice(out, size)), code);
    }
    assert_int_equal(esk_es01_error_code(esk_slice_text("what a later broker says")),
                     ESK_ERR_INTERNAL);
    assert_int_equal(esk_es01_error_code(esk_slice(NULL, 0)), ESK_ERR_INTERNAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_has_its_golden_bytes),
        cmocka_unit_test(a_welcome_has_its_golden_bytes),
        cmocka_unit_test(a_beginning_asks_for_more_whatever_its_size),
        cmocka_unit_test(wrong_handshakes_are_told_at_the_first_wrong_byte),
        cmocka_unit_test(a_frame_s_head_has_its_golden_bytes),
        cmocka_unit_test(a_frame_s_length_is_judged_before_the_rest_is_there),
        cmocka_unit_test(errors_begin_with_their_phrase_once),
        cmocka_unit_test(every_code_is_found_again_by_its_phrase),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
