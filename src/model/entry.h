/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a partition group's log: what is agreed on, journalled and applied. The kinds are
 * bytes on disk and on the wire between nodes, so numbers are never used again. How an entry is
 * framed is the journal's; payload layouts belong to the code that applies the kind. */
#ifndef ESK_MODEL_ENTRY_H
#define ESK_MODEL_ENTRY_H

#include "base/bytes.h"

enum esk_entry_kind {
    ESK_ENTRY_TERM = 1,          /* empty: a leader's first entry of its term (Raft 5.4.2) */
    ESK_ENTRY_BATCH = 2,         /* one RecordBatch v2, base offset and leader epoch patched in */
    ESK_ENTRY_SEGMENT_ROLL = 3,  /* u64: base offset of the segment that begins here */
    ESK_ENTRY_LOG_START = 4,     /* u64: first offset kept from here on */
    ESK_ENTRY_CATALOGUE = 5,     /* group 0: one change of the catalogue */
    ESK_ENTRY_OFFSETS = 6,       /* an offset group: one change of commits or membership */
    ESK_ENTRY_CONFIGURATION = 7, /* reserved: a change of voters */
    ESK_ENTRY_SNAPSHOT = 8,      /* reserved: a snapshot file that replaces entries before it */
    ESK_ENTRY_PRODUCER = 9,      /* a batch, and behind it producer id and first sequence */
};

/* Whether the payload begins with a RecordBatch for the partition's log. */
static inline bool esk_entry_has_batch(uint8_t kind) {
    return kind == ESK_ENTRY_BATCH || kind == ESK_ENTRY_PRODUCER;
}

struct esk_entry {
    uint64_t index; /* in its group's log, from 1 without gaps */
    uint64_t term;  /* of the leader that made it, from 1 */
    uint8_t kind;   /* enum esk_entry_kind; an unknown one is refused with ESK_ERR_VERSION */
    struct esk_slice payload;
};

#endif
