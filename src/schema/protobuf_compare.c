/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a reader with the newer .proto file reads messages of the older one. Messages are matched
 * by name, fields by number; a field may be removed and, unless it is required, added. A type may
 * change within its group on the wire. */
#include "schema/protobuf_private.h"

#include <stdio.h>

struct comparison {
    const struct eski_proto_message *newer, *older;
    struct esk_error *error;
};

/* Types of one group read each other's values. */
enum group { VARINT, ZIGZAG, FIXED32, FIXED64, FLOAT, DOUBLE, TEXT, MESSAGE, GROUP, NAMED, MAP };

static enum group group_of(enum eski_proto_kind kind) {
    switch (kind) {
    case ESKI_PROTO_SINT32:
    case ESKI_PROTO_SINT64:
        return ZIGZAG;
    case ESKI_PROTO_FIXED32:
    case ESKI_PROTO_SFIXED32:
        return FIXED32;
    case ESKI_PROTO_FIXED64:
    case ESKI_PROTO_SFIXED64:
        return FIXED64;
    case ESKI_PROTO_FLOAT:
        return FLOAT;
    case ESKI_PROTO_DOUBLE:
        return DOUBLE;
    case ESKI_PROTO_STRING:
    case ESKI_PROTO_BYTES:
        return TEXT;
    case ESKI_PROTO_MESSAGE:
        return MESSAGE;
    case ESKI_PROTO_GROUP:
        return GROUP;
    case ESKI_PROTO_NAMED:
        return NAMED;
    case ESKI_PROTO_MAP:
        return MAP;
    default:
        return VARINT;
    }
}

static struct esk_slice last_part(struct esk_slice name) {
    size_t at = name.size;
    while (at > 0 && name.data[at - 1] != '.') {
        at--;
    }
    return esk_slice(name.data + at, name.size - at);
}

static bool types_match(const struct eski_proto_type *newer, const struct eski_proto_type *older) {
    enum group to = group_of(newer->kind);
    enum group from = group_of(older->kind);
    if (to == NAMED || from == NAMED) { /* of another file: by name, or an enum as its number */
        return (newer->name.size > 0 && older->name.size > 0 &&
                esk_slice_equal(last_part(newer->name), last_part(older->name)));
    }
    if (to == MESSAGE && from == MESSAGE) {
        return esk_slice_equal(newer->name, older->name);
    }
    if ((to == MESSAGE && older->kind == ESKI_PROTO_BYTES) ||
        (from == MESSAGE && newer->kind == ESKI_PROTO_BYTES)) {
        return true;
    }
    return to == from;
}

/* A repeated number may be packed, which a single one does not read. */
static bool label_matters(const struct eski_proto_field *field) {
    enum group group = group_of(field->type.kind);
    return group != TEXT && group != MESSAGE && group != NAMED;
}

static enum esk_err refuse(const struct comparison *comparison, const char *format,
                           struct esk_slice field) {
    char text[256];
    (void)snprintf(text, sizeof text, format, field.size > 180 ? 180 : (int)field.size,
                   (const char *)field.data);
    struct esk_slice path = comparison->newer->path;
    return eski_incompatible(comparison->error, "%s in message '%.*s'", text,
                             path.size > 200 ? 200 : (int)path.size, (const char *)path.data);
}

static void describe(const struct eski_proto_type *type, char text[128]) {
    if (type->name.size > 0) {
        (void)snprintf(text, 128, "%.*s", type->name.size > 120 ? 120 : (int)type->name.size,
                       (const char *)type->name.data);
    } else {
        (void)snprintf(text, 128, "%s", eski_proto_kind_name(type->kind));
    }
}

static enum esk_err compare_field(const struct comparison *comparison,
                                  const struct eski_proto_field *newer,
                                  const struct eski_proto_field *older) {
    bool match = types_match(&newer->type, &older->type);
    const struct eski_proto_type *to = &newer->type;
    const struct eski_proto_type *from = &older->type;
    if (match && to->kind == ESKI_PROTO_MAP) {
        match = types_match(&newer->key, &older->key);
        to = match ? &newer->value : &newer->key;
        from = match ? &older->value : &older->key;
        match = match && types_match(to, from);
    }
    if (!match) {
        char names[2][128];
        describe(from, names[0]);
        describe(to, names[1]);
        return eski_incompatible(
            comparison->error, "type of '%.*s.%.*s' changes from %s to %s",
            comparison->newer->path.size > 120 ? 120 : (int)comparison->newer->path.size,
            (const char *)comparison->newer->path.data,
            newer->name.size > 80 ? 80 : (int)newer->name.size, (const char *)newer->name.data,
            names[0], names[1]);
    }
    if (newer->label == ESKI_PROTO_REQUIRED && older->label != ESKI_PROTO_REQUIRED) {
        return refuse(comparison, "field '%.*s' becomes required", newer->name);
    }
    bool was_repeated = older->label == ESKI_PROTO_REPEATED;
    bool is_repeated = newer->label == ESKI_PROTO_REPEATED;
    if (was_repeated != is_repeated && label_matters(older)) {
        return refuse(comparison,
                      is_repeated ? "field '%.*s' becomes repeated"
                                  : "field '%.*s' is no longer repeated",
                      newer->name);
    }
    return ESK_OK;
}

