/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery, first pass: which files count, where the last generation ends, and the newest state of
 * each group. Blocks: a worker. Files are synced before they are read, so what is accepted is
 * durable before anybody builds on it.
 *
 * A numbered file always has an intact header, because the header is synced before the file gets
 * its number; so a bad one is damage. */
#include "journal/recovery_private.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutation.h"

#include <inttypes.h>
#include <stdlib.h>

void eski_numbers_add(uint64_t **numbers, size_t *count, uint64_t number) {
    *numbers = esk_realloc(*numbers, (*count + 1) * sizeof(**numbers));
    (*numbers)[(*count)++] = number;
}

static enum esk_err see_name(void *context, const char *name, bool is_folder) {
    struct eski_scan *scan = context;
    struct esk_journal_recovery *recovery = scan->recovery;
    uint64_t number = is_folder ? 0 : eski_number_of_name(name, "journal");
    if (number != 0) {
        if (scan->count == scan->capacity) {
            scan->capacity = scan->capacity ? 2 * scan->capacity : 16;
            scan->files = esk_realloc(scan->files, scan->capacity * sizeof(*scan->files));
        }
        scan->files[scan->count] = (struct eski_scan_file){.header.file = number, .live = true};
        scan->count++;
    } else if (!is_folder && strcmp(name, ESKI_NEXT_NAME) == 0) {
        recovery->next_exists = true;
    } else {
        number = is_folder ? 0 : eski_number_of_name(name, "spare");
        if (number != 0) {
            eski_numbers_add(&recovery->spares, &recovery->spare_count, number);
        }
    }
    if (number > recovery->number_max) {
        recovery->number_max = number;
    }
    return ESK_OK;
}

static enum esk_err read_header(struct eski_scan *scan, struct eski_scan_file *file,
                                struct esk_error *error) {
    struct esk_journal_recovery *recovery = scan->recovery;
    struct eski_window window;
    uint64_t number = file->header.file;
    const uint8_t *block = NULL;
    enum esk_err err = eski_window_open(&window, recovery->platform, recovery->folder, number,
                                        ESKI_BLOCK_BYTES, error);
    if (err != ESK_OK) {
        return err;
    }
    /* What a process that was killed had written is accepted if it can be made durable now. */
    if (!ESK_MUTATED(RECOVER_FROM_CACHE)) {
        err = esk_file_sync(window.file, error);
    }
    if (err == ESK_OK) {
        err = eski_window_get(&window, 0, ESKI_BLOCK_BYTES, &block, error);
    }
    if (err == ESK_OK) {
        err = block ? eski_file_header_decode(block, &file->header, error)
                    : esk_fail(error, ESK_ERR_CORRUPT, "shorter than its header");
        if (err == ESK_OK && file->header.file != number) {
            err = esk_fail(error, ESK_ERR_CORRUPT, "the header is that of file %" PRIu64,
                           file->header.file);
        }
        if (err != ESK_OK) {
            esk_wrap(error, "%s at 0", window.path);
        }
    }
    eski_window_close(&window);
    return err;
}

/* From the newest file down: a generation ends where the next one's headers say. */
static enum esk_err classify(struct eski_scan *scan, struct esk_error *error) {
    if (scan->count == 0) {
        return ESK_OK;
    }
    struct esk_journal_recovery *recovery = scan->recovery;
    const struct eski_file_header *newest = &scan->files[scan->count - 1].header;
    recovery->generation = newest->generation;
    for (size_t i = scan->count; i-- > 0;) {
        struct eski_scan_file *file = &scan->files[i];
        if (file->header.generation == newest->generation) {
            continue;
        }
        if (file->header.generation > newest->generation) {
            return esk_fail(error, ESK_ERR_CORRUPT,
                            "%s: file %016" PRIx64 " is of a later generation than its successor",
                            recovery->folder, file->header.file);
        }
        if (file->header.file > newest->cut_file) {
            file->live = false;
            continue;
        }
        if (file->header.file < newest->cut_file) {
            return esk_fail(error, ESK_ERR_CORRUPT, "%s: file %016" PRIx64 " is missing",
                            recovery->folder, newest->cut_file);
        }
        file->end = newest->cut_position;
        file->end_sequence = newest->cut_sequence;
        newest = &file->header;
    }
    return ESK_OK;
}

/* Splits into live and void files, and checks that none is missing between the live ones. */
static enum esk_err separate(struct eski_scan *scan, struct esk_error *error) {
    struct esk_journal_recovery *recovery = scan->recovery;
    size_t live = 0;
    for (size_t i = 0; i < scan->count; i++) {
        struct eski_scan_file *file = &scan->files[i];
        if (!file->live) {
            eski_numbers_add(&recovery->voids, &recovery->void_count, file->header.file);
            continue;
        }
        if (live > 0 && file->header.previous_file != scan->files[live - 1].header.file) {
            return esk_fail(error, ESK_ERR_CORRUPT, "%s: file %016" PRIx64 " is missing",
                            recovery->folder, file->header.previous_file);
        }
        scan->files[live++] = *file;
    }
    scan->count = live;
    return ESK_OK;
}

static enum esk_err read_files(struct esk_journal_recovery *recovery, struct esk_error *error) {
    struct eski_scan scan = {.recovery = recovery};
    enum esk_err err =
        esk_folder_list(recovery->platform, recovery->folder, see_name, &scan, error);
    if (err == ESK_ERR_NOT_FOUND) {
        free(scan.files);
        return ESK_OK;
    }
    recovery->folder_exists = err == ESK_OK;
    for (size_t i = 0; err == ESK_OK && i < scan.count; i++) {
        err = read_header(&scan, &scan.files[i], error);
    }
    if (err == ESK_OK) {
        err = classify(&scan, error);
    }
    if (err == ESK_OK) {
        err = separate(&scan, error);
    }
    if (err == ESK_OK) {
        err = eski_scan_frames(&scan, error);
    }
    if (err == ESK_OK && scan.count > 0 && recovery->files[0]->number > recovery->oldest_file) {
        err = esk_fail(error, ESK_ERR_CORRUPT, "%s: file %016" PRIx64 " is missing",
                       recovery->folder, recovery->oldest_file);
    }
    free(scan.files);
    return err;
}

enum esk_err esk_journal_recover(const struct esk_journal_options *options,
                                 struct esk_journal_recovery **result, struct esk_error *error) {
    struct esk_journal_recovery *recovery = esk_alloc_zeroed(1, sizeof(*recovery));
    recovery->platform = options->platform;
    recovery->log = options->log;
    recovery->folder = esk_text_copy(options->folder);
    eski_groups_init(&recovery->groups);
    esk_u64_map_init(&recovery->cutoffs);
    enum esk_err err = read_files(recovery, error);
    if (err == ESK_OK && recovery->folder_exists) {
        err = eski_names_sync(recovery->platform, recovery->folder, error);
    }
    if (err != ESK_OK) {
        esk_wrap(error, "recover the journal of shard %" PRIu32, options->shard);
        esk_journal_recovery_destroy(recovery);
        return err;
    }
    eski_recovery_sort(recovery);
    *result = recovery;
    return ESK_OK;
}
