/* SPDX-License-Identifier: Apache-2.0 */
/* One shard's share of the log: its journal, its partitions, and the background work on them
 * (moving tails to segments, checkpoints, retention).
 *
 * Life: esk_shard_recover and the calls up to esk_shard_open run in one worker or thread and block,
 * before anything is served; esk_shard_start hands the shard to its loop, which owns it from then
 * on; esk_shard_stop ends it. */
#ifndef ESK_PARTITION_SHARD_H
#define ESK_PARTITION_SHARD_H

#include "journal/journal.h"
#include "partition/partition.h"
#include "storage/segment.h"

struct esk_shard;

struct esk_shard_options {
    struct esk_platform *platform;
    struct esk_loop *loop;
    struct esk_executor *helpers;       /* cold reads; shared by all shards */
    const struct esk_storage *storage;  /* shared by all shards */
    uint32_t node;                      /* this broker's id in configurations */
    struct esk_journal_options journal; /* loop, failed, room and context are filled in here */
    uint64_t tail_bytes_max;            /* of this shard: beyond it submits wait for the writer */
    uint64_t producer_bytes_max;        /* of windows of this shard's producers; 0: no bound */
    uint64_t move_bytes;                /* a tail of this size is moved to its segment */
    unsigned open_files_max;            /* segment files held open between uses */
    uint64_t key_map_bytes;             /* for compaction, while a pass has work */
    atomic_uint_fast64_t *active_ns;    /* when any shard persisted an entry; shared; may be NULL */
    const struct esk_log *log;
    void (*failed)(void *context, const struct esk_error *error); /* in the loop, once */
    void *context;
};

enum esk_err esk_shard_recover(const struct esk_shard_options *options, struct esk_shard **shard,
                               struct esk_error *error);
/* Groups that the journal knows: for noticing leftovers. */
bool esk_shard_knows(const struct esk_shard *shard, uint64_t group_id);
/* Makes the partition from what disk and journal have of it, or anew. carried: its state when the
 * layout changes, else NULL. ESK_ERR_CORRUPT names the file. */
enum esk_err esk_shard_recover_partition(struct esk_shard *shard,
                                         const struct esk_partition_spec *spec,
                                         const struct esk_group_state *carried,
                                         struct esk_partition **partition, struct esk_error *error);
/* Applies the journal's entries to the partitions made so far; only_group or UINT64_MAX. */
enum esk_err esk_shard_replay(struct esk_shard *shard, uint64_t only_group,
                              struct esk_error *error);
/* After the replay of all shards: ESK_ERR_CORRUPT when files have later entries than the journal,
 * which then lost its end. Up to here nothing on disk was changed, unless memory ran short. */
enum esk_err esk_shard_verify(const struct esk_shard *shard, struct esk_error *error);
/* For a change of layout: everything applied goes to segments and snapshots, synced; *states is
 * owned, free(). The shard can only be destroyed afterwards. */
enum esk_err esk_shard_settle(struct esk_shard *shard, struct esk_group_state **states,
                              size_t *count, struct esk_error *error);
/* Raises the terms and begins the journal's next generation; groups without a partition are
 * forgotten. */
enum esk_err esk_shard_open(struct esk_shard *shard, struct esk_error *error);
/* Before esk_shard_start, or after esk_shard_stop called back. */
void esk_shard_destroy(struct esk_shard *shard);

/* In the loop from here on. done: every group has its term's first entry durable and serves. */
void esk_shard_start(struct esk_shard *shard, void (*done)(void *context), void *context);
/* Before a stop: reads that wait at the end of a log end, and none waits from now on. */
void esk_shard_end_waits(struct esk_shard *shard);
/* No submits and reads come any more, and those that came were answered. Writes everything,
 * checkpoints (unless the disk is full: the journal has it all), closes the journal. Before
 * esk_shard_start: only closes. */
void esk_shard_stop(struct esk_shard *shard, void (*done)(void *context), void *context);

bool esk_shard_is_open(const struct esk_shard *shard);
bool esk_shard_has_space(const struct esk_shard *shard); /* false: the journal's disk is full */
struct esk_loop *esk_shard_loop(const struct esk_shard *shard);
struct esk_partition *esk_shard_find(const struct esk_shard *shard, uint64_t group_id);

/* Makes new partitions; done when all serve. specs are borrowed until then. */
struct esk_partition_creation {
    const struct esk_partition_spec *specs;
    size_t count;
    void (*done)(struct esk_partition_creation *creation);
    size_t waiting; /* internal */
};
void esk_shard_create_partitions(struct esk_shard *shard, struct esk_partition_creation *creation);

/* Drops partitions: waiting reads end, waiting submits fail with ESK_ERR_NOT_FOUND, the journal
 * forgets the groups, files go. done when the files are gone (or were reported as not removable; an
 * EIO ends the broker).
 */
struct esk_partition_removal {
    const uint64_t *group_ids;
    size_t count;
    void (*done)(struct esk_partition_removal *removal);
    struct esk_mail mail; /* internal, as the rest */
    struct esk_shard *shard;
    enum esk_err err;
    struct esk_error error;
};
void esk_shard_remove_partitions(struct esk_shard *shard, struct esk_partition_removal *removal);

/* One retention pass over this shard's partitions; done when the files of dropped segments are
 * gone. A pass begun before does not count: called during one, it waits for the next. */
struct esk_retention_pass {
    void (*done)(struct esk_retention_pass *pass);
    bool everything; /* what is due and not settled yet is settled first; false: by the next pass */
    uint64_t segments_deleted; /* out */
    uint64_t bytes_freed;      /* out */
    struct esk_link link;      /* internal */
};
void esk_shard_run_retention(struct esk_shard *shard, struct esk_retention_pass *pass);

/* One compaction pass over this shard's partitions, likewise; done when the files that went are
 * gone. */
struct esk_compaction_pass {
    void (*done)(struct esk_compaction_pass *pass);
    bool everything; /* all that can be done, sealed segments settled first; false: what is worth
                      * its while */
    uint64_t segments_compacted; /* out: sealed ones that were written anew, however often */
    uint64_t records_removed;    /* out */
    uint64_t bytes_freed;        /* out */
    struct esk_link link;        /* internal */
};
void esk_shard_run_compaction(struct esk_shard *shard, struct esk_compaction_pass *pass);

/* Counters of a shard for metrics; any thread. */
struct esk_shard_metrics {
    struct esk_journal_metrics journal;
    struct esk_counter tail_bytes;
    struct esk_counter producer_bytes;
    struct esk_counter checkpoints;
    struct esk_counter cleanup_passes;
    struct esk_counter cleanup_bytes;
    struct esk_counter cleanup_records;
    struct esk_counter key_map_bytes;
    struct esk_counter compaction_passes;
    struct esk_counter compaction_bytes;
    struct esk_counter compaction_records;
};
const struct esk_shard_metrics *esk_shard_metrics(const struct esk_shard *shard);

#endif
