/* SPDX-License-Identifier: Apache-2.0 */
/* A value is walked in depth; to sort an object, its fields are gathered first. */
#include "wire/json/copy.h"

#include <stdio.h>
#include <stdlib.h>

struct field {
    struct esk_slice key;
    struct esk_json_value value;
};

static int compare_fields(const void *a, const void *b) {
    return esk_slice_compare(((const struct field *)a)->key, ((const struct field *)b)->key);
}

static void write_field(struct esk_json_writer *writer, const struct field *field,
                        enum esk_json_order order) {
    esk_json_write_key_bytes(writer, field->key);
    esk_json_copy(writer, &field->value, order);
}

static void write_sorted(struct esk_json_writer *writer, const struct esk_json_value *object) {
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
    for (size_t i = 0; i < count; i++) {
        write_field(writer, &fields[i], ESK_JSON_BY_KEY);
    }
    free(fields);
}

static void write_object(struct esk_json_writer *writer, const struct esk_json_value *object,
                         enum esk_json_order order) {
    struct esk_json_iterator iterator = esk_json_each(object);
    struct field field;
    esk_json_open_object(writer);
    if (order == ESK_JSON_BY_KEY) {
        write_sorted(writer, object);
    } else {
        while (esk_json_next_field(&iterator, &field.key, &field.value)) {
            write_field(writer, &field, order);
        }
    }
    esk_json_close_object(writer);
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

void esk_json_copy(struct esk_json_writer *writer, const struct esk_json_value *value,
                   enum esk_json_order order) {
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
            esk_json_copy(writer, &element, order);
        }
        esk_json_close_array(writer);
        break;
    case ESK_JSON_OBJECT:
        write_object(writer, value, order);
        break;
    }
}
