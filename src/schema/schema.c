/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds by their names, and which code does what for them. */
#include "schema/schema_private.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
    enum esk_schema_type type;
    const char *name;
    const char *label;
    enum esk_err (*canonical)(struct esk_slice text, struct esk_buffer *canonical,
                              struct esk_error *error);
    enum esk_err (*backward)(struct esk_slice newer, struct esk_slice older,
                             struct esk_error *error);
} kinds[] = {
    {ESK_SCHEMA_JSON, "json_schema", "JSON", eski_json_schema_canonical, eski_json_schema_backward},
    {ESK_SCHEMA_AVRO, "avro", "AVRO", eski_avro_canonical, eski_avro_backward},
    {ESK_SCHEMA_PROTOBUF, "protobuf", "PROTOBUF", eski_protobuf_canonical, eski_protobuf_backward},
};
#define KIND_COUNT (sizeof kinds / sizeof kinds[0])

const char *esk_schema_type_name(enum esk_schema_type type) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (kinds[i].type == type) {
            return kinds[i].name;
        }
    }
    return NULL;
}

const char *esk_schema_type_label(enum esk_schema_type type) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (kinds[i].type == type) {
            return kinds[i].label;
        }
    }
    return NULL;
}

bool esk_schema_type_from_name(struct esk_slice name, enum esk_schema_type *type) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (esk_slice_equal(name, esk_slice_text(kinds[i].name))) {
            *type = kinds[i].type;
            return true;
        }
    }
    return false;
}

bool esk_schema_type_from_label(struct esk_slice label, enum esk_schema_type *type) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (esk_slice_equal(label, esk_slice_text(kinds[i].label))) {
            *type = kinds[i].type;
            return true;
        }
    }
    return false;
}

enum esk_err esk_schema_canonical(enum esk_schema_type type, struct esk_slice text,
                                  struct esk_buffer *canonical, struct esk_error *error) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (kinds[i].type == type) {
            return kinds[i].canonical(text, canonical, error);
        }
    }
    return esk_fail(error, ESK_ERR_INVALID, "unknown kind of schema %d", (int)type);
}

enum esk_err esk_schema_backward(enum esk_schema_type type, struct esk_slice newer,
                                 struct esk_slice older, struct esk_error *error) {
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (kinds[i].type == type) {
            return kinds[i].backward(newer, older, error);
        }
    }
    return esk_fail(error, ESK_ERR_INVALID, "unknown kind of schema %d", (int)type);
}

enum esk_err eski_incompatible(struct esk_error *error, const char *format, ...) {
    char text[ESK_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return esk_fail(error, ESK_ERR_CONFLICT, "backward-incompatible: %s", text);
}
