/* SPDX-License-Identifier: Apache-2.0 */
/* The faulty platform: forwards to the one inside, after asking the rules. */
#include "runtime/faults.h"

#include "base/list.h"
#include "base/memory.h"
#include "runtime/faults_private.h"

#include <errno.h>
#include <stdlib.h>

#define STALL_NS 1000000 /* between two looks whether a stall is over */

struct faults {
    struct esk_platform platform;
    struct esk_platform *inner;
    struct eski_fault_rules rules;
};

struct faulty_file {
    struct esk_file file;
    struct esk_file *inner;
    struct faults *faults;
    bool direct;
    char path[];
};

static struct faults *faults_of(struct esk_platform *platform) {
    return ESK_CONTAINER(platform, struct faults, platform);
}

static struct faulty_file *faulty(const struct esk_file *file) {
    return ESK_CONTAINER((uintptr_t)file, struct faulty_file, file);
}

/* ESK_OK when the call is to go on. */
static enum esk_err ask(struct faults *faults, enum eski_fault_operation operation,
                        const char *what, const char *path, struct esk_error *error) {
    int number = eski_fault_decide(&faults->rules, operation, path);
    if (number <= 0) {
        return ESK_OK;
    }
    return esk_fail_errno(error, esk_err_from_errno(number), number, "%s %s (fault of a test)",
                          what, path);
}

static enum esk_err ask_file(struct faulty_file *f, enum eski_fault_operation operation,
                             const char *what, struct esk_error *error) {
    return ask(f->faults, operation, what, f->path, error);
}

static enum esk_err file_read(struct esk_file *file, void *buffer, size_t size, uint64_t position,
                              unsigned flags, size_t *got, struct esk_error *error) {
    struct faulty_file *f = faulty(file);
    enum esk_err err =
        flags & ESK_READ_NOWAIT ? ESK_OK : ask_file(f, ESKI_FAULT_READ, "read", error);
    return err ? err : f->inner->ops->read(f->inner, buffer, size, position, flags, got, error);
}

/* Writes half of the first slice that holds more than can be halved. */
static enum esk_err write_half(struct faulty_file *f, const struct esk_slice *slices, size_t count,
                               uint64_t position, size_t *written, struct esk_error *error) {
    size_t unit = f->direct ? ESK_FILE_ALIGNMENT : 1;
    struct esk_slice part = slices[0];
    for (size_t i = 0; i < count && part.size == 0; i++) {
        part = slices[i];
    }
    size_t half = part.size / 2 / unit * unit;
    part.size = half ? half : part.size;
    return f->inner->ops->write(f->inner, &part, 1, position, written, error);
}

static enum esk_err file_write(struct esk_file *file, const struct esk_slice *slices, size_t count,
                               uint64_t position, size_t *written, struct esk_error *error) {
    struct faulty_file *f = faulty(file);
    int what;
    while ((what = eski_fault_decide(&f->faults->rules, ESKI_FAULT_WRITE, f->path)) ==
           ESKI_FAULT_STALL) {
        esk_pause(f->faults->inner, STALL_NS);
    }
    if (what == ESKI_FAULT_SHORT) {
        return write_half(f, slices, count, position, written, error);
    }
    if (what == ESKI_FAULT_LOST) {
        write_half(f, slices, count, position, written, NULL);
        what = EIO;
    }
    if (what != 0) {
        return esk_fail_errno(error, esk_err_from_errno(what), what,
                              "write %s at position %llu (fault of a test)", f->path,
                              (unsigned long long)position);
    }
    return f->inner->ops->write(f->inner, slices, count, position, written, error);
}

/* What is not a plain failure is a worker's to meet, at a call of its own. */
static bool file_write_begin(struct esk_file *file, struct esk_write *write) {
    struct faulty_file *f = faulty(file);
    int what = eski_fault_decide(&f->faults->rules, ESKI_FAULT_WRITE, f->path);
    if (what == 0) {
        return esk_file_write_begin(f->inner, write);
    }
    if (what < 0) {
        return false;
    }
    write->result = esk_fail_errno(&write->error, esk_err_from_errno(what), what,
                                   "write %s at position %llu (fault of a test)", f->path,
                                   (unsigned long long)write->position);
    esk_post(&write->loop->executor, &write->mail);
    return true;
}

