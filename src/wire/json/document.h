/* SPDX-License-Identifier: Apache-2.0 */
/* JSON in: a strict parser (RFC 8259) behind a small header. Besides what the grammar refuses,
 * these are refused: duplicate keys, nesting over ESK_JSON_DEPTH_MAX, integers beyond int64 and
 * uint64, numbers beyond a double, bad UTF-8, lone surrogates, a byte order mark, bytes behind the
 * document.
 *
 * Life: a document is created once and parses many texts, one after the other; values and strings
 * belong to it until the next parse or its end; the text itself is no longer needed after parsing.
 * One owner, no threads. Documents over ESK_JSON_LOOP_BYTES_MAX belong on a helper. */
#ifndef ESK_WIRE_JSON_DOCUMENT_H
#define ESK_WIRE_JSON_DOCUMENT_H

#include "base/bytes.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ESK_JSON_PADDING                                                                           \
    64 /* bytes behind a text that must be readable; their values don't matter */

enum esk_json_type {
    ESK_JSON_NULL,
    ESK_JSON_BOOL,
    ESK_JSON_INT64,  /* an integer without fraction and exponent, exact */
    ESK_JSON_UINT64, /* one above 2^63-1, exact */
    ESK_JSON_REAL,   /* written with a fraction or exponent */
    ESK_JSON_STRING,
    ESK_JSON_ARRAY,
    ESK_JSON_OBJECT,
};

struct esk_json_value {
    enum esk_json_type type;
    union {
        bool boolean;
        int64_t int64;
        uint64_t uint64;
        double real;
        struct esk_slice string; /* decoded; data is never NULL */
        uintptr_t container[2];  /* an array or object, opaque */
    };
};

struct esk_json_document;
struct esk_json_document *esk_json_document_create(void);
void esk_json_document_destroy(struct esk_json_document *document); /* NULL does nothing */

/* Parses `text`, behind which ESK_JSON_PADDING bytes can be read. ESK_ERR_INVALID: the text is
 * refused; the error reads "invalid JSON at byte 17: expected ':'", bytes counted from 0. Texts up
 * to 4 GiB. error may be NULL. */
enum esk_err esk_json_document_parse(struct esk_json_document *document, struct esk_slice text,
                                     struct esk_json_value *root, struct esk_error *error);

/* Memory that it holds, about 14 times its largest text since the last trim. */
size_t esk_json_document_bytes(const struct esk_json_document *document);
/* Gives its memory back if that is more than keep_bytes; values become invalid then. */
void esk_json_document_trim(struct esk_json_document *document, size_t keep_bytes);

/* What is left to visit of an array or object. */
struct esk_json_iterator {
    uintptr_t at[2];
    uintptr_t end[2];
};

/* An iterator over an array's elements or an object's fields, in the order of the text; over
 * nothing for any other value. */
struct esk_json_iterator esk_json_each(const struct esk_json_value *value);
/* false at the end. Only for arrays. */
bool esk_json_next_element(struct esk_json_iterator *iterator, struct esk_json_value *value);
/* false at the end. Only for objects. */
bool esk_json_next_field(struct esk_json_iterator *iterator, struct esk_slice *key,
                         struct esk_json_value *value);
/* Elements or fields; exact up to 16,777,214, at least that many above; 0 for any other value. */
size_t esk_json_count(const struct esk_json_value *value);
/* The field of an object; false when it has none, or is no object. */
bool esk_json_find(const struct esk_json_value *object, const char *key,
                   struct esk_json_value *value);

/* The integer, if it is one and fits; 1.0 and 1e3 are not integers. */
static inline bool esk_json_int64(const struct esk_json_value *value, int64_t *number) {
    *number = value->int64;
    return value->type == ESK_JSON_INT64;
}
static inline bool esk_json_uint64(const struct esk_json_value *value, uint64_t *number) {
    *number = value->uint64;
    return value->type == ESK_JSON_UINT64 || (value->type == ESK_JSON_INT64 && value->int64 >= 0);
}

/* "null", "boolean", "integer", "number", "string", "array", "object". */
const char *esk_json_type_name(enum esk_json_type type);

#ifdef __cplusplus
}
#endif

#endif
