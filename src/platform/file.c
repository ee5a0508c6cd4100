/* SPDX-License-Identifier: Apache-2.0 */
/* What all platforms share above their tables of operations: the loop over short writes, whole
 * small files, and the store that is all or nothing. Nothing here keeps state. */
#include "platform/file.h"

#include "base/assert.h"
#include "base/memory.h"
#include "platform/platform.h"

#include <stdlib.h>

#define SLICES_MAX 1024 /* IOV_MAX of Linux */

enum esk_err esk_file_open(struct esk_platform *platform, const char *path, unsigned flags,
                           struct esk_file **file, struct esk_error *error) {
    ESK_ASSERT(flags & (ESK_FILE_READ | ESK_FILE_WRITE));
    return platform->ops->file_open(platform, path, flags, file, error);
}

void esk_file_close(struct esk_file *file) {
    if (file) {
        file->ops->close(file);
    }
}

enum esk_err esk_file_read(struct esk_file *file, void *buffer, size_t size, uint64_t position,
                           unsigned flags, size_t *got, struct esk_error *error) {
    return file->ops->read(file, buffer, size, position, flags, got, error);
}

enum esk_err esk_file_read_exactly(struct esk_file *file, void *buffer, size_t size,
                                   uint64_t position, struct esk_error *error) {
    size_t got = 0;
    enum esk_err err = esk_file_read(file, buffer, size, position, 0, &got, error);
    if (err == ESK_OK && got < size) {
        return esk_fail(error, ESK_ERR_CORRUPT,
                        "the file ends early: %zu of %zu bytes at position %llu", got, size,
                        (unsigned long long)position);
    }
    return err;
}

/* Writes the slices from first on, `skip` bytes into the first of them. */
static enum esk_err write_from(struct esk_file *file, const struct esk_slice *slices, size_t count,
                               size_t skip, uint64_t position, size_t *written,
                               struct esk_error *error) {
    if (skip == 0) {
        return file->ops->write(file, slices, count, position, written, error);
    }
    /* The rest of a slice that was written in part goes alone: this is rare. */
    struct esk_slice rest = {slices->data + skip, slices->size - skip};
    return file->ops->write(file, &rest, 1, position, written, error);
}

enum esk_err esk_file_write(struct esk_file *file, const struct esk_slice *slices, size_t count,
                            uint64_t position, struct esk_error *error) {
    ESK_ASSERT(count <= SLICES_MAX);
    size_t first = 0;
    size_t skip = 0;
    for (;;) {
        while (first < count && slices[first].size == skip) {
            first++;
            skip = 0;
        }
        if (first == count) {
            return ESK_OK;
        }
        size_t written = 0;
        enum esk_err err =
            write_from(file, slices + first, count - first, skip, position, &written, error);
        if (err != ESK_OK) {
            return err;
        }
        ESK_ASSERT(written > 0);
        position += written;
        while (written > 0) {
            ESK_ASSERT(first < count);
            size_t left = slices[first].size - skip;
            size_t taken = written < left ? written : left;
            skip += taken;
            written -= taken;
            if (skip == slices[first].size) {
                first++;
                skip = 0;
            }
        }
    }
}

bool esk_file_write_begin(struct esk_file *file, struct esk_write *write) {
    write->file = file;
    return file->ops->write_begin && file->ops->write_begin(file, write);
}

enum esk_err esk_file_write_back(struct esk_file *file, uint64_t position, uint64_t size,
                                 uint64_t lag, struct esk_error *error) {
    ESK_ASSERT(lag <= position);
    return file->ops->write_back ? file->ops->write_back(file, position, size, lag, error) : ESK_OK;
}

enum esk_err esk_file_sync(struct esk_file *file, struct esk_error *error) {
    return file->ops->sync(file, error);
}

enum esk_err esk_file_truncate(struct esk_file *file, uint64_t size, struct esk_error *error) {
    return file->ops->truncate(file, size, error);
}

enum esk_err esk_file_allocate(struct esk_file *file, uint64_t position, uint64_t size,
                               struct esk_error *error) {
    return file->ops->allocate(file, position, size, error);
}

enum esk_err esk_file_size(struct esk_file *file, uint64_t *size, struct esk_error *error) {
    return file->ops->size(file, size, error);
}

enum esk_err esk_file_drop_cache(struct esk_file *file, struct esk_error *error) {
    return file->ops->drop_cache(file, error);
}

enum esk_err esk_file_lock(struct esk_file *file, struct esk_error *error) {
    return file->ops->lock(file, error);
}

