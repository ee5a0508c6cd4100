/* SPDX-License-Identifier: Apache-2.0 */
/* A .proto file as a struct: how it is put together, checked, and its type names resolved. */
#include "schema/protobuf_private.h"
#include "wire/json/base64.h"

#define ARENA_BYTES_MIN ((size_t)1 << 20)
#define ARENA_FACTOR 64      /* of the text's size: a field of 10 bytes takes 200 */
#define WORK_MAX 2000000000u /* bytes: about a second */
#define SPARE_FIRST 19000    /* numbers of the implementation's own */
#define SPARE_LAST 19999

static const char *const kind_names[] = {
    [ESKI_PROTO_DOUBLE] = "double",     [ESKI_PROTO_FLOAT] = "float",
    [ESKI_PROTO_INT64] = "int64",       [ESKI_PROTO_UINT64] = "uint64",
    [ESKI_PROTO_INT32] = "int32",       [ESKI_PROTO_FIXED64] = "fixed64",
    [ESKI_PROTO_FIXED32] = "fixed32",   [ESKI_PROTO_BOOL] = "bool",
    [ESKI_PROTO_STRING] = "string",     [ESKI_PROTO_GROUP] = "group",
    [ESKI_PROTO_MESSAGE] = "message",   [ESKI_PROTO_BYTES] = "bytes",
    [ESKI_PROTO_UINT32] = "uint32",     [ESKI_PROTO_ENUM] = "enum",
    [ESKI_PROTO_SFIXED32] = "sfixed32", [ESKI_PROTO_SFIXED64] = "sfixed64",
    [ESKI_PROTO_SINT32] = "sint32",     [ESKI_PROTO_SINT64] = "sint64",
    [ESKI_PROTO_NAMED] = "type",        [ESKI_PROTO_MAP] = "map",
};
#define KIND_COUNT (sizeof kind_names / sizeof kind_names[0])

const char *eski_proto_kind_name(enum eski_proto_kind kind) {
    return (size_t)kind < KIND_COUNT ? kind_names[kind] : NULL;
}

bool eski_proto_scalar(struct esk_slice name, enum eski_proto_kind *kind) {
    for (size_t i = 1; i < KIND_COUNT; i++) {
        if (i != ESKI_PROTO_GROUP && i != ESKI_PROTO_MESSAGE && i != ESKI_PROTO_ENUM &&
            i != ESKI_PROTO_NAMED && i != ESKI_PROTO_MAP &&
            esk_slice_equal(name, esk_slice_text(kind_names[i]))) {
            *kind = (enum eski_proto_kind)i;
            return true;
        }
    }
    return false;
}

static enum esk_err refuse(struct esk_error *error, const char *what, struct esk_slice name) {
    return esk_fail(error, ESK_ERR_INVALID, "schema: %s '%.*s'", what,
                    name.size > 200 ? 200 : (int)name.size, (const char *)name.data);
}

/* --- putting together --- */

void *eski_proto_alloc(struct eski_proto_file *file, size_t size, struct esk_error *error) {
    void *memory = esk_arena_alloc(&file->arena, size);
    if (memory == NULL) {
        (void)esk_fail(error, ESK_ERR_TOO_LARGE, "schema: too large");
        return NULL;
    }
    memset(memory, 0, size);
    return memory;
}

/* "Outer" and "Inner" make "Outer.Inner"; data NULL over the limit. */
static struct esk_slice join(struct eski_proto_file *file, struct esk_slice outer,
                             struct esk_slice inner, struct esk_error *error) {
    if (outer.size == 0) {
        return inner;
    }
    uint8_t *bytes = eski_proto_alloc(file, outer.size + 1 + inner.size, error);
    if (bytes == NULL) {
        return esk_slice(NULL, 0);
    }
    memcpy(bytes, outer.data, outer.size);
    bytes[outer.size] = '.';
    memcpy(bytes + outer.size + 1, inner.data, inner.size);
    return esk_slice(bytes, outer.size + 1 + inner.size);
}

