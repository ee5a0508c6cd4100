/* SPDX-License-Identifier: Apache-2.0 */
/* What is lost and what is kept: a kernel's background work, a process's death, a power loss,
 * damage at rest. */
#include "image_private.h"

#include "base/memory.h"

#include <stdlib.h>

bool sim_image_background(struct sim_image *image, bool fail) {
    struct sim_inode *inode = image->inodes[sim_below(&image->random, image->count)];
    if (!inode->page_count) {
        return false;
    }
    size_t page = (size_t)sim_below(&image->random, inode->page_count);
    uint8_t flags = inode->pages[page];
    if (flags & SIM_DIRTY) {
        if (fail) {
            sim_inode_write_back_failed(inode, page, ESK_ERR_IO);
            return true;
        }
        sim_inode_write_back(inode, page);
    } else if (flags & SIM_VOLATILE) {
        sim_inode_flush(inode, page);
    } else if (sim_one_in(&image->random, 4)) {
        inode->pages[page] &= (uint8_t)~SIM_CACHED;
    }
    return false;
}

bool sim_image_untold(const struct sim_image *image) {
    for (size_t i = 0; i < image->count; i++) {
        if (image->inodes[i]->errors > image->inodes[i]->errors_told) {
            return true;
        }
    }
    return false;
}

/* A change of some folder that no sync covered. */
struct pending {
    struct sim_inode *folder;
    struct sim_change change;
};

static int by_sequence(const void *a, const void *b) {
    uint64_t x = ((const struct pending *)a)->change.sequence;
    uint64_t y = ((const struct pending *)b)->change.sequence;
    return x < y ? -1 : x > y;
}

/* What a power loss leaves of such changes: they are lost one by one, or all behind some moment. A
 * change is not kept without the earlier ones of the same file, or name in the same folder. */
static void names_power_loss(struct sim_image *image) {
    size_t count = 0;
    for (size_t i = 0; i < image->count; i++) {
        count += image->inodes[i]->change_count;
    }
    struct pending *all = esk_alloc((count + 1) * sizeof(*all));
    count = 0;
    for (size_t i = 0; i < image->count; i++) {
        struct sim_inode *folder = image->inodes[i];
        for (size_t k = 0; k < folder->change_count; k++) {
            all[count++] = (struct pending){folder, folder->changes[k]};
        }
        folder->change_count = 0;
    }
    qsort(all, count, sizeof(*all), by_sequence);
    bool in_order = sim_one_in(&image->random, 2);
    size_t cut = (size_t)sim_below(&image->random, count + 1), lost = 0;
    for (size_t i = 0, end; i < count; i = end) {
        bool keep = in_order ? i < cut : sim_one_in(&image->random, 2);
        for (end = i; end < count && all[end].change.sequence == all[i].change.sequence; end++) {
            for (size_t k = 0; k < lost && keep; k++) {
                keep = !(all[k].folder == all[end].folder &&
                         simi_change_depends(&all[end].change, &all[k].change));
            }
        }
        for (size_t at = i; at < end; at++) {
            if (keep) {
                simi_change_apply(all[at].folder, &all[at].change);
            } else {
                all[lost++] = all[at];
            }
        }
    }
    free(all);
    for (size_t i = 0; i < image->count; i++) {
        struct sim_inode *folder = image->inodes[i];
        while (folder->entries.count) {
            simi_entries_set(&folder->entries, folder->entries.items[0].name, NULL);
        }
        for (size_t k = 0; k < folder->durable.count; k++) {
            const struct sim_entry *entry = &folder->durable.items[k];
            simi_entries_set(&folder->entries, entry->name, entry->inode);
        }
    }
}

static void count_links(struct sim_inode *folder) {
    for (size_t i = 0; i < folder->entries.count; i++) {
        struct sim_inode *inode = folder->entries.items[i].inode;
        if (inode->links++ == 0 && inode->is_folder) {
            count_links(inode);
        }
    }
}

/* How much of a page that was on its way arrives: one draw a file, so that a crash that keeps or
 * loses all of it is as likely as a torn one. */
enum luck { LUCK_NONE, LUCK_ALL, LUCK_PAGES, LUCK_SECTORS, LUCK_COUNT };

static enum luck draw_luck(struct sim_random *random) {
    return (enum luck)sim_below(random, LUCK_COUNT);
}

/* Copies what arrives; `end` bounds it. */
static void arrive(struct sim_image *image, enum luck luck, uint8_t *to, const uint8_t *from,
                   size_t size) {
    unsigned kept = 0, all = 0;
    for (size_t page = 0; page < size; page += SIM_PAGE) {
        bool keep = luck == LUCK_ALL || (luck == LUCK_PAGES && sim_one_in(&image->random, 2));
        for (size_t at = page; at < size && at < page + SIM_PAGE; at += SIM_SECTOR) {
            size_t count = size - at < SIM_SECTOR ? size - at : SIM_SECTOR;
            if (luck == LUCK_SECTORS) {
                keep = sim_one_in(&image->random, 2);
            }
            all++;
            if (keep) {
                kept++;
                memcpy(to + at, from + at, count);
            }
        }
    }
    image->torn += kept > 0 && kept < all;
}

