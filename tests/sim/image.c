/* SPDX-License-Identifier: Apache-2.0 */
/* Names, folders, pages. What a crash leaves is in image_crash.c. */
#include "image_private.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>

void sim_image_init(struct sim_image *image, uint64_t seed, uint64_t page_limit) {
    *image = (struct sim_image){.random = sim_random_seed(seed, 2), .page_limit = page_limit};
    image->root = sim_inode_create(image, true);
    image->root->links = 1;
}

uint64_t sim_image_room(const struct sim_image *image) {
    uint64_t taken = image->pages_used + image->pages_foreign;
    return taken < image->page_limit ? image->page_limit - taken : 0;
}

/* --- folders --- */

struct sim_inode *sim_inode_create(struct sim_image *image, bool is_folder) {
    struct sim_inode *inode = esk_alloc_zeroed(1, sizeof(*inode));
    inode->is_folder = is_folder;
    inode->id = (uint32_t)image->count;
    if (image->count == image->capacity) {
        image->capacity = image->capacity * 2 + 16;
        image->inodes = esk_realloc(image->inodes, image->capacity * sizeof(struct sim_inode *));
    }
    image->inodes[image->count++] = inode;
    return inode;
}

static size_t entry_index(const struct sim_entries *entries, const char *name, size_t size) {
    for (size_t i = 0; i < entries->count; i++) {
        const char *own = entries->items[i].name;
        if (strlen(own) == size && memcmp(own, name, size) == 0) {
            return i;
        }
    }
    return SIZE_MAX;
}

struct sim_inode *sim_entries_get(const struct sim_entries *entries, const char *name) {
    size_t index = entry_index(entries, name, strlen(name));
    return index == SIZE_MAX ? NULL : entries->items[index].inode;
}

void simi_entries_set(struct sim_entries *entries, const char *name, struct sim_inode *inode) {
    size_t index = entry_index(entries, name, strlen(name));
    if (index != SIZE_MAX && inode) {
        entries->items[index].inode = inode;
    } else if (index != SIZE_MAX) {
        free(entries->items[index].name);
        entries->items[index] = entries->items[--entries->count];
    } else if (inode) {
        if (entries->count == entries->capacity) {
            entries->capacity = entries->capacity * 2 + 8;
            entries->items =
                esk_realloc(entries->items, entries->capacity * sizeof(struct sim_entry));
        }
        entries->items[entries->count++] = (struct sim_entry){esk_text_copy(name), inode};
    }
}

struct sim_inode *sim_image_find(const struct sim_image *image, const char *path,
                                 struct sim_inode **folder, const char **name) {
    struct sim_inode *inode = image->root;
    if (folder) {
        *folder = NULL;
    }
    for (;;) {
        path += strspn(path, "/");
        size_t size = strcspn(path, "/");
        if (size == 0) {
            return inode;
        }
        if (size == 1 && *path == '.') {
            path += 1;
            continue;
        }
        if (!inode->is_folder) {
            return NULL;
        }
        size_t index = entry_index(&inode->entries, path, size);
        bool last = path[size + strspn(path + size, "/")] == '\0';
        if (last && folder) {
            *folder = inode;
            *name = path;
        }
        if (index == SIZE_MAX) {
            return NULL;
        }
        inode = inode->entries.items[index].inode;
        path += size;
    }
}

void sim_folder_change(struct sim_image *image, struct sim_inode *folder,
                       const struct sim_entry *set, unsigned count, bool joined) {
    if (folder->change_count == folder->change_capacity) {
        folder->change_capacity = folder->change_capacity * 2 + 8;
        folder->changes =
            esk_realloc(folder->changes, folder->change_capacity * sizeof(struct sim_change));
    }
    struct sim_change *change = &folder->changes[folder->change_count++];
    change->count = count;
    change->sequence = image->sequence += !joined;
    for (unsigned i = 0; i < count; i++) {
        change->set[i] = (struct sim_entry){esk_text_copy(set[i].name), set[i].inode};
        struct sim_inode *before = sim_entries_get(&folder->entries, set[i].name);
        if (set[i].inode) {
            set[i].inode->links++;
        }
        simi_entries_set(&folder->entries, set[i].name, set[i].inode);
        if (before) {
            before->links--;
            sim_inode_unlinked(image, before);
        }
    }
}

void simi_change_apply(struct sim_inode *folder, const struct sim_change *change) {
    for (unsigned i = 0; i < change->count; i++) {
        simi_entries_set(&folder->durable, change->set[i].name, change->set[i].inode);
    }
}

