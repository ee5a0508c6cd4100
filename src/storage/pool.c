/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's files, and the register of open segments that keeps a file from being used again while
 * somebody still reads it by its old name. The lock guards lists only. */
#include "storage/pool.h"

#include "base/assert.h"
#include "storage/segment_private.h"

#include <pthread.h>
#include <stdlib.h>

#define DEFAULT_BYTES_MAX (1u << 30) /* architecture, "What was measured" */
#define DEFAULT_DISK_PERCENT 2       /* likewise */
#define FILES_MAX 1024               /* a file is kept from this part of the limit on: 1 MiB */
#define BUCKETS 1024                 /* of open segments: 10,000 are 10 in each */

struct eski_pool_entry {
    struct esk_link link; /* in `free` or `held` */
    uint64_t number;      /* names the file */
    uint64_t bytes;
    size_t readers; /* open segments that still read it; 0: free */
};

struct esk_pool {
    struct esk_platform *platform;
    char *folder;
    uint64_t limit_bytes;
    atomic_uint_fast64_t folders_made; /* group folders, from 1: the first sync is always done */
    atomic_uint_fast64_t folders_synced;
    pthread_mutex_t lock; /* guards what follows */
    struct esk_link free;
    struct esk_link held;
    struct esk_link open[BUCKETS];
    uint64_t bytes; /* of free and held */
    uint64_t next_number;
};

static char *entry_path(const struct esk_pool *pool, uint64_t number) {
    return esk_text_format("%s/%016" PRIx64, pool->folder, number);
}

static struct esk_link *bucket(struct esk_pool *pool, uint64_t group_id, uint64_t base_offset) {
    uint64_t hash = (group_id ^ base_offset << 32 ^ base_offset >> 32) * 0x9e3779b97f4a7c15;
    return &pool->open[hash >> 54]; /* Fibonacci hashing: the top 10 bits are the best ones */
}

static enum esk_err read_header(struct esk_file *file, const char *path,
                                struct eski_segment_header *header, struct esk_error *error) {
    uint8_t bytes[ESK_SEGMENT_HEADER_BYTES];
    enum esk_err err = esk_file_read_exactly(file, bytes, sizeof(bytes), 0, error);
    return err == ESK_OK ? eski_segment_header_parse(bytes, path, header, error) : err;
}

static bool says_nothing_usable(enum esk_err err) {
    return err == ESK_ERR_CORRUPT || err == ESK_ERR_VERSION;
}

static void add(struct esk_pool *pool, uint64_t number, uint64_t bytes) {
    struct eski_pool_entry *entry = esk_alloc_zeroed(1, sizeof(*entry));
    entry->number = number;
    entry->bytes = bytes;
    esk_list_append(&pool->free, &entry->link);
    pool->bytes += bytes;
}

/* Start: takes the file in when its header says that it is free, else unlinks it. */
static enum esk_err inspect(struct esk_pool *pool, uint64_t number, bool *removed,
                            struct esk_error *error) {
    char *path = entry_path(pool, number);
    struct esk_file *file = NULL;
    struct eski_segment_header header = {0};
    uint64_t size = 0;
    enum esk_err err = esk_file_open(pool->platform, path, ESK_FILE_READ, &file, error);
    if (err == ESK_OK) {
        err = esk_file_size(file, &size, error);
    }
    if (err == ESK_OK) {
        err = read_header(file, path, &header, error);
    }
    esk_file_close(file);
    if (err == ESK_OK && header.use == ESKI_USE_POOLED) {
        add(pool, number, size);
    } else if (err == ESK_OK || says_nothing_usable(err)) {
        err = eski_storage_path_remove(pool->platform, path, error);
        *removed = true;
    }
    free(path);
    return err;
}

