/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders. Every call may block and is for workers only, except esk_file_read with
 * ESK_READ_NOWAIT and esk_file_write_begin. Errors: ESK_ERR_IO, ESK_ERR_NO_SPACE (ENOSPC, EDQUOT,
 * EFBIG), ESK_ERR_NOT_FOUND, ESK_ERR_CONFLICT (exists, locked), ESK_ERR_PERMISSION (also
 * read-only), ESK_ERR_UNSUPPORTED (O_DIRECT refused); the text names the path and, where it
 * matters, the position. */
#ifndef ESK_PLATFORM_FILE_H
#define ESK_PLATFORM_FILE_H

#include "base/bytes.h"
#include "base/error.h"
#include "platform/executor.h"

#include <stdbool.h>

struct esk_platform;

enum esk_file_flags {
    ESK_FILE_READ = 1,
    ESK_FILE_WRITE = 2,
    ESK_FILE_CREATE = 4,    /* made when missing, mode 0644 */
    ESK_FILE_EXCLUSIVE = 8, /* with CREATE: ESK_ERR_CONFLICT when it exists */
    ESK_FILE_DIRECT = 16,   /* O_DIRECT: buffers, positions and sizes are multiples of 4096 */
    ESK_FILE_DSYNC = 32,    /* O_DSYNC: a write that returned is durable */
    ESK_FILE_PRIVATE = 64,  /* with CREATE: mode 0600 */
};

enum esk_read_flags {
    ESK_READ_NOWAIT = 1, /* only what is in the page cache: ESK_ERR_AGAIN otherwise; any thread */
};

#define ESK_FILE_ALIGNMENT 4096 /* bytes; what O_DIRECT needs on every disk sold today */

/* An open file. Different threads may read and write different ranges at once. Each open has its
 * own descriptor, so each learns of a failed write-back once (see sync). */
struct esk_file;

/* A write that a loop begins and hears of later. With its bytes it is the file's until `mail` runs
 * in the loop. */
struct esk_write {
    struct esk_mail mail;   /* the caller sets its `run` */
    struct esk_loop *loop;  /* the caller */
    struct esk_slice bytes; /* as the file's flags ask for */
    uint64_t position;
    /* ESK_OK: all bytes are written. ESK_ERR_AGAIN: nothing is known of any; a worker is to write
     * them. Else as esk_file_write. */
    enum esk_err result;
    struct esk_error error;
    struct esk_file *file; /* set by esk_file_write_begin */
};

struct esk_file_ops {
    /* As esk_file_read. */
    enum esk_err (*read)(struct esk_file *file, void *buffer, size_t size, uint64_t position,
                         unsigned flags, size_t *got, struct esk_error *error);
    /* May write less than asked, at least one byte. */
    enum esk_err (*write)(struct esk_file *file, const struct esk_slice *slices, size_t count,
                          uint64_t position, size_t *written, struct esk_error *error);
    bool (*write_begin)(struct esk_file *file, struct esk_write *write); /* NULL: never */
    enum esk_err (*write_back)(struct esk_file *file, uint64_t position, uint64_t size,
                               uint64_t lag, struct esk_error *error); /* NULL: nothing to do */
    enum esk_err (*sync)(struct esk_file *file, struct esk_error *error);
    enum esk_err (*truncate)(struct esk_file *file, uint64_t size, struct esk_error *error);
    enum esk_err (*allocate)(struct esk_file *file, uint64_t position, uint64_t size,
                             struct esk_error *error);
    enum esk_err (*size)(struct esk_file *file, uint64_t *size, struct esk_error *error);
    enum esk_err (*drop_cache)(struct esk_file *file, struct esk_error *error);
    enum esk_err (*lock)(struct esk_file *file, struct esk_error *error);
    void (*close)(struct esk_file *file);
    int (*descriptor)(const struct esk_file *file);
};
struct esk_file {
    const struct esk_file_ops *ops;
};

enum esk_err esk_file_open(struct esk_platform *platform, const char *path, unsigned flags,
                           struct esk_file **file, struct esk_error *error);
void esk_file_close(struct esk_file *file); /* NULL does nothing */

/* Reads up to size bytes; less only at the end of the file (or, with NOWAIT, where the cache ends:
 * then at least one). */
