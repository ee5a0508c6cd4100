/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated disk and the system's page cache over it, without time and without faults of its
 * own: who uses it decides when what happens.
 *
 * The bytes of a file exist three times: in the page cache (what buffered reads give), on the
 * device (what direct reads give, and what is left when the cache is dropped) and on the media
 * (what is left after a power loss). A page is DIRTY when the device does not have it yet and
 * VOLATILE when only the device's own write cache has it. A failed write-back leaves the page clean
 * and the device old. A process's death leaves all three; a power loss leaves the media and, of
 * each dirty or volatile page, any of its 512 B sectors.
 *
 * A folder's entries exist twice: as they are, and as they are on the media. Changes that no sync
 * of the folder covered are each lost or kept by a power loss. The size of a file is durable with
 * its sync. */
#ifndef ESK_SIM_IMAGE_H
#define ESK_SIM_IMAGE_H

#include "base/bytes.h"
#include "base/error.h"
#include "random.h"

#define SIM_PAGE 4096u
#define SIM_SECTOR 512u

enum sim_page_flags {
    SIM_CACHED = 1, /* the page cache has it: only then are the cache's bytes valid */
    SIM_DIRTY = 2,
    SIM_VOLATILE = 4,
    SIM_SYNCING = 8,
    SIM_ALLOCATED = 16,
};

struct sim_inode;
struct sim_entry {
    char *name;
    struct sim_inode *inode;
};
struct sim_entries {
    struct sim_entry *items;
    size_t count;
    size_t capacity;
};
/* One or two assignments of names of a folder that happen together; inode NULL: removed. */
struct sim_change {
    struct sim_entry set[2];
    unsigned count;
    uint64_t sequence; /* of the call: a rename from folder to folder has one change in each */
};

struct sim_inode {
    uint32_t id;
    bool is_folder;
    unsigned links; /* names it has now */
    unsigned opens; /* descriptors */
    void *locked_by;
    /* file */
    uint8_t *cache, *device, *media, *pages;
    size_t page_count; /* room in the four arrays */
    uint64_t size, media_size;
    uint64_t floor;  /* least size since the last sync */
    uint64_t errors; /* failed write-backs; a descriptor that has seen fewer is told */
    uint64_t errors_told;
    enum esk_err error_code;
    /* folder */
    struct sim_entries entries, durable;
    struct sim_change *changes;
    size_t change_count, change_capacity;
};

struct sim_flight { /* a direct write that the device has not finished */
    struct sim_inode *inode;
    uint64_t position;
    uint8_t *data;
    size_t size;
    bool dsync;
    struct sim_flight *next;
};

struct sim_image {
    struct sim_random random;
    struct sim_inode **inodes;
    size_t count, capacity;
    struct sim_inode *root;
    uint64_t page_limit; /* of the disk */
    uint64_t pages_used;
    uint64_t pages_foreign; /* taken by somebody else */
    uint64_t sequence;
    struct sim_flight *flights;
    unsigned torn; /* crashes that kept a part of a page */
};

void sim_image_init(struct sim_image *image, uint64_t seed, uint64_t page_limit);
uint64_t sim_image_room(const struct sim_image *image); /* free pages */

/* The inode, or NULL. folder and name are set when all but the last part of the path is there; name
 * points into path. */
struct sim_inode *sim_image_find(const struct sim_image *image, const char *path,
                                 struct sim_inode **folder, const char **name);
struct sim_inode *sim_inode_create(struct sim_image *image, bool is_folder);
struct sim_inode *sim_entries_get(const struct sim_entries *entries, const char *name);
/* Changes entries and remembers the change until the folder's sync. joined: part of the same call
 * as the last one: both are kept or both are lost. */
void sim_folder_change(struct sim_image *image, struct sim_inode *folder,
                       const struct sim_entry *set, unsigned count, bool joined);
void sim_folder_flush(struct sim_image *image, struct sim_inode *folder);
void sim_inode_unlinked(struct sim_image *image, struct sim_inode *inode); /* frees its pages */

/* How many of the pages of a range have no blocks yet. */
uint64_t sim_inode_unallocated(const struct sim_inode *inode, uint64_t position, uint64_t size);
void sim_inode_allocate(struct sim_image *image, struct sim_inode *inode, uint64_t position,
                        uint64_t size);
void sim_inode_read(struct sim_inode *inode, void *buffer, uint64_t position, size_t size);
void sim_inode_read_device(struct sim_inode *inode, void *buffer, uint64_t position, size_t size);
/* Bytes from position that the cache can give at once. */
size_t sim_inode_cached(const struct sim_inode *inode, uint64_t position, size_t size);
void sim_inode_write(struct sim_image *image, struct sim_inode *inode, const void *bytes,
                     uint64_t position, size_t size);
void sim_inode_truncate(struct sim_image *image, struct sim_inode *inode, uint64_t size);
void sim_inode_write_back(struct sim_inode *inode, size_t page);
void sim_inode_write_back_failed(struct sim_inode *inode, size_t page, enum esk_err code);
void sim_inode_flush(struct sim_inode *inode, size_t page); /* device to media */
void sim_inode_flush_size(struct sim_inode *inode);
void sim_inode_drop(struct sim_inode *inode); /* clean pages leave the cache */

/* A direct write: begins, and is done (or is what a crash leaves of it). */
struct sim_flight *sim_flight_begin(struct sim_image *image, struct sim_inode *inode,
                                    const uint8_t *data, uint64_t position, size_t size,
                                    bool dsync);
void sim_flight_end(struct sim_image *image, struct sim_flight *flight);

/* One thing that a kernel may do any time: write a page back, flush or drop one. True when it would
 * write back and `fail` said so: then that failed with ESK_ERR_IO. */
bool sim_image_background(struct sim_image *image, bool fail);

/* Whether a write-back failed of which no descriptor knows: the next to open the file is told. */
bool sim_image_untold(const struct sim_image *image);

/* What remains. Descriptors, locks and writes in flight are gone after both. */
void sim_image_process_death(struct sim_image *image);
void sim_image_power_loss(struct sim_image *image);

/* Damage at rest: flips bits on device and media; what the cache has stays good. */
void sim_inode_damage(struct sim_inode *inode, uint64_t position, const uint8_t *bytes,
                      size_t size);

#endif
