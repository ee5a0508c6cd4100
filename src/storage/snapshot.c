/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshot files: all or nothing, durable with their name when the store returns. */
#include "base/assert.h"
#include "base/mutation.h"
#include "storage/segment_private.h"

#include <stdlib.h>

enum esk_err esk_snapshot_store(const struct esk_storage *storage, uint64_t group_id,
                                uint64_t index, uint64_t term, struct esk_slice payload,
                                struct esk_error *error) {
    ESK_ASSERT(payload.size <= ESKI_SNAPSHOT_FILE_BYTES_MAX - ESKI_SNAPSHOT_HEADER_BYTES);
    uint8_t bytes[ESKI_SNAPSHOT_HEADER_BYTES];
    const struct eski_snapshot_header header = {group_id, index, term};
    eski_snapshot_encode(bytes, &header, payload);
    const struct esk_slice slices[] = {esk_slice(bytes, sizeof(bytes)), payload};
    char *path = eski_file_path(storage, group_id, index, ESKI_SNAPSHOT_SUFFIX);
    enum esk_err err = eski_file_replace(storage, group_id, path, slices, 2, error);
    if (err == ESK_OK) {
        err = esk_segment_sync_names(storage, group_id, error);
    }
    if (err == ESK_OK) {
        ESK_REACHED(SNAPSHOT);
    }
    free(path);
    return err;
}

enum esk_err esk_snapshot_load(const struct esk_storage *storage, uint64_t group_id, uint64_t index,
                               uint8_t **payload, size_t *size, struct esk_error *error) {
    char *path = eski_file_path(storage, group_id, index, ESKI_SNAPSHOT_SUFFIX);
    uint8_t *bytes = NULL;
    size_t bytes_size = 0;
    struct eski_snapshot_header header = {0};
    struct esk_slice found = {NULL, 0};
    enum esk_err err = esk_file_load(storage->platform, path, ESKI_SNAPSHOT_FILE_BYTES_MAX, &bytes,
                                     &bytes_size, error);
    if (err == ESK_OK) {
        err = eski_snapshot_parse(esk_slice(bytes, bytes_size), path, &header, &found, error);
    } else if (err == ESK_ERR_TOO_LARGE) {
        err = esk_fail(error, ESK_ERR_CORRUPT, "%s: too large for a snapshot", path);
    }
    if (err == ESK_OK && (header.group_id != group_id || header.index != index)) {
        err = esk_fail(error, ESK_ERR_CORRUPT, "%s: is of group %016" PRIx64 ", index %" PRIu64,
                       path, header.group_id, header.index);
    }
    free(path);
    if (err != ESK_OK) {
        free(bytes);
        return err;
    }
    memmove(bytes, found.data, found.size);
    *payload = bytes;
    *size = found.size;
    ESK_REACHED(SNAPSHOT_USED);
    return ESK_OK;
}

static enum esk_err list(const struct esk_storage *storage, uint64_t group_id, uint64_t **indexes,
                         size_t *count, struct esk_error *error) {
    char *folder = eski_group_path(storage, group_id);
    enum esk_err err = eski_folder_numbers(storage->platform, folder, 10, ESKI_SNAPSHOT_SUFFIX,
                                           false, indexes, count, NULL, NULL, error);
    free(folder);
    return err;
}

enum esk_err esk_snapshot_newest(const struct esk_storage *storage, uint64_t group_id,
                                 uint64_t *index, struct esk_error *error) {
    uint64_t *indexes = NULL;
    size_t count = 0;
    enum esk_err err = list(storage, group_id, &indexes, &count, error);
    *index = count > 0 ? indexes[count - 1] : 0;
    free(indexes);
    return err;
}

enum esk_err esk_snapshot_prune(const struct esk_storage *storage, uint64_t group_id,
                                uint64_t keep_index, struct esk_error *error) {
    uint64_t *indexes = NULL;
    size_t count = 0;
    enum esk_err err = list(storage, group_id, &indexes, &count, error);
    for (size_t i = 0; err == ESK_OK && i < count; i++) {
        if (indexes[i] != keep_index) {
            char *path = eski_file_path(storage, group_id, indexes[i], ESKI_SNAPSHOT_SUFFIX);
            err = eski_storage_path_remove(storage->platform, path, error);
            free(path);
        }
    }
    free(indexes);
    return err;
}
