/* SPDX-License-Identifier: Apache-2.0 */
/* The shared parts of platform/file.c over a file in memory that writes as little as it may. */
#include "platform/file.h"

#include "base/memory.h"
#include "platform/platform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct memory_file {
    struct esk_file file;
    uint8_t bytes[64];
    size_t size;
    size_t step;        /* longest write done at once */
    size_t fail_behind; /* writes from this position on fail */
};

static enum esk_err memory_read(struct esk_file *file, void *buffer, size_t size, uint64_t position,
                                unsigned flags, size_t *got, struct esk_error *error) {
    (void)flags;
    (void)error;
    struct memory_file *memory = (struct memory_file *)file;
    size_t left = position < memory->size ? memory->size - (size_t)position : 0;
    *got = size < left ? size : left;
    memcpy(buffer, memory->bytes + position, *got);
    return ESK_OK;
}

static enum esk_err memory_write(struct esk_file *file, const struct esk_slice *slices,
                                 size_t count, uint64_t position, size_t *written,
                                 struct esk_error *error) {
    struct memory_file *memory = (struct memory_file *)file;
    if (position >= memory->fail_behind) {
        return esk_fail(error, ESK_ERR_NO_SPACE, "full");
    }
    *written = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < slices[i].size && *written < memory->step; k++, ++*written) {
            memory->bytes[position + *written] = slices[i].data[k];
        }
    }
    memory->size = (size_t)position + *written;
    return ESK_OK;
}

static const struct esk_file_ops memory_ops = {.read = memory_read, .write = memory_write};

static void writes_go_on_after_short_ones(void **state) {
    (void)state;
    const struct esk_slice slices[] = {esk_slice_text("ab"), esk_slice_text(""),
                                       esk_slice_text("cdefg"), esk_slice_text("h")};
    for (size_t step = 1; step <= 9; step++) {
        struct memory_file memory = {.file = {&memory_ops}, .step = step, .fail_behind = 64};
        assert_int_equal(esk_file_write(&memory.file, slices, 4, 3, NULL), ESK_OK);
        assert_int_equal(memory.size, 11);
        assert_memory_equal(memory.bytes + 3, "abcdefgh", 8);
    }
}

static void a_write_reports_the_error_after_a_short_one(void **state) {
    (void)state;
    const struct esk_slice slices[] = {esk_slice_text("abcdef")};
    struct memory_file memory = {.file = {&memory_ops}, .step = 2, .fail_behind = 4};
    struct esk_error error = {0};
    assert_int_equal(esk_file_write(&memory.file, slices, 1, 0, &error), ESK_ERR_NO_SPACE);
    assert_int_equal(memory.size, 4);
    assert_string_equal(error.text, "full");
}

static void an_exact_read_of_a_short_file_is_corrupt(void **state) {
    (void)state;
    struct memory_file memory = {.file = {&memory_ops}, .bytes = "12345", .size = 5};
    uint8_t got[8];
    struct esk_error error = {0};
    assert_int_equal(esk_file_read_exactly(&memory.file, got, 4, 1, &error), ESK_OK);
    assert_memory_equal(got, "2345", 4);
    assert_int_equal(esk_file_read_exactly(&memory.file, got, 4, 2, &error), ESK_ERR_CORRUPT);
    assert_non_null(strstr(error.text, "3 of 4 bytes at position 2"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_go_on_after_short_ones),
        cmocka_unit_test(a_write_reports_the_error_after_a_short_one),
        cmocka_unit_test(an_exact_read_of_a_short_file_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
