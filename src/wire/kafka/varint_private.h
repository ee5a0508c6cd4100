/* SPDX-License-Identifier: Apache-2.0 */
/* Kafka's uvarint, as its own reader takes it: at most five bytes, bits beyond 32 are dropped. */
#ifndef ESK_WIRE_KAFKA_VARINT_PRIVATE_H
#define ESK_WIRE_KAFKA_VARINT_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

/* Behind the uvarint, or NULL when the bytes end or a sixth would be needed. */
static inline const uint8_t *eski_uvarint_read(const uint8_t *at, const uint8_t *end,
                                               uint32_t *value) {
    if (at < end && *at < 0x80) { /* nearly always */
        *value = *at;
        return at + 1;
    }
    uint32_t result = 0;
    for (unsigned shift = 0; shift < 35 && at < end; shift += 7) {
        uint8_t byte = *at++;
        result |= (uint32_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return at;
        }
    }
    return NULL;
}

static inline size_t eski_uvarint_size(uint32_t value) {
    return value < 0x80         ? 1
           : value < 0x4000     ? 2
           : value < 0x200000   ? 3
           : value < 0x10000000 ? 4
                                : 5;
}

static inline uint8_t *eski_uvarint_write(uint8_t *at, uint32_t value) {
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

#endif
