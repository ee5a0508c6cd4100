/* SPDX-License-Identifier: Apache-2.0 */
/* What the two passes of recovery share. */
#ifndef ESK_JOURNAL_RECOVERY_PRIVATE_H
#define ESK_JOURNAL_RECOVERY_PRIVATE_H

#include "journal/files_private.h"

/* An entry that replaced earlier ones from index on. */
struct eski_cutoff {
    uint64_t ordinal;
    uint64_t index;
};
struct eski_cutoffs {
    struct eski_cutoff *items; /* by ordinal and by index */
    size_t count;
};

struct esk_journal_recovery {
    struct esk_platform *platform;
    const struct esk_log *log;
    char *folder;
    bool folder_exists;
    bool next_exists;         /* ESKI_NEXT_NAME was left behind */
    struct eski_file **files; /* live, by number */
    size_t file_count;
    uint64_t *voids; /* numbered files behind a cut */
    size_t void_count;
    uint64_t *spares;
    size_t spare_count;
    struct eski_groups groups;
    struct eski_group **sorted; /* those with a state, by id */
    size_t sorted_count;
    struct esk_u64_map cutoffs; /* by group id */
    uint64_t generation;        /* the newest; 0: a new journal */
    uint64_t sequence;          /* of the last frame that counts */
    uint64_t oldest_file;       /* as that frame has it */
    uint64_t number_max;        /* of all files seen */
};

/* Takes an intact frame's records into the groups. */
enum esk_err eski_recovery_take_frame(struct esk_journal_recovery *recovery, struct eski_file *file,
                                      const struct eski_frame_header *header, const uint8_t *frame,
                                      struct esk_error *error);
/* Puts the groups with a state in order of id. */
void eski_recovery_sort(struct esk_journal_recovery *recovery);

/* The numbered files of a folder. */
struct eski_scan_file {
    struct eski_file_header header;
    uint64_t end; /* recorded by the next generation; 0: not known */
    uint64_t end_sequence;
    bool live;
};

struct eski_scan {
    struct esk_journal_recovery *recovery;
    struct eski_scan_file *files;
    size_t count;
    size_t capacity;
};

void eski_numbers_add(uint64_t **numbers, size_t *count, uint64_t number);
/* Takes the frames of all live files; those behind the end become void. */
enum esk_err eski_scan_frames(struct eski_scan *scan, struct esk_error *error);

#endif
