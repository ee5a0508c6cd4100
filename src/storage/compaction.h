/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction of sealed segments: the newest record of each key stays, older ones go, and tombstones
 * (null or empty values) go some time after the first pass over them. Records without a key stay,
 * all offsets stay.
 *
 * A round is: note in a key map where each key of a range is newest (esk_compaction_map), then
 * write the segments up to that range's end anew, in ascending order, each durable before the next
 * (esk_compaction_rewrite). What must hold, and why a kill at any point loses nothing:
 *  - A record goes only if its key has a newer one in the map, that is in a sealed segment below
 *    the checkpoint, where nothing is ever cut off.
 *  - A tombstone goes only if it lies below the end of the map and its time is over. The segments
 *    before its own have been written by then: no older record of its key can come back.
 *  - A file is written under a name of its own, synced, its name synced; then its index, which
 *    names it, replaces the old one in one rename. Whatever no index names is removed at the next
 *    start. One index may stand for several old ones behind it: what it covers, counts.
 *
 * All calls block and are for one worker. */
#ifndef ESK_STORAGE_COMPACTION_H
#define ESK_STORAGE_COMPACTION_H

#include "model/record_batch.h"
#include "storage/key_map.h"
#include "storage/segment.h"

/* --- one batch; no I/O --- */

struct esk_compaction_filter {
    const struct esk_key_map *map;
    uint64_t map_end; /* offsets below it are in the map, or lie in what was compacted before */
    int64_t now_ms;
    int64_t tombstone_retention_ms;
    struct esk_buffer inflated; /* scratch, as the rest */
    struct esk_buffer kept;
    struct esk_buffer records;
    struct esk_buffer batch;
};
void esk_compaction_filter_init(struct esk_compaction_filter *filter);
void esk_compaction_filter_fini(struct esk_compaction_filter *filter);

struct esk_compaction_outcome {
    bool changed;           /* else the batch stays as it is */
    struct esk_slice batch; /* what is to be written, size 0: nothing; valid until the next call */
    uint64_t removed;       /* records */
    int64_t timestamp_ms;   /* newest of what stays */
    int64_t horizon_ms;     /* when its tombstones may go, or ESK_HORIZON_NONE */
};
/* The batch is whole and its CRC right. What stays of a compressed batch is compressed the same
 * way. A batch's last offset becomes that of its last record. ESK_ERR_CORRUPT: it is not what it
 * claims; ESK_ERR_TOO_LARGE: it would be too large to be read. */
enum esk_err esk_compaction_filter_batch(struct esk_compaction_filter *filter,
                                         struct esk_slice batch,
                                         const struct esk_batch_header *header,
                                         struct esk_compaction_outcome *outcome,
                                         struct esk_error *error);

/* --- segments --- */

/* How a worker goes about it: the loop changes both at any time. */
struct esk_compaction_pace {
    atomic_bool stop;              /* soon: ESK_ERR_UNAVAILABLE */
    atomic_uint_fast64_t pause_ns; /* between two slices of ESK_SEGMENT_WRITE_BYTES */
};

/* A stored segment as it is. */
struct esk_compaction_input {
    uint64_t base_offset;
    uint64_t end_offset;
    uint64_t bytes;
    int64_t horizon_ms;
    uint32_t revision;
};

/* Notes the keys from offset `from` on. *map_end is behind the last record that was noted (or has
 * no key): that of the last input, or less when the map is full. ESK_ERR_CORRUPT names the segment.
 */
enum esk_err esk_compaction_map(const struct esk_storage *storage, uint64_t group_id,
                                const struct esk_compaction_input *inputs, size_t count,
                                uint64_t from, struct esk_compaction_pace *pace,
                                struct esk_key_map *map, uint64_t *map_end,
                                struct esk_error *error);

/* What one rewriting gives. */
struct esk_compaction_result {
    bool rewritten; /* false: there was nothing to change */
    struct esk_segment_summary summary;
    struct esk_index index;   /* the caller's */
    struct esk_segment *file; /* a reference, the caller's */
    uint64_t records_removed;
    uint64_t bytes_before;
};

/* Writes adjacent segments anew as one, when a record goes, a tombstone's time begins, or there are
 * several. When it returns, the new one counts, durably; the old files are the caller's to remove:
 * the first's batches (esk_segment_remove_revision), the others whole. On an error nothing has
 * changed, unless it is ESK_ERR_IO, which ends the broker. ESK_ERR_NO_SPACE: there is not enough
 * room for a second copy, or it ran out. */
enum esk_err esk_compaction_rewrite(const struct esk_storage *storage, uint64_t group_id,
                                    const struct esk_compaction_input *inputs, size_t count,
                                    struct esk_compaction_filter *filter,
                                    struct esk_compaction_pace *pace,
                                    struct esk_compaction_result *result, struct esk_error *error);

#endif
