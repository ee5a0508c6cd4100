/* SPDX-License-Identifier: Apache-2.0 */
#include "journal_damage.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/memory.h"
#include "journal/format_private.h"

#include <stdio.h>
#include <stdlib.h>

#define FILES_MAX 256
#define BLOCK ESKI_BLOCK_BYTES

struct found_file {
    struct sim_inode *inode;
    const char *name;
    struct eski_file_header header;
    uint64_t end; /* UINT64_MAX: not cut */
    bool live;
    uint8_t *bytes;
    uint64_t size;
};

struct found_frame {
    size_t file;
    struct eski_frame_header header;
};

struct found {
    struct found_file files[FILES_MAX];
    size_t file_count;
    struct found_frame *frames;
    size_t frame_count, frame_capacity;
};

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const struct found_file *)a)->header.file;
    uint64_t y = ((const struct found_file *)b)->header.file;
    return x < y ? -1 : x > y;
}

static void find_files(struct sim_run *run, const char *folder, struct found *found) {
    struct sim_inode *inode = sim_image_find(&run->world.image, folder, NULL, NULL);
    for (size_t i = 0; inode && i < inode->entries.count && found->file_count < FILES_MAX; i++) {
        struct sim_entry *entry = &inode->entries.items[i];
        const char *dot = strchr(entry->name, '.');
        if (entry->inode->is_folder || !dot || strcmp(dot, ".journal") != 0) {
            continue;
        }
        struct found_file *file = &found->files[found->file_count];
        *file = (struct found_file){.inode = entry->inode, .name = entry->name, .end = UINT64_MAX};
        file->size = entry->inode->size / BLOCK * BLOCK;
        file->bytes = esk_alloc(file->size + 1);
        sim_inode_read_device(entry->inode, file->bytes, 0, file->size);
        if (file->size < BLOCK || eski_file_header_decode(file->bytes, &file->header, NULL)) {
            free(file->bytes);
            continue;
        }
        found->file_count++;
    }
    qsort(found->files, found->file_count, sizeof(found->files[0]), by_number);
}

/* From the newest down: a generation ends where the next one says. */
static void cut_files(struct found *found) {
    const struct eski_file_header *newest = NULL;
    for (size_t i = found->file_count; i-- > 0;) {
        struct found_file *file = &found->files[i];
        file->live = true;
        if (newest && file->header.generation < newest->generation) {
            file->live = file->header.file <= newest->cut_file;
            file->end = file->header.file == newest->cut_file ? newest->cut_position : UINT64_MAX;
        }
        if (file->live) {
            newest = &file->header;
        }
    }
}

static bool frame_at(const struct found_file *file, uint64_t position,
                     struct eski_frame_header *header) {
    if (position + BLOCK > file->size || position >= file->end ||
        !eski_frame_header_decode(file->bytes + position, header) ||
        header->size > file->size - position) {
        return false;
    }
    uint32_t crc = esk_crc32c(0, file->bytes + position + 8, header->size - 8);
    return crc == esk_load_u32(file->bytes + position + 4) && header->file == file->header.file &&
           header->generation == file->header.generation && header->position == position;
}

static void find_frames(struct found *found) {
    uint64_t next = 0;
    for (size_t i = 0; i < found->file_count; i++) {
        struct found_file *file = &found->files[i];
        struct eski_frame_header header;
        for (uint64_t position = BLOCK; file->live && frame_at(file, position, &header);
             position += header.size) {
            if (next && header.sequence != next) {
                break;
            }
            if (found->frame_count == found->frame_capacity) {
                found->frame_capacity = found->frame_capacity * 2 + 64;
                found->frames =
                    esk_realloc(found->frames, found->frame_capacity * sizeof(struct found_frame));
            }
            found->frames[found->frame_count++] = (struct found_frame){i, header};
            next = header.sequence + 1;
        }
    }
}

/* What any intact frame or header vouches for, those behind a gap too. */
static uint64_t vouched(const struct found *found) {
    uint64_t covered = 0;
    for (size_t i = 0; i < found->file_count; i++) {
        const struct found_file *file = &found->files[i];
        covered = file->header.cut_sequence > covered ? file->header.cut_sequence : covered;
        struct eski_frame_header header;
        for (uint64_t position = BLOCK; file->live && position < file->size; position += BLOCK) {
            if (frame_at(file, position, &header) && header.durable_upto > covered) {
                covered = header.durable_upto;
            }
        }
    }
    return covered;
}

