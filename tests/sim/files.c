/* SPDX-License-Identifier: Apache-2.0 */
/* platform/file.h over the image: every call takes virtual time, may be the last one of the
 * process, and may fail as the world's faults say. */
#include "world_private.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"

#include <stdlib.h>

#include <errno.h>

struct sim_file {
    struct esk_file file;
    struct sim_world *world;
    struct sim_inode *inode;
    char *path;
    unsigned flags;
    uint64_t errors_seen;
    struct sim_file *next;
};

static struct sim_file *of(const struct esk_file *file) {
    return (struct sim_file *)(uintptr_t)file;
}

void simi_take_time(struct sim_world *world) {
    struct sim_random *random = &world->random;
    if (simi_fault(world, SIM_FAULT_STALL)) {
        simi_sleep(world, sim_between(random, 1, 5 * SIM_S));
    } else if (sim_one_in(random, 20)) {
        simi_sleep(world, sim_below(random, 5 * SIM_MS));
    } else {
        simi_sleep(world, sim_below(random, 200 * SIM_US));
    }
}

void simi_begin(struct sim_world *world, const char *what, const char *path, uint64_t a,
                uint64_t b) {
    simi_point(world);
    sim_trace(world, what, path, a, b);
}

enum esk_err simi_fail(struct esk_error *error, int number, const char *what, const char *path) {
    return esk_fail_errno(error, esk_err_from_errno(number), number, "%s %s", what, path);
}

/* --- reading and writing --- */

static enum esk_err file_read(struct esk_file *base, void *buffer, size_t size, uint64_t position,
                              unsigned flags, size_t *got, struct esk_error *error) {
    struct sim_file *file = of(base);
    struct sim_inode *inode = file->inode;
    ESK_ASSERT(file->flags & ESK_FILE_READ);
    *got = 0;
    if (flags & ESK_READ_NOWAIT) {
        simi_point(file->world);
        if (position >= inode->size) {
            return ESK_OK;
        }
        size_t most = size < inode->size - position ? size : (size_t)(inode->size - position);
        *got = sim_inode_cached(inode, position, most);
        if (*got == 0 && most > 0) {
            return esk_fail(error, ESK_ERR_AGAIN, "read %s: not in memory", file->path);
        }
        sim_inode_read(inode, buffer, position, *got);
        return ESK_OK;
    }
    simi_begin(file->world, "read", file->path, position, size);
    simi_take_time(file->world);
    if (simi_fault(file->world, SIM_FAULT_READ)) {
        return simi_fail(error, EIO, "read", file->path);
    }
    if (position >= inode->size) {
        return ESK_OK;
    }
    *got = size < inode->size - position ? size : (size_t)(inode->size - position);
    if (file->flags & ESK_FILE_DIRECT) {
        ESK_ASSERT(position % ESK_FILE_ALIGNMENT == 0 && size % ESK_FILE_ALIGNMENT == 0);
        ESK_ASSERT((uintptr_t)buffer % ESK_FILE_ALIGNMENT == 0);
        sim_inode_read_device(inode, buffer, position, *got);
    } else {
        sim_inode_read(inode, buffer, position, *got);
    }
    return ESK_OK;
}

/* How much of a write there is room for, in bytes from its start. */
static size_t fits(const struct sim_file *file, uint64_t position, size_t size) {
    uint64_t room = sim_image_room(&file->world->image);
    while (size > 0 && sim_inode_unallocated(file->inode, position, size) > room) {
        size_t end = (size_t)((position + size - 1) / SIM_PAGE * SIM_PAGE);
        size = end > position ? (size_t)(end - position) : 0;
    }
    return size;
}

static enum esk_err file_write(struct esk_file *base, const struct esk_slice *slices, size_t count,
                               uint64_t position, size_t *written, struct esk_error *error) {
    struct sim_file *file = of(base);
    struct sim_world *world = file->world;
    ESK_ASSERT(file->flags & ESK_FILE_WRITE);
    struct esk_buffer bytes;
    esk_buffer_init(&bytes);
    for (size_t i = 0; i < count; i++) {
        bool direct = file->flags & ESK_FILE_DIRECT;
        ESK_ASSERT(!direct || (uintptr_t)slices[i].data % ESK_FILE_ALIGNMENT == 0);
        ESK_ASSERT(!direct || slices[i].size % ESK_FILE_ALIGNMENT == 0);
        esk_buffer_append(&bytes, slices[i].data, slices[i].size);
    }
    simi_begin(world, "write", file->path, position, bytes.size);
    world->hash ^= esk_hash64(bytes.data, bytes.size);
    size_t size = bytes.size;
    int number = 0;
    if (simi_fault(world, SIM_FAULT_WRITE)) {
        number = EIO;
    } else if (simi_fault(world, SIM_FAULT_WRITE_NO_SPACE)) {
        number = ENOSPC;
    }
    size_t room = fits(file, position, size);
    if (room < size) {
        world->counts[SIM_COUNT_NO_ROOM]++;
        number = room ? number : ENOSPC;
        size = room;
    }
    size_t unit = file->flags & ESK_FILE_DIRECT ? ESK_FILE_ALIGNMENT : 1;
    if (size > unit && (number || simi_fault(world, SIM_FAULT_WRITE_SHORT))) {
        size = (size_t)sim_between(&world->random, 1, size / unit - 1) * unit;
    }
    if (size == 0 || (number && sim_one_in(&world->random, 2))) {
        size = 0;
        simi_take_time(world);
    } else if (file->flags & ESK_FILE_DIRECT) {
        struct sim_flight *flight = sim_flight_begin(&world->image, file->inode, bytes.data,
                                                     position, size, file->flags & ESK_FILE_DSYNC);
        simi_take_time(world);
        sim_flight_end(&world->image, flight);
    } else {
        sim_inode_write(&world->image, file->inode, bytes.data, position, size);
        simi_take_time(world);
    }
    esk_buffer_fini(&bytes);
    *written = size;
    if (number) {
        return simi_fail(error, number, "write", file->path);
    }
    sim_trace(world, "written", file->path, position, size);
    return ESK_OK;
}

