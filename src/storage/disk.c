/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the groups' files, and the steps on the disk that segments, indexes and snapshots share.
 * Keeps no state. A sync that fails is ESK_ERR_IO from here on, whatever it was. */
#include "storage/segment_private.h"

#include "base/assert.h"
#include "base/mutation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SHRINK_STEP_BYTES (8u << 20) /* architecture, "What was measured": 10 ms at worst */
#define SHRINK_PAUSE_NS 20000000     /* likewise */

char *eski_group_path(const struct esk_storage *storage, uint64_t group_id) {
    return esk_text_format("%s/%016" PRIx64, storage->folder, group_id);
}

char *eski_file_path(const struct esk_storage *storage, uint64_t group_id, uint64_t number,
                     const char *suffix) {
    return esk_text_format("%s/%016" PRIx64 "/%020" PRIu64 "%s", storage->folder, group_id, number,
                           suffix);
}

char *eski_segment_path(const struct esk_storage *storage, uint64_t group_id, uint64_t base_offset,
                        uint32_t revision) {
    char suffix[32] = ESKI_SEGMENT_SUFFIX;
    if (revision > 0) {
        snprintf(suffix, sizeof(suffix), ".%08" PRIx32 ESKI_SEGMENT_SUFFIX, revision);
    }
    return eski_file_path(storage, group_id, base_offset, suffix);
}

char *eski_folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return esk_text_copy(".");
    }
    return esk_text_format("%.*s", slash == path ? 1 : (int)(slash - path), path);
}

bool eski_name_parse(const char *name, unsigned base, const char *suffix, uint64_t *number) {
    size_t digits = base == 16 ? 16 : 20;
    const char *allowed = base == 16 ? "0123456789abcdef" : "0123456789";
    if (strspn(name, allowed) != digits || strcmp(name + digits, suffix) != 0) {
        return false;
    }
    char text[24];
    memcpy(text, name, digits);
    text[digits] = '\0';
    errno = 0;
    *number = strtoull(text, NULL, (int)base);
    return errno == 0;
}

bool eski_rewritten_name_parse(const char *name, uint64_t *base_offset, uint32_t *revision) {
    size_t digits = strspn(name, "0123456789");
    if (digits != 20 || name[20] != '.' || strspn(name + 21, "0123456789abcdef") != 8 ||
        strcmp(name + 29, ESKI_SEGMENT_SUFFIX) != 0) {
        return false;
    }
    char text[24];
    memcpy(text, name, 20);
    text[20] = '\0';
    if (!eski_name_parse(text, 10, "", base_offset)) {
        return false;
    }
    *revision = (uint32_t)strtoul(name + 21, NULL, 16);
    return *revision > 0;
}

struct numbers {
    uint64_t *numbers;
    size_t count;
    size_t capacity;
    unsigned base;
    const char *suffix;
    bool folders;
    enum esk_err (*other)(void *context, const char *name);
    void *context;
};

static enum esk_err visit_number(void *context, const char *name, bool is_folder) {
    struct numbers *numbers = context;
    uint64_t number;
    if (is_folder != numbers->folders ||
        !eski_name_parse(name, numbers->base, numbers->suffix, &number)) {
        return numbers->other ? numbers->other(numbers->context, name) : ESK_OK;
    }
    if (numbers->count == numbers->capacity) {
        numbers->capacity = numbers->capacity ? numbers->capacity * 2 : 16;
        numbers->numbers =
            esk_realloc(numbers->numbers, numbers->capacity * sizeof(*numbers->numbers));
    }
    /* Names come sorted and have one width: so do the numbers. */
    ESK_ASSERT(numbers->count == 0 || numbers->numbers[numbers->count - 1] < number);
    numbers->numbers[numbers->count++] = number;
    return ESK_OK;
}

enum esk_err eski_folder_numbers(struct esk_platform *platform, const char *folder, unsigned base,
                                 const char *suffix, bool folders, uint64_t **numbers,
                                 size_t *count,
                                 enum esk_err (*other)(void *context, const char *name),
                                 void *context, struct esk_error *error) {
    struct numbers found = {
        .base = base, .suffix = suffix, .folders = folders, .other = other, .context = context};
    enum esk_err err = esk_folder_list(platform, folder, visit_number, &found, error);
    if (err != ESK_OK && err != ESK_ERR_NOT_FOUND) {
        free(found.numbers);
        return err;
    }
    *numbers = found.numbers;
    *count = found.count;
    return ESK_OK;
}