enum esk_err esk_file_load(struct esk_platform *platform, const char *path, size_t limit_bytes,
                           uint8_t **bytes, size_t *size, struct esk_error *error) {
    struct esk_file *file = NULL;
    enum esk_err err = esk_file_open(platform, path, ESK_FILE_READ, &file, error);
    if (err != ESK_OK) {
        return err;
    }
    uint8_t *memory = NULL;
    uint64_t file_size = 0;
    err = esk_file_size(file, &file_size, error);
    if (err != ESK_OK) {
        goto out;
    }
    if (file_size > limit_bytes) {
        err = esk_fail(error, ESK_ERR_TOO_LARGE, "%s: %llu bytes, more than the %zu allowed", path,
                       (unsigned long long)file_size, limit_bytes);
        goto out;
    }
    memory = esk_alloc((size_t)file_size);
    err = esk_file_read_exactly(file, memory, (size_t)file_size, 0, error);
    if (err != ESK_OK) {
        esk_wrap(error, "%s", path);
        goto out;
    }
    *bytes = memory;
    *size = (size_t)file_size;
    memory = NULL;
out:
    free(memory);
    esk_file_close(file);
    return err;
}

/* The folder of a path, owned. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) {
        return esk_text_copy(".");
    }
    if (slash == path) {
        return esk_text_copy("/");
    }
    return esk_text_format("%.*s", (int)(slash - path), path);
}

static enum esk_err write_whole(struct esk_platform *platform, const char *path,
                                struct esk_slice bytes, unsigned flags, struct esk_error *error) {
    struct esk_file *file = NULL;
    enum esk_err err =
        esk_file_open(platform, path, ESK_FILE_WRITE | ESK_FILE_CREATE | flags, &file, error);
    if (err != ESK_OK) {
        return err;
    }
    err = esk_file_truncate(file, 0, error);
    if (err == ESK_OK) {
        err = esk_file_write(file, &bytes, 1, 0, error);
    }
    if (err == ESK_OK) {
        err = esk_file_sync(file, error);
    }
    esk_file_close(file);
    return err;
}

static enum esk_err store(struct esk_platform *platform, const char *path, struct esk_slice bytes,
                          unsigned flags, struct esk_error *error) {
    char *folder = folder_of(path);
    char *beside = esk_text_format("%s.new", path);
    enum esk_err err = write_whole(platform, beside, bytes, flags, error);
    if (err == ESK_OK) {
        err = esk_path_rename(platform, beside, path, error);
    }
    if (err != ESK_OK) {
        esk_path_remove(platform, beside, NULL); /* the next store would overwrite it as well */
    } else {
        err = esk_folder_sync(platform, folder, error);
    }
    free(beside);
    free(folder);
    return err;
}

enum esk_err esk_file_store(struct esk_platform *platform, const char *path, struct esk_slice bytes,
                            struct esk_error *error) {
    return store(platform, path, bytes, 0, error);
}

enum esk_err esk_file_store_private(struct esk_platform *platform, const char *path,
                                    struct esk_slice bytes, struct esk_error *error) {
    char *beside = esk_text_format("%s.new", path);
    enum esk_err err = esk_path_remove(platform, beside, error); /* one that others may read */
    free(beside);
    return err == ESK_OK || err == ESK_ERR_NOT_FOUND
               ? store(platform, path, bytes, ESK_FILE_EXCLUSIVE | ESK_FILE_PRIVATE, error)
               : err;
}

enum esk_err esk_folder_make(struct esk_platform *platform, const char *path,
                             struct esk_error *error) {
    return platform->ops->folder_make(platform, path, error);
}

enum esk_err esk_folder_sync(struct esk_platform *platform, const char *path,
                             struct esk_error *error) {
    return platform->ops->folder_sync(platform, path, error);
}

enum esk_err esk_folder_list(struct esk_platform *platform, const char *path,
                             enum esk_err (*visit)(void *context, const char *name, bool is_folder),
                             void *context, struct esk_error *error) {
    return platform->ops->folder_list(platform, path, visit, context, error);
}

enum esk_err esk_path_rename(struct esk_platform *platform, const char *from, const char *to,
                             struct esk_error *error) {
    return platform->ops->path_rename(platform, from, to, error);
}

enum esk_err esk_path_remove(struct esk_platform *platform, const char *path,
                             struct esk_error *error) {
    return platform->ops->path_remove(platform, path, error);
}

enum esk_err esk_path_space(struct esk_platform *platform, const char *path, uint64_t *free_bytes,
                            uint64_t *total_bytes, struct esk_error *error) {
    return platform->ops->path_space(platform, path, free_bytes, total_bytes, error);
}

enum esk_err esk_path_sync_all(struct esk_platform *platform, const char *path,
                               struct esk_error *error) {
    return platform->ops->path_sync_all(platform, path, error);
}
