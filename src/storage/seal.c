/* SPDX-License-Identifier: Apache-2.0 */
/* Index files: written when a segment is sealed, read when it is met again. */
#include "base/assert.h"
#include "storage/segment_private.h"

#include <stdlib.h>

/* A recycled file is longer than what it now holds. */
enum esk_err eski_segment_trim(struct esk_segment *segment, uint64_t bytes,
                               struct esk_error *error) {
    uint64_t size = 0;
    enum esk_err err = esk_file_size(segment->file, &size, error);
    if (err == ESK_OK) {
        err = eski_file_shrink(segment->storage->platform, segment->file, size,
                               ESK_SEGMENT_HEADER_BYTES + bytes + ESKI_END_MARK_BYTES, error);
    }
    if (err != ESK_OK) {
        esk_wrap(error, "trim %s", segment->path);
    }
    return err;
}

enum esk_err esk_segment_seal(const struct esk_storage *storage, uint64_t group_id,
                              struct esk_segment *segment,
                              const struct esk_segment_summary *summary,
                              const struct esk_index *index, struct esk_error *error) {
    ESK_ASSERT(segment->group_id == group_id);
    ESK_ASSERT(segment->base_offset == summary->base_offset);
    ESK_ASSERT(summary->end_offset >= summary->base_offset);
    if (index->count > 0) { /* else loading it would call it corrupt */
        const struct esk_index_entry *last = &index->entries[index->count - 1];
        ESK_ASSERT(last->offset_delta < summary->end_offset - summary->base_offset);
        ESK_ASSERT(last->position < summary->bytes);
        ESK_ASSERT(last->timestamp_ms <= summary->timestamp_ms);
    }
    struct esk_buffer bytes;
    esk_buffer_init(&bytes);
    eski_index_encode(&bytes, group_id, summary, index);
    struct esk_slice slice = esk_buffer_slice(&bytes);
    char *path = eski_file_path(storage, group_id, summary->base_offset, ESKI_INDEX_SUFFIX);
    enum esk_err err = eski_file_replace(storage, group_id, path, &slice, 1, error);
    if (err == ESK_OK) {
        err = eski_segment_trim(segment, summary->bytes, error);
    }
    free(path);
    esk_buffer_fini(&bytes);
    return err;
}

enum esk_err esk_segment_load(const struct esk_storage *storage, uint64_t group_id,
                              uint64_t base_offset, struct esk_segment_summary *summary,
                              struct esk_index *index, struct esk_error *error) {
    if (index) {
        esk_index_fini(index);
    }
    char *path = eski_file_path(storage, group_id, base_offset, ESKI_INDEX_SUFFIX);
    uint8_t *bytes = NULL;
    size_t size = 0;
    uint64_t found_group = 0;
    enum esk_err err =
        esk_file_load(storage->platform, path, ESKI_INDEX_FILE_BYTES_MAX, &bytes, &size, error);
    if (err == ESK_OK) {
        err = eski_index_parse(esk_slice(bytes, size), path, &found_group, summary, index, error);
    } else if (err == ESK_ERR_TOO_LARGE) {
        err = esk_fail(error, ESK_ERR_CORRUPT, "%s: too large for an index file", path);
    }
    if (err == ESK_OK && (found_group != group_id || summary->base_offset != base_offset)) {
        if (index) {
            esk_index_fini(index);
        }
        err =
            esk_fail(error, ESK_ERR_CORRUPT, "%s: is of group %016" PRIx64 ", base offset %" PRIu64,
                     path, found_group, summary->base_offset);
    }
    free(bytes);
    free(path);
    return err;
}
