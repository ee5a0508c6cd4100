/* SPDX-License-Identifier: Apache-2.0 */
/* The heap against a linear search, with moves, removals and many equal deadlines. */
#include "base/deadlines.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT 200

struct timer {
    struct esk_deadline deadline; /* first: a timer is found from its deadline by a cast */
    uint64_t pushed;
};

static void fires_by_time_then_by_order_of_pushing(void **state) {
    (void)state;
    struct esk_deadlines heap;
    esk_deadlines_init(&heap);
    struct timer timers[COUNT] = {0};
    uint32_t random = 3;
    for (uint64_t step = 1; step < 20000; step++) {
        random = random * 1664525u + 1013904223u;
        struct timer *timer = &timers[(random >> 8) % COUNT];
        if (random >> 31) {
            esk_deadlines_push(&heap, &timer->deadline, (random >> 20) % 16);
            timer->pushed = step;
        } else if ((random >> 30) & 1) {
            esk_deadlines_remove(&heap, &timer->deadline);
            assert_false(esk_deadline_queued(&timer->deadline));
        } else {
            struct timer *first = NULL;
            for (size_t i = 0; i < COUNT; i++) {
                struct timer *t = &timers[i];
                if (esk_deadline_queued(&t->deadline) &&
                    (!first || t->deadline.due_ns < first->deadline.due_ns ||
                     (t->deadline.due_ns == first->deadline.due_ns && t->pushed < first->pushed))) {
                    first = t;
                }
            }
            assert_ptr_equal(esk_deadlines_pop(&heap, UINT64_MAX), first);
        }
    }
    esk_deadlines_fini(&heap);
}

static void pops_only_what_is_due(void **state) {
    (void)state;
    struct esk_deadlines heap;
    esk_deadlines_init(&heap);
    struct esk_deadline a = {0};
    struct esk_deadline b = {0};
    assert_null(esk_deadlines_min(&heap));
    esk_deadlines_push(&heap, &a, 20);
    esk_deadlines_push(&heap, &b, 10);
    assert_ptr_equal(esk_deadlines_min(&heap), &b);
    assert_null(esk_deadlines_pop(&heap, 9));
    assert_ptr_equal(esk_deadlines_pop(&heap, 10), &b);
    assert_null(esk_deadlines_pop(&heap, 19));
    assert_ptr_equal(esk_deadlines_pop(&heap, 25), &a);
    assert_null(esk_deadlines_pop(&heap, UINT64_MAX));
    esk_deadlines_fini(&heap);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fires_by_time_then_by_order_of_pushing),
        cmocka_unit_test(pops_only_what_is_due),
    };
    return cmocka_run_group_tests_name("base.deadlines", tests, NULL, NULL);
}
