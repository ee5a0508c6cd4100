/* SPDX-License-Identifier: Apache-2.0 */
/* Cleaning on demand: retention or compaction of everything, now. The background passes go on as
 * they are; what is asked for while one runs waits for one that begins afterwards. */
#ifndef ESK_BROKER_CLEANING_H
#define ESK_BROKER_CLEANING_H

#include <stdint.h>

struct esk_broker_shard;
struct esk_cleaning_job;

/* The struct is the caller's and must stay until done. */
struct esk_cleaning {
    void (*done)(struct esk_cleaning *cleaning); /* in the caller's loop, once */
    uint64_t segments;                           /* out: deleted, or compacted */
    uint64_t records_removed;                    /* out, by compaction */
    uint64_t bytes_freed;                        /* out: that logs are smaller by */
    struct esk_cleaning_job *jobs;               /* internal, as the rest */
    struct esk_broker_shard *home;
    uint32_t waiting;
};
void esk_broker_run_retention(struct esk_broker_shard *shard, struct esk_cleaning *cleaning);
void esk_broker_run_compaction(struct esk_broker_shard *shard, struct esk_cleaning *cleaning);

#endif
