/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a frame once its flusher is done: written and durable positions move strictly in
 * the order in which frames were built, whatever the order in which writes end, and appends are
 * told in that order. In relaxed mode syncs run on their own: a sync makes durable what was written
 * when it began. */
#include "journal/journal_private.h"

#include "base/assert.h"
#include "base/mutation.h"

#define CALLBACKS_MAX 256 /* a turn's share; the rest follows in a mail to oneself */

static void frames_advance(struct esk_journal *journal) {
    while (journal->frame_count > 0 && journal->frames[journal->frame_first].written) {
        struct eski_frame *frame = &journal->frames[journal->frame_first];
        journal->frame_first = (journal->frame_first + 1) % ESKI_FRAMES_MAX;
        journal->frame_count--;
        if (journal->written_sequence == journal->durable_sequence) {
            journal->unsynced_since_ns = esk_loop_now_ns(journal->options.loop);
        }
        journal->written_sequence = frame->sequence;
        journal->written_position = frame->end_position;
        journal->records_written += frame->records;
        journal->strict_written = journal->strict_written || frame->strict;
        if (journal->mode != ESKI_MODE_RELAXED) {
            journal->durable_sequence = journal->written_sequence;
            journal->durable_position = journal->written_position;
        }
    }
}

static void write_done(struct esk_journal *journal, struct eski_slot *slot) {
    if (slot->stalled) {
        slot->stalled = false;
        journal->stalled--;
    }
    slot->frame->written = true;
    if (slot->frame != &journal->frames[journal->frame_first]) {
        ESK_REACHED(LATER_WRITE_FIRST);
        if (ESK_MUTATED(LATER_BEFORE_EARLIER)) {
            journal->written_position = journal->durable_position = slot->frame->end_position;
        }
    }
    slot->frame = NULL;
    frames_advance(journal);
}

/* No room: the frame stays in its slot and is written again, to the same place: nothing of it was
 * acknowledged, nor of those behind it. */
static void write_stalled(struct esk_journal *journal, struct eski_slot *slot) {
    ESK_REACHED(JOURNAL_NO_SPACE);
    if (journal->closing) {
        ESK_LOG(journal->options.log, ESK_LOG_WARN, "journal_no_space",
                "no room for the last writes of a stop", esk_field_text("error", slot->error.text));
        journal->failed = true;
        return;
    }
    if (slot->stalled) {
        return;
    }
    if (journal->stalled++ == 0) {
        ESK_LOG(journal->options.log, ESK_LOG_WARN, "journal_no_space", slot->error.text,
                esk_field_u64("shard", journal->options.shard));
    }
    slot->stalled = true;
}

void eski_flushed(struct eski_slot *slot) {
    struct esk_journal *journal = slot->journal;
    slot->busy = false;
    if (slot->syncing || journal->mode != ESKI_MODE_RELAXED) {
        esk_counter_add(&journal->options.metrics->flushes, 1);
        esk_histogram_record(&journal->options.metrics->flush_duration_ns, slot->duration_ns);
    }
    if (slot->syncing) {
        journal->syncing = false;
    }
    journal->active_ns = esk_loop_now_ns(journal->options.loop);
    if (journal->failed) {
        eski_settle(journal);
        return;
    }
    if (slot->result == ESK_ERR_NO_SPACE && !slot->result_final) {
        write_stalled(journal, slot);
    } else if (slot->result != ESK_OK) {
        eski_journal_fail(journal, &slot->error);
    } else if (slot->syncing) {
        journal->durable_sequence = journal->sync_sequence;
        journal->durable_position = journal->sync_position;
    } else {
        write_done(journal, slot);
    }
    eski_deliver(journal);
    eski_settle(journal);
}

/* --- telling the appends --- */

static void deliver_in_turn(struct esk_mail *mail) {
    struct esk_journal *journal = ESK_CONTAINER(mail, struct esk_journal, deliver_mail);
    journal->deliver_posted = false;
    eski_deliver(journal);
    eski_settle(journal);
}

void eski_deliver(struct esk_journal *journal) {
    uint64_t written = journal->written_position;
    uint64_t durable = journal->durable_position;
    if (ESK_MUTATED(ANSWER_BEFORE_DURABLE)) {
        written = durable = journal->built_position;
    }
    for (int i = 0; !journal->failed && !esk_list_empty(&journal->pending); i++) {
        struct esk_journal_append *first =
            ESK_CONTAINER(journal->pending.next, struct esk_journal_append, link);
        struct esk_journal_append *next =
            journal->unpersisted
                ? ESK_CONTAINER(journal->unpersisted, struct esk_journal_append, link)
                : NULL;
        bool tell_durable = first != next && first->position <= durable;
        bool tell_persisted = next && next->position <= (next->strict ? durable : written);
        if (!tell_durable && !tell_persisted) {
            return;
        }
        if (i == CALLBACKS_MAX) {
            if (!journal->deliver_posted) {
                journal->deliver_posted = true;
                journal->deliver_mail.run = deliver_in_turn;
                esk_post(&journal->options.loop->executor, &journal->deliver_mail);
            }
            return;
        }
        if (tell_durable) {
            esk_list_remove(&first->link);
            first->durable(first);
        } else {
            struct esk_link *behind = next->link.next;
            journal->unpersisted = behind == &journal->pending ? NULL : behind;
            if (next->position > durable) {
                ESK_REACHED(RELAXED_FLUSH);
            }
            next->persisted(next);
        }
    }
}

/* --- relaxed mode --- */

static struct eski_file *older_file(const struct esk_journal *journal) {
    struct esk_link *link = journal->current->link.previous;
    return link == &journal->files ? NULL : ESK_CONTAINER(link, struct eski_file, link);
}

uint64_t eski_sync_due_ns(const struct esk_journal *journal) {
    if (journal->mode != ESKI_MODE_RELAXED || journal->syncing ||
        journal->written_sequence == journal->durable_sequence) {
        return UINT64_MAX;
    }
    uint32_t every = journal->options.flush_every_records;
    const struct eski_file *older = older_file(journal);
    if (journal->strict_written || journal->closing ||
        (every > 0 && journal->records_written >= every) ||
        (older && older->last_sequence > journal->durable_sequence)) {
        return 0;
    }
    return journal->unsynced_since_ns + journal->options.flush_interval_ms * (uint64_t)1000000;
}

void eski_sync_start(struct esk_journal *journal) {
    struct eski_slot *slot = eski_slot_free(journal);
    if (!slot || journal->failed ||
        eski_sync_due_ns(journal) > esk_loop_now_ns(journal->options.loop)) {
        return;
    }
    struct eski_file *older = older_file(journal);
    size_t count = 0;
    slot->files[1] = NULL;
    if (older && older->last_sequence > journal->durable_sequence) {
        slot->files[count++] = older;
    }
    if (journal->current->last_sequence > journal->durable_sequence) {
        slot->files[count++] = journal->current;
    }
    ESK_ASSERT(count > 0);
    slot->syncing = true;
    journal->syncing = true;
    journal->sync_sequence = journal->written_sequence;
    journal->sync_position = journal->written_position;
    journal->strict_written = false;
    journal->records_written = 0;
    journal->unsynced_since_ns = esk_loop_now_ns(journal->options.loop);
    eski_slot_post(slot);
}
