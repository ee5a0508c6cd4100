/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets of keys: "esk_" and 256 random bits. Only their hash is kept; bits that nobody can guess
 * need no salt and no slow hash. Any thread. */
#ifndef ESK_SECURITY_SECRET_H
#define ESK_SECURITY_SECRET_H

#include "base/bytes.h"

#define ESK_SECRET_RANDOM_BYTES 32
#define ESK_SECRET_BYTES 48 /* "esk_", 43 digits of base64url, NUL */
#define ESK_SECRET_HASH_BYTES 32
/* Longer ones are no key; the ES01 handshake has the same bound. */
#define ESK_TOKEN_BYTES_MAX 1024

/* The text of these bits. */
void esk_secret_format(const uint8_t bits[ESK_SECRET_RANDOM_BYTES], char secret[ESK_SECRET_BYTES]);
/* SHA-256. */
void esk_secret_hash(struct esk_slice token, uint8_t hash[ESK_SECRET_HASH_BYTES]);
/* In a time that does not tell where they differ. */
bool esk_secret_equal(const uint8_t *a, const uint8_t *b, size_t size);
/* Zeroes that no optimiser leaves out. */
void esk_secret_wipe(void *bytes, size_t size);

#endif
