/* SPDX-License-Identifier: Apache-2.0 */
/* One read of a segment file: between read.c, which decides where to read, read_file.c, which has
 * it done, and fetch.c, which reads and checks. */
#ifndef ESK_PARTITION_FETCH_PRIVATE_H
#define ESK_PARTITION_FETCH_PRIVATE_H

#include "partition/partition_private.h"

#define ESKI_FETCH_BYTES_MIN (64u << 10) /* one read of a file: at least a disk's read-ahead */
#define ESKI_FETCH_BYTES_MAX (1u << 20)  /* read and checked in about 0.3 ms when it is cached */

/* One read of a segment file. In the loop, or in a helper or the reader's loop while the loop
 * leaves it alone. */
struct eski_fetch {
    struct esk_mail mail;
    struct esk_read *read;
    struct esk_partition *partition;
    const struct esk_storage *storage;
    struct esk_shard *shard;
    uint64_t group_id;
    uint64_t base_offset;     /* of the segment, */
    uint64_t end_offset;      /* likewise */
    uint32_t revision;        /* above 0 offsets have gaps */
    struct esk_segment *file; /* a reference, or NULL: to be opened */
    bool opened;
    bool load_index; /* sealed: from its index file; open: built */
    bool sealed;
    bool indexed;
    struct esk_index index;
    uint64_t offset;
    uint64_t position;     /* where to begin to look */
    uint64_t bytes_end;    /* of what is written */
    uint64_t size;         /* asked */
    uint64_t record_bytes; /* an average record's in the segment */
    struct esk_block *block;
    uint64_t from; /* what was found in block: whole batches, checked */
    uint64_t to;
    uint64_t next_offset;
    uint64_t records;
    uint64_t content; /* as of eski_read_content */
    enum esk_err err;
    struct esk_error error;
};

/* Reads until at least one batch is found, or the end of a segment with gaps (to = from, and
 * next_offset is the next segment's). flags: ESK_READ_NOWAIT in the loop, then ESK_ERR_AGAIN:
 * a helper has to do it. ESK_ERR_CORRUPT: a batch is not what belongs there. */
enum esk_err eski_fetch_bytes(struct eski_fetch *fetch, unsigned flags);
/* Goes on behind what was found, which is forgotten; but for the size *fetch is as before a read
 * then. false: the segment has nothing there. */
bool eski_fetch_pass(struct eski_fetch *fetch);
/* In a helper: opens the file and loads the index where needed, then reads. */
enum esk_err eski_fetch_cold(struct eski_fetch *fetch);
void eski_fetch_destroy(struct eski_fetch *fetch);

/* --- read.c --- */

void eski_read_add(struct esk_read *read, struct esk_block *block, uint64_t position, uint64_t size,
                   uint64_t records, uint64_t content, uint64_t next_offset);
/* Key and value bytes of the records that are wanted of a batch: at least so many, if its records
 * are of one size. */
uint64_t eski_read_content(uint64_t size, uint64_t count, uint64_t wanted);
bool eski_read_satisfied(const struct esk_read *read);
void eski_read_finish(struct esk_read *read, enum esk_err err);
/* Goes on, as far as a turn allows; in the partition's loop. */
void eski_read_on(struct esk_read *read);
/* Up to how many bytes the loop may have copied in this turn; more for one that has begun. */
uint64_t eski_read_bytes_per_turn(const struct esk_read *read);
/* Goes on in a mail to this shard, behind other reads. */
void eski_read_later(struct esk_shard *shard, struct esk_read *read);

/* --- read_file.c --- */

/* From the segment that holds the offset. True: the read goes on now; false: it does when its bytes
 * are there, or is finished. */
bool eski_read_segment(struct esk_read *read);
/* The same, of one with a fetch; in its reader's loop. */
bool eski_read_copy(struct esk_read *read);

#endif
