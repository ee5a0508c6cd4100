/* SPDX-License-Identifier: Apache-2.0 */
/* JSON texts: loaded with the padding that the parser wants, and written in canonical form. The
 * parser bounds the depth and refuses duplicate keys. */
#include "schema/schema_private.h"
#include "wire/json/copy.h"

#include <stdlib.h>

enum esk_err eski_json_text_init(struct eski_json_text *text, struct esk_slice bytes,
                                 struct esk_error *error) {
    text->document = esk_json_document_create();
    uint8_t *padded = esk_alloc(bytes.size + ESK_JSON_PADDING);
    if (bytes.size > 0) {
        memcpy(padded, bytes.data, bytes.size);
    }
    memset(padded + bytes.size, 0, ESK_JSON_PADDING);
    enum esk_err err =
        esk_json_document_parse(text->document, esk_slice(padded, bytes.size), &text->root, error);
    free(padded);
    if (err) {
        esk_wrap(error, "schema");
    }
    return err;
}

void eski_json_text_fini(struct eski_json_text *text) {
    esk_json_document_destroy(text->document);
}

bool eski_json_find(const struct esk_json_value *object, struct esk_slice key,
                    struct esk_json_value *value) {
    if (object->type != ESK_JSON_OBJECT) {
        return false;
    }
    struct esk_json_iterator iterator = esk_json_each(object);
    struct esk_slice name;
    while (esk_json_next_field(&iterator, &name, value)) {
        if (esk_slice_equal(name, key)) {
            return true;
        }
    }
    return false;
}

void eski_json_canonical(struct esk_buffer *out, const struct esk_json_value *value) {
    struct esk_json_writer writer = esk_json_writer(out);
    esk_json_copy(&writer, value, ESK_JSON_BY_KEY);
}
