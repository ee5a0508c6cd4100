/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a group's folder, and how it goes away. Removing again after a crash or an error half
 * way is always fine. */
#include "storage/pool.h"
#include "storage/segment_private.h"

#include <stdlib.h>

/* Removes files of a folder that a write left beside its target. */
struct sweep {
    const struct esk_storage *storage;
    const char *folder;
    struct esk_error *error;
};

static enum esk_err remove_named(const struct sweep *sweep, const char *name) {
    char *path = esk_text_format("%s/%s", sweep->folder, name);
    enum esk_err err = eski_storage_path_remove(sweep->storage->platform, path, sweep->error);
    free(path);
    return err;
}

static enum esk_err sweep_temporary(void *context, const char *name) {
    size_t length = strlen(name);
    size_t suffix = sizeof(ESKI_TEMPORARY_SUFFIX) - 1;
    if (length < suffix || strcmp(name + length - suffix, ESKI_TEMPORARY_SUFFIX) != 0) {
        return ESK_OK;
    }
    return remove_named(context, name);
}

static enum esk_err sweep_any(void *context, const char *name) {
    return remove_named(context, name);
}

enum esk_err esk_segment_list(const struct esk_storage *storage, uint64_t group_id,
                              uint64_t **offsets, size_t *count, struct esk_error *error) {
    char *folder = eski_group_path(storage, group_id);
    struct sweep sweep = {storage, folder, error};
    enum esk_err err = eski_folder_numbers(storage->platform, folder, 10, ESKI_SEGMENT_SUFFIX,
                                           false, offsets, count, sweep_temporary, &sweep, error);
    free(folder);
    return err;
}

enum esk_err esk_segment_remove(const struct esk_storage *storage, uint64_t group_id,
                                uint64_t base_offset, struct esk_error *error) {
    char *index = eski_file_path(storage, group_id, base_offset, ESKI_INDEX_SUFFIX);
    char *path = eski_file_path(storage, group_id, base_offset, ESKI_SEGMENT_SUFFIX);
    /* The index first: without its segment nothing would ever look for it. */
    enum esk_err err = eski_storage_path_remove(storage->platform, index, error);
    if (err == ESK_OK) {
        err = esk_pool_give(storage->pool, path, group_id, base_offset, error);
    }
    if (err != ESK_OK) {
        esk_wrap(error, "remove %s", path);
    }
    free(path);
    free(index);
    return err;
}

enum esk_err esk_group_files_remove(const struct esk_storage *storage, uint64_t group_id,
                                    struct esk_error *error) {
    char *folder = eski_group_path(storage, group_id);
    uint64_t *offsets = NULL;
    size_t count = 0;
    struct sweep sweep = {storage, folder, error};
    enum esk_err err = eski_folder_numbers(storage->platform, folder, 10, ESKI_SEGMENT_SUFFIX,
                                           false, &offsets, &count, sweep_any, &sweep, error);
    for (size_t i = 0; err == ESK_OK && i < count; i++) {
        err = esk_segment_remove(storage, group_id, offsets[i], error);
    }
    if (err == ESK_OK) {
        err = eski_storage_path_remove(storage->platform, folder, error);
    }
    if (err != ESK_OK) {
        esk_wrap(error, "remove %s", folder);
    } else { /* also when it was missing: a crash may have come before this */
        err = eski_storage_folder_sync(storage->platform, storage->folder, error);
    }
    free(offsets);
    free(folder);
    return err;
}

struct report {
    void (*foreign)(void *context, const char *name);
    void *context;
};

static enum esk_err report_foreign(void *context, const char *name) {
    const struct report *report = context;
    if (report->foreign) {
        report->foreign(report->context, name);
    }
    return ESK_OK;
}

enum esk_err esk_group_files_list(const struct esk_storage *storage, uint64_t **ids, size_t *count,
                                  void (*foreign)(void *context, const char *name), void *context,
                                  struct esk_error *error) {
    struct report report = {foreign, context};
    return eski_folder_numbers(storage->platform, storage->folder, 16, "", true, ids, count,
                               report_foreign, &report, error);
}

enum esk_err esk_group_files_set_aside(const struct esk_storage *storage, uint64_t group_id,
                                       struct esk_error *error) {
    struct esk_platform *platform = storage->platform;
    char *folder = eski_group_path(storage, group_id);
    char *data = eski_folder_of(storage->folder);
    char *lost = esk_text_format("%s/lost", data);
    /* The time keeps apart what was set aside, copied back by hand and set aside again. */
    char *target =
        esk_text_format("%s/%016" PRIx64 "-%" PRId64, lost, group_id, esk_wall_ms(platform));
    enum esk_err err = esk_folder_make(platform, lost, error);
    if (err == ESK_OK) {
        err = eski_storage_folder_sync(platform, data, error);
    }
    if (err == ESK_OK) {
        err = esk_path_rename(platform, folder, target, error);
    }
    if (err == ESK_OK) {
        err = eski_storage_folder_sync(platform, lost, error);
    }
    if (err == ESK_OK) {
        err = eski_storage_folder_sync(platform, storage->folder, error);
    }
    if (err != ESK_OK) {
        esk_wrap(error, "set %s aside", folder);
    }
    free(target);
    free(lost);
    free(data);
    free(folder);
    return err;
}