static enum esk_err sync_result(enum esk_err err, const char *path, struct esk_error *error) {
    if (err == ESK_OK) {
        return ESK_OK;
    }
    esk_wrap(error, "sync %s", path);
    if (error) {
        error->code = ESK_ERR_IO;
    }
    return ESK_ERR_IO;
}

enum esk_err eski_file_sync(struct esk_file *file, const char *path, struct esk_error *error) {
    return sync_result(esk_file_sync(file, error), path, error);
}

enum esk_err eski_file_write_back(struct esk_file *file, const char *path, uint64_t position,
                                  uint64_t size, uint64_t lag, struct esk_error *error) {
    return sync_result(esk_file_write_back(file, position, size, lag, error), path, error);
}

enum esk_err eski_storage_folder_sync(struct esk_platform *platform, const char *path,
                                      struct esk_error *error) {
    if (ESK_MUTATED(NO_FOLDER_SYNC)) {
        return ESK_OK;
    }
    return sync_result(esk_folder_sync(platform, path, error), path, error);
}

enum esk_err eski_group_folder_make(const struct esk_storage *storage, uint64_t group_id,
                                    struct esk_error *error) {
    char *path = eski_group_path(storage, group_id);
    enum esk_err err = esk_folder_make(storage->platform, path, error);
    if (err == ESK_OK) {
        eski_pool_folder_made(storage->pool);
    }
    free(path);
    return err;
}

static enum esk_err write_beside(const struct esk_storage *storage, uint64_t group_id,
                                 const char *beside, const struct esk_slice *slices, size_t count,
                                 struct esk_file **file, struct esk_error *error) {
    unsigned flags = ESK_FILE_WRITE | ESK_FILE_CREATE;
    enum esk_err err = esk_file_open(storage->platform, beside, flags, file, error);
    if (err == ESK_ERR_NOT_FOUND) {
        err = eski_group_folder_make(storage, group_id, error);
        if (err == ESK_OK) {
            err = esk_file_open(storage->platform, beside, flags, file, error);
        }
    }
    if (err == ESK_OK) {
        err = esk_file_truncate(*file, 0, error);
    }
    if (err == ESK_OK) {
        err = esk_file_write(*file, slices, count, 0, error);
    }
    if (err != ESK_OK) {
        esk_file_close(*file);
        *file = NULL;
    }
    return err;
}

enum esk_err eski_file_replace(const struct esk_storage *storage, uint64_t group_id,
                               const char *path, const struct esk_slice *slices, size_t count,
                               struct esk_error *error) {
    struct esk_platform *platform = storage->platform;
    char *beside = esk_text_format("%s%s", path, ESKI_TEMPORARY_SUFFIX);
    struct esk_file *file = NULL;
    unsigned tries = 0;
    enum esk_err err;
    do {
        err = write_beside(storage, group_id, beside, slices, count, &file, error);
    } while (eski_room_again(storage, &tries, &err, error));
    if (err == ESK_OK) {
        err = ESK_MUTATED(CHECKPOINT_UNSYNCED_SNAPSHOT) ? ESK_OK
                                                        : eski_file_sync(file, beside, error);
        esk_file_close(file);
    }
    if (err == ESK_OK) {
        tries = 0;
        do {
            err = esk_path_rename(platform, beside, path, error);
        } while (eski_room_again(storage, &tries, &err, error));
    }
    if (err != ESK_OK) {
        esk_path_remove(platform, beside, NULL); /* else the next list or replace does it */
        esk_wrap(error, "write %s", path);
    }
    free(beside);
    return err;
}

enum esk_err eski_file_shrink(struct esk_platform *platform, struct esk_file *file, uint64_t from,
                              uint64_t to, struct esk_error *error) {
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && from > to) {
        from = from - to > SHRINK_STEP_BYTES ? from - SHRINK_STEP_BYTES : to;
        err = esk_file_truncate(file, from, error);
        if (from > to) {
            esk_pause(platform, SHRINK_PAUSE_NS);
        }
    }
    return err;
}

enum esk_err eski_storage_path_remove(struct esk_platform *platform, const char *path,
                                      struct esk_error *error) {
    enum esk_err err = esk_path_remove(platform, path, error);
    return err == ESK_ERR_NOT_FOUND ? ESK_OK : err;
}
