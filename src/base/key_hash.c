/* SPDX-License-Identifier: Apache-2.0 */
/* The hashes that choose a key's partition. In a file of their own, since the client library has
 * them and must not need isa-l. */
#include "base/hash.h"

uint32_t esk_fnv1a32(const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ at[i]) * 16777619u;
    }
    return hash;
}

uint32_t esk_murmur2(const void *bytes, size_t size) {
    const uint32_t multiplier = 0x5bd1e995u;
    const uint8_t *at = bytes;
    uint32_t hash = 0x9747b28cu ^ (uint32_t)size;
    for (; size >= 4; at += 4, size -= 4) {
        uint32_t word;
        memcpy(&word, at, sizeof(word));
        word = le32toh(word) * multiplier;
        word = (word ^ (word >> 24)) * multiplier;
        hash = (hash * multiplier) ^ word;
    }
    if (size) {
        for (size_t i = size; i > 0; i--) {
            hash ^= (uint32_t)at[i - 1] << (8 * (i - 1));
        }
        hash *= multiplier;
    }
    hash = (hash ^ (hash >> 13)) * multiplier;
    return hash ^ (hash >> 15);
}
