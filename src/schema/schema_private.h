/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of schemas share: loaded JSON texts, canonical JSON, and the form of refusals. */
#ifndef ESK_SCHEMA_PRIVATE_H
#define ESK_SCHEMA_PRIVATE_H

#include "schema/schema.h"
#include "wire/json/document.h"

/* A JSON text in memory of its own. */
struct eski_json_text {
    struct esk_json_document *document;
    struct esk_json_value root;
};
/* Fini also after a failure. */
enum esk_err eski_json_text_init(struct eski_json_text *text, struct esk_slice bytes,
                                 struct esk_error *error);
void eski_json_text_fini(struct eski_json_text *text);
/* Without spaces, keys sorted by their bytes, integral numbers without fraction. */
void eski_json_canonical(struct esk_buffer *out, const struct esk_json_value *value);
/* The field of an object whose name is no literal. */
bool eski_json_find(const struct esk_json_value *object, struct esk_slice key,
                    struct esk_json_value *value);

/* ESK_ERR_CONFLICT, with the phrase in front. */
enum esk_err eski_incompatible(struct esk_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum esk_err eski_json_schema_check(const struct esk_json_value *root, struct esk_error *error);
enum esk_err eski_json_schema_canonical(struct esk_slice text, struct esk_buffer *canonical,
                                        struct esk_error *error);
enum esk_err eski_json_schema_backward(struct esk_slice newer, struct esk_slice older,
                                       struct esk_error *error);
enum esk_err eski_avro_canonical(struct esk_slice text, struct esk_buffer *canonical,
                                 struct esk_error *error);
enum esk_err eski_avro_backward(struct esk_slice newer, struct esk_slice older,
                                struct esk_error *error);
enum esk_err eski_protobuf_canonical(struct esk_slice text, struct esk_buffer *canonical,
                                     struct esk_error *error);
enum esk_err eski_protobuf_backward(struct esk_slice newer, struct esk_slice older,
                                    struct esk_error *error);

#endif