static enum esk_err take_path(struct eski_proto_file *file, struct eski_proto_message *parent,
                              struct esk_slice name, struct esk_slice *path,
                              struct esk_error *error) {
    if (name.size > ESKI_PROTO_NAME_BYTES_MAX) {
        return refuse(error, "too long a name:", name);
    }
    *path = join(file, parent != NULL ? parent->path : esk_slice(NULL, 0), name, error);
    if (path->data == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    if (esk_map_get(&file->messages, *path) != NULL || esk_map_get(&file->enums, *path) != NULL) {
        return refuse(error, "defined twice:", *path);
    }
    return ESK_OK;
}

struct eski_proto_message *eski_proto_add_message(struct eski_proto_file *file,
                                                  struct eski_proto_message *parent,
                                                  struct esk_slice name, struct esk_error *error) {
    struct esk_slice path;
    if (take_path(file, parent, name, &path, error) != ESK_OK) {
        return NULL;
    }
    struct eski_proto_message *message = eski_proto_alloc(file, sizeof *message, error);
    if (message != NULL) {
        message->parent = parent;
        message->path = path;
        message->fields_end = &message->fields;
        message->oneofs_end = &message->oneofs;
        *file->all_end = message;
        file->all_end = &message->next_of_all;
        esk_map_put(&file->messages, path, message);
    }
    return message;
}

enum esk_err eski_proto_add_enum(struct eski_proto_file *file, struct eski_proto_message *parent,
                                 struct esk_slice name, struct esk_error *error) {
    struct esk_slice path;
    enum esk_err err = take_path(file, parent, name, &path, error);
    struct esk_slice *kept = err == ESK_OK ? eski_proto_alloc(file, sizeof *kept, error) : NULL;
    if (kept != NULL) {
        *kept = path;
        esk_map_put(&file->enums, path, kept);
    }
    return err == ESK_OK && kept == NULL ? ESK_ERR_TOO_LARGE : err;
}

struct eski_proto_field *eski_proto_add_field(struct eski_proto_file *file,
                                              struct eski_proto_message *message,
                                              struct esk_error *error) {
    struct eski_proto_field *field = eski_proto_alloc(file, sizeof *field, error);
    if (field != NULL) {
        field->label = ESKI_PROTO_SINGULAR;
        *message->fields_end = field;
        message->fields_end = &field->next;
    }
    return field;
}

struct eski_proto_oneof *eski_proto_add_oneof(struct eski_proto_file *file,
                                              struct eski_proto_message *message,
                                              struct esk_slice name, struct esk_error *error) {
    if (message->oneof_count++ == ESKI_PROTO_ONEOFS_MAX) {
        (void)refuse(error, "too many oneofs in message", message->path);
        return NULL;
    }
    struct eski_proto_oneof *oneof = eski_proto_alloc(file, sizeof *oneof, error);
    if (oneof != NULL) {
        oneof->name = name;
        *message->oneofs_end = oneof;
        message->oneofs_end = &oneof->next;
    }
    return oneof;
}

enum esk_err eski_proto_reserve(struct eski_proto_file *file, struct eski_proto_message *message,
                                struct esk_slice name, uint32_t first, uint32_t last,
                                struct esk_error *error) {
    if (message->reserved_count++ == ESKI_PROTO_RESERVED_MAX) {
        return refuse(error, "too much is reserved in message", message->path);
    }
    struct eski_proto_reserved *reserved = eski_proto_alloc(file, sizeof *reserved, error);
    if (reserved == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    *reserved = (struct eski_proto_reserved){message->reserved, name, first, last};
    message->reserved = reserved;
    return ESK_OK;
}

/* --- types --- */

/* Looks the name up from the innermost scope outwards, as the language does. */
static bool find_type(struct eski_proto_file *file, const struct eski_proto_message *scope,
                      struct esk_slice name, struct eski_proto_type *type) {
    struct esk_buffer *path = &file->scratch;
    for (; file->work < WORK_MAX; scope = scope->parent) {
        path->size = 0;
        if (scope != NULL) {
            esk_buffer_append(path, scope->path.data, scope->path.size);
            esk_buffer_u8(path, '.');
        }
        esk_buffer_append(path, name.data, name.size);
        file->work += path->size;
        const struct eski_proto_message *message =
            esk_map_get(&file->messages, esk_buffer_slice(path));
        const struct esk_slice *known = esk_map_get(&file->enums, esk_buffer_slice(path));
        if (message != NULL) {
            type->name = message->path;
            type->kind = type->kind == ESKI_PROTO_GROUP ? ESKI_PROTO_GROUP : ESKI_PROTO_MESSAGE;
            return true;
        }
        if (known != NULL) {
            type->name = *known;
            type->kind = ESKI_PROTO_ENUM;
            return true;
        }
        if (scope == NULL) {
            break;
        }
    }
    return false;
}

static bool strip(struct esk_slice *name, struct esk_slice prefix) {
    if (prefix.size == 0 || name->size <= prefix.size + 1 ||
        memcmp(name->data, prefix.data, prefix.size) != 0 || name->data[prefix.size] != '.') {
        return false;
    }
    *name = esk_slice(name->data + prefix.size + 1, name->size - prefix.size - 1);
    return true;
}

static void resolve(struct eski_proto_file *file, const struct eski_proto_message *scope,
                    struct eski_proto_type *type) {
    struct esk_slice name = type->name;
    if (name.size == 0) {
        return;
    }
    if (name.data[0] == '.') { /* from the root, so behind the package */
        name = esk_slice(name.data + 1, name.size - 1);
        type->name = name;
        if ((file->package.size == 0 || strip(&name, file->package)) &&
            find_type(file, NULL, name, type)) {
            return;
        }
    } else if (find_type(file, scope, name, type) ||
               (strip(&name, file->package) && find_type(file, NULL, name, type))) {
        return;
    }
    /* Of an imported file: the language does not say here whether it is a message or an enum. */
    if (type->kind == ESKI_PROTO_MESSAGE || type->kind == ESKI_PROTO_ENUM) {
        type->kind = ESKI_PROTO_NAMED;
    }
}

/* A descriptor's map is a repeated message with key and value. */
static void unfold_map(struct eski_proto_file *file, struct eski_proto_field *field) {
    const struct eski_proto_message *entry = NULL;
    if (field->type.kind == ESKI_PROTO_MESSAGE && field->label == ESKI_PROTO_REPEATED) {
        entry = esk_map_get(&file->messages, field->type.name);
    }
    if (entry == NULL || !entry->is_map_entry) {
        return;
    }
    for (struct eski_proto_field *part = entry->fields; part != NULL; part = part->next) {
        *(part->number == 1 ? &field->key : &field->value) = part->type;
    }
    field->type = (struct eski_proto_type){.kind = ESKI_PROTO_MAP};
}

static bool is_reserved(const struct eski_proto_message *message,
                        const struct eski_proto_field *field) {
    for (const struct eski_proto_reserved *r = message->reserved; r != NULL; r = r->next) {
        if (r->name.size > 0 ? esk_slice_equal(r->name, field->name)
                             : field->number >= r->first && field->number <= r->last) {
            return true;
        }
    }
    return false;
}

static enum esk_err check_message(const struct eski_proto_message *message, bool is_proto3,
                                  struct esk_error *error) {
    struct esk_u64_map numbers;
    struct esk_map names;
    enum esk_err err = ESK_OK;
    esk_u64_map_init(&numbers);
    esk_map_init(&names);
    for (struct eski_proto_field *field = message->fields; err == ESK_OK && field != NULL;
         field = field->next) {
        if (field->number < 1 || field->number > ESKI_PROTO_NUMBER_MAX ||
            (field->number >= SPARE_FIRST && field->number <= SPARE_LAST)) {
            err = refuse(error, "not a field's number, at field", field->name);
        } else if (esk_u64_map_put(&numbers, field->number, field) != NULL) {
            err = refuse(error, "a number is given twice, at field", field->name);
        } else if (esk_map_put(&names, field->name, field) != NULL) {
            err = refuse(error, "two fields are called", field->name);
        } else if (is_proto3 && field->label == ESKI_PROTO_REQUIRED) {
            err = refuse(error, "proto3 has no required fields, such as", field->name);
        } else if (is_reserved(message, field)) {
            err = refuse(error, "its number or name is reserved, at field", field->name);
        }
    }
    esk_u64_map_fini(&numbers);
    esk_map_fini(&names);
    return err;
}

static enum esk_err finish(struct eski_proto_file *file, struct esk_error *error) {
    enum esk_err err = ESK_OK;
    for (struct eski_proto_message *message = file->all; err == ESK_OK && message != NULL;
         message = message->next_of_all) {
        for (struct eski_proto_field *field = message->fields; field != NULL; field = field->next) {
            resolve(file, message, &field->type);
            resolve(file, message, &field->key);
            resolve(file, message, &field->value);
        }
        err = file->work < WORK_MAX
                  ? check_message(message, file->is_proto3, error)
                  : refuse(error, "too deep to be looked through:", message->path);
    }
    /* Entries are resolved only now. */
    for (struct eski_proto_message *message = file->all; message != NULL;
         message = message->next_of_all) {
        for (struct eski_proto_field *field = message->fields; field != NULL; field = field->next) {
            unfold_map(file, field);
        }
    }
    return err;
}

/* --- either form --- */

static bool is_base64(struct esk_slice text) {
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '+' || c == '/' || c == '=')) {
            return false;
        }
    }
    return text.size > 0;
}