static enum esk_err inspect_all(struct esk_pool *pool, struct esk_error *error) {
    uint64_t *numbers = NULL;
    size_t count = 0;
    enum esk_err err = eski_folder_numbers(pool->platform, pool->folder, 16, "", false, &numbers,
                                           &count, NULL, NULL, error);
    bool removed = false;
    for (size_t i = 0; err == ESK_OK && i < count; i++) {
        err = inspect(pool, numbers[i], &removed, error);
    }
    pool->next_number = count > 0 ? numbers[count - 1] + 1 : 0;
    free(numbers);
    if (err == ESK_OK && removed) {
        err = eski_storage_folder_sync(pool->platform, pool->folder, error);
    }
    return err;
}

static enum esk_err default_limit(struct esk_pool *pool, struct esk_error *error) {
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    enum esk_err err =
        esk_path_space(pool->platform, pool->folder, &free_bytes, &total_bytes, error);
    if (err == ESK_OK) {
        uint64_t share = total_bytes / 100 * DEFAULT_DISK_PERCENT;
        pool->limit_bytes = share < DEFAULT_BYTES_MAX ? share : DEFAULT_BYTES_MAX;
    }
    return err;
}

enum esk_err esk_pool_create(struct esk_platform *platform, const char *folder,
                             uint64_t limit_bytes, struct esk_pool **result,
                             struct esk_error *error) {
    struct esk_pool *pool = esk_alloc_zeroed(1, sizeof(*pool));
    pool->platform = platform;
    pool->folder = esk_text_copy(folder);
    pool->limit_bytes = limit_bytes;
    atomic_init(&pool->folders_made, 1);
    pthread_mutex_init(&pool->lock, NULL);
    esk_list_init(&pool->free);
    esk_list_init(&pool->held);
    for (size_t i = 0; i < BUCKETS; i++) {
        esk_list_init(&pool->open[i]);
    }
    enum esk_err err = esk_folder_make(platform, folder, error);
    if (err == ESK_OK && limit_bytes == 0) {
        err = default_limit(pool, error);
    }
    if (err == ESK_OK) {
        err = inspect_all(pool, error);
    }
    if (err != ESK_OK) {
        esk_wrap(error, "open the pool of files %s", folder);
        esk_pool_destroy(pool);
        return err;
    }
    *result = pool;
    return ESK_OK;
}

static void free_entries(struct esk_link *head) {
    struct esk_link *link;
    while ((link = esk_list_first(head)) != NULL) {
        esk_list_remove(link);
        free(ESK_CONTAINER(link, struct eski_pool_entry, link));
    }
}

void esk_pool_destroy(struct esk_pool *pool) {
    if (!pool) {
        return;
    }
    for (size_t i = 0; i < BUCKETS; i++) {
        ESK_ASSERT(esk_list_empty(&pool->open[i]));
    }
    free_entries(&pool->free);
    free_entries(&pool->held);
    pthread_mutex_destroy(&pool->lock);
    free(pool->folder);
    free(pool);
}

/* The longest unused free file, no longer in the pool's lists; NULL when there is none, or when
 * only_above_limit and the pool is within its limit. */
static struct eski_pool_entry *pop(struct esk_pool *pool, bool only_above_limit) {
    struct eski_pool_entry *entry = NULL;
    pthread_mutex_lock(&pool->lock);
    struct esk_link *link = esk_list_first(&pool->free);
    if (link && (!only_above_limit || pool->bytes > pool->limit_bytes)) {
        esk_list_remove(link);
        entry = ESK_CONTAINER(link, struct eski_pool_entry, link);
        pool->bytes -= entry->bytes;
    }
    pthread_mutex_unlock(&pool->lock);
    return entry;
}

static void put_back(struct esk_pool *pool, struct eski_pool_entry *entry) {
    pthread_mutex_lock(&pool->lock);
    esk_list_append(&pool->free, &entry->link);
    pool->bytes += entry->bytes;
    pthread_mutex_unlock(&pool->lock);
}

