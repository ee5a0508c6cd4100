/* SPDX-License-Identifier: Apache-2.0 */
/* Folders and paths on system calls. Nothing here keeps state. */
#include "base/memory.h"
#include "runtime/runtime_private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static enum esk_err fail(const char *what, const char *path, int number, struct esk_error *error) {
    return esk_fail_errno(error, esk_err_from_errno(number), number, "%s %s", what, path);
}

enum esk_err eski_runtime_folder_make(struct esk_platform *platform, const char *path,
                                      struct esk_error *error) {
    (void)platform;
    if (mkdir(path, 0750) == 0) {
        return ESK_OK;
    }
    int number = errno;
    struct stat status;
    if (number == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
        return ESK_OK;
    }
    return fail("make folder", path, number, error);
}

/* Opens the path for one call that wants a descriptor. */
static enum esk_err with_descriptor(const char *what, const char *path, int flags, int call(int fd),
                                    struct esk_error *error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    if (fd < 0) {
        return fail(what, path, errno, error);
    }
    int failed;
    do {
        failed = call(fd);
    } while (failed && errno == EINTR);
    int number = errno;
    close(fd);
    return failed ? fail(what, path, number, error) : ESK_OK;
}

enum esk_err eski_runtime_folder_sync(struct esk_platform *platform, const char *path,
                                      struct esk_error *error) {
    (void)platform;
    return with_descriptor("sync folder", path, O_DIRECTORY, fsync, error);
}

enum esk_err eski_runtime_path_sync_all(struct esk_platform *platform, const char *path,
                                        struct esk_error *error) {
    (void)platform;
    return with_descriptor("sync the file system of", path, 0, syncfs, error);
}

struct entry {
    char *name;
    bool is_folder;
};

struct entries {
    struct entry *items;
    size_t count;
    size_t capacity;
};

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static bool entry_is_folder(DIR *folder, const struct dirent *found) {
    if (found->d_type != DT_UNKNOWN) {
        return found->d_type == DT_DIR;
    }
    struct stat status;
    return fstatat(dirfd(folder), found->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISDIR(status.st_mode);
}

static void add_entry(struct entries *entries, DIR *folder, const struct dirent *found) {
    if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0) {
        return;
    }
    if (entries->count == entries->capacity) {
        entries->capacity = entries->capacity ? entries->capacity * 2 : 32;
        entries->items = esk_realloc(entries->items, entries->capacity * sizeof(struct entry));
    }
    entries->items[entries->count++] =
        (struct entry){esk_text_copy(found->d_name), entry_is_folder(folder, found)};
}

/* Reads all names first, so that the visitor may change the folder. */
static enum esk_err read_entries(const char *path, struct entries *entries,
                                 struct esk_error *error) {
    DIR *folder = opendir(path);
    if (!folder) {
        return fail("list", path, errno, error);
    }
    errno = 0;
    for (struct dirent *found; (found = readdir(folder)); errno = 0) {
        add_entry(entries, folder, found);
    }
    int number = errno;
    closedir(folder);
    return number ? fail("list", path, number, error) : ESK_OK;
}

enum esk_err eski_runtime_folder_list(struct esk_platform *platform, const char *path,
                                      enum esk_err (*visit)(void *context, const char *name,
                                                            bool is_folder),
                                      void *context, struct esk_error *error) {
    (void)platform;
    struct entries entries = {0};
    enum esk_err err = read_entries(path, &entries, error);
    if (err == ESK_OK && entries.count > 0) {
        qsort(entries.items, entries.count, sizeof(struct entry), by_name);
    }
    for (size_t i = 0; i < entries.count; i++) {
        if (err == ESK_OK) {
            err = visit(context, entries.items[i].name, entries.items[i].is_folder);
        }
        free(entries.items[i].name);
    }
    free(entries.items);
    return err;
}

enum esk_err eski_runtime_path_rename(struct esk_platform *platform, const char *from,
                                      const char *to, struct esk_error *error) {
    (void)platform;
    if (rename(from, to) == 0) {
        return ESK_OK;
    }
    int number = errno;
    return esk_fail_errno(error, esk_err_from_errno(number), number, "rename %s to %s", from, to);
}

enum esk_err eski_runtime_path_remove(struct esk_platform *platform, const char *path,
                                      struct esk_error *error) {
    (void)platform;
    return remove(path) == 0 ? ESK_OK : fail("remove", path, errno, error);
}

enum esk_err eski_runtime_path_space(struct esk_platform *platform, const char *path,
                                     uint64_t *free_bytes, uint64_t *total_bytes,
                                     struct esk_error *error) {
    (void)platform;
    struct statvfs status;
    int failed;
    do {
        failed = statvfs(path, &status);
    } while (failed && errno == EINTR);
    if (failed) {
        return fail("space of", path, errno, error);
    }
    *free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
    *total_bytes = (uint64_t)status.f_blocks * status.f_frsize;
    return ESK_OK;
}
