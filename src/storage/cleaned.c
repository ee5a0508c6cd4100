/* SPDX-License-Identifier: Apache-2.0 */
/* How far a group's log is compacted, in a file of 40 bytes that is replaced as a whole. It only
 * saves work: it is stored behind what it tells of, and without it everything counts as dirty. */
#include "storage/segment_private.h"

#include "base/hash.h"

#include <stdlib.h>

#define FILE_BYTES 40 /* magic 8, version 4, CRC-32C of the rest 4, group id, offset, 8 unused */
#define VERSION 1

static const uint8_t magic[8] = {'E', 'S', 'K', 'C', 'L', 'E', 'A', 'N'};

static char *cleaned_path(const struct esk_storage *storage, uint64_t group_id) {
    char *folder = eski_group_path(storage, group_id);
    char *path = esk_text_format("%s/%s", folder, ESKI_CLEANED_NAME);
    free(folder);
    return path;
}

enum esk_err esk_cleaned_store(const struct esk_storage *storage, uint64_t group_id,
                               uint64_t offset, struct esk_error *error) {
    uint8_t bytes[FILE_BYTES] = {0};
    memcpy(bytes, magic, sizeof(magic));
    esk_store_u32(bytes + 8, VERSION);
    esk_store_u64(bytes + 16, group_id);
    esk_store_u64(bytes + 24, offset);
    esk_store_u32(bytes + 12,
                  esk_crc32c(0, bytes + ESKI_PREFIX_BYTES, FILE_BYTES - ESKI_PREFIX_BYTES));
    const struct esk_slice slice = esk_slice(bytes, sizeof(bytes));
    char *path = cleaned_path(storage, group_id);
    enum esk_err err = eski_file_replace(storage, group_id, path, &slice, 1, error);
    free(path);
    return err;
}

enum esk_err esk_cleaned_load(const struct esk_storage *storage, uint64_t group_id,
                              uint64_t *offset, struct esk_error *error) {
    char *path = cleaned_path(storage, group_id);
    uint8_t *bytes = NULL;
    size_t size = 0;
    *offset = 0;
    enum esk_err err = esk_file_load(storage->platform, path, FILE_BYTES, &bytes, &size, error);
    if (err == ESK_OK && size == FILE_BYTES && memcmp(bytes, magic, sizeof(magic)) == 0 &&
        esk_load_u32(bytes + 8) == VERSION && esk_load_u64(bytes + 16) == group_id &&
        esk_load_u32(bytes + 12) ==
            esk_crc32c(0, bytes + ESKI_PREFIX_BYTES, FILE_BYTES - ESKI_PREFIX_BYTES)) {
        *offset = esk_load_u64(bytes + 24);
    }
    free(bytes);
    free(path);
    return err == ESK_ERR_NOT_FOUND || err == ESK_ERR_TOO_LARGE ? ESK_OK : err;
}
