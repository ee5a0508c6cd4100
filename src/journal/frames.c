/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery's walk over the frames of the live files, to the end of the journal. A bad frame is
 * damage below a recorded cut, below a later frame's durable_upto, and at the head of a generation
 * or of the oldest file, which were durable before anything depended on them. Elsewhere it is a
 * torn tail. Blocks: a worker. */
#include "journal/recovery_private.h"

#include "base/memory.h"
#include "base/mutation.h"

#include <inttypes.h>
#include <stdlib.h>

/* Where a scan stands: the sequence expected next, in which file, at which position. */
struct place {
    size_t index;
    uint64_t position;
    uint64_t sequence; /* 0: any */
};

static enum esk_err damage(const struct eski_scan *scan, const struct place *place, const char *why,
                           struct esk_error *error) {
    char *path =
        eski_path(scan->recovery->folder, scan->files[place->index].header.file, "journal");
    ESK_REACHED(JOURNAL_DAMAGE);
    (void)esk_fail(error, ESK_ERR_CORRUPT, "%s at %" PRIu64 ": damaged frame that was durable: %s",
                   path, place->position, why);
    free(path);
    return ESK_ERR_CORRUPT;
}

/* Accepts frames of one file from place on; place is then behind them. */
static enum esk_err accept_frames(struct eski_scan *scan, struct eski_window *window,
                                  struct place *place, struct eski_file *file,
                                  struct esk_error *error) {
    const struct eski_scan_file *at = &scan->files[place->index];
    struct esk_journal_recovery *recovery = scan->recovery;
    for (;;) {
        struct eski_frame_header header;
        const uint8_t *frame;
        if (at->end != 0 && place->position >= at->end) {
            return ESK_OK;
        }
        enum esk_err err = eski_window_frame(window, place->position, at->header.generation,
                                             at->header.file, &header, &frame, error);
        if (err != ESK_OK) {
            return err;
        }
        if (!frame || (place->sequence != 0 && header.sequence != place->sequence)) {
            return ESK_OK;
        }
        err = eski_recovery_take_frame(recovery, file, &header, frame, error);
        if (err != ESK_OK) {
            esk_wrap(error, "%s at %" PRIu64, window->path, place->position);
            return err;
        }
        recovery->sequence = header.sequence;
        recovery->oldest_file = header.oldest_file;
        place->sequence = header.sequence + 1;
        place->position += header.size;
    }
}

/* Whether the first frame of the file is the one expected. */
static enum esk_err continues(struct eski_scan *scan, size_t index, uint64_t sequence, bool *yes,
                              struct esk_error *error) {
    struct esk_journal_recovery *recovery = scan->recovery;
    const struct eski_file_header *file = &scan->files[index].header;
    struct eski_window window;
    struct eski_frame_header header;
    const uint8_t *frame = NULL;
    enum esk_err err = eski_window_open(&window, recovery->platform, recovery->folder, file->file,
                                        ESKI_BLOCK_BYTES, error);
    if (err != ESK_OK) {
        return err;
    }
    err = eski_window_frame(&window, ESKI_BLOCK_BYTES, file->generation, file->file, &header,
                            &frame, error);
    *yes = frame && header.sequence == sequence;
    eski_window_close(&window);
    return err;
}

/* Looks at all of the generation behind place for intact frames: *vouched when one knew the frame
 * expected at place durable, *later is the first one found (index SIZE_MAX: none). */
static enum esk_err look_behind(struct eski_scan *scan, const struct place *place, bool *vouched,
                                struct place *later, struct esk_error *error) {
    struct esk_journal_recovery *recovery = scan->recovery;
    *vouched = false;
    later->index = SIZE_MAX;
    uint64_t generation = scan->files[place->index].header.generation;
    for (size_t i = place->index; i < scan->count; i++) {
        const struct eski_file_header *file = &scan->files[i].header;
        struct eski_window window;
        if (file->generation != generation) {
            break;
        }
        enum esk_err err = eski_window_open(&window, recovery->platform, recovery->folder,
                                            file->file, ESKI_PIECE_BYTES, error);
        if (err != ESK_OK) {
            return err;
        }
        uint64_t position = i == place->index ? place->position : ESKI_BLOCK_BYTES;
        while (err == ESK_OK && position < window.file_bytes) {
            struct eski_frame_header header;
            const uint8_t *frame;
            err = eski_window_frame(&window, position, file->generation, file->file, &header,
                                    &frame, error);
            if (err == ESK_OK && frame) {
                *vouched = *vouched || header.durable_upto >= place->sequence;
                if (later->index == SIZE_MAX) {
                    *later = (struct place){i, position, header.sequence};
                }
            }
            position += err == ESK_OK && frame ? header.size : ESKI_BLOCK_BYTES;
        }
        eski_window_close(&window);
        if (err != ESK_OK) {
            return err;
        }
    }
    return ESK_OK;
}

