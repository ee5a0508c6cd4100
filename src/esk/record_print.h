/* SPDX-License-Identifier: Apache-2.0 */
/* One record of a consume answer as output. Pure. */
#ifndef ESK_ESK_RECORD_PRINT_H
#define ESK_ESK_RECORD_PRINT_H

#include "base/memory.h"
#include "wire/json/document.h"

enum esk_print_form {
    ESK_PRINT_TEXT,   /* key and value as the answer has them */
    ESK_PRINT_BASE64, /* the same: the answer has base64 */
    ESK_PRINT_RAW,    /* the bytes that the answer has in base64 */
    ESK_PRINT_JSON,   /* the record as an object */
};

/* Appends the record and a line end. separator NULL: without its key. A null is printed as nothing.
 * false: it is no record. */
bool esk_record_print(const struct esk_json_value *record, enum esk_print_form form,
                      const char *separator, struct esk_buffer *out);

#endif
