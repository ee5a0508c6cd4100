/* SPDX-License-Identifier: Apache-2.0 */
#include "atlas/smallest.h"
#include "base/hash.h"
#include "model/record_batch.h"

#include <string.h>

static void put_struct(const struct esk_kafka_layout *layout, struct esk_buffer *output);

static void put_zeros(struct esk_buffer *output, size_t count) {
    memset(esk_buffer_grow(output, count), 0, count);
    output->size += count;
}

static void put_batch(struct esk_buffer *output) {
    size_t start = output->size;
    put_zeros(output, ESK_BATCH_HEADER_BYTES);
    uint8_t *batch = output->data + start;
    esk_store_u32(batch + ESK_BATCH_AT_LENGTH, ESK_BATCH_HEADER_BYTES - ESK_BATCH_LENGTH_BYTES);
    batch[ESK_BATCH_AT_MAGIC] = ESK_BATCH_MAGIC;
    esk_store_u32(batch + ESK_BATCH_AT_CRC,
                  esk_crc32c(0, batch + ESK_BATCH_AT_ATTRIBUTES,
                             ESK_BATCH_HEADER_BYTES - ESK_BATCH_AT_ATTRIBUTES));
}

static void put_value(unsigned kind, const struct esk_kafka_op *op, struct esk_buffer *output) {
    static const uint8_t zeros[] = {
        [ESK_KAFKA_BOOL] = 1,   [ESK_KAFKA_INT8] = 1,    [ESK_KAFKA_INT16] = 2,
        [ESK_KAFKA_UINT16] = 2, [ESK_KAFKA_INT32] = 4,   [ESK_KAFKA_UINT32] = 4,
        [ESK_KAFKA_INT64] = 8,  [ESK_KAFKA_FLOAT64] = 8, [ESK_KAFKA_UUID] = 16,
        [ESK_KAFKA_STRING] = 2, [ESK_KAFKA_BYTES] = 4,
    };
    switch (kind) {
    case ESK_KAFKA_COMPACT_STRING:
    case ESK_KAFKA_COMPACT_BYTES:
        esk_buffer_uvarint(output, 1);
        break;
    case ESK_KAFKA_RECORDS:
        esk_buffer_u32(output, ESK_BATCH_HEADER_BYTES);
        put_batch(output);
        break;
    case ESK_KAFKA_COMPACT_RECORDS:
        esk_buffer_uvarint(output, ESK_BATCH_HEADER_BYTES + 1);
        put_batch(output);
        break;
    case ESK_KAFKA_ARRAY:
        esk_buffer_u32(output, 1);
        put_value(op->element, op, output);
        break;
    case ESK_KAFKA_COMPACT_ARRAY:
        esk_buffer_uvarint(output, 2);
        put_value(op->element, op, output);
        break;
    case ESK_KAFKA_STRUCT:
        if (op->kind == ESK_KAFKA_STRUCT && (op->flags & ESK_KAFKA_NULLABLE))
            esk_buffer_u8(output, 1);
        put_struct(op->layout, output);
        break;
    default:
        put_zeros(output, zeros[kind]);
        break;
    }
}

static void put_struct(const struct esk_kafka_layout *layout, struct esk_buffer *output) {
    for (unsigned i = 0; i < layout->plain_count; i++)
        put_value(layout->ops[i].kind, &layout->ops[i], output);
    if (layout->flexible)
        esk_buffer_u8(output, 0);
}

void esk_atlas_smallest(const struct esk_kafka_message *message, int16_t version,
                        struct esk_buffer *output) {
    size_t start = output->size;
    bool framed = message->type <= ESK_KAFKA_RESPONSE;
    if (framed) {
        esk_buffer_u32(output, 0);
        put_struct(esk_kafka_header_layout(message, version, NULL), output);
        if (message->type == ESK_KAFKA_REQUEST) {
            esk_store_u16(output->data + start + 4, (uint16_t)message->api_key);
            esk_store_u16(output->data + start + 6, (uint16_t)version);
        }
    } else if (message->type == ESK_KAFKA_COORDINATOR_KEY) {
        esk_buffer_u16(output, (uint16_t)message->api_key);
    } else if (message->type == ESK_KAFKA_COORDINATOR_VALUE) {
        esk_buffer_u16(output, (uint16_t)version);
    }
    put_struct(esk_kafka_layout_of(message, version), output);
    if (framed)
        esk_store_u32(output->data + start, (uint32_t)(output->size - start - 4));
}
