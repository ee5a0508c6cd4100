/* SPDX-License-Identifier: Apache-2.0 */
/* Both parts of ES01's handshake from a stranger: what is accepted is written to the same bytes,
 * and no beginning of it is taken for something else. */
#include "fuzz.h"

#include "base/assert.h"
#include "base/memory.h"
#include "wire/es01/protocol.h"

#include <stdlib.h>

static void check_hello(struct esk_slice bytes) {
    struct esk_es01_hello hello;
    struct esk_error error;
    size_t size;
    enum esk_err err = esk_es01_hello_parse(bytes, &hello, &size, &error);
    ESK_ASSERT(err == ESK_OK || err == ESK_ERR_AGAIN || err == ESK_ERR_INVALID ||
               err == ESK_ERR_TOO_LARGE);
    if (err != ESK_OK) {
        return;
    }
    uint8_t out[ESK_ES01_HELLO_BYTES_MAX];
    ESK_ASSERT(size <= bytes.size && hello.token.size <= ESK_TOKEN_BYTES_MAX);
    ESK_ASSERT(esk_es01_hello_write(&hello, out) == size);
    ESK_ASSERT(memcmp(out, bytes.data, size) == 0);
    for (size_t i = 0; i < size; i += 1 + size / 64) {
        ESK_ASSERT(esk_es01_hello_parse(esk_slice(bytes.data, i), &hello, &size, &error) ==
                   ESK_ERR_AGAIN);
    }
}

static void check_welcome(struct esk_slice bytes) {
    struct esk_es01_welcome welcome;
    struct esk_error error;
    size_t size;
    if (esk_es01_welcome_parse(bytes, &welcome, &size, &error) == ESK_OK) {
        ESK_ASSERT(size <= bytes.size);
        uint8_t *out = esk_alloc(size);
        ESK_ASSERT(esk_es01_welcome_write(&welcome, out) == size);
        ESK_ASSERT(memcmp(out, bytes.data, size) == 0);
        free(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_hello(esk_slice(data, size));
    check_welcome(esk_slice(data, size));
    ESK_ASSERT(esk_es01_error_code(esk_slice(data, size)) != ESK_OK);
    return 0;
}
