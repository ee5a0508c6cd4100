/* SPDX-License-Identifier: Apache-2.0 */
/* Group commit: everything that arrived meanwhile goes into one frame, as soon as a write slot is
 * free. Building runs from a mail to oneself, behind the mails that have arrived, so all appends
 * of one turn share a frame; while all slots are busy appends gather for the next one. The frame
 * is built in the slot's aligned buffer, in the loop, and a small one is written from there too; of
 * others the flusher copies large payloads (they are borrowed until they are durable), adds the
 * checksum and writes. */
#include "journal/journal_private.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/mutation.h"

#include <stdlib.h>

#define SECOND_WRITE_BYTES (64u << 10) /* worth a write of its own in any case */

/* --- in the flusher --- */

static void flushed_in_loop(struct esk_mail *mail) {
    eski_flushed(ESK_CONTAINER(mail, struct eski_slot, mail));
}

static enum esk_err flush_write(struct eski_slot *slot, struct esk_file *file) {
    for (size_t i = 0; i < slot->copy_count; i++) {
        memcpy(slot->copies[i].to, slot->copies[i].from.data, slot->copies[i].from.size);
    }
    slot->copy_count = 0; /* a second try does not copy again */
    eski_frame_seal(slot->buffer, slot->size);
    struct esk_slice bytes = esk_slice(slot->buffer, slot->size);
    return esk_file_write(file, &bytes, 1, slot->position, &slot->error);
}

static void flush_in_worker(struct esk_mail *mail) {
    struct eski_slot *slot = ESK_CONTAINER(mail, struct eski_slot, mail);
    struct esk_journal *journal = slot->journal;
    unsigned own = ESK_MUTATED(FAILED_SYNC_TOLD_ONCE) ? 0 : slot->number;
    enum esk_err err = ESK_OK;
    slot->begun_ns = esk_monotonic_ns(journal->options.platform);
    slot->result_final = slot->syncing;
    if (!slot->syncing) {
        err = flush_write(slot, slot->files[0]->descriptors[own]);
    }
    if (err == ESK_OK && (slot->syncing || journal->mode == ESKI_MODE_SYNC)) {
        slot->result_final = true;
        for (unsigned i = 0; i < 2 && err == ESK_OK && slot->files[i]; i++) {
            err = esk_file_sync(slot->files[i]->descriptors[own], &slot->error);
        }
    }
    slot->duration_ns = esk_monotonic_ns(journal->options.platform) - slot->begun_ns;
    slot->result = err;
    mail->run = flushed_in_loop;
    esk_post(&journal->options.loop->executor, mail);
}

static void post_to_worker(struct eski_slot *slot) {
    slot->mail.run = flush_in_worker;
    esk_post(slot->worker, &slot->mail);
}

/* --- without a flusher --- */

static void write_ended(struct esk_mail *mail) {
    struct eski_slot *slot = ESK_CONTAINER(mail, struct eski_slot, write.mail);
    if (slot->write.result == ESK_ERR_AGAIN) {
        ESK_REACHED(JOURNAL_WRITE_AGAIN);
        post_to_worker(slot);
        return;
    }
    slot->duration_ns = esk_monotonic_ns(slot->journal->options.platform) - slot->begun_ns;
    slot->result = slot->write.result;
    slot->result_final = false;
    slot->error = slot->write.error;
    eski_flushed(slot);
}

/* False: it is the flusher's. Beyond the blocks that were written when the file was prepared, a
 * write may wait for the file system. */
static bool begin_write(struct eski_slot *slot) {
    struct esk_journal *journal = slot->journal;
    const struct eski_file *file = slot->files[0];
    if (slot->syncing || journal->mode != ESKI_MODE_DIRECT || slot->copy_count > 0 ||
        slot->size > ESKI_BEGIN_BYTES_MAX || slot->position + slot->size > file->prepared_bytes) {
        return false;
    }
    eski_frame_seal(slot->buffer, slot->size);
    slot->begun_ns = esk_monotonic_ns(journal->options.platform);
    slot->write = (struct esk_write){
        .mail = {.run = write_ended},
        .loop = journal->options.loop,
        .bytes = esk_slice(slot->buffer, slot->size),
        .position = slot->position,
    };
    return esk_file_write_begin(file->descriptors[slot->number], &slot->write);
}

void eski_slot_post(struct eski_slot *slot) {
    slot->busy = true;
    if (!begin_write(slot)) {
        post_to_worker(slot);
    }
}

struct eski_slot *eski_slot_free(struct esk_journal *journal) {
    for (unsigned i = 0; i < journal->options.writes_max; i++) {
        if (!journal->slots[i].busy && !journal->slots[i].stalled) {
            return &journal->slots[i];
        }
    }
    return NULL;
}

/* --- in the loop --- */

