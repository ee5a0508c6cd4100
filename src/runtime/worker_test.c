/* SPDX-License-Identifier: Apache-2.0 */
#include "base/list.h"
#include "base/memory.h"
#include "runtime/platform.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT = 2000 };

struct job {
    struct esk_mail mail;
    struct esk_executor *worker;
    atomic_uint *counter;
    unsigned order; /* when it ran, counted from 1 */
    bool current;
    unsigned again; /* posts itself so many times more */
};

static void work(struct esk_mail *mail) {
    struct job *job = ESK_CONTAINER(mail, struct job, mail);
    job->order = atomic_fetch_add(job->counter, 1) + 1;
    job->current = esk_executor_is_current(job->worker);
    if (job->again > 0) {
        job->again--;
        esk_post(job->worker, mail);
    }
}

static void post_jobs(unsigned threads, struct job *jobs, atomic_uint *counter) {
    struct esk_platform *platform = esk_runtime_platform_create();
    struct esk_executor *worker = esk_worker_create(platform, "worker", threads);
    assert_false(esk_executor_is_current(worker));
    for (unsigned i = 0; i < COUNT; i++) {
        jobs[i] = (struct job){.mail.run = work, .worker = worker, .counter = counter};
        jobs[i].again = i == COUNT - 1 ? 5 : 0;
        esk_post(worker, &jobs[i].mail);
    }
    esk_worker_destroy(platform, worker);
    esk_runtime_platform_destroy(platform);
}

static void one_thread_runs_mails_in_order_and_all_before_it_ends(void **state) {
    (void)state;
    struct job *jobs = esk_alloc_zeroed(COUNT, sizeof(*jobs));
    atomic_uint counter = 0;
    post_jobs(1, jobs, &counter);
    for (unsigned i = 0; i < COUNT - 1; i++) {
        assert_int_equal(jobs[i].order, i + 1);
        assert_true(jobs[i].current);
    }
    assert_int_equal(jobs[COUNT - 1].order, COUNT + 5);
    free(jobs);
}

static void several_threads_run_each_mail_once(void **state) {
    (void)state;
    struct job *jobs = esk_alloc_zeroed(COUNT, sizeof(*jobs));
    atomic_uint counter = 0;
    post_jobs(3, jobs, &counter);
    assert_int_equal(atomic_load(&counter), COUNT + 5);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(jobs[i].order > 0);
    }
    free(jobs);
}

static void clocks_run_and_random_bytes_differ(void **state) {
    (void)state;
    struct esk_platform *platform = esk_runtime_platform_create();
    uint64_t before = esk_monotonic_ns(platform);
    esk_pause(platform, 1000);
    assert_true(esk_monotonic_ns(platform) >= before + 1000);
    assert_true(esk_wall_ms(platform) > 1700000000000);
    uint8_t bytes[2][1000] = {0};
    esk_random_bytes(platform, bytes[0], sizeof(bytes[0]));
    esk_random_bytes(platform, bytes[1], sizeof(bytes[1]));
    assert_memory_not_equal(bytes[0], bytes[1], 16);
    assert_memory_not_equal(bytes[0] + 984, bytes[1] + 984, 16);
    esk_runtime_platform_destroy(platform);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_runs_mails_in_order_and_all_before_it_ends),
        cmocka_unit_test(several_threads_run_each_mail_once),
        cmocka_unit_test(clocks_run_and_random_bytes_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
