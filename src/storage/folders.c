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

static bool is_temporary(const char *name) {
    size_t length = strlen(name);
    size_t suffix = sizeof(ESKI_TEMPORARY_SUFFIX) - 1;
    return length >= suffix && strcmp(name + length - suffix, ESKI_TEMPORARY_SUFFIX) == 0;
}

static enum esk_err sweep_any(void *context, const char *name, bool is_folder) {
    (void)is_folder;
    return remove_named(context, name);
}

/* --- segments --- */

struct listing {
    struct sweep sweep;
    struct esk_segment_file *files;
    size_t count;
    size_t capacity;
};

static enum esk_err visit_file(void *context, const char *name, bool is_folder) {
    struct listing *listing = context;
    struct esk_segment_file file = {0};
    if (is_folder) {
        return ESK_OK;
    }
    if (is_temporary(name)) {
        return remove_named(&listing->sweep, name);
    }
    file.lone_index = eski_name_parse(name, 10, ESKI_INDEX_SUFFIX, &file.base_offset);
    if (!file.lone_index && !eski_name_parse(name, 10, ESKI_SEGMENT_SUFFIX, &file.base_offset) &&
        !eski_rewritten_name_parse(name, &file.base_offset, &file.revision)) {
        return ESK_OK;
    }
    if (listing->count == listing->capacity) {
        listing->capacity = listing->capacity == 0 ? 16 : listing->capacity * 2;
        listing->files = esk_realloc(listing->files, listing->capacity * sizeof(file));
    }
    listing->files[listing->count++] = file;
    return ESK_OK;
}

/* Indexes behind the batches of their base offset. */
static int compare_files(const void *a, const void *b) {
    const struct esk_segment_file *left = a;
    const struct esk_segment_file *right = b;
    if (left->base_offset != right->base_offset) {
        return left->base_offset < right->base_offset ? -1 : 1;
    }
    if (left->lone_index != right->lone_index) {
        return left->lone_index ? 1 : -1;
    }
    return left->revision < right->revision ? -1 : left->revision > right->revision;
}

enum esk_err esk_segment_list(const struct esk_storage *storage, uint64_t group_id,
                              struct esk_segment_file **files, size_t *count,
                              struct esk_error *error) {
    char *folder = eski_group_path(storage, group_id);
    struct listing listing = {.sweep = {storage, folder, error}};
    enum esk_err err = esk_folder_list(storage->platform, folder, visit_file, &listing, error);
    free(folder);
    if (err != ESK_OK && err != ESK_ERR_NOT_FOUND) {
        free(listing.files);
        return err;
    }
    size_t kept = 0;
    if (listing.count > 0) {
        qsort(listing.files, listing.count, sizeof(*listing.files), compare_files);
    }
    for (size_t i = 0; i < listing.count; i++) {
        const struct esk_segment_file *file = &listing.files[i];
        bool alone = kept == 0 || listing.files[kept - 1].base_offset != file->base_offset;
        if (!file->lone_index || alone) {
            listing.files[kept++] = *file;
        }
    }
    *files = listing.files;
    *count = kept;
    return ESK_OK;
}

enum esk_err esk_segment_remove_revision(const struct esk_storage *storage, uint64_t group_id,
                                         uint64_t base_offset, uint32_t revision,
                                         struct esk_error *error) {
    char *path = eski_segment_path(storage, group_id, base_offset, revision);
    enum esk_err err = esk_pool_give(storage->pool, path, group_id, base_offset, revision, error);
    if (err != ESK_OK) {
        esk_wrap(error, "remove %s", path);
    }
    free(path);
    return err;
}

enum esk_err esk_segment_remove(const struct esk_storage *storage, uint64_t group_id,
                                uint64_t base_offset, uint32_t revision, struct esk_error *error) {
    char *index = eski_file_path(storage, group_id, base_offset, ESKI_INDEX_SUFFIX);
    /* The index first: what is left without it is known to be on its way out. */
    enum esk_err err = eski_storage_path_remove(storage->platform, index, error);
    if (err == ESK_OK) {
        err = esk_segment_remove_revision(storage, group_id, base_offset, revision, error);
    } else {
        esk_wrap(error, "remove %s", index);
    }
    free(index);
    return err;
}

/* --- groups --- */

enum esk_err esk_group_files_remove(const struct esk_storage *storage, uint64_t group_id,
                                    struct esk_error *error) {
    char *folder = eski_group_path(storage, group_id);
    struct esk_segment_file *files = NULL;
    size_t count = 0;
    struct sweep sweep = {storage, folder, error};
    enum esk_err err = esk_segment_list(storage, group_id, &files, &count, error);
    for (size_t i = 0; err == ESK_OK && i < count; i++) {
        err = esk_segment_remove(storage, group_id, files[i].base_offset, files[i].revision, error);
    }
    if (err == ESK_OK) {
        err = esk_folder_list(storage->platform, folder, sweep_any, &sweep, error);
        err = err == ESK_ERR_NOT_FOUND ? ESK_OK : err;
    }
    if (err == ESK_OK) {
        err = eski_storage_path_remove(storage->platform, folder, error);
    }
    if (err != ESK_OK) {
        esk_wrap(error, "remove %s", folder);
    } else { /* also when it was missing: a crash may have come before this */
        err = eski_storage_folder_sync(storage->platform, storage->folder, error);
    }
    free(files);
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
