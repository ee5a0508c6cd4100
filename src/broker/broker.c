/* SPDX-License-Identifier: Apache-2.0 */
/* The broker as a struct: its options, the shards' views, request memory, shared error texts. */
#include "broker/broker_private.h"

#include "model/limits.h"

void esk_broker_options_init(struct esk_broker_options *options) {
    *options = (struct esk_broker_options){
        .shard_count = 1,
        .helper_threads = 2,
        .flush_every_records = 1,
        .flush_interval_ms = 1000,
        .memory_bytes = UINT64_C(1) << 30,
        .record_bytes_max = 8u << 20,
        .fetch_records_max = 10000,
        .fetch_bytes_max = 8u << 20,
        .retention_interval_ms = 60000,
        .compaction_interval_ms = 300000,
        .producer_interval_ms = 600000,
        .producer_idle_ms = 7 * 86400000u,
        .member_timeout_ms = 10000,
        .journal_file_bytes = 64u << 20,
        .journal_held_bytes_max = 512u << 20,
        .journal_frame_bytes_max = 1u << 20,
        .journal_writes_max = 2,
        .reserve_step_bytes = ESK_RESERVE_STEP_BYTES,
        .reserve_bytes_max = ESK_RESERVE_BYTES_MAX,
        .offset_partitions = 16,
    };
}

struct esk_broker_shard *esk_broker_shard(struct esk_broker *broker, uint32_t shard) {
    return &broker->shards[shard];
}

struct esk_loop *esk_broker_shard_loop(const struct esk_broker_shard *shard) {
    return shard->loop;
}

const struct esk_broker_options *esk_broker_shard_options(const struct esk_broker_shard *shard) {
    return &shard->broker->options;
}

bool esk_broker_ready(const struct esk_broker *broker) {
    return atomic_load(&broker->serving) && !atomic_load(&broker->failed);
}

struct esk_partition_settings eski_partition_settings(const struct esk_topic_config *config) {
    return (struct esk_partition_settings){
        .segment_bytes = config->segment_bytes,
        .retention_ms = config->retention_ms,
        .retention_bytes = config->retention_bytes,
        .retention = (config->cleanup_policy & ESK_CLEANUP_DELETE) != 0,
        .compaction = (config->cleanup_policy & ESK_CLEANUP_COMPACT) != 0,
        .tombstone_retention_ms = config->tombstone_retention_ms,
    };
}

enum esk_err eski_unknown_topic(struct esk_slice name, struct esk_error *error) {
    return esk_fail(error, ESK_ERR_NOT_FOUND, "topic '%.*s' does not exist",
                    name.size > ESK_TOPIC_NAME_BYTES_MAX ? ESK_TOPIC_NAME_BYTES_MAX
                                                         : (int)name.size,
                    (const char *)name.data);
}

enum esk_err eski_unknown_partition(struct esk_slice topic, uint64_t partition,
                                    struct esk_error *error) {
    return esk_fail(error, ESK_ERR_NOT_FOUND, "topic '%.*s' has no partition %llu", (int)topic.size,
                    (const char *)topic.data, (unsigned long long)partition);
}

enum esk_err eski_explain(enum esk_err err, struct esk_error *error) {
    if (err == ESK_ERR_NO_SPACE) {
        return esk_fail(error, err, "the disk is full: nothing was written");
    }
    if (err == ESK_ERR_AGAIN) {
        return esk_fail(error, err, "the disk is full: this may be written when there is room");
    }
    if (err == ESK_ERR_UNAVAILABLE) {
        return esk_fail(error, err, "the broker is starting or shutting down");
    }
    if (err == ESK_ERR_NOT_FOUND) {
        return esk_fail(error, err, "the topic was deleted meanwhile");
    }
    return esk_fail(error, err, "%s", esk_err_meaning(err));
}
