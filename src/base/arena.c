/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: chunks in a chain, newest first; memory is handed out from the newest one. A limit makes
 * an allocation give NULL instead of growing, and counts whole chunks. */
#include "base/assert.h"
#include "base/checked.h"
#include "base/memory.h"

#include <stdlib.h>

#define CHUNK_BYTES_FIRST 4096 /* one page holds what a small request needs */
#define CHUNK_BYTES_MAX 65536  /* chunks double up to here; larger ones only for large pieces */
#define ALIGNMENT 16

struct esk_arena_chunk {
    struct esk_arena_chunk *older;
    size_t bytes; /* with this header */
    _Alignas(ALIGNMENT) uint8_t data[];
};

static void use_chunk(struct esk_arena *arena, struct esk_arena_chunk *chunk) {
    arena->at = chunk->data;
    arena->end = (uint8_t *)chunk + chunk->bytes;
}

void esk_arena_init(struct esk_arena *arena, size_t limit_bytes) {
    *arena = (struct esk_arena){NULL, NULL, NULL, 0, limit_bytes};
}

void esk_arena_fini(struct esk_arena *arena) {
    while (arena->chunks) {
        struct esk_arena_chunk *older = arena->chunks->older;
        free(arena->chunks);
        arena->chunks = older;
    }
    esk_arena_init(arena, arena->limit_bytes);
}

void esk_arena_reset(struct esk_arena *arena) {
    if (!arena->chunks) {
        return;
    }
    while (arena->chunks->older) {
        struct esk_arena_chunk *older = arena->chunks->older;
        free(arena->chunks);
        arena->chunks = older;
    }
    if (arena->chunks->bytes > CHUNK_BYTES_MAX) { /* a rare large first piece is not kept */
        esk_arena_fini(arena);
        return;
    }
    arena->bytes = arena->chunks->bytes;
    use_chunk(arena, arena->chunks);
}

/* A new newest chunk with room for `size`; false over the limit. */
static bool add_chunk(struct esk_arena *arena, size_t size) {
    size_t needed;
    if (ESK_ADD_OVERFLOWS(size, sizeof(struct esk_arena_chunk), &needed)) {
        return false;
    }
    size_t bytes = arena->chunks ? arena->chunks->bytes * 2 : CHUNK_BYTES_FIRST;
    bytes = bytes > CHUNK_BYTES_MAX ? CHUNK_BYTES_MAX : bytes;
    bytes = bytes < needed ? needed : bytes;
    if (arena->limit_bytes) {
        size_t left = arena->limit_bytes > arena->bytes ? arena->limit_bytes - arena->bytes : 0;
        if (needed > left) {
            return false;
        }
        bytes = bytes > left ? left : bytes;
    }
    struct esk_arena_chunk *chunk = esk_alloc(bytes);
    chunk->older = arena->chunks;
    chunk->bytes = bytes;
    arena->chunks = chunk;
    arena->bytes += bytes;
    use_chunk(arena, chunk);
    return true;
}

void *esk_arena_alloc(struct esk_arena *arena, size_t size) {
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    size_t rounded = ESK_ALIGN_UP(size ? size : 1, (size_t)ALIGNMENT);
    if ((size_t)(arena->end - arena->at) < rounded && !add_chunk(arena, rounded)) {
        return NULL;
    }
    void *memory = arena->at;
    arena->at += rounded;
    return memory;
}

void *esk_arena_alloc_array(struct esk_arena *arena, size_t count, size_t size) {
    size_t bytes;
    return ESK_MULTIPLY_OVERFLOWS(count, size, &bytes) ? NULL : esk_arena_alloc(arena, bytes);
}

char *esk_arena_text(struct esk_arena *arena, struct esk_slice bytes) {
    size_t size;
    char *text =
        ESK_ADD_OVERFLOWS(bytes.size, (size_t)1, &size) ? NULL : esk_arena_alloc(arena, size);
    if (!text) {
        return NULL;
    }
    if (bytes.size) {
        memcpy(text, bytes.data, bytes.size);
    }
    text[bytes.size] = '\0';
    return text;
}

struct esk_slice esk_arena_copy(struct esk_arena *arena, struct esk_slice bytes) {
    uint8_t *copy = esk_arena_alloc(arena, bytes.size);
    if (!copy) {
        return (struct esk_slice){NULL, 0};
    }
    if (bytes.size) {
        memcpy(copy, bytes.data, bytes.size);
    }
    return esk_slice(copy, bytes.size);
}
