/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as Kafka's strings have to be; others are read with replacement characters. */
#ifndef ESK_WIRE_KAFKA_UTF8_H
#define ESK_WIRE_KAFKA_UTF8_H

#include "base/bytes.h"

/* Length of the well-formed sequence at `at` (1 to 4); 0: malformed, then *skip gets the bytes that
 * one replacement character stands for. at < end. */
static inline unsigned esk_utf8_length(const uint8_t *at, const uint8_t *end, unsigned *skip) {
    *skip = 1;
    if (at[0] < 0x80)
        return 1;
    unsigned length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 0;
    uint8_t low = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
    for (unsigned i = 1; i < length; i++) {
        if (at + i == end || at[i] < low || at[i] > high) {
            *skip = i;
            return 0;
        }
        low = 0x80;
        high = 0xbf;
    }
    return length;
}

#endif
