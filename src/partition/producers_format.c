/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of producer windows: behind the batch of a sequenced entry, and in a partition's
 * snapshot. docs/format-journal.md and docs/format-snapshot.md have them; tests/golden too. */
#include "partition/producers_private.h"

#include "base/assert.h"

#define TRAILER_VERSION 1
#define WINDOW_KIND 1
#define WINDOW_VERSION 1
#define WINDOW_HEAD_BYTES 30 /* kind, version, id, index, next, count */
#define STRETCH_BYTES 16
#define SEQUENCE_END (UINT64_C(1) << 63) /* one more than the last sequence there is */

void eski_trailer_write(struct esk_block *block, const struct eski_trailer *trailer) {
    ESK_ASSERT(block->capacity - block->size >= ESK_SEQUENCE_TRAILER_BYTES);
    uint8_t *at = block->data + block->size;
    at[0] = TRAILER_VERSION;
    esk_store_u64(at + 1, trailer->producer_id);
    esk_store_u64(at + 9, trailer->first);
}

enum esk_err eski_trailer_read(struct esk_slice payload, size_t batch_bytes, uint32_t record_count,
                               struct eski_trailer *trailer, struct esk_error *error) {
    if (payload.size <= batch_bytes) {
        return esk_fail(error, ESK_ERR_CORRUPT, "a sequenced entry ends with its batch");
    }
    const uint8_t *at = payload.data + batch_bytes;
    uint8_t version = at[0];
    bool whole = payload.size - batch_bytes == ESK_SEQUENCE_TRAILER_BYTES;
    if (version != TRAILER_VERSION) {
        return esk_fail(error, ESK_ERR_VERSION,
                        "a sequenced entry has version %u; this program knows version %u", version,
                        TRAILER_VERSION);
    }
    trailer->producer_id = whole ? esk_load_u64(at + 1) : 0;
    trailer->first = whole ? esk_load_u64(at + 9) : 0;
    if (!whole || record_count == 0 || trailer->first > SEQUENCE_END - record_count) {
        return esk_fail(error, ESK_ERR_CORRUPT, "a sequenced entry's last %zu bytes are malformed",
                        payload.size - batch_bytes);
    }
    return ESK_OK;
}

/* --- windows --- */

/* What is applied of the producer, and no more than its window. */
void eski_window_encode(struct esk_buffer *buffer, const struct eski_producer *producer) {
    if (!producer->applied || producer->forgotten) {
        return;
    }
    uint64_t end = producer->applied_next;
    uint64_t low = end > ESK_SEQUENCE_WINDOW ? end - ESK_SEQUENCE_WINDOW : 0;
    const struct eski_stretch *stretches = producer->stretches + producer->head;
    uint32_t from = 0;
    while (from + 1 < producer->count && stretches[from + 1].sequence <= low) {
        from++;
    }
    uint32_t to = from;
    while (to < producer->count && stretches[to].sequence < end) {
        to++;
    }
    esk_buffer_u32(buffer, WINDOW_HEAD_BYTES + (to - from) * STRETCH_BYTES);
    esk_buffer_u8(buffer, WINDOW_KIND);
    esk_buffer_u8(buffer, WINDOW_VERSION);
    esk_buffer_u64(buffer, producer->id);
    esk_buffer_u64(buffer, producer->applied_index);
    esk_buffer_u64(buffer, end);
    esk_buffer_u32(buffer, to - from);
    for (uint32_t i = from; i < to; i++) {
        uint64_t sequence = stretches[i].sequence > low ? stretches[i].sequence : low;
        esk_buffer_u64(buffer, sequence);
        esk_buffer_u64(buffer, stretches[i].offset + (sequence - stretches[i].sequence));
    }
}

static enum esk_err malformed(struct esk_error *error, uint64_t id) {
    return esk_fail(error, ESK_ERR_CORRUPT, "the window of producer %llu is malformed",
                    (unsigned long long)id);
}

static enum esk_err window_decode(struct esk_partition *partition, struct esk_slice bytes,
                                  struct esk_error *error) {
    struct esk_reader reader = esk_reader(bytes);
    uint8_t kind = esk_read_u8(&reader);
    uint8_t version = esk_read_u8(&reader);
    if (!reader.failed && (kind != WINDOW_KIND || version != WINDOW_VERSION)) {
        return esk_fail(error, ESK_ERR_VERSION, "a snapshot has kind %u, version %u", kind,
                        version);
    }
    uint64_t id = esk_read_u64(&reader);
    uint64_t index = esk_read_u64(&reader);
    uint64_t end = esk_read_u64(&reader);
    uint32_t count = esk_read_u32(&reader);
    if (reader.failed || count == 0 || count > ESK_SEQUENCE_WINDOW || end == 0 ||
        end > SEQUENCE_END || esk_reader_left(&reader) != count * STRETCH_BYTES ||
        eski_producer_find(partition, id) != NULL) {
        return malformed(error, id);
    }
    struct eski_producer *producer = eski_producer_obtain(partition, id);
    struct eski_stretch stretch = {esk_read_u64(&reader), esk_read_u64(&reader)};
    bool fits = end - stretch.sequence <= ESK_SEQUENCE_WINDOW;
    for (uint32_t i = 0; i < count && fits; i++) {
        struct eski_stretch next = {end, 0};
        if (i + 1 < count) {
            next.sequence = esk_read_u64(&reader);
            next.offset = esk_read_u64(&reader);
        }
        fits =
            stretch.sequence < next.sequence && next.sequence <= end && stretch.offset <= INT64_MAX;
        if (fits) {
            eski_producer_accept(producer, stretch.sequence, next.sequence - stretch.sequence,
                                 stretch.offset);
        }
        stretch = next;
    }
    producer->applied = true;
    producer->applied_next = producer->next;
    producer->applied_index = index;
    if (index > partition->producers_index) {
        partition->producers_index = index;
    }
    return fits ? ESK_OK : malformed(error, id);
}

enum esk_err eski_windows_decode(struct esk_partition *partition, struct esk_slice payload,
                                 struct esk_error *error) {
    struct esk_reader reader = esk_reader(payload);
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && esk_reader_left(&reader) > 0) {
        struct esk_slice window = esk_read_bytes(&reader, esk_read_u32(&reader));
        err = reader.failed ? esk_fail(error, ESK_ERR_CORRUPT, "it ends within a window")
                            : window_decode(partition, window, error);
    }
    return err;
}
