/* SPDX-License-Identifier: Apache-2.0 */
/* The wheel on a clock of the test's own; the connections are bare structs. */
#include "server/connection/connection_private.h"

#include "runtime/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define COUNT 400

static uint64_t clock_ns;
static uint64_t timer_due_ns; /* 0: stopped */
static unsigned spent_every;  /* the turn is spent at each so manieth question; 0: never */
static unsigned questions;
static struct esk_server server;
static struct eski_shard shard;
static struct esk_connection connections[COUNT];
static uint64_t expired_ms[COUNT];

/* What the wheel calls. */
bool esk_loop_turn_spent(struct esk_loop *loop) {
    (void)loop;
    return spent_every && ++questions % spent_every == 0;
}
void eski_connection_expire(struct esk_connection *connection) {
    connection->due_tick = 0;
    expired_ms[connection - connections] = clock_ns / MS;
}
void eski_listener_resume_all(struct esk_server *of) {
    (void)of;
}
void eski_pools_trim(struct eski_shard *of) {
    (void)of;
}

static uint64_t now_ns(struct esk_loop *loop) {
    (void)loop;
    return clock_ns;
}
static void timer_start(struct esk_loop *loop, struct esk_timer *timer, uint64_t due_ns) {
    (void)loop;
    (void)timer;
    timer_due_ns = due_ns;
}
static void timer_stop(struct esk_loop *loop, struct esk_timer *timer) {
    (void)loop;
    (void)timer;
    timer_due_ns = 0;
}
static const struct esk_loop_ops loop_ops = {now_ns, timer_start, timer_stop};
static struct esk_loop loop = {.ops = &loop_ops};

static void begin(void) {
    memset(&shard, 0, sizeof shard);
    memset(connections, 0, sizeof connections);
    memset(expired_ms, 0, sizeof expired_ms);
    shard.loop = &loop;
    shard.server = &server;
    esk_list_init(&shard.connections);
    eski_deadlines_init(&shard);
    for (size_t i = 0; i < COUNT; i++) {
        connections[i].shard = &shard;
        esk_list_init(&connections[i].wheel_link);
        esk_list_init(&connections[i].link);
        esk_list_append(&shard.connections, &connections[i].link);
    }
    clock_ns = 123456789 * MS;
    eski_deadlines_start(&shard);
}

static void run_until(uint64_t ms) {
    while (timer_due_ns && timer_due_ns <= ms * MS) {
        clock_ns = timer_due_ns > clock_ns ? timer_due_ns : clock_ns;
        timer_due_ns = 0;
        shard.tick.run(&shard.tick);
    }
    clock_ns = ms * MS;
}

static void set(size_t i, uint32_t delay_ms) {
    connections[i].due_tick = eski_deadlines_tick(&shard, delay_ms);
    eski_deadlines_place(&connections[i]);
}

/* From a quarter of a second to ten minutes, which is many times round the wheel. */
static void deadlines_come_in_time(void **state) {
    (void)state;
    for (spent_every = 0; spent_every <= 7; spent_every += 7) {
        begin();
        uint64_t start_ms = clock_ns / MS;
        for (size_t i = 0; i < COUNT; i++) {
            set(i, (uint32_t)i * 1500);
        }
        run_until(start_ms + 700000);
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t due_ms = start_ms + i * 1500;
            assert_in_range(expired_ms[i], due_ms, due_ms + 2 * ESKI_TICK_MS);
        }
    }
}

static void deadlines_move_and_stop(void **state) {
    (void)state;
    spent_every = 0;
    begin();
    uint64_t start_ms = clock_ns / MS;
    set(0, 1000);
    set(1, 100000);
    set(2, 1000);
    connections[0].due_tick = eski_deadlines_tick(&shard, 5000); /* later: the wheel finds out */
    set(1, 2000);                                                /* earlier: it moves */
    connections[2].due_tick = 0;                                 /* off */
    connections[3].due_tick = eski_deadlines_tick(&shard, 9000);
    connections[3].stall_due_tick = eski_deadlines_tick(&shard, 3000); /* the earlier counts */
    eski_deadlines_place(&connections[3]);
    run_until(start_ms + 200000);
    assert_in_range(expired_ms[0], start_ms + 5000, start_ms + 5000 + 2 * ESKI_TICK_MS);
    assert_in_range(expired_ms[1], start_ms + 2000, start_ms + 2000 + 2 * ESKI_TICK_MS);
    assert_int_equal(expired_ms[2], 0);
    assert_in_range(expired_ms[3], start_ms + 3000, start_ms + 3000 + 2 * ESKI_TICK_MS);
}

static void the_timer_rests_without_connections(void **state) {
    (void)state;
    begin();
    shard.number = 1;
    for (size_t i = 0; i < COUNT; i++) {
        esk_list_remove(&connections[i].link);
    }
    run_until(clock_ns / MS + 1000);
    assert_int_equal(timer_due_ns, 0);
    assert_false(shard.is_ticking);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deadlines_come_in_time),
        cmocka_unit_test(deadlines_move_and_stop),
        cmocka_unit_test(the_timer_rests_without_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
