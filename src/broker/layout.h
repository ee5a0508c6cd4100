/* SPDX-License-Identifier: Apache-2.0 */
/* The data folder: its lock, its identity file, where journals and the rest lie, and which layout
 * of journals counts. docs/format-data-folder.md has the names and bytes. Everything blocks. */
#ifndef ESK_BROKER_LAYOUT_H
#define ESK_BROKER_LAYOUT_H

#include "base/error.h"
#include "platform/platform.h"

/* What esker.meta holds. */
struct eski_layout {
    uint64_t layout;      /* names the journal folders: <layout>-<shard>; grows with each change */
    uint32_t shard_count; /* that this layout is for */
    uint32_t offset_partitions;
    uint32_t node;
};

/* Makes the folder when missing and locks it; ESK_ERR_CONFLICT: another broker has it. */
enum esk_err eski_layout_lock(struct esk_platform *platform, const char *folder,
                              struct esk_file **lock, struct esk_error *error);

/* ESK_ERR_NOT_FOUND: a new data folder. ESK_ERR_VERSION, ESK_ERR_CORRUPT name the file. A folder
 * with data but without its identity file is ESK_ERR_CORRUPT too. */
enum esk_err eski_layout_load(struct esk_platform *platform, const char *folder,
                              struct eski_layout *layout, struct esk_error *error);
enum esk_err eski_layout_store(struct esk_platform *platform, const char *folder,
                               const struct eski_layout *layout, struct esk_error *error);

/* For a folder without identity file: whether it is new, or where its first start was cut off.
 * ESK_ERR_CORRUPT: a journal there has entries, so somebody lost the file. */
enum esk_err eski_layout_check_fresh(struct esk_platform *platform, const char *folder,
                                     struct esk_error *error);

/* <folder>/journal/<layout>-<shard>; owned. */
char *eski_layout_journal(const char *folder, uint64_t layout, uint32_t shard);
/* Makes <folder>/journal; removes journal folders of other layouts: leftovers of a change that a
 * crash cut off. */
enum esk_err eski_layout_clean(struct esk_platform *platform, const char *folder, uint64_t layout,
                               struct esk_error *error);

#endif
