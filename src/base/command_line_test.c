/* SPDX-License-Identifier: Apache-2.0 */
#include "base/command_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void numbers_have_the_units_of_their_kind(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum esk_quantity quantity;
        uint64_t number;
    } good[] = {
        {"0", ESK_QUANTITY_COUNT, 0},
        {"18446744073709551615", ESK_QUANTITY_COUNT, UINT64_MAX},
        {"007", ESK_QUANTITY_BYTES, 7},
        {"3kB", ESK_QUANTITY_BYTES, 3000},
        {"3 MiB", ESK_QUANTITY_BYTES, 3u << 20},
        {"17179869183GiB", ESK_QUANTITY_BYTES, UINT64_C(17179869183) << 30},
        {"250ms", ESK_QUANTITY_MS, 250},
        {"2d", ESK_QUANTITY_MS, 172800000},
    };
    static const struct {
        const char *text;
        enum esk_quantity quantity;
    } bad[] = {
        {"", ESK_QUANTITY_COUNT},       {"-1", ESK_QUANTITY_COUNT},
        {" 1", ESK_QUANTITY_COUNT},     {"1.5", ESK_QUANTITY_COUNT},
        {"1s", ESK_QUANTITY_COUNT},     {"18446744073709551616", ESK_QUANTITY_COUNT},
        {"kB", ESK_QUANTITY_BYTES},     {"1kb", ESK_QUANTITY_BYTES},
        {"1s", ESK_QUANTITY_BYTES},     {"17179869184GiB", ESK_QUANTITY_BYTES},
        {"1 kB x", ESK_QUANTITY_BYTES}, {"5", ESK_QUANTITY_MS},
        {"1kB", ESK_QUANTITY_MS},       {"213503982335d", ESK_QUANTITY_MS},
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        uint64_t number = 99;
        assert_true(esk_quantity_read(good[i].text, good[i].quantity, &number));
        assert_true(number == good[i].number);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint64_t number;
        if (esk_quantity_read(bad[i].text, bad[i].quantity, &number)) {
            fail_msg("%s", bad[i].text);
        }
    }
}

static void words_differ_by_the_letters_to_change(void **state) {
    (void)state;
    static const struct {
        const char *word;
        const char *known;
        unsigned unlike;
    } cases[] = {
        {"shards", "shards", 0}, {"shard", "shards", 1},     {"shrads", "shards", 2},
        {"sharts", "shards", 1}, {"sh", "shards", 1},        {"s", "shards", 5},
        {"xyz", "shards", 6},    {"", "shards", UINT32_MAX},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(esk_unlike(esk_slice_text(cases[i].word), cases[i].known),
                         cases[i].unlike);
    }
    assert_int_equal(esk_unlike(esk_slice_text("a word that has one and forty letters, yes"), "a"),
                     UINT32_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_the_units_of_their_kind),
        cmocka_unit_test(words_differ_by_the_letters_to_change),
    };
    return cmocka_run_group_tests_name("base.command_line", tests, NULL, NULL);
}
