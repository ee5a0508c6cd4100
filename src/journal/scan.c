/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a journal file from the device: a window that moves over it in large reads. O_DIRECT
 * where the file system has it; else what is cached is synced and dropped first, since a page that
 * failed to sync still reads well from the cache after a restart. Blocks: workers only. */
#include "journal/files_private.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/mutation.h"

#include <inttypes.h>
#include <stdlib.h>

uint8_t *eski_aligned_alloc(size_t size) {
    uint8_t *memory = aligned_alloc(ESKI_BLOCK_BYTES, ESK_ALIGN_UP(size, ESKI_BLOCK_BYTES));
    ESK_ASSERT(memory != NULL);
    return memory;
}

static enum esk_err open_buffered(struct eski_window *window, struct esk_platform *platform,
                                  struct esk_error *error) {
    enum esk_err err = esk_file_open(platform, window->path, ESK_FILE_READ, &window->file, error);
    if (err != ESK_OK || ESK_MUTATED(RECOVER_FROM_CACHE)) {
        return err;
    }
    ESK_REACHED(JOURNAL_BUFFERED);
    err = esk_file_sync(window->file, error);
    if (err == ESK_OK) {
        err = esk_file_drop_cache(window->file, error);
    }
    return err;
}

static enum esk_err open_any(struct eski_window *window, struct esk_platform *platform,
                             struct esk_error *error) {
    if (ESK_MUTATED(RECOVER_FROM_CACHE)) {
        return open_buffered(window, platform, error);
    }
    enum esk_err err = esk_file_open(platform, window->path, ESK_FILE_READ | ESK_FILE_DIRECT,
                                     &window->file, error);
    if (err == ESK_OK) {
        size_t got = 0;
        err = esk_file_read(window->file, window->data, ESKI_BLOCK_BYTES, 0, 0, &got, error);
        if (err != ESK_ERR_UNSUPPORTED) {
            return err;
        }
        esk_file_close(window->file);
        window->file = NULL;
    }
    return err == ESK_ERR_UNSUPPORTED ? open_buffered(window, platform, error) : err;
}

enum esk_err eski_window_open(struct eski_window *window, struct esk_platform *platform,
                              const char *folder, uint64_t number, size_t piece_bytes,
                              struct esk_error *error) {
    memset(window, 0, sizeof(*window));
    window->path = eski_path(folder, number, "journal");
    window->capacity = piece_bytes;
    window->data = eski_aligned_alloc(window->capacity);
    uint64_t bytes = 0;
    enum esk_err err = open_any(window, platform, error);
    if (err == ESK_OK) {
        err = esk_file_size(window->file, &bytes, error);
    }
    if (err != ESK_OK) {
        eski_window_close(window);
        return err;
    }
    window->file_bytes = bytes / ESKI_BLOCK_BYTES * ESKI_BLOCK_BYTES;
    return ESK_OK;
}

void eski_window_close(struct eski_window *window) {
    esk_file_close(window->file);
    free(window->path);
    free(window->data);
    memset(window, 0, sizeof(*window));
}

enum esk_err eski_window_get(struct eski_window *window, uint64_t position, size_t size,
                             const uint8_t **bytes, struct esk_error *error) {
    *bytes = NULL;
    if (position > window->file_bytes || size > window->file_bytes - position) {
        return ESK_OK;
    }
    uint64_t offset = position - window->base;
    if (position < window->base || offset > window->size || size > window->size - offset) {
        if (size > window->capacity) {
            free(window->data);
            window->capacity = size;
            window->data = eski_aligned_alloc(size);
        }
        uint64_t left = window->file_bytes - position;
        size_t wanted = left < window->capacity ? (size_t)left : window->capacity;
        window->base = position;
        window->size = 0;
        enum esk_err err =
            esk_file_read(window->file, window->data, wanted, position, 0, &window->size, error);
        if (err != ESK_OK) {
            window->size = 0;
            return err;
        }
        if (window->size < size) {
            return esk_fail(error, ESK_ERR_IO, "read %s at %" PRIu64 ": %zu of %zu bytes",
                            window->path, position, window->size, size);
        }
        offset = 0;
    }
    *bytes = window->data + offset;
    return ESK_OK;
}

enum esk_err eski_window_frame(struct eski_window *window, uint64_t position, uint64_t generation,
                               uint64_t number, struct eski_frame_header *header,
                               const uint8_t **frame, struct esk_error *error) {
    const uint8_t *bytes;
    *frame = NULL;
    enum esk_err err = eski_window_get(window, position, ESKI_BLOCK_BYTES, &bytes, error);
    if (err != ESK_OK || !bytes || !eski_frame_header_decode(bytes, header) ||
        header->file != number || header->generation != generation ||
        header->position != position) {
        return err;
    }
    err = eski_window_get(window, position, header->size, &bytes, error);
    if (err != ESK_OK || !bytes || !eski_frame_intact(bytes, header)) {
        return err;
    }
    if (header->flags != 0) {
        return esk_fail(error, ESK_ERR_VERSION,
                        "%s at %" PRIu64 ": frame flags %" PRIx32 " are not known", window->path,
                        position, header->flags);
    }
    *frame = bytes;
    return ESK_OK;
}
