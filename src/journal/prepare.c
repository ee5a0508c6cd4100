/* SPDX-License-Identifier: Apache-2.0 */
/* The helper's work on files, all of which blocks: making the next file, turning one that is no
 * longer needed into a spare, and removing those beyond the spares in small steps (unlinking
 * 64 MiB at once stalls the journal's writes).
 *
 * A file is made under ESKI_NEXT_NAME and gets its number only when its header is synced, so a
 * numbered file without an intact header is damage. A spare's old frames carry its old number. */
#include "journal/journal_private.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutation.h"

#include <inttypes.h>
#include <stdlib.h>

#define FILL_SLICE_BYTES (128u << 10) /* halves the journal's p99 against 1 MiB slices */
#define FILL_HURRY_BYTES (1u << 20)   /* when the file is waited for */
#define FILL_PAUSE_NS 1000000u        /* some 100 MB/s: a file in 0.7 s */
#define FILE_BYTES_LEAST (1u << 20)   /* smaller ones are not worth a roll */
#define SYNC_BYTES (1u << 20)         /* buffered: between syncs */
#define SHRINK_STEP_BYTES (8u << 20)
#define SHRINK_PAUSE_NS 20000000u

char *eski_path(const char *folder, uint64_t number, const char *suffix) {
    return esk_text_format("%s/%016" PRIx64 ".%s", folder, number, suffix);
}

uint64_t eski_number_of_name(const char *name, const char *suffix) {
    uint64_t number = 0;
    for (int i = 0; i < 16; i++) {
        char c = name[i];
        if (c >= '0' && c <= '9') {
            number = number << 4 | (uint64_t)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            number = number << 4 | (uint64_t)(c - 'a' + 10);
        } else {
            return 0;
        }
    }
    return name[16] == '.' && strcmp(name + 17, suffix) == 0 ? number : 0;
}

enum esk_err eski_folder_sync(struct esk_platform *platform, const char *folder,
                              struct esk_error *error) {
    return ESK_MUTATED(NO_FOLDER_SYNC) ? ESK_OK : esk_folder_sync(platform, folder, error);
}

enum esk_err eski_names_sync(struct esk_platform *platform, const char *folder,
                             struct esk_error *error) {
    char *parent = esk_text_copy(folder);
    char *slash = strrchr(parent, '/');
    if (slash && slash != parent) {
        *slash = '\0';
    }
    enum esk_err err = eski_folder_sync(platform, slash ? parent : ".", error);
    if (err == ESK_OK) {
        err = eski_folder_sync(platform, folder, error);
    }
    free(parent);
    return err;
}

static enum esk_err rename_to_spare(struct esk_platform *platform, const char *folder,
                                    uint64_t number, struct esk_error *error) {
    char *from = eski_path(folder, number, "journal");
    char *to = eski_path(folder, number, "spare");
    enum esk_err err = esk_path_rename(platform, from, to, error);
    free(from);
    free(to);
    return err;
}

enum esk_err eski_to_spare(struct esk_platform *platform, const char *folder, uint64_t number,
                           struct esk_error *error) {
    enum esk_err err = rename_to_spare(platform, folder, number, error);
    return err == ESK_OK ? eski_folder_sync(platform, folder, error) : err;
}

/* A failed sync is not tried again, for whatever reason: pages may be gone. */
static enum esk_err final_error(enum esk_err err) {
    return err == ESK_ERR_NO_SPACE ? ESK_ERR_IO : err;
}

/* Cuts the file in small steps; where it is by then, when the journal is closing. */
static enum esk_err shrink(struct esk_journal *journal, struct esk_file *file, uint64_t to,
                           struct esk_error *error) {
    uint64_t bytes = 0;
    enum esk_err err = esk_file_size(file, &bytes, error);
    while (err == ESK_OK && bytes > to &&
           !atomic_load_explicit(&journal->abandon, memory_order_relaxed)) {
        bytes = bytes - to > SHRINK_STEP_BYTES ? bytes - SHRINK_STEP_BYTES : to;
        err = esk_file_truncate(file, bytes, error);
        if (bytes > to) {
            esk_pause(journal->options.platform, SHRINK_PAUSE_NS);
        }
    }
    return err;
}

