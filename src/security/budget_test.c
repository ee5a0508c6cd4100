/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets in virtual time, drawn on by several threads at once: what they let through is the rate,
 * whatever it is, and one second of it at the beginning. */
#include "security/budget.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SECOND_NS UINT64_C(1000000000)
#define THREADS 4
#define STEPS 200
#define STEP_NS (SECOND_NS / 20)

/* Threads draw until nothing is left, then time takes a step. */
struct crowd {
    struct esk_budget budget;
    uint64_t rate;
    uint64_t draw_max; /* bytes at once */
    bool in_debt;      /* charge behind the fact, as reads do */
    atomic_uint_fast64_t drawn;
    pthread_barrier_t barrier;
};
struct member {
    struct crowd *crowd;
    unsigned seed;
    pthread_t thread;
};

static void draw_all(struct crowd *crowd, unsigned *seed, uint64_t now_ns) {
    uint64_t wait_ns = 0;
    bool goes_on = true;
    while (goes_on) {
        uint64_t bytes = 1 + (uint64_t)rand_r(seed) % crowd->draw_max;
        if (crowd->in_debt) {
            goes_on = esk_budget_has(&crowd->budget, now_ns, &wait_ns);
            if (goes_on) {
                esk_budget_charge(&crowd->budget, crowd->rate, bytes, now_ns);
            }
        } else {
            goes_on = esk_budget_take(&crowd->budget, crowd->rate, bytes, now_ns, &wait_ns);
        }
        if (goes_on) {
            atomic_fetch_add(&crowd->drawn, bytes);
        }
    }
}

static void *member_run(void *context) {
    struct member *member = context;
    for (unsigned step = 0; step < STEPS; step++) {
        draw_all(member->crowd, &member->seed, 5 * SECOND_NS + step * STEP_NS);
        pthread_barrier_wait(&member->crowd->barrier);
    }
    return NULL;
}

