/* SPDX-License-Identifier: Apache-2.0 */
/* A parsed value written again, without spaces; whole numbers that were written with a fraction or
 * an exponent lose it. Pure; its depth is bounded by the parser's. */
#ifndef ESK_WIRE_JSON_COPY_H
#define ESK_WIRE_JSON_COPY_H

#include "wire/json/document.h"
#include "wire/json/writer.h"

enum esk_json_order {
    ESK_JSON_AS_READ,
    ESK_JSON_BY_KEY, /* fields sorted by the bytes of their keys: equal values give equal text */
};

void esk_json_copy(struct esk_json_writer *writer, const struct esk_json_value *value,
                   enum esk_json_order order);

#endif
