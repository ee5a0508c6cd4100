/* SPDX-License-Identifier: Apache-2.0 */
#include "esk/http_answer.h"
#include "esk/http_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct esk_http_answer answer;

/* Feeds a text in pieces; what came of it, and how much was taken. */
static enum esk_err feed(const char *text, size_t piece, size_t *taken) {
    size_t size = strlen(text);
    enum esk_err err = ESK_ERR_AGAIN;
    esk_http_answer_begin(&answer);
    *taken = 0;
    while (err == ESK_ERR_AGAIN && *taken < size) {
        size_t left = size - *taken;
        size_t consumed;
        err = esk_http_answer_feed(&answer, esk_slice(text + *taken, left < piece ? left : piece),
                                   &consumed, NULL);
        *taken += consumed;
    }
    return err;
}

static const struct {
    const char *text;
    const char *next; /* what follows the answer */
    int status;
    const char *body;
    bool keeps_alive;
} good[] = {
    {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1", 200, "hello", true},
    {"HTTP/1.1 404 Not Found\r\ncontent-length:2 \r\nConnection: close\r\n\r\n{}", "", 404, "{}",
     false},
    {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "more", 200, "", true},
    {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", "", 200, "x", false},
    {"HTTP/1.1 204 No Content\r\n\r\n", "H", 204, "", true},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\ny", "", 201,
     "y", true},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n"
     "0\r\nTrailer: z\r\n\r\n",
     "HTTP", 200, "hello0123456789", true},
};

static void answers_are_read_in_pieces_of_any_size(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        char text[512];
        snprintf(text, sizeof(text), "%s%s", good[i].text, good[i].next);
        for (size_t piece = 1; piece <= strlen(text); piece++) {
            size_t taken;
            assert_int_equal(feed(text, piece, &taken), ESK_OK);
            assert_int_equal(taken, strlen(good[i].text));
            assert_int_equal(answer.status, good[i].status);
            assert_int_equal(answer.body.size, strlen(good[i].body));
            assert_memory_equal(answer.body.data ? answer.body.data : (uint8_t *)"", good[i].body,
                                answer.body.size);
            assert_int_equal(answer.keeps_alive, good[i].keeps_alive);
        }
    }
}

static void what_is_no_answer_is_refused(void **state) {
    (void)state;
    const char *const bad[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000\r\n\r\n",
        "\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        size_t taken;
        assert_int_equal(feed(bad[i], 7, &taken), ESK_ERR_CORRUPT);
        assert_int_equal(feed(bad[i], 1000, &taken), ESK_ERR_CORRUPT);
    }
}

static void a_head_without_end_is_refused(void **state) {
    (void)state;
    char *text = esk_alloc(ESK_HTTP_ANSWER_HEAD_BYTES_MAX + 100);
    memset(text, 'a', ESK_HTTP_ANSWER_HEAD_BYTES_MAX + 99);
    text[ESK_HTTP_ANSWER_HEAD_BYTES_MAX + 99] = '\0';
    size_t taken;
    assert_int_equal(feed(text, 1000, &taken), ESK_ERR_CORRUPT);
    free(text);
}

static void a_body_without_length_ends_with_the_connection(void **state) {
    (void)state;
    size_t taken;
    assert_int_equal(feed("HTTP/1.1 200 OK\r\n\r\nabc", 4, &taken), ESK_ERR_AGAIN);
    assert_int_equal(esk_http_answer_end(&answer, NULL), ESK_OK);
    assert_int_equal(answer.body.size, 3);
    assert_int_equal(feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", 4, &taken),
                     ESK_ERR_AGAIN);
    assert_int_equal(esk_http_answer_end(&answer, NULL), ESK_ERR_UNAVAILABLE);
}

static void the_end_of_a_body_is_kept_where_the_body_is_not(void **state) {
    (void)state;
    struct esk_http_answer kept = answer;
    esk_http_answer_init(&answer, false);
    char text[1200];
    int head = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    for (int i = 0; i < 1000; i++) {
        text[head + i] = (char)('a' + i % 26);
    }
    text[head + 1000] = '\0';
    for (size_t piece = 1; piece < 1100; piece += 50) {
        size_t taken;
        assert_int_equal(feed(text, piece, &taken), ESK_OK);
        assert_int_equal(answer.body_bytes, 1000);
        assert_int_equal(answer.body.size, 0);
        assert_int_equal(answer.tail_size, ESK_HTTP_ANSWER_TAIL_BYTES);
        assert_memory_equal(answer.tail, text + head + 1000 - ESK_HTTP_ANSWER_TAIL_BYTES,
                            ESK_HTTP_ANSWER_TAIL_BYTES);
    }
    esk_http_answer_fini(&answer);
    answer = kept;
}

static void urls_name_a_server(void **state) {
    (void)state;
    struct esk_http_server server;
    assert_int_equal(esk_http_server_parse(&server, "http://127.0.0.1:9000", NULL), ESK_OK);
    assert_string_equal(server.host, "127.0.0.1");
    assert_string_equal(server.port, "9000");
    assert_int_equal(esk_http_server_parse(&server, "http://[::1]:80/", NULL), ESK_OK);
    assert_string_equal(server.host, "::1");
    assert_string_equal(server.authority, "[::1]:80");
    assert_int_equal(esk_http_server_parse(&server, "broker.example", NULL), ESK_OK);
    assert_string_equal(server.authority, "broker.example:9000");
    assert_false(server.is_secure);
    assert_int_equal(esk_http_server_parse(&server, "https://[::1]:443", NULL), ESK_OK);
    assert_true(server.is_secure);
    const char *const bad[] = {"",           "http://",      "ftp://a:1",   "http://a:0",
                               "http://a:x", "http://a:1/b", "http://[::1", "http://a:99999",
                               "http://u@a", "http://a b:1", "http://a:"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(esk_http_server_parse(&server, bad[i], NULL), ESK_ERR_INVALID);
    }
}

static void names_in_paths_are_encoded(void **state) {
    (void)state;
    struct esk_buffer text;
    esk_buffer_init(&text);
    esk_http_append_encoded(&text, "a/b ?\xc3\xa9.-_~9");
    esk_buffer_u8(&text, '\0');
    assert_string_equal((char *)text.data, "a%2Fb%20%3F%C3%A9.-_~9");
    esk_buffer_fini(&text);
}

static int setup(void **state) {
    (void)state;
    esk_http_answer_init(&answer, true);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    esk_http_answer_fini(&answer);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_read_in_pieces_of_any_size),
        cmocka_unit_test(what_is_no_answer_is_refused),
        cmocka_unit_test(a_head_without_end_is_refused),
        cmocka_unit_test(a_body_without_length_ends_with_the_connection),
        cmocka_unit_test(the_end_of_a_body_is_kept_where_the_body_is_not),
        cmocka_unit_test(urls_name_a_server),
        cmocka_unit_test(names_in_paths_are_encoded),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