static uint64_t draw_in_a_crowd(uint64_t rate, uint64_t draw_max, bool in_debt) {
    struct crowd crowd = {.rate = rate, .draw_max = draw_max, .in_debt = in_debt};
    struct member members[THREADS];
    pthread_barrier_init(&crowd.barrier, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        members[i] = (struct member){.crowd = &crowd, .seed = i + 1};
        assert_int_equal(pthread_create(&members[i].thread, NULL, member_run, &members[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(members[i].thread, NULL);
    }
    pthread_barrier_destroy(&crowd.barrier);
    return atomic_load(&crowd.drawn);
}

/* Over the run a full budget, and the rate for the time that passes; each thread may be short of,
 * or, in debt, ahead by, one draw. */
static void check_rate(uint64_t rate, uint64_t draw_max) {
    uint64_t due = rate + (uint64_t)((double)rate * (double)(STEPS - 1) * (double)STEP_NS / 1e9);
    uint64_t drawn = draw_in_a_crowd(rate, draw_max, false);
    assert_true(drawn <= due);
    assert_true(drawn >= due - due / 100 - draw_max);
    drawn = draw_in_a_crowd(rate, draw_max, true);
    assert_true(drawn <= due + due / 100 + THREADS * draw_max);
    assert_true(drawn >= due - due / 100);
}

static void a_megabyte_a_second_is_exact(void **state) {
    (void)state;
    check_rate(1000000, 4000);
}

static void a_gigabyte_a_second_is_exact(void **state) {
    (void)state;
    check_rate(UINT64_C(1000000000), 1000000);
}

/* Draws of one byte at a rate of four bytes a nanosecond: rounding must not eat the budget. */
static void small_draws_at_a_high_rate_are_exact(void **state) {
    (void)state;
    struct esk_budget budget = {0};
    uint64_t rate = 4 * SECOND_NS;
    uint64_t wait_ns;
    for (unsigned i = 0; i < 1000000; i++) {
        esk_budget_charge(&budget, rate, 1, 0);
    }
    assert_true(esk_budget_has(&budget, 0, &wait_ns));
    uint64_t left = rate - 1000000;
    assert_true(esk_budget_take(&budget, rate, left - 1000, 0, &wait_ns));
    assert_false(esk_budget_take(&budget, rate, 1001, 0, &wait_ns));
}

static void what_is_refused_is_there_after_the_wait(void **state) {
    (void)state;
    struct esk_budget budget = {0};
    uint64_t now_ns = 77;
    uint64_t wait_ns = 0;
    assert_true(esk_budget_take(&budget, 1000, 1000, now_ns, &wait_ns)); /* all of it at once */
    assert_false(esk_budget_take(&budget, 1000, 250, now_ns, &wait_ns));
    assert_int_equal(wait_ns, SECOND_NS / 4);
    assert_false(esk_budget_take(&budget, 1000, 250, now_ns + wait_ns - 1, &wait_ns));
    now_ns += SECOND_NS / 4;
    assert_true(esk_budget_take(&budget, 1000, 250, now_ns, &wait_ns));
    /* An idle budget fills up to one second's bytes, not beyond. */
    now_ns += 3600 * SECOND_NS;
    assert_false(esk_budget_take(&budget, 1000, 1001, now_ns, &wait_ns));
    assert_true(esk_budget_take(&budget, 1000, 1000, now_ns, &wait_ns));
}

static void what_is_returned_can_be_drawn_again(void **state) {
    (void)state;
    struct esk_budget budget = {0};
    uint64_t now_ns = 5 * SECOND_NS;
    uint64_t wait_ns = 0;
    assert_true(esk_budget_take(&budget, 1000, 1000, now_ns, &wait_ns));
    esk_budget_return(&budget, 1000, 300); /* of the thousand, a part was not written */
    assert_true(esk_budget_take(&budget, 1000, 300, now_ns, &wait_ns));
    assert_false(esk_budget_take(&budget, 1000, 1, now_ns, &wait_ns));
    /* What comes back late has refilled already: no more than a second's bytes are ever there. */
    esk_budget_return(&budget, 1000, 300);
    now_ns += 10 * SECOND_NS;
    assert_true(esk_budget_take(&budget, 1000, 1000, now_ns, &wait_ns));
    assert_false(esk_budget_take(&budget, 1000, 1, now_ns, &wait_ns));
}

static void debt_is_paid_before_the_next_read(void **state) {
    (void)state;
    struct esk_budget budget = {0};
    uint64_t wait_ns = 0;
    assert_true(esk_budget_has(&budget, 0, &wait_ns));
    esk_budget_charge(&budget, 1000, 3500, 0); /* 2500 more than there was */
    assert_false(esk_budget_has(&budget, 0, &wait_ns));
    assert_int_equal(wait_ns, 2 * SECOND_NS + SECOND_NS / 2 + 1);
    assert_false(esk_budget_has(&budget, wait_ns - 1, &wait_ns));
    assert_true(esk_budget_has(&budget, 2 * SECOND_NS + SECOND_NS / 2 + 1, &wait_ns));
    esk_budget_charge(&budget, 1, UINT64_MAX, 10 * SECOND_NS); /* however much: an hour */
    esk_budget_charge(&budget, 1, UINT64_MAX, 10 * SECOND_NS);
    assert_false(esk_budget_has(&budget, 3000 * SECOND_NS, &wait_ns));
    assert_true(esk_budget_has(&budget, 3700 * SECOND_NS, &wait_ns));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_megabyte_a_second_is_exact),
        cmocka_unit_test(a_gigabyte_a_second_is_exact),
        cmocka_unit_test(small_draws_at_a_high_rate_are_exact),
        cmocka_unit_test(what_is_refused_is_there_after_the_wait),
        cmocka_unit_test(what_is_returned_can_be_drawn_again),
        cmocka_unit_test(debt_is_paid_before_the_next_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
