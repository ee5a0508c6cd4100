/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to a CRC-32C, each for itself, so that tests compare them. */
#ifndef ESK_BASE_HASH_PRIVATE_H
#define ESK_BASE_HASH_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes without inversion at either end; `state` is the inverted CRC. */
uint32_t eski_crc32c_portable(uint32_t state, const uint8_t *bytes, size_t size);

#endif
