/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: allocation that does not return NULL, arenas, growing buffers, shared blocks.
 * Sizes that come from outside are bounded by the caller before they get here. */
#ifndef ESK_BASE_MEMORY_H
#define ESK_BASE_MEMORY_H

#include "base/bytes.h"

#include <stdatomic.h>

/* Like malloc, calloc, realloc, but end the process with a message when there is no memory.
 * size 0 gives a pointer that may be freed. Any thread. */
void *esk_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *esk_alloc_zeroed(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *esk_realloc(void *old, size_t size) __attribute__((returns_nonnull));
/* Gives what was freed back to the system; takes milliseconds on a large heap. A worker, when idle.
 */
void esk_memory_trim(void);
char *esk_text_copy(const char *text); /* owned, free() */
char *esk_text_format(const char *format, ...) __attribute__((format(printf, 1, 2))); /* owned */

/* An arena: memory of one request, freed at once. One owner, no threads. */
struct esk_arena {
    struct esk_arena_chunk *chunks;
    uint8_t *at;
    uint8_t *end;
    size_t bytes;       /* held by its chunks */
    size_t limit_bytes; /* allocations beyond it give NULL; 0: no limit */
};
void esk_arena_init(struct esk_arena *arena, size_t limit_bytes);
void esk_arena_fini(struct esk_arena *arena);
void esk_arena_reset(struct esk_arena *arena); /* keeps the first chunk */
void *esk_arena_alloc(struct esk_arena *arena,
                      size_t size); /* aligned to 16; NULL over the limit */
void *esk_arena_alloc_array(struct esk_arena *arena, size_t count, size_t size);
char *esk_arena_text(struct esk_arena *arena, struct esk_slice bytes); /* copy with a NUL */
struct esk_slice esk_arena_copy(struct esk_arena *arena, struct esk_slice bytes);

/* A growing buffer. _init/_fini; one owner. */
struct esk_buffer {
    uint8_t *data;
    size_t size;
    size_t capacity;
};
void esk_buffer_init(struct esk_buffer *buffer);
void esk_buffer_fini(struct esk_buffer *buffer);
uint8_t *esk_buffer_expand(struct esk_buffer *buffer, size_t more); /* grow's way when it is full */
/* Room for more bytes at data + size, which it returns; the data may move. */
static inline uint8_t *esk_buffer_grow(struct esk_buffer *buffer, size_t more) {
    if (__builtin_expect(buffer->capacity - buffer->size < more || !buffer->data, 0)) {
        return esk_buffer_expand(buffer, more);
    }
    return buffer->data + buffer->size;
}
void esk_buffer_append(struct esk_buffer *buffer, const void *bytes, size_t size);
void esk_buffer_append_text(struct esk_buffer *buffer, const char *text);
void esk_buffer_format(struct esk_buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void esk_buffer_u8(struct esk_buffer *buffer, uint8_t value);
void esk_buffer_u16(struct esk_buffer *buffer, uint16_t value);
void esk_buffer_u32(struct esk_buffer *buffer, uint32_t value);
void esk_buffer_u64(struct esk_buffer *buffer, uint64_t value);
void esk_buffer_uvarint(struct esk_buffer *buffer, uint64_t value);
void esk_buffer_varint(struct esk_buffer *buffer, int64_t value);
static inline struct esk_slice esk_buffer_slice(const struct esk_buffer *buffer) {
    return (struct esk_slice){buffer->data, buffer->size};
}

/* Bytes with a reference count (atomic: references cross threads; the bytes are written by the
 * creator only, before it shares them). */
struct esk_block {
    atomic_uint references;
    uint32_t size; /* bytes in data that are valid; at most capacity */
    uint32_t capacity;
    uint8_t data[];
};
struct esk_block *esk_block_create(uint32_t capacity); /* one reference, size 0 */
/* More room in a block that nobody else refers to yet; it may move. Sizes are bounded by the
 * caller. */
struct esk_block *esk_block_grow(struct esk_block *block, uint32_t capacity)
    __attribute__((returns_nonnull, warn_unused_result));
struct esk_block *esk_block_copy(struct esk_slice bytes); /* one reference, full */
struct esk_block *esk_block_retain(struct esk_block *block);
void esk_block_release(struct esk_block *block); /* NULL does nothing */

#endif
