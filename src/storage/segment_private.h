/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: the open segment, the bytes of the three formats (pure, so
 * that they can be fuzzed), paths, and the steps that several of them take on the disk. */
#ifndef ESK_STORAGE_SEGMENT_PRIVATE_H
#define ESK_STORAGE_SEGMENT_PRIVATE_H

#include "base/list.h"
#include "storage/segment.h"

#include <inttypes.h>

struct eski_pool_entry;

struct esk_segment {
    atomic_uint references;
    const struct esk_storage *storage;
    struct esk_file *file;
    char *path;
    uint64_t group_id;
    uint64_t base_offset;
    uint32_t revision;
    struct esk_link link;          /* the pool's: among the open ones; guarded by its lock */
    struct eski_pool_entry *entry; /* the pool's: set once the file went there; likewise */
};

/* --- formats (format.c) --- */

#define ESKI_FORMAT_VERSION 1
#define ESKI_FORMAT_VERSION_REWRITTEN 2 /* of segments and indexes with a revision */
#define ESKI_PREFIX_BYTES 16            /* magic 8, version 4, CRC-32C of everything behind it 4 */
#define ESKI_INDEX_HEADER_BYTES 60
#define ESKI_INDEX_HEADER_BYTES_REWRITTEN 72
#define ESKI_INDEX_ENTRY_BYTES 16
#define ESKI_INDEX_FILE_BYTES_MAX (32u << 20) /* 4 GiB of positions, an entry per 4 KiB, twice */
#define ESKI_SNAPSHOT_HEADER_BYTES 48
#define ESKI_SNAPSHOT_FILE_BYTES_MAX (1u << 30) /* ours: far above any state kept in memory */
#define ESKI_END_MARK_BYTES 12                  /* the head of a batch of length 0 */

enum eski_use {
    ESKI_USE_SEGMENT = 1,
    ESKI_USE_POOLED = 2, /* the bytes behind the header are nobody's */
};

struct eski_segment_header {
    uint64_t generation; /* how many segments this file has been */
    uint64_t group_id;
    uint64_t base_offset;
    enum eski_use use;
    uint32_t revision;
};

struct eski_snapshot_header {
    uint64_t group_id;
    uint64_t index;
    uint64_t term;
};

void eski_segment_header_encode(uint8_t bytes[ESK_SEGMENT_HEADER_BYTES],
                                const struct eski_segment_header *header);
/* path is for messages only. bytes: ESK_SEGMENT_HEADER_BYTES. */
enum esk_err eski_segment_header_parse(const uint8_t *bytes, const char *path,
                                       struct eski_segment_header *header, struct esk_error *error);
void eski_index_encode(struct esk_buffer *buffer, uint64_t group_id,
                       const struct esk_segment_summary *summary, const struct esk_index *index);
/* index may be NULL, else it is empty before and after an error. */
enum esk_err eski_index_parse(struct esk_slice bytes, const char *path, uint64_t *group_id,
                              struct esk_segment_summary *summary, struct esk_index *index,
                              struct esk_error *error);
/* The payload's CRC is part of the header's. */
void eski_snapshot_encode(uint8_t bytes[ESKI_SNAPSHOT_HEADER_BYTES],
                          const struct eski_snapshot_header *header, struct esk_slice payload);
enum esk_err eski_snapshot_parse(struct esk_slice bytes, const char *path,
                                 struct eski_snapshot_header *header, struct esk_slice *payload,
                                 struct esk_error *error);

/* --- paths and disk (disk.c) --- */

char *eski_group_path(const struct esk_storage *storage, uint64_t group_id); /* all owned */
char *eski_file_path(const struct esk_storage *storage, uint64_t group_id, uint64_t number,
                     const char *suffix);
char *eski_segment_path(const struct esk_storage *storage, uint64_t group_id, uint64_t base_offset,
                        uint32_t revision);
char *eski_folder_of(const char *path);
#define ESKI_SEGMENT_SUFFIX ".segment"
#define ESKI_INDEX_SUFFIX ".index"
#define ESKI_SNAPSHOT_SUFFIX ".snapshot"
#define ESKI_CLEANED_NAME "cleaned"
#define ESKI_TEMPORARY_SUFFIX ".new"
/* Whether name is `digits` digits of that base and the suffix; false above 2^64-1 too. */
bool eski_name_parse(const char *name, unsigned base, const char *suffix, uint64_t *number);
/* Whether name is that of a rewritten segment: 20 digits, a point, 8 hex digits, the suffix. */
bool eski_rewritten_name_parse(const char *name, uint64_t *base_offset, uint32_t *revision);

/* The numbers in the names of a folder; a missing folder has none. Names that do not fit go to
 * `other` (may be NULL). *numbers is owned, ascending. */
enum esk_err eski_folder_numbers(struct esk_platform *platform, const char *folder, unsigned base,
                                 const char *suffix, bool folders, uint64_t **numbers,
                                 size_t *count,
                                 enum esk_err (*other)(void *context, const char *name),
                                 void *context, struct esk_error *error);

/* Any failure of these ends the broker: ESK_ERR_IO whatever the system called it, so that nobody
 * takes a sync's ENOSPC for something to try again. */
enum esk_err eski_file_sync(struct esk_file *file, const char *path, struct esk_error *error);
enum esk_err eski_file_write_back(struct esk_file *file, const char *path, uint64_t position,
                                  uint64_t size, uint64_t lag, struct esk_error *error);
enum esk_err eski_storage_folder_sync(struct esk_platform *platform, const char *path,
                                      struct esk_error *error);
/* Makes the group's folder, and remembers that its name is not durable. */
enum esk_err eski_group_folder_make(const struct esk_storage *storage, uint64_t group_id,
                                    struct esk_error *error);
/* Writes a file of these slices beside path (making the group's folder when missing), syncs it and
 * renames it over path. The name is not synced. On an error path is as it was. */
enum esk_err eski_file_replace(const struct esk_storage *storage, uint64_t group_id,
                               const char *path, const struct esk_slice *slices, size_t count,
                               struct esk_error *error);
/* Cuts a recycled file behind the end mark of its batch bytes. */
enum esk_err eski_segment_trim(struct esk_segment *segment, uint64_t bytes,
                               struct esk_error *error);
/* Cuts a file to `to` bytes in steps with pauses: freeing much at once stalls the journal. */
enum esk_err eski_file_shrink(struct esk_platform *platform, struct esk_file *file, uint64_t from,
                              uint64_t to, struct esk_error *error);
/* As esk_path_remove, but a missing file is fine. */
enum esk_err eski_storage_path_remove(struct esk_platform *platform, const char *path,
                                      struct esk_error *error);

/* --- the pool's part in segments (pool.c) --- */

void eski_pool_attach(struct esk_pool *pool,
                      struct esk_segment *segment); /* before the file opens */
void eski_pool_detach(struct esk_pool *pool, struct esk_segment *segment); /* any thread */
/* Whether names in the folder of all groups are not durable yet: since when, and that they are. */
void eski_pool_folder_made(struct esk_pool *pool);
uint64_t eski_pool_folders_made(struct esk_pool *pool);
bool eski_pool_folders_are_synced(struct esk_pool *pool, uint64_t made);
void eski_pool_folders_synced(struct esk_pool *pool, uint64_t made);

/* --- room (room.c) --- */

/* After a step of a write failed: true when it should be tried again, because *err is
 * ESK_ERR_NO_SPACE and room was made. *tries starts at 0. A failure to make room replaces *err. */
bool eski_room_again(const struct esk_storage *storage, unsigned *tries, enum esk_err *err,
                     struct esk_error *error);

#endif
