/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery, first pass: which files count, where the last generation ends, and the newest state of
 * each group. Blocks: a worker. What was accepted is synced before anybody builds on it.
 *
 * A numbered file always has an intact header, because the header is synced before the file gets
 * its number; so a bad one is damage. A bad frame is damage below a recorded cut, below a later
 * frame's durable_upto, and at the head of a generation or of the oldest file, which were durable
 * before anything depended on them. Elsewhere it is a torn tail. */
#include "journal/recovery_private.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/mutation.h"

#include <inttypes.h>
#include <stdlib.h>

struct scan_file {
    struct eski_file_header header;
    uint64_t end; /* recorded by the next generation; 0: not known */
    uint64_t end_sequence;
    bool live;
};

struct scan {
    struct esk_journal_recovery *recovery;
    struct scan_file *files;
    size_t count;
    size_t capacity;
};

static void numbers_add(uint64_t **numbers, size_t *count, uint64_t number) {
    *numbers = esk_realloc(*numbers, (*count + 1) * sizeof(**numbers));
    (*numbers)[(*count)++] = number;
}

static enum esk_err see_name(void *context, const char *name, bool is_folder) {
    struct scan *scan = context;
    struct esk_journal_recovery *recovery = scan->recovery;
    uint64_t number = is_folder ? 0 : eski_number_of_name(name, "journal");
    if (number != 0) {
        if (scan->count == scan->capacity) {
            scan->capacity = scan->capacity ? 2 * scan->capacity : 16;
            scan->files = esk_realloc(scan->files, scan->capacity * sizeof(*scan->files));
        }
        scan->files[scan->count] = (struct scan_file){.header.file = number, .live = true};
        scan->count++;
    } else if (!is_folder && strcmp(name, ESKI_NEXT_NAME) == 0) {
        recovery->next_exists = true;
    } else {
        number = is_folder ? 0 : eski_number_of_name(name, "spare");
        if (number != 0) {
            numbers_add(&recovery->spares, &recovery->spare_count, number);
        }
    }
    if (number > recovery->number_max) {
        recovery->number_max = number;
    }
    return ESK_OK;
}

static enum esk_err read_header(struct scan *scan, struct scan_file *file,
                                struct esk_error *error) {
    struct esk_journal_recovery *recovery = scan->recovery;
    struct eski_window window;
    uint64_t number = file->header.file;
    const uint8_t *block = NULL;
    enum esk_err err = eski_window_open(&window, recovery->platform, recovery->folder, number,
                                        ESKI_BLOCK_BYTES, error);
    if (err != ESK_OK) {
        return err;
    }
    err = eski_window_get(&window, 0, ESKI_BLOCK_BYTES, &block, error);
    if (err == ESK_OK) {
        err = block ? eski_file_header_decode(block, &file->header, error)
                    : esk_fail(error, ESK_ERR_CORRUPT, "shorter than its header");
        if (err == ESK_OK && file->header.file != number) {
            err = esk_fail(error, ESK_ERR_CORRUPT, "the header is that of file %" PRIu64,
                           file->header.file);
        }
        if (err != ESK_OK) {
            esk_wrap(error, "%s at 0", window.path);
        }
    }
    eski_window_close(&window);
    return err;
}

/* From the newest file down: a generation ends where the next one's headers say. */
static enum esk_err classify(struct scan *scan, struct esk_error *error) {
    if (scan->count == 0) {
        return ESK_OK;
    }
    struct esk_journal_recovery *recovery = scan->recovery;
    const struct eski_file_header *newest = &scan->files[scan->count - 1].header;
    recovery->generation = newest->generation;
    for (size_t i = scan->count; i-- > 0;) {
        struct scan_file *file = &scan->files[i];
        if (file->header.generation == newest->generation) {
            continue;
        }
        if (file->header.generation > newest->generation) {
            return esk_fail(error, ESK_ERR_CORRUPT,
                            "%s: file %016" PRIx64 " is of a later generation than its successor",
                            recovery->folder, file->header.file);
        }
        if (file->header.file > newest->cut_file) {
            file->live = false;
            continue;
        }
        if (file->header.file < newest->cut_file) {
            return esk_fail(error, ESK_ERR_CORRUPT, "%s: file %016" PRIx64 " is missing",
                            recovery->folder, newest->cut_file);
        }
        file->end = newest->cut_position;
        file->end_sequence = newest->cut_sequence;
        newest = &file->header;
    }
    return ESK_OK;
}

/* Splits into live and void files, and checks that none is missing between the live ones. */
static enum esk_err separate(struct scan *scan, struct esk_error *error) {
    struct esk_journal_recovery *recovery = scan->recovery;
    size_t live = 0;
    for (size_t i = 0; i < scan->count; i++) {
        struct scan_file *file = &scan->files[i];
        if (!file->live) {
            numbers_add(&recovery->voids, &recovery->void_count, file->header.file);
            continue;
        }
        if (live > 0 && file->header.previous_file != scan->files[live - 1].header.file) {
            return esk_fail(error, ESK_ERR_CORRUPT, "%s: file %016" PRIx64 " is missing",
                            recovery->folder, file->header.previous_file);
        }
        scan->files[live++] = *file;
    }
    scan->count = live;
    return ESK_OK;
}

/* --- frames ------------------------------------------------------------------------------------
 */

static enum esk_err damage(const struct eski_window *window, uint64_t position, const char *why,
                           struct esk_error *error) {
    ESK_REACHED(JOURNAL_DAMAGE);
    return esk_fail(error, ESK_ERR_CORRUPT, "%s at %" PRIu64 ": damaged frame that was durable: %s",
                    window->path, position, why);
}

