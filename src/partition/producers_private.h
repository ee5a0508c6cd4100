/* SPDX-License-Identifier: Apache-2.0 */
/* Producer windows: where the last sequences of each producer lie in a partition. In the shard's
 * loop, or before the start in the thread that recovers. */
#ifndef ESK_PARTITION_PRODUCERS_PRIVATE_H
#define ESK_PARTITION_PRODUCERS_PRIVATE_H

#include "partition/partition_private.h"
#include "partition/sequences.h"

/* Sequences that follow each other at offsets that do; up to where the next stretch begins. */
struct eski_stretch {
    uint64_t sequence;
    uint64_t offset;
};

/* One producer in one partition. Applied state: what lies below applied_next. Above it is in
 * flight, submitted in that order and sure to be applied, unless the partition is deleted. */
struct eski_producer {
    struct esk_partition *partition;
    uint64_t id;
    struct esk_link link;           /* in the partition's list */
    struct esk_link sibling;        /* in the shard's list of this id's */
    struct esk_sequences *holder;   /* whose turn it is */
    struct esk_link line;           /* who waits for it */
    bool known;                     /* a sequence was accepted */
    bool applied;                   /* and applied */
    bool forgotten;                 /* goes when nothing holds it */
    uint64_t next;                  /* the sequence to come; at most 2^63 */
    uint64_t applied_next;          /* likewise, of what is applied */
    uint64_t applied_index;         /* of the last entry that was applied to it */
    struct eski_stretch *stretches; /* from head on, ascending */
    uint32_t head, count, capacity;
};

/* --- producers.c --- */

void eski_producers_init(struct esk_partition *partition);
void eski_producers_fini(struct esk_partition *partition);
/* Frees some of a removed partition's; false: the rest goes in later turns, and then it is let go.
 */
bool eski_producers_reap(struct esk_partition *partition);
struct eski_producer *eski_producer_find(const struct esk_partition *partition, uint64_t id);
struct eski_producer *eski_producer_obtain(struct esk_partition *partition, uint64_t id);
/* Frees it when it remembers nothing, or is forgotten, and nothing holds it. */
void eski_producer_release(struct eski_producer *producer);
/* count sequences from first on are at offset and behind it. */
void eski_producer_accept(struct eski_producer *producer, uint64_t first, uint64_t count,
                          uint64_t offset);
/* Where a sequence below `next` lies; false: it is not in the window. */
bool eski_producer_offset(const struct eski_producer *producer, uint64_t sequence,
                          uint64_t *offset);
/* A sequenced batch is applied: its window goes on. ESK_ERR_CORRUPT: it does not continue it. */
enum esk_err eski_producer_apply(struct esk_partition *partition, const struct eski_entry *entry,
                                 struct esk_error *error);
/* Whether no window is of a later entry than the last one applied. */
bool eski_producers_covered(const struct esk_partition *partition);

/* --- producers_format.c --- */

struct eski_trailer {
    uint64_t producer_id;
    uint64_t first; /* sequence; first + count - 1 is at most 2^63 - 1 */
};
void eski_trailer_write(struct esk_block *block, const struct eski_trailer *trailer);
/* payload: of an ESK_ENTRY_PRODUCER, whose batch has batch_bytes and record_count. */
enum esk_err eski_trailer_read(struct esk_slice payload, size_t batch_bytes, uint32_t record_count,
                               struct eski_trailer *trailer, struct esk_error *error);
void eski_window_encode(struct esk_buffer *buffer, const struct eski_producer *producer);
/* Loads a snapshot's payload into a partition without producers. */
enum esk_err eski_windows_decode(struct esk_partition *partition, struct esk_slice payload,
                                 struct esk_error *error);

/* --- sequences.c --- */

/* Behind an entry's index: what is new is in flight from here on; the turn ends. */
void eski_sequences_submitted(struct esk_sequences *sequences, uint64_t base_offset);
/* Answers those whose originals are applied now. */
void eski_awaits_wake(struct esk_partition *partition);
void eski_awaits_end(struct esk_partition *partition, enum esk_err err);
/* The partition is gone: nobody waits any more. */
void eski_sequences_end(struct esk_partition *partition);

#endif
