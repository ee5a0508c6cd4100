/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: tables of pairs, each with what the comparison must say. */
#ifndef ESK_SCHEMA_SCHEMA_TESTING_H
#define ESK_SCHEMA_SCHEMA_TESTING_H

#include "schema/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct pair {
    const char *older;
    const char *newer;
    const char *refusal; /* behind "backward-incompatible: "; NULL: newer reads older */
};

static inline void check_pairs(enum esk_schema_type type, const struct pair *pairs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct esk_error error = {0};
        enum esk_err err = esk_schema_backward(type, esk_slice_text(pairs[i].newer),
                                               esk_slice_text(pairs[i].older), &error);
        if (pairs[i].refusal == NULL) {
            if (err != ESK_OK) {
                fail_msg("pair %zu: %s", i, error.text);
            }
            continue;
        }
        char expected[ESK_ERROR_TEXT_BYTES];
        (void)snprintf(expected, sizeof expected, "backward-incompatible: %s", pairs[i].refusal);
        assert_int_equal(err, ESK_ERR_CONFLICT);
        assert_string_equal(error.text, expected);
    }
}

/* Every text, compared with itself, is compatible, and equal in its canonical form. */
static inline void check_reflexive(enum esk_schema_type type, const struct pair *pairs,
                                   size_t count) {
    for (size_t i = 0; i < 2 * count; i++) {
        struct esk_slice text =
            esk_slice_text(i % 2 == 0 ? pairs[i / 2].older : pairs[i / 2].newer);
        struct esk_error error = {0};
        if (esk_schema_backward(type, text, text, &error) != ESK_OK) {
            fail_msg("pair %zu with itself: %s", i / 2, error.text);
        }
    }
}

static inline void check_refused(enum esk_schema_type type, const char *text, const char *reason) {
    struct esk_error error = {0};
    struct esk_buffer canonical;
    esk_buffer_init(&canonical);
    if (esk_schema_canonical(type, esk_slice_text(text), &canonical, &error) != ESK_ERR_INVALID) {
        fail_msg("accepted: %s", text);
    }
    assert_string_equal(error.text, reason);
    esk_buffer_fini(&canonical);
}

static inline void check_same(enum esk_schema_type type, const char *one, const char *other,
                              bool same) {
    struct esk_buffer canonical[2];
    struct esk_error error = {0};
    esk_buffer_init(&canonical[0]);
    esk_buffer_init(&canonical[1]);
    assert_int_equal(esk_schema_canonical(type, esk_slice_text(one), &canonical[0], &error),
                     ESK_OK);
    assert_int_equal(esk_schema_canonical(type, esk_slice_text(other), &canonical[1], &error),
                     ESK_OK);
    assert_int_equal(
        esk_slice_equal(esk_buffer_slice(&canonical[0]), esk_buffer_slice(&canonical[1])), same);
    esk_buffer_fini(&canonical[0]);
    esk_buffer_fini(&canonical[1]);
}

#endif
