/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http/response.h"
#include "wire/http/target.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void heads_are_written(void **state) {
    (void)state;
    uint8_t head[ESK_HTTP_RESPONSE_HEAD_BYTES_MAX];
    struct esk_http_response ok = {.status = 200,
                                   .content_type = "application/json",
                                   .has_length = true,
                                   .content_length = 1203};
    size_t size = esk_http_response_head(&ok, head);
    assert_true(
        esk_slice_equal(esk_slice(head, size),
                        esk_slice_text("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                       "Content-Length: 1203\r\n\r\n")));
    struct esk_http_response wrong = {.status = 405,
                                      .content_type = "text/plain",
                                      .allow = "GET, HEAD",
                                      .is_chunked = true,
                                      .retry_after_s = 7,
                                      .closes = true};
    size = esk_http_response_head(&wrong, head);
    assert_true(esk_slice_equal(
        esk_slice(head, size),
        esk_slice_text("HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\n"
                       "Transfer-Encoding: chunked\r\nAllow: GET, HEAD\r\nRetry-After: 7\r\n"
                       "Connection: close\r\n\r\n")));
}

static void what_a_browser_may_is_said_to_listed_origins(void **state) {
    (void)state;
    uint8_t head[ESK_HTTP_RESPONSE_HEAD_BYTES_MAX];
    struct esk_http_response refused = {.status = 401,
                                        .content_type = "text/plain",
                                        .has_length = true,
                                        .asks_for_key = true,
                                        .varies = true,
                                        .cors_origin = "https://ui.example"};
    size_t size = esk_http_response_head(&refused, head);
    assert_true(esk_slice_equal(
        esk_slice(head, size),
        esk_slice_text("HTTP/1.1 401 Unauthorized\r\nContent-Type: text/plain\r\n"
                       "Content-Length: 0\r\nWWW-Authenticate: Bearer\r\n"
                       "Vary: Origin\r\nAccess-Control-Allow-Origin: https://ui.example\r\n"
                       "Access-Control-Expose-Headers: Retry-After\r\n\r\n")));
    struct esk_http_response preflight = {
        .status = 204, .is_preflight = true, .varies = true, .cors_origin = "https://ui.example"};
    size = esk_http_response_head(&preflight, head);
    assert_true(esk_slice_equal(
        esk_slice(head, size),
        esk_slice_text("HTTP/1.1 204 No Content\r\n"
                       "Vary: Origin\r\nAccess-Control-Allow-Origin: https://ui.example\r\n"
                       "Access-Control-Allow-Methods: GET, POST, PUT, DELETE\r\n"
                       "Access-Control-Allow-Headers: Content-Type, Authorization, X-Es-Key, "
                       "Last-Event-ID\r\nAccess-Control-Max-Age: 600\r\n\r\n")));
}

/* The longest head that can be. */
static void the_longest_head_fits(void **state) {
    (void)state;
    char allow[129];
    char origin[ESK_HTTP_ORIGIN_BYTES_MAX + 1];
    memset(allow, 'A', sizeof allow - 1);
    memset(origin, 'o', sizeof origin - 1);
    allow[sizeof allow - 1] = origin[sizeof origin - 1] = '\0';
    struct esk_http_response longest = {.status = 431,
                                        .content_type = "text/plain; version=0.0.4; charset=utf-8",
                                        .allow = allow,
                                        .has_length = true,
                                        .content_length = UINT64_MAX,
                                        .retry_after_s = UINT32_MAX,
                                        .asks_for_key = true,
                                        .cors_origin = origin,
                                        .is_preflight = true,
                                        .varies = true,
                                        .closes = true};
    uint8_t head[2 * ESK_HTTP_RESPONSE_HEAD_BYTES_MAX];
    assert_true(esk_http_response_head(&longest, head) <= ESK_HTTP_RESPONSE_HEAD_BYTES_MAX);
}

static void chunk_sizes_are_hexadecimal(void **state) {
    (void)state;
    static const struct {
        uint32_t size;
        const char *text;
    } examples[] = {{1, "1\r\n"},
                    {15, "f\r\n"},
                    {16, "10\r\n"},
                    {262144, "40000\r\n"},
                    {UINT32_MAX, "ffffffff\r\n"}};
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        uint8_t head[ESK_HTTP_CHUNK_HEAD_BYTES_MAX];
        size_t size = esk_http_chunk_head(examples[i].size, head);
        assert_true(esk_slice_equal(esk_slice(head, size), esk_slice_text(examples[i].text)));
    }
}

static void targets_are_decoded(void **state) {
    (void)state;
    struct esk_arena arena;
    esk_arena_init(&arena, 0);
    struct esk_slice out;
    assert_true(esk_http_percent_decode(esk_slice_text("a%2Fb%00%c3%A9+"), &arena, &out));
    assert_true(esk_slice_equal(out, esk_slice("a/b\0\xc3\xa9+", 7)));
    assert_true(esk_http_query_decode(esk_slice_text("a+b"), &arena, &out));
    assert_true(esk_slice_equal(out, esk_slice_text("a b")));
    const char *broken[] = {"%", "%4", "a%", "%4g", "%g4", "%%41", "%+1"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_false(esk_http_percent_decode(esk_slice_text(broken[i]), &arena, &out));
    }

    struct esk_slice query = esk_slice_text("&a=1&&b&c==x&");
    struct esk_slice name;
    struct esk_slice value;
    const char *expected[][2] = {{"a", "1"}, {"b", ""}, {"c", "=x"}};
    for (size_t i = 0; i < 3; i++) {
        assert_true(esk_http_query_next(&query, &name, &value));
        assert_true(esk_slice_equal(name, esk_slice_text(expected[i][0])));
        assert_true(esk_slice_equal(value, esk_slice_text(expected[i][1])));
    }
    assert_false(esk_http_query_next(&query, &name, &value));
    esk_arena_fini(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_written),
        cmocka_unit_test(what_a_browser_may_is_said_to_listed_origins),
        cmocka_unit_test(the_longest_head_fits),
        cmocka_unit_test(chunk_sizes_are_hexadecimal),
        cmocka_unit_test(targets_are_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
