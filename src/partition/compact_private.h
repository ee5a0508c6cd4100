/* SPDX-License-Identifier: Apache-2.0 */
/* A pass of compaction over a shard: between compact.c, which walks and decides in the loop, and
 * compact_job.c, which is the cleaner's part. One job at a time; while a job is out the loop
 * changes nothing here but the pace. */
#ifndef ESK_PARTITION_COMPACT_PRIVATE_H
#define ESK_PARTITION_COMPACT_PRIVATE_H

#include "partition/partition_private.h"
#include "storage/compaction.h"

enum eski_compact_step {
    ESKI_COMPACT_LOAD = 1, /* how far the partition is compacted */
    ESKI_COMPACT_MAP,
    ESKI_COMPACT_REWRITE,
    ESKI_COMPACT_FINISH,
};

/* A file that another one stands for now. */
struct eski_compact_file {
    uint64_t base_offset;
    uint32_t revision;
    bool with_index;
};

struct eski_compaction {
    struct esk_mail mail;
    struct esk_shard *shard;
    bool everything;     /* somebody asked for it; else what is worth its while */
    uint64_t *group_ids; /* as of its start */
    size_t count, next;
    struct esk_timer timer; /* looks at the pace, and ends a wait */
    struct esk_compaction_pace pace;
    struct esk_mail *removals; /* of partitions, which wait for the job */

    /* the partition */
    struct esk_partition *partition; /* held; NULL: between two */
    bool waiting;                    /* for its next checkpoint, */
    uint64_t patience_ns;            /* but not longer */
    struct esk_compaction_input *inputs;
    size_t input_count;
    size_t at, group_count; /* the inputs that are written anew now */
    uint64_t from, map_end;
    int64_t now_ms;
    int64_t tombstone_retention_ms;
    bool complete; /* all up to map_end were written */
    bool again;    /* retention dropped what was read */

    /* the job */
    bool working;
    enum eski_compact_step step;
    bool mapped; /* the two that follow are there */
    struct esk_key_map map;
    struct esk_compaction_filter filter;
    uint64_t map_bytes_max;
    uint64_t seed;
    uint64_t cleaned_offset; /* loaded, or to be stored */
    bool store_cleaned;
    struct esk_compaction_result result;
    struct eski_compact_file *files; /* to be removed before anything else */
    size_t file_count, file_capacity;
    enum esk_err err;
    struct esk_error error;
    enum esk_err remove_err;
    struct esk_error remove_error;

    uint64_t segments_compacted, records_removed, bytes_freed;
};

/* --- compact.c --- */

/* On to the next one; gives up the hold on this. */
void eski_compact_partition_done(struct eski_compaction *pass);
void eski_compact_post_removals(struct eski_compaction *pass);
/* Nothing more is begun. */
static inline bool eski_compact_ends(const struct esk_shard *shard) {
    return shard->failed || shard->stopping || shard->no_waits;
}

/* --- compact_round.c --- */

/* Begins the partition's next round, or is done with it. */
void eski_compact_plan(struct eski_compaction *pass);

/* --- compact_job.c --- */

/* Hands the step to the cleaner; eski_compact_done follows in the loop. */
void eski_compact_work(struct eski_compaction *pass, enum eski_compact_step step);
void eski_compact_done(struct eski_compaction *pass);
/* For the next job. */
void eski_compact_remove_later(struct eski_compaction *pass, struct eski_compact_file file);

#endif
