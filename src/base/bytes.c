/* SPDX-License-Identifier: Apache-2.0 */
/* Byte cursors, the parts that are not worth inlining. A failed cursor never moves again. */
#include "base/bytes.h"

struct esk_slice esk_slice_text(const char *text) {
    return esk_slice(text, strlen(text));
}

bool esk_slice_equal(struct esk_slice a, struct esk_slice b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

int esk_slice_compare(struct esk_slice a, struct esk_slice b) {
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

uint64_t esk_read_uvarint(struct esk_reader *r) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        const uint8_t *span = esk_read_span(r, 1);
        if (!span) {
            return 0;
        }
        uint64_t bits = *span & 0x7f;
        if (shift == 63 && bits > 1) {
            break;
        }
        value |= bits << shift;
        if (!(*span & 0x80)) {
            return value;
        }
    }
    r->failed = true;
    return 0;
}

uint32_t esk_read_uvarint32(struct esk_reader *r) {
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        const uint8_t *span = esk_read_span(r, 1);
        if (!span) {
            return 0;
        }
        uint32_t bits = *span & 0x7f;
        if (shift == 28 && bits > 15) {
            break;
        }
        value |= bits << shift;
        if (!(*span & 0x80)) {
            return value;
        }
    }
    r->failed = true;
    return 0;
}

int64_t esk_read_varint(struct esk_reader *r) {
    uint64_t raw = esk_read_uvarint(r);
    return (int64_t)((raw >> 1) ^ (~(raw & 1) + 1));
}

struct esk_slice esk_read_bytes(struct esk_reader *r, uint64_t size) {
    const uint8_t *span = size <= SIZE_MAX ? esk_read_span(r, (size_t)size) : NULL;
    if (!span) {
        r->failed = true;
        return (struct esk_slice){NULL, 0};
    }
    return esk_slice(span, (size_t)size);
}

struct esk_writer esk_writer(void *memory, size_t size) {
    static uint8_t nothing;
    uint8_t *start = size ? memory : &nothing;
    return (struct esk_writer){start, start, start + size, false};
}

/* Room for `size` bytes, or NULL after an overrun. */
static inline uint8_t *claim(struct esk_writer *w, size_t size) {
    if (w->failed || (size_t)(w->end - w->at) < size) {
        w->failed = true;
        return NULL;
    }
    uint8_t *room = w->at;
    w->at += size;
    return room;
}

void esk_write_u8(struct esk_writer *w, uint8_t value) {
    uint8_t *room = claim(w, 1);
    if (room) {
        *room = value;
    }
}

void esk_write_u16(struct esk_writer *w, uint16_t value) {
    uint8_t *room = claim(w, 2);
    if (room) {
        esk_store_u16(room, value);
    }
}

void esk_write_u32(struct esk_writer *w, uint32_t value) {
    uint8_t *room = claim(w, 4);
    if (room) {
        esk_store_u32(room, value);
    }
}

void esk_write_u64(struct esk_writer *w, uint64_t value) {
    uint8_t *room = claim(w, 8);
    if (room) {
        esk_store_u64(room, value);
    }
}

void esk_write_uvarint(struct esk_writer *w, uint64_t value) {
    uint8_t *room = claim(w, esk_uvarint_size(value));
    if (room) {
        esk_store_uvarint(room, value);
    }
}

void esk_write_varint(struct esk_writer *w, int64_t value) {
    esk_write_uvarint(w, esk_zigzag(value));
}

void esk_write_bytes(struct esk_writer *w, struct esk_slice bytes) {
    uint8_t *room = claim(w, bytes.size);
    if (room && bytes.size) {
        memcpy(room, bytes.data, bytes.size);
    }
}

size_t esk_varint_size(int64_t value) {
    return esk_uvarint_size(esk_zigzag(value));
}
