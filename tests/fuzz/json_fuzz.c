/* SPDX-License-Identifier: Apache-2.0 */
/* A text from a stranger. The parser and the validator must agree on it, an error must name a byte
 * inside it, and what was parsed must come back the same when it is written and parsed again. */
#include "fuzz.h"

#include "base/assert.h"
#include "wire/json/base64.h"
#include "wire/json/document.h"
#include "wire/json/validate.h"
#include "wire/json/writer.h"

#include <stdio.h>
#include <stdlib.h>

static void write(struct esk_json_writer *writer, const struct esk_json_value *value) {
    struct esk_json_iterator iterator = esk_json_each(value);
    struct esk_json_value child;
    struct esk_slice key;
    char real[40];
    switch (value->type) {
    case ESK_JSON_NULL:
        esk_json_write_null(writer);
        break;
    case ESK_JSON_BOOL:
        esk_json_write_bool(writer, value->boolean);
        break;
    case ESK_JSON_INT64:
        esk_json_write_int64(writer, value->int64);
        break;
    case ESK_JSON_UINT64:
        esk_json_write_uint64(writer, value->uint64);
        break;
    case ESK_JSON_REAL: /* the exponent keeps it a real */
        snprintf(real, sizeof(real), "%.17e", value->real);
        esk_json_write_raw(writer, esk_slice_text(real));
        break;
    case ESK_JSON_STRING:
        esk_json_write_string(writer, value->string);
        break;
    case ESK_JSON_ARRAY:
        esk_json_open_array(writer);
        while (esk_json_next_element(&iterator, &child)) {
            write(writer, &child);
        }
        esk_json_close_array(writer);
        break;
    case ESK_JSON_OBJECT:
        esk_json_open_object(writer);
        while (esk_json_next_field(&iterator, &key, &child)) {
            esk_json_write_key_bytes(writer, key);
            write(writer, &child);
        }
        esk_json_close_object(writer);
    }
}

static void write_padded(struct esk_buffer *buffer, const struct esk_json_value *root) {
    struct esk_json_writer writer = esk_json_writer(buffer);
    write(&writer, root);
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
