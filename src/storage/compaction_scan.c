/* SPDX-License-Identifier: Apache-2.0 */
/* Reading segments batch by batch, and the key map of a range. What is damaged is not copied under
 * a new checksum: the scan ends there, and the segment stays as it is. */
#include "storage/compaction_private.h"

#include "storage/segment_private.h"

#include <stdlib.h>

#define READ_BYTES (1u << 20) /* at once: a third of a millisecond when it is cached */
#define INFLATED_BYTES_MAX (64u * 1024 * 1024)

enum esk_err eski_compaction_pace(const struct esk_storage *storage,
                                  struct esk_compaction_pace *pace, uint64_t *unpaced,
                                  uint64_t bytes, struct esk_error *error) {
    *unpaced += bytes;
    while (*unpaced >= ESK_SEGMENT_WRITE_BYTES) {
        uint64_t pause_ns = atomic_load_explicit(&pace->pause_ns, memory_order_relaxed);
        if (atomic_load_explicit(&pace->stop, memory_order_relaxed)) {
            return esk_fail(error, ESK_ERR_UNAVAILABLE, "the pass was stopped");
        }
        if (pause_ns == 0) {
            *unpaced %= ESK_SEGMENT_WRITE_BYTES;
        } else {
            esk_pause(storage->platform, pause_ns);
            *unpaced -= ESK_SEGMENT_WRITE_BYTES;
        }
    }
    return ESK_OK;
}

/* --- a scan --- */

/* What can't be read is left alone, as what is damaged: ESK_ERR_IO means that a sync failed. */
static enum esk_err unreadable(enum esk_err err, struct esk_error *error) {
    if (err == ESK_ERR_IO) {
        err = ESK_ERR_CORRUPT;
        if (error != NULL) {
            error->code = err;
        }
    }
    return err;
}

enum esk_err eski_scan_begin(struct eski_scan *scan, const struct esk_storage *storage,
                             uint64_t group_id, const struct esk_compaction_input *input,
                             struct esk_compaction_pace *pace, struct esk_error *error) {
    scan->input = input;
    scan->pace = pace;
    scan->held = scan->at = 0;
    scan->position = 0;
    scan->next_offset = input->base_offset;
    if (scan->buffer == NULL) {
        scan->capacity = READ_BYTES;
        scan->buffer = esk_alloc(scan->capacity);
    }
    return unreadable(esk_segment_open_revision(storage, group_id, input->base_offset,
                                                input->revision, &scan->segment, error),
                      error);
}

void eski_scan_end(struct eski_scan *scan) {
    esk_segment_release(scan->segment);
    scan->segment = NULL;
}

void eski_scan_fini(struct eski_scan *scan) {
    eski_scan_end(scan);
    free(scan->buffer);
    scan->buffer = NULL;
}

static enum esk_err damaged(const struct eski_scan *scan, const char *what,
                            struct esk_error *error) {
    return esk_fail(error, ESK_ERR_CORRUPT, "%s: %s at batch byte %" PRIu64, scan->segment->path,
                    what, scan->position + scan->at);
}

/* At least `needed` bytes from where the scan stands. */
static enum esk_err fill(struct eski_scan *scan, size_t needed, struct esk_error *error) {
    size_t left = scan->held - scan->at;
    if (left >= needed) {
        return ESK_OK;
    }
    memmove(scan->buffer, scan->buffer + scan->at, left);
    scan->position += scan->at;
    scan->at = 0;
    scan->held = left;
    if (needed > scan->capacity) {
        scan->capacity = needed;
        scan->buffer = esk_realloc(scan->buffer, scan->capacity);
    }
    while (scan->held < needed) {
        size_t got = 0;
        enum esk_err err =
            esk_segment_read(scan->segment, scan->buffer + scan->held, scan->capacity - scan->held,
                             scan->position + scan->held, scan->input->bytes, 0, &got, error);
        if (err != ESK_OK) {
            return unreadable(err, error);
        }
        if (got == 0) {
            return damaged(scan, "half a batch", error);
        }
        scan->held += got;
        err = eski_compaction_pace(scan->segment->storage, scan->pace, &scan->unpaced, got, error);
        if (err != ESK_OK) {
            return err;
        }
    }
    return ESK_OK;
}

