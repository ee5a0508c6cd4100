/* SPDX-License-Identifier: Apache-2.0 */
/* The account of the reserve against its file: what is admitted always has room on the disk, on a
 * full disk and with loops and workers at once. */
#include "storage/fake_disk.inc"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define STEP 100
#define BOUND 1000
#define PATH "/data/reserve"

struct world {
    struct fake_disk disk;
    struct esk_reserve *reserve;
};

static int start(void **state) {
    struct world *world = esk_alloc_zeroed(1, sizeof(*world));
    fake_disk_init(&world->disk);
    world->reserve = esk_reserve_create(&world->disk.platform, PATH, STEP, BOUND);
    *state = world;
    return 0;
}

static int stop(void **state) {
    struct world *world = *state;
    esk_reserve_destroy(world->reserve);
    fake_disk_fini(&world->disk);
    free(world);
    return 0;
}

static uint64_t file_size(struct world *world) {
    struct fake_node *node = fake_find(&world->disk, PATH);
    return node ? node->size : 0;
}

static void a_step_is_admitted_before_there_is_a_file(void **state) {
    struct world *world = *state;
    assert_int_equal(esk_reserve_take(world->reserve, STEP), ESK_OK);
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_ERR_AGAIN);
    assert_int_equal(file_size(world), 0);
    assert_int_equal(esk_reserve_grow(world->reserve, 1, NULL), ESK_OK);
    assert_int_equal(file_size(world), 2 * STEP);
    assert_int_equal(esk_reserve_take(world->reserve, STEP), ESK_OK);
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_ERR_AGAIN);
    esk_reserve_give(world->reserve, 2 * STEP);
}

static void it_grows_to_the_bound_and_no_further(void **state) {
    struct world *world = *state;
    assert_int_equal(esk_reserve_grow(world->reserve, BOUND, NULL), ESK_OK);
    assert_int_equal(file_size(world), BOUND);
    assert_int_equal(esk_reserve_take(world->reserve, BOUND), ESK_OK);
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_ERR_AGAIN);
    assert_int_equal(esk_reserve_grow(world->reserve, 1, NULL), ESK_ERR_AGAIN);
    assert_int_equal(file_size(world), BOUND);
    esk_reserve_give(world->reserve, BOUND);
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_OK);
    esk_reserve_give(world->reserve, 1);
}

static void it_is_wanted_larger_before_anyone_waits(void **state) {
    struct world *world = *state;
    assert_int_equal(esk_reserve_take(world->reserve, STEP / 2), ESK_OK);
    assert_int_equal(esk_reserve_wanted(world->reserve), 0);
    uint64_t taken = STEP / 2;
    for (uint64_t size = STEP; size < BOUND; size = file_size(world)) {
        uint64_t more = size / 2 + 1 - taken;
        assert_int_equal(esk_reserve_take(world->reserve, more), ESK_OK);
        taken += more;
        assert_int_equal(esk_reserve_grow(world->reserve, esk_reserve_wanted(world->reserve), NULL),
                         ESK_OK);
        assert_true(file_size(world) > size);
    }
    assert_int_equal(file_size(world), BOUND);
    assert_int_equal(esk_reserve_take(world->reserve, BOUND - taken), ESK_OK);
    assert_int_equal(esk_reserve_wanted(world->reserve), 0);
    esk_reserve_give(world->reserve, BOUND);
}

