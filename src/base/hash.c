/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums and hashes. CRC-32C takes isa-l for long runs (49 GB/s against 8.7 GB/s at 64 KiB) and
 * one instruction per word for short ones (5.8 against 3.4 GB/s at 116 B; docs/architecture.md). */
#include "base/hash.h"

#include "base/hash_private.h"

#include <isa-l/crc.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#ifdef __SSE4_2__
#include <nmmintrin.h>
#endif

#define LONG_RUN_BYTES 512        /* from here on isa-l is the faster one */
#define ISAL_BYTES_MAX (1u << 30) /* its length is an int */

/* Four bits at a time of the reflected polynomial 0x82f63b78. */
uint32_t eski_crc32c_portable(uint32_t state, const uint8_t *bytes, size_t size) {
    static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
                                       0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
                                       0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                       0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    for (size_t i = 0; i < size; i++) {
        state ^= bytes[i];
        state = (state >> 4) ^ table[state & 15];
        state = (state >> 4) ^ table[state & 15];
    }
    return state;
}

static uint32_t short_run(uint32_t state, const uint8_t *bytes, size_t size) {
#ifdef __SSE4_2__
    uint64_t wide = state;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, bytes, sizeof(word));
        wide = _mm_crc32_u64(wide, word);
    }
    state = (uint32_t)wide;
    if (size & 4) {
        uint32_t word;
        memcpy(&word, bytes, sizeof(word));
        state = _mm_crc32_u32(state, word);
        bytes += 4;
    }
    for (size &= 3; size; bytes++, size--) {
        state = _mm_crc32_u8(state, *bytes);
    }
    return state;
#else
    return eski_crc32c_portable(state, bytes, size);
#endif
}

uint32_t esk_crc32c(uint32_t crc, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    uint32_t state = ~crc;
    while (size >= LONG_RUN_BYTES) {
        size_t run = size < ISAL_BYTES_MAX ? size : ISAL_BYTES_MAX;
        /* Its declaration lacks the const; it only reads. */
        state = crc32_iscsi((unsigned char *)(uintptr_t)at, (int)run, state);
        at += run;
        size -= run;
    }
    return ~short_run(state, at, size);
}

uint64_t esk_hash64(const void *bytes, size_t size) {
    return XXH3_64bits(bytes, size);
}

struct esk_hash128 esk_hash128(const void *bytes, size_t size, uint64_t seed) {
    XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, size, seed);
    return (struct esk_hash128){hash.low64, hash.high64};
}