enum esk_err eski_scan_next(struct eski_scan *scan, struct esk_slice *batch,
                            struct esk_batch_header *header, struct esk_error *error) {
    uint64_t left = scan->input->bytes - scan->position - scan->at;
    *batch = esk_slice(NULL, 0);
    if (left == 0) {
        return ESK_OK;
    }
    if (left < ESK_BATCH_HEADER_BYTES) {
        return damaged(scan, "half a batch", error);
    }
    enum esk_err err = fill(scan, ESK_BATCH_HEADER_BYTES, error);
    if (err != ESK_OK) {
        return err;
    }
    uint64_t size = (uint64_t)esk_load_u32(scan->buffer + scan->at + ESK_BATCH_AT_LENGTH) +
                    ESK_BATCH_LENGTH_BYTES;
    if (size < ESK_BATCH_HEADER_BYTES || size > left || size > ESKI_BATCH_BYTES_MAX) {
        return damaged(scan, "a batch of wrong length", error);
    }
    err = fill(scan, (size_t)size, error);
    if (err != ESK_OK) {
        return err;
    }
    struct esk_slice found = esk_slice(scan->buffer + scan->at, (size_t)size);
    if (esk_batch_parse(found, header, NULL) != ESK_OK || header->base_offset < 0 ||
        header->last_offset_delta < 0 || (uint64_t)header->base_offset < scan->next_offset ||
        (uint64_t)header->base_offset + (uint64_t)header->last_offset_delta >=
            scan->input->end_offset) {
        return damaged(scan, "a batch out of place", error);
    }
    if (!esk_batch_crc_valid(found.data, header)) {
        return damaged(scan, "a batch whose checksum is wrong", error);
    }
    scan->next_offset = (uint64_t)header->base_offset + (uint64_t)header->last_offset_delta + 1;
    scan->at += (size_t)size;
    *batch = found;
    return ESK_OK;
}

/* --- the key map --- */

/* Notes a batch's keys; *full when the map had no room for the record at *map_end. */
static enum esk_err map_batch(struct esk_key_map *map, struct esk_slice batch,
                              const struct esk_batch_header *header, uint64_t from,
                              struct esk_buffer *scratch, bool *full, uint64_t *map_end,
                              struct esk_error *error) {
    struct esk_slice records;
    struct esk_record record;
    enum esk_err err =
        esk_batch_records(batch, header, INFLATED_BYTES_MAX, scratch, &records, error);
    if (err != ESK_OK) {
        return err;
    }
    struct esk_record_iterator iterator = esk_record_iterator(records, header->record_count);
    struct eski_ahead ahead = eski_ahead(map, records, header->record_count);
    while (esk_record_next(&iterator, &record)) {
        struct esk_hash128 hash = eski_ahead_next(&ahead);
        uint64_t offset = (uint64_t)header->base_offset + (uint64_t)(uint32_t)record.offset_delta;
        if (offset >= from && record.key.data != NULL && !esk_key_map_put(map, hash, offset)) {
            *full = true;
            *map_end = offset;
            return ESK_OK;
        }
    }
    return iterator.failed
               ? esk_fail(error, ESK_ERR_CORRUPT, "malformed records in the batch at offset %lld",
                          (long long)header->base_offset)
               : ESK_OK;
}

static enum esk_err map_segment(struct eski_scan *scan, uint64_t from, struct esk_buffer *scratch,
                                struct esk_key_map *map, bool *full, uint64_t *map_end,
                                struct esk_error *error) {
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && !*full) {
        struct esk_slice batch;
        struct esk_batch_header header;
        err = eski_scan_next(scan, &batch, &header, error);
        if (err != ESK_OK || batch.size == 0) {
            break;
        }
        bool control = (header.attributes & ESK_BATCH_CONTROL) != 0;
        if (!control && scan->next_offset > from) {
            err = map_batch(map, batch, &header, from, scratch, full, map_end, error);
        }
    }
    return err;
}

enum esk_err esk_compaction_map(const struct esk_storage *storage, uint64_t group_id,
                                const struct esk_compaction_input *inputs, size_t count,
                                uint64_t from, struct esk_compaction_pace *pace,
                                struct esk_key_map *map, uint64_t *map_end,
                                struct esk_error *error) {
    struct eski_scan scan = {0};
    struct esk_buffer scratch;
    bool full = false;
    enum esk_err err = ESK_OK;
    esk_buffer_init(&scratch);
    *map_end = from;
    for (size_t i = 0; err == ESK_OK && i < count && !full; i++) {
        if (inputs[i].end_offset <= from) {
            continue;
        }
        err = eski_scan_begin(&scan, storage, group_id, &inputs[i], pace, error);
        if (err == ESK_OK) {
            err = map_segment(&scan, from, &scratch, map, &full, map_end, error);
        }
        eski_scan_end(&scan);
        if (err == ESK_OK && !full) {
            *map_end = inputs[i].end_offset;
        }
    }
    eski_scan_fini(&scan);
    esk_buffer_fini(&scratch);
    return err;
}
