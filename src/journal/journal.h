/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of one shard: the Raft log, terms, votes and checkpoints of all its groups, in
 * files of fixed size that are written in one aligned durable write per group commit and recycled.
 * docs/format-journal.md has the bytes.
 *
 * Life: esk_journal_recover (a worker, blocks) reads what is there; esk_journal_recovery_replay
 * hands out the entries above each group's checkpoint; esk_journal_open (a worker, blocks) begins
 * a new generation in a new file; from then on the journal belongs to its loop. esk_journal_close
 * begins the stop and calls back once.
 *
 * Failure: an EIO of a write or any failed sync ends the broker: `failed` is called once, nothing
 * is acknowledged afterwards. ENOSPC of a write stops appends (they wait, `has_room` is false, the
 * partition layer answers ESK_ERR_NO_SPACE) until there is room again. */
#ifndef ESK_JOURNAL_JOURNAL_H
#define ESK_JOURNAL_JOURNAL_H

#include "base/error.h"
#include "base/list.h"
#include "model/entry.h"
#include "model/group_state.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "platform/platform.h"

struct esk_journal;

/* Written by the journal's loop, read by a scrape. */
struct esk_journal_metrics {
    struct esk_counter flushes;
    struct esk_histogram flush_duration_ns;
    struct esk_histogram commit_records;
};

struct esk_journal_options {
    struct esk_platform *platform;
    struct esk_loop *loop;    /* the owner */
    const char *folder;       /* this journal's own; made by open when missing */
    uint32_t shard;           /* for metrics and messages */
    uint64_t file_bytes;      /* of a journal file; 64 MiB in production */
    uint64_t held_bytes_max;  /* not yet recyclable: beyond it has_room is false */
    uint32_t frame_bytes_max; /* payload gathered into one write, unless one entry is larger */
    unsigned writes_max;      /* in flight: 2 */
    uint32_t
        flush_every_records;    /* 1: strict; N: flush after N relaxed records; 0: interval only */
    uint32_t flush_interval_ms; /* for relaxed entries */
    const struct esk_log *log;
    struct esk_journal_metrics *metrics;
    /* All in the loop. */
    void (*failed)(void *context, const struct esk_error *error); /* once; the broker must end */
    void (*room)(void *context);                                  /* has_room turned true again */
    void *context;
};

/* --- recovery: in a worker --- */

struct esk_journal_recovery;

/* Reads and verifies every file from the device, finds the end, gathers the newest state of each
 * group. ESK_ERR_CORRUPT names file and position when a damaged frame lies below a later frame's
 * durable_upto; above it the torn tail is cut. ESK_ERR_VERSION: a newer format. A missing or empty
 * folder is a new journal. What it accepted is synced before it returns. */
enum esk_err esk_journal_recover(const struct esk_journal_options *options,
                                 struct esk_journal_recovery **recovery, struct esk_error *error);

/* The groups found, in order of id; index 0 .. count-1. */
size_t esk_journal_recovery_count(const struct esk_journal_recovery *recovery);
const struct esk_group_state *
esk_journal_recovery_state(const struct esk_journal_recovery *recovery, size_t index);
const struct esk_group_state *esk_journal_recovery_find(const struct esk_journal_recovery *recovery,
                                                        uint64_t group_id); /* NULL: unknown */

/* Calls visit, in the order in which they were appended, for each entry above its group's
 * checkpoint that no later entry cut off (an entry with index i replaces all earlier ones of its
 * group from i on). payload is borrowed for the call. May be called more than once (group 0 first:
 * only_group, or UINT64_MAX for all). Stops at the first error of visit. */
enum esk_err esk_journal_recovery_replay(struct esk_journal_recovery *recovery, uint64_t only_group,
                                         enum esk_err (*visit)(void *context, uint64_t group_id,
                                                               const struct esk_entry *entry,
                                                               struct esk_error *error),
                                         void *context, struct esk_error *error);

/* Frees it without opening (a layout change, a refused start). */
void esk_journal_recovery_destroy(struct esk_journal_recovery *recovery);

/* Takes the recovery and begins the next generation: a new file whose header records the cut,
 * holding the given states (those of groups to keep: terms raised by the caller), synced. Groups
 * without a state are forgotten. The entries above the checkpoints stay where they are until they
 * are checkpointed. The recovery is gone afterwards, also when this fails. On a full disk it needs
 * no room if the last life left a prepared file or a spare. */
enum esk_err esk_journal_open(const struct esk_journal_options *options,
                              struct esk_journal_recovery **recovery,
                              const struct esk_group_state *states, size_t count,
                              struct esk_journal **journal, struct esk_error *error);

/* --- running: in the loop --- */

/* One append, part of the submitter's memory; the journal's from append until `durable` ran. */
struct esk_journal_append {
    struct esk_link link;
    uint64_t group_id;
    struct esk_entry entry; /* kind, index, term, payload; the payload is borrowed likewise */
    const struct esk_group_state *state; /* instead of an entry, when not NULL: stored as newest */
    uint32_t records;                    /* counted by metrics and flush_every_records */
    bool strict;                         /* persisted means durable, whatever the flush setting */
    /* persisted: written by the flush policy (durable when strict): consensus may count it.
     * durable: on the device, with everything appended earlier. Each is called once, in the order
     * of appending, persisted first; with `failed` called instead nothing more comes. */
    void (*persisted)(struct esk_journal_append *append);
    void (*durable)(struct esk_journal_append *append);
    uint64_t position; /* set before persisted: grows with every append over the whole journal */
};

/* Queues it; it goes out with the next commit, which is built when a write slot is free, after the
 * mails that have arrived were handled. Never fails. */
void esk_journal_append(struct esk_journal *journal, struct esk_journal_append *append);

/* Whether produces may be admitted: not over held_bytes_max, not out of disk. *err tells why not:
 * ESK_ERR_AGAIN (wait for room) or ESK_ERR_NO_SPACE. */
bool esk_journal_has_room(const struct esk_journal *journal, enum esk_err *err);

/* From 0 (empty) to 1 (held_bytes_max): sets the pace of checkpoints. */
double esk_journal_fullness(const struct esk_journal *journal);

/* The newest state stored of a group; NULL when it has none. */
const struct esk_group_state *esk_journal_state(const struct esk_journal *journal,
                                                uint64_t group_id);

/* Drops a deleted group: written with the next commit; its entries no longer hold files. */
void esk_journal_forget(struct esk_journal *journal, uint64_t group_id);

/* Writes what is queued, waits for the writes, writes the empty frame that vouches for them, and
 * calls done in the loop; then the journal is freed. */
void esk_journal_close(struct esk_journal *journal, void (*done)(void *context), void *context);

#endif
