/* SPDX-License-Identifier: Apache-2.0 */
/* A running journal: what its owner calls, what happens between completions, the timer, and the
 * stop. `eski_settle` runs after anything completed and is the only place that frees it. */
#include "journal/journal_private.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutation.h"

#include <stdlib.h>

#define VOUCH_AFTER_NS 10000000u     /* idle: before the empty frame */
#define BUFFERS_AFTER_NS 1000000000u /* idle: before buffers are given back */
#define RETRY_AFTER_NS 100000000u    /* no room: before the next try */

/* --- appends --- */

void esk_journal_append(struct esk_journal *journal, struct esk_journal_append *append) {
    ESK_ASSERT(!journal->closing || eski_is_forget(append));
    ESK_ASSERT(append->state || append->entry.payload.size <= ESKI_ENTRY_BYTES_MAX);
    journal->position += eski_append_size(append);
    append->position = journal->position;
    esk_list_append(&journal->queue, &append->link);
    eski_build_schedule(journal);
}

static void forget_persisted(struct esk_journal_append *append) {
    (void)append;
}

static void forget_durable(struct esk_journal_append *append) {
    free(append);
}

bool eski_is_forget(const struct esk_journal_append *append) {
    return append->persisted == forget_persisted;
}

void esk_journal_forget(struct esk_journal *journal, uint64_t group_id) {
    struct esk_journal_append *append = esk_alloc_zeroed(1, sizeof(*append));
    append->group_id = group_id;
    append->strict = true;
    append->persisted = forget_persisted;
    append->durable = forget_durable;
    esk_journal_append(journal, append);
}

/* Without a prepared file to go on in and without room to make one, what is left of the current
 * file is kept for what was admitted and for checkpoints, which free older files. */
static bool out_of_space(const struct esk_journal *journal) {
    const struct eski_file *current = journal->current;
    return journal->stalled > 0 ||
           (journal->prepare_no_space && current->position > current->prepared_bytes / 4 * 3);
}

bool esk_journal_has_room(const struct esk_journal *journal, enum esk_err *err) {
    if (out_of_space(journal)) {
        *err = ESK_ERR_NO_SPACE;
        return false;
    }
    if (journal->failed || journal->held_bytes > journal->options.held_bytes_max) {
        *err = ESK_ERR_AGAIN;
        return false;
    }
    *err = ESK_OK;
    return true;
}

double esk_journal_fullness(const struct esk_journal *journal) {
    double fullness = (double)journal->held_bytes / (double)journal->options.held_bytes_max;
    return fullness > 1 ? 1 : fullness;
}

const struct esk_group_state *esk_journal_state(const struct esk_journal *journal,
                                                uint64_t group_id) {
    const struct eski_group *group = eski_group_find(&journal->groups, group_id);
    return group && group->has_state ? &group->state : NULL;
}

void eski_room_update(struct esk_journal *journal) {
    enum esk_err err;
    bool room = esk_journal_has_room(journal, &err);
    bool back = room && !journal->had_room;
    if (!room && journal->had_room && err == ESK_ERR_AGAIN) {
        ESK_REACHED(JOURNAL_FULL);
    }
    journal->had_room = room;
    if (back && journal->options.room) {
        journal->options.room(journal->options.context);
    }
}

void eski_journal_fail(struct esk_journal *journal, const struct esk_error *error) {
    if (journal->failed) {
        return;
    }
    ESK_REACHED(JOURNAL_FAILED);
    journal->failed = true;
    atomic_store_explicit(&journal->abandon, true, memory_order_relaxed);
    ESK_LOG(journal->options.log, ESK_LOG_ERROR, "journal_failed", error->text,
            esk_field_u64("shard", journal->options.shard));
    if (journal->options.failed) {
        journal->options.failed(journal->options.context, error);
    }
}

/* --- between completions --- */

static bool is_idle(const struct esk_journal *journal) {
    return esk_list_empty(&journal->queue) && journal->frame_count == 0 && !journal->syncing;
}

/* Whether the last frame waits for one that vouches for it, or a release for one that tells. */
static bool needs_empty(const struct esk_journal *journal) {
    if (journal->content_sequence > journal->vouched_sequence &&
        journal->content_sequence <= journal->durable_sequence) {
        return true;
    }
    const struct esk_link *last = journal->retiring.previous;
    return last != &journal->retiring &&
           ESK_CONTAINER(last, struct eski_file, link)->release_sequence == journal->sequence_next;
}

static bool has_buffers(const struct esk_journal *journal) {
    for (unsigned i = 0; i < journal->options.writes_max; i++) {
        if (journal->slots[i].buffer) {
            return true;
        }
    }
    return false;
}

static void buffers_free(struct esk_journal *journal, size_t above) {
    for (unsigned i = 0; i < journal->options.writes_max; i++) {
        struct eski_slot *slot = &journal->slots[i];
        if (!slot->busy && !slot->stalled && slot->capacity > above) {
            free(slot->buffer);
            slot->buffer = NULL;
            slot->capacity = 0;
        }
    }
}

/* Stalled writes stay marked until one succeeds: until then there is no room. */
static void retry(struct esk_journal *journal) {
    journal->retry_at_ns = 0;
    for (unsigned i = 0; i < journal->options.writes_max; i++) {
        struct eski_slot *slot = &journal->slots[i];
        if (slot->stalled && !slot->busy) {
            eski_slot_post(slot);
        }
    }
    eski_files_prepare(journal);
}

