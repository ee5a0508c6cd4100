/* SPDX-License-Identifier: Apache-2.0 */
/* What the fuzzers of schema kinds share. The input is one text, or two with a NUL between them: a
 * newer schema and an older one. */
#ifndef ESK_TESTS_SCHEMA_FUZZ_H
#define ESK_TESTS_SCHEMA_FUZZ_H

#include "fuzz.h"

#include "base/assert.h"
#include "schema/schema.h"

#include <string.h>

/* An accepted text reads itself, and its canonical form, if that is a text of the same kind, has
 * itself as canonical form. */
static inline bool check_one(enum esk_schema_type type, struct esk_slice text, bool is_text) {
    struct esk_buffer canonical;
    struct esk_buffer again;
    struct esk_error error = {0};
    esk_buffer_init(&canonical);
    esk_buffer_init(&again);
    enum esk_err err = esk_schema_canonical(type, text, &canonical, &error);
    ESK_ASSERT(err == ESK_OK || err == ESK_ERR_INVALID || err == ESK_ERR_TOO_LARGE);
    ESK_ASSERT(err == ESK_OK || strncmp(error.text, "schema", 6) == 0);
    if (err == ESK_OK) {
        err = esk_schema_backward(type, text, text, &error);
        ESK_ASSERT(err == ESK_OK ||
                   (err == ESK_ERR_INVALID && strstr(error.text, "too entangled") != NULL));
        err = ESK_OK;
    }
    if (err == ESK_OK && is_text) {
        ESK_ASSERT(esk_schema_canonical(type, esk_buffer_slice(&canonical), &again, &error) ==
                   ESK_OK);
        ESK_ASSERT(esk_slice_equal(esk_buffer_slice(&canonical), esk_buffer_slice(&again)));
    }
    esk_buffer_fini(&canonical);
    esk_buffer_fini(&again);
    return err == ESK_OK;
}

static inline void check_input(enum esk_schema_type type, const uint8_t *data, size_t size,
                               bool is_text) {
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    struct esk_slice newer = esk_slice(data, end != NULL ? (size_t)(end - data) : size);
    bool good = check_one(type, newer, is_text);
    if (end == NULL) {
        return;
    }
    struct esk_slice older = esk_slice(end + 1, size - newer.size - 1);
    good = check_one(type, older, is_text) && good;
    struct esk_error error = {0};
    enum esk_err err = esk_schema_backward(type, newer, older, &error);
    if (good) {
        ESK_ASSERT(err == ESK_OK || err == ESK_ERR_CONFLICT || err == ESK_ERR_INVALID);
        ESK_ASSERT(err != ESK_ERR_CONFLICT ||
                   strncmp(error.text, "backward-incompatible: ", 23) == 0);
    } else {
        ESK_ASSERT(err == ESK_ERR_INVALID || err == ESK_ERR_TOO_LARGE);
    }
}

#endif