size_t eski_append_size(const struct esk_journal_append *append) {
    if (eski_is_forget(append)) {
        return ESKI_RECORD_HEADER_BYTES;
    }
    return append->state ? eski_state_record_size(append->state)
                         : ESKI_ENTRY_HEADER_BYTES + append->entry.payload.size;
}

/* Bytes of the appends that go into the next frame: as many as fit, at least one. */
static size_t gather(const struct esk_journal *journal, size_t *count) {
    size_t bytes = 0;
    *count = 0;
    for (const struct esk_link *link = journal->queue.next; link != &journal->queue;
         link = link->next) {
        size_t size = eski_append_size(ESK_CONTAINER(link, struct esk_journal_append, link));
        if (*count > 0 && bytes + size > journal->options.frame_bytes_max) {
            break;
        }
        bytes += size;
        (*count)++;
    }
    return bytes;
}

static void reserve(struct eski_slot *slot, size_t size) {
    if (slot->capacity < size) {
        size_t capacity = 4 * (size_t)ESKI_BLOCK_BYTES;
        while (capacity < size) {
            capacity *= 2;
        }
        free(slot->buffer);
        slot->buffer = eski_aligned_alloc(capacity);
        slot->capacity = capacity;
    }
}

static uint8_t *put_entry(struct esk_journal *journal, struct eski_slot *slot, uint8_t *at,
                          const struct esk_journal_append *append) {
    const struct esk_slice *payload = &append->entry.payload;
    at = eski_entry_encode(at, append->group_id, &append->entry);
    if (payload->size >= ESKI_COPY_BYTES_MIN && slot->copy_count < ESKI_COPIES_MAX) {
        slot->copies[slot->copy_count++] = (struct eski_copy){at, *payload};
    } else if (payload->size > 0) {
        memcpy(at, payload->data, payload->size);
    }
    struct eski_group *group = eski_group_obtain(&journal->groups, append->group_id);
    (void)eski_group_enter(&journal->groups, group, append->entry.index, journal->current);
    return at + payload->size;
}

static uint8_t *put_append(struct esk_journal *journal, struct eski_slot *slot, uint8_t *at,
                           const struct esk_journal_append *append) {
    if (eski_is_forget(append)) {
        struct eski_group *group = eski_group_find(&journal->groups, append->group_id);
        if (group) {
            eski_group_remove(&journal->groups, group);
        }
        return eski_forget_encode(at, append->group_id);
    }
    if (append->state) {
        struct eski_group *group = eski_group_obtain(&journal->groups, append->group_id);
        at = eski_state_encode(at, append->state);
        eski_group_store(&journal->groups, group, append->state, journal->current);
        return at;
    }
    return put_entry(journal, slot, at, append);
}

/* Carries states on, up to `bytes`. */
static uint8_t *put_carried(struct esk_journal *journal, uint8_t *at, size_t bytes,
                            uint32_t *records) {
    const uint8_t *end = at + bytes;
    struct eski_file *file;
    while ((size_t)(end - at) >= ESKI_STATE_BYTES_MAX && (file = eski_carry_file(journal))) {
        struct eski_group *group = ESK_CONTAINER(file->states.next, struct eski_group, link);
        struct esk_group_state state = group->state;
        at = eski_state_encode(at, &state);
        eski_group_store(&journal->groups, group, &state, journal->current);
        (*records)++;
        ESK_REACHED(JOURNAL_CARRY);
    }
    return at;
}

/* Bytes of states to carry beside `bytes` of appends: not beyond the file's end, unless nothing
 * else would go out. */
static size_t carry_bytes(const struct esk_journal *journal, size_t bytes, size_t appends) {
    const struct eski_file *current = journal->current;
    uint64_t used = current->position + bytes;
    uint64_t left = current->prepared_bytes > used ? current->prepared_bytes - used : 0;
    if (!eski_carry_file(journal)) {
        return 0;
    }
    return left >= ESKI_CARRY_BYTES || (appends == 0 && left < ESKI_STATE_BYTES_MAX)
               ? ESKI_CARRY_BYTES
               : (size_t)left;
}

static struct eski_frame *frame_push(struct esk_journal *journal) {
    size_t at = (journal->frame_first + journal->frame_count) % ESKI_FRAMES_MAX;
    ESK_ASSERT(journal->frame_count < ESKI_FRAMES_MAX);
    if (journal->frame_count++ > 0) {
        ESK_REACHED(TWO_WRITES_OUT);
    }
    return &journal->frames[at];
}

