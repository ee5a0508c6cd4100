/* SPDX-License-Identifier: Apache-2.0 */
/* Which members are at their default, and so are left out of a tagged section. */
#include "wire/kafka/codec.h"

#include <string.h>

static bool struct_is_default(const struct esk_kafka_layout *layout, const uint8_t *body) {
    if (memcmp(body, layout->defaults, layout->struct_bytes) == 0)
        return true; /* the usual case: nothing was ever set */
    for (unsigned i = 0; i < (unsigned)layout->plain_count + layout->tagged_count; i++)
        if (!esk_kafka_is_default(&layout->ops[i], layout, body))
            return false;
    if (!layout->flexible)
        return true;
    const void *unknown;
    memcpy(&unknown, body + layout->tags_offset, sizeof(unknown));
    return unknown == NULL;
}

static bool slice_is_default(const void *member, const void *standard) {
    struct esk_slice a;
    struct esk_slice b;
    memcpy(&a, member, sizeof(a));
    memcpy(&b, standard, sizeof(b));
    return (a.data == NULL) == (b.data == NULL) && esk_slice_equal(a, b);
}

bool esk_kafka_is_default(const struct esk_kafka_op *op, const struct esk_kafka_layout *owner,
                          const void *body) {
    static const uint8_t sizes[] = {
        [ESK_KAFKA_BOOL] = 1,   [ESK_KAFKA_INT8] = 1,    [ESK_KAFKA_INT16] = 2,
        [ESK_KAFKA_UINT16] = 2, [ESK_KAFKA_INT32] = 4,   [ESK_KAFKA_UINT32] = 4,
        [ESK_KAFKA_INT64] = 8,  [ESK_KAFKA_FLOAT64] = 8, [ESK_KAFKA_UUID] = 16,
    };
    const uint8_t *member = (const uint8_t *)body + op->offset;
    const uint8_t *standard = (const uint8_t *)owner->defaults + op->offset;
    if (op->kind < ESK_KAFKA_STRING)
        return memcmp(member, standard, sizes[op->kind]) == 0;
    if (op->kind == ESK_KAFKA_ARRAY || op->kind == ESK_KAFKA_COMPACT_ARRAY) {
        struct esk_kafka_array a;
        struct esk_kafka_array b;
        memcpy(&a, member, sizeof(a));
        memcpy(&b, standard, sizeof(b));
        return a.count == b.count && a.count <= 0;
    }
    if (op->kind != ESK_KAFKA_STRUCT)
        return slice_is_default(member, standard);
    if (!(op->flags & ESK_KAFKA_POINTER))
        return struct_is_default(op->layout, member);
    const void *a;
    const void *b;
    memcpy(&a, member, sizeof(a));
    memcpy(&b, standard, sizeof(b));
    if (a == NULL || b == NULL)
        return a == b;
    return struct_is_default(op->layout, a);
}