enum esk_err eski_proto_init(struct eski_proto_file *file, struct esk_slice text,
                             struct esk_buffer *canonical, struct esk_error *error) {
    memset(file, 0, sizeof *file);
    esk_arena_init(&file->arena, ARENA_BYTES_MIN + ARENA_FACTOR * text.size);
    esk_buffer_init(&file->scratch);
    esk_map_init(&file->messages);
    esk_map_init(&file->enums);
    file->all_end = &file->all;
    enum esk_err err;
    if (is_base64(text)) {
        size_t size = 0;
        uint8_t *bytes = eski_proto_alloc(file, esk_base64_decoded_max(text.size) + 1, error);
        if (bytes == NULL) {
            return ESK_ERR_TOO_LARGE;
        }
        if (!esk_base64_decode(text, bytes, &size)) {
            return esk_fail(error, ESK_ERR_INVALID, "schema: neither a .proto file nor base64");
        }
        err = eski_proto_parse_descriptor(file, esk_slice(bytes, size), error);
        if (err == ESK_OK && canonical != NULL) {
            esk_buffer_append(canonical, text.data, text.size);
        }
    } else {
        err = eski_proto_parse_text(file, text, canonical, error);
    }
    return err ? err : finish(file, error);
}

void eski_proto_fini(struct eski_proto_file *file) {
    esk_map_fini(&file->messages);
    esk_map_fini(&file->enums);
    esk_buffer_fini(&file->scratch);
    esk_arena_fini(&file->arena);
}

enum esk_err eski_protobuf_canonical(struct esk_slice text, struct esk_buffer *canonical,
                                     struct esk_error *error) {
    struct eski_proto_file file;
    size_t size = canonical->size;
    enum esk_err err = eski_proto_init(&file, text, canonical, error);
    if (err) {
        canonical->size = size;
    }
    eski_proto_fini(&file);
    return err;
}
