/* SPDX-License-Identifier: Apache-2.0 */
/* A running journal: write slots, frames, appends. The loop's, unless it says otherwise. */
#ifndef ESK_JOURNAL_JOURNAL_PRIVATE_H
#define ESK_JOURNAL_JOURNAL_PRIVATE_H

#include "journal/recovery_private.h"

#include <stdatomic.h>

#define ESKI_FRAMES_MAX 16                /* built and not yet written in order */
#define ESKI_COPIES_MAX 24                /* large payloads of a frame, copied by its flusher */
#define ESKI_COPY_BYTES_MIN (64u << 10)   /* from here on the flusher copies, not the loop */
#define ESKI_BEGIN_BYTES_MAX (128u << 10) /* frames that the loop writes: 20 us of CPU at most */
#define ESKI_CARRY_BYTES (64u << 10)      /* states carried in one frame: some 450, 30 us */

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

/* A flusher, its buffer, and the write or sync that is under way. Between post and reply it is the
 * flusher's, or of a small frame the file's: such a one is begun in the loop, since the flusher's
 * two wake-ups would cost as much CPU again as the write. */
struct eski_slot {
    struct esk_mail mail;
    struct esk_write write; /* of a small frame */
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
    uint64_t begun_ns;
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
    struct eski_file *next;    /* prepared */
    uint64_t carry_below;      /* states in files before this one are to be carried */
    struct esk_link retiring;  /* waiting for release_sequence */
    struct esk_link releasing; /* in the helper */
    bool release_failed;       /* the helper's */
    struct esk_executor *helper;
    struct eski_prepare prepare;
    bool preparing;
    bool prepare_no_space;
    unsigned helper_jobs;
    uint64_t spares[ESKI_SPARES_MAX];
    size_t spare_count;
    uint64_t number_next;
    struct eski_file_header header; /* what each file of this generation says */
    atomic_bool hurry;              /* the next file is wanted soon: no pauses */
    uint64_t pace_since_ns;         /* when the current step of the current file began, */
    uint64_t pace_position;         /* and where; */
    uint64_t pace_ns;               /* how long the step before took; at first forever */
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
void eski_journal_fail(struct esk_journal *journal, const struct esk_error *error);
void eski_settle(struct esk_journal *journal); /* after anything completed; may free it */
void eski_room_update(struct esk_journal *journal);
void eski_tick(struct esk_timer *timer);
void eski_start_in_turn(struct esk_mail *mail);
struct eski_file *eski_carry_file(const struct esk_journal *journal); /* with states to carry */
uint64_t eski_oldest_file(const struct esk_journal *journal);

#endif
