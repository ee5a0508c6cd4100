/* SPDX-License-Identifier: Apache-2.0 */
/* Building batches: each record is sized, then written once, straight into the block. The block
 * doubles when it is full, so a record costs no allocation. */
#include "model/record_batch.h"

#include "base/assert.h"
#include "base/hash.h"
#include "model/limits.h"

#define FIRST_BLOCK_BYTES 256

void esk_batch_builder_begin(struct esk_batch_builder *builder, int64_t timestamp_ms,
                             size_t size_hint) {
    size_hint = size_hint < FIRST_BLOCK_BYTES ? FIRST_BLOCK_BYTES : size_hint;
    size_hint = size_hint > ESK_BATCH_BYTES_MAX ? ESK_BATCH_BYTES_MAX : size_hint;
    *builder = (struct esk_batch_builder){
        .block = esk_block_create((uint32_t)size_hint),
        .timestamp_ms = timestamp_ms,
        .producer_id = -1,
        .producer_epoch = -1,
        .base_sequence = -1,
    };
    builder->block->size = ESK_BATCH_HEADER_BYTES;
}

/* Size of nullable bytes with their length. */
static inline uint64_t sized_bytes_size(struct esk_slice bytes) {
    return bytes.data ? esk_uvarint_size((uint64_t)bytes.size << 1) + (uint64_t)bytes.size : 1;
}

static inline uint8_t *store_sized_bytes(uint8_t *at, struct esk_slice bytes) {
    if (!bytes.data) {
        *at++ = 1; /* -1 in zig-zag */
        return at;
    }
    at = esk_store_uvarint(at, (uint64_t)bytes.size << 1);
    memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

/* Header names can't be null, so an empty one may come with any pointer. */
static inline struct esk_slice name_of(const struct esk_record_header *header) {
    return header->name.data ? header->name : esk_slice("", 0);
}

static void make_room(struct esk_batch_builder *builder, uint64_t needed) {
    uint64_t capacity = (uint64_t)builder->block->capacity * 2;
    capacity = capacity < needed ? needed : capacity;
    capacity = capacity > ESK_BATCH_BYTES_MAX ? ESK_BATCH_BYTES_MAX : capacity;
    builder->block = esk_block_grow(builder->block, (uint32_t)capacity);
}

enum esk_err esk_batch_builder_add(struct esk_batch_builder *builder, struct esk_slice key,
                                   struct esk_slice value, const struct esk_record_header *headers,
                                   int32_t header_count) {
    uint64_t delta = (uint64_t)(uint32_t)builder->record_count << 1;
    uint64_t count = (uint64_t)(uint32_t)header_count << 1;
    /* Attributes and timestamp delta are a byte each, both 0. */
    uint64_t size = 2 + esk_uvarint_size(delta) + sized_bytes_size(key) + sized_bytes_size(value) +
                    esk_uvarint_size(count);
    for (int32_t i = 0; i < header_count; i++) {
        size += sized_bytes_size(name_of(&headers[i])) + sized_bytes_size(headers[i].value);
    }
    uint64_t needed = builder->block->size + esk_uvarint_size(size << 1) + size;
    if (needed > builder->block->capacity) {
        if (needed > ESK_BATCH_BYTES_MAX) {
            return ESK_ERR_TOO_LARGE;
        }
        make_room(builder, needed);
    }
    uint8_t *at = builder->block->data + builder->block->size;
    at = esk_store_uvarint(at, size << 1);
    *at++ = 0;
    *at++ = 0;
    at = esk_store_uvarint(at, delta);
    at = store_sized_bytes(at, key);
    at = store_sized_bytes(at, value);
    at = esk_store_uvarint(at, count);
    for (int32_t i = 0; i < header_count; i++) {
        at = store_sized_bytes(at, name_of(&headers[i]));
        at = store_sized_bytes(at, headers[i].value);
    }
    builder->block->size = (uint32_t)(at - builder->block->data);
    builder->record_count++;
    return ESK_OK;
}

struct esk_block *esk_batch_builder_finish(struct esk_batch_builder *builder) {
    ESK_ASSERT(builder->record_count > 0);
    struct esk_block *block = builder->block;
    uint8_t *at = block->data;
    esk_batch_patch(at, 0, -1);
    esk_store_u32(at + ESK_BATCH_AT_LENGTH, block->size - ESK_BATCH_LENGTH_BYTES);
    at[ESK_BATCH_AT_MAGIC] = ESK_BATCH_MAGIC;
    esk_store_u16(at + ESK_BATCH_AT_ATTRIBUTES, 0);
    esk_store_u32(at + ESK_BATCH_AT_LAST_DELTA, (uint32_t)(builder->record_count - 1));
    esk_store_u64(at + ESK_BATCH_AT_BASE_TIMESTAMP, (uint64_t)builder->timestamp_ms);
    esk_store_u64(at + ESK_BATCH_AT_MAX_TIMESTAMP, (uint64_t)builder->timestamp_ms);
    esk_store_u64(at + ESK_BATCH_AT_PRODUCER_ID, (uint64_t)builder->producer_id);
    esk_store_u16(at + ESK_BATCH_AT_PRODUCER_EPOCH, (uint16_t)builder->producer_epoch);
    esk_store_u32(at + ESK_BATCH_AT_BASE_SEQUENCE, (uint32_t)builder->base_sequence);
    esk_store_u32(at + ESK_BATCH_AT_RECORD_COUNT, (uint32_t)builder->record_count);
    esk_store_u32(at + ESK_BATCH_AT_CRC, esk_crc32c(0, at + ESK_BATCH_AT_ATTRIBUTES,
                                                    block->size - ESK_BATCH_AT_ATTRIBUTES));
    builder->block = NULL;
    return block;
}

void esk_batch_builder_abandon(struct esk_batch_builder *builder) {
    esk_block_release(builder->block);
    builder->block = NULL;
}
