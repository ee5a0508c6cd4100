/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a running journal, seen from its loop: the current one, the next one, which the helper
 * makes when the current one is half full or will soon be full, and older ones, which are released
 * in order of number once no group needs them. Releasing takes a frame that says so (`oldest_file`)
 * to be durable first; then the helper renames the file to a spare, from which a later file is
 * made. */
#include "journal/journal_private.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutation.h"

#include <stdlib.h>

#define PACE_STEPS 16  /* of a file: the last one says how quickly it fills */
#define LEISURE_NS 1e9 /* a new file with pauses takes less: 0.7 s, and its syncs */

struct eski_file *eski_file_create(struct esk_journal *journal, uint64_t number) {
    struct eski_file *file = esk_alloc_zeroed(1, sizeof(*file));
    file->journal = journal;
    file->number = number;
    file->position = ESKI_BLOCK_BYTES;
    esk_list_init(&file->link);
    esk_list_init(&file->states);
    return file;
}

void eski_file_close(struct eski_file *file) {
    for (unsigned i = 0; i < ESKI_WRITES_MAX; i++) {
        esk_file_close(file->descriptors[i]);
        file->descriptors[i] = NULL;
    }
}

void eski_file_destroy(struct eski_file *file) {
    eski_file_close(file);
    free(file);
}

void eski_files_destroy(struct esk_link *files) {
    while (!esk_list_empty(files)) {
        struct esk_link *link = esk_list_first(files);
        esk_list_remove(link);
        eski_file_destroy(ESK_CONTAINER(link, struct eski_file, link));
    }
}

uint64_t eski_oldest_file(const struct esk_journal *journal) {
    return ESK_CONTAINER(journal->files.next, struct eski_file, link)->number;
}

/* States are carried in passes: one that goes on while the journal rolls again does not begin anew,
 * so it ends even if all states together are larger than a file. */
struct eski_file *eski_carry_file(const struct esk_journal *journal) {
    for (struct esk_link *link = journal->files.next; link != &journal->current->link;
         link = link->next) {
        struct eski_file *file = ESK_CONTAINER(link, struct eski_file, link);
        if (file->number >= journal->carry_below) {
            return NULL;
        }
        if (!esk_list_empty(&file->states)) {
            return file;
        }
    }
    return NULL;
}

void eski_files_account(struct esk_journal *journal) {
    uint64_t bytes = 0;
    bool held = false;
    for (struct esk_link *link = journal->files.next; link != &journal->files; link = link->next) {
        const struct eski_file *file = ESK_CONTAINER(link, struct eski_file, link);
        held = held || file->held > 0;
        bytes += held ? file->position : 0;
    }
    journal->held_bytes = bytes;
}

/* --- the next file --- */

/* Keeps how long the last step took. */
static void note_pace(struct esk_journal *journal, uint64_t now) {
    uint64_t position = journal->current->position;
    if (position >= journal->pace_position + journal->options.file_bytes / PACE_STEPS) {
        journal->pace_ns = now - journal->pace_since_ns;
        journal->pace_position = position;
        journal->pace_since_ns = now;
    }
}

/* Whether the current file will be full sooner than another is made with pauses. */
static bool is_rushed(struct esk_journal *journal) {
    const struct eski_file *current = journal->current;
    uint64_t now = esk_loop_now_ns(journal->options.loop);
    note_pace(journal, now);
    uint64_t end = current->prepared_bytes ? current->prepared_bytes : journal->options.file_bytes;
    uint64_t left = current->position < end ? end - current->position : 0;
    uint64_t since = now - journal->pace_since_ns;
    double pace_ns = (double)(journal->pace_ns > since ? journal->pace_ns : since);
    double steps = (double)left * PACE_STEPS / (double)journal->options.file_bytes;
    return steps * pace_ns < LEISURE_NS;
}

static void prepared(struct esk_mail *mail) {
    struct eski_prepare *prepare = ESK_CONTAINER(mail, struct eski_prepare, mail);
    struct esk_journal *journal = prepare->journal;
    journal->helper_jobs--;
    journal->preparing = false;
    if (prepare->result != ESK_OK) {
        eski_file_destroy(prepare->file);
    }
    if (prepare->result == ESK_OK) {
        journal->next = prepare->file;
        journal->prepare_no_space = false;
        journal->number_next++;
    } else if (prepare->result == ESK_ERR_NO_SPACE) {
        ESK_REACHED(JOURNAL_NO_SPACE);
        if (!journal->prepare_no_space) {
            ESK_LOG(journal->options.log, ESK_LOG_WARN, "journal_no_space", prepare->error.text,
                    esk_field_u64("shard", journal->options.shard));
        }
        journal->prepare_no_space = true;
    } else if (prepare->result != ESK_ERR_AGAIN) {
        eski_journal_fail(journal, &prepare->error);
    }
    eski_settle(journal);
}

static void prepare_in_helper(struct esk_mail *mail) {
    struct eski_prepare *prepare = ESK_CONTAINER(mail, struct eski_prepare, mail);
    struct esk_journal *journal = prepare->journal;
    prepare->result = eski_prepare_run(journal, prepare, &prepare->error);
    mail->run = prepared;
    esk_post(&journal->options.loop->executor, mail);
}

