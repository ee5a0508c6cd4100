/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. Everything belongs to the shard's loop, or before the start
 * to the thread that recovers. */
#ifndef ESK_PARTITION_PARTITION_PRIVATE_H
#define ESK_PARTITION_PARTITION_PRIVATE_H

#include "base/deadlines.h"
#include "base/map.h"
#include "partition/shard.h"
#include "storage/tail.h"

/* One segment, from the roll that began it. `bytes` is what was applied, `written` what its file
 * holds of that. */
struct eski_segment {
    uint64_t base_offset;
    uint64_t end_offset; /* sealed: of the next segment; open: of the log */
    uint64_t roll_index; /* of the entry that began it; 0: before the checkpoint */
    uint64_t bytes;
    uint64_t written;
    uint64_t synced;  /* of written: on the device */
    uint64_t indexed; /* of bytes: known to index */
    uint64_t limit_bytes;
    int64_t timestamp_ms;         /* newest applied record's; -1: none */
    int64_t written_timestamp_ms; /* newest written record's */
    bool sealed;
    bool stored;      /* sealed, and its file, index and names are durable */
    bool on_disk;     /* its file exists */
    bool index_ready; /* index has every batch up to `indexed` */
    struct esk_index index;
    struct esk_segment *file; /* open, or NULL */
    struct esk_link recent;   /* in the shard's list of open files */
};

/* Where an applied entry and what it brought lie; built from a submit or from the journal. */
struct eski_entry {
    struct esk_entry entry;
    struct esk_block *block; /* batches: taken by apply */
    uint64_t journal_position;
    uint64_t base_offset;
    uint32_t record_count;
    int64_t timestamp_ms;
};

/* An entry between submit and durable. */
struct eski_pending {
    struct esk_journal_append append;
    struct esk_link link; /* in the partition's pending, by index */
    struct esk_partition *partition;
    struct esk_submit *submit; /* to be answered when applied; NULL: nobody waits */
    struct eski_entry entry;
    bool applied;
    bool durable;
};

struct esk_partition {
    struct esk_shard *shard;
    uint64_t group_id;
    struct esk_partition_settings settings;
    struct esk_machine *machine;
    struct esk_group *group;

    /* submitted: what the next entry gets */
    uint64_t submit_offset;
    uint64_t submit_segment_bytes;
    uint64_t submit_segment_limit;
    struct esk_link pending;
    struct esk_link *unapplied; /* first of pending that is not applied; NULL: all are */

    /* applied */
    uint64_t applied_index, applied_term;
    uint64_t durable_index, durable_term;
    uint64_t next_offset;
    uint64_t log_start;
    struct eski_segment **segments; /* ascending; the last one is open */
    size_t segment_count, segment_capacity;
    struct esk_tail tail;
    bool machine_changed; /* since its last snapshot */

    /* moved to segments */
    uint64_t moved_offset;
    bool names_dirty;
    bool moving;
    bool checkpointing;
    struct esk_checkpoint checkpoint; /* the newest durable one */
    struct esk_deadline oldest;       /* by the journal position of what is not checkpointed */
    struct esk_link full;             /* in the shard's list of tails to move */

    struct esk_link reads; /* waiting at the end */
    uint32_t busy;         /* pending entries, jobs and fetches that point here */
    bool serving;
    struct esk_partition_creation *creation;
    bool removed;
    bool headless;            /* recovery: files below the first segment were on their way out, */
    uint64_t headless_offset; /* of which this one is missing or has no index */
    bool uncut;               /* recovery: the checkpoint's open segment is not cut to it yet */
    bool voids;               /* recovery: there are files behind it; */
    uint64_t void_offset;     /* the last of them */
    struct esk_group_state recovered; /* term and vote as the journal had them */
    uint64_t records_in, bytes_in, records_out, bytes_out;
};

struct esk_shard {
    struct esk_shard_options options;
    struct esk_loop *loop;
    struct esk_platform *platform;
    struct esk_journal_recovery *recovery;
    struct esk_journal *journal;
    struct esk_executor *writer; /* moves, checkpoints, retention, removal: in order */
    struct esk_u64_map partitions;
    struct esk_shard_metrics metrics;

    struct esk_link waiting; /* submits without room */
    struct esk_timer stall_timer;
    bool stall_armed;
    size_t in_journal;                    /* entries on their way */
    uint64_t persisted, persisted_before; /* entries; as of the last look */
    uint64_t tail_bytes;                  /* admitted and not yet in segments */
    uint64_t reserved_bytes;              /* of them, what has a place in the ballast */
    bool failed;
    bool started;
    bool no_waits; /* reads at the end of a log do not wait any more */
    bool stopping;
    bool closing;                       /* the journal */
    bool growing;                       /* the ballast is being changed */
    bool shrinking;                     /* and this is how */
    bool ballast_begun;                 /* asked for at all */
    uint64_t admitted, admitted_before; /* submits; as of the last pass of retention */
    struct esk_mail grow_mail;
    uint64_t grow_bytes;
    enum esk_err grow_err;
    struct esk_error grow_error;
    struct esk_timer room_timer;

    struct esk_deadlines oldest;
    struct esk_link full;
    bool moving;
    size_t checkpoints_out; /* on their way into the journal */
    struct esk_timer mover_timer;
    uint64_t mover_next_ns; /* no checkpoint before */
    bool mover_stuck;       /* the disk is full: try again by timer only */

    struct esk_link recent; /* segments with an open file, the oldest first */
    unsigned open_files;

