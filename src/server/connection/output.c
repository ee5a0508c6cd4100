/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's output: a queue of slices of blocks, or of bytes that the door lends. Small writes
 * are copied into a small block at the tail; large ones hand over a block. Blocks of the two usual
 * sizes come from and go back to the shard's pools, so a request costs no malloc; the pools shrink
 * when they are not needed. */
#include "server/connection/connection_private.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#define PIECES_PER_WRITE 1024 /* what Linux takes at once, IOV_MAX */
#define SLICES_KEPT 64        /* by an empty queue */
/* Then others have their turn: 0.2 ms on loopback, or of encrypting. */
#define BYTES_PER_FLUSH (1280 * 1024)
#define BYTES_PER_FLUSH_TLS (128 * 1024)

/* --- pools --- */

void eski_pools_init(struct eski_shard *shard) {
    shard->small =
        (struct eski_pool){.count_max = ESKI_POOL_SMALL_MAX, .block_bytes = ESKI_BLOCK_BYTES_SMALL};
    shard->large = (struct eski_pool){.count_max = ESKI_POOL_LARGE_MAX,
                                      .block_bytes = ESK_CONNECTION_BLOCK_BYTES};
}

static void pool_shrink(struct eski_pool *pool, uint32_t count) {
    while (count--) {
        esk_block_release(pool->blocks[--pool->count]);
    }
    pool->low = pool->count;
}

void eski_pools_trim(struct eski_shard *shard) {
    pool_shrink(&shard->small, shard->small.low);
    pool_shrink(&shard->large, shard->large.low);
}

void eski_pools_fini(struct eski_shard *shard) {
    pool_shrink(&shard->small, shard->small.count);
    pool_shrink(&shard->large, shard->large.count);
}

static struct esk_block *pool_take(struct eski_pool *pool) {
    if (pool->count == 0) {
        pool->low = 0;
        return esk_block_create(pool->block_bytes);
    }
    struct esk_block *block = pool->blocks[--pool->count];
    if (pool->count < pool->low) {
        pool->low = pool->count;
    }
    block->size = 0;
    return block;
}

static void give_back(struct eski_shard *shard, struct esk_block *block) {
    struct eski_pool *pool = block->capacity == ESKI_BLOCK_BYTES_SMALL       ? &shard->small
                             : block->capacity == ESK_CONNECTION_BLOCK_BYTES ? &shard->large
                                                                             : NULL;
    if (pool && pool->count < pool->count_max &&
        atomic_load_explicit(&block->references, memory_order_acquire) == 1) {
        pool->blocks[pool->count++] = block;
    } else {
        esk_block_release(block);
    }
}

struct esk_block *esk_connection_block_take(struct esk_connection *connection) {
    return pool_take(&connection->shard->large);
}

void esk_connection_block_give(struct esk_connection *connection, struct esk_block **block) {
    if (*block) {
        give_back(connection->shard, *block);
        *block = NULL;
    }
}

/* --- the queue --- */

void eski_output_init(struct esk_connection *connection) {
    connection->slices = connection->slices_inline;
    connection->slice_capacity = ESKI_SLICES_INLINE;
}

static struct eski_slice *slice_at(struct esk_connection *connection, uint32_t index) {
    return &connection->slices[(connection->slice_head + index) & (connection->slice_capacity - 1)];
}

static void grow(struct esk_connection *connection) {
    uint32_t capacity = connection->slice_capacity * 2;
    struct eski_slice *slices = esk_alloc(capacity * sizeof *slices);
    for (uint32_t i = 0; i < connection->slice_count; i++) {
        slices[i] = *slice_at(connection, i);
    }
    if (connection->slices != connection->slices_inline) {
        free(connection->slices);
    }
    connection->slices = slices;
    connection->slice_capacity = capacity;
    connection->slice_head = 0;
}

static void append(struct esk_connection *connection, const uint8_t *data, size_t size,
                   struct esk_block *block) {
    if (connection->slice_count == connection->slice_capacity) {
        grow(connection);
    }
    *slice_at(connection, connection->slice_count++) = (struct eski_slice){data, size, block};
    connection->output_bytes += size;
}

static void drop_first(struct esk_connection *connection) {
    struct esk_block *block = slice_at(connection, 0)->block;
    if (block) {
        give_back(connection->shard, block);
    }
    connection->slice_head = (connection->slice_head + 1) & (connection->slice_capacity - 1);
    connection->slice_count--;
}

