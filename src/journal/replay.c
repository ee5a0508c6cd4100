/* SPDX-License-Identifier: Apache-2.0 */
/* What recovery knows of groups, and its second pass, which hands out the entries above the
 * checkpoints. An entry that a later one of its group replaced is not handed out: the first pass
 * remembers each replacement (`cutoffs`), of which there are hardly ever any. */
#include "journal/recovery_private.h"

#include "base/assert.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>

#define ORDINAL_BITS 21 /* records in a frame are fewer: a record has 16 bytes, a frame 24 MiB */

static void cutoffs_add(struct esk_journal_recovery *recovery, uint64_t group_id, uint64_t ordinal,
                        uint64_t index) {
    struct eski_cutoffs *cutoffs = esk_u64_map_get(&recovery->cutoffs, group_id);
    if (!cutoffs) {
        cutoffs = esk_alloc_zeroed(1, sizeof(*cutoffs));
        esk_u64_map_put(&recovery->cutoffs, group_id, cutoffs);
    }
    while (cutoffs->count > 0 && cutoffs->items[cutoffs->count - 1].index >= index) {
        cutoffs->count--;
    }
    cutoffs->items = esk_realloc(cutoffs->items, (cutoffs->count + 1) * sizeof(*cutoffs->items));
    cutoffs->items[cutoffs->count++] = (struct eski_cutoff){ordinal, index};
}

static bool is_cut_off(const struct esk_journal_recovery *recovery, uint64_t group_id,
                       uint64_t ordinal, uint64_t index) {
    const struct eski_cutoffs *cutoffs = esk_u64_map_get(&recovery->cutoffs, group_id);
    for (size_t i = cutoffs ? cutoffs->count : 0; i-- > 0;) {
        if (cutoffs->items[i].ordinal <= ordinal) {
            return false;
        }
        if (cutoffs->items[i].index <= index) {
            return true;
        }
    }
    return false;
}

enum esk_err eski_recovery_take_frame(struct esk_journal_recovery *recovery, struct eski_file *file,
                                      const struct eski_frame_header *header, const uint8_t *frame,
                                      struct esk_error *error) {
    struct esk_reader reader = esk_reader(
        esk_slice(frame + ESKI_FRAME_HEADER_BYTES, header->used - ESKI_FRAME_HEADER_BYTES));
    for (uint64_t i = 0; i < header->records; i++) {
        struct eski_record record;
        enum esk_err err = eski_record_decode(&reader, &record, error);
        if (err != ESK_OK) {
            return err;
        }
        struct eski_group *group;
        switch (record.kind) {
        case ESKI_RECORD_ENTRY:
            group = eski_group_obtain(&recovery->groups, record.group_id);
            if (eski_group_enter(&recovery->groups, group, record.entry.index, file)) {
                cutoffs_add(recovery, record.group_id, header->sequence << ORDINAL_BITS | i,
                            record.entry.index);
            }
            break;
        case ESKI_RECORD_STATE:
            group = eski_group_obtain(&recovery->groups, record.group_id);
            eski_group_store(&recovery->groups, group, &record.state, NULL);
            break;
        case ESKI_RECORD_FORGET:
            group = eski_group_find(&recovery->groups, record.group_id);
            if (group) {
                eski_group_remove(&recovery->groups, group);
            }
            break;
        }
    }
    if (esk_reader_left(&reader) != 0) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%zu bytes behind the last record",
                        esk_reader_left(&reader));
    }
    return ESK_OK;
}

static int compare_ids(const void *a, const void *b) {
    uint64_t left = (*(struct eski_group *const *)a)->state.group_id;
    uint64_t right = (*(struct eski_group *const *)b)->state.group_id;
    return left < right ? -1 : left > right;
}

void eski_recovery_sort(struct esk_journal_recovery *recovery) {
    recovery->sorted = esk_alloc(recovery->groups.map.count * sizeof(struct eski_group *));
    size_t position = 0;
    void *value;
    while (esk_u64_map_next(&recovery->groups.map, &position, NULL, &value)) {
        struct eski_group *group = value;
        if (group->has_state) {
            recovery->sorted[recovery->sorted_count++] = group;
        }
    }
    if (recovery->sorted_count > 1) {
        qsort(recovery->sorted, recovery->sorted_count, sizeof(struct eski_group *), compare_ids);
    }
}

size_t esk_journal_recovery_count(const struct esk_journal_recovery *recovery) {
    return recovery->sorted_count;
}

const struct esk_group_state *
esk_journal_recovery_state(const struct esk_journal_recovery *recovery, size_t index) {
    ESK_ASSERT(index < recovery->sorted_count);
    return &recovery->sorted[index]->state;
}

const struct esk_group_state *esk_journal_recovery_find(const struct esk_journal_recovery *recovery,
                                                        uint64_t group_id) {
    const struct eski_group *group = eski_group_find(&recovery->groups, group_id);
    return group && group->has_state ? &group->state : NULL;
}

struct replay {
    struct esk_journal_recovery *recovery;
    uint64_t only_group;
    enum esk_err (*visit)(void *context, uint64_t group_id, const struct esk_entry *entry,
                          struct esk_error *error);
    void *context;
    struct esk_u64_map expected; /* next index by group id, as a pointer's bits */
};

