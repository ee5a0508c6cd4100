/* SPDX-License-Identifier: Apache-2.0 */
/* A partition: one replicated log. Entries are submitted, made durable by the shard's journal,
 * committed by consensus and applied, in order; records become readable when they are applied.
 *
 * A partition of records applies to a memory tail and segments; a partition with a machine (the
 * catalogue, committed offsets) applies to a map in memory and snapshots. Submit, journal,
 * checkpoint and recovery are the same. Everything here belongs to the shard's loop. */
#ifndef ESK_PARTITION_PARTITION_H
#define ESK_PARTITION_PARTITION_H

#include "base/list.h"
#include "consensus/consensus.h"
#include "platform/executor.h"

struct esk_partition;
struct esk_sequences;

/* What a machine's partition applies to. */
struct esk_machine;
struct esk_machine_ops {
    /* A committed entry; payload borrowed. Must not fail: it was checked before the submit, and
     * entries of a newer version end the start (ESK_ERR_VERSION, recovery only). */
    enum esk_err (*apply)(struct esk_machine *machine, const struct esk_entry *entry,
                          struct esk_error *error);
    /* Emits the payloads that, applied in this order to an empty machine, make this state. */
    void (*snapshot)(struct esk_machine *machine,
                     void (*emit)(void *context, struct esk_slice payload), void *context);
};
struct esk_machine {
    const struct esk_machine_ops *ops;
    uint8_t entry_kind; /* of the entries in its snapshots */
};

struct esk_partition_settings {
    uint64_t segment_bytes;  /* used from the next roll on */
    int64_t retention_ms;    /* -1: unlimited */
    int64_t retention_bytes; /* -1: unlimited */
    bool retention;          /* whether the cleanup policy deletes */
    bool compaction;         /* whether it compacts */
    int64_t tombstone_retention_ms;
};

struct esk_partition_spec {
    uint64_t group_id; /* never reused */
    struct esk_partition_settings settings;
    struct esk_machine *machine; /* NULL: records. Borrowed while the partition lives. */
};

uint64_t esk_partition_group_id(const struct esk_partition *partition);
void esk_partition_configure(struct esk_partition *partition,
                             const struct esk_partition_settings *settings);

/* --- submit --- */

/* One entry. The struct is the submitter's and must stay until done. */
struct esk_submit {
    struct esk_link link;
    struct esk_partition *partition;
    uint8_t kind;
    bool strict;             /* durable before done, whatever the flush setting */
    bool frees_room;         /* a deletion: goes on when the disk is full */
    struct esk_block *block; /* payload; taken. A batch's base offset and epoch are patched here */
    uint32_t record_count;
    int64_t timestamp_ms;            /* newest record's */
    struct esk_sequences *sequences; /* of an ESK_ENTRY_PRODUCER, see sequences.h; else NULL */
    /* In the loop, once, never inside the submit call. ESK_ERR_UNAVAILABLE, ESK_ERR_NO_SPACE,
     * ESK_ERR_NOT_FOUND (deleted meanwhile). ESK_ERR_AGAIN: the disk became full within the write;
     * it may be written once there is room. */
    void (*done)(struct esk_submit *submit, enum esk_err err);
    /* May be NULL. Else it is called in place of done with ESK_ERR_AGAIN, and done comes later. */
    void (*late)(struct esk_submit *submit);
    uint64_t base_offset; /* out: of the batch's first record */
    struct esk_mail mail; /* internal, for errors */
    enum esk_err err;
};

/* Submits in order; waits in line while the journal, the ballast or the tails have no room. */
void esk_partition_submit(struct esk_partition *partition, struct esk_submit *submit);

/* --- read --- */

/* Bytes of one whole batch or several: position, size within the block. */
struct esk_read_part {
    struct esk_block *block; /* a reference that the reader releases */
    uint32_t position;
    uint32_t size;
};

#define ESK_READ_PARTS_MAX 16384 /* then the read ends early; the reader asks again */

/* What a record costs in a batch beyond its key and value, at most, headers aside: seven varints.
 * Bytes beyond this, and beyond the batches' heads, count towards bytes_max. */
#define ESK_READ_OVERHEAD_BYTES 36

struct esk_read {
    uint64_t offset;
    uint64_t bytes_max;   /* of keys and values: stops behind the batch that surely reaches it */
    uint32_t records_max; /* likewise */
    uint32_t wait_ms;     /* at the end of the log: done when there is a record, or then */
    /* Whose loop copies what it can from the page cache, when it is much, so that it is in the
     * cache of the processor that sends it; NULL: the partition's. */
    struct esk_shard *reader;
    /* Once, in the partition's loop, which may be at once, or in the reader's (`away`). */
    void (*done)(struct esk_read *read, enum esk_err err);
    struct esk_read_part *parts; /* out; may be taken over (free()) together with the references */
    uint32_t part_count;
    uint32_t part_capacity;
    uint64_t next_offset; /* behind the last batch given; the effective offset if none */
    uint64_t start_offset;
    uint64_t high_watermark;
    struct esk_error error;
    bool away; /* out: it is in the reader's loop, which is not the partition's */
    /* internal */
    struct esk_partition *partition;
    struct eski_fetch *fetch; /* while a loop copies from the page cache; else NULL */
    struct esk_link link;
    struct esk_timer timer;
    struct esk_mail mail;
    uint64_t bytes;
    uint64_t records;
    uint64_t content;
    bool waiting;
};

void esk_partition_read(struct esk_partition *partition, struct esk_read *read);
/* Ends the wait of a read that has not called done yet, or not in this loop. */
void esk_partition_read_cancel(struct esk_read *read);
void esk_read_release(struct esk_read *read); /* its parts and their array; any thread */

/* --- view --- */

struct esk_partition_figures {
    uint64_t start_offset;
    uint64_t high_watermark;
    uint64_t size_bytes;
    uint32_t segments;
    uint64_t records_in, bytes_in, records_out, bytes_out; /* since the start */
    enum esk_role role;
    uint64_t term, last_index, commit_index, applied_index;
};
void esk_partition_figures(const struct esk_partition *partition,
                           struct esk_partition_figures *figures);

#endif