bool simi_change_depends(const struct sim_change *later, const struct sim_change *earlier) {
    for (unsigned i = 0; i < later->count; i++) {
        for (unsigned k = 0; k < earlier->count; k++) {
            const struct sim_entry *x = &later->set[i], *y = &earlier->set[k];
            if ((x->inode && x->inode == y->inode) || strcmp(x->name, y->name) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* The other half of a rename becomes durable with the first, and what it depends on. */
static void flush_other_half(struct sim_inode *folder, uint64_t sequence) {
    size_t last = 0;
    while (last < folder->change_count && folder->changes[last].sequence != sequence) {
        last++;
    }
    if (last == folder->change_count) {
        return;
    }
    bool *needed = esk_alloc_zeroed(last + 1, sizeof(*needed));
    needed[last] = true;
    for (size_t i = last; i-- > 0;) {
        for (size_t later = i + 1; later <= last && !needed[i]; later++) {
            needed[i] =
                needed[later] && simi_change_depends(&folder->changes[later], &folder->changes[i]);
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < folder->change_count; i++) {
        if (i <= last && needed[i]) {
            simi_change_apply(folder, &folder->changes[i]);
        } else {
            folder->changes[kept++] = folder->changes[i];
        }
    }
    folder->change_count = kept;
    free(needed);
}

void sim_folder_flush(struct sim_image *image, struct sim_inode *folder) {
    size_t count = folder->change_count;
    for (size_t i = 0; i < count; i++) {
        simi_change_apply(folder, &folder->changes[i]);
    }
    folder->change_count = 0;
    for (size_t k = 0; count && k < image->count; k++) {
        struct sim_inode *other = image->inodes[k];
        for (size_t i = 0; i < count && other != folder && other->change_count; i++) {
            flush_other_half(other, folder->changes[i].sequence);
        }
    }
}

void sim_inode_unlinked(struct sim_image *image, struct sim_inode *inode) {
    if (inode->links || inode->opens) {
        return;
    }
    for (size_t page = 0; page < inode->page_count; page++) {
        if (inode->pages[page] & SIM_ALLOCATED) {
            inode->pages[page] &= (uint8_t)~SIM_ALLOCATED;
            image->pages_used--;
        }
    }
}

/* --- pages --- */

static uint8_t *grown(uint8_t *old, size_t before, size_t after) {
    uint8_t *bytes = esk_alloc_zeroed(after, 1);
    if (before) {
        memcpy(bytes, old, before);
    }
    free(old);
    return bytes;
}

void simi_inode_reserve(struct sim_inode *inode, uint64_t size) {
    size_t need = (size_t)((size + SIM_PAGE - 1) / SIM_PAGE), have = inode->page_count;
    if (need <= have) {
        return;
    }
    size_t count = need > have * 2 ? need : have * 2;
    inode->cache = grown(inode->cache, have * SIM_PAGE, count * SIM_PAGE);
    inode->device = grown(inode->device, have * SIM_PAGE, count * SIM_PAGE);
    inode->media = grown(inode->media, have * SIM_PAGE, count * SIM_PAGE);
    inode->pages = grown(inode->pages, have, count);
    inode->page_count = count;
}

static size_t page_end(const struct sim_inode *inode, uint64_t end) {
    size_t last = (size_t)((end + SIM_PAGE - 1) / SIM_PAGE);
    return last < inode->page_count ? last : inode->page_count;
}

uint64_t sim_inode_unallocated(const struct sim_inode *inode, uint64_t position, uint64_t size) {
    uint64_t count = 0, last = (position + size + SIM_PAGE - 1) / SIM_PAGE;
    for (uint64_t page = position / SIM_PAGE; page < last; page++) {
        count += page >= inode->page_count || !(inode->pages[page] & SIM_ALLOCATED);
    }
    return count;
}

void sim_inode_allocate(struct sim_image *image, struct sim_inode *inode, uint64_t position,
                        uint64_t size) {
    simi_inode_reserve(inode, position + size);
    for (size_t page = (size_t)(position / SIM_PAGE); page < page_end(inode, position + size);
         page++) {
        if (!(inode->pages[page] & SIM_ALLOCATED)) {
            inode->pages[page] |= SIM_ALLOCATED;
            image->pages_used++;
        }
    }
    if (position + size > inode->size) {
        inode->size = position + size;
    }
}

/* Into the cache. */
static void load(struct sim_inode *inode, uint64_t position, uint64_t end) {
    for (size_t page = (size_t)(position / SIM_PAGE); page < page_end(inode, end); page++) {
        if (!(inode->pages[page] & SIM_CACHED)) {
            memcpy(inode->cache + page * SIM_PAGE, inode->device + page * SIM_PAGE, SIM_PAGE);
            inode->pages[page] |= SIM_CACHED;
        }
    }
}

void sim_inode_read(struct sim_inode *inode, void *buffer, uint64_t position, size_t size) {
    ESK_ASSERT(position + size <= inode->size);
    load(inode, position, position + size);
    memcpy(buffer, inode->cache + position, size);
}

/* As Linux has it, a direct read first writes back what is dirty in its range. */
void sim_inode_read_device(struct sim_inode *inode, void *buffer, uint64_t position, size_t size) {
    ESK_ASSERT(position + size <= inode->size);
    for (size_t page = (size_t)(position / SIM_PAGE); page < page_end(inode, position + size);
         page++) {
        sim_inode_write_back(inode, page);
    }
    memcpy(buffer, inode->device + position, size);
}

size_t sim_inode_cached(const struct sim_inode *inode, uint64_t position, size_t size) {
    uint64_t at = position;
    while (at < position + size && (inode->pages[at / SIM_PAGE] & SIM_CACHED)) {
        at = (at / SIM_PAGE + 1) * SIM_PAGE;
    }
    return at >= position + size ? size : (size_t)(at > position ? at - position : 0);
}

void sim_inode_write(struct sim_image *image, struct sim_inode *inode, const void *bytes,
                     uint64_t position, size_t size) {
    sim_inode_allocate(image, inode, position, size);
    load(inode, position, position + size);
    memcpy(inode->cache + position, bytes, size);
    for (size_t page = (size_t)(position / SIM_PAGE); page < page_end(inode, position + size);
         page++) {
        inode->pages[page] |= SIM_DIRTY;
    }
}

void sim_inode_truncate(struct sim_image *image, struct sim_inode *inode, uint64_t size) {
    if (size < inode->size) {
        size_t keep = page_end(inode, size);
        if (size % SIM_PAGE) {
            load(inode, size, size + 1);
            memset(inode->cache + size, 0, keep * SIM_PAGE - size);
            inode->pages[size / SIM_PAGE] |= SIM_DIRTY;
        }
        for (size_t page = keep; page < inode->page_count; page++) {
            image->pages_used -= (inode->pages[page] & SIM_ALLOCATED) != 0;
            inode->pages[page] = 0;
        }
        if (keep < inode->page_count) {
            memset(inode->device + keep * SIM_PAGE, 0, (inode->page_count - keep) * SIM_PAGE);
        }
        inode->floor = size < inode->floor ? size : inode->floor;
    }
    simi_inode_reserve(inode, size);
    inode->size = size;
}

void sim_inode_write_back(struct sim_inode *inode, size_t page) {
    if (inode->pages[page] & SIM_DIRTY) {
        memcpy(inode->device + page * SIM_PAGE, inode->cache + page * SIM_PAGE, SIM_PAGE);
        inode->pages[page] = (uint8_t)((inode->pages[page] & ~SIM_DIRTY) | SIM_VOLATILE);
    }
}

void sim_inode_write_back_failed(struct sim_inode *inode, size_t page, enum esk_err code) {
    inode->pages[page] &= (uint8_t)~SIM_DIRTY;
    inode->errors++;
    inode->error_code = code;
}

void sim_inode_flush(struct sim_inode *inode, size_t page) {
    memcpy(inode->media + page * SIM_PAGE, inode->device + page * SIM_PAGE, SIM_PAGE);
    inode->pages[page] &= (uint8_t) ~(SIM_VOLATILE | SIM_SYNCING);
}

void sim_inode_flush_size(struct sim_inode *inode) {
    if (inode->floor < inode->media_size) {
        size_t from = (size_t)(inode->floor / SIM_PAGE);
        memcpy(inode->media + from * SIM_PAGE, inode->device + from * SIM_PAGE,
               (inode->page_count - from) * SIM_PAGE);
    }
    inode->media_size = inode->floor = inode->size;
}

void sim_inode_drop(struct sim_inode *inode) {
    for (size_t page = 0; page < inode->page_count; page++) {
        if (!(inode->pages[page] & SIM_DIRTY)) {
            inode->pages[page] &= (uint8_t)~SIM_CACHED;
        }
    }
}

struct sim_flight *sim_flight_begin(struct sim_image *image, struct sim_inode *inode,
                                    const uint8_t *data, uint64_t position, size_t size,
                                    bool dsync) {
    simi_inode_reserve(inode, position + size);
    for (size_t page = (size_t)(position / SIM_PAGE); page < page_end(inode, position + size);
         page++) {
        sim_inode_write_back(inode, page);
    }
    struct sim_flight *flight = esk_alloc(sizeof(*flight));
    *flight = (struct sim_flight){inode, position, esk_alloc(size), size, dsync, image->flights};
    memcpy(flight->data, data, size);
    image->flights = flight;
    return flight;
}

void sim_flight_end(struct sim_image *image, struct sim_flight *flight) {
    struct sim_inode *inode = flight->inode;
    sim_inode_allocate(image, inode, flight->position, flight->size);
    memcpy(inode->device + flight->position, flight->data, flight->size);
    for (size_t page = (size_t)(flight->position / SIM_PAGE);
         page < page_end(inode, flight->position + flight->size); page++) {
        inode->pages[page] =
            (uint8_t)((inode->pages[page] & ~(SIM_CACHED | SIM_DIRTY)) | SIM_VOLATILE);
        if (flight->dsync) {
            sim_inode_flush(inode, page);
        }
    }
    if (flight->dsync && inode->media_size < flight->position + flight->size) {
        sim_inode_flush_size(inode);
    }
    struct sim_flight **at = &image->flights;
    while (*at != flight) {
        at = &(*at)->next;
    }
    *at = flight->next;
    free(flight->data);
    free(flight);
}
