/* SPDX-License-Identifier: Apache-2.0 */
/* Byte cursors. Readers and writers fail once and stay failed: after any overrun every read gives 0
 * and every write does nothing, so that a decoder checks `failed` once at its end. Big-endian
 * unless a name says otherwise. Not thread-safe; no ownership of the bytes. */
#ifndef ESK_BASE_BYTES_H
#define ESK_BASE_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Borrowed bytes. */
struct esk_slice {
    const uint8_t *data;
    size_t size;
};

static inline struct esk_slice esk_slice(const void *data, size_t size) {
    return (struct esk_slice){(const uint8_t *)data, size};
}

struct esk_slice esk_slice_text(const char *text); /* without its NUL */
bool esk_slice_equal(struct esk_slice a, struct esk_slice b);
int esk_slice_compare(struct esk_slice a, struct esk_slice b); /* memcmp order, shorter first */

/* Loads and stores at any alignment, for fixed layouts. */
static inline uint16_t esk_load_u16(const void *at) {
    uint16_t value;
    memcpy(&value, at, sizeof(value));
    return be16toh(value);
}
static inline uint32_t esk_load_u32(const void *at) {
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return be32toh(value);
}
static inline uint64_t esk_load_u64(const void *at) {
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return be64toh(value);
}
static inline void esk_store_u16(void *at, uint16_t value) {
    value = htobe16(value);
    memcpy(at, &value, sizeof(value));
}
static inline void esk_store_u32(void *at, uint32_t value) {
    value = htobe32(value);
    memcpy(at, &value, sizeof(value));
}
static inline void esk_store_u64(void *at, uint64_t value) {
    value = htobe64(value);
    memcpy(at, &value, sizeof(value));
}

struct esk_reader {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};

static inline struct esk_reader esk_reader(struct esk_slice bytes) {
    /* Pointer arithmetic on NULL is undefined, so an empty slice gets another place. */
    const uint8_t *start = bytes.size ? bytes.data : (const uint8_t *)"";
    return (struct esk_reader){start, start, start + bytes.size, false};
}
static inline size_t esk_reader_left(const struct esk_reader *r) {
    return r->failed ? 0 : (size_t)(r->end - r->at);
}
/* The next `size` bytes, or NULL after an overrun. */
static inline const uint8_t *esk_read_span(struct esk_reader *r, size_t size) {
    if (__builtin_expect(r->failed || (size_t)(r->end - r->at) < size, 0)) {
        r->failed = true;
        return NULL;
    }
    const uint8_t *span = r->at;
    r->at += size;
    return span;
}
static inline uint8_t esk_read_u8(struct esk_reader *r) {
    const uint8_t *span = esk_read_span(r, 1);
    return span ? *span : 0;
}
static inline uint16_t esk_read_u16(struct esk_reader *r) {
    const uint8_t *span = esk_read_span(r, 2);
    return span ? esk_load_u16(span) : 0;
}
static inline uint32_t esk_read_u32(struct esk_reader *r) {
    const uint8_t *span = esk_read_span(r, 4);
    return span ? esk_load_u32(span) : 0;
}
static inline uint64_t esk_read_u64(struct esk_reader *r) {
    const uint8_t *span = esk_read_span(r, 8);
    return span ? esk_load_u64(span) : 0;
}
static inline int8_t esk_read_i8(struct esk_reader *r) {
    return (int8_t)esk_read_u8(r);
}
static inline int16_t esk_read_i16(struct esk_reader *r) {
    return (int16_t)esk_read_u16(r);
}
static inline int32_t esk_read_i32(struct esk_reader *r) {
    return (int32_t)esk_read_u32(r);
}
static inline int64_t esk_read_i64(struct esk_reader *r) {
    return (int64_t)esk_read_u64(r);
}
uint64_t esk_read_uvarint(struct esk_reader *r);   /* LEB128, at most 10 bytes */
uint32_t esk_read_uvarint32(struct esk_reader *r); /* LEB128, at most 5 bytes, fails above 2^32-1 */
int64_t esk_read_varint(struct esk_reader *r);     /* zig-zag */
struct esk_slice esk_read_bytes(struct esk_reader *r, uint64_t size); /* empty on failure */

/* Writes into fixed memory. */
struct esk_writer {
    uint8_t *start;
    uint8_t *at;
    uint8_t *end;
    bool failed;
};

struct esk_writer esk_writer(void *memory, size_t size);
static inline size_t esk_writer_size(const struct esk_writer *w) {
    return (size_t)(w->at - w->start);
}
void esk_write_u8(struct esk_writer *w, uint8_t value);
void esk_write_u16(struct esk_writer *w, uint16_t value);
void esk_write_u32(struct esk_writer *w, uint32_t value);
void esk_write_u64(struct esk_writer *w, uint64_t value);
void esk_write_uvarint(struct esk_writer *w, uint64_t value);
void esk_write_varint(struct esk_writer *w, int64_t value);
void esk_write_bytes(struct esk_writer *w, struct esk_slice bytes);
static inline size_t esk_uvarint_size(uint64_t value) {
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    return (bits * 9 + 64) / 64; /* bits / 7, rounded up, without a division; 1 to 64 bits */
}
size_t esk_varint_size(int64_t value);
static inline uint64_t esk_zigzag(int64_t value) {
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}
/* Stores a uvarint at a place with room for its esk_uvarint_size; returns the end. */
static inline uint8_t *esk_store_uvarint(uint8_t *at, uint64_t value) {
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* For a walk from head to head of records with bytes between them, each of which tells where the
 * next one is: the cache would miss them one after the other. The last record reached from `start`
 * to `end`. Sizes are often alike, so the head of the third one behind it is asked for; where
 * nothing is, nothing happens. */
static inline void esk_prefetch_heads(const uint8_t *start, const uint8_t *end) {
    uintptr_t size = (uintptr_t)end - (uintptr_t)start;
    if (size > 128) { /* closer ones are seen coming */
        uintptr_t third = (uintptr_t)end + 3 * size;
        __builtin_prefetch((const void *)third);
        __builtin_prefetch((const void *)(third + 64)); /* shifted, when something is in between */
    }
}

#endif