/* The device at work on a write that a loop has begun. */
static void write_alone(void *argument) {
    struct esk_write *write = argument;
    struct sim_world *world = of(write->file)->world;
    size_t written = 0;
    write->result = ESK_ERR_AGAIN;
    if (!sim_one_in(&world->random, 8)) {
        write->result =
            file_write(write->file, &write->bytes, 1, write->position, &written, &write->error);
    }
    if (write->result == ESK_OK && written < write->bytes.size) {
        write->result = ESK_ERR_AGAIN;
    }
    esk_post(&write->loop->executor, &write->mail);
}

static bool file_write_begin(struct esk_file *base, struct esk_write *write) {
    struct sim_file *file = of(base);
    ESK_ASSERT(file->flags & ESK_FILE_DIRECT);
    simi_point(file->world);
    if (sim_one_in(&file->world->random, 8)) {
        return false;
    }
    simi_thread_create(file->world, NULL, "begun write", write_alone, write);
    return true;
}

/* --- sync --- */

void simi_sync_begin(struct sim_world *world, struct sim_inode *inode, enum esk_err failure) {
    bool failed = failure == ESK_OK;
    for (size_t page = 0; page < inode->page_count; page++) {
        if (!(inode->pages[page] & (SIM_DIRTY | SIM_VOLATILE))) {
            continue;
        }
        if ((inode->pages[page] & SIM_DIRTY) && failure &&
            (!failed || sim_one_in(&world->random, 2))) {
            sim_inode_write_back_failed(inode, page, failure);
            failed = true;
            continue;
        }
        sim_inode_write_back(inode, page);
        inode->pages[page] |= SIM_SYNCING;
    }
    if (!failed) { /* nothing was dirty: the flush of the device failed */
        inode->errors++;
        inode->error_code = failure;
    }
}

void simi_sync_end(struct sim_inode *inode, uint64_t size) {
    for (size_t page = 0; page < inode->page_count; page++) {
        if (inode->pages[page] & SIM_SYNCING) {
            sim_inode_flush(inode, page);
        }
    }
    if (inode->size == size) {
        sim_inode_flush_size(inode);
    } else if (inode->size > size && inode->floor == inode->media_size && size > inode->floor) {
        inode->media_size = inode->floor = size;
    }
}

enum esk_err simi_sync_fault(struct sim_world *world) {
    bool failed = simi_fault(world, SIM_FAULT_SYNC);
    bool no_space = !failed && simi_fault(world, SIM_FAULT_SYNC_NO_SPACE);
    if ((failed || no_space) && !sim_one_in(&world->random, 4)) {
        /* The loops hear of it late: other syncs end meanwhile. */
        world->loops_held_ns = world->now_ns + sim_between(&world->random, SIM_MS, 6 * SIM_MS);
    }
    return failed ? ESK_ERR_IO : no_space ? ESK_ERR_NO_SPACE : ESK_OK;
}

static enum esk_err file_sync(struct esk_file *base, struct esk_error *error) {
    struct sim_file *file = of(base);
    struct sim_inode *inode = file->inode;
    simi_begin(file->world, "sync", file->path, 0, 0);
    enum esk_err failure = simi_sync_fault(file->world);
    uint64_t size = inode->size;
    simi_sync_begin(file->world, inode, failure);
    simi_take_time(file->world);
    if (failure && sim_one_in(&file->world->random, 2)) {
        simi_sleep(file->world, sim_below(&file->world->random, SIM_MS)); /* it was tried again */
    }
    if (!failure) {
        simi_sync_end(inode, size);
    }
    if (inode->errors > file->errors_seen) {
        file->errors_seen = inode->errors_told = inode->errors;
        file->world->counts[SIM_COUNT_ERROR_TOLD]++;
        sim_trace(file->world, "sync failed", file->path, 0, 0);
        int number = inode->error_code == ESK_ERR_NO_SPACE ? ENOSPC : EIO;
        return simi_fail(error, number, "sync", file->path);
    }
    file->world->counts[SIM_COUNT_ERROR_UNTOLD] += inode->errors > 0;
    sim_trace(file->world, "synced", file->path, size, 0);
    return ESK_OK;
}

