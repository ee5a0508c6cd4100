/* SPDX-License-Identifier: Apache-2.0 */
/* Segment files: a 4 KiB header (magic, version, CRC, group id, base offset, generation), then bare
 * RecordBatches, then a zero length as end mark. Where a segment ends is known from the checkpoint
 * (open one) or its index file (sealed one), never by scanning. docs/format-segment.md has the
 * bytes. "Position" here counts batch bytes: 0 is the first byte behind the header.
 *
 * All calls block and are for workers, but retain/release and the NOWAIT read. A segment handle is
 * immutable but for its file, which several threads may use at once; who may append (one job at a
 * time) and sync is the partition's business.
 *
 * A full disk: each write that finds no room empties the pool, then spends the reserve, then tries
 * for the last time (storage/room.h); ESK_ERR_NO_SPACE means that even that did not help and the
 * call may be made again later. Any failed sync, whatever its errno, is ESK_ERR_IO and ends the
 * broker. */
#ifndef ESK_STORAGE_SEGMENT_H
#define ESK_STORAGE_SEGMENT_H

#include "base/error.h"
#include "base/memory.h"
#include "platform/platform.h"

struct esk_pool;
struct esk_reserve;

#define ESK_SEGMENT_HEADER_BYTES 4096
#define ESK_SEGMENT_WRITE_BYTES                                                                    \
    (128 * 1024) /* one paced write; see architecture, "What was measured" */

/* What all segment work of one broker shares; read-only after start, safe in any worker. */
struct esk_storage {
    struct esk_platform *platform;
    const char *folder;          /* <data-dir>/groups: one sub-folder per group, 16 hex digits */
    struct esk_pool *pool;       /* files kept for reuse */
    struct esk_reserve *reserve; /* the ballast */
};

/* An open segment file, reference counted (atomic). */
struct esk_segment;
struct esk_segment *esk_segment_retain(struct esk_segment *segment);
void esk_segment_release(
    struct esk_segment *segment); /* closes the file with the last; NULL: nothing */

/* A new segment, from a pooled file where there is one; makes the group's folder when missing. The
 * names are durable after the next esk_segment_sync_names. ESK_ERR_NO_SPACE: nothing was made. */
enum esk_err esk_segment_create(const struct esk_storage *storage, uint64_t group_id,
                                uint64_t base_offset, struct esk_segment **segment,
                                struct esk_error *error);
/* The same, for a segment that is written anew (compaction): revision 0 is as it was written first,
 * the next one is the last one's plus 1, and each has a file name of its own. Which of them counts
 * is what the index file says: storing that (esk_segment_seal) is the switch. */
enum esk_err esk_segment_create_revision(const struct esk_storage *storage, uint64_t group_id,
                                         uint64_t base_offset, uint32_t revision,
                                         struct esk_segment **segment, struct esk_error *error);
/* Syncs the group's folder, and its parent when any group's folder is new. */
enum esk_err esk_segment_sync_names(const struct esk_storage *storage, uint64_t group_id,
                                    struct esk_error *error);
/* ESK_ERR_CORRUPT, ESK_ERR_VERSION name the file. */
enum esk_err esk_segment_open(const struct esk_storage *storage, uint64_t group_id,
                              uint64_t base_offset, struct esk_segment **segment,
                              struct esk_error *error);

enum esk_err esk_segment_open_revision(const struct esk_storage *storage, uint64_t group_id,
                                       uint64_t base_offset, uint32_t revision,
                                       struct esk_segment **segment, struct esk_error *error);

/* Writes whole batches at position, in slices of ESK_SEGMENT_WRITE_BYTES with pause_ns between
 * them, and the end mark behind. Whole slices go on to the device at once, some megabytes ahead of
 * it at most: a sync that finds many to write holds up the journals' writes. On an error nothing
 * counts; the same range may be written again, but after ESK_ERR_IO. */
enum esk_err esk_segment_append(struct esk_segment *segment, uint64_t position,
                                const struct esk_slice *slices, size_t count, uint64_t pause_ns,
                                struct esk_error *error);
enum esk_err esk_segment_sync(struct esk_segment *segment, struct esk_error *error);
/* Recovery: everything behind bytes is void: cut it off and mark the end. */
enum esk_err esk_segment_cut(struct esk_segment *segment, uint64_t bytes, struct esk_error *error);
/* At most size batch bytes from position; see esk_file_read for flags and got. bytes_end bounds it.
 */
enum esk_err esk_segment_read(struct esk_segment *segment, void *buffer, size_t size,
                              uint64_t position, uint64_t bytes_end, unsigned flags, size_t *got,
                              struct esk_error *error);

/* --- the sparse index --- */

#define ESK_INDEX_INTERVAL_BYTES 4096 /* batch bytes between two entries, as Kafka's default */

struct esk_index_entry {
    uint32_t offset_delta; /* first record of a batch, from the segment's base offset */
    uint32_t position;     /* of that batch */
    int64_t timestamp_ms;  /* newest record up to and including that batch */
};

/* An index of one segment; grows with the open segment. One owner at a time. */
struct esk_index {
    struct esk_index_entry *entries;
    size_t count;
    size_t capacity;
    int64_t timestamp_ms; /* newest record it was told of; -1: none */
};
void esk_index_init(struct esk_index *index);
void esk_index_fini(struct esk_index *index);
/* Tells it of a batch; it keeps an entry per ESK_INDEX_INTERVAL_BYTES. */
void esk_index_add(struct esk_index *index, uint64_t offset_delta, uint64_t position,
                   int64_t timestamp_ms);