void eski_discard_run(struct esk_journal *journal, uint64_t number) {
    struct esk_platform *platform = journal->options.platform;
    char *path = eski_path(journal->folder, number, "spare");
    struct esk_file *file;
    /* What fails here leaves a spare, which the next start finds. */
    if (esk_file_open(platform, path, ESK_FILE_WRITE, &file, NULL) == ESK_OK) {
        (void)shrink(journal, file, 0, NULL);
        esk_file_close(file);
        (void)esk_path_remove(platform, path, NULL);
    }
    free(path);
}

/* On a full disk there may be no room for a name: then the file goes, which makes some. */
static enum esk_err remove_instead(struct esk_journal *journal, uint64_t number,
                                   struct esk_error *error) {
    char *path = eski_path(journal->folder, number, "journal");
    enum esk_err err = esk_path_remove(journal->options.platform, path, error);
    if (err == ESK_OK) {
        err = final_error(eski_folder_sync(journal->options.platform, journal->folder, error));
    }
    free(path);
    return err;
}

enum esk_err eski_release_run(struct esk_journal *journal, uint64_t number, bool *gone,
                              struct esk_error *error) {
    struct esk_platform *platform = journal->options.platform;
    struct esk_file *file;
    enum esk_err err = rename_to_spare(platform, journal->folder, number, error);
    *gone = err == ESK_ERR_NO_SPACE;
    if (*gone) {
        return remove_instead(journal, number, error);
    }
    if (err == ESK_OK) {
        err = final_error(eski_folder_sync(platform, journal->folder, error));
    }
    if (err == ESK_OK) {
        char *path = eski_path(journal->folder, number, "spare");
        err = esk_file_open(platform, path, ESK_FILE_WRITE, &file, error);
        if (err == ESK_OK) {
            err = shrink(journal, file, journal->options.file_bytes, error);
            esk_file_close(file);
        }
        free(path);
    }
    return err;
}

/* The size to make a file of, which has `bytes`: the usual one, or less where the disk is short of
 * room, of which a quarter is taken at most, unless that leaves too small a file. */
static enum esk_err plan_size(struct esk_journal *journal, uint64_t bytes, uint64_t *target,
                              struct esk_error *error) {
    uint64_t usual = journal->options.file_bytes;
    uint64_t least = usual < FILE_BYTES_LEAST ? usual : FILE_BYTES_LEAST;
    uint64_t free_bytes, total_bytes;
    *target = usual;
    if (bytes >= usual) {
        return ESK_OK;
    }
    enum esk_err err = esk_path_space(journal->options.platform, journal->folder, &free_bytes,
                                      &total_bytes, error);
    uint64_t share = free_bytes / 4 / ESKI_BLOCK_BYTES * ESKI_BLOCK_BYTES;
    if (err != ESK_OK || share >= usual - bytes) {
        return err;
    }
    *target = bytes + share > least ? bytes + share : least;
    if (*target > bytes && *target - bytes > free_bytes) {
        return esk_fail(error, ESK_ERR_NO_SPACE, "%" PRIu64 " bytes are free, %" PRIu64 " needed",
                        free_bytes, *target - bytes);
    }
    return ESK_OK;
}

/* Writes zeros from `from` until `until`, in slices, with pauses unless the file is waited for. */
static enum esk_err fill(struct esk_journal *journal, struct esk_file *file, uint64_t from,
                         uint64_t until, struct esk_error *error) {
    uint8_t *zeros = eski_aligned_alloc(FILL_HURRY_BYTES);
    memset(zeros, 0, FILL_HURRY_BYTES);
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && from < until) {
        if (atomic_load_explicit(&journal->abandon, memory_order_relaxed)) {
            err = esk_fail(error, ESK_ERR_AGAIN, "closing");
            break;
        }
        bool hurry = atomic_load_explicit(&journal->hurry, memory_order_relaxed);
        size_t slice = hurry ? FILL_HURRY_BYTES : FILL_SLICE_BYTES;
        size_t size = until - from < slice ? (size_t)(until - from) : slice;
        struct esk_slice part = esk_slice(zeros, size);
        err = esk_file_write(file, &part, 1, from, error);
        from += size;
        if (err == ESK_OK && journal->mode != ESKI_MODE_DIRECT && from % SYNC_BYTES == 0) {
            err = final_error(esk_file_sync(file, error)); /* no burst at the end */
        }
        if (err == ESK_OK && !hurry) {
            esk_pause(journal->options.platform, FILL_PAUSE_NS);
        }
    }
    free(zeros);
    return err;
}

