/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4), strict: the standard alphabet, padding required, nothing else, and
 * unused bits zero, so that each text has one decoding and each byte string one text. Pure. */
#ifndef ESK_WIRE_JSON_BASE64_H
#define ESK_WIRE_JSON_BASE64_H

#include "base/bytes.h"

/* Bytes of text for `size` bytes. */
static inline size_t esk_base64_encoded_size(size_t size) {
    return (size + 2) / 3 * 4;
}

/* Writes exactly esk_base64_encoded_size(bytes.size) bytes. */
void esk_base64_encode(struct esk_slice bytes, uint8_t *text);

/* Most bytes that a text of `size` can hold. */
static inline size_t esk_base64_decoded_max(size_t size) {
    return size / 4 * 3;
}

/* Writes at most esk_base64_decoded_max(text.size) bytes and says how many; false: not base64 (what
 * was written then is meaningless). bytes may be the text's own memory. */
bool esk_base64_decode(struct esk_slice text, uint8_t *bytes, size_t *size);

#endif