static enum esk_err file_write_back(struct esk_file *file, uint64_t position, uint64_t size,
                                    uint64_t lag, struct esk_error *error) {
    struct faulty_file *f = faulty(file);
    enum esk_err err = lag > 0 ? ask_file(f, ESKI_FAULT_SYNC, "write back", error) : ESK_OK;
    return err ? err : esk_file_write_back(f->inner, position, size, lag, error);
}

static enum esk_err file_sync(struct esk_file *file, struct esk_error *error) {
    struct faulty_file *f = faulty(file);
    enum esk_err err = ask_file(f, ESKI_FAULT_SYNC, "sync", error);
    return err ? err : f->inner->ops->sync(f->inner, error);
}

static enum esk_err file_truncate(struct esk_file *file, uint64_t size, struct esk_error *error) {
    struct faulty_file *f = faulty(file);
    enum esk_err err = ask_file(f, ESKI_FAULT_TRUNCATE, "truncate", error);
    return err ? err : f->inner->ops->truncate(f->inner, size, error);
}

static enum esk_err file_allocate(struct esk_file *file, uint64_t position, uint64_t size,
                                  struct esk_error *error) {
    struct faulty_file *f = faulty(file);
    enum esk_err err = ask_file(f, ESKI_FAULT_ALLOCATE, "allocate", error);
    return err ? err : f->inner->ops->allocate(f->inner, position, size, error);
}

static enum esk_err file_size(struct esk_file *file, uint64_t *size, struct esk_error *error) {
    struct faulty_file *f = faulty(file);
    return f->inner->ops->size(f->inner, size, error);
}

static enum esk_err file_drop_cache(struct esk_file *file, struct esk_error *error) {
    struct faulty_file *f = faulty(file);
    return f->inner->ops->drop_cache(f->inner, error);
}

static enum esk_err file_lock(struct esk_file *file, struct esk_error *error) {
    struct faulty_file *f = faulty(file);
    enum esk_err err = ask_file(f, ESKI_FAULT_LOCK, "lock", error);
    return err ? err : f->inner->ops->lock(f->inner, error);
}

static void file_close(struct esk_file *file) {
    struct faulty_file *f = faulty(file);
    esk_file_close(f->inner);
    free(f);
}

static int file_descriptor(const struct esk_file *file) {
    struct faulty_file *f = faulty(file);
    return f->inner->ops->descriptor(f->inner);
}

static const struct esk_file_ops file_ops = {
    .read = file_read,
    .write = file_write,
    .write_begin = file_write_begin,
    .write_back = file_write_back,
    .sync = file_sync,
    .truncate = file_truncate,
    .allocate = file_allocate,
    .size = file_size,
    .drop_cache = file_drop_cache,
    .lock = file_lock,
    .close = file_close,
    .descriptor = file_descriptor,
};

static enum esk_err file_open(struct esk_platform *platform, const char *path, unsigned flags,
                              struct esk_file **file, struct esk_error *error) {
    struct faults *faults = faults_of(platform);
    struct esk_file *inner = NULL;
    enum esk_err err = ask(faults, ESKI_FAULT_OPEN, "open", path, error);
    if (err == ESK_OK) {
        err = esk_file_open(faults->inner, path, flags, &inner, error);
    }
    if (err != ESK_OK) {
        return err;
    }
    size_t length = strlen(path);
    struct faulty_file *f = esk_alloc(sizeof(*f) + length + 1);
    f->file.ops = &file_ops;
    f->inner = inner;
    f->faults = faults;
    f->direct = flags & ESK_FILE_DIRECT;
    memcpy(f->path, path, length + 1);
    *file = &f->file;
    return ESK_OK;
}

static enum esk_err folder_make(struct esk_platform *platform, const char *path,
                                struct esk_error *error) {
    struct faults *faults = faults_of(platform);
    enum esk_err err = ask(faults, ESKI_FAULT_FOLDER, "make folder", path, error);
    return err ? err : esk_folder_make(faults->inner, path, error);
}

