/* SPDX-License-Identifier: Apache-2.0 */
/* Produce: the operation that every door's produce is. As all operations (broker.h): the struct and
 * what it points to must stay until done ran, in the loop that started it, once, never from inside
 * the starting call.
 *
 * Order: requests of one loop for one topic reach their partitions in the order of the calls, but
 * for two kinds that are prepared asynchronously: large ones, and the first use of a producer id. A
 * door that serves several requests of a connection at once asks esk_broker_produce_waits after the
 * call: when it is true, it holds back later produces of that connection to the same topic until
 * this one's done.
 *
 * Records come as an array, whose entries tell at the end where they went; or, without one, they
 * are put one by one into the batches that will be written:
 *
 *   esk_produce_open, esk_produce_put ..., esk_produce_seal, esk_broker_produce, done,
 *   esk_produce_next_run ..., esk_produce_end (any time before esk_broker_produce, or after done)
 *
 * Between these calls it may change threads, but for what names its loop. */
#ifndef ESK_BROKER_PRODUCE_H
#define ESK_BROKER_PRODUCE_H

#include "base/bytes.h"
#include "base/error.h"

struct esk_broker_shard;
struct esk_caller;

#define ESK_PARTITION_ANY (-1)
#define ESK_SEQUENCE_NONE (-1)

struct esk_produce_header {
    struct esk_slice name;
    struct esk_slice value; /* data NULL: null */
};
struct esk_produce_record {
    struct esk_slice key;   /* data NULL: none */
    struct esk_slice value; /* data NULL: Kafka's null */
    const struct esk_produce_header *headers;
    uint32_t header_count;
    int32_t partition; /* or ESK_PARTITION_ANY: by key, else round-robin */
    int64_t sequence;  /* with a producer_id: 0 or more, required; else ESK_SEQUENCE_NONE */
    /* out */
    uint32_t written_partition;
    uint64_t written_offset; /* a duplicate's: that of the original */
    bool duplicate;
};
struct esk_produce {
    struct esk_slice topic;
    struct esk_slice producer_id; /* data NULL: none. 1 to 200 bytes, checked here */
    uint64_t owner;               /* of the caller's key, for producer_id; 0: the anonymous one */
    const struct esk_caller *caller;    /* whose quota it draws on; NULL: nobody's */
    struct esk_produce_record *records; /* or NULL: they were put */
    uint32_t record_count;              /* set by esk_produce_seal when they were put */
    void (*done)(struct esk_produce *produce, enum esk_err err);
    /* Or NULL. Runs where done does, before it, when a good part of the partitions' batches is back
     * and some are not: esk_produce_next_run tells where records went, from the first on each time.
     * Not with a producer_id. */
    void (*advanced)(struct esk_produce *produce);
    struct esk_error error; /* out; names the record and field where there is one */
    uint32_t retry_after_s; /* out, with ESK_ERR_THROTTLED */
    void *internal;
    struct eski_produce_job *job; /* internal */
};

/* --- record by record --- */

/* What a record takes besides its batch, until the end. */
#define ESK_PRODUCE_RECORD_BYTES 12

/* In the loop that will start it. topic is set; it may go afterwards. The guesses are sizes of
 * batches: of the first partition's, and of each further one's. ESK_ERR_NOT_FOUND. */
enum esk_err esk_produce_open(struct esk_broker_shard *shard, struct esk_produce *produce,
                              size_t first_bytes, size_t other_bytes);
/* Checks the record, routes it and copies it; out fields are not touched. producer_id was set
 * before the first. An error, whose text names the record by its number, ends the produce. Any
 * thread. */
enum esk_err esk_produce_put(struct esk_produce *produce, const struct esk_produce_record *record);
/* No record follows: finishes the batches. Any thread. */
enum esk_err esk_produce_seal(struct esk_produce *produce);
/* Frees what there is; harmless when there is nothing. In the loop. */
void esk_produce_end(struct esk_produce *produce);

/* Records of a request next to each other that went to offsets next to each other. */
struct esk_produce_run {
    uint32_t partition;
    uint32_t count;
    uint64_t offset; /* of the first; duplicates': of the originals */
    bool duplicate;
    enum esk_err err; /* of those that were not written: after done with an error, or in advanced */
    bool is_out;      /* in advanced: whether and where they were written is not known yet */
};
/* In advanced and after done: where the next records went, in the order in which they were put.
 * false: that was all, or nothing was written. Not of a request with a producer_id that failed. */
bool esk_produce_next_run(struct esk_produce *produce, struct esk_produce_run *run);
/* The text of a run's error; in_part: others of the records that it answers for were written. */
void esk_produce_explain(enum esk_err err, bool in_part, struct esk_error *error);

/* --- the operation --- */

/* Checks everything first; one failed check fails the whole request with nothing written. Builds
 * one batch per partition. With a producer_id each record is judged by its sequence, in order:
 * the next one is written, one of the last 128 is a duplicate; ESK_ERR_SEQUENCE_GAP or _TOO_LOW,
 * with texts that begin so. ESK_ERR_FORBIDDEN: the id is another owner's, or the owner has 10,000.
 */
void esk_broker_produce(struct esk_broker_shard *shard, struct esk_produce *produce);

/* Right after esk_broker_produce: whether it is still being prepared, so that a later one would
 * overtake it. */
static inline bool esk_broker_produce_waits(const struct esk_produce *produce) {
    return produce->internal != NULL;
}

#endif
