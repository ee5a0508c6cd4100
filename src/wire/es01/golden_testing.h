/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of this folder share: the bytes of tests/golden/es01-v1.txt. */
#ifndef ESK_WIRE_ES01_GOLDEN_TESTING_H
#define ESK_WIRE_ES01_GOLDEN_TESTING_H

#include "base/bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The bytes of that name, which stay until the next call. */
static inline struct esk_slice golden(const char *name) {
    static uint8_t bytes[256];
    char line[1024];
    size_t size = 0;
    size_t length = strlen(name);
    FILE *file = fopen("tests/golden/es01-v1.txt", "r");
    assert_non_null(file);
    while (size == 0 && fgets(line, sizeof line, file)) {
        unsigned byte;
        int used;
        const char *at = line + length;
        if (strncmp(line, name, length) != 0 || *at != ' ') {
            continue;
        }
        while (sscanf(at, " %2x%n", &byte, &used) == 1) {
            assert_true(size < sizeof bytes);
            bytes[size++] = (uint8_t)byte;
            at += used;
        }
    }
    fclose(file);
    assert_true(size > 0);
    return esk_slice(bytes, size);
}

#define assert_text(slice, text) assert_true(esk_slice_equal((slice), esk_slice_text(text)))
#define assert_golden(slice, name) assert_true(esk_slice_equal((slice), golden(name)))

#endif
