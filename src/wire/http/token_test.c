/* SPDX-License-Identifier: Apache-2.0 */
/* Which key a request's head carries, by examples and against a naive model over random headers. */
#include "wire/http/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <cmocka.h>

static struct esk_http_head head;

static enum esk_err find(const char *headers, struct esk_slice *token) {
    static char text[2048];
    size_t scanned = 0;
    int size = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", headers);
    assert_int_equal(esk_http_head_parse(esk_slice(text, (size_t)size), &scanned, &head, NULL),
                     ESK_OK);
    return esk_http_token_find(&head, token, NULL);
}

static void either_header_carries_the_key(void **state) {
    (void)state;
    static const struct {
        const char *headers;
        const char *token; /* NULL: refused */
    } examples[] = {
        {"", ""},
        {"Authorization: Bearer esk_A\r\n", "esk_A"},
        {"authorization: bEARER  \t esk_A\r\n", "esk_A"},
        {"X-Es-Key: esk_A\r\n", "esk_A"},
        {"x-es-key:   esk_A  \r\n", "esk_A"},
        {"X-Es-Key:\r\n", ""},
        {"Authorization: Bearer\r\n", ""},
        {"Authorization: Bearer \r\n", ""},
        {"Authorization: Beareresk_A\r\n", ""},
        {"Authorization: Basic dTpw\r\n", ""},
        {"Authorization: Basic dTpw\r\nX-Es-Key: esk_A\r\n", "esk_A"},
        {"Authorization: Bearer esk_A\r\nX-Es-Key: esk_A\r\n", "esk_A"},
        {"Authorization: Bearer esk_A\r\nX-Es-Key: esk_B\r\n", NULL},
        {"X-Es-Key: esk_A\r\nX-Es-Key: esk_B\r\n", NULL},
        {"Authorization: Bearer esk_A\r\nAuthorization: Bearer esk_AA\r\n", NULL},
        {"X-Es-Keys: esk_A\r\nXAuthorization: Bearer esk_B\r\n", ""},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct esk_slice token;
        enum esk_err err = find(examples[i].headers, &token);
        if (!examples[i].token) {
            assert_int_equal(err, ESK_ERR_UNAUTHENTICATED);
            continue;
        }
        assert_int_equal(err, ESK_OK);
        assert_true(esk_slice_equal(token, esk_slice_text(examples[i].token)));
    }
}

static const char *const names[] = {"Authorization", "X-Es-Key", "x-es-key", "X-Es-Ke", "Accept"};
static const char *const values[] = {"Bearer K1", "bearer K1",  "Bearer K2", "K1",   "K2",
                                     "Basic K1",  "Bearer  K1", "Bearer",    "Bear", ""};

/* The key of one header; "": none. */
static const char *model(const char *name, const char *value) {
    if (strcasecmp(name, "x-es-key") == 0) {
        return value;
    }
    if (strcasecmp(name, "authorization") != 0 || strncasecmp(value, "bearer ", 7) != 0) {
        return "";
    }
    return value + 7 + strspn(value + 7, " ");
}

static void random_headers_are_judged_as_the_model_does(void **state) {
    (void)state;
    srand(11);
    for (unsigned i = 0; i < 20000; i++) {
        char headers[512] = "";
        const char *expected = "";
        bool clash = false;
        for (unsigned count = (unsigned)rand() % 4; count > 0; count--) {
            const char *name = names[(size_t)rand() % (sizeof names / sizeof *names)];
            const char *value = values[(size_t)rand() % (sizeof values / sizeof *values)];
            size_t used = strlen(headers);
            (void)snprintf(headers + used, sizeof headers - used, "%s: %s\r\n", name, value);
            const char *key = model(name, value);
            clash |= *key && *expected && strcmp(key, expected) != 0;
            expected = *key ? key : expected;
        }
        struct esk_slice token;
        enum esk_err err = find(headers, &token);
        assert_int_equal(err, clash ? ESK_ERR_UNAUTHENTICATED : ESK_OK);
        if (!clash && !esk_slice_equal(token, esk_slice_text(expected))) {
            fail_msg("%s", headers);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(either_header_carries_the_key),
        cmocka_unit_test(random_headers_are_judged_as_the_model_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
