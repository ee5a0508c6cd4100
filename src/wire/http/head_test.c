/* SPDX-License-Identifier: Apache-2.0 */
/* One table of heads, taken and refused; it holds with every version of llhttp that we build on. */
#include "wire/http/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define HOST "Host: a\r\n"

struct example {
    const char *name;
    const char *text;
    size_t size; /* 0: of the text */
    enum esk_err expected;
};

#define BYTES(text) text, sizeof(text) - 1

static const struct example examples[] = {
    {"plain", "GET / HTTP/1.1\r\n" HOST "\r\n", 0, ESK_OK},
    {"empty lines first", "\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n", 0, ESK_OK},
    {"no end yet", "GET / HTTP/1.1\r\n" HOST, 0, ESK_ERR_AGAIN},
    {"HTTP/1.0 needs no host", "GET / HTTP/1.0\r\n\r\n", 0, ESK_OK},
    {"absolute form", "GET http://h:9000/topics HTTP/1.1\r\n" HOST "\r\n", 0, ESK_OK},
    {"upgrade is not taken up",
     "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n", 0,
     ESK_OK},
    {"bytes above 127 in a value", "GET / HTTP/1.1\r\n" HOST "A: \xc3\xa9\r\n\r\n", 0, ESK_OK},

    {"no host", "GET / HTTP/1.1\r\n\r\n", 0, ESK_ERR_INVALID},
    {"two hosts", "GET / HTTP/1.1\r\n" HOST HOST "\r\n", 0, ESK_ERR_INVALID},
    {"two hosts by HTTP/1.0", "GET / HTTP/1.0\r\n" HOST HOST "\r\n", 0, ESK_ERR_INVALID},
    {"length twice", "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"two lengths in one", "POST / HTTP/1.1\r\n" HOST "Content-Length: 1, 1\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"length and chunked",
     "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"chunked and length",
     "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"signed length", "POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n\r\n", 0, ESK_ERR_INVALID},
    {"negative length", "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"hexadecimal length", "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"empty length", "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 0, ESK_ERR_INVALID},
    {"length over 64 bits",
     "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551617\r\n\r\n", 0, ESK_ERR_INVALID},
    {"chunked", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: Chunked\r\n\r\n", 0, ESK_OK},
    {"chunked twice", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"chunked in two headers",
     "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
     0, ESK_ERR_INVALID},
    {"gzip, chunked", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"identity", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"a vertical tab before chunked",
     "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \vchunked\r\n\r\n", 0, ESK_ERR_INVALID},
    {"chunked by HTTP/1.0", "POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"space before a colon", "POST / HTTP/1.1\r\n" HOST "Content-Length : 1\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"tab before a colon", "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding\t: chunked\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"space in a name", "GET / HTTP/1.1\r\n" HOST "Content Length: 1\r\n\r\n", 0, ESK_ERR_INVALID},
    {"no name", "GET / HTTP/1.1\r\n" HOST ": 1\r\n\r\n", 0, ESK_ERR_INVALID},
    {"no colon", "GET / HTTP/1.1\r\n" HOST "Content-Length\r\n\r\n", 0, ESK_ERR_INVALID},
    {"folded line", "GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", 0, ESK_ERR_INVALID},
    {"folded with a tab", "GET / HTTP/1.1\r\n" HOST "A: b\r\n\tc\r\n\r\n", 0, ESK_ERR_INVALID},
    {"white space before the first header", "GET / HTTP/1.1\r\n A: b\r\n" HOST "\r\n", 0,
     ESK_ERR_INVALID},
    {"bare LF", "GET / HTTP/1.1\n" HOST "\n", 0, ESK_ERR_INVALID},
    {"bare LF in a value", "GET / HTTP/1.1\r\n" HOST "A: b\nB: c\r\n\r\n", 0, ESK_ERR_INVALID},
    {"bare CR in a value", "GET / HTTP/1.1\r\n" HOST "A: b\rB: c\r\n\r\n", 0, ESK_ERR_INVALID},
    {"two CRs", "GET / HTTP/1.1\r\r\n" HOST "\r\n", 0, ESK_ERR_INVALID},
    {"NUL in a value", BYTES("GET / HTTP/1.1\r\n" HOST "A: b\0c\r\n\r\n"), ESK_ERR_INVALID},
    {"NUL in the target", BYTES("GET /a\0b HTTP/1.1\r\n" HOST "\r\n"), ESK_ERR_INVALID},
    {"a control byte in a value", "GET / HTTP/1.1\r\n" HOST "A: b\001c\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"two spaces after the method", "GET  / HTTP/1.1\r\n" HOST "\r\n", 0, ESK_ERR_INVALID},
    {"two spaces after the target", "GET /  HTTP/1.1\r\n" HOST "\r\n", 0, ESK_ERR_INVALID},
    {"space before the method", " GET / HTTP/1.1\r\n" HOST "\r\n", 0, ESK_ERR_INVALID},
    {"HTTP/0.9", "GET /\r\n\r\n", 0, ESK_ERR_INVALID},
    {"HTTP/1.2", "GET / HTTP/1.2\r\n" HOST "\r\n", 0, ESK_ERR_INVALID},
    {"HTTP/2.0", "GET / HTTP/2.0\r\n" HOST "\r\n", 0, ESK_ERR_INVALID},
    {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, ESK_ERR_INVALID},
    {"small http", "GET / http/1.1\r\n" HOST "\r\n", 0, ESK_ERR_INVALID},
    {"unknown method", "GRAB / HTTP/1.1\r\n" HOST "\r\n", 0, ESK_ERR_INVALID},
    {"small method", "get / HTTP/1.1\r\n" HOST "\r\n", 0, ESK_ERR_INVALID},
    {"not a path", "GET topics HTTP/1.1\r\n" HOST "\r\n", 0, ESK_ERR_INVALID},
    {"another expectation", "POST / HTTP/1.1\r\n" HOST "Expect: coffee\r\n\r\n", 0,
     ESK_ERR_INVALID},
    {"TLS", "\x16\x03\x01\x02\n\x01", 0, ESK_ERR_INVALID},
};

static enum esk_err parse(const char *text, size_t size, struct esk_http_head *head) {
    size_t scanned = 0;
    struct esk_error error = {0};
    char *exact = malloc(size); /* so that the address sanitizer sees a read past the end */
    assert_non_null(exact);
    memcpy(exact, text, size);
    enum esk_err err = esk_http_head_parse(esk_slice(exact, size), &scanned, head, &error);
    assert_true(err == ESK_OK || err == ESK_ERR_AGAIN || error.text[0]);
    free(exact);
    return err;
}

static void heads_are_taken_or_refused(void **state) {
    (void)state;
    struct esk_http_head head;
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct example *example = &examples[i];
        size_t size = example->size ? example->size : strlen(example->text);
        enum esk_err err = parse(example->text, size, &head);
        if (err != example->expected) {
            print_error("%s: %s\n", example->name, esk_err_name(err));
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

/* The same answer, whatever pieces a head comes in. */
static void pieces_do_not_matter(void **state) {
    (void)state;
    static struct esk_http_head head;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct example *example = &examples[i];
        size_t size = example->size ? example->size : strlen(example->text);
        size_t scanned = 0;
        enum esk_err err = ESK_ERR_AGAIN;
        for (size_t have = 1; have <= size && err == ESK_ERR_AGAIN; have++) {
            err = esk_http_head_parse(esk_slice(example->text, have), &scanned, &head, NULL);
        }
        assert_int_equal(err, example->expected);
    }
}

static void a_head_is_read(void **state) {
    (void)state;
    struct esk_http_head head;
    struct esk_slice input = esk_slice_text("POST http://h/a%20b?x=1&y HTTP/1.1\r\nHost: h\r\n"
                                            "CONTENT-LENGTH: 12\r\nX-Es-Key:  k \t\r\nEmpty:\r\n"
                                            "Expect: 100-continue\r\nConnection: close\r\n\r\nGET");
    size_t scanned = 0;
    assert_int_equal(esk_http_head_parse(input, &scanned, &head, NULL), ESK_OK);
    assert_int_equal(head.size, input.size - 3);
    assert_int_equal(head.method, ESK_HTTP_POST);
    assert_true(esk_slice_equal(head.path, esk_slice_text("/a%20b")));
    assert_true(esk_slice_equal(head.query, esk_slice_text("x=1&y")));
    assert_int_equal(head.content_length, 12);
    assert_true(head.expects_continue);
    assert_false(head.keep_alive);
    assert_true(esk_slice_equal(esk_http_header_find(&head, "x-es-key"), esk_slice_text("k")));
    assert_int_equal(esk_http_header_find(&head, "empty").size, 0);
    assert_null(esk_http_header_find(&head, "absent").data);
}

static void limits_hold(void **state) {
    (void)state;
    static struct esk_http_head head;
    struct esk_buffer text;
    esk_buffer_init(&text);
    for (int headers = 99; headers <= 100; headers++) {
        text.size = 0;
        esk_buffer_append_text(&text, "GET / HTTP/1.1\r\nHost: h\r\n");
        for (int i = 0; i < headers; i++) {
            esk_buffer_append_text(&text, "A: b\r\n");
        }
        esk_buffer_append_text(&text, "\r\n");
        assert_int_equal(parse((char *)text.data, text.size, &head),
                         headers == 99 ? ESK_OK : ESK_ERR_HEADERS_TOO_LARGE);
    }
    for (size_t size = ESK_HTTP_HEAD_BYTES_MAX; size <= ESK_HTTP_HEAD_BYTES_MAX + 1; size++) {
        text.size = 0;
        esk_buffer_append_text(&text, "GET /");
        while (text.size < size - strlen(" HTTP/1.1\r\nHost: h\r\n\r\n")) {
            esk_buffer_u8(&text, 'a');
        }
        esk_buffer_append_text(&text, " HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_int_equal(parse((char *)text.data, text.size, &head),
                         size == ESK_HTTP_HEAD_BYTES_MAX ? ESK_OK : ESK_ERR_HEADERS_TOO_LARGE);
    }
    esk_buffer_fini(&text);
}

/* --- chunked bodies --- */

static enum esk_err feed(struct esk_slice input, size_t step, size_t max, struct esk_buffer *body,
                         size_t *end) {
    struct esk_http_chunks *chunks = esk_http_chunks_create();
    enum esk_err err = ESK_ERR_AGAIN;
    *end = 0;
    while (err == ESK_ERR_AGAIN && *end < input.size) {
        size_t size = input.size - *end < step ? input.size - *end : step;
        size_t consumed = 0;
        err = esk_http_chunks_feed(chunks, esk_slice(input.data + *end, size), max, body, &consumed,
                                   NULL);
        *end += consumed;
    }
    esk_http_chunks_destroy(chunks);
    return err;
}

static void chunked_bodies_are_taken_or_refused(void **state) {
    (void)state;
    static const struct example chunked[] = {
        {"whole", "5\r\nhello\r\n0\r\n\r\n", 0, ESK_OK},
        {"capitals and zeros", "000A\r\nhellohello\r\n0\r\n\r\n", 0, ESK_OK},
        {"extension", "5;a=b\r\nhello\r\n0\r\n\r\n", 0, ESK_OK},
        {"trailer", "5\r\nhello\r\n0\r\nA: b\r\n\r\n", 0, ESK_OK},
        {"not whole", "5\r\nhello\r\n", 0, ESK_ERR_AGAIN},
        {"no size", "\r\nhello\r\n0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"not a number", "g\r\nhello\r\n0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"0x", "0x5\r\nhello\r\n0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"signed", "+5\r\nhello\r\n0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"negative", "-5\r\nhello\r\n0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"space before", " 5\r\nhello\r\n0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"too short", "4\r\nhello\r\n0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"too long", "6\r\nhello\r\n0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"no CRLF behind the chunk", "5\r\nhello0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"bare LF behind the size", "5\nhello\r\n0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"over the body limit", "7fffffff\r\n", 0, ESK_ERR_TOO_LARGE},
        {"over 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n", 0, ESK_ERR_INVALID},
        {"many over the limit", "8\r\nhellohel\r\n5\r\nhello\r\n0\r\n\r\n", 0, ESK_ERR_TOO_LARGE},
    };
    struct esk_buffer body;
    esk_buffer_init(&body);
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof chunked / sizeof *chunked; i++) {
        for (size_t step = 1; step <= 64; step += 63) {
            size_t end;
            body.size = 0;
            enum esk_err err = feed(esk_slice_text(chunked[i].text), step, 12, &body, &end);
            if (err != chunked[i].expected) {
                print_error("%s: %s\n", chunked[i].name, esk_err_name(err));
                wrong++;
            }
        }
    }
    assert_int_equal(wrong, 0);
    size_t end;
    struct esk_slice two = esk_slice_text("3\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1");
    body.size = 0;
    assert_int_equal(feed(two, 100, 12, &body, &end), ESK_OK);
    assert_int_equal(end, two.size - strlen("GET / HTTP/1.1"));
    assert_true(esk_slice_equal(esk_buffer_slice(&body), esk_slice_text("abcde")));
    esk_buffer_fini(&body);
}

static void framing_is_bounded_by_the_body(void **state) {
    (void)state;
    struct esk_buffer body;
    struct esk_buffer text;
    esk_buffer_init(&body);
    esk_buffer_init(&text);
    for (int i = 0; i < 100000; i++) {
        esk_buffer_append_text(&text, "1\r\nx\r\n");
    }
    esk_buffer_append_text(&text, "0\r\n\r\n");
    size_t end;
    assert_int_equal(feed(esk_buffer_slice(&text), 4096, 100000, &body, &end), ESK_OK);
    assert_int_equal(body.size, 100000);

    text.size = 0; /* one endless extension */
    esk_buffer_append_text(&text, "1;");
    for (int i = 0; i < 20000; i++) {
        esk_buffer_u8(&text, 'x');
    }
    body.size = 0;
    assert_int_equal(feed(esk_buffer_slice(&text), 4096, 100000, &body, &end), ESK_ERR_INVALID);

    text.size = 0; /* endless trailers */
    esk_buffer_append_text(&text, "0\r\n");
    for (int i = 0; i < 4000; i++) {
        esk_buffer_append_text(&text, "A: b\r\n");
    }
    assert_int_equal(feed(esk_buffer_slice(&text), 4096, 100000, &body, &end), ESK_ERR_INVALID);
    esk_buffer_fini(&text);
    esk_buffer_fini(&body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_taken_or_refused),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(a_head_is_read),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(chunked_bodies_are_taken_or_refused),
        cmocka_unit_test(framing_is_bounded_by_the_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
