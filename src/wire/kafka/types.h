/* SPDX-License-Identifier: Apache-2.0 */
/* The value types that generated message structs (wire/kafka/messages.h) are made of. Strings,
 * bytes and records are slices that borrow; data NULL is null, which is not the same as empty. */
#ifndef ESK_WIRE_KAFKA_TYPES_H
#define ESK_WIRE_KAFKA_TYPES_H

#include "base/bytes.h"

struct esk_kafka_uuid {
    uint8_t bytes[16];
};

/* A tagged field that the definitions do not know, kept so that it can be passed on. */
struct esk_kafka_unknown_tag {
    const struct esk_kafka_unknown_tag *next; /* ascending tags, NULL at the end */
    uint32_t tag;
    struct esk_slice data; /* never null */
};

/* How every array member of a message struct lies in memory. */
struct esk_kafka_array {
    const void *items;
    int32_t count; /* -1: null */
};

#endif
