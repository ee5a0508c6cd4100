/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/layout.h"

#include "base/hash.h"
#include "base/memory.h"
#include "journal/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* esker.meta: magic, version, layout, shards, offset partitions, node, CRC-32C of all before it. */
#define META_MAGIC 0x45534b4du /* "ESKM" */
#define META_VERSION 1u
#define META_BYTES 32

/* Makes the folder's own name durable, whoever made it: a process that died may have, without a
 * sync. A parent that we may not read is somebody else's, who made the folder. */
static enum esk_err sync_parent(struct esk_platform *platform, const char *folder,
                                struct esk_error *error) {
    char *parent = esk_text_copy(folder);
    for (size_t size = strlen(parent); size > 1 && parent[size - 1] == '/'; size--) {
        parent[size - 1] = '\0';
    }
    char *slash = strrchr(parent, '/');
    if (slash != NULL) {
        slash[slash == parent] = '\0';
    }
    enum esk_err err = esk_folder_sync(platform, slash != NULL ? parent : ".", error);
    free(parent);
    return err == ESK_ERR_PERMISSION ? ESK_OK : err;
}

enum esk_err eski_layout_lock(struct esk_platform *platform, const char *folder,
                              struct esk_file **lock, struct esk_error *error) {
    char *path = esk_text_format("%s/lock", folder);
    enum esk_err err = esk_folder_make(platform, folder, error);
    if (err == ESK_OK) {
        err = sync_parent(platform, folder, error);
    }
    if (err == ESK_OK) {
        err = esk_file_open(platform, path, ESK_FILE_READ | ESK_FILE_WRITE | ESK_FILE_CREATE, lock,
                            error);
    }
    if (err == ESK_OK) {
        err = esk_file_lock(*lock, error);
        if (err != ESK_OK) {
            esk_file_close(*lock);
            *lock = NULL;
        }
        if (err == ESK_ERR_CONFLICT) {
            esk_fail(error, err, "data folder %s is in use by another broker", folder);
        }
    }
    free(path);
    return err;
}

/* A group's folder: then there was a broker here that served. */
static enum esk_err visit_group(void *context, const char *name, bool is_folder) {
    bool *found = context;
    (void)name;
    *found |= is_folder;
    return ESK_OK;
}

static enum esk_err missing_meta(struct esk_platform *platform, const char *folder,
                                 struct esk_error *error) {
    bool found = false;
    char *groups = esk_text_format("%s/groups", folder);
    enum esk_err err = esk_folder_list(platform, groups, visit_group, &found, error);
    free(groups);
    if (found) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%s has data but no esker.meta", folder);
    }
    return err == ESK_OK ? ESK_ERR_NOT_FOUND : err; /* NOT_FOUND too when there is no such folder */
}

static enum esk_err parse(const char *path, struct esk_slice bytes, struct eski_layout *layout,
                          struct esk_error *error) {
    struct esk_reader reader = esk_reader(bytes);
    uint32_t magic = esk_read_u32(&reader);
    uint32_t version = esk_read_u32(&reader);
    layout->layout = esk_read_u64(&reader);
    layout->shard_count = esk_read_u32(&reader);
    layout->offset_partitions = esk_read_u32(&reader);
    layout->node = esk_read_u32(&reader);
    uint32_t crc = esk_read_u32(&reader);
    if (!reader.failed && magic == META_MAGIC && version != META_VERSION) {
        return esk_fail(error, ESK_ERR_VERSION, "%s has version %u; this program knows version %u",
                        path, version, META_VERSION);
    }
    if (reader.failed || bytes.size != META_BYTES || magic != META_MAGIC ||
        crc != esk_crc32c(0, bytes.data, META_BYTES - 4) || layout->shard_count == 0 ||
        layout->offset_partitions == 0) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%s is damaged (%zu bytes)", path, bytes.size);
    }
    return ESK_OK;
}

enum esk_err eski_layout_load(struct esk_platform *platform, const char *folder,
                              struct eski_layout *layout, struct esk_error *error) {
    char *path = esk_text_format("%s/esker.meta", folder);
    uint8_t *bytes;
    size_t size;
    enum esk_err err = esk_file_load(platform, path, 4096, &bytes, &size, error);
    if (err == ESK_ERR_NOT_FOUND) {
        err = missing_meta(platform, folder, error);
    } else if (err == ESK_OK) {
        err = parse(path, esk_slice(bytes, size), layout, error);
        free(bytes);
    }
    free(path);
    return err;
}

