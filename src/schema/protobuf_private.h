/* SPDX-License-Identifier: Apache-2.0 */
/* A .proto file as far as its wire format goes: messages, fields, enums, oneofs, what is reserved.
 * It comes from the language or from a FileDescriptorProto. */
#ifndef ESK_SCHEMA_PROTOBUF_PRIVATE_H
#define ESK_SCHEMA_PROTOBUF_PRIVATE_H

#include "base/map.h"
#include "schema/schema_private.h"

#define ESKI_PROTO_NUMBER_MAX 536870911 /* of a field: 2^29-1 */
#define ESKI_PROTO_DEPTH_MAX 64         /* messages within messages */
#define ESKI_PROTO_NAME_BYTES_MAX 1024
/* Of one message: more than anybody has; each is a list that is looked through. */
#define ESKI_PROTO_ONEOFS_MAX 2000
#define ESKI_PROTO_RESERVED_MAX 2000

/* Numbers are those of FieldDescriptorProto.Type, but for the last two. */
enum eski_proto_kind {
    ESKI_PROTO_DOUBLE = 1,
    ESKI_PROTO_FLOAT,
    ESKI_PROTO_INT64,
    ESKI_PROTO_UINT64,
    ESKI_PROTO_INT32,
    ESKI_PROTO_FIXED64,
    ESKI_PROTO_FIXED32,
    ESKI_PROTO_BOOL,
    ESKI_PROTO_STRING,
    ESKI_PROTO_GROUP,
    ESKI_PROTO_MESSAGE,
    ESKI_PROTO_BYTES,
    ESKI_PROTO_UINT32,
    ESKI_PROTO_ENUM,
    ESKI_PROTO_SFIXED32,
    ESKI_PROTO_SFIXED64,
    ESKI_PROTO_SINT32,
    ESKI_PROTO_SINT64,
    ESKI_PROTO_NAMED, /* a type by its name that this file does not define */
    ESKI_PROTO_MAP,
};
/* "double"; NULL: no such number. */
const char *eski_proto_kind_name(enum eski_proto_kind kind);
/* A scalar type's name. */
bool eski_proto_scalar(struct esk_slice name, enum eski_proto_kind *kind);

enum eski_proto_label { ESKI_PROTO_SINGULAR = 1, ESKI_PROTO_REQUIRED, ESKI_PROTO_REPEATED };

struct eski_proto_type {
    enum eski_proto_kind kind;
    struct esk_slice
        name; /* message, enum, named: as written; once resolved, from the package on */
};

struct eski_proto_field {
    struct eski_proto_field *next;
    struct esk_slice name;
    uint32_t number;
    enum eski_proto_label label;
    struct eski_proto_type type;
    struct eski_proto_type key, value; /* of a map */
    const struct eski_proto_oneof *oneof;
};

struct eski_proto_oneof {
    struct eski_proto_oneof *next;
    struct esk_slice name;
};

struct eski_proto_reserved {
    struct eski_proto_reserved *next;
    struct esk_slice name; /* or, when empty, numbers */
    uint32_t first, last;
};

struct eski_proto_message {
    struct eski_proto_message *next; /* within its parent, or the file */
    struct eski_proto_message *next_of_all;
    struct eski_proto_message *parent;
    struct esk_slice path; /* "Outer.Inner" */
    struct eski_proto_field *fields, **fields_end;
    struct eski_proto_oneof *oneofs, **oneofs_end;
    struct eski_proto_reserved *reserved;
    unsigned oneof_count, reserved_count;
    bool is_map_entry; /* what a map is in a descriptor */
};

struct eski_proto_file {
    struct esk_arena arena;
    struct esk_slice package;
    bool is_proto3;
    struct eski_proto_message *all, **all_end; /* outer ones before inner ones */
    struct esk_map messages;                   /* path -> message */
    struct esk_map enums;                      /* path -> the path, a struct esk_slice */
    struct esk_buffer scratch;                 /* of look-ups */
    uint64_t work;                             /* bytes of paths made for look-ups */
};

/* From the text of either form, checked and with its types resolved. canonical may be NULL. Fini
 * also after a failure; the text must stay until then. */
enum esk_err eski_proto_init(struct eski_proto_file *file, struct esk_slice text,
                             struct esk_buffer *canonical, struct esk_error *error);
void eski_proto_fini(struct eski_proto_file *file);

/* For the two parsers. NULL, with the error, when it is too large or the path is taken. */
void *eski_proto_alloc(struct eski_proto_file *file, size_t size, struct esk_error *error);
struct eski_proto_message *eski_proto_add_message(struct eski_proto_file *file,
                                                  struct eski_proto_message *parent,
                                                  struct esk_slice name, struct esk_error *error);
enum esk_err eski_proto_add_enum(struct eski_proto_file *file, struct eski_proto_message *parent,
                                 struct esk_slice name, struct esk_error *error);
struct eski_proto_field *eski_proto_add_field(struct eski_proto_file *file,
                                              struct eski_proto_message *message,
                                              struct esk_error *error);
struct eski_proto_oneof *eski_proto_add_oneof(struct eski_proto_file *file,
                                              struct eski_proto_message *message,
                                              struct esk_slice name, struct esk_error *error);
enum esk_err eski_proto_reserve(struct eski_proto_file *file, struct eski_proto_message *message,
                                struct esk_slice name, uint32_t first, uint32_t last,
                                struct esk_error *error);
enum esk_err eski_proto_parse_text(struct eski_proto_file *file, struct esk_slice text,
                                   struct esk_buffer *canonical, struct esk_error *error);
enum esk_err eski_proto_parse_descriptor(struct eski_proto_file *file, struct esk_slice bytes,
                                         struct esk_error *error);

#endif
