/* SPDX-License-Identifier: Apache-2.0 */
/* Opening: a new generation in a new file. Its header records where the last generation ended, its
 * head has the states of all groups and forgets those that are not to be kept; all of it is synced
 * before the file gets its number. Blocks: a worker. The loop's part begins with `start_mail`. */
#include "journal/journal_private.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/mutation.h"

#include <inttypes.h>
#include <stdlib.h>

#define HEAD_FRAME_BYTES (256u << 10)

/* Frames of the head, one behind the other. */
struct head {
    uint8_t *bytes;
    size_t size;
    uint8_t *at; /* in the frame being written; NULL: none is */
    uint32_t records;
    struct eski_frame_header header; /* of the next frame */
};

static void head_begin(struct head *head) {
    head->at = head->bytes + head->size + ESKI_FRAME_HEADER_BYTES;
    head->records = 0;
}

static void head_end(struct head *head) {
    uint8_t *frame = head->bytes + head->size;
    size_t used = (size_t)(head->at - frame);
    size_t size = ESK_ALIGN_UP(used, (size_t)ESKI_BLOCK_BYTES);
    memset(head->at, 0, size - used);
    head->header.size = (uint32_t)size;
    head->header.used = (uint32_t)used;
    head->header.records = head->records;
    eski_frame_header_encode(&head->header, frame);
    eski_frame_seal(frame, head->header.size);
    head->header.position += size;
    head->header.sequence++;
    head->size += size;
    head->at = NULL;
}

static void head_need(struct head *head, size_t size) {
    uint8_t *frame = head->bytes + head->size;
    if (head->at && (size_t)(head->at - frame) + size > HEAD_FRAME_BYTES) {
        head_end(head);
    }
    if (!head->at) {
        head_begin(head);
    }
    head->records++;
}

static size_t head_bytes_max(const struct esk_group_state *states, size_t count, size_t forgets) {
    size_t bytes = forgets * ESKI_RECORD_HEADER_BYTES;
    for (size_t i = 0; i < count; i++) {
        bytes += eski_state_record_size(&states[i]);
    }
    size_t frames = bytes / (HEAD_FRAME_BYTES / 2) + 1;
    return bytes + frames * (2 * (size_t)ESKI_BLOCK_BYTES);
}

/* Stores the states as lying in the new file; the groups that are left have to be forgotten. */
static uint64_t *adopt_states(struct esk_journal *journal, const struct esk_group_state *states,
                              size_t count, size_t *forgets) {
    struct eski_groups *groups = &journal->groups;
    for (size_t i = 0; i < count; i++) {
        struct eski_group *group = eski_group_obtain(groups, states[i].group_id);
        eski_group_store(groups, group, &states[i], journal->current);
    }
    uint64_t *ids = esk_alloc((groups->map.count + 1) * sizeof(*ids));
    size_t position = 0;
    void *value;
    *forgets = 0;
    while (esk_u64_map_next(&groups->map, &position, NULL, &value)) {
        const struct eski_group *group = value;
        if (group->state_file != journal->current) {
            ids[(*forgets)++] = group->state.group_id;
        }
    }
    for (size_t i = 0; i < *forgets; i++) {
        eski_group_remove(groups, eski_group_find(groups, ids[i]));
    }
    return ids;
}

/* Live files: those from the first that is still needed; the others are to be released. */
static void adopt_files(struct esk_journal *journal, struct esk_journal_recovery *recovery) {
    for (size_t i = 0; i < recovery->void_count; i++) {
        struct eski_file *file = eski_file_create(journal, recovery->voids[i]);
        esk_list_append(&journal->retiring, &file->link);
    }
    bool needed = false;
    for (size_t i = 0; i < recovery->file_count; i++) {
        struct eski_file *file = recovery->files[i];
        file->journal = journal;
        needed = needed || file->held > 0;
        esk_list_append(needed ? &journal->files : &journal->retiring, &file->link);
    }
    recovery->file_count = 0;
    esk_list_append(&journal->files, &journal->current->link);
}

