/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation, buffers and shared blocks. Running out of memory ends the process: budgets keep us
 * far from it, and no caller could do better than be restarted. */
#include "base/memory.h"

#include "base/assert.h"
#include "base/checked.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_BUFFER_BYTES 64 /* smallest allocation of a buffer */

static _Noreturn void out_of_memory(size_t size) {
    fprintf(stderr, "esker: out of memory: cannot allocate %zu bytes\n", size);
    fflush(stderr);
    abort();
}

void *esk_alloc(size_t size) {
    void *memory = malloc(size ? size : 1);
    if (!memory) {
        out_of_memory(size);
    }
    return memory;
}

void *esk_alloc_zeroed(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory) {
        out_of_memory(size);
    }
    return memory;
}

void *esk_realloc(void *old, size_t size) {
    void *memory = realloc(old, size ? size : 1);
    if (!memory) {
        out_of_memory(size);
    }
    return memory;
}

void esk_memory_trim(void) {
    malloc_trim(0);
}

char *esk_text_copy(const char *text) {
    size_t size = strlen(text) + 1;
    return memcpy(esk_alloc(size), text, size);
}

char *esk_text_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        out_of_memory(0);
    }
    return text;
}

void esk_buffer_init(struct esk_buffer *buffer) {
    *buffer = (struct esk_buffer){NULL, 0, 0};
}

void esk_buffer_fini(struct esk_buffer *buffer) {
    free(buffer->data);
    esk_buffer_init(buffer);
}

uint8_t *esk_buffer_expand(struct esk_buffer *buffer, size_t more) {
    size_t needed;
    bool overflows = ESK_ADD_OVERFLOWS(buffer->size, more, &needed);
    ESK_ASSERT(!overflows && needed <= SIZE_MAX / 2);
    size_t capacity = buffer->capacity * 2;
    capacity = capacity < FIRST_BUFFER_BYTES ? FIRST_BUFFER_BYTES : capacity;
    buffer->capacity = capacity < needed ? needed : capacity;
    buffer->data = esk_realloc(buffer->data, buffer->capacity);
    return buffer->data + buffer->size;
}

void esk_buffer_append(struct esk_buffer *buffer, const void *bytes, size_t size) {
    if (size) {
        memcpy(esk_buffer_grow(buffer, size), bytes, size);
        buffer->size += size;
    }
}

void esk_buffer_append_text(struct esk_buffer *buffer, const char *text) {
    esk_buffer_append(buffer, text, strlen(text));
}

void esk_buffer_format(struct esk_buffer *buffer, const char *format, ...) {
    va_list arguments;
    va_list again;
    va_start(arguments, format);
    va_copy(again, arguments);
    uint8_t *room = esk_buffer_grow(buffer, FIRST_BUFFER_BYTES);
    size_t left = buffer->capacity - buffer->size;
    int length = vsnprintf((char *)room, left, format, arguments);
    va_end(arguments);
    ESK_ASSERT(length >= 0);
    if ((size_t)length >= left) {
        room = esk_buffer_grow(buffer, (size_t)length + 1);
        vsnprintf((char *)room, (size_t)length + 1, format, again);
    }
    va_end(again);
    buffer->size += (size_t)length;
}

void esk_buffer_u8(struct esk_buffer *buffer, uint8_t value) {
    *esk_buffer_grow(buffer, 1) = value;
    buffer->size += 1;
}

void esk_buffer_u16(struct esk_buffer *buffer, uint16_t value) {
    esk_store_u16(esk_buffer_grow(buffer, 2), value);
    buffer->size += 2;
}

void esk_buffer_u32(struct esk_buffer *buffer, uint32_t value) {
    esk_store_u32(esk_buffer_grow(buffer, 4), value);
    buffer->size += 4;
}

void esk_buffer_u64(struct esk_buffer *buffer, uint64_t value) {
    esk_store_u64(esk_buffer_grow(buffer, 8), value);
    buffer->size += 8;
}

void esk_buffer_uvarint(struct esk_buffer *buffer, uint64_t value) {
    uint8_t *start = esk_buffer_grow(buffer, 10);
    buffer->size += (size_t)(esk_store_uvarint(start, value) - start);
}

void esk_buffer_varint(struct esk_buffer *buffer, int64_t value) {
    esk_buffer_uvarint(buffer, esk_zigzag(value));
}

struct esk_block *esk_block_create(uint32_t capacity) {
    struct esk_block *block = esk_alloc(sizeof(*block) + capacity);
    atomic_init(&block->references, 1);
    block->size = 0;
    block->capacity = capacity;
    return block;
}

struct esk_block *esk_block_grow(struct esk_block *block, uint32_t capacity) {
    ESK_ASSERT(atomic_load_explicit(&block->references, memory_order_relaxed) == 1);
    ESK_ASSERT(capacity >= block->size);
    block = esk_realloc(block, sizeof(*block) + capacity);
    block->capacity = capacity;
    return block;
}

struct esk_block *esk_block_copy(struct esk_slice bytes) {
    struct esk_block *block = esk_block_create((uint32_t)bytes.size);
    if (bytes.size > 0) {
        memcpy(block->data, bytes.data, bytes.size);
    }
    block->size = (uint32_t)bytes.size;
    return block;
}

struct esk_block *esk_block_retain(struct esk_block *block) {
    unsigned before = atomic_fetch_add_explicit(&block->references, 1, memory_order_relaxed);
    ESK_ASSERT(before > 0 && before < UINT32_MAX);
    return block;
}

void esk_block_release(struct esk_block *block) {
    if (!block) {
        return;
    }
    unsigned before = atomic_fetch_sub_explicit(&block->references, 1, memory_order_acq_rel);
    ESK_ASSERT(before > 0);
    if (before == 1) {
        free(block);
    }
}