static bool was_reserved(const struct eski_proto_message *older,
                         const struct eski_proto_field *field) {
    for (const struct eski_proto_reserved *r = older->reserved; r != NULL; r = r->next) {
        if (r->name.size > 0 ? esk_slice_equal(r->name, field->name)
                             : field->number >= r->first && field->number <= r->last) {
            return true;
        }
    }
    return false;
}

/* Old fields that now share a oneof must have shared one before: else old messages may have several
 * of them set. */
static enum esk_err compare_oneofs(const struct comparison *comparison,
                                   const struct esk_u64_map *older) {
    struct esk_u64_map first; /* the new oneof -> the old field that came first */
    enum esk_err err = ESK_OK;
    esk_u64_map_init(&first);
    for (const struct eski_proto_field *field = comparison->newer->fields;
         err == ESK_OK && field != NULL; field = field->next) {
        struct eski_proto_field *before = esk_u64_map_get(older, field->number);
        if (field->oneof == NULL || before == NULL) {
            continue;
        }
        uint64_t key = (uint64_t)(uintptr_t)field->oneof;
        const struct eski_proto_field *other = esk_u64_map_get(&first, key);
        if (other == NULL) {
            esk_u64_map_put(&first, key, before);
        } else if (before->oneof == NULL || before->oneof != other->oneof) {
            err = refuse(comparison, "several older fields move into oneof '%.*s'",
                         field->oneof->name);
        }
    }
    esk_u64_map_fini(&first);
    return err;
}

static enum esk_err compare_messages(const struct comparison *comparison) {
    struct esk_u64_map numbers;
    enum esk_err err = ESK_OK;
    esk_u64_map_init(&numbers);
    for (struct eski_proto_field *field = comparison->older->fields; field != NULL;
         field = field->next) {
        esk_u64_map_put(&numbers, field->number, field);
    }
    for (const struct eski_proto_field *field = comparison->newer->fields;
         err == ESK_OK && field != NULL; field = field->next) {
        const struct eski_proto_field *before = esk_u64_map_get(&numbers, field->number);
        if (before != NULL) {
            err = compare_field(comparison, field, before);
        } else if (field->label == ESKI_PROTO_REQUIRED) {
            err = refuse(comparison, "new schema adds required field '%.*s'", field->name);
        } else if (was_reserved(comparison->older, field)) {
            err = refuse(comparison, "field '%.*s' takes a number or name that was reserved",
                         field->name);
        }
    }
    if (err == ESK_OK) {
        err = compare_oneofs(comparison, &numbers);
    }
    esk_u64_map_fini(&numbers);
    return err;
}

static enum esk_err compare_files(const struct eski_proto_file *newer,
                                  const struct eski_proto_file *older, struct esk_error *error) {
    enum esk_err err = ESK_OK;
    for (const struct eski_proto_message *message = older->all; err == ESK_OK && message != NULL;
         message = message->next_of_all) {
        const struct eski_proto_message *match = esk_map_get(&newer->messages, message->path);
        if (message->is_map_entry) {
            continue; /* compared where it is used */
        }
        const struct comparison comparison = {match, message, error};
        err = match != NULL
                  ? compare_messages(&comparison)
                  : eski_incompatible(error, "new schema removes message '%.*s'",
                                      message->path.size > 300 ? 300 : (int)message->path.size,
                                      (const char *)message->path.data);
    }
    return err;
}

enum esk_err eski_protobuf_backward(struct esk_slice newer, struct esk_slice older,
                                    struct esk_error *error) {
    struct eski_proto_file files[2];
    enum esk_err err = eski_proto_init(&files[0], newer, NULL, error);
    enum esk_err older_err = eski_proto_init(&files[1], older, NULL, err ? NULL : error);
    err = err ? err : older_err;
    if (err == ESK_OK) {
        err = compare_files(&files[0], &files[1], error);
    }
    eski_proto_fini(&files[0]);
    eski_proto_fini(&files[1]);
    return err;
}