/* Position at or before the batch that holds base + offset_delta. */
uint64_t esk_index_find(const struct esk_index *index, uint64_t offset_delta);
/* The index of batch bytes 0 .. bytes_end, by reading batch headers (first read after a restart).
 */
enum esk_err esk_index_build(struct esk_segment *segment, uint64_t base_offset, uint64_t bytes_end,
                             struct esk_index *index, struct esk_error *error);

#define ESK_HORIZON_NONE (-1)

/* What is known of a sealed segment: the head of its index file. */
struct esk_segment_summary {
    uint64_t base_offset;
    uint64_t end_offset;  /* base offset of the next segment */
    uint64_t bytes;       /* batch bytes */
    int64_t timestamp_ms; /* newest record; -1: no record */
    int64_t horizon_ms;   /* when the first of its tombstones may go; ESK_HORIZON_NONE */
    uint32_t revision;    /* how often it was written anew: names its file */
};
/* Writes the index file of a segment whose batches are all written; then cuts a longer (pooled)
 * file to its end. Sync the names afterwards. Replaces an index file that is there (a crash
 * before). */
enum esk_err esk_segment_seal(const struct esk_storage *storage, uint64_t group_id,
                              struct esk_segment *segment,
                              const struct esk_segment_summary *summary,
                              const struct esk_index *index, struct esk_error *error);
/* Reads an index file, checksum and all; entries into index, replacing what is there, unless it is
 * NULL. ESK_ERR_CORRUPT, ESK_ERR_VERSION, ESK_ERR_NOT_FOUND name the file. */
enum esk_err esk_segment_load(const struct esk_storage *storage, uint64_t group_id,
                              uint64_t base_offset, struct esk_segment_summary *summary,
                              struct esk_index *index, struct esk_error *error);

/* --- folders --- */

/* A file of a segment: its batches, or an index without any. */
struct esk_segment_file {
    uint64_t base_offset;
    uint32_t revision;
    bool lone_index;
};
/* The group's segment files, ascending by base offset and revision; *files is owned, free(). A
 * missing folder has none. Unknown file names are ignored, temporary ones removed. */
enum esk_err esk_segment_list(const struct esk_storage *storage, uint64_t group_id,
                              struct esk_segment_file **files, size_t *count,
                              struct esk_error *error);
/* The file goes to the pool or, stepwise, away; its index too (first: after a crash in between the
 * segment is there without it). A missing one is fine. Handles still open keep reading. */
enum esk_err esk_segment_remove(const struct esk_storage *storage, uint64_t group_id,
                                uint64_t base_offset, uint32_t revision, struct esk_error *error);
/* Its batches only: the index is that of another revision. */
enum esk_err esk_segment_remove_revision(const struct esk_storage *storage, uint64_t group_id,
                                         uint64_t base_offset, uint32_t revision,
                                         struct esk_error *error);
/* Everything of the group, snapshots too, and its folder, durably. A missing folder is fine. */
enum esk_err esk_group_files_remove(const struct esk_storage *storage, uint64_t group_id,
                                    struct esk_error *error);
/* Group ids that have a folder, ascending; owned. Names that are no group id are reported by
 * foreign (may be NULL). */
enum esk_err esk_group_files_list(const struct esk_storage *storage, uint64_t **ids, size_t *count,
                                  void (*foreign)(void *context, const char *name), void *context,
                                  struct esk_error *error);
/* Renames the group's folder into <data-dir>/lost: for folders that the catalogue does not know. */
enum esk_err esk_group_files_set_aside(const struct esk_storage *storage, uint64_t group_id,
                                       struct esk_error *error);

/* --- how far a group's log is compacted --- */

/* Below this offset every key is there once. Stored behind the rewriting that made it so; a lost or
 * damaged one reads as 0 and costs a pass over all. */
enum esk_err esk_cleaned_store(const struct esk_storage *storage, uint64_t group_id,
                               uint64_t offset, struct esk_error *error);
enum esk_err esk_cleaned_load(const struct esk_storage *storage, uint64_t group_id,
                              uint64_t *offset, struct esk_error *error);

/* --- snapshots of groups whose state is a map --- */

/* A snapshot file, named by its index: magic, version, group, index, term, CRC, payload. Written,
 * synced and its name synced when it returns. */
enum esk_err esk_snapshot_store(const struct esk_storage *storage, uint64_t group_id,
                                uint64_t index, uint64_t term, struct esk_slice payload,
                                struct esk_error *error);
/* *payload is owned, free(). ESK_ERR_CORRUPT, ESK_ERR_VERSION, ESK_ERR_NOT_FOUND name the file. */
enum esk_err esk_snapshot_load(const struct esk_storage *storage, uint64_t group_id, uint64_t index,
                               uint8_t **payload, size_t *size, struct esk_error *error);
/* The highest index of the group's snapshot files, 0 when it has none. */
enum esk_err esk_snapshot_newest(const struct esk_storage *storage, uint64_t group_id,
                                 uint64_t *index, struct esk_error *error);
/* Removes the group's snapshots but the one named. */
enum esk_err esk_snapshot_prune(const struct esk_storage *storage, uint64_t group_id,
                                uint64_t keep_index, struct esk_error *error);

#endif