static void build_head(struct esk_journal *journal, const struct esk_group_state *states,
                       size_t count, const uint64_t *forgotten, size_t forgets, struct head *head) {
    head->bytes = eski_aligned_alloc(head_bytes_max(states, count, forgets));
    head->header = (struct eski_frame_header){
        .file = journal->current->number,
        .position = ESKI_BLOCK_BYTES,
        .generation = journal->header.generation,
        .sequence = journal->sequence_next,
        .durable_upto = journal->sequence_next - 1,
        .oldest_file = eski_oldest_file(journal),
    };
    for (size_t i = 0; i < forgets; i++) {
        head_need(head, ESKI_RECORD_HEADER_BYTES);
        head->at = eski_forget_encode(head->at, forgotten[i]);
    }
    for (size_t i = 0; i < count; i++) {
        head_need(head, eski_state_record_size(&states[i]));
        head->at = eski_state_encode(head->at, &states[i]);
    }
    if (!head->at) {
        head_begin(head); /* a generation has at least one frame */
    }
    head_end(head);
}

/* A file to make the new one from, so that a start needs no room on a full disk: what an
 * interrupted preparation left behind, a spare, or a file behind the cut. */
static enum esk_err pick_spare(struct esk_journal *journal, struct esk_journal_recovery *recovery,
                               uint64_t *number, struct esk_error *error) {
    *number = 0;
    if (recovery->next_exists) {
        return ESK_OK;
    }
    if (recovery->spare_count > 0) {
        *number = recovery->spares[--recovery->spare_count];
        return ESK_OK;
    }
    if (recovery->void_count == 0) {
        return ESK_OK;
    }
    *number = recovery->voids[--recovery->void_count];
    return eski_to_spare(journal->options.platform, journal->folder, *number, error);
}

static enum esk_err make_folder(struct esk_journal *journal, struct esk_error *error) {
    struct esk_platform *platform = journal->options.platform;
    enum esk_err err = esk_folder_make(platform, journal->folder, error);
    return err == ESK_OK ? eski_names_sync(platform, journal->folder, error) : err;
}

static enum esk_err make_file(struct esk_journal *journal, const struct head *head, uint64_t spare,
                              struct esk_error *error) {
    struct eski_prepare prepare = {
        .header = journal->header,
        .spare = spare,
        .head = esk_slice(head->bytes, head->size),
        .file = journal->current,
    };
    prepare.header.file = journal->current->number;
    enum esk_err err = eski_prepare_run(journal, &prepare, error);
    if (err == ESK_ERR_UNSUPPORTED && journal->mode == ESKI_MODE_DIRECT) {
        ESK_REACHED(JOURNAL_BUFFERED);
        ESK_LOG(journal->options.log, ESK_LOG_WARN, "journal_buffered",
                "the file system refuses direct writes: buffered ones and syncs are used",
                esk_field_text("folder", journal->folder));
        journal->mode = ESKI_MODE_SYNC;
        prepare.spare = 0; /* it is in ESKI_NEXT_NAME already */
        err = eski_prepare_run(journal, &prepare, error);
    }
    return err;
}

static void start(struct esk_journal *journal, struct esk_journal_recovery *recovery,
                  const struct head *head) {
    struct esk_platform *platform = journal->options.platform;
    for (unsigned i = 0; i < journal->options.writes_max; i++) {
        journal->slots[i].journal = journal;
        journal->slots[i].number = i;
        journal->slots[i].worker = esk_worker_create(platform, "flusher", 1);
    }
    journal->helper = esk_worker_create(platform, "journal", 1);
    journal->current->position = head->header.position;
    journal->current->last_sequence = head->header.sequence - 1;
    journal->sequence_next = head->header.sequence;
    /* The first frame of a generation needs nobody to vouch for it. */
    bool several = head->header.sequence > head->header.durable_upto + 2;
    journal->content_sequence = several ? head->header.sequence - 1 : 0;
    journal->vouched_sequence = head->header.durable_upto;
    journal->carry_below = journal->current->number;
    journal->written_sequence = journal->durable_sequence = journal->sequence_next - 1;
    journal->timer.run = eski_tick;
    eski_files_account(journal);
    enum esk_err err;
    journal->had_room = esk_journal_has_room(journal, &err);
    journal->recovery = recovery;
    journal->start_posted = true;
    journal->start_mail.run = eski_start_in_turn;
    esk_post(&journal->options.loop->executor, &journal->start_mail);
}

