/* SPDX-License-Identifier: Apache-2.0 */
/* Each shard's background retention: a pass, then the interval, then the next. */
#include "broker/broker_private.h"

static void arm(struct esk_broker_shard *shard) {
    uint64_t interval_ns = shard->broker->options.retention_interval_ms * UINT64_C(1000000);
    esk_timer_start(shard->loop, &shard->retention_timer,
                    esk_loop_now_ns(shard->loop) + interval_ns);
}

static void pass_done(struct esk_retention_pass *pass) {
    struct esk_broker_shard *shard = ESK_CONTAINER(pass, struct esk_broker_shard, retention_pass);
    eski_end(shard);
    if (!shard->stopping) {
        arm(shard);
    }
}

static void timer_run(struct esk_timer *timer) {
    struct esk_broker_shard *shard = ESK_CONTAINER(timer, struct esk_broker_shard, retention_timer);
    shard->retention_pass.done = pass_done;
    eski_begin(shard);
    esk_shard_run_retention(shard->log, &shard->retention_pass);
}

void eski_retention_start(struct esk_broker_shard *shard) {
    shard->retention_timer.run = timer_run;
    arm(shard);
}
