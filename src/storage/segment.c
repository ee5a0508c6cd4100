/* SPDX-License-Identifier: Apache-2.0 */
/* The open segment file: create, open, append, sync, cut, read. A segment is registered with the
 * pool before its file is opened and until it is closed, see pool.h. */
#include "storage/segment.h"

#include "base/assert.h"
#include "base/mutation.h"
#include "storage/pool.h"
#include "storage/segment_private.h"

#include <stdlib.h>

/* Of an append, in the device's queue: the journals' writes wait behind them; with less the disk
 * has nothing to do between two slices. */
#define QUEUED_BYTES_MAX (4u << 20)
#define PART_SLICES 255 /* of one write: 4 KiB of stack; batches of 500 B fill a whole write */

static const uint8_t end_mark[ESKI_END_MARK_BYTES];

static struct esk_segment *segment_new(const struct esk_storage *storage, uint64_t group_id,
                                       uint64_t base_offset, uint32_t revision) {
    struct esk_segment *segment = esk_alloc_zeroed(1, sizeof(*segment));
    atomic_init(&segment->references, 1);
    segment->storage = storage;
    segment->group_id = group_id;
    segment->base_offset = base_offset;
    segment->revision = revision;
    segment->path = eski_segment_path(storage, group_id, base_offset, revision);
    eski_pool_attach(storage->pool, segment);
    return segment;
}

struct esk_segment *esk_segment_retain(struct esk_segment *segment) {
    unsigned before = atomic_fetch_add_explicit(&segment->references, 1, memory_order_relaxed);
    ESK_ASSERT(before > 0);
    return segment;
}