/* Moves `count` appends from the queue into the frame. */
static uint8_t *put_queue(struct esk_journal *journal, struct eski_slot *slot, uint8_t *at,
                          size_t count) {
    struct eski_frame *frame = slot->frame;
    for (size_t i = 0; i < count; i++) {
        struct esk_link *link = esk_list_first(&journal->queue);
        struct esk_journal_append *append = ESK_CONTAINER(link, struct esk_journal_append, link);
        at = put_append(journal, slot, at, append);
        frame->records += append->records;
        frame->strict = frame->strict || append->strict;
        journal->built_position = append->position;
        esk_list_remove(link);
        esk_list_append(&journal->pending, link);
        if (!journal->unpersisted) {
            journal->unpersisted = link;
        }
    }
    return at;
}

static void frame_finish(struct esk_journal *journal, struct eski_slot *slot, uint8_t *end,
                         uint32_t records) {
    struct eski_frame *frame = slot->frame;
    struct eski_file *file = journal->current;
    size_t used = (size_t)(end - slot->buffer);
    size_t size = ESK_ALIGN_UP(used, (size_t)ESKI_BLOCK_BYTES);
    memset(end, 0, size - used);
    slot->size = (uint32_t)size;
    slot->files[0] = file;
    slot->files[1] = NULL;
    slot->position = file->position;
    slot->syncing = false;
    struct eski_frame_header header = {
        .size = slot->size,
        .used = (uint32_t)used,
        .records = records,
        .file = file->number,
        .position = file->position,
        .generation = file->generation,
        .sequence = journal->sequence_next++,
        .durable_upto = journal->durable_sequence,
        .oldest_file = eski_oldest_file(journal),
    };
    eski_frame_header_encode(&header, slot->buffer);
    file->position += size;
    file->last_sequence = header.sequence;
    frame->sequence = header.sequence;
    frame->end_position = journal->built_position;
    journal->vouched_sequence = header.durable_upto;
    if (records > 0) {
        journal->content_sequence = header.sequence;
    } else {
        ESK_REACHED(JOURNAL_EMPTY_FRAME);
    }
}

static void build_frame(struct esk_journal *journal, struct eski_slot *slot) {
    size_t count;
    size_t bytes = ESKI_FRAME_HEADER_BYTES + gather(journal, &count);
    size_t least = bytes + (count == 0 ? ESKI_STATE_BYTES_MAX : 0);
    eski_files_roll(journal, ESK_ALIGN_UP(least, (size_t)ESKI_BLOCK_BYTES));
    size_t carried = carry_bytes(journal, bytes, count);
    reserve(slot, ESK_ALIGN_UP(bytes + carried, (size_t)ESKI_BLOCK_BYTES));
    slot->frame = frame_push(journal);
    *slot->frame = (struct eski_frame){.strict = journal->want_empty};
    slot->copy_count = 0;
    journal->want_empty = false;
    uint32_t records = (uint32_t)count;
    uint8_t *at = put_queue(journal, slot, slot->buffer + ESKI_FRAME_HEADER_BYTES, count);
    at = put_carried(journal, at, carried, &records);
    frame_finish(journal, slot, at, records);
    if (count > 0) {
        esk_histogram_record(&journal->options.metrics->commit_records, slot->frame->records);
    }
    eski_slot_post(slot);
}

/* Whether to write now. While a write is out, a second one begins only when as much waits for it as
 * the first one carries: small frames one behind the other would cost the CPU of twice as many
 * writes, and none is acknowledged before the one that is out. */
static bool is_due(const struct esk_journal *journal) {
    if (journal->frame_count == 0) {
        return !esk_list_empty(&journal->queue) || journal->want_empty || eski_carry_file(journal);
    }
    uint64_t waiting = journal->position - journal->built_position;
    uint64_t out = journal->built_position - journal->written_position;
    return waiting > 0 && (waiting >= out || waiting >= SECOND_WRITE_BYTES);
}

static void build_run(struct esk_mail *mail) {
    struct esk_journal *journal = ESK_CONTAINER(mail, struct esk_journal, build_mail);
    journal->build_posted = false;
    struct eski_slot *slot;
    bool built = false;
    while (!journal->failed && journal->stalled == 0 &&
           journal->frame_count < ESKI_FRAMES_MAX - 1 && is_due(journal) &&
           (slot = eski_slot_free(journal)) != NULL) {
        build_frame(journal, slot);
        built = true;
    }
    if (built) {
        eski_files_account(journal);
        eski_files_prepare(journal);
        eski_deliver(journal); /* nothing new, unless mutated */
        eski_room_update(journal);
    } else if (journal->closing) {
        eski_settle(journal); /* the stop waited for this mail */
    }
}

void eski_build_schedule(struct esk_journal *journal) {
    if (journal->build_posted || journal->failed || journal->stalled > 0 || !is_due(journal) ||
        !eski_slot_free(journal)) {
        return;
    }
    journal->build_posted = true;
    journal->build_mail.run = build_run;
    esk_post(&journal->options.loop->executor, &journal->build_mail);
}