/* Where the frame is that was expected at place, at a file's end: there, or at the next one's head
 * when what comes behind it is in that file. */
static struct place missing_place(const struct eski_scan *scan, const struct place *place,
                                  const struct place *later) {
    size_t next = place->index + 1;
    bool in_next = later->index != SIZE_MAX
                       ? later->index > place->index && later->position > ESKI_BLOCK_BYTES
                       : next < scan->count && scan->files[next].end > ESKI_BLOCK_BYTES;
    return in_next ? (struct place){next, ESKI_BLOCK_BYTES, place->sequence} : *place;
}

/* The newest generation may end at place, an older one may not: torn or damaged? */
static enum esk_err judge_tail(struct eski_scan *scan, struct place *place, bool *done,
                               struct esk_error *error) {
    bool newest = scan->files[place->index].header.generation == scan->recovery->generation;
    bool vouched;
    struct place later;
    enum esk_err err = look_behind(scan, place, &vouched, &later, error);
    if (err != ESK_OK) {
        return err;
    }
    if (!newest || (vouched && !ESK_MUTATED(DAMAGE_AS_TORN_TAIL))) {
        const struct place missing = missing_place(scan, place, &later);
        return damage(scan, &missing,
                      newest ? "a later frame vouches for it"
                             : "the next generation begins behind it",
                      error);
    }
    if (later.index != SIZE_MAX) {
        ESK_REACHED(JOURNAL_CUT);
        if (ESK_MUTATED(TORN_TAIL_NOT_CUT)) {
            *place = later;
            return ESK_OK;
        }
    }
    *done = true;
    return ESK_OK;
}

/* No intact frame at place. *done when the journal ends there; else place is moved on. */
static enum esk_err judge_end(struct eski_scan *scan, struct place *place, bool *done,
                              struct esk_error *error) {
    const struct eski_scan_file *at = &scan->files[place->index];
    const struct place next = {place->index + 1, ESKI_BLOCK_BYTES, place->sequence};
    bool goes_on = false;
    *done = false;
    if (at->end != 0) {
        if (place->position != at->end || place->sequence != at->end_sequence + 1) {
            return damage(scan, place, "the next generation begins behind it", error);
        }
        goes_on = true;
    } else if (place->position == ESKI_BLOCK_BYTES &&
               (place->index == 0 || at->header.previous_file == at->header.cut_file)) {
        return damage(scan, place, "it is the first one", error);
    } else if (next.index < scan->count) {
        enum esk_err err = continues(scan, next.index, place->sequence, &goes_on, error);
        if (err != ESK_OK) {
            return err;
        }
    }
    if (goes_on) {
        *place = next;
        return ESK_OK;
    }
    return judge_tail(scan, place, done, error);
}

static struct eski_file *file_of(struct esk_journal_recovery *recovery,
                                 const struct eski_file_header *header) {
    if (recovery->file_count > 0 &&
        recovery->files[recovery->file_count - 1]->number == header->file) {
        return recovery->files[recovery->file_count - 1];
    }
    struct eski_file *file = eski_file_create(NULL, header->file);
    file->generation = header->generation;
    recovery->files =
        esk_realloc(recovery->files, (recovery->file_count + 1) * sizeof(*recovery->files));
    recovery->files[recovery->file_count++] = file;
    return file;
}

enum esk_err eski_scan_frames(struct eski_scan *scan, struct esk_error *error) {
    struct esk_journal_recovery *recovery = scan->recovery;
    struct place place = {0, ESKI_BLOCK_BYTES, 0};
    bool done = scan->count == 0;
    while (!done) {
        if (place.index == scan->count) {
            return ESK_OK;
        }
        const struct eski_file_header *header = &scan->files[place.index].header;
        struct eski_file *file = file_of(recovery, header);
        struct eski_window window;
        enum esk_err err = eski_window_open(&window, recovery->platform, recovery->folder,
                                            header->file, ESKI_PIECE_BYTES, error);
        if (err != ESK_OK) {
            return err;
        }
        err = accept_frames(scan, &window, &place, file, error);
        file->position = place.position;
        file->last_sequence = recovery->sequence;
        if (err == ESK_OK) {
            err = judge_end(scan, &place, &done, error);
        }
        eski_window_close(&window);
        if (err != ESK_OK) {
            return err;
        }
    }
    for (size_t i = place.index + 1; i < scan->count; i++) {
        eski_numbers_add(&recovery->voids, &recovery->void_count, scan->files[i].header.file);
    }
    return ESK_OK;
}