enum esk_err esk_file_read(struct esk_file *file, void *buffer, size_t size, uint64_t position,
                           unsigned flags, size_t *got, struct esk_error *error);
/* As read without flags, but ESK_ERR_CORRUPT when the file ends before size bytes. */
enum esk_err esk_file_read_exactly(struct esk_file *file, void *buffer, size_t size,
                                   uint64_t position, struct esk_error *error);
/* Writes all slices at the position; goes on after short writes. On an error part may be written.
 * At most 1024 slices. */
enum esk_err esk_file_write(struct esk_file *file, const struct esk_slice *slices, size_t count,
                            uint64_t position, struct esk_error *error);
/* Begins a write and does not wait: false when this file can't, or not now, and a worker has to
 * write. In the write's loop; of a DIRECT file, over bytes that were written before, since a file
 * that grows may wait for the file system. Begun writes end in any order. */
bool esk_file_write_begin(struct esk_file *file, struct esk_write *write);
/* Begins to bring size bytes at position, which are written, to the device, so that a later sync
 * finds little left to do. Then waits for the size bytes that lie `lag` before them, so that no
 * more than that stands in the device's queue; 0: does not wait. Not durable: that takes a sync. A
 * failure is one of a sync. */
enum esk_err esk_file_write_back(struct esk_file *file, uint64_t position, uint64_t size,
                                 uint64_t lag, struct esk_error *error);
/* fdatasync, and the size. A failure may be reported once and to one descriptor only: whoever gets
 * one ends the broker, nobody tries again. */
enum esk_err esk_file_sync(struct esk_file *file, struct esk_error *error);
enum esk_err esk_file_truncate(struct esk_file *file, uint64_t size, struct esk_error *error);
enum esk_err esk_file_allocate(struct esk_file *file, uint64_t position, uint64_t size,
                               struct esk_error *error); /* fallocate, size grows */
enum esk_err esk_file_size(struct esk_file *file, uint64_t *size, struct esk_error *error);
/* Forgets clean cached pages, so that the next read comes from the device. Sync first. */
enum esk_err esk_file_drop_cache(struct esk_file *file, struct esk_error *error);
/* An exclusive lock held until close: ESK_ERR_CONFLICT when another process has it. */
enum esk_err esk_file_lock(struct esk_file *file, struct esk_error *error);

/* A whole small file, at most limit_bytes (ESK_ERR_TOO_LARGE above it). *bytes is owned, free(). */
enum esk_err esk_file_load(struct esk_platform *platform, const char *path, size_t limit_bytes,
                           uint8_t **bytes, size_t *size, struct esk_error *error);
/* Writes beside the path, syncs, renames over it, syncs the folder: all or nothing after a crash.
 */
enum esk_err esk_file_store(struct esk_platform *platform, const char *path, struct esk_slice bytes,
                            struct esk_error *error);
/* The same for a secret: nobody but the process's user may ever read the file. */
enum esk_err esk_file_store_private(struct esk_platform *platform, const char *path,
                                    struct esk_slice bytes, struct esk_error *error);

enum esk_err esk_folder_make(struct esk_platform *platform, const char *path,
                             struct esk_error *error); /* fine when it exists; made 0750 */
/* Makes entries created, renamed or removed in the folder durable. */
enum esk_err esk_folder_sync(struct esk_platform *platform, const char *path,
                             struct esk_error *error);
/* Calls visit for each entry but . and .., sorted by name; stops at its first error. */
enum esk_err esk_folder_list(struct esk_platform *platform, const char *path,
                             enum esk_err (*visit)(void *context, const char *name, bool is_folder),
                             void *context, struct esk_error *error);
enum esk_err esk_path_rename(struct esk_platform *platform, const char *from, const char *to,
                             struct esk_error *error);
enum esk_err esk_path_remove(struct esk_platform *platform, const char *path,
                             struct esk_error *error); /* a file or an empty folder */
/* Free bytes for this process on the file system of path, and its size. */
enum esk_err esk_path_space(struct esk_platform *platform, const char *path, uint64_t *free_bytes,
                            uint64_t *total_bytes, struct esk_error *error);
/* syncfs on the file system of path: for a clean stop only, it stalls everything. */
enum esk_err esk_path_sync_all(struct esk_platform *platform, const char *path,
                               struct esk_error *error);

#endif
