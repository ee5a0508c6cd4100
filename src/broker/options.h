/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker is started with. */
#ifndef ESK_BROKER_OPTIONS_H
#define ESK_BROKER_OPTIONS_H

#include "base/error.h"
#include "observe/log.h"
#include "platform/platform.h"

/* Sizes and bounds are run-time values, so that a simulated run can be small. Defaults by
 * esk_broker_options_init. */
struct esk_broker_options {
    struct esk_platform *platform;
    struct esk_loop **loops; /* one per shard; running or about to */
    uint32_t shard_count;
    const char *data_folder;
    unsigned helper_threads;
    const struct esk_log *log;

    uint32_t flush_every_records;
    uint32_t flush_interval_ms;
    uint64_t memory_bytes; /* the whole budget: requests, tails, caches */
    uint64_t record_bytes_max;
    uint32_t fetch_records_max;
    uint64_t fetch_bytes_max;
    uint64_t retention_interval_ms;
    uint64_t compaction_interval_ms;
    uint64_t key_map_bytes;        /* of compaction, over all shards; 0: a part of memory_bytes */
    uint64_t producer_interval_ms; /* between looks for producers that are not used */
    uint64_t producer_idle_ms;     /* and when these are forgotten: 7 days */
    uint64_t member_timeout_ms;    /* of a consumer group's member without a heartbeat */
    bool auth_required;            /* every request needs a key; else nobody is asked for one */

    uint64_t journal_file_bytes;     /* 64 MiB */
    uint64_t journal_held_bytes_max; /* 512 MiB over all shards */
    uint32_t journal_frame_bytes_max;
    unsigned journal_writes_max; /* 2 */
    uint64_t reserve_step_bytes;
    uint64_t reserve_bytes_max;
    uint64_t pool_bytes_max;    /* 0: the default */
    uint32_t offset_partitions; /* 16 */

    /* In some loop; once. The process must end with a non-zero status: the disk failed. */
    void (*failed)(void *context, const struct esk_error *error);
    void *context;
};
void esk_broker_options_init(struct esk_broker_options *options);

#endif