static void found_free(struct found *found) {
    for (size_t i = 0; i < found->file_count; i++) {
        free(found->files[i].bytes);
    }
    free(found->frames);
    free(found);
}

static void change(struct jd_damage *damage, uint64_t at, const uint8_t *bytes, size_t size) {
    damage->done = true;
    damage->at = at;
    damage->size = size;
    damage->before = esk_alloc(2 * size);
    memcpy(damage->before, damage->inode->device + at, size);
    memcpy(damage->before + size, damage->inode->media + at, size);
    sim_inode_damage(damage->inode, at, bytes, size);
    sim_inode_drop(damage->inode);
}

static void flip(struct sim_run *run, struct jd_damage *damage, uint64_t from, uint64_t size) {
    uint64_t at = from + sim_below(&run->random, size);
    uint8_t byte = damage->inode->device[at] ^ (uint8_t)(1u << sim_below(&run->random, 8));
    change(damage, at, &byte, 1);
}

/* The frame's first block is what belongs to another frame: that write went to the wrong place. */
static void misdirect(struct sim_run *run, struct jd_damage *damage, const struct found *found,
                      const struct found_frame *victim) {
    const struct found_frame *other = &found->frames[sim_below(&run->random, found->frame_count)];
    if (other == victim) {
        flip(run, damage, victim->header.position, victim->header.size);
        return;
    }
    change(damage, victim->header.position,
           found->files[other->file].bytes + other->header.position, BLOCK);
}

static void truncate_at(struct jd_damage *damage, uint64_t position) {
    damage->done = true;
    damage->truncated_from = damage->inode->size;
    damage->inode->size = damage->inode->media_size = damage->inode->floor = position;
    damage->names_position = false;
    sim_inode_drop(damage->inode);
}

static void damage_frame(struct sim_run *run, struct found *found, struct found_frame *victim,
                         struct jd_damage *damage) {
    const struct found_file *file = &found->files[victim->file];
    damage->inode = file->inode;
    damage->position = victim->header.position;
    /* When all behind it is torn as well, it may as well have been the first of the next file. */
    damage->names_position = victim->header.position != BLOCK;
    snprintf(damage->file, sizeof(damage->file), "%s", file->name);
    uint64_t kind = sim_below(&run->random, damage->refused ? 10 : 8);
    if (kind < 5) {
        flip(run, damage, victim->header.position, victim->header.size);
    } else if (kind < 8) {
        misdirect(run, damage, found, victim);
    } else if (kind < 9) {
        bool last = victim->file == found->frames[found->frame_count - 1].file;
        if (last) { /* what vouches for it would be gone with it */
            flip(run, damage, victim->header.position, victim->header.size);
        } else {
            truncate_at(damage, victim->header.position);
        }
    } else {
        damage->position = 0;
        flip(run, damage, 0, BLOCK);
    }
    sim_trace(&run->world, "damage", damage->file, victim->header.position, damage->at);
}

void jd_damage_do(struct sim_run *run, const char *folder, bool below, struct jd_damage *damage) {
    *damage = (struct jd_damage){0};
    struct found *found = esk_alloc_zeroed(1, sizeof(*found));
    find_files(run, folder, found);
    cut_files(found);
    find_frames(found);
    if (found->frame_count == 0) {
        found_free(found);
        return;
    }
    const struct eski_frame_header *last = &found->frames[found->frame_count - 1].header;
    uint64_t covered = vouched(found);
    size_t first = found->frame_count, end = 0;
    for (size_t i = 0; i < found->frame_count; i++) {
        const struct eski_frame_header *header = &found->frames[i].header;
        if (header->file >= last->oldest_file && (header->sequence <= covered) == below) {
            first = i < first ? i : first;
            end = i + 1;
        }
    }
    if (first < end) {
        struct found_frame *victim = &found->frames[sim_between(&run->random, first, end - 1)];
        damage->refused = below;
        damage->may_refuse = !below && victim->header.position == BLOCK;
        damage_frame(run, found, victim, damage);
    }
    found_free(found);
}

void jd_damage_repair(struct jd_damage *damage) {
    ESK_ASSERT(damage->done);
    if (damage->truncated_from) {
        damage->inode->size = damage->truncated_from;
        damage->inode->media_size = damage->inode->floor = damage->truncated_from;
    } else {
        memcpy(damage->inode->device + damage->at, damage->before, damage->size);
        memcpy(damage->inode->media + damage->at, damage->before + damage->size, damage->size);
        free(damage->before);
    }
    sim_inode_drop(damage->inode);
    damage->done = false;
}