void eski_files_prepare(struct esk_journal *journal) {
    struct eski_file *current = journal->current;
    bool rushed = is_rushed(journal);
    bool wanted = current->prepared_bytes == 0
                      ? journal->durable_position > 0
                      : rushed || current->position > current->prepared_bytes / 2;
    atomic_store_explicit(&journal->hurry, rushed, memory_order_relaxed);
    if (!wanted || journal->next || journal->preparing || journal->closing || journal->failed ||
        (journal->prepare_no_space && journal->retry_at_ns != 0)) {
        return;
    }
    struct eski_prepare *prepare = &journal->prepare;
    memset(prepare, 0, sizeof(*prepare));
    prepare->journal = journal;
    prepare->header = journal->header;
    prepare->header.file = journal->number_next;
    prepare->header.previous_file = current->number;
    prepare->file = eski_file_create(journal, journal->number_next);
    prepare->file->generation = journal->header.generation;
    prepare->fill = true;
    if (journal->spare_count > 0) {
        prepare->spare = journal->spares[0];
        journal->spare_count--;
        memmove(journal->spares, journal->spares + 1,
                journal->spare_count * sizeof(journal->spares[0]));
    }
    prepare->mail.run = prepare_in_helper;
    journal->preparing = true;
    journal->helper_jobs++;
    esk_post(journal->helper, &prepare->mail);
}

/* An older file, the one before the current, that is not durable yet: a sync covers two files. */
static bool older_undurable(const struct esk_journal *journal) {
    const struct esk_link *link = journal->current->link.previous;
    return link != &journal->files &&
           ESK_CONTAINER(link, struct eski_file, link)->last_sequence > journal->durable_sequence;
}

bool eski_files_roll(struct esk_journal *journal, size_t frame_bytes) {
    struct eski_file *current = journal->current;
    bool full =
        current->prepared_bytes == 0 || current->position + frame_bytes > current->prepared_bytes;
    if (!full) {
        return false;
    }
    if (!journal->next || older_undurable(journal)) {
        ESK_REACHED(JOURNAL_UNPREPARED);
        return false;
    }
    ESK_REACHED(JOURNAL_ROLL);
    if (!eski_carry_file(journal)) {
        journal->carry_below = journal->next->number;
    }
    journal->current = journal->next;
    journal->next = NULL;
    journal->pace_position = journal->current->position;
    journal->pace_since_ns = esk_loop_now_ns(journal->options.loop);
    esk_list_append(&journal->files, &journal->current->link);
    return true;
}

/* --- release --- */

static void discarded(struct esk_mail *mail) {
    struct eski_file *file = ESK_CONTAINER(mail, struct eski_file, mail);
    struct esk_journal *journal = file->journal;
    journal->helper_jobs--;
    esk_list_remove(&file->link);
    eski_file_destroy(file);
    eski_settle(journal);
}

static void discard_in_helper(struct esk_mail *mail) {
    struct eski_file *file = ESK_CONTAINER(mail, struct eski_file, mail);
    eski_discard_run(file->journal, file->number);
    mail->run = discarded;
    esk_post(&file->journal->options.loop->executor, mail);
}

static void post_helper(struct eski_file *file, void (*run)(struct esk_mail *mail)) {
    struct esk_journal *journal = file->journal;
    esk_list_remove(&file->link);
    esk_list_append(&journal->releasing, &file->link);
    file->mail.run = run;
    journal->helper_jobs++;
    esk_post(journal->helper, &file->mail);
}

void eski_files_spare(struct eski_file *file) {
    struct esk_journal *journal = file->journal;
    if (journal->spare_count == ESKI_SPARES_MAX) {
        post_helper(file, discard_in_helper);
        return;
    }
    journal->spares[journal->spare_count++] = file->number;
    esk_list_remove(&file->link);
    eski_file_destroy(file);
}

static void released(struct esk_mail *mail) {
    struct eski_file *file = ESK_CONTAINER(mail, struct eski_file, mail);
    struct esk_journal *journal = file->journal;
    journal->helper_jobs--;
    if (file->result != ESK_OK) {
        eski_journal_fail(journal, &file->error);
    }
    if (journal->failed || journal->closing || file->gone) {
        journal->retry_at_ns = journal->retry_at_ns ? 1 : 0; /* room may be back */
        esk_list_remove(&file->link);
        eski_file_destroy(file);
    } else {
        ESK_REACHED(JOURNAL_RECYCLE);
        journal->retry_at_ns = journal->retry_at_ns ? 1 : 0; /* room may be back */
        eski_files_spare(file);
    }
    eski_settle(journal);
}

static void release_in_helper(struct esk_mail *mail) {
    struct eski_file *file = ESK_CONTAINER(mail, struct eski_file, mail);
    struct esk_journal *journal = file->journal;
    eski_file_close(file);
    /* In order, and none behind one that failed: live files have no gap. */
    file->result = journal->release_failed
                       ? esk_fail(&file->error, ESK_ERR_IO, "an earlier file was not released")
                       : eski_release_run(journal, file->number, &file->gone, &file->error);
    journal->release_failed = file->result != ESK_OK;
    mail->run = released;
    esk_post(&journal->options.loop->executor, mail);
}

void eski_files_release(struct esk_journal *journal) {
    for (;;) {
        struct eski_file *file = ESK_CONTAINER(journal->files.next, struct eski_file, link);
        if (file == journal->current || file->last_sequence > journal->durable_sequence ||
            !esk_list_empty(&file->states) || file->held > 0) {
            break;
        }
        esk_list_remove(&file->link);
        esk_list_append(&journal->retiring, &file->link);
        file->release_sequence = journal->sequence_next; /* the next frame tells */
    }
    struct esk_link *next;
    for (struct esk_link *link = journal->retiring.next; link != &journal->retiring; link = next) {
        struct eski_file *file = ESK_CONTAINER(link, struct eski_file, link);
        next = link->next;
        if (file->release_sequence > journal->durable_sequence || journal->failed) {
            continue;
        }
        if (!file->told) { /* and one more vouches for that one: if it is lost, the file is needed
                            */
            file->told = true;
            file->release_sequence = journal->sequence_next;
            continue;
        }
        post_helper(file, release_in_helper);
    }
    eski_files_account(journal);
}