static enum esk_err folder_sync(struct esk_platform *platform, const char *path,
                                struct esk_error *error) {
    struct faults *faults = faults_of(platform);
    enum esk_err err = ask(faults, ESKI_FAULT_FOLDER, "sync folder", path, error);
    return err ? err : esk_folder_sync(faults->inner, path, error);
}

static enum esk_err folder_list(struct esk_platform *platform, const char *path,
                                enum esk_err (*visit)(void *context, const char *name,
                                                      bool is_folder),
                                void *context, struct esk_error *error) {
    struct faults *faults = faults_of(platform);
    enum esk_err err = ask(faults, ESKI_FAULT_FOLDER, "list", path, error);
    return err ? err : esk_folder_list(faults->inner, path, visit, context, error);
}

static enum esk_err path_rename(struct esk_platform *platform, const char *from, const char *to,
                                struct esk_error *error) {
    struct faults *faults = faults_of(platform);
    enum esk_err err = ask(faults, ESKI_FAULT_RENAME, "rename to", to, error);
    return err ? err : esk_path_rename(faults->inner, from, to, error);
}

static enum esk_err path_remove(struct esk_platform *platform, const char *path,
                                struct esk_error *error) {
    struct faults *faults = faults_of(platform);
    enum esk_err err = ask(faults, ESKI_FAULT_REMOVE, "remove", path, error);
    return err ? err : esk_path_remove(faults->inner, path, error);
}

static enum esk_err path_space(struct esk_platform *platform, const char *path,
                               uint64_t *free_bytes, uint64_t *total_bytes,
                               struct esk_error *error) {
    return esk_path_space(faults_of(platform)->inner, path, free_bytes, total_bytes, error);
}

static enum esk_err path_sync_all(struct esk_platform *platform, const char *path,
                                  struct esk_error *error) {
    struct faults *faults = faults_of(platform);
    enum esk_err err = ask(faults, ESKI_FAULT_SYNC, "sync the file system of", path, error);
    return err ? err : esk_path_sync_all(faults->inner, path, error);
}

static uint64_t monotonic_ns(struct esk_platform *platform) {
    return esk_monotonic_ns(faults_of(platform)->inner);
}

static int64_t wall_ms(struct esk_platform *platform) {
    return esk_wall_ms(faults_of(platform)->inner);
}

static void random_bytes(struct esk_platform *platform, void *bytes, size_t size) {
    esk_random_bytes(faults_of(platform)->inner, bytes, size);
}

static struct esk_executor *worker_create(struct esk_platform *platform, const char *name,
                                          unsigned threads) {
    return esk_worker_create(faults_of(platform)->inner, name, threads);
}

static void worker_destroy(struct esk_platform *platform, struct esk_executor *worker) {
    esk_worker_destroy(faults_of(platform)->inner, worker);
}

static void pause_ns(struct esk_platform *platform, uint64_t ns) {
    esk_pause(faults_of(platform)->inner, ns);
}

static const struct esk_platform_ops platform_ops = {
    .monotonic_ns = monotonic_ns,
    .wall_ms = wall_ms,
    .random_bytes = random_bytes,
    .worker_create = worker_create,
    .worker_destroy = worker_destroy,
    .pause = pause_ns,
    .file_open = file_open,
    .folder_make = folder_make,
    .folder_sync = folder_sync,
    .folder_list = folder_list,
    .path_rename = path_rename,
    .path_remove = path_remove,
    .path_space = path_space,
    .path_sync_all = path_sync_all,
};

enum esk_err esk_faults_create(struct esk_platform *inner, const char *rules,
                               struct esk_platform **platform, struct esk_error *error) {
    struct faults *faults = esk_alloc_zeroed(1, sizeof(*faults));
    faults->platform.ops = &platform_ops;
    faults->inner = inner;
    enum esk_err err = eski_fault_rules_parse(&faults->rules, rules, error);
    if (err != ESK_OK) {
        esk_faults_destroy(&faults->platform);
        return err;
    }
    *platform = &faults->platform;
    return ESK_OK;
}

void esk_faults_destroy(struct esk_platform *platform) {
    if (platform) {
        struct faults *faults = faults_of(platform);
        eski_fault_rules_fini(&faults->rules);
        free(faults);
    }
}
