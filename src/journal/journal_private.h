/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share: groups and what they hold, files and their helper's jobs,
 * write slots. Everything is the loop's unless it says otherwise. */
#ifndef ESK_JOURNAL_JOURNAL_PRIVATE_H
#define ESK_JOURNAL_JOURNAL_PRIVATE_H

#include "base/map.h"
#include "journal/format_private.h"
#include "journal/journal.h"

#include <stdatomic.h>

#define ESKI_WRITES_MAX 8               /* more in flight never paid on any disk measured */
#define ESKI_FRAMES_MAX 16              /* built and not yet written in order */
#define ESKI_COPIES_MAX 24              /* large payloads of a frame, copied by its flusher */
#define ESKI_COPY_BYTES_MIN (64u << 10) /* from here on the flusher copies, not the loop */
#define ESKI_CARRY_BYTES (64u << 10)    /* states carried in one frame: some 450, 30 us */
#define ESKI_SPARES_MAX 2               /* files kept for the next rolls; others go away */
#define ESKI_NEXT_NAME "next.tmp"

struct esk_journal;

/* --- files (files.c) ---------------------------------------------------------------------------
 */

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
    uint64_t held;             /* groups with entries in it above their checkpoints */
    struct esk_link states;    /* groups whose newest state is in it */
    struct esk_file *descriptors[ESKI_WRITES_MAX]; /* one for each flusher */
    enum esk_err result;                           /* of its release */
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

/* Renames a numbered file to a spare, durably. Blocks. */
enum esk_err eski_to_spare(struct esk_platform *platform, const char *folder, uint64_t number,
                           struct esk_error *error);
void eski_discard_run(struct esk_journal *journal, uint64_t number); /* a spare; blocks */

/* In the loop. */
void eski_files_prepare(struct esk_journal *journal); /* the next one, when it is time */
bool eski_files_roll(struct esk_journal *journal, size_t frame_bytes); /* to the next, if better */
void eski_files_release(struct esk_journal *journal);                  /* those that nobody needs */
void eski_files_spare(struct esk_journal *journal, uint64_t number);   /* one more */
void eski_files_post_release(struct eski_file *file);
void eski_files_account(struct esk_journal *journal); /* held_bytes */

/* --- groups (groups.c) -------------------------------------------------------------------------
 */

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

/* --- recovery (recovery.c, scan.c) --------------------------------------------------------------
 */

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

uint8_t *eski_aligned_alloc(size_t size); /* to ESKI_BLOCK_BYTES; free() */

/* --- the journal (journal.c, commit.c, deliver.c, open.c) ----------------------------------------
 */

/* A frame that is built and not yet written in order. */
struct eski_frame {
    uint64_t sequence;
    uint64_t end_position; /* of the last append in it, or before */
    uint32_t records;
    bool strict;
    bool written;
};

struct eski_copy {
    uint8_t *to;
    struct esk_slice from;
};

/* A flusher, its buffer, and the write or sync that it is at. Between post and reply it is the
 * flusher's. */
struct eski_slot {
    struct esk_mail mail;
    struct esk_journal *journal;
    struct esk_executor *worker;
    unsigned number;
    bool busy;
    bool stalled; /* its write found no room: it is tried again, until one succeeds */
    bool syncing; /* a sync, not a write */
    uint8_t *buffer;
    size_t capacity;
    struct eski_file *files[2]; /* written to; or to sync, NULL: none */
    uint64_t position;
    uint32_t size;
    struct eski_frame *frame;
    struct eski_copy copies[ESKI_COPIES_MAX];
    size_t copy_count;
    uint64_t duration_ns;
    enum esk_err result;
    bool result_final; /* no second try: it came from a sync */
    struct esk_error error;
};

struct esk_journal {
    struct esk_journal_options options;
    char *folder;
    enum eski_mode mode;
    struct eski_groups groups;

    struct esk_link files; /* live; the last one is current, unless `next` is taken */
    struct eski_file *current;
    struct eski_file *next;   /* prepared */
    struct esk_link retiring; /* waiting for release_sequence */
    struct esk_executor *helper;
    struct eski_prepare prepare;
    bool preparing;
    bool prepare_no_space;
    unsigned helper_jobs;
    uint64_t spares[ESKI_SPARES_MAX];
    size_t spare_count;
    uint64_t number_next;
    struct eski_file_header header; /* what each file of this generation says */
    atomic_bool hurry;              /* the next file is wanted now: no pauses */
    atomic_bool abandon;            /* closing: background work stops early */

    struct eski_slot slots[ESKI_WRITES_MAX];
    struct eski_frame frames[ESKI_FRAMES_MAX]; /* a ring */
    size_t frame_first;
    size_t frame_count;
    unsigned stalled;
    uint64_t sequence_next;
    uint64_t content_sequence; /* of the last frame with records in it */
    uint64_t vouched_sequence; /* durable_upto of the last frame built */

    struct esk_link queue;        /* appends that are in no frame yet */
    struct esk_link pending;      /* in a frame, in order, until durable ran */
    struct esk_link *unpersisted; /* first of pending whose persisted did not run */
    uint64_t position;            /* of the last append */
    uint64_t built_position;
    uint64_t written_sequence, written_position;
    uint64_t durable_sequence, durable_position;
    bool want_empty;

    bool syncing; /* relaxed: */
    bool strict_written;
    uint64_t records_written;
    uint64_t unsynced_since_ns;
    uint64_t sync_sequence, sync_position;

    struct esk_mail build_mail, deliver_mail, close_mail, start_mail;
    bool build_posted, deliver_posted, close_posted, start_posted;
    struct esk_journal_recovery *recovery; /* until start_mail ran */
    struct esk_timer timer;
    uint64_t timer_due_ns; /* 0: not running */
    uint64_t active_ns;    /* last completion */
    uint64_t retry_at_ns;  /* no room: 0: no retry */
    uint64_t held_bytes;
    bool had_room;
    bool failed;
    bool closing;
    void (*done)(void *context);
    void *done_context;
};

/* commit.c */
void eski_build_schedule(struct esk_journal *journal);
void eski_slot_post(struct eski_slot *slot);
struct eski_slot *eski_slot_free(struct esk_journal *journal);
size_t eski_append_size(const struct esk_journal_append *append);

/* deliver.c */
void eski_flushed(struct eski_slot *slot);
void eski_deliver(struct esk_journal *journal);
void eski_sync_start(struct esk_journal *journal);            /* when it is time */
uint64_t eski_sync_due_ns(const struct esk_journal *journal); /* UINT64_MAX: no time set */

/* journal.c */
bool eski_is_forget(const struct esk_journal_append *append);
void eski_fail(struct esk_journal *journal, const struct esk_error *error);
void eski_settle(struct esk_journal *journal); /* after anything completed; may free it */
void eski_room_update(struct esk_journal *journal);
void eski_tick(struct esk_timer *timer);
void eski_start_in_turn(struct esk_mail *mail);
bool eski_carry_pending(const struct esk_journal *journal);
uint64_t eski_oldest_file(const struct esk_journal *journal);

#endif
