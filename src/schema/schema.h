/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of schemas: what is one, when two are the same, and whether a new version reads what was
 * written with an older one. Pure: no state, any thread. Texts come from strangers; the work for
 * one is bounded by its size, and nesting and references by constants. A text of a megabyte takes
 * some ten milliseconds, so it belongs on a helper. */
#ifndef ESK_SCHEMA_SCHEMA_H
#define ESK_SCHEMA_SCHEMA_H

#include "base/error.h"
#include "base/memory.h"

/* The numbers are bytes on disk. */
enum esk_schema_type {
    ESK_SCHEMA_JSON = 1,
    ESK_SCHEMA_AVRO = 2,
    ESK_SCHEMA_PROTOBUF = 3,
};

/* "json_schema", "avro", "protobuf"; NULL for another number. */
const char *esk_schema_type_name(enum esk_schema_type type);
/* As the registry protocol of Confluent's clients calls it: "JSON", "AVRO", "PROTOBUF". */
const char *esk_schema_type_label(enum esk_schema_type type);
bool esk_schema_type_from_name(struct esk_slice name, enum esk_schema_type *type);
bool esk_schema_type_from_label(struct esk_slice label, enum esk_schema_type *type);

/* Checks the text and appends a form of it that is equal, byte by byte, for texts that say the
 * same: JSON without spaces and with sorted keys, or the tokens of a .proto file. A protobuf text
 * may also be a FileDescriptorProto in base64, as some clients send it. ESK_ERR_INVALID: the text
 * is no such schema; the error, fit for the client, says why. */
enum esk_err esk_schema_canonical(enum esk_schema_type type, struct esk_slice text,
                                  struct esk_buffer *canonical, struct esk_error *error);

/* Whether who has `newer` can read what was written with `older`; both were accepted before.
 * ESK_ERR_CONFLICT: it can't; the text begins with "backward-incompatible: ". ESK_ERR_INVALID: one
 * of them is no such schema, or they are too entangled to compare. */
enum esk_err esk_schema_backward(enum esk_schema_type type, struct esk_slice newer,
                                 struct esk_slice older, struct esk_error *error);

#endif