/* Where a scan stands: the sequence expected next, in which file, at which position. */
struct place {
    size_t index;
    uint64_t position;
    uint64_t sequence; /* 0: any */
};

/* Accepts frames of one file from place on; place is then behind them. */
static enum esk_err accept_frames(struct scan *scan, struct eski_window *window,
                                  struct place *place, struct eski_file *file,
                                  struct esk_error *error) {
    const struct scan_file *at = &scan->files[place->index];
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
static enum esk_err continues(struct scan *scan, size_t index, uint64_t sequence, bool *yes,
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

/* Looks at everything behind place for intact frames: *vouched when one knew the frame expected
 * at place durable, *later is the first one found (index SIZE_MAX: none). */
static enum esk_err look_behind(struct scan *scan, const struct place *place, bool *vouched,
                                struct place *later, struct esk_error *error) {
    struct esk_journal_recovery *recovery = scan->recovery;
    *vouched = false;
    later->index = SIZE_MAX;
    for (size_t i = place->index; i < scan->count; i++) {
        const struct eski_file_header *file = &scan->files[i].header;
        struct eski_window window;
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

/* No intact frame at place. *done when the journal ends there; else place is moved on. */
static enum esk_err judge_end(struct scan *scan, struct eski_window *window, struct place *place,
                              bool *done, struct esk_error *error) {
    const struct scan_file *at = &scan->files[place->index];
    bool newest = at->header.generation == scan->recovery->generation;
    bool last = place->index + 1 == scan->count;
    *done = false;
    if (at->end != 0) {
        if (place->position != at->end || place->sequence != at->end_sequence + 1) {
            return damage(window, place->position, "the next generation begins behind it", error);
        }
        *place = (struct place){place->index + 1, ESKI_BLOCK_BYTES, place->sequence};
        return ESK_OK;
    }
    bool first_of_generation = at->header.previous_file == at->header.cut_file;
    if (place->position == ESKI_BLOCK_BYTES && (place->index == 0 || first_of_generation)) {
        return damage(window, place->position, "it is the first one", error);
    }
    bool goes_on = false;
    if (!last) {
        enum esk_err err = continues(scan, place->index + 1, place->sequence, &goes_on, error);
        if (err != ESK_OK) {
            return err;
        }
    }
    if (goes_on) {
        *place = (struct place){place->index + 1, ESKI_BLOCK_BYTES, place->sequence};
        return ESK_OK;
    }
    if (!newest) {
        return damage(window, place->position, "the next generation begins behind it", error);
    }
    bool vouched;
    struct place later;
    enum esk_err err = look_behind(scan, place, &vouched, &later, error);
    if (err != ESK_OK) {
        return err;
    }
    if (vouched && !ESK_MUTATED(DAMAGE_AS_TORN_TAIL)) {
        return damage(window, place->position, "a later frame vouches for it", error);
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

static enum esk_err scan_frames(struct scan *scan, struct esk_error *error) {
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
            err = judge_end(scan, &window, &place, &done, error);
        }
        if (err == ESK_OK && !ESK_MUTATED(RECOVER_FROM_CACHE)) {
            err = esk_file_sync(window.file, error);
        }
        eski_window_close(&window);
        if (err != ESK_OK) {
            return err;
        }
    }
    for (size_t i = place.index + 1; i < scan->count; i++) {
        numbers_add(&recovery->voids, &recovery->void_count, scan->files[i].header.file);
    }
    return ESK_OK;
}

static enum esk_err read_files(struct esk_journal_recovery *recovery, struct esk_error *error) {
    struct scan scan = {.recovery = recovery};
    enum esk_err err =
        esk_folder_list(recovery->platform, recovery->folder, see_name, &scan, error);
    if (err == ESK_ERR_NOT_FOUND) {
        free(scan.files);
        return ESK_OK;
    }
    recovery->folder_exists = err == ESK_OK;
    for (size_t i = 0; err == ESK_OK && i < scan.count; i++) {
        err = read_header(&scan, &scan.files[i], error);
    }
    if (err == ESK_OK) {
        err = classify(&scan, error);
    }
    if (err == ESK_OK) {
        err = separate(&scan, error);
    }
    if (err == ESK_OK) {
        err = scan_frames(&scan, error);
    }
    if (err == ESK_OK && scan.count > 0 && recovery->files[0]->number > recovery->oldest_file) {
        err = esk_fail(error, ESK_ERR_CORRUPT, "%s: file %016" PRIx64 " is missing",
                       recovery->folder, recovery->oldest_file);
    }
    free(scan.files);
    return err;
}

enum esk_err esk_journal_recover(const struct esk_journal_options *options,
                                 struct esk_journal_recovery **result, struct esk_error *error) {
    struct esk_journal_recovery *recovery = esk_alloc_zeroed(1, sizeof(*recovery));
    recovery->platform = options->platform;
    recovery->log = options->log;
    recovery->folder = esk_text_copy(options->folder);
    eski_groups_init(&recovery->groups);
    esk_u64_map_init(&recovery->cutoffs);
    enum esk_err err = read_files(recovery, error);
    if (err != ESK_OK) {
        esk_wrap(error, "recover the journal of shard %" PRIu32, options->shard);
        esk_journal_recovery_destroy(recovery);
        return err;
    }
    eski_recovery_sort(recovery);
    *result = recovery;
    return ESK_OK;
}
