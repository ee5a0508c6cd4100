/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a journal, which groups need which of them, and making, releasing and reading them.
 * The loop's, unless it says otherwise. */
#ifndef ESK_JOURNAL_FILES_PRIVATE_H
#define ESK_JOURNAL_FILES_PRIVATE_H

#include "base/map.h"
#include "journal/format_private.h"
#include "journal/journal.h"

#define ESKI_WRITES_MAX 8 /* more in flight never paid on any disk measured */
#define ESKI_SPARES_MAX 2 /* files kept for the next rolls; others go away */
#define ESKI_NEXT_NAME "next.tmp"

/* --- files (files.c) ------------------------------------------------------------------------- */

/* A journal file that is needed, from its being prepared to its being spare. */
struct eski_file {
    struct esk_link link; /* of the live ones, by number */
    struct esk_mail mail; /* of its release */
    struct esk_journal *journal;
    uint64_t number;
    uint64_t generation;
    uint64_t position;         /* behind its last frame */
    uint64_t prepared_bytes;   /* written before; 0: it grows */
    uint64_t last_sequence;    /* of its last frame */
    uint64_t release_sequence; /* durable up to here: nobody asks for it any more */
    bool told;                 /* a durable frame says that it is not needed */
    uint64_t held;             /* groups with entries in it above their checkpoints */
    struct esk_link states;    /* groups whose newest state is in it */
    struct esk_file *descriptors[ESKI_WRITES_MAX]; /* one for each flusher */
    enum esk_err result;                           /* of its release */
    bool gone;                                     /* by it: there is no spare */
    struct esk_error error;
};

struct eski_file *eski_file_create(struct esk_journal *journal, uint64_t number);
void eski_file_close(struct eski_file *file); /* its descriptors */
void eski_file_destroy(struct eski_file *file);
void eski_files_destroy(struct esk_link *files); /* all of a list */

/* How entries become durable. */
enum eski_mode {
    ESKI_MODE_DIRECT,  /* O_DIRECT and O_DSYNC */
    ESKI_MODE_SYNC,    /* buffered, a sync after each write */
    ESKI_MODE_RELAXED, /* buffered, syncs on their own */
};

/* Making of the next file; in a worker. */
struct eski_prepare {
    struct esk_mail mail;
    struct esk_journal *journal;
    struct eski_file_header header;
    uint64_t spare;         /* made from this one; 0: new */
    bool fill;              /* write the whole of it */
    struct esk_slice head;  /* first frames; aligned */
    struct eski_file *file; /* what is made; without descriptors on failure */
    enum esk_err result;
    struct esk_error error;
};

/* Makes the file in prepare->header, in place of ESKI_NEXT_NAME, durably. Blocks. */
enum esk_err eski_prepare_run(struct esk_journal *journal, struct eski_prepare *prepare,
                              struct esk_error *error);
char *eski_path(const char *folder, uint64_t number, const char *suffix); /* owned */
/* The number in a name NUMBER.SUFFIX; 0: not such a name. */
uint64_t eski_number_of_name(const char *name, const char *suffix);
enum esk_err eski_folder_sync(struct esk_platform *platform, const char *folder,
                              struct esk_error *error);
/* The folder's own name, and the names in it: what a start sees of them may be in the page cache
 * alone, left by a process that died before its sync, and files may be used again only when their
 * old names cannot come back. */
enum esk_err eski_names_sync(struct esk_platform *platform, const char *folder,
                             struct esk_error *error);

/* Renames a numbered file to a spare, durably. Blocks, as the two behind it. */
enum esk_err eski_to_spare(struct esk_platform *platform, const char *folder, uint64_t number,
                           struct esk_error *error);
enum esk_err eski_release_run(struct esk_journal *journal, uint64_t number, bool *gone,
                              struct esk_error *error); /* to a spare of the usual size */
void eski_discard_run(struct esk_journal *journal, uint64_t number); /* a spare, in small steps */

/* In the loop. */
void eski_files_prepare(struct esk_journal *journal); /* the next one, when it is time */
bool eski_files_roll(struct esk_journal *journal, size_t frame_bytes); /* to the next, if better */
void eski_files_release(struct esk_journal *journal);                  /* those that nobody needs */
void eski_files_spare(struct eski_file *file);        /* takes it: a spare, or discarded */
void eski_files_account(struct esk_journal *journal); /* held_bytes */

/* --- groups (groups.c) ----------------------------------------------------------------------- */

/* A file that a group needs, up to the entry index_max. */
struct eski_hold {
    struct eski_hold *next;
    struct eski_file *file;
    uint64_t index_max;
};

struct eski_group {
    struct esk_group_state state;
    struct esk_link link; /* in state_file->states */
    struct eski_file *state_file;
    struct eski_hold *first; /* by file and index */
    struct eski_hold *last;
    bool has_state;
};

struct eski_groups {
    struct esk_u64_map map;
    struct eski_hold *free_holds;
};

void eski_groups_init(struct eski_groups *groups);
void eski_groups_fini(struct eski_groups *groups);
struct eski_group *eski_group_find(const struct eski_groups *groups, uint64_t id);
struct eski_group *eski_group_obtain(struct eski_groups *groups, uint64_t id);
void eski_group_remove(struct eski_groups *groups, struct eski_group *group);
/* The newest state, lying in file; entries up to its checkpoint no longer hold files. */
void eski_group_store(struct eski_groups *groups, struct eski_group *group,
                      const struct esk_group_state *state, struct eski_file *file);
/* An entry in file. True when it cuts off earlier ones of its group. */
bool eski_group_enter(struct eski_groups *groups, struct eski_group *group, uint64_t index,
                      struct eski_file *file);

/* --- reading (scan.c) ----------------------------------------------------------------------*/

uint8_t *eski_aligned_alloc(size_t size); /* to ESKI_BLOCK_BYTES; free() */

/* Reads a file from the device in pieces; a window over it. Blocks. */
#define ESKI_PIECE_BYTES (2u << 20) /* large enough that the device's rate is reached */
struct eski_window {
    struct esk_file *file;
    char *path;
    uint64_t file_bytes; /* whole blocks */
    uint8_t *data;
    size_t capacity;
    uint64_t base;
    size_t size;
};
enum esk_err eski_window_open(struct eski_window *window, struct esk_platform *platform,
                              const char *folder, uint64_t number, size_t piece_bytes,
                              struct esk_error *error);
void eski_window_close(struct eski_window *window);
/* size bytes at position, valid until the next call; NULL in *bytes behind the end. */
enum esk_err eski_window_get(struct eski_window *window, uint64_t position, size_t size,
                             const uint8_t **bytes, struct esk_error *error);
/* The frame of file and generation that begins at position, in *frame; NULL: none that is intact.
 */
enum esk_err eski_window_frame(struct eski_window *window, uint64_t position, uint64_t generation,
                               uint64_t number, struct eski_frame_header *header,
                               const uint8_t **frame, struct esk_error *error);

#endif