static struct esk_journal *create(const struct esk_journal_options *options,
                                  struct esk_journal_recovery *recovery) {
    struct esk_journal *journal = esk_alloc_zeroed(1, sizeof(*journal));
    journal->options = *options;
    journal->folder = esk_text_copy(options->folder);
    journal->mode = options->flush_every_records == 1 ? ESKI_MODE_DIRECT : ESKI_MODE_RELAXED;
    journal->groups = recovery->groups;
    eski_groups_init(&recovery->groups);
    esk_list_init(&journal->files);
    esk_list_init(&journal->retiring);
    esk_list_init(&journal->releasing);
    esk_list_init(&journal->queue);
    esk_list_init(&journal->pending);
    atomic_init(&journal->hurry, false);
    journal->pace_ns = UINT64_MAX;
    atomic_init(&journal->abandon, false);
    journal->number_next = recovery->number_max + 2;
    journal->sequence_next = recovery->sequence + 1;
    journal->current = eski_file_create(journal, recovery->number_max + 1);
    journal->header.generation = recovery->generation + !ESK_MUTATED(NO_GENERATION);
    journal->current->generation = journal->header.generation;
    if (recovery->file_count > 0) {
        const struct eski_file *last = recovery->files[recovery->file_count - 1];
        journal->header.previous_file = last->number;
        if (!ESK_MUTATED(NO_GENERATION)) {
            journal->header.cut_file = last->number;
            journal->header.cut_position = last->position;
            journal->header.cut_sequence = recovery->sequence;
        }
    }
    return journal;
}

static void abandon(struct esk_journal *journal) {
    eski_files_destroy(&journal->files);
    eski_files_destroy(&journal->retiring);
    eski_groups_fini(&journal->groups);
    free(journal->folder);
    free(journal);
}

enum esk_err esk_journal_open(const struct esk_journal_options *options,
                              struct esk_journal_recovery **taken,
                              const struct esk_group_state *states, size_t count,
                              struct esk_journal **result, struct esk_error *error) {
    ESK_ASSERT(options->writes_max >= 1 && options->writes_max <= ESKI_WRITES_MAX);
    ESK_ASSERT(options->frame_bytes_max <= ESKI_ENTRY_BYTES_MAX);
    struct esk_journal_recovery *recovery = *taken;
    *taken = NULL;
    struct esk_journal *journal = create(options, recovery);
    struct head head = {.bytes = NULL};
    size_t forgets;
    uint64_t spare = 0;
    uint64_t *forgotten = adopt_states(journal, states, count, &forgets);
    enum esk_err err = recovery->folder_exists ? ESK_OK : make_folder(journal, error);
    if (err == ESK_OK) {
        err = pick_spare(journal, recovery, &spare, error);
    }
    adopt_files(journal, recovery);
    if (err == ESK_OK) {
        build_head(journal, states, count, forgotten, forgets, &head);
        err = make_file(journal, &head, spare, error);
    }
    if (err == ESK_OK) {
        start(journal, recovery, &head);
        *result = journal;
    } else {
        esk_wrap(error, "open the journal in %s", journal->folder);
        abandon(journal);
        esk_journal_recovery_destroy(recovery);
    }
    free(head.bytes);
    free(forgotten);
    return err;
}