/* Of an empty one. */
static void shrink(struct esk_connection *connection) {
    if (connection->slices != connection->slices_inline) {
        free(connection->slices);
        eski_output_init(connection);
        connection->slice_head = 0;
    }
}

void eski_output_drop(struct esk_connection *connection) {
    while (connection->slice_count) {
        drop_first(connection);
    }
    connection->output_bytes = 0;
    shrink(connection);
}

/* The last slice, if bytes may follow it in its block. */
static struct eski_slice *open_tail(struct esk_connection *connection, size_t size) {
    if (connection->slice_count == 0) {
        return NULL;
    }
    struct eski_slice *tail = slice_at(connection, connection->slice_count - 1);
    const struct esk_block *block = tail->block;
    bool fits =
        block && block->capacity == ESKI_BLOCK_BYTES_SMALL && block->capacity - block->size >= size;
    return fits ? tail : NULL;
}

uint8_t *esk_connection_reserve(struct esk_connection *connection, size_t size) {
    ESK_ASSERT(size <= ESK_CONNECTION_RESERVE_BYTES_MAX);
    struct eski_slice *tail = open_tail(connection, size);
    if (!tail) {
        struct esk_block *block = pool_take(&connection->shard->small);
        append(connection, block->data, 0, block);
        tail = slice_at(connection, connection->slice_count - 1);
    }
    return tail->block->data + tail->block->size;
}

void esk_connection_commit(struct esk_connection *connection, size_t size) {
    struct eski_slice *tail = slice_at(connection, connection->slice_count - 1);
    ESK_ASSERT(size <= tail->block->capacity - tail->block->size);
    tail->block->size += (uint32_t)size;
    tail->size += size;
    connection->output_bytes += size;
}

void esk_connection_write(struct esk_connection *connection, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    while (size) {
        size_t piece =
            size < ESK_CONNECTION_RESERVE_BYTES_MAX ? size : ESK_CONNECTION_RESERVE_BYTES_MAX;
        memcpy(esk_connection_reserve(connection, piece), at, piece);
        esk_connection_commit(connection, piece);
        at += piece;
        size -= piece;
    }
}

void esk_connection_write_block(struct esk_connection *connection, struct esk_block **block,
                                uint32_t position, uint32_t size) {
    ESK_ASSERT(position <= (*block)->size && size <= (*block)->size - position);
    append(connection, (*block)->data + position, size, *block);
    *block = NULL;
}

void esk_connection_lend(struct esk_connection *connection, struct esk_slice bytes) {
    append(connection, bytes.data, bytes.size, NULL);
}

size_t esk_connection_output_bytes(const struct esk_connection *connection) {
    return connection->output_bytes;
}

/* --- sending --- */

static void sent(struct esk_connection *connection, size_t size) {
    connection->output_bytes -= size;
    while (connection->slice_count) {
        struct eski_slice *slice = slice_at(connection, 0);
        if (slice->size > size) {
            slice->data += size;
            slice->size -= size;
            return;
        }
        size -= slice->size;
        drop_first(connection);
    }
    if (connection->slice_capacity > SLICES_KEPT) {
        shrink(connection);
    }
}

bool eski_output_flush(struct esk_connection *connection) {
    size_t limit = connection->tls ? BYTES_PER_FLUSH_TLS : BYTES_PER_FLUSH;
    size_t total = 0;
    while (connection->output_bytes && connection->writable && total < limit) {
        struct iovec pieces[PIECES_PER_WRITE];
        int count = 0;
        size_t size = 0;
        size_t most = limit - total;
        for (uint32_t i = 0; i < connection->slice_count && count < PIECES_PER_WRITE; i++) {
            const struct eski_slice *slice = slice_at(connection, i);
            size_t piece = slice->size < most - size ? slice->size : most - size;
            pieces[count++] = (struct iovec){(uint8_t *)(uintptr_t)slice->data, piece};
            size += piece;
            if (size == most) {
                break;
            }
        }
        ssize_t result = eski_socket_write(connection, pieces, count);
        if (result < 0 && errno != EAGAIN) {
            return false;
        }
        connection->writable = result == (ssize_t)size;
        if (result > 0) {
            connection->stall_due_tick = 0; /* counted anew from this progress */
            sent(connection, (size_t)result);
            total += (size_t)result;
        }
    }
    return true;
}
