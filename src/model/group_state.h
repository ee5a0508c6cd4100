/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of one Raft group besides its entries: the hard state of Raft (term, vote,
 * configuration) and the checkpoint, up to which the applied state is durable in files of its own.
 * The journal stores it as one entry kind, always whole: the newest one counts. Plain data. */
#ifndef ESK_MODEL_GROUP_STATE_H
#define ESK_MODEL_GROUP_STATE_H

#include <stdint.h>

#define ESK_VOTERS_MAX 7 /* Raft needs 2f+1; nobody runs more than f=3 */

struct esk_configuration {
    uint32_t count;
    uint32_t nodes[ESK_VOTERS_MAX];
};

struct esk_checkpoint {
    uint64_t applied_index; /* entries up to it are in segments or in the snapshot, durably */
    uint64_t applied_term;
    uint64_t next_offset;         /* of the next record */
    uint64_t log_start_offset;    /* first record kept */
    uint64_t segment_offset;      /* base offset of the open segment */
    uint64_t segment_bytes;       /* its durable batch bytes: recovery cuts it to this */
    uint64_t segment_limit_bytes; /* the size at which it rolls, as it was opened with */
    int64_t segment_timestamp_ms; /* its newest record's, -1: none */
    uint64_t snapshot_index;      /* names the group's snapshot file; 0: none */
};

struct esk_group_state {
    uint64_t group_id;
    uint64_t term;
    uint32_t voted_for; /* node id, 0: nobody */
    struct esk_configuration configuration;
    struct esk_checkpoint checkpoint;
};

#endif
