/* SPDX-License-Identifier: Apache-2.0 */
/* The structs of this folder. Everything belongs to the shard's loop, or before the start to the
 * thread that recovers. */
#ifndef ESK_PARTITION_STATE_PRIVATE_H
#define ESK_PARTITION_STATE_PRIVATE_H

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
    bool stored;        /* sealed, and its file, index and names are durable */
    bool on_disk;       /* its file exists */
    bool index_ready;   /* index has every batch up to `indexed` */
    uint32_t revision;  /* how often compaction wrote it anew: then offsets have gaps */
    bool compacting;    /* right now: retention leaves its files alone */
    bool compacted;     /* in this pass or the last one over the partition: it is counted */
    int64_t horizon_ms; /* when the first of its tombstones may go, or ESK_HORIZON_NONE */
    struct esk_index index;
    struct esk_segment *file; /* open, or NULL */
    struct esk_link recent;   /* in the shard's list of open files */
};

/* Where an applied entry and what it brought lie; built from a submit or from the journal. */
struct eski_entry {
    struct esk_entry entry;
    struct esk_block *block;        /* batches: taken by apply */
    struct eski_producer *producer; /* of a sequenced one that was submitted here; else NULL */
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

    /* windows of producers, see producers_private.h */
    struct esk_u64_map producers;
    struct esk_link producer_list;
    struct esk_link *producer_cursor; /* of the snapshot that is being encoded; NULL: none */
    struct esk_link awaits;           /* retries of what is in flight */
    size_t in_line;                   /* produces that wait for their turn at a producer */
    struct esk_mail reap_mail;
    uint64_t producers_index; /* of the last sequenced entry applied */
    bool producers_changed;   /* since the last snapshot */

    /* compacted */
    uint64_t cleaned_offset; /* every key below it is there once, as far as this is known */
    bool cleaned_known;      /* it was loaded */

    /* moved to segments */
    uint64_t moved_offset;
    bool names_dirty;
    bool moving;
    bool checkpointing;
    struct esk_checkpoint checkpoint; /* the newest durable one */
    struct esk_deadline oldest;       /* by the journal position of what is not checkpointed */
    struct esk_link full;             /* in the shard's list of tails to move */
    struct esk_link settling;         /* in the shard's list of those that retention waits for */
    struct esk_link retention_wait;   /* in its list of those that the pass that runs waits for */

    struct esk_link reads; /* waiting at the end */
    uint32_t busy;         /* pending entries, jobs and fetches that point here */
    bool serving;
    struct esk_partition_creation *creation;
    bool removed;
    bool headless;            /* recovery: files below the first segment were on their way out, */
    uint64_t headless_offset; /* of which this one is missing or has no index */
    bool uncut;               /* recovery: the checkpoint's open segment is not cut to it yet */
    bool strays;              /* recovery: there are files that no index names */
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
    struct esk_u64_map producers; /* by id: the rings of their windows */
    uint64_t producer_bytes;
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
    uint64_t no_space_told_ns; /* no line about a full disk before */

    struct esk_deadlines oldest;
    struct esk_link full;
    struct esk_link settling;
    bool moving;
    size_t checkpoints_out; /* on their way into the journal */
    struct esk_timer mover_timer;
    uint64_t mover_next_ns; /* no checkpoint before */
    uint64_t active_ns;     /* when an entry was last persisted */
    bool trim_due;          /* tails went since memory was last given back */
    struct esk_mail trim_mail;
    bool mover_stuck; /* the disk is full: try again by timer only */

    struct esk_link reads; /* that go on in the next turn */
    struct esk_mail reads_mail;
    bool reads_posted;
    uint64_t read_bytes; /* from files by the loop, since reads_mail ran */
    size_t reads_away;   /* with other loops */

    struct esk_link recent; /* segments with an open file, the oldest first */
    unsigned open_files;

    struct esk_link passes;        /* retention: waiting */
    struct esk_link passes_active; /* and served by the pass that runs */
    struct eski_retention *retention;
    struct esk_link retention_waits;
    struct esk_executor *cleaner;       /* compaction; made by the first pass that has work */
    struct esk_link compactions;        /* passes of compaction: waiting */
    struct esk_link compactions_active; /* and served by the one that runs */
    struct eski_compaction *compaction;

    void (*done)(void *context); /* of start or stop */
    void *done_context;
    size_t starting; /* groups whose TERM entry is awaited */
    size_t removing; /* removals of files that the writer has not done yet */
    struct esk_mail mail;
};

#endif