/* A direct write that was out: of a killed process the device still has any first part. */
static void flights_land(struct sim_image *image, bool power_loss) {
    while (image->flights) {
        struct sim_flight *flight = image->flights;
        image->flights = flight->next;
        struct sim_inode *inode = flight->inode;
        uint64_t end = flight->position + flight->size;
        enum luck luck = draw_luck(&image->random);
        size_t size = flight->size;
        if (!power_loss) {
            luck = LUCK_ALL;
            size = (size_t)sim_below(&image->random, size / SIM_SECTOR + 1) * SIM_SECTOR;
            end = flight->position + size;
        }
        if (end > inode->size) {
            if (sim_one_in(&image->random, 2) || luck == LUCK_NONE || size == 0) {
                free(flight->data);
                free(flight);
                continue;
            }
            sim_inode_allocate(image, inode, flight->position, size);
        }
        uint8_t *place = inode->device + flight->position;
        arrive(image, luck, place, flight->data, size);
        for (uint64_t at = flight->position; at < end; at += SIM_PAGE) {
            uint8_t *flags = &inode->pages[at / SIM_PAGE];
            *flags = (uint8_t)((*flags & ~(SIM_CACHED | SIM_DIRTY)) | SIM_VOLATILE);
        }
        free(flight->data);
        free(flight);
    }
}

static void file_power_loss(struct sim_image *image, struct sim_inode *inode) {
    struct sim_random *random = &image->random;
    uint64_t size = inode->media_size;
    bool truncated = inode->floor < inode->media_size;
    uint64_t taken = UINT64_MAX; /* what was on its way arrives below this */
    if (truncated && sim_one_in(random, 2)) {
        taken = inode->floor; /* the truncation is lost, and what was written behind it */
    } else if (truncated) {
        memset(inode->media + inode->floor, 0, inode->page_count * SIM_PAGE - inode->floor);
        size = inode->floor;
    }
    if (taken == UINT64_MAX && inode->size > size) {
        uint64_t sizes[] = {size, inode->size, sim_between(random, size, inode->size)};
        size = sizes[sim_below(random, 3)];
    }
    enum luck luck = draw_luck(random);
    for (size_t page = 0; page < inode->page_count && (page + 1) * SIM_PAGE <= taken; page++) {
        uint8_t flags = inode->pages[page];
        uint8_t *media = inode->media + page * SIM_PAGE;
        if (flags & SIM_VOLATILE) {
            arrive(image, luck, media, inode->device + page * SIM_PAGE, SIM_PAGE);
        }
        if (flags & SIM_DIRTY) {
            arrive(image, luck, media, inode->cache + page * SIM_PAGE, SIM_PAGE);
        }
    }
    for (size_t page = 0; page < inode->page_count; page++) {
        uint8_t *media = inode->media + page * SIM_PAGE;
        bool inside = page * SIM_PAGE < size;
        if (!inside) {
            memset(media, 0, SIM_PAGE);
        } else if (size - page * SIM_PAGE < SIM_PAGE) {
            memset(media + size % SIM_PAGE, 0, SIM_PAGE - size % SIM_PAGE);
        }
        memcpy(inode->device + page * SIM_PAGE, media, SIM_PAGE);
        inode->pages[page] = inside ? inode->pages[page] & SIM_ALLOCATED : 0;
    }
    inode->size = inode->media_size = inode->floor = size;
    inode->errors = inode->errors_told = 0;
}

static void descriptors_close(struct sim_image *image) {
    for (size_t i = 0; i < image->count; i++) {
        struct sim_inode *inode = image->inodes[i];
        inode->opens = 0;
        inode->locked_by = NULL;
        for (size_t page = 0; page < inode->page_count; page++) {
            inode->pages[page] &= (uint8_t)~SIM_SYNCING;
        }
    }
}

void sim_image_process_death(struct sim_image *image) {
    flights_land(image, false);
    descriptors_close(image);
    for (size_t i = 0; i < image->count; i++) {
        sim_inode_unlinked(image, image->inodes[i]);
    }
}

void sim_image_power_loss(struct sim_image *image) {
    flights_land(image, true);
    descriptors_close(image);
    for (size_t i = 0; i < image->count; i++) {
        image->inodes[i]->links = 0;
        if (!image->inodes[i]->is_folder) {
            file_power_loss(image, image->inodes[i]);
        }
    }
    names_power_loss(image);
    image->root->links = 1;
    count_links(image->root);
    image->pages_used = 0;
    for (size_t i = 0; i < image->count; i++) {
        struct sim_inode *inode = image->inodes[i];
        for (size_t page = 0; page < inode->page_count && !inode->is_folder; page++) {
            bool used = inode->links && page * SIM_PAGE < inode->size;
            inode->pages[page] = used ? SIM_ALLOCATED : 0;
            image->pages_used += used;
        }
    }
}

void sim_inode_damage(struct sim_inode *inode, uint64_t position, const uint8_t *bytes,
                      size_t size) {
    memcpy(inode->device + position, bytes, size);
    memcpy(inode->media + position, bytes, size);
}