static bool exists(struct esk_pool *pool, const char *path) {
    struct esk_file *file = NULL;
    enum esk_err err = esk_file_open(pool->platform, path, ESK_FILE_READ, &file, NULL);
    if (err == ESK_OK) {
        esk_file_close(file);
    }
    return err != ESK_ERR_NOT_FOUND;
}

enum esk_err esk_pool_take(struct esk_pool *pool, const char *path, bool *taken,
                           struct esk_error *error) {
    *taken = false;
    struct eski_pool_entry *entry = pop(pool, false);
    if (!entry) {
        return ESK_OK;
    }
    char *from = entry_path(pool, entry->number);
    enum esk_err err = esk_path_rename(pool->platform, from, path, error);
    if (err == ESK_OK) {
        free(entry);
        *taken = true;
        err = eski_storage_folder_sync(pool->platform, pool->folder, error);
    } else if (err == ESK_ERR_NOT_FOUND && !exists(pool, from)) {
        free(entry); /* somebody deleted it: the caller makes a new file */
        err = ESK_OK;
    } else {
        put_back(pool, entry);
    }
    free(from);
    return err;
}

/* Shrinks and unlinks a file that is in no list; takes the entry. */
static enum esk_err drop(struct esk_pool *pool, struct eski_pool_entry *entry,
                         struct esk_error *error) {
    char *path = entry_path(pool, entry->number);
    struct esk_file *file = NULL;
    enum esk_err err = esk_file_open(pool->platform, path, ESK_FILE_WRITE, &file, error);
    if (err == ESK_OK) {
        err = eski_file_shrink(pool->platform, file, entry->bytes, 0, error);
        esk_file_close(file);
    }
    if (err == ESK_OK || err == ESK_ERR_NOT_FOUND) {
        err = eski_storage_path_remove(pool->platform, path, error);
    }
    free(path);
    free(entry);
    return err;
}

uint64_t esk_pool_empty(struct esk_pool *pool) {
    uint64_t freed = 0;
    struct eski_pool_entry *entry;
    while ((entry = pop(pool, false)) != NULL) {
        uint64_t bytes = entry->bytes;
        if (drop(pool, entry, NULL) == ESK_OK) {
            freed += bytes;
        }
    }
    return freed;
}

/* Marks the renamed file as free; its old name is durably gone when this returns. */
static enum esk_err mark(struct esk_pool *pool, struct esk_file *file, const char *path,
                         const char *old_path, const struct eski_segment_header *header,
                         struct esk_error *error) {
    struct eski_segment_header marked = *header;
    marked.use = ESKI_USE_POOLED;
    uint8_t bytes[ESK_SEGMENT_HEADER_BYTES];
    eski_segment_header_encode(bytes, &marked);
    struct esk_slice slice = esk_slice(bytes, sizeof(bytes));
    enum esk_err err = esk_file_write(file, &slice, 1, 0, error);
    if (err == ESK_OK) {
        err = eski_file_sync(file, path, error);
    }
    if (err == ESK_OK) {
        char *folder = eski_folder_of(old_path);
        err = eski_storage_folder_sync(pool->platform, folder, error);
        free(folder);
    }
    return err;
}

/* Puts the marked file into a list; segments that are open under its old name hold it. Whoever
 * opens that name from now on does not find it. */
static void enter(struct esk_pool *pool, uint64_t number, uint64_t bytes,
                  const struct eski_segment_header *header) {
    struct eski_pool_entry *entry = esk_alloc_zeroed(1, sizeof(*entry));
    entry->number = number;
    entry->bytes = bytes;
    pthread_mutex_lock(&pool->lock);
    struct esk_link *head = bucket(pool, header->group_id, header->base_offset);
    for (struct esk_link *link = head->next; link != head; link = link->next) {
        struct esk_segment *segment = ESK_CONTAINER(link, struct esk_segment, link);
        if (segment->group_id == header->group_id && segment->base_offset == header->base_offset &&
            segment->revision == header->revision && !segment->entry) {
            segment->entry = entry;
            entry->readers++;
        }
    }
    esk_list_append(entry->readers > 0 ? &pool->held : &pool->free, &entry->link);
    pool->bytes += bytes;
    pthread_mutex_unlock(&pool->lock);
}

