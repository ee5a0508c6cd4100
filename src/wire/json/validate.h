/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where a text stops being JSON, by the same rules as document.h but for duplicate keys. It
 * runs only on texts that were refused, so it is written to be clear, not fast. */
#ifndef ESK_WIRE_JSON_VALIDATE_H
#define ESK_WIRE_JSON_VALIDATE_H

#include "base/bytes.h"

#ifdef __cplusplus
extern "C" {
#endif

struct esk_json_fault {
    size_t position;    /* of the first byte that can't be right, from 0; the size: it ends early */
    const char *reason; /* a constant, such as "expected ':'" */
};

/* true: it is JSON. */
bool esk_json_validate(struct esk_slice text, struct esk_json_fault *fault);

/* The position of the quote that begins the n-th string (key or value, from 0) of a text that is
 * JSON. */
size_t esk_json_string_position(struct esk_slice text, size_t number);

#ifdef __cplusplus
}
#endif

#endif
