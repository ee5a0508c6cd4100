/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of idempotent producers: what a partition remembers of each producer, and how a produce
 * is judged by it. Everything here belongs to the shard's loop.
 *
 * A partition keeps, per numeric producer id, where its last ESK_SEQUENCE_WINDOW sequences lie. A
 * produce takes its turn (one at a time per producer and partition), is judged over what is applied
 * and what is in flight, and then either is submitted with what is new, or waits for the originals
 * of what is not, or gives its turn back. A request over several partitions takes all turns in a
 * shard at once, and goes from shard to shard in ascending order before anything is submitted: so
 * no two wait for each other, and none overtakes another. */
#ifndef ESK_PARTITION_SEQUENCES_H
#define ESK_PARTITION_SEQUENCES_H

#include "partition/shard.h"

#define ESK_SEQUENCE_WINDOW 128

/* What a sequenced entry has behind its batch, see docs/format-journal.md: the batch's block needs
 * this much more capacity than its size. */
#define ESK_SEQUENCE_TRAILER_BYTES 17

/* One record of a produce. */
struct esk_sequence {
    int64_t sequence; /* 0 or more */
    uint32_t record;  /* the submitter's: which one it is */
    /* out, of esk_sequences_judge */
    bool duplicate;
    bool here;       /* it is, or its original is, in this produce's own batch */
    uint64_t offset; /* here: less the batch's base offset; else the original's */
};

enum esk_sequence_verdict {
    ESK_SEQUENCE_FITS,
    ESK_SEQUENCE_GAP,     /* item `failed` skips ahead of `expected` */
    ESK_SEQUENCE_TOO_LOW, /* item `failed` is older than the window, of which `expected` is next */
    ESK_SEQUENCE_FULL,    /* an unknown producer, and no memory for more */
};

/* The records of one produce for one partition. The submitter's; stays until the submit's done. */
struct esk_sequences {
    uint64_t producer_id;
    struct esk_sequence *items;
    uint32_t count;
    /* Its turn has come, when esk_sequences_take said that it has to wait; or ESK_ERR_NOT_FOUND:
     * the partition was deleted, it has no turn. In the loop. */
    void (*taken)(struct esk_sequences *sequences, enum esk_err err);
    /* out, of esk_sequences_judge */
    uint32_t
        new_count; /* items that are not duplicates, in order; sequences first, first + 1 ... */
    uint64_t first;
    uint32_t failed;
    uint64_t expected;
    /* internal */
    uint64_t awaited; /* duplicates below it are in flight */
    struct esk_partition *partition;
    struct eski_producer *producer;
    struct esk_link link;
    struct esk_mail mail;
    enum esk_err err;
};

/* Takes the turn. false: `taken` is called later. */
bool esk_sequences_take(struct esk_partition *partition, struct esk_sequences *sequences);
/* In its turn: whether the partition was deleted meanwhile. Then only the release is left. */
bool esk_sequences_are_void(const struct esk_sequences *sequences);
/* In its turn. Nothing changes yet. */
enum esk_sequence_verdict esk_sequences_judge(struct esk_sequences *sequences);
/* Ends the turn with nothing written. Else one of these does, in its turn, behind a judgement:
 * esk_partition_submit of an ESK_ENTRY_PRODUCER whose batch has the new_count new records, or, when
 * there are none, esk_sequences_await. */
void esk_sequences_release(struct esk_sequences *sequences);
/* submit->done comes once the originals of all duplicates are applied; errors as of a submit. */
void esk_sequences_await(struct esk_sequences *sequences, struct esk_submit *submit);

/* --- what a shard knows of producers --- */

struct esk_producer_view {
    uint64_t group_id;
    uint64_t last_sequence;
};
/* The producer's partitions in this shard; at most `most` from number `from` on. Returns how many.
 */
size_t esk_shard_producer_views(const struct esk_shard *shard, uint64_t producer_id, size_t from,
                                struct esk_producer_view *views, size_t most);
/* Forgets the producer in up to *budget partitions, which it counts down; false: there are more.
 * What is in flight goes with its end. */
bool esk_shard_forget_producer(struct esk_shard *shard, uint64_t producer_id, size_t *budget);
/* Forgets the producers for which `keeps` is false. Before the start: it takes as long as it does.
 */
void esk_shard_forget_unknown_producers(struct esk_shard *shard,
                                        bool (*keeps)(void *context, uint64_t producer_id),
                                        void *context);

#endif
