/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines of a shard's connections: a wheel of lists, one timer for all of them. A connection is
 * in the list of its earliest deadline, or, when that is beyond the wheel, in the last one, and is
 * looked at again from there. */
#include "server/connection/connection_private.h"

#include "runtime/loop.h"

#define BYTES_PER_MS_MIN 16  /* 16 KiB/s: slower clients are dropped in the end */
#define HOLDERS_TIME_SHARE 3 /* 10 of the 30 s that a body has to begin with */

#define TICK_NS ((uint64_t)ESKI_TICK_MS * 1000000)
#define TRIM_TICKS 8 /* pools are looked at every 2 s */

static uint64_t current_tick(struct eski_shard *shard) {
    return esk_loop_now_ns(shard->loop) / TICK_NS;
}

static struct esk_link *slot(struct eski_shard *shard, uint64_t tick) {
    return &shard->wheel[tick % ESKI_WHEEL_SLOTS];
}

static uint64_t earliest(const struct esk_connection *connection) {
    uint64_t due = connection->due_tick;
    uint64_t stall = connection->stall_due_tick;
    return due == 0 || (stall && stall < due) ? stall : due;
}

static void start_timer(struct eski_shard *shard, uint64_t due_ns) {
    esk_timer_start(shard->loop, &shard->tick, due_ns);
}

static bool out_of_time(struct eski_shard *shard) {
    if (!esk_loop_turn_spent(shard->loop)) {
        return false;
    }
    start_timer(shard, esk_loop_now_ns(shard->loop)); /* goes on in the next turn */
    return true;
}

static void on_tick(struct esk_timer *timer) {
    struct eski_shard *shard = ESK_CONTAINER(timer, struct eski_shard, tick);
    uint64_t now = current_tick(shard);
    while (shard->tick_number < now) {
        uint64_t tick = shard->tick_number + 1;
        struct esk_link *link;
        while ((link = esk_list_first(slot(shard, tick)))) {
            struct esk_connection *connection =
                ESK_CONTAINER(link, struct esk_connection, wheel_link);
            esk_list_remove(link);
            uint64_t due = earliest(connection);
            if (due == 0 || due > now) {
                eski_deadlines_place(connection);
            } else {
                eski_connection_expire(connection);
            }
            if (out_of_time(shard)) {
                return;
            }
        }
        shard->tick_number = tick;
    }
    bool goes_on = !esk_list_empty(&shard->connections);
    if (now >= shard->trim_due_tick || !goes_on) {
        eski_pools_trim(shard);
        shard->trim_due_tick = now + TRIM_TICKS;
    }
    /* Descriptors may have become free elsewhere in the process. */
    if (shard->number == 0) {
        eski_listener_resume_all(shard->server);
        goes_on |= atomic_load(&shard->server->is_paused);
    }
    shard->is_ticking = goes_on;
    if (goes_on) {
        start_timer(shard, (now + 1) * TICK_NS);
    }
}

void eski_deadlines_init(struct eski_shard *shard) {
    for (size_t i = 0; i < ESKI_WHEEL_SLOTS; i++) {
        esk_list_init(&shard->wheel[i]);
    }
    shard->tick.run = on_tick;
}

void eski_deadlines_start(struct eski_shard *shard) {
    if (!shard->is_ticking) {
        shard->is_ticking = true;
        shard->tick_number = current_tick(shard);
        start_timer(shard, (shard->tick_number + 1) * TICK_NS);
    }
}

uint64_t eski_deadlines_tick(struct eski_shard *shard, uint32_t delay_ms) {
    return current_tick(shard) + delay_ms / ESKI_TICK_MS + 1;
}

uint32_t esk_connection_receive_ms(uint64_t passed_ns, uint32_t base_ms, bool holds_memory,
                                   uint64_t received_bytes) {
    uint64_t allowed_ms =
        base_ms / (holds_memory ? HOLDERS_TIME_SHARE : 1) + received_bytes / BYTES_PER_MS_MIN;
    uint64_t passed_ms = passed_ns / 1000000;
    return passed_ms < allowed_ms ? (uint32_t)(allowed_ms - passed_ms) : 1;
}

void eski_deadlines_place(struct esk_connection *connection) {
    struct eski_shard *shard = connection->shard;
    uint64_t due = earliest(connection);
    if (due == 0) {
        return;
    }
    uint64_t last = shard->tick_number + ESKI_WHEEL_SLOTS - 1;
    if (due <= shard->tick_number) {
        due = shard->tick_number + 1;
    }
    struct esk_link *place = slot(shard, due < last ? due : last);
    esk_list_remove(&connection->wheel_link);
    esk_list_append(place, &connection->wheel_link);
}

void eski_deadlines_remove(struct esk_connection *connection) {
    esk_list_remove(&connection->wheel_link);
}