void esk_segment_release(struct esk_segment *segment) {
    if (!segment || atomic_fetch_sub_explicit(&segment->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    esk_file_close(segment->file);
    eski_pool_detach(segment->storage->pool, segment);
    free(segment->path);
    free(segment);
}

/* Opens a pooled or a new file under the segment's path. ESK_ERR_NOT_FOUND: no folder yet. */
static enum esk_err open_fresh(struct esk_segment *segment, uint64_t *generation,
                               struct esk_error *error) {
    struct esk_platform *platform = segment->storage->platform;
    unsigned flags = ESK_FILE_READ | ESK_FILE_WRITE;
    bool taken = false;
    enum esk_err err = esk_pool_take(segment->storage->pool, segment->path, &taken, error);
    if (err != ESK_OK) {
        return err;
    }
    *generation = 1;
    if (!taken) {
        flags |= ESK_FILE_CREATE | ESK_FILE_EXCLUSIVE;
        err = esk_file_open(platform, segment->path, flags, &segment->file, error);
        if (err == ESK_ERR_CONFLICT) { /* left by a crash before its name counted */
            err = eski_storage_path_remove(platform, segment->path, error);
            if (err == ESK_OK) {
                err = esk_file_open(platform, segment->path, flags, &segment->file, error);
            }
        }
        return err;
    }
    uint8_t bytes[ESK_SEGMENT_HEADER_BYTES];
    struct eski_segment_header header;
    err = esk_file_open(platform, segment->path, flags, &segment->file, error);
    if (err == ESK_OK) {
        err = esk_file_read_exactly(segment->file, bytes, sizeof(bytes), 0, error);
    }
    if (err == ESK_OK) {
        err = eski_segment_header_parse(bytes, segment->path, &header, error);
    }
    if (err == ESK_OK) {
        *generation = header.generation + 1;
    }
    return err;
}

static enum esk_err make(struct esk_segment *segment, struct esk_error *error) {
    uint64_t generation = 0;
    enum esk_err err = open_fresh(segment, &generation, error);
    if (err == ESK_ERR_NOT_FOUND) {
        err = eski_group_folder_make(segment->storage, segment->group_id, error);
        if (err == ESK_OK) {
            err = open_fresh(segment, &generation, error);
        }
    }
    if (err == ESK_OK) {
        uint8_t bytes[ESK_SEGMENT_HEADER_BYTES];
        eski_segment_header_encode(bytes, &(struct eski_segment_header){
                                              .generation = generation,
                                              .group_id = segment->group_id,
                                              .base_offset = segment->base_offset,
                                              .use = ESKI_USE_SEGMENT,
                                              .revision = segment->revision,
                                          });
        const struct esk_slice slices[] = {esk_slice(bytes, sizeof(bytes)),
                                           esk_slice(end_mark, sizeof(end_mark))};
        err = esk_file_write(segment->file, slices, 2, 0, error);
    }
    if (err != ESK_OK) {
        esk_file_close(segment->file);
        segment->file = NULL;
        esk_path_remove(segment->storage->platform, segment->path, NULL); /* create replaces it */
    }
    return err;
}

enum esk_err esk_segment_create_revision(const struct esk_storage *storage, uint64_t group_id,
                                         uint64_t base_offset, uint32_t revision,
                                         struct esk_segment **result, struct esk_error *error) {
    struct esk_segment *segment = segment_new(storage, group_id, base_offset, revision);
    unsigned tries = 0;
    enum esk_err err;
    do {
        err = make(segment, error);
    } while (eski_room_again(storage, &tries, &err, error));
    if (err != ESK_OK) {
        esk_wrap(error, "create %s", segment->path);
        esk_segment_release(segment);
        return err;
    }
    *result = segment;
    return ESK_OK;
}

enum esk_err esk_segment_create(const struct esk_storage *storage, uint64_t group_id,
                                uint64_t base_offset, struct esk_segment **segment,
                                struct esk_error *error) {
    return esk_segment_create_revision(storage, group_id, base_offset, 0, segment, error);
}

enum esk_err esk_segment_sync_names(const struct esk_storage *storage, uint64_t group_id,
                                    struct esk_error *error) {
    char *path = eski_group_path(storage, group_id);
    enum esk_err err = eski_storage_folder_sync(storage->platform, path, error);
    free(path);
    uint64_t made = eski_pool_folders_made(storage->pool);
    if (err == ESK_OK && !eski_pool_folders_are_synced(storage->pool, made)) {
        err = eski_storage_folder_sync(storage->platform, storage->folder, error);
        if (err == ESK_OK) {
            eski_pool_folders_synced(storage->pool, made);
        }
    }
    return err;
}

static enum esk_err check_header(struct esk_segment *segment, struct esk_error *error) {
    uint8_t bytes[ESK_SEGMENT_HEADER_BYTES];
    struct eski_segment_header header;
    enum esk_err err = esk_file_read_exactly(segment->file, bytes, sizeof(bytes), 0, error);
    if (err != ESK_OK) {
        esk_wrap(error, "%s: header", segment->path);
        return err;
    }
    err = eski_segment_header_parse(bytes, segment->path, &header, error);
    if (err != ESK_OK) {
        return err;
    }
    if (header.use != ESKI_USE_SEGMENT || header.group_id != segment->group_id ||
        header.base_offset != segment->base_offset || header.revision != segment->revision) {
        return esk_fail(error, ESK_ERR_CORRUPT,
                        "%s: its header is %s of group %016" PRIx64 ", base offset %" PRIu64
                        ", revision %" PRIu32,
                        segment->path,
                        header.use == ESKI_USE_POOLED ? "a free file, once" : "a segment",
                        header.group_id, header.base_offset, header.revision);
    }
    return ESK_OK;
}

enum esk_err esk_segment_open_revision(const struct esk_storage *storage, uint64_t group_id,
                                       uint64_t base_offset, uint32_t revision,
                                       struct esk_segment **result, struct esk_error *error) {
    struct esk_segment *segment = segment_new(storage, group_id, base_offset, revision);
    enum esk_err err = esk_file_open(storage->platform, segment->path,
                                     ESK_FILE_READ | ESK_FILE_WRITE, &segment->file, error);
    if (err == ESK_OK) {
        err = check_header(segment, error);
    }
    if (err != ESK_OK) {
        esk_segment_release(segment);
        return err;
    }
    *result = segment;
    return ESK_OK;
}

enum esk_err esk_segment_open(const struct esk_storage *storage, uint64_t group_id,
                              uint64_t base_offset, struct esk_segment **segment,
                              struct esk_error *error) {
    return esk_segment_open_revision(storage, group_id, base_offset, 0, segment, error);
}

/* Where an append stands: `skip` bytes into slice `next`. */
struct cursor {
    const struct esk_slice *slices;
    size_t count;
    size_t next;
    size_t skip;
};

/* The next part of at most ESK_SEGMENT_WRITE_BYTES, with the end mark when it is the last one (room
 * for one slice more). Returns its bytes without the mark. */
static size_t next_part(struct cursor *cursor, struct esk_slice part[PART_SLICES + 1],
                        size_t *part_count) {
    size_t bytes = 0;
    size_t n = 0;
    while (cursor->next < cursor->count && n < PART_SLICES && bytes < ESK_SEGMENT_WRITE_BYTES) {
        const struct esk_slice *slice = &cursor->slices[cursor->next];
        size_t left = slice->size - cursor->skip;
        size_t room = ESK_SEGMENT_WRITE_BYTES - bytes;
        size_t size = left < room ? left : room;
        part[n++] = esk_slice(slice->data + cursor->skip, size);
        bytes += size;
        cursor->skip += size;
        if (cursor->skip == slice->size) {
            cursor->next++;
            cursor->skip = 0;
        }
    }
    if (cursor->next == cursor->count) {
        part[n++] = esk_slice(end_mark, sizeof(end_mark));
    }
    *part_count = n;
    return bytes;
}

static enum esk_err write_part(struct esk_segment *segment, const struct esk_slice *part,
                               size_t count, uint64_t at, struct esk_error *error) {
    unsigned tries = 0;
    enum esk_err err;
    do {
        err = esk_file_write(segment->file, part, count, at, error);
    } while (eski_room_again(segment->storage, &tries, &err, error));
    if (err != ESK_OK) {
        esk_wrap(error, "append to %s at %" PRIu64, segment->path, at - ESK_SEGMENT_HEADER_BYTES);
    }
    return err;
}

enum esk_err esk_segment_append(struct esk_segment *segment, uint64_t position,
                                const struct esk_slice *slices, size_t count, uint64_t pause_ns,
                                struct esk_error *error) {
    struct cursor cursor = {slices, count, 0, 0};
    struct esk_slice part[PART_SLICES + 1];
    const uint64_t first = ESK_SEGMENT_HEADER_BYTES + position;
    uint64_t at = first;
    size_t since_pause = 0;
    for (;;) {
        size_t part_count;
        size_t bytes = next_part(&cursor, part, &part_count);
        enum esk_err err = write_part(segment, part, part_count, at, error);
        if (err == ESK_OK && bytes == ESK_SEGMENT_WRITE_BYTES) {
            uint64_t lag = at >= first + QUEUED_BYTES_MAX ? QUEUED_BYTES_MAX : 0;
            err = eski_file_write_back(segment->file, segment->path, at, bytes, lag, error);
        }
        if (err != ESK_OK || cursor.next == count) {
            return err;
        }
        at += bytes;
        since_pause += bytes;
        if (pause_ns > 0 && since_pause >= ESK_SEGMENT_WRITE_BYTES) {
            esk_pause(segment->storage->platform, pause_ns);
            since_pause = 0;
        }
    }
}

enum esk_err esk_segment_sync(struct esk_segment *segment, struct esk_error *error) {
    return eski_file_sync(segment->file, segment->path, error);
}

enum esk_err esk_segment_cut(struct esk_segment *segment, uint64_t bytes, struct esk_error *error) {
    uint64_t size = 0;
    uint64_t end = ESK_SEGMENT_HEADER_BYTES + bytes;
    enum esk_err err = esk_file_size(segment->file, &size, error);
    if (err == ESK_OK && size < end) {
        return esk_fail(error, ESK_ERR_CORRUPT,
                        "%s: has %" PRIu64 " bytes, %" PRIu64 " were synced once", segment->path,
                        size, end);
    }
    if (err == ESK_OK && size > end) {
        if (size > end + ESKI_END_MARK_BYTES) {
            ESK_REACHED(SEGMENT_CUT);
        }
        err = esk_file_truncate(segment->file, end, error);
    }
    if (err != ESK_OK) {
        esk_wrap(error, "cut %s to %" PRIu64, segment->path, bytes);
        return err;
    }
    return write_part(segment, &(struct esk_slice){end_mark, sizeof(end_mark)}, 1, end, error);
}

enum esk_err esk_segment_read(struct esk_segment *segment, void *buffer, size_t size,
                              uint64_t position, uint64_t bytes_end, unsigned flags, size_t *got,
                              struct esk_error *error) {
    *got = 0;
    if (position >= bytes_end || size == 0) {
        return ESK_OK;
    }
    size_t wanted = bytes_end - position < size ? (size_t)(bytes_end - position) : size;
    enum esk_err err = esk_file_read(segment->file, buffer, wanted,
                                     ESK_SEGMENT_HEADER_BYTES + position, flags, got, error);
    if (err == ESK_OK && *got < wanted && !(flags & ESK_READ_NOWAIT)) {
        return esk_fail(error, ESK_ERR_CORRUPT,
                        "%s: ends at %" PRIu64 ", should hold %" PRIu64 " batch bytes",
                        segment->path, position + *got, bytes_end);
    }
    return err;
}