/* --- the rest of a file --- */

static enum esk_err file_truncate(struct esk_file *base, uint64_t size, struct esk_error *error) {
    struct sim_file *file = of(base);
    (void)error;
    simi_begin(file->world, "truncate", file->path, size, 0);
    sim_inode_truncate(&file->world->image, file->inode, size);
    return ESK_OK;
}

static enum esk_err file_allocate(struct esk_file *base, uint64_t position, uint64_t size,
                                  struct esk_error *error) {
    struct sim_file *file = of(base);
    simi_begin(file->world, "allocate", file->path, position, size);
    simi_take_time(file->world);
    uint64_t need = sim_inode_unallocated(file->inode, position, size);
    if (simi_fault(file->world, SIM_FAULT_WRITE_NO_SPACE) ||
        need > sim_image_room(&file->world->image)) {
        file->world->counts[SIM_COUNT_NO_ROOM]++;
        return simi_fail(error, ENOSPC, "allocate", file->path);
    }
    sim_inode_allocate(&file->world->image, file->inode, position, size);
    return ESK_OK;
}

static enum esk_err file_size(struct esk_file *base, uint64_t *size, struct esk_error *error) {
    (void)error;
    simi_point(of(base)->world);
    *size = of(base)->inode->size;
    return ESK_OK;
}

static enum esk_err file_drop_cache(struct esk_file *base, struct esk_error *error) {
    (void)error;
    simi_begin(of(base)->world, "drop cache", of(base)->path, 0, 0);
    sim_inode_drop(of(base)->inode);
    return ESK_OK;
}

static enum esk_err file_lock(struct esk_file *base, struct esk_error *error) {
    struct sim_file *file = of(base);
    simi_point(file->world);
    if (file->inode->locked_by && file->inode->locked_by != file) {
        return esk_fail(error, ESK_ERR_CONFLICT, "lock %s: another process has it", file->path);
    }
    file->inode->locked_by = file;
    return ESK_OK;
}

static int file_descriptor(const struct esk_file *base) {
    (void)base;
    return -1; /* nothing here has one */
}

static void file_free(struct sim_file *file) {
    struct sim_file **at = &file->world->files;
    while (*at != file) {
        at = &(*at)->next;
    }
    *at = file->next;
    free(file->path);
    free(file);
}

static void file_close(struct esk_file *base) {
    struct sim_file *file = of(base);
    simi_point(file->world);
    struct sim_inode *inode = file->inode;
    if (inode->locked_by == file) {
        inode->locked_by = NULL;
    }
    inode->opens--;
    sim_inode_unlinked(&file->world->image, inode);
    file_free(file);
}

void simi_files_forget(struct sim_world *world) {
    while (world->files) {
        file_free(world->files);
    }
}

static const struct esk_file_ops file_ops = {
    .read = file_read,
    .write = file_write,
    .write_begin = file_write_begin,
    .sync = file_sync,
    .truncate = file_truncate,
    .allocate = file_allocate,
    .size = file_size,
    .drop_cache = file_drop_cache,
    .lock = file_lock,
    .close = file_close,
    .descriptor = file_descriptor,
};

enum esk_err simi_file_open(struct esk_platform *platform, const char *path, unsigned flags,
                            struct esk_file **result, struct esk_error *error) {
    struct sim_world *world = simi_world_of(platform);
    simi_begin(world, "open", path, flags, 0);
    if ((flags & ESK_FILE_DIRECT) && world->direct_refused) {
        return esk_fail(error, ESK_ERR_UNSUPPORTED, "open %s: no O_DIRECT", path);
    }
    struct sim_inode *folder;
    const char *name;
    struct sim_inode *inode = sim_image_find(&world->image, path, &folder, &name);
    if (inode && (flags & ESK_FILE_EXCLUSIVE)) {
        return simi_fail(error, EEXIST, "open", path);
    }
    if (inode && inode->is_folder) {
        return simi_fail(error, EISDIR, "open", path);
    }
    if (!inode && (!folder || !(flags & ESK_FILE_CREATE))) {
        return simi_fail(error, ENOENT, "open", path);
    }
    if (!inode) {
        if (simi_fault(world, SIM_FAULT_FOLDER)) {
            return simi_fail(error, EIO, "create", path);
        }
        inode = sim_inode_create(&world->image, false);
        simi_assign(world, folder, name, inode);
    }
    struct sim_file *file = esk_alloc_zeroed(1, sizeof(*file));
    *file = (struct sim_file){{&file_ops},        world,       inode, esk_text_copy(path), flags,
                              inode->errors_told, world->files};
    world->files = file;
    inode->opens++;
    *result = &file->file;
    return ESK_OK;
}
