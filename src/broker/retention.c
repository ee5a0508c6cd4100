/* SPDX-License-Identifier: Apache-2.0 */
/* Each shard's background cleaning: a pass of retention or compaction, then its interval, then the
 * next. */
#include "broker/broker_private.h"

static void arm(struct esk_broker_shard *shard, struct esk_timer *timer, uint64_t interval_ms) {
    esk_timer_start(shard->loop, timer,
                    esk_loop_now_ns(shard->loop) + interval_ms * UINT64_C(1000000));
}

static void arm_retention(struct esk_broker_shard *shard) {
    arm(shard, &shard->retention_timer, shard->broker->options.retention_interval_ms);
}

static void arm_compaction(struct esk_broker_shard *shard) {
    arm(shard, &shard->compaction_timer, shard->broker->options.compaction_interval_ms);
}

static void retained(struct esk_retention_pass *pass) {
    struct esk_broker_shard *shard = ESK_CONTAINER(pass, struct esk_broker_shard, retention_pass);
    eski_end(shard);
    if (!shard->stopping) {
        arm_retention(shard);
    }
}

static void retention_due(struct esk_timer *timer) {
    struct esk_broker_shard *shard = ESK_CONTAINER(timer, struct esk_broker_shard, retention_timer);
    shard->retention_pass.done = retained;
    eski_begin(shard);
    esk_shard_run_retention(shard->log, &shard->retention_pass);
}

static void compacted(struct esk_compaction_pass *pass) {
    struct esk_broker_shard *shard = ESK_CONTAINER(pass, struct esk_broker_shard, compaction_pass);
    eski_end(shard);
    if (!shard->stopping) {
        arm_compaction(shard);
    }
}

static void compaction_due(struct esk_timer *timer) {
    struct esk_broker_shard *shard =
        ESK_CONTAINER(timer, struct esk_broker_shard, compaction_timer);
    shard->compaction_pass.done = compacted;
    eski_begin(shard);
    esk_shard_run_compaction(shard->log, &shard->compaction_pass);
}

void eski_cleaning_start(struct esk_broker_shard *shard) {
    shard->retention_timer.run = retention_due;
    shard->compaction_timer.run = compaction_due;
    arm_retention(shard);
    arm_compaction(shard);
}

void eski_cleaning_stop(struct esk_broker_shard *shard) {
    esk_timer_stop(shard->loop, &shard->retention_timer);
    esk_timer_stop(shard->loop, &shard->compaction_timer);
}
