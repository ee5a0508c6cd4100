/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of the platform: folders and names, clocks and chance, and the table of it all. */
#include "world_private.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

static char *leaf_copy(const char *name) {
    char *leaf = esk_text_copy(name);
    leaf[strcspn(leaf, "/")] = '\0';
    return leaf;
}

void simi_assign(struct sim_world *world, struct sim_inode *folder, const char *name,
                 struct sim_inode *inode) {
    char *leaf = leaf_copy(name);
    sim_folder_change(&world->image, folder, &(struct sim_entry){leaf, inode}, 1, false);
    free(leaf);
}

static enum esk_err folder_make(struct esk_platform *platform, const char *path,
                                struct esk_error *error) {
    struct sim_world *world = simi_world_of(platform);
    simi_begin(world, "make folder", path, 0, 0);
    struct sim_inode *folder;
    const char *name;
    struct sim_inode *inode = sim_image_find(&world->image, path, &folder, &name);
    if (inode) {
        return inode->is_folder ? ESK_OK : simi_fail(error, ENOTDIR, "make folder", path);
    }
    if (!folder || simi_fault(world, SIM_FAULT_FOLDER)) {
        return simi_fail(error, folder ? EIO : ENOENT, "make folder", path);
    }
    simi_assign(world, folder, name, sim_inode_create(&world->image, true));
    return ESK_OK;
}

static enum esk_err folder_sync(struct esk_platform *platform, const char *path,
                                struct esk_error *error) {
    struct sim_world *world = simi_world_of(platform);
    simi_begin(world, "sync folder", path, 0, 0);
    struct sim_inode *folder = sim_image_find(&world->image, path, NULL, NULL);
    if (!folder || !folder->is_folder) {
        return simi_fail(error, folder ? ENOTDIR : ENOENT, "sync folder", path);
    }
    simi_take_time(world);
    if (simi_fault(world, SIM_FAULT_FOLDER)) {
        return simi_fail(error, EIO, "sync folder", path);
    }
    sim_folder_flush(&world->image, folder);
    return ESK_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct sim_entry *)a)->name, ((const struct sim_entry *)b)->name);
}

static enum esk_err folder_list(struct esk_platform *platform, const char *path,
                                enum esk_err (*visit)(void *context, const char *name,
                                                      bool is_folder),
                                void *context, struct esk_error *error) {
    struct sim_world *world = simi_world_of(platform);
    simi_begin(world, "list folder", path, 0, 0);
    struct sim_inode *folder = sim_image_find(&world->image, path, NULL, NULL);
    if (!folder || !folder->is_folder) {
        return simi_fail(error, folder ? ENOTDIR : ENOENT, "list folder", path);
    }
    size_t count = folder->entries.count;
    struct sim_entry *items = esk_alloc(count * sizeof(*items));
    for (size_t i = 0; i < count; i++) {
        items[i] = folder->entries.items[i];
        items[i].name = esk_text_copy(items[i].name);
    }
    qsort(items, count, sizeof(*items), by_name);
    enum esk_err err = ESK_OK;
    for (size_t i = 0; i < count && !err; i++) {
        err = visit(context, items[i].name, items[i].inode->is_folder);
    }
    for (size_t i = 0; i < count; i++) {
        free(items[i].name);
    }
    free(items);
    return err;
}

static enum esk_err path_rename(struct esk_platform *platform, const char *from, const char *to,
                                struct esk_error *error) {
    struct sim_world *world = simi_world_of(platform);
    simi_begin(world, "rename", from, 0, 0);
    sim_trace(world, "rename to", to, 0, 0);
    struct sim_inode *from_folder, *to_folder;
    const char *from_name, *to_name;
    struct sim_inode *inode = sim_image_find(&world->image, from, &from_folder, &from_name);
    sim_image_find(&world->image, to, &to_folder, &to_name);
    if (!inode || !to_folder) {
        return simi_fail(error, ENOENT, "rename", from);
    }
    if (simi_fault(world, SIM_FAULT_FOLDER)) {
        return simi_fail(error, EIO, "rename", from);
    }
    char *old = leaf_copy(from_name), *new = leaf_copy(to_name);
    struct sim_entry set[] = {{new, inode}, {old, NULL}};
    if (from_folder == to_folder) {
        sim_folder_change(&world->image, to_folder, set, strcmp(old, new) ? 2 : 1, false);
    } else {
        sim_folder_change(&world->image, to_folder, &set[0], 1, false);
        sim_folder_change(&world->image, from_folder, &set[1], 1, true);
    }
    free(old);
    free(new);
    return ESK_OK;
}