/* Growing ahead asks for more than anyone needs yet. */
static void growing_ahead_gets_what_there_is(void **state) {
    struct world *world = *state;
    assert_int_equal(esk_reserve_grow(world->reserve, 4 * STEP, NULL), ESK_OK);
    world->disk.capacity = 6 * STEP;
    uint64_t taken = 2 * STEP + 1;
    assert_int_equal(esk_reserve_take(world->reserve, taken), ESK_OK);
    for (uint64_t size = 5 * STEP; size <= 6 * STEP; size += STEP) {
        uint64_t ahead = esk_reserve_wanted(world->reserve);
        assert_true(ahead > STEP);
        assert_int_equal(esk_reserve_grow(world->reserve, ahead, NULL), ESK_OK);
        assert_int_equal(file_size(world), size);
        assert_int_equal(esk_reserve_take(world->reserve, STEP), ESK_OK);
        taken += STEP;
    }
    assert_int_equal(esk_reserve_grow(world->reserve, esk_reserve_wanted(world->reserve), NULL),
                     ESK_ERR_NO_SPACE);
    assert_int_equal(esk_reserve_take(world->reserve, 6 * STEP - taken), ESK_OK);
    esk_reserve_give(world->reserve, 6 * STEP);
}

static void takes_while_it_grows_ahead_do_not_keep_it_small(void **state) {
    struct world *world = *state;
    assert_int_equal(esk_reserve_grow(world->reserve, 6 * STEP, NULL), ESK_OK);
    assert_int_equal(esk_reserve_take(world->reserve, 5 * STEP), ESK_OK);
    uint64_t ahead = esk_reserve_wanted(world->reserve);           /* just up to the bound, */
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_OK); /* and now beyond it */
    assert_int_equal(esk_reserve_grow(world->reserve, ahead, NULL), ESK_OK);
    assert_int_equal(file_size(world), BOUND);
    esk_reserve_give(world->reserve, 5 * STEP + 1);
}

static void a_full_disk_refuses_until_growing_works_again(void **state) {
    struct world *world = *state;
    assert_int_equal(esk_reserve_grow(world->reserve, 0, NULL), ESK_OK);
    world->disk.capacity = STEP + 50;
    struct esk_error error = {0};
    assert_int_equal(esk_reserve_take(world->reserve, STEP), ESK_OK);
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_ERR_AGAIN);
    assert_int_equal(esk_reserve_grow(world->reserve, 1, &error), ESK_ERR_NO_SPACE);
    assert_int_equal(esk_reserve_wanted(world->reserve), 0); /* not again with each record */
    assert_non_null(strstr(error.text, PATH));
    assert_int_equal(file_size(world), STEP); /* no half step stays */
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_ERR_NO_SPACE);
    esk_reserve_give(world->reserve, STEP);
    assert_int_equal(esk_reserve_take(world->reserve, STEP), ESK_OK); /* this has its room */
    world->disk.capacity = BOUND;
    assert_int_equal(esk_reserve_grow(world->reserve, 1, NULL), ESK_OK);
    assert_int_equal(esk_reserve_take(world->reserve, STEP), ESK_OK);
    esk_reserve_give(world->reserve, 2 * STEP);
}

static void nothing_is_admitted_without_a_file_once_growing_failed(void **state) {
    struct world *world = *state;
    world->disk.capacity = 10;
    assert_int_equal(esk_reserve_grow(world->reserve, 0, NULL), ESK_ERR_NO_SPACE);
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_ERR_NO_SPACE);
}

/* Such a failure ends the broker: nobody is told that the disk is full meanwhile. */
static void only_a_full_disk_is_called_full(void **state) {
    struct world *world = *state;
    fake_disk_fail(&world->disk, 1, FAKE_OTHER, ESK_ERR_IO);
    assert_int_equal(esk_reserve_grow(world->reserve, 0, NULL), ESK_ERR_IO);
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_ERR_AGAIN);
}

static void spending_frees_the_blocks_and_admits_nothing_more(void **state) {
    struct world *world = *state;
    assert_int_equal(esk_reserve_grow(world->reserve, 3 * STEP, NULL), ESK_OK);
    assert_int_equal(esk_reserve_take(world->reserve, 3 * STEP), ESK_OK);
    uint64_t used = world->disk.used;
    assert_int_equal(esk_reserve_spend(world->reserve, NULL), ESK_OK);
    assert_int_equal(world->disk.used, used - 3 * STEP);
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_ERR_NO_SPACE);
    esk_reserve_give(world->reserve, 2 * STEP);
    assert_int_equal(esk_reserve_take(world->reserve, 1), ESK_ERR_NO_SPACE);
    assert_int_equal(esk_reserve_grow(world->reserve, 0, NULL), ESK_OK);
    assert_int_equal(file_size(world), STEP); /* room for what is still admitted */
    esk_reserve_give(world->reserve, STEP);
    assert_int_equal(esk_reserve_take(world->reserve, STEP), ESK_OK);
    esk_reserve_give(world->reserve, STEP);
}

