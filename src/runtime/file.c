/* SPDX-License-Identifier: Apache-2.0 */
/* Files on system calls. A file is a descriptor, its flags and its path for messages; interrupted
 * calls are made again, every other failure is reported once and never tried again here. */
#include "base/assert.h"
#include "base/memory.h"
#include "runtime/aio.h"
#include "runtime/runtime_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define WRITE_SLICES_MAX 256 /* of one call: 4 KiB of stack; a write may be short */

struct runtime_file {
    struct esk_file file;
    int fd;
    unsigned flags;
    char path[];
};

static struct runtime_file *runtime_file(const struct esk_file *file) {
    return (struct runtime_file *)(uintptr_t)file;
}

static enum esk_err fail(const struct runtime_file *f, const char *what, int number,
                         struct esk_error *error) {
    return esk_fail_errno(error, esk_err_from_errno(number), number, "%s %s", what, f->path);
}

static enum esk_err fail_at(const struct runtime_file *f, const char *what, uint64_t position,
                            int number, struct esk_error *error) {
    /* Where direct access is refused only at the first transfer, it is refused with EINVAL. */
    bool refused = number == EINVAL && (f->flags & ESK_FILE_DIRECT);
    enum esk_err err = refused ? ESK_ERR_UNSUPPORTED : esk_err_from_errno(number);
    return esk_fail_errno(error, err, number, "%s %s at position %llu", what, f->path,
                          (unsigned long long)position);
}

static enum esk_err read_cached(struct runtime_file *f, void *buffer, size_t size,
                                uint64_t position, size_t *got, struct esk_error *error) {
    struct iovec iov = {buffer, size};
    ssize_t count;
    do {
        count = preadv2(f->fd, &iov, 1, (off_t)position, RWF_NOWAIT);
    } while (count < 0 && errno == EINTR);
    if (count >= 0) {
        *got = (size_t)count;
        return ESK_OK;
    }
    if (errno == EAGAIN || errno == EOPNOTSUPP) { /* a file system may not know RWF_NOWAIT */
        return ESK_ERR_AGAIN; /* without a text: this is no failure, and frequent */
    }
    return fail_at(f, "read", position, errno, error);
}

static enum esk_err file_read(struct esk_file *file, void *buffer, size_t size, uint64_t position,
                              unsigned flags, size_t *got, struct esk_error *error) {
    struct runtime_file *f = runtime_file(file);
    *got = 0;
    if (flags & ESK_READ_NOWAIT) {
        return read_cached(f, buffer, size, position, got, error);
    }
    while (*got < size) {
        ssize_t count =
            pread(f->fd, (uint8_t *)buffer + *got, size - *got, (off_t)(position + *got));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return fail_at(f, "read", position + *got, errno, error);
        }
        *got += (size_t)count;
        /* A direct read that ends within a block has met the end, and could not go on from there.
         */
        if (count == 0 || ((f->flags & ESK_FILE_DIRECT) && count % ESK_FILE_ALIGNMENT != 0)) {
            break;
        }
    }
    return ESK_OK;
}

static enum esk_err file_write(struct esk_file *file, const struct esk_slice *slices, size_t count,
                               uint64_t position, size_t *written, struct esk_error *error) {
    struct runtime_file *f = runtime_file(file);
    struct iovec iov[WRITE_SLICES_MAX];
    int used = 0;
    for (size_t i = 0; i < count && used < WRITE_SLICES_MAX; i++) {
        if (slices[i].size > 0) {
            iov[used++] = (struct iovec){(void *)(uintptr_t)slices[i].data, slices[i].size};
        }
    }
    ssize_t done;
    do {
        done = pwritev(f->fd, iov, used, (off_t)position);
    } while (done < 0 && errno == EINTR);
    if (done <= 0) {
        return fail_at(f, "write", position, done < 0 ? errno : EIO, error);
    }
    *written = (size_t)done;
    return ESK_OK;
}

static bool file_write_begin(struct esk_file *file, struct esk_write *write) {
    struct runtime_file *f = runtime_file(file);
    ESK_ASSERT(f->flags & ESK_FILE_DIRECT);
    return eski_aio_write(eski_loop_aio(write->loop), f->fd, write);
}

/* What would have waited, is refused in this form or was written in part is not judged here: the
 * worker's write shows what is the matter, if anything is. */
void eski_file_write_ended(struct esk_write *write, int64_t result) {
    const struct runtime_file *f = runtime_file(write->file);
    if (result == (int64_t)write->bytes.size) {
        write->result = ESK_OK;
    } else if (result >= 0 || result == -EAGAIN || result == -EINTR || result == -EINVAL ||
               result == -EOPNOTSUPP) {
        write->result = ESK_ERR_AGAIN;
    } else {
        write->result = fail_at(f, "write", write->position, (int)-result, &write->error);
    }
}

