/* SPDX-License-Identifier: Apache-2.0 */
#include "esk/latency.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct esk_latency latency;

static void clear(void) {
    memset(&latency, 0, sizeof(latency));
}

static void every_duration_is_kept_to_one_in_128(void **state) {
    (void)state;
    for (unsigned shift = 0; shift < 64; shift++) {
        for (int step = -1; step <= 1; step++) {
            uint64_t duration = (UINT64_C(1) << shift) + (uint64_t)(int64_t)step;
            clear();
            esk_latency_record(&latency, duration);
            esk_latency_record(&latency, UINT64_MAX); /* so that the longest does not cap it */
            uint64_t found = esk_latency_quantile(&latency, 0.5);
            assert_true(found >= duration);
            assert_true(found - duration <= duration / 128);
        }
    }
}

static void quantiles_are_those_of_the_sorted_durations(void **state) {
    (void)state;
    clear();
    assert_int_equal(esk_latency_quantile(&latency, 0.99), 0);
    for (uint64_t i = 1; i <= 100; i++) {
        esk_latency_record(&latency, i);
    }
    assert_int_equal(esk_latency_quantile(&latency, 0), 1);
    assert_int_equal(esk_latency_quantile(&latency, 0.5), 50);
    assert_int_equal(esk_latency_quantile(&latency, 0.99), 99);
    assert_int_equal(esk_latency_quantile(&latency, 1), 100);
    assert_int_equal(latency.sum_ns, 5050);
}

static void merging_is_recording_both(void **state) {
    (void)state;
    static struct esk_latency other;
    clear();
    memset(&other, 0, sizeof(other));
    esk_latency_record(&latency, 10);
    esk_latency_record(&other, 1000000);
    esk_latency_record(&other, 20);
    esk_latency_merge(&latency, &other);
    assert_int_equal(latency.count, 3);
    assert_int_equal(latency.max_ns, 1000000);
    assert_int_equal(esk_latency_quantile(&latency, 0.6), 20);
    assert_int_equal(esk_latency_quantile(&latency, 1), 1000000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_duration_is_kept_to_one_in_128),
        cmocka_unit_test(quantiles_are_those_of_the_sorted_durations),
        cmocka_unit_test(merging_is_recording_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