static void what_an_earlier_run_left_is_used_or_spent(void **state) {
    struct world *world = *state;
    assert_int_equal(esk_reserve_grow(world->reserve, 5 * STEP, NULL), ESK_OK);
    esk_reserve_destroy(world->reserve);
    world->reserve = esk_reserve_create(&world->disk.platform, PATH, STEP, BOUND);
    assert_int_equal(esk_reserve_spend(world->reserve, NULL), ESK_OK);
    assert_int_equal(file_size(world), 0);

    assert_int_equal(esk_reserve_grow(world->reserve, 5 * STEP, NULL), ESK_OK);
    world->disk.capacity = 5 * STEP;
    esk_reserve_destroy(world->reserve);
    world->reserve = esk_reserve_create(&world->disk.platform, PATH, STEP, BOUND);
    assert_int_equal(esk_reserve_grow(world->reserve, 2 * STEP, NULL), ESK_OK);
    assert_int_equal(file_size(world), 2 * STEP);
}

static void it_shrinks_to_what_is_admitted(void **state) {
    struct world *world = *state;
    assert_int_equal(esk_reserve_grow(world->reserve, BOUND, NULL), ESK_OK);
    assert_int_equal(esk_reserve_take(world->reserve, STEP + 1), ESK_OK);
    assert_int_equal(esk_reserve_shrink(world->reserve, NULL), ESK_OK);
    assert_int_equal(file_size(world), 2 * STEP);
    assert_int_equal(esk_reserve_take(world->reserve, STEP), ESK_ERR_AGAIN);
    esk_reserve_give(world->reserve, STEP + 1);
    assert_int_equal(esk_reserve_shrink(world->reserve, NULL), ESK_OK);
    assert_int_equal(file_size(world), STEP);
    assert_int_equal(esk_reserve_take(world->reserve, STEP), ESK_OK);
    esk_reserve_give(world->reserve, STEP);
}

static void zeros_are_written_where_nothing_can_be_allocated(void **state) {
    struct world *world = *state;
    world->disk.no_allocate = true;
    assert_int_equal(esk_reserve_grow(world->reserve, STEP + 1, NULL), ESK_OK);
    assert_int_equal(file_size(world), 2 * STEP);
    world->disk.capacity = 2 * STEP + 30;
    assert_int_equal(esk_reserve_grow(world->reserve, 3 * STEP, NULL), ESK_ERR_NO_SPACE);
    assert_int_equal(file_size(world), 2 * STEP);
}

/* For each call that may fail: the file never has fewer bytes than may be taken. */
static void whatever_call_fails_the_limit_stays_below_the_file(void **state) {
    struct world *world = *state;
    for (uint64_t n = 1;; n++) {
        assert_int_equal(esk_reserve_spend(world->reserve, NULL), ESK_OK);
        assert_int_equal(esk_reserve_grow(world->reserve, 0, NULL), ESK_OK);
        fake_disk_fail(&world->disk, n, FAKE_ANY, ESK_ERR_IO);
        enum esk_err err = esk_reserve_grow(world->reserve, 4 * STEP, NULL);
        err = err == ESK_OK ? esk_reserve_shrink(world->reserve, NULL) : err;
        err = err == ESK_OK ? esk_reserve_spend(world->reserve, NULL) : err;
        bool failed = world->disk.failed != 0;
        world->disk.fail_in = 0;
        assert_int_equal(err, failed ? ESK_ERR_IO : ESK_OK);
        uint64_t taken = 0;
        while (esk_reserve_take(world->reserve, 10) == ESK_OK) {
            taken += 10;
        }
        assert_true(taken <= file_size(world));
        esk_reserve_give(world->reserve, taken);
        if (!failed) {
            assert_true(n > 6);
            return;
        }
    }
}

