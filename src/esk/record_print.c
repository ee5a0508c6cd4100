/* SPDX-License-Identifier: Apache-2.0 */
/* Text is printed as it is; JSON is written anew from the parsed answer. */
#include "esk/record_print.h"

#include "wire/json/base64.h"
#include "wire/json/writer.h"

static bool print_part(const struct esk_json_value *record, const char *name, bool is_raw,
                       struct esk_buffer *out) {
    struct esk_json_value part;
    if (!esk_json_find(record, name, &part)) {
        return false;
    }
    if (part.type == ESK_JSON_NULL || (part.type == ESK_JSON_STRING && part.string.size == 0)) {
        return true;
    }
    if (part.type != ESK_JSON_STRING) {
        return false;
    }
    if (!is_raw) {
        esk_buffer_append(out, part.string.data, part.string.size);
        return true;
    }
    uint8_t *room = esk_buffer_grow(out, esk_base64_decoded_max(part.string.size));
    size_t size;
    if (!esk_base64_decode(part.string, room, &size)) {
        return false;
    }
    out->size += size;
    return true;
}

/* Nesting is bounded by the parser's. */
static void copy_value(struct esk_json_writer *writer, const struct esk_json_value *value) {
    struct esk_json_iterator each = esk_json_each(value);
    struct esk_json_value inner;
    struct esk_slice key;
    switch (value->type) {
    case ESK_JSON_BOOL:
        esk_json_write_bool(writer, value->boolean);
        break;
    case ESK_JSON_INT64:
        esk_json_write_int64(writer, value->int64);
        break;
    case ESK_JSON_UINT64:
        esk_json_write_uint64(writer, value->uint64);
        break;
    case ESK_JSON_STRING:
        esk_json_write_string(writer, value->string);
        break;
    case ESK_JSON_ARRAY:
        esk_json_open_array(writer);
        while (esk_json_next_element(&each, &inner)) {
            copy_value(writer, &inner);
        }
        esk_json_close_array(writer);
        break;
    case ESK_JSON_OBJECT:
        esk_json_open_object(writer);
        while (esk_json_next_field(&each, &key, &inner)) {
            esk_json_write_key_bytes(writer, key);
            copy_value(writer, &inner);
        }
        esk_json_close_object(writer);
        break;
    case ESK_JSON_NULL:
    case ESK_JSON_REAL: /* a record has none */
        esk_json_write_null(writer);
        break;
    }
}

bool esk_record_print(const struct esk_json_value *record, enum esk_print_form form,
                      const char *separator, struct esk_buffer *out) {
    if (record->type != ESK_JSON_OBJECT) {
        return false;
    }
    bool is_whole = true;
    if (form == ESK_PRINT_JSON) {
        struct esk_json_writer writer = esk_json_writer(out);
        copy_value(&writer, record);
    } else {
        if (separator) {
            is_whole = print_part(record, "key", form == ESK_PRINT_RAW, out);
            esk_buffer_append_text(out, separator);
        }
        is_whole = is_whole && print_part(record, "value", form == ESK_PRINT_RAW, out);
    }
    esk_buffer_append_text(out, "\n");
    return is_whole;
}