enum esk_err eski_layout_store(struct esk_platform *platform, const char *folder,
                               const struct eski_layout *layout, struct esk_error *error) {
    uint8_t bytes[META_BYTES];
    struct esk_writer writer = esk_writer(bytes, sizeof(bytes));
    esk_write_u32(&writer, META_MAGIC);
    esk_write_u32(&writer, META_VERSION);
    esk_write_u64(&writer, layout->layout);
    esk_write_u32(&writer, layout->shard_count);
    esk_write_u32(&writer, layout->offset_partitions);
    esk_write_u32(&writer, layout->node);
    esk_write_u32(&writer, esk_crc32c(0, bytes, META_BYTES - 4));
    char *path = esk_text_format("%s/esker.meta", folder);
    enum esk_err err = esk_file_store(platform, path, esk_slice(bytes, sizeof(bytes)), error);
    free(path);
    return err;
}

char *eski_layout_journal(const char *folder, uint64_t layout, uint32_t shard) {
    return esk_text_format("%s/journal/%llu-%u", folder, (unsigned long long)layout, shard);
}

/* --- a folder without identity --- */

static enum esk_err stop_at_entry(void *context, uint64_t group_id, const struct esk_entry *entry,
                                  struct esk_error *error) {
    bool *found = context;
    (void)group_id;
    (void)entry;
    *found = true;
    return esk_fail(error, ESK_ERR_CORRUPT, "an entry");
}

static bool has_entries(struct esk_journal_recovery *recovery) {
    bool found = false;
    struct esk_error ignored;
    esk_journal_recovery_replay(recovery, UINT64_MAX, stop_at_entry, &found, &ignored);
    for (size_t i = 0; !found && i < esk_journal_recovery_count(recovery); i++) {
        found = esk_journal_recovery_state(recovery, i)->checkpoint.applied_index > 0;
    }
    return found;
}

struct orphans {
    struct esk_platform *platform;
    const char *data;
    const char *journals;
    struct esk_error *error;
};

static enum esk_err check_orphan(void *context, const char *name, bool is_folder) {
    const struct orphans *orphans = context;
    if (!is_folder) {
        return ESK_OK;
    }
    char *path = esk_text_format("%s/%s", orphans->journals, name);
    const struct esk_journal_options options = {.platform = orphans->platform, .folder = path};
    struct esk_journal_recovery *recovery;
    enum esk_err err = esk_journal_recover(&options, &recovery, orphans->error);
    if (err == ESK_OK) {
        if (has_entries(recovery)) {
            err = esk_fail(orphans->error, ESK_ERR_CORRUPT, "%s has data in %s but no esker.meta",
                           orphans->data, path);
        }
        esk_journal_recovery_destroy(recovery);
    }
    free(path);
    return err;
}

enum esk_err eski_layout_check_fresh(struct esk_platform *platform, const char *folder,
                                     struct esk_error *error) {
    char *journals = esk_text_format("%s/journal", folder);
    struct orphans orphans = {platform, folder, journals, error};
    enum esk_err err = esk_folder_list(platform, journals, check_orphan, &orphans, error);
    free(journals);
    return err == ESK_ERR_NOT_FOUND ? ESK_OK : err;
}

/* --- cleaning --- */

struct cleaning {
    struct esk_platform *platform;
    const char *folder; /* <data>/journal */
    uint64_t layout;
    const char *inner; /* the folder whose files go */
    struct esk_error *error;
};

static enum esk_err remove_file(void *context, const char *name, bool is_folder) {
    const struct cleaning *cleaning = context;
    (void)is_folder;
    char *path = esk_text_format("%s/%s", cleaning->inner, name);
    enum esk_err err = esk_path_remove(cleaning->platform, path, cleaning->error);
    free(path);
    return err;
}

static enum esk_err clean_one(void *context, const char *name, bool is_folder) {
    struct cleaning *cleaning = context;
    char *end;
    unsigned long long layout = strtoull(name, &end, 10);
    if (!is_folder || end == name || *end != '-' || layout == cleaning->layout) {
        return ESK_OK;
    }
    char *path = esk_text_format("%s/%s", cleaning->folder, name);
    cleaning->inner = path;
    enum esk_err err =
        esk_folder_list(cleaning->platform, path, remove_file, cleaning, cleaning->error);
    if (err == ESK_OK) {
        err = esk_path_remove(cleaning->platform, path, cleaning->error);
    }
    free(path);
    return err;
}

enum esk_err eski_layout_clean(struct esk_platform *platform, const char *folder, uint64_t layout,
                               struct esk_error *error) {
    char *journals = esk_text_format("%s/journal", folder);
    struct cleaning cleaning = {platform, journals, layout, NULL, error};
    enum esk_err err = esk_folder_make(platform, journals, error);
    if (err == ESK_OK) {
        err = esk_folder_sync(platform, folder, error);
    }
    if (err == ESK_OK) {
        err = esk_folder_list(platform, journals, clean_one, &cleaning, error);
    }
    free(journals);
    return err;
}