void eski_tick(struct esk_timer *timer) {
    struct esk_journal *journal = ESK_CONTAINER(timer, struct esk_journal, timer);
    journal->timer_due_ns = 0;
    eski_settle(journal);
}

static void timer_arm(struct esk_journal *journal) {
    uint64_t due = journal->retry_at_ns ? journal->retry_at_ns : UINT64_MAX;
    uint64_t sync = eski_sync_due_ns(journal);
    if (sync != 0 && sync < due) { /* 0: as soon as a slot is free */
        due = sync;
    }
    if (is_idle(journal)) {
        uint64_t idle = needs_empty(journal)   ? journal->active_ns + VOUCH_AFTER_NS
                        : has_buffers(journal) ? journal->active_ns + BUFFERS_AFTER_NS
                                               : UINT64_MAX;
        due = idle < due ? idle : due;
    }
    if (due != UINT64_MAX && (journal->timer_due_ns == 0 || due < journal->timer_due_ns)) {
        journal->timer_due_ns = due;
        esk_timer_start(journal->options.loop, &journal->timer, due);
    }
}

/* What time brings: a second try, the empty frame, memory given back. */
static void handle_time(struct esk_journal *journal) {
    uint64_t now = esk_loop_now_ns(journal->options.loop);
    if (journal->retry_at_ns != 0 && now >= journal->retry_at_ns) {
        retry(journal);
    }
    if ((journal->stalled > 0 || journal->prepare_no_space) && journal->retry_at_ns == 0) {
        journal->retry_at_ns = now + RETRY_AFTER_NS;
    }
    if (!is_idle(journal)) {
        return;
    }
    if (needs_empty(journal)) {
        if (now >= journal->active_ns + VOUCH_AFTER_NS || journal->closing) {
            journal->want_empty = true;
        }
    } else if (now >= journal->active_ns + BUFFERS_AFTER_NS) {
        buffers_free(journal, 0);
    }
}

/* --- the stop --- */

static bool is_finished(const struct esk_journal *journal) {
    if (!journal->closing || journal->helper_jobs > 0 || journal->build_posted ||
        journal->deliver_posted || journal->close_posted || journal->start_posted) {
        return false;
    }
    for (unsigned i = 0; i < journal->options.writes_max; i++) {
        if (journal->slots[i].busy) {
            return false;
        }
    }
    return journal->failed ||
           (is_idle(journal) && esk_list_empty(&journal->pending) && !needs_empty(journal) &&
            journal->durable_sequence + 1 == journal->sequence_next);
}

/* What the journal allocated itself and nobody was told about. */
static void forgets_free(struct esk_link *appends) {
    struct esk_link *next;
    for (struct esk_link *link = appends->next; link != appends; link = next) {
        struct esk_journal_append *append = ESK_CONTAINER(link, struct esk_journal_append, link);
        next = link->next;
        if (eski_is_forget(append)) {
            free(append);
        }
    }
}

static void finish(struct esk_journal *journal) {
    void (*done)(void *context) = journal->done;
    void *context = journal->done_context;
    if (journal->timer_due_ns != 0) {
        esk_timer_stop(journal->options.loop, &journal->timer);
    }
    for (unsigned i = 0; i < journal->options.writes_max; i++) {
        esk_worker_destroy(journal->options.platform, journal->slots[i].worker);
        free(journal->slots[i].buffer);
    }
    esk_worker_destroy(journal->options.platform, journal->helper);
    forgets_free(&journal->queue);
    forgets_free(&journal->pending);
    eski_groups_fini(&journal->groups);
    eski_files_destroy(&journal->files);
    eski_files_destroy(&journal->retiring);
    if (journal->next) {
        eski_file_destroy(journal->next);
    }
    free(journal->folder);
    free(journal);
    done(context);
}

void eski_settle(struct esk_journal *journal) {
    if (!journal->failed) {
        handle_time(journal);
        eski_sync_start(journal);
        eski_files_release(journal);
        eski_files_prepare(journal);
        eski_build_schedule(journal);
        buffers_free(journal, 2 * (size_t)journal->options.frame_bytes_max + ESKI_CARRY_BYTES);
    }
    eski_room_update(journal);
    if (!journal->failed) {
        timer_arm(journal);
    }
    if (is_finished(journal)) {
        finish(journal);
    }
}

void eski_start_in_turn(struct esk_mail *mail) {
    struct esk_journal *journal = ESK_CONTAINER(mail, struct esk_journal, start_mail);
    struct esk_journal_recovery *recovery = journal->recovery;
    journal->start_posted = false;
    journal->recovery = NULL;
    for (size_t i = 0; i < recovery->spare_count; i++) {
        eski_files_spare(eski_file_create(journal, recovery->spares[i]));
    }
    esk_journal_recovery_destroy(recovery);
    eski_settle(journal);
}

static void close_in_turn(struct esk_mail *mail) {
    struct esk_journal *journal = ESK_CONTAINER(mail, struct esk_journal, close_mail);
    journal->close_posted = false;
    eski_settle(journal);
}

void esk_journal_close(struct esk_journal *journal, void (*done)(void *context), void *context) {
    ESK_ASSERT(!journal->closing);
    journal->closing = true;
    journal->done = done;
    journal->done_context = context;
    journal->close_posted = true;
    journal->close_mail.run = close_in_turn;
    atomic_store_explicit(&journal->abandon, true, memory_order_relaxed);
    esk_post(&journal->options.loop->executor, &journal->close_mail);
}
