/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults of Avro fields: JSON values that must be values of the field's type. Bytes and fixed are
 * strings of the characters U+0000 to U+00FF. A default of a union may be of any of its branches,
 * as newer libraries have it. Trying branches could take exponential time, so the steps of one
 * schema are counted. */
#include "schema/avro_private.h"

#define STEPS_MAX 1000000

struct check {
    size_t steps;
};

static bool fits(struct check *check, const struct eski_avro *type,
                 const struct esk_json_value *value);

/* Characters up to U+00FF of a string; *count of them. */
static bool is_latin1(struct esk_slice text, uint64_t *count) {
    *count = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if ((c & 0xc0) == 0x80) {
            continue; /* inside a character, which its first byte has judged */
        }
        if (c > 0xc3) {
            return false;
        }
        (*count)++;
    }
    return true;
}

static bool fits_integer(const struct esk_json_value *value, int64_t low, int64_t high) {
    int64_t number;
    return esk_json_int64(value, &number) && number >= low && number <= high;
}

static bool fits_record(struct check *check, const struct eski_avro *record,
                        const struct esk_json_value *value) {
    for (size_t i = 0; i < record->field_count; i++) {
        const struct eski_avro_field *field = &record->fields[i];
        struct esk_json_value member;
        check->steps += esk_json_count(value);
        if (check->steps > STEPS_MAX) {
            return false;
        }
        if (!eski_json_find(value, field->name, &member)) {
            if (!field->has_default) {
                return false;
            }
        } else if (!fits(check, field->type, &member)) {
            return false;
        }
    }
    return value->type == ESK_JSON_OBJECT;
}

static bool fits_symbol(struct check *check, const struct eski_avro *type,
                        const struct esk_json_value *value) {
    for (size_t i = 0; value->type == ESK_JSON_STRING && i < type->symbols.count; i++) {
        if (++check->steps > STEPS_MAX) {
            return false;
        }
        if (esk_slice_equal(value->string, type->symbols.names[i])) {
            return true;
        }
    }
    return false;
}

static bool fits_elements(struct check *check, const struct eski_avro *type,
                          const struct esk_json_value *value) {
    bool is_map = type->kind == ESKI_AVRO_MAP;
    struct esk_json_iterator iterator = esk_json_each(value);
    struct esk_json_value element;
    struct esk_slice key;
    if (value->type != (is_map ? ESK_JSON_OBJECT : ESK_JSON_ARRAY)) {
        return false;
    }
    while (is_map ? esk_json_next_field(&iterator, &key, &element)
                  : esk_json_next_element(&iterator, &element)) {
        if (!fits(check, type->element, &element)) {
            return false;
        }
    }
    return true;
}

static bool fits(struct check *check, const struct eski_avro *type,
                 const struct esk_json_value *value) {
    uint64_t count;
    if (++check->steps > STEPS_MAX) {
        return false;
    }
    switch (type->kind) {
    case ESKI_AVRO_NULL:
        return value->type == ESK_JSON_NULL;
    case ESKI_AVRO_BOOLEAN:
        return value->type == ESK_JSON_BOOL;
    case ESKI_AVRO_INT:
        return fits_integer(value, INT32_MIN, INT32_MAX);
    case ESKI_AVRO_LONG:
        return fits_integer(value, INT64_MIN, INT64_MAX);
    case ESKI_AVRO_FLOAT:
    case ESKI_AVRO_DOUBLE:
        return value->type == ESK_JSON_REAL || value->type == ESK_JSON_INT64 ||
               value->type == ESK_JSON_UINT64;
    case ESKI_AVRO_STRING:
        return value->type == ESK_JSON_STRING;
    case ESKI_AVRO_BYTES:
        return value->type == ESK_JSON_STRING && is_latin1(value->string, &count);
    case ESKI_AVRO_FIXED:
        return value->type == ESK_JSON_STRING && is_latin1(value->string, &count) &&
               count == type->size_bytes;
    case ESKI_AVRO_ENUM:
        return fits_symbol(check, type, value);
    case ESKI_AVRO_RECORD:
        return fits_record(check, type, value);
    case ESKI_AVRO_ARRAY:
    case ESKI_AVRO_MAP:
        return fits_elements(check, type, value);
    case ESKI_AVRO_UNION:
        for (size_t i = 0; i < type->branch_count; i++) {
            if (fits(check, type->branches[i], value)) {
                return true;
            }
        }
        return false;
    }
    return false;
}

enum esk_err eski_avro_check_defaults(const struct eski_avro_schema *schema,
                                      struct esk_error *error) {
    struct check check = {0};
    for (const struct eski_avro_field *field = schema->defaults; field != NULL;
         field = field->next_default) {
        if (!fits(&check, field->type, &field->default_value)) {
            return esk_fail(error, ESK_ERR_INVALID,
                            check.steps > STEPS_MAX
                                ? "schema: its defaults are too large to check, at field '%.*s'"
                                : "schema: the default of field '%.*s' is not of its type",
                            (int)field->name.size, (const char *)field->name.data);
        }
    }
    return ESK_OK;
}
