/* SPDX-License-Identifier: Apache-2.0 */
/* JSON texts: loaded with the padding that the parser wants, and written in canonical form. The
 * parser bounds the depth and refuses duplicate keys. */
#include "schema/schema_private.h"
#include "wire/json/writer.h"

#include <stdio.h>
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

/* --- canonical --- */

struct field {
    struct esk_slice key;
    struct esk_json_value value;
};

static int compare_fields(const void *a, const void *b) {
    return esk_slice_compare(((const struct field *)a)->key, ((const struct field *)b)->key);
}

static void write_value(struct esk_json_writer *writer, const struct esk_json_value *value);

static void write_object(struct esk_json_writer *writer, const struct esk_json_value *object) {
    struct esk_json_iterator iterator = esk_json_each(object);
    size_t count = 0;
    size_t capacity = esk_json_count(object) + 1;
    struct field *fields = esk_alloc(capacity * sizeof *fields);
    struct field field;
    while (esk_json_next_field(&iterator, &field.key, &field.value)) {
        if (count == capacity) { /* the count is exact up to 16 million only */
            capacity *= 2;
            fields = esk_realloc(fields, capacity * sizeof *fields);
        }
        fields[count++] = field;
    }
    qsort(fields, count, sizeof *fields, compare_fields);
    esk_json_open_object(writer);
    for (size_t i = 0; i < count; i++) {
        esk_json_write_key_bytes(writer, fields[i].key);
        write_value(writer, &fields[i].value);
    }
    esk_json_close_object(writer);
    free(fields);
}

static void write_real(struct esk_json_writer *writer, double real) {
    const double exact = 9007199254740992.0; /* 2^53: integers up to it are exact */
    if (real >= -exact && real <= exact && real == (double)(int64_t)real) {
        esk_json_write_int64(writer, (int64_t)real);
        return;
    }
    char text[40];
    (void)snprintf(text, sizeof text, "%.17g", real);
    esk_json_write_raw(writer, esk_slice_text(text));
}

static void write_value(struct esk_json_writer *writer, const struct esk_json_value *value) {
    struct esk_json_iterator iterator = esk_json_each(value);
    struct esk_json_value element;
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
    case ESK_JSON_REAL:
        write_real(writer, value->real);
        break;
    case ESK_JSON_STRING:
        esk_json_write_string(writer, value->string);
        break;
    case ESK_JSON_ARRAY:
        esk_json_open_array(writer);
        while (esk_json_next_element(&iterator, &element)) {
            write_value(writer, &element);
        }
        esk_json_close_array(writer);
        break;
    case ESK_JSON_OBJECT:
        write_object(writer, value);
        break;
    }
}

void eski_json_canonical(struct esk_buffer *out, const struct esk_json_value *value) {
    struct esk_json_writer writer = esk_json_writer(out);
    write_value(&writer, value);
}