static enum esk_err path_remove(struct esk_platform *platform, const char *path,
                                struct esk_error *error) {
    struct sim_world *world = simi_world_of(platform);
    simi_begin(world, "remove", path, 0, 0);
    struct sim_inode *folder;
    const char *name;
    struct sim_inode *inode = sim_image_find(&world->image, path, &folder, &name);
    if (!inode || !folder) {
        return simi_fail(error, ENOENT, "remove", path);
    }
    if (inode->is_folder && inode->entries.count) {
        return simi_fail(error, ENOTEMPTY, "remove", path);
    }
    if (simi_fault(world, SIM_FAULT_FOLDER)) {
        return simi_fail(error, EIO, "remove", path);
    }
    simi_assign(world, folder, name, NULL);
    return ESK_OK;
}

static enum esk_err path_sync_all(struct esk_platform *platform, const char *path,
                                  struct esk_error *error) {
    struct sim_world *world = simi_world_of(platform);
    simi_begin(world, "sync all", path, 0, 0);
    enum esk_err failure = simi_sync_fault(world);
    for (size_t i = 0; i < world->image.count; i++) {
        struct sim_inode *inode = world->image.inodes[i];
        simi_sync_begin(world, inode, failure && inode->opens ? failure : ESK_OK);
    }
    simi_take_time(world);
    for (size_t i = 0; i < world->image.count && !failure; i++) {
        simi_sync_end(world->image.inodes[i], world->image.inodes[i]->size);
        sim_folder_flush(&world->image, world->image.inodes[i]);
    }
    return failure ? simi_fail(error, EIO, "sync all", path) : ESK_OK;
}

static enum esk_err path_space(struct esk_platform *platform, const char *path,
                               uint64_t *free_bytes, uint64_t *total_bytes,
                               struct esk_error *error) {
    struct sim_world *world = simi_world_of(platform);
    (void)path, (void)error;
    simi_point(world);
    *free_bytes = sim_image_room(&world->image) * SIM_PAGE;
    *total_bytes = world->image.page_limit * SIM_PAGE;
    return ESK_OK;
}

/* --- clocks and chance --- */

static uint64_t monotonic_ns(struct esk_platform *platform) {
    simi_point(simi_world_of(platform));
    return simi_world_of(platform)->now_ns;
}

static int64_t wall_ms(struct esk_platform *platform) {
    simi_point(simi_world_of(platform));
    return simi_world_of(platform)->wall_ms + (int64_t)(simi_world_of(platform)->now_ns / SIM_MS);
}

static void random_bytes(struct esk_platform *platform, void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        ((uint8_t *)bytes)[i] = (uint8_t)sim_random_u64(&simi_world_of(platform)->bytes);
    }
}

static void pause_ns(struct esk_platform *platform, uint64_t ns) {
    simi_point(simi_world_of(platform));
    simi_sleep(simi_world_of(platform), ns);
}

const struct esk_platform_ops simi_platform_ops = {
    .monotonic_ns = monotonic_ns,
    .wall_ms = wall_ms,
    .random_bytes = random_bytes,
    .worker_create = simi_worker_create,
    .worker_destroy = simi_worker_destroy,
    .pause = pause_ns,
    .file_open = simi_file_open,
    .folder_make = folder_make,
    .folder_sync = folder_sync,
    .folder_list = folder_list,
    .path_rename = path_rename,
    .path_remove = path_remove,
    .path_space = path_space,
    .path_sync_all = path_sync_all,
};