/* A file that holds what it should under ESKI_NEXT_NAME, synced. */
static enum esk_err write_next(struct esk_journal *journal, struct eski_prepare *prepare,
                               const char *path, uint64_t *prepared_bytes,
                               struct esk_error *error) {
    unsigned flags = ESK_FILE_READ | ESK_FILE_WRITE | ESK_FILE_CREATE |
                     (journal->mode == ESKI_MODE_DIRECT ? ESK_FILE_DIRECT : 0);
    uint8_t *block = eski_aligned_alloc(ESKI_BLOCK_BYTES);
    struct esk_file *file = NULL;
    uint64_t bytes = 0;
    uint64_t target = 0;
    enum esk_err err = esk_file_open(journal->options.platform, path, flags, &file, error);
    if (err == ESK_OK) {
        err = esk_file_size(file, &bytes, error);
    }
    if (err == ESK_OK && bytes > journal->options.file_bytes) {
        bytes = journal->options.file_bytes;
        err = shrink(journal, file, bytes, error);
    }
    bytes = bytes / ESKI_BLOCK_BYTES * ESKI_BLOCK_BYTES;
    if (err == ESK_OK && prepare->fill) {
        err = plan_size(journal, bytes, &target, error);
        if (err == ESK_OK && target > bytes) {
            err = fill(journal, file, bytes, target, error);
            if (err == ESK_ERR_NO_SPACE) { /* the last of a disk is better used elsewhere */
                (void)esk_file_truncate(file, bytes, NULL);
            }
            bytes = target;
        }
    }
    if (err == ESK_OK) {
        eski_file_header_encode(&prepare->header, block);
        struct esk_slice parts[2] = {esk_slice(block, ESKI_BLOCK_BYTES), prepare->head};
        err = esk_file_write(file, parts, 1, 0, error);
        if (err == ESK_OK && prepare->head.size > 0) {
            err = esk_file_write(file, parts + 1, 1, ESKI_BLOCK_BYTES, error);
        }
    }
    if (err == ESK_OK) {
        err = final_error(esk_file_sync(file, error));
    }
    *prepared_bytes = prepare->fill || bytes >= journal->options.file_bytes ? bytes : 0;
    esk_file_close(file);
    free(block);
    return err;
}

static enum esk_err open_descriptors(struct esk_journal *journal, struct eski_file *file,
                                     const char *path, struct esk_error *error) {
    unsigned flags = ESK_FILE_WRITE;
    if (journal->mode == ESKI_MODE_DIRECT) {
        flags |= ESK_FILE_DIRECT | ESK_FILE_DSYNC;
    }
    for (unsigned i = 0; i < journal->options.writes_max; i++) {
        enum esk_err err =
            esk_file_open(journal->options.platform, path, flags, &file->descriptors[i], error);
        if (err != ESK_OK) {
            return err;
        }
    }
    return ESK_OK;
}

enum esk_err eski_prepare_run(struct esk_journal *journal, struct eski_prepare *prepare,
                              struct esk_error *error) {
    struct esk_platform *platform = journal->options.platform;
    char *next = esk_text_format("%s/%s", journal->folder, ESKI_NEXT_NAME);
    char *path = eski_path(journal->folder, prepare->header.file, "journal");
    struct eski_file *file = prepare->file;
    enum esk_err err = ESK_OK;
    file->generation = prepare->header.generation;
    if (prepare->spare != 0) {
        char *spare = eski_path(journal->folder, prepare->spare, "spare");
        err = esk_path_rename(platform, spare, next, error);
        free(spare);
    }
    if (err == ESK_OK) {
        err = write_next(journal, prepare, next, &file->prepared_bytes, error);
    }
    if (err == ESK_OK) {
        err = open_descriptors(journal, file, next, error);
    }
    if (err == ESK_OK) {
        err = esk_path_rename(platform, next, path, error);
    }
    if (err == ESK_OK) {
        err = final_error(eski_folder_sync(platform, journal->folder, error));
    }
    if (err != ESK_OK) {
        esk_wrap(error, "make journal file %016" PRIx64, prepare->header.file);
        eski_file_close(file);
    }
    free(next);
    free(path);
    return err;
}