static enum esk_err keep(struct esk_pool *pool, struct esk_file *file, const char *path,
                         uint64_t bytes, const struct eski_segment_header *header,
                         struct esk_error *error) {
    pthread_mutex_lock(&pool->lock);
    uint64_t number = pool->next_number++;
    pthread_mutex_unlock(&pool->lock);
    char *kept = entry_path(pool, number);
    enum esk_err err = esk_path_rename(pool->platform, path, kept, error);
    if (err == ESK_OK) {
        err = mark(pool, file, kept, path, header, error);
        if (err == ESK_OK) {
            enter(pool, number, bytes, header);
        } else { /* out of use at any rate; a start would unlink it too */
            esk_path_remove(pool->platform, kept, NULL);
        }
    }
    free(kept);
    return err;
}

enum esk_err esk_pool_give(struct esk_pool *pool, const char *path, uint64_t group_id,
                           uint64_t base_offset, uint32_t revision, struct esk_error *error) {
    struct esk_file *file = NULL;
    enum esk_err err =
        esk_file_open(pool->platform, path, ESK_FILE_READ | ESK_FILE_WRITE, &file, error);
    if (err != ESK_OK) {
        return err == ESK_ERR_NOT_FOUND ? ESK_OK : err;
    }
    uint64_t bytes = 0;
    struct eski_segment_header header = {0};
    err = esk_file_size(file, &bytes, error);
    if (err == ESK_OK && bytes >= pool->limit_bytes / FILES_MAX) {
        err = read_header(file, path, &header, error);
    }
    bool own = header.group_id == group_id && header.base_offset == base_offset &&
               header.revision == revision;
    if (err == ESK_OK && header.use == ESKI_USE_SEGMENT && own) {
        err = keep(pool, file, path, bytes, &header, error);
    } else if (err == ESK_OK || says_nothing_usable(err)) {
        err = eski_storage_path_remove(pool->platform, path, error);
    }
    if (err == ESK_ERR_NO_SPACE) { /* no room to rename: then away with it, that makes some */
        err = eski_storage_path_remove(pool->platform, path, error);
    }
    esk_file_close(file);
    struct eski_pool_entry *entry;
    while (err == ESK_OK && (entry = pop(pool, true)) != NULL) {
        err = drop(pool, entry, error);
    }
    return err;
}

void eski_pool_attach(struct esk_pool *pool, struct esk_segment *segment) {
    pthread_mutex_lock(&pool->lock);
    esk_list_append(bucket(pool, segment->group_id, segment->base_offset), &segment->link);
    pthread_mutex_unlock(&pool->lock);
}

void eski_pool_detach(struct esk_pool *pool, struct esk_segment *segment) {
    pthread_mutex_lock(&pool->lock);
    esk_list_remove(&segment->link);
    struct eski_pool_entry *entry = segment->entry;
    if (entry && --entry->readers == 0) {
        esk_list_remove(&entry->link);
        esk_list_append(&pool->free, &entry->link);
    }
    pthread_mutex_unlock(&pool->lock);
}

void eski_pool_folder_made(struct esk_pool *pool) {
    atomic_fetch_add(&pool->folders_made, 1);
}

uint64_t eski_pool_folders_made(struct esk_pool *pool) {
    return atomic_load(&pool->folders_made);
}

bool eski_pool_folders_are_synced(struct esk_pool *pool, uint64_t made) {
    return atomic_load(&pool->folders_synced) >= made;
}

void eski_pool_folders_synced(struct esk_pool *pool, uint64_t made) {
    uint64_t before = atomic_load(&pool->folders_synced);
    while (before < made && !atomic_compare_exchange_weak(&pool->folders_synced, &before, made)) {
    }
}