    struct esk_link passes;        /* retention: waiting */
    struct esk_link passes_active; /* and served by the pass that runs */
    struct eski_retention *retention;

    void (*done)(void *context); /* of start or stop */
    void *done_context;
    size_t starting; /* groups whose TERM entry is awaited */
    size_t removing; /* removals of files that the writer has not done yet */
    struct esk_mail mail;
};

/* --- partition.c -------------------------------------------------------------------------------
 */

struct esk_partition *eski_partition_create(struct esk_shard *shard,
                                            const struct esk_partition_spec *spec);
void eski_partition_destroy(struct esk_partition *partition);
void eski_partition_hold(struct esk_partition *partition);
void eski_partition_let_go(struct esk_partition *partition); /* frees a removed one with the last */
struct eski_segment *eski_segment_add(struct esk_partition *partition, uint64_t base_offset);
static inline struct eski_segment *eski_segment_open_one(const struct esk_partition *partition) {
    return partition->segments[partition->segment_count - 1];
}
uint64_t eski_partition_term(const struct esk_partition *partition); /* recovery: the stored one */
/* Bytes that were admitted are in a segment, or dropped: room for others. */
void eski_tail_bytes_release(struct esk_shard *shard, uint64_t bytes);
/* The segment that holds offset, or the open one. */
struct eski_segment *eski_segment_at(const struct esk_partition *partition, uint64_t offset);
/* Drops the first `count` segments from memory; their files are the caller's business. */
void eski_segments_drop(struct esk_partition *partition, size_t count);
void eski_segments_forget(struct esk_partition *partition); /* all; recovery */
/* Keeps the file for later reads and moves; takes the reference. */
void eski_segment_keep_file(struct esk_shard *shard, struct eski_segment *segment,
                            struct esk_segment *file);

/* --- apply.c -----------------------------------------------------------------------------------
 */

/* Applies a committed entry; live and in recovery alike. Takes entry->block. */
enum esk_err eski_apply(struct esk_partition *partition, struct eski_entry *entry,
                        struct esk_error *error);

/* --- submit.c ----------------------------------------------------------------------------------
 */

/* Appends an entry of our own without admission; block is taken; submit->done is told, if any. A
 * log start is strict: files go behind it. */
void eski_submit_internal(struct esk_partition *partition, uint8_t kind, struct esk_block *block,
                          struct esk_submit *submit);
struct esk_block *eski_offset_payload(uint64_t offset); /* of a roll or log start: u64 */
void eski_submit_fail(struct esk_submit *submit, enum esk_err err);
/* Takes an admitted submit. */
void eski_submit_now(struct esk_submit *submit);
void eski_stall_check(struct esk_timer *timer);
void eski_stall_arm(struct esk_shard *shard);
/* Begins the term: the group's first step of this life. */
void eski_partition_begin(struct esk_partition *partition);

/* --- admission.c -------------------------------------------------------------------------------
 */

void eski_waiting_kick(struct esk_shard *shard);
/* Fails what waits for removed partitions. */
void eski_waiting_drop_removed(struct esk_shard *shard);
/* Makes the ballast, behind the first answer. */
void eski_ballast_begin(struct esk_shard *shard);
/* Once a pass of retention: gives it back when nothing was admitted since the last one. */
void eski_ballast_shrink_if_idle(struct esk_shard *shard);

/* --- move.c ------------------------------------------------------------------------------------
 */

struct eski_move;
/* A job that moves up to bytes_max of the tail, or a machine's snapshot; sync: so that a checkpoint
 * may follow. NULL: there is nothing to do. */
struct eski_move *eski_move_create(struct esk_partition *partition, uint64_t bytes_max, bool sync);
enum esk_err eski_move_execute(struct eski_move *move); /* blocks: a worker */
/* Books what was written. *state is the checkpoint to store, when the job ended in one. */
enum esk_err eski_move_finish(struct eski_move *move, bool *checkpoint,
                              struct esk_group_state *state, struct esk_error *error);
void eski_move_destroy(struct eski_move *move);
struct esk_partition *eski_move_partition(const struct eski_move *move);
void eski_move_pace(struct eski_move *move, uint64_t pause_ns);
struct esk_mail *eski_move_mail(struct eski_move *move);
struct eski_move *eski_move_of_mail(struct esk_mail *mail);
/* Whether the partition has a state that its newest checkpoint does not cover. */
bool eski_partition_dirty(const struct esk_partition *partition);

/* --- mover.c -----------------------------------------------------------------------------------
 */

void eski_mover_init(struct esk_shard *shard);
void eski_mover_kick(struct esk_shard *shard);
/* Notes an entry at a journal position, for the order of checkpoints. */
void eski_mover_note(struct esk_partition *partition, uint64_t journal_position);
void eski_mover_note_tail(struct esk_partition *partition);
bool eski_mover_idle(const struct esk_shard *shard); /* nothing left to checkpoint */

/* --- recover.c ---------------------------------------------------------------------------------
 */

/* What replay left: makes the group, drops files below the log start, checks that none is missing.
 */
enum esk_err eski_partition_ready(struct esk_partition *partition, struct esk_error *error);

/* --- read.c, retention.c, shard.c --------------------------------------------------------------
 */

void eski_reads_wake(struct esk_partition *partition);
void eski_reads_end(struct esk_partition *partition, enum esk_err err);
void eski_log_start_applied(struct esk_partition *partition);
bool eski_retention_runs(const struct esk_shard *shard);
void eski_shard_fail(struct esk_shard *shard, const struct esk_error *error);
void eski_shard_step_stop(struct esk_shard *shard);

#endif
