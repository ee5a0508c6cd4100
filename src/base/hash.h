/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums and hashes. Pure; any thread. */
#ifndef ESK_BASE_HASH_H
#define ESK_BASE_HASH_H

#include "base/bytes.h"

/* CRC-32C (Castagnoli) as Kafka has it: "123456789" gives 0xe3069283. `crc` is the result for the
 * bytes before these, 0 at the start. Inline SSE4.2 below 512 bytes, isa-l above. */
uint32_t esk_crc32c(uint32_t crc, const void *bytes, size_t size);

/* XXH3, 64 bits, seed 0. */
uint64_t esk_hash64(const void *bytes, size_t size);

/* XXH3, 128 bits. */
struct esk_hash128 {
    uint64_t low;
    uint64_t high;
};
struct esk_hash128 esk_hash128(const void *bytes, size_t size, uint64_t seed);

uint32_t esk_fnv1a32(const void *bytes, size_t size);
uint32_t esk_murmur2(const void *bytes, size_t size); /* seed 0x9747b28c, as the Java client */

#endif
