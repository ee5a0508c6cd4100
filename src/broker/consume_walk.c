/* SPDX-License-Identifier: Apache-2.0 */
/* Walking batches: those wholly before the wanted offset and control batches are passed over, the
 * limits end the walk, but never before the first record. */
#include "broker/consume_walk.h"

#include <inttypes.h>

#define INFLATED_BYTES_MAX (64u * 1024 * 1024)

void esk_consume_walk_begin(struct esk_consume_walk *walk, const struct esk_consume *consume) {
    uint64_t start = consume->start_offset;
    memset(walk, 0, sizeof *walk);
    walk->consume = consume;
    walk->bytes_left = consume->bytes_max;
    walk->records_left = consume->records_max;
    walk->offset = consume->offset < start ? start : consume->offset;
    walk->next_offset =
        walk->offset < consume->high_watermark ? walk->offset : consume->high_watermark;
    walk->is_first = true;
    esk_buffer_init(&walk->inflated);
}

void esk_consume_walk_end(struct esk_consume_walk *walk) {
    esk_buffer_fini(&walk->inflated);
}

static uint64_t batch_end(const struct esk_batch_header *batch) {
    return (uint64_t)batch->base_offset + (uint64_t)(uint32_t)batch->last_offset_delta + 1;
}

/* Opens the next batch that may hold wanted records; false: there is none. A part holds one or more
 * batches. */
static enum esk_err open_batch(struct esk_consume_walk *walk, bool *opened,
                               struct esk_error *error) {
    const struct esk_consume *consume = walk->consume;
    *opened = false;
    while (walk->part < consume->part_count) {
        const struct esk_consume_part *part = &consume->parts[walk->part];
        if (walk->part_position == part->size) {
            walk->part++;
            walk->part_position = 0;
            continue;
        }
        struct esk_slice bytes = esk_slice(part->block->data + part->position + walk->part_position,
                                           part->size - walk->part_position);
        enum esk_err err = esk_batch_parse(bytes, &walk->batch, error);
        if (err) {
            return err;
        }
        walk->part_position += walk->batch.size_bytes;
        if (batch_end(&walk->batch) <= walk->offset) {
            continue;
        }
        if (walk->batch.attributes & ESK_BATCH_CONTROL) {
            walk->next_offset = batch_end(&walk->batch);
            continue;
        }
        struct esk_slice records;
        bytes.size = walk->batch.size_bytes;
        err = esk_batch_records(bytes, &walk->batch, INFLATED_BYTES_MAX, &walk->inflated, &records,
                                error);
        if (err) {
            return err;
        }
        walk->iterator = esk_record_iterator(records, walk->batch.record_count);
        *opened = true;
        return ESK_OK;
    }
    return ESK_OK;
}

/* The present batch has no more records. */
static enum esk_err pass_batch(struct esk_consume_walk *walk, bool *opened,
                               struct esk_error *error) {
    if (walk->iterator.failed) {
        return esk_fail(error, ESK_ERR_CORRUPT, "malformed records in the batch at %" PRId64,
                        walk->batch.base_offset);
    }
    if (walk->batch.size_bytes && batch_end(&walk->batch) > walk->next_offset) {
        walk->next_offset = batch_end(&walk->batch);
    }
    return open_batch(walk, opened, error);
}

enum esk_err esk_consume_walk_next(struct esk_consume_walk *walk, bool *found,
                                   struct esk_error *error) {
    *found = false;
    if (walk->has_record) {
        walk->next_offset = walk->record_offset + 1;
        walk->has_record = false;
    }
    while (walk->records_left) {
        const uint8_t *start = walk->iterator.at;
        if (!esk_record_next(&walk->iterator, &walk->record)) {
            bool opened;
            enum esk_err err = pass_batch(walk, &opened, error);
            if (err || !opened) {
                return err;
            }
            continue;
        }
        esk_prefetch_heads(start, walk->iterator.at);
        walk->record_offset =
            (uint64_t)walk->batch.base_offset + (uint64_t)(uint32_t)walk->record.offset_delta;
        if (walk->record_offset < walk->offset) {
            continue;
        }
        uint64_t size = esk_record_size(&walk->record);
        if (size > walk->bytes_left) {
            walk->records_left = 0; /* nothing follows, nor a record without a byte */
            if (!walk->is_first) {
                return ESK_OK;
            }
        } else {
            walk->bytes_left -= size;
            walk->records_left--;
        }
        walk->is_first = false;
        walk->has_record = true;
        *found = true;
        return ESK_OK;
    }
    return ESK_OK;
}

bool esk_consume_is_compressed(const struct esk_consume *consume) {
    for (uint32_t i = 0; i < consume->part_count; i++) {
        const struct esk_consume_part *part = &consume->parts[i];
        uint32_t position = 0;
        struct esk_batch_header batch;
        while (position < part->size) {
            struct esk_slice bytes =
                esk_slice(part->block->data + part->position + position, part->size - position);
            if (esk_batch_parse(bytes, &batch, NULL) != ESK_OK) {
                return false; /* the walk will tell */
            }
            if (esk_batch_codec(&batch) != ESK_CODEC_NONE) {
                return true;
            }
            position += batch.size_bytes;
        }
    }
    return false;
}