static enum esk_err replay_entry(struct replay *replay, uint64_t ordinal,
                                 const struct eski_record *record, struct esk_error *error) {
    uint64_t id = record->group_id;
    uint64_t index = record->entry.index;
    const struct eski_group *group = eski_group_find(&replay->recovery->groups, id);
    if (!group || index <= group->state.checkpoint.applied_index ||
        is_cut_off(replay->recovery, id, ordinal, index)) {
        return ESK_OK;
    }
    uint64_t expected = (uintptr_t)esk_u64_map_get(&replay->expected, id);
    if (expected == 0) {
        expected = group->state.checkpoint.applied_index + 1;
    }
    if (index != expected) {
        return esk_fail(error, ESK_ERR_CORRUPT,
                        "group %" PRIu64 ": entry %" PRIu64 " follows where %" PRIu64 " should", id,
                        index, expected);
    }
    esk_u64_map_put(&replay->expected, id, (void *)(uintptr_t)(index + 1));
    return replay->visit(replay->context, id, &record->entry, error);
}

static enum esk_err replay_frame(struct replay *replay, const struct eski_frame_header *header,
                                 const uint8_t *frame, struct esk_error *error) {
    struct esk_reader reader = esk_reader(
        esk_slice(frame + ESKI_FRAME_HEADER_BYTES, header->used - ESKI_FRAME_HEADER_BYTES));
    for (uint64_t i = 0; i < header->records; i++) {
        struct eski_record record;
        enum esk_err err = eski_record_decode(&reader, &record, error);
        if (err == ESK_OK && record.kind == ESKI_RECORD_ENTRY &&
            (replay->only_group == UINT64_MAX || replay->only_group == record.group_id)) {
            err = replay_entry(replay, header->sequence << ORDINAL_BITS | i, &record, error);
        }
        if (err != ESK_OK) {
            return err;
        }
    }
    return ESK_OK;
}

static enum esk_err replay_file(struct replay *replay, const struct eski_file *file,
                                struct esk_error *error) {
    struct esk_journal_recovery *recovery = replay->recovery;
    struct eski_window window;
    enum esk_err err = eski_window_open(&window, recovery->platform, recovery->folder, file->number,
                                        ESKI_PIECE_BYTES, error);
    if (err != ESK_OK) {
        return err;
    }
    uint64_t position = ESKI_BLOCK_BYTES;
    while (err == ESK_OK && position < file->position) {
        struct eski_frame_header header;
        const uint8_t *frame;
        err = eski_window_frame(&window, position, file->generation, file->number, &header, &frame,
                                error);
        if (err == ESK_OK && !frame) {
            err = esk_fail(error, ESK_ERR_CORRUPT, "%s at %" PRIu64 ": a frame reads differently",
                           window.path, position);
        } else if (err == ESK_OK) {
            err = replay_frame(replay, &header, frame, error);
            position += header.size;
        }
    }
    eski_window_close(&window);
    return err;
}

/* Whether the file has entries above the checkpoint of the group, or of any. */
static bool is_needed(const struct esk_journal_recovery *recovery, const struct eski_file *file,
                      uint64_t only_group) {
    if (only_group == UINT64_MAX) {
        return file->held > 0;
    }
    const struct eski_group *group = eski_group_find(&recovery->groups, only_group);
    const struct eski_hold *hold = group ? group->first : NULL;
    while (hold && hold->file != file) {
        hold = hold->next;
    }
    return hold != NULL;
}

enum esk_err esk_journal_recovery_replay(struct esk_journal_recovery *recovery, uint64_t only_group,
                                         enum esk_err (*visit)(void *context, uint64_t group_id,
                                                               const struct esk_entry *entry,
                                                               struct esk_error *error),
                                         void *context, struct esk_error *error) {
    struct replay replay = {recovery, only_group, visit, context, {NULL, 0, 0, 0}};
    esk_u64_map_init(&replay.expected);
    enum esk_err err = ESK_OK;
    for (size_t i = 0; err == ESK_OK && i < recovery->file_count; i++) {
        if (is_needed(recovery, recovery->files[i], only_group)) {
            err = replay_file(&replay, recovery->files[i], error);
        }
    }
    esk_u64_map_fini(&replay.expected);
    return err;
}

void esk_journal_recovery_destroy(struct esk_journal_recovery *recovery) {
    if (!recovery) {
        return;
    }
    size_t position = 0;
    void *value;
    while (esk_u64_map_next(&recovery->cutoffs, &position, NULL, &value)) {
        free(((struct eski_cutoffs *)value)->items);
        free(value);
    }
    esk_u64_map_fini(&recovery->cutoffs);
    eski_groups_fini(&recovery->groups);
    for (size_t i = 0; i < recovery->file_count; i++) {
        eski_file_destroy(recovery->files[i]);
    }
    free(recovery->files);
    free(recovery->voids);
    free(recovery->spares);
    free(recovery->sorted);
    free(recovery->folder);
    free(recovery);
}