/* A file system may not know sync_file_range; the sync that follows then does it all. What fails
 * without waiting, that sync is told; a wait would take it away from it. */
static enum esk_err file_write_back(struct esk_file *file, uint64_t position, uint64_t size,
                                    uint64_t lag, struct esk_error *error) {
    struct runtime_file *f = runtime_file(file);
    (void)sync_file_range(f->fd, (off_t)position, (off_t)size, SYNC_FILE_RANGE_WRITE);
    if (lag == 0) {
        return ESK_OK;
    }
    int failed;
    do {
        failed = sync_file_range(f->fd, (off_t)(position - lag), (off_t)size,
                                 SYNC_FILE_RANGE_WAIT_BEFORE);
    } while (failed && errno == EINTR);
    bool unknown = failed && (errno == EINVAL || errno == ENOSYS || errno == ESPIPE);
    return failed && !unknown ? fail_at(f, "write back", position - lag, errno, error) : ESK_OK;
}

static enum esk_err file_sync(struct esk_file *file, struct esk_error *error) {
    struct runtime_file *f = runtime_file(file);
    int failed;
    do {
        failed = fdatasync(f->fd);
    } while (failed && errno == EINTR);
    return failed ? fail(f, "sync", errno, error) : ESK_OK;
}

static enum esk_err file_truncate(struct esk_file *file, uint64_t size, struct esk_error *error) {
    struct runtime_file *f = runtime_file(file);
    int failed;
    do {
        failed = ftruncate(f->fd, (off_t)size);
    } while (failed && errno == EINTR);
    return failed ? fail(f, "truncate", errno, error) : ESK_OK;
}

static enum esk_err file_allocate(struct esk_file *file, uint64_t position, uint64_t size,
                                  struct esk_error *error) {
    struct runtime_file *f = runtime_file(file);
    int failed;
    do {
        failed = fallocate(f->fd, 0, (off_t)position, (off_t)size);
    } while (failed && errno == EINTR);
    return failed ? fail_at(f, "allocate", position, errno, error) : ESK_OK;
}

static enum esk_err file_size(struct esk_file *file, uint64_t *size, struct esk_error *error) {
    struct runtime_file *f = runtime_file(file);
    struct stat status;
    if (fstat(f->fd, &status) != 0) {
        return fail(f, "size of", errno, error);
    }
    *size = (uint64_t)status.st_size;
    return ESK_OK;
}

static enum esk_err file_drop_cache(struct esk_file *file, struct esk_error *error) {
    struct runtime_file *f = runtime_file(file);
    int number = posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    return number ? fail(f, "drop the cache of", number, error) : ESK_OK;
}

static enum esk_err file_lock(struct esk_file *file, struct esk_error *error) {
    struct runtime_file *f = runtime_file(file);
    int failed;
    do {
        failed = flock(f->fd, LOCK_EX | LOCK_NB);
    } while (failed && errno == EINTR);
    if (failed && errno == EWOULDBLOCK) {
        return esk_fail(error, ESK_ERR_CONFLICT, "lock %s: in use by another process", f->path);
    }
    return failed ? fail(f, "lock", errno, error) : ESK_OK;
}

static void file_close(struct esk_file *file) {
    struct runtime_file *f = runtime_file(file);
    close(f->fd); /* what matters was synced before */
    free(f);
}

static int file_descriptor(const struct esk_file *file) {
    return runtime_file(file)->fd;
}

static const struct esk_file_ops ops = {
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

static int open_flags(unsigned flags) {
    bool reads = flags & ESK_FILE_READ;
    bool writes = flags & ESK_FILE_WRITE;
    int result = O_CLOEXEC | (reads && writes ? O_RDWR : writes ? O_WRONLY : O_RDONLY);
    result |= flags & ESK_FILE_CREATE ? O_CREAT : 0;
    result |= flags & ESK_FILE_EXCLUSIVE ? O_EXCL : 0;
    result |= flags & ESK_FILE_DIRECT ? O_DIRECT : 0;
    result |= flags & ESK_FILE_DSYNC ? O_DSYNC : 0;
    return result;
}

enum esk_err eski_file_open(struct esk_platform *platform, const char *path, unsigned flags,
                            struct esk_file **file, struct esk_error *error) {
    (void)platform;
    int fd;
    do {
        fd = open(path, open_flags(flags), flags & ESK_FILE_PRIVATE ? 0600 : 0644);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        bool refused = errno == EINVAL && (flags & ESK_FILE_DIRECT);
        enum esk_err err = refused ? ESK_ERR_UNSUPPORTED : esk_err_from_errno(errno);
        return esk_fail_errno(error, err, errno, "open %s", path);
    }
    size_t length = strlen(path);
    struct runtime_file *f = esk_alloc(sizeof(*f) + length + 1);
    f->file.ops = &ops;
    f->fd = fd;
    f->flags = flags;
    memcpy(f->path, path, length + 1);
    *file = &f->file;
    return ESK_OK;
}
