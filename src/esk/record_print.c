/* SPDX-License-Identifier: Apache-2.0 */
/* Text is printed as it is; JSON is written anew from the parsed answer. */
#include "esk/record_print.h"

#include "wire/json/base64.h"
#include "wire/json/copy.h"

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

bool esk_record_print(const struct esk_json_value *record, enum esk_print_form form,
                      const char *separator, struct esk_buffer *out) {
    if (record->type != ESK_JSON_OBJECT) {
        return false;
    }
    bool is_whole = true;
    if (form == ESK_PRINT_JSON) {
        struct esk_json_writer writer = esk_json_writer(out);
        esk_json_copy(&writer, record, ESK_JSON_AS_READ);
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
