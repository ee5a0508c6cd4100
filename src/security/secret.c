/* SPDX-License-Identifier: Apache-2.0 */
#include "security/secret.h"

#include "base/assert.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void esk_secret_format(const uint8_t bits[ESK_SECRET_RANDOM_BYTES], char secret[ESK_SECRET_BYTES]) {
    memcpy(secret, "esk_", 4);
    char *at = secret + 4;
    for (unsigned bit = 0; bit < 8 * ESK_SECRET_RANDOM_BYTES; bit += 6) {
        unsigned byte = bit / 8;
        unsigned next = byte + 1 < ESK_SECRET_RANDOM_BYTES ? bits[byte + 1] : 0;
        unsigned pair = (unsigned)bits[byte] << 8 | next;
        *at++ = digits[pair >> (10 - bit % 8) & 63];
    }
    *at = '\0';
}

void esk_secret_hash(struct esk_slice token, uint8_t hash[ESK_SECRET_HASH_BYTES]) {
    int result = gnutls_hash_fast(GNUTLS_DIG_SHA256, token.data, token.size, hash);
    ESK_ASSERT(result == GNUTLS_E_SUCCESS);
}

static inline uint64_t differing_bits(const uint8_t *a, const uint8_t *b) {
    uint64_t left;
    uint64_t right;
    memcpy(&left, a, 8);
    memcpy(&right, b, 8);
    return left ^ right;
}

bool esk_secret_equal(const uint8_t *a, const uint8_t *b, size_t size) {
    uint64_t different = 0;
    for (size_t i = 0; size < 8 && i < size; i++) {
        different |= (uint64_t)(a[i] ^ b[i]);
    }
    if (size >= 8) {
        for (size_t i = 0; i < size - 8; i += 8) {
            different |= differing_bits(a + i, b + i);
        }
        different |= differing_bits(a + size - 8, b + size - 8); /* may overlap the one before */
    }
    return different == 0;
}

void esk_secret_wipe(void *bytes, size_t size) {
    explicit_bzero(bytes, size);
}
