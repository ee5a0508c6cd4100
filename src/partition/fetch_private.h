/* SPDX-License-Identifier: Apache-2.0 */
/* One read of a segment file: between read.c, which decides what to read, and fetch.c, which reads
 * and checks. */
#ifndef ESK_PARTITION_FETCH_PRIVATE_H
#define ESK_PARTITION_FETCH_PRIVATE_H

#include "partition/partition_private.h"

#define ESKI_FETCH_BYTES_MIN (64u << 10)  /* one read of a file: at least a disk's read-ahead */
#define ESKI_FETCH_BYTES_MAX (256u << 10) /* read and checked in about 0.1 ms when it is cached */

/* One read of a segment file. In the loop, or in a helper while the loop leaves it alone. */
struct eski_fetch {
    struct esk_mail mail;
    struct esk_read *read;
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
    uint64_t position;  /* where to begin to look */
    uint64_t bytes_end; /* of what is written */
    uint64_t size;      /* asked */
    struct esk_block *block;
    uint64_t from; /* what was found in block: whole batches, checked */
    uint64_t to;
    uint64_t next_offset;
    uint64_t records;
    enum esk_err err;
    struct esk_error error;
};

/* Reads until at least one batch is found, or the end of a segment with gaps (to = from, and
 * next_offset is the next segment's). flags: ESK_READ_NOWAIT in the loop, then ESK_ERR_AGAIN:
 * a helper has to do it. ESK_ERR_CORRUPT: a batch is not what belongs there. */
enum esk_err eski_fetch_bytes(struct eski_fetch *fetch, unsigned flags);
/* In a helper: opens the file and loads the index where needed, then reads. */
enum esk_err eski_fetch_cold(struct eski_fetch *fetch);
void eski_fetch_destroy(struct eski_fetch *fetch);

#endif
