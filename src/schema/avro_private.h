/* SPDX-License-Identifier: Apache-2.0 */
/* An Avro schema as a graph: references by name are pointers, so it may have cycles. */
#ifndef ESK_SCHEMA_AVRO_PRIVATE_H
#define ESK_SCHEMA_AVRO_PRIVATE_H

#include "base/map.h"
#include "schema/schema_private.h"

enum eski_avro_kind {
    ESKI_AVRO_NULL,
    ESKI_AVRO_BOOLEAN,
    ESKI_AVRO_INT,
    ESKI_AVRO_LONG,
    ESKI_AVRO_FLOAT,
    ESKI_AVRO_DOUBLE,
    ESKI_AVRO_BYTES,
    ESKI_AVRO_STRING, /* the last one without parts */
    ESKI_AVRO_RECORD,
    ESKI_AVRO_ENUM,
    ESKI_AVRO_FIXED,
    ESKI_AVRO_ARRAY,
    ESKI_AVRO_MAP,
    ESKI_AVRO_UNION,
};
extern const char *const eski_avro_kind_names[];

struct eski_avro_names { /* a list of names in the arena */
    struct esk_slice *names;
    size_t count;
};

struct eski_avro {
    enum eski_avro_kind kind;
    struct esk_slice full_name;        /* record, enum, fixed */
    struct esk_slice name;             /* its last part */
    struct eski_avro_names aliases;    /* full ones */
    struct eski_avro_field *fields;    /* record */
    size_t field_count;                /* record */
    struct eski_avro_names symbols;    /* enum */
    struct esk_slice default_symbol;   /* enum; size 0: none */
    uint64_t size_bytes;               /* fixed */
    const struct eski_avro *element;   /* array, map */
    const struct eski_avro **branches; /* union */
    size_t branch_count;               /* union */
};

struct eski_avro_field {
    struct esk_slice name;
    struct eski_avro_names aliases;
    const struct eski_avro *type;
    bool has_default;
    struct esk_json_value default_value;
    struct eski_avro_field *next_default; /* among all that have one */
};

struct eski_avro_schema {
    struct eski_json_text text;
    struct esk_arena arena;
    struct esk_map named; /* full name -> struct eski_avro */
    struct eski_avro_field *defaults;
    const struct eski_avro *root;
};

/* Fini also after a failure. */
enum esk_err eski_avro_init(struct eski_avro_schema *schema, struct esk_slice text,
                            struct esk_error *error);
void eski_avro_fini(struct eski_avro_schema *schema);

/* Whether every default is a value of its type; after the whole schema is known. */
enum esk_err eski_avro_check_defaults(const struct eski_avro_schema *schema,
                                      struct esk_error *error);

#endif