#define TURNS 20000

static void *take_and_give(void *context) {
    struct world *world = context;
    uint32_t random = (uint32_t)(uintptr_t)&random;
    for (int i = 0; i < TURNS; i++) {
        random = random * 1664525 + 1013904223;
        uint64_t bytes = 1 + (random >> 16) % (4 * STEP);
        if (esk_reserve_take(world->reserve, bytes) == ESK_OK) {
            /* Until it is given back the file is at least that long, whatever workers do. */
            for (int look = 0; look < 4; look++) {
                sched_yield();
                pthread_mutex_lock(&world->disk.lock);
                uint64_t size = file_size(world);
                pthread_mutex_unlock(&world->disk.lock);
                if (size < bytes) {
                    return world;
                }
            }
            esk_reserve_give(world->reserve, bytes);
        }
    }
    return NULL;
}

static void *grow_and_shrink(void *context) {
    struct world *world = context;
    for (int i = 0; i < TURNS; i++) {
        enum esk_err err = esk_reserve_grow(world->reserve, (uint64_t)(i % 5) * STEP, NULL);
        if ((err != ESK_OK && err != ESK_ERR_AGAIN) ||
            esk_reserve_shrink(world->reserve, NULL) != ESK_OK) {
            return world;
        }
    }
    return NULL;
}

static void loops_and_workers_agree(void **state) {
    struct world *world = *state;
    assert_int_equal(esk_reserve_grow(world->reserve, 0, NULL), ESK_OK);
    pthread_t threads[5];
    for (size_t i = 0; i < 5; i++) {
        pthread_create(&threads[i], NULL, i < 3 ? take_and_give : grow_and_shrink, world);
    }
    for (size_t i = 0; i < 5; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    assert_int_equal(esk_reserve_shrink(world->reserve, NULL), ESK_OK);
    assert_int_equal(file_size(world), STEP);
    assert_int_equal(esk_reserve_take(world->reserve, STEP), ESK_OK); /* nothing is left admitted */
    esk_reserve_give(world->reserve, STEP);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_is_admitted_before_there_is_a_file, start, stop),
        cmocka_unit_test_setup_teardown(it_grows_to_the_bound_and_no_further, start, stop),
        cmocka_unit_test_setup_teardown(it_is_wanted_larger_before_anyone_waits, start, stop),
        cmocka_unit_test_setup_teardown(growing_ahead_gets_what_there_is, start, stop),
        cmocka_unit_test_setup_teardown(takes_while_it_grows_ahead_do_not_keep_it_small, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_full_disk_refuses_until_growing_works_again, start, stop),
        cmocka_unit_test_setup_teardown(nothing_is_admitted_without_a_file_once_growing_failed,
                                        start, stop),
        cmocka_unit_test_setup_teardown(only_a_full_disk_is_called_full, start, stop),
        cmocka_unit_test_setup_teardown(spending_frees_the_blocks_and_admits_nothing_more, start,
                                        stop),
        cmocka_unit_test_setup_teardown(what_an_earlier_run_left_is_used_or_spent, start, stop),
        cmocka_unit_test_setup_teardown(it_shrinks_to_what_is_admitted, start, stop),
        cmocka_unit_test_setup_teardown(zeros_are_written_where_nothing_can_be_allocated, start,
                                        stop),
        cmocka_unit_test_setup_teardown(whatever_call_fails_the_limit_stays_below_the_file, start,
                                        stop),
        cmocka_unit_test_setup_teardown(loops_and_workers_agree, start, stop),
    };
    return cmocka_run_group_tests_name("storage.reserve", tests, NULL, NULL);
}
