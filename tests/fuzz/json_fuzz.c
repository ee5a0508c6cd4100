/* SPDX-License-Identifier: Apache-2.0 */
/* A text from a stranger. The parser and the validator must agree on it, an error must name a byte
 * inside it, and what was parsed must come back the same when it is written and parsed again. */
#include "fuzz.h"

#include "base/assert.h"
#include "wire/json/base64.h"
#include "wire/json/copy.h"
#include "wire/json/validate.h"

#include <stdlib.h>

static void write_padded(struct esk_buffer *buffer, const struct esk_json_value *root) {
    struct esk_json_writer writer = esk_json_writer(buffer);
    esk_json_copy(&writer, root, ESK_JSON_AS_READ);
    memset(esk_buffer_grow(buffer, ESK_JSON_PADDING), '"', ESK_JSON_PADDING);
}

static void check_accepted(struct esk_json_document *document, struct esk_json_value root) {
    struct esk_buffer once;
    struct esk_buffer twice;
    struct esk_error error;
    esk_buffer_init(&once);
    esk_buffer_init(&twice);
    write_padded(&once, &root);
    ESK_ASSERT(esk_json_document_parse(document, esk_buffer_slice(&once), &root, &error) == ESK_OK);
    write_padded(&twice, &root);
    ESK_ASSERT(esk_slice_equal(esk_buffer_slice(&once), esk_buffer_slice(&twice)));
    esk_buffer_fini(&once);
    esk_buffer_fini(&twice);
}

static void check_base64(struct esk_slice text) {
    size_t size;
    uint8_t *bytes = esk_alloc(esk_base64_decoded_max(text.size));
    if (esk_base64_decode(text, bytes, &size)) {
        uint8_t *again = esk_alloc(esk_base64_encoded_size(size));
        esk_base64_encode(esk_slice(bytes, size), again);
        ESK_ASSERT(esk_slice_equal(esk_slice(again, esk_base64_encoded_size(size)), text));
        free(again);
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct esk_json_document *document;
    document = document ? document : esk_json_document_create();
    uint8_t *text = esk_alloc(size + ESK_JSON_PADDING);
    memcpy(text, data, size);
    memset(text + size, '1', ESK_JSON_PADDING);
    struct esk_json_value root;
    struct esk_json_fault fault;
    struct esk_error error;
    enum esk_err err = esk_json_document_parse(document, esk_slice(text, size), &root, &error);
    bool valid = esk_json_validate(esk_slice(data, size), &fault);
    ESK_ASSERT(!valid || err == ESK_OK || strstr(error.text, "duplicate key"));
    ESK_ASSERT(valid || err == ESK_ERR_INVALID);
    ESK_ASSERT(valid || fault.position <= size);
    ESK_ASSERT(err == ESK_OK || strstr(error.text, "invalid JSON at byte "));
    free(text);
    if (err == ESK_OK) {
        check_accepted(document, root);
    }
    check_base64(esk_slice(data, size));
    return 0;
}
