/* SPDX-License-Identifier: Apache-2.0 */
/* Avro schemas from JSON, by the specification's rules for names and shapes. The JSON parser bounds
 * the depth; names may refer to types that are still being read, which makes cycles. */
#include "schema/avro_private.h"

#define ARENA_BYTES_MAX ((size_t)1 << 30)

const char *const eski_avro_kind_names[] = {
    [ESKI_AVRO_NULL] = "null",   [ESKI_AVRO_BOOLEAN] = "boolean", [ESKI_AVRO_INT] = "int",
    [ESKI_AVRO_LONG] = "long",   [ESKI_AVRO_FLOAT] = "float",     [ESKI_AVRO_DOUBLE] = "double",
    [ESKI_AVRO_BYTES] = "bytes", [ESKI_AVRO_STRING] = "string",   [ESKI_AVRO_RECORD] = "record",
    [ESKI_AVRO_ENUM] = "enum",   [ESKI_AVRO_FIXED] = "fixed",     [ESKI_AVRO_ARRAY] = "array",
    [ESKI_AVRO_MAP] = "map",     [ESKI_AVRO_UNION] = "union",
};

static const struct eski_avro primitives[] = {
    {.kind = ESKI_AVRO_NULL},  {.kind = ESKI_AVRO_BOOLEAN}, {.kind = ESKI_AVRO_INT},
    {.kind = ESKI_AVRO_LONG},  {.kind = ESKI_AVRO_FLOAT},   {.kind = ESKI_AVRO_DOUBLE},
    {.kind = ESKI_AVRO_BYTES}, {.kind = ESKI_AVRO_STRING},
};

struct parser {
    struct eski_avro_schema *schema;
    struct esk_error *error;
};

static enum esk_err refuse(const struct parser *parser, const char *what, struct esk_slice name) {
    return esk_fail(parser->error, ESK_ERR_INVALID, "schema: %s '%.*s'", what,
                    name.size > 200 ? 200 : (int)name.size, (const char *)name.data);
}

/* Memory is bounded by the text's size times a constant; the arena's limit lies above that. */
static void *allocate(struct parser *parser, size_t count, size_t size) {
    void *memory = esk_arena_alloc_array(&parser->schema->arena, count ? count : 1, size);
    if (memory == NULL) {
        (void)esk_fail(parser->error, ESK_ERR_TOO_LARGE, "schema: too large");
        return NULL;
    }
    memset(memory, 0, (count ? count : 1) * size);
    return memory;
}

/* --- names --- */

static bool is_name(struct esk_slice name, bool dotted) {
    bool begins = true;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        if (c == '.' && dotted && !begins) {
            begins = true;
            continue;
        }
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        if (!is_letter && (begins || c < '0' || c > '9')) {
            return false;
        }
        begins = false;
    }
    return !begins;
}

static size_t last_dot(struct esk_slice name) {
    size_t at = name.size;
    while (at > 0 && name.data[at - 1] != '.') {
        at--;
    }
    return at; /* behind it; 0: none */
}

static struct esk_slice space_of(struct esk_slice full_name) {
    size_t at = last_dot(full_name);
    return esk_slice(full_name.data, at > 0 ? at - 1 : 0);
}

/* A name in a namespace; one with dots is whole already. */
static enum esk_err full_name(struct parser *parser, struct esk_slice name, struct esk_slice space,
                              struct esk_slice *full) {
    if (!is_name(name, true)) {
        return refuse(parser, "not a name:", name);
    }
    if (space.size == 0 || last_dot(name) > 0) {
        *full = name;
        return ESK_OK;
    }
    uint8_t *bytes = allocate(parser, space.size + 1 + name.size, 1);
    if (bytes == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    memcpy(bytes, space.data, space.size);
    bytes[space.size] = '.';
    memcpy(bytes + space.size + 1, name.data, name.size);
    *full = esk_slice(bytes, space.size + 1 + name.size);
    return ESK_OK;
}

/* A list of strings; each is a name. In a namespace, unless it is NULL. */
static enum esk_err read_names(struct parser *parser, const struct esk_json_value *value,
                               const char *what, const struct esk_slice *space,
                               struct eski_avro_names *names) {
    struct esk_json_iterator iterator = esk_json_each(value);
    struct esk_json_value element;
    if (value->type != ESK_JSON_ARRAY) {
        return esk_fail(parser->error, ESK_ERR_INVALID, "schema: '%s' must be an array of names",
                        what);
    }
    names->names = allocate(parser, esk_json_count(value), sizeof(struct esk_slice));
    if (names->names == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    while (esk_json_next_element(&iterator, &element)) {
        if (element.type != ESK_JSON_STRING || !is_name(element.string, space != NULL)) {
            return esk_fail(parser->error, ESK_ERR_INVALID,
                            "schema: '%s' must be an array of names", what);
        }
        struct esk_slice *name = &names->names[names->count++];
        *name = element.string;
        enum esk_err err = space != NULL ? full_name(parser, element.string, *space, name) : ESK_OK;
        if (err) {
            return err;
        }
    }
    return ESK_OK;
}

/* Name, namespace and aliases of a named type, which is known by its name from here on. */
static enum esk_err read_head(struct parser *parser, const struct esk_json_value *object,
                              struct esk_slice space, struct eski_avro *type) {
    struct esk_json_value value;
    if (!esk_json_find(object, "name", &value) || value.type != ESK_JSON_STRING) {
        return esk_fail(parser->error, ESK_ERR_INVALID, "schema: a %s must have a 'name'",
                        eski_avro_kind_names[type->kind]);
    }
    struct esk_slice name = value.string;
    if (esk_json_find(object, "namespace", &value) && value.type == ESK_JSON_STRING) {
        space = value.string;
        if (space.size > 0 && !is_name(space, true)) {
            return refuse(parser, "not a namespace:", space);
        }
    }
    enum esk_err err = full_name(parser, name, space, &type->full_name);
    if (err) {
        return err;
    }
    size_t dot = last_dot(type->full_name);
    type->name = esk_slice(type->full_name.data + dot, type->full_name.size - dot);
    for (size_t i = 0; dot == 0 && i < sizeof primitives / sizeof primitives[0]; i++) {
        if (esk_slice_equal(type->name, esk_slice_text(eski_avro_kind_names[i]))) {
            return refuse(parser, "a primitive type's name is taken:", type->name);
        }
    }
    if (esk_map_get(&parser->schema->named, type->full_name) != NULL) {
        return refuse(parser, "defined twice:", type->full_name);
    }
    esk_map_put(&parser->schema->named, type->full_name, type);
    if (esk_json_find(object, "aliases", &value)) {
        const struct esk_slice own = space_of(type->full_name);
        err = read_names(parser, &value, "aliases", &own, &type->aliases);
    }
    return err;
}

/* --- types --- */

static enum esk_err parse(struct parser *parser, const struct esk_json_value *value,
                          struct esk_slice space, const struct eski_avro **type);

static enum esk_err find_named(struct parser *parser, struct esk_slice name, struct esk_slice space,
                               const struct eski_avro **type) {
    for (size_t i = 0; i < sizeof primitives / sizeof primitives[0]; i++) {
        if (esk_slice_equal(name, esk_slice_text(eski_avro_kind_names[i]))) {
            *type = &primitives[i];
            return ESK_OK;
        }
    }
    struct esk_slice full;
    enum esk_err err = full_name(parser, name, space, &full);
    if (err) {
        return err;
    }
    *type = esk_map_get(&parser->schema->named, full);
    if (*type == NULL) {
        *type = esk_map_get(&parser->schema->named, name);
    }
    return *type != NULL ? ESK_OK : refuse(parser, "unknown type", name);
}

static enum esk_err parse_field(struct parser *parser, const struct esk_json_value *object,
                                struct esk_slice space, struct eski_avro_field *field) {
    struct esk_json_value value;
    if (object->type != ESK_JSON_OBJECT || !esk_json_find(object, "name", &value) ||
        value.type != ESK_JSON_STRING) {
        return esk_fail(parser->error, ESK_ERR_INVALID,
                        "schema: a field must be an object with a 'name'");
    }
    field->name = value.string;
    if (!is_name(field->name, false)) {
        return refuse(parser, "not a field's name:", field->name);
    }
    if (!esk_json_find(object, "type", &value)) {
        return refuse(parser, "no 'type' in field", field->name);
    }
    enum esk_err err = parse(parser, &value, space, &field->type);
    if (err == ESK_OK && esk_json_find(object, "aliases", &value)) {
        err = read_names(parser, &value, "aliases", NULL, &field->aliases);
    }
    if (err == ESK_OK && esk_json_find(object, "default", &field->default_value)) {
        field->has_default = true;
        field->next_default = parser->schema->defaults;
        parser->schema->defaults = field;
    }
    return err;
}

static enum esk_err parse_record(struct parser *parser, const struct esk_json_value *object,
                                 struct eski_avro *record) {
    struct esk_json_value list;
    if (!esk_json_find(object, "fields", &list) || list.type != ESK_JSON_ARRAY) {
        return refuse(parser, "no array 'fields' in record", record->full_name);
    }
    record->fields = allocate(parser, esk_json_count(&list), sizeof *record->fields);
    if (record->fields == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    struct esk_map names;
    esk_map_init(&names);
    struct esk_json_iterator iterator = esk_json_each(&list);
    struct esk_json_value element;
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && esk_json_next_element(&iterator, &element)) {
        struct eski_avro_field *field = &record->fields[record->field_count++];
        err = parse_field(parser, &element, space_of(record->full_name), field);
        if (err == ESK_OK && esk_map_put(&names, field->name, field) != NULL) {
            err = refuse(parser, "a record has two fields", field->name);
        }
    }
    esk_map_fini(&names);
    return err;
}

static enum esk_err parse_enum(struct parser *parser, const struct esk_json_value *object,
                               struct eski_avro *type) {
    struct esk_json_value value;
    if (!esk_json_find(object, "symbols", &value)) {
        return refuse(parser, "no 'symbols' in enum", type->full_name);
    }
    enum esk_err err = read_names(parser, &value, "symbols", NULL, &type->symbols);
    struct esk_map seen;
    esk_map_init(&seen);
    for (size_t i = 0; err == ESK_OK && i < type->symbols.count; i++) {
        if (esk_map_put(&seen, type->symbols.names[i], type) != NULL) {
            err = refuse(parser, "an enum has twice the symbol", type->symbols.names[i]);
        }
    }
    if (err == ESK_OK && esk_json_find(object, "default", &value)) {
        if (value.type != ESK_JSON_STRING || esk_map_get(&seen, value.string) == NULL) {
            err = refuse(parser, "the default is no symbol of enum", type->full_name);
        } else {
            type->default_symbol = value.string;
        }
    }
    esk_map_fini(&seen);
    return err;
}

static enum esk_err parse_union(struct parser *parser, const struct esk_json_value *list,
                                struct esk_slice space, struct eski_avro *type) {
    struct esk_json_iterator iterator = esk_json_each(list);
    struct esk_json_value element;
    struct esk_map seen; /* kinds that may come once, and full names */
    enum esk_err err = ESK_OK;
    type->kind = ESKI_AVRO_UNION;
    type->branches = allocate(parser, esk_json_count(list), sizeof *type->branches);
    if (type->branches == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    esk_map_init(&seen);
    while (err == ESK_OK && esk_json_next_element(&iterator, &element)) {
        const struct eski_avro *branch = NULL;
        err = parse(parser, &element, space, &branch);
        if (err) {
            break;
        }
        struct esk_slice name = branch->full_name.size > 0
                                    ? branch->full_name
                                    : esk_slice_text(eski_avro_kind_names[branch->kind]);
        if (branch->kind == ESKI_AVRO_UNION) {
            err = esk_fail(parser->error, ESK_ERR_INVALID,
                           "schema: a union must not hold another directly");
        } else if (esk_map_put(&seen, name, type) != NULL) {
            err = refuse(parser, "a union has twice", name);
        }
        type->branches[type->branch_count++] = branch;
    }
    esk_map_fini(&seen);
    return err;
}

static enum esk_err parse_object(struct parser *parser, const struct esk_json_value *object,
                                 struct esk_slice space, const struct eski_avro **found) {
    static const enum eski_avro_kind kinds[] = {ESKI_AVRO_RECORD, ESKI_AVRO_ENUM, ESKI_AVRO_FIXED,
                                                ESKI_AVRO_ARRAY, ESKI_AVRO_MAP};
    struct esk_json_value value;
    if (!esk_json_find(object, "type", &value)) {
        return esk_fail(parser->error, ESK_ERR_INVALID, "schema: an object must have a 'type'");
    }
    if (value.type != ESK_JSON_STRING) {
        return parse(parser, &value, space, found);
    }
    enum eski_avro_kind kind = ESKI_AVRO_NULL;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (esk_slice_equal(value.string, esk_slice_text(eski_avro_kind_names[kinds[i]]))) {
            kind = kinds[i];
        }
    }
    if (esk_slice_equal(value.string, esk_slice_text("error"))) {
        kind = ESKI_AVRO_RECORD; /* of protocols; the same on the wire */
    }
    if (kind == ESKI_AVRO_NULL) {
        return find_named(parser, value.string, space, found);
    }
    struct eski_avro *type = allocate(parser, 1, sizeof *type);
    if (type == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    type->kind = kind;
    *found = type;
    if (kind == ESKI_AVRO_ARRAY || kind == ESKI_AVRO_MAP) {
        const char *key = kind == ESKI_AVRO_ARRAY ? "items" : "values";
        return esk_json_find(object, key, &value)
                   ? parse(parser, &value, space, &type->element)
                   : esk_fail(parser->error, ESK_ERR_INVALID, "schema: no '%s' in %s", key,
                              eski_avro_kind_names[kind]);
    }
    enum esk_err err = read_head(parser, object, space, type);
    if (err == ESK_OK && kind == ESKI_AVRO_RECORD) {
        err = parse_record(parser, object, type);
    } else if (err == ESK_OK && kind == ESKI_AVRO_ENUM) {
        err = parse_enum(parser, object, type);
    } else if (err == ESK_OK && (!esk_json_find(object, "size", &value) ||
                                 !esk_json_uint64(&value, &type->size_bytes))) {
        err = refuse(parser, "no size from 0 in fixed", type->full_name);
    }
    return err;
}

static enum esk_err parse(struct parser *parser, const struct esk_json_value *value,
                          struct esk_slice space, const struct eski_avro **type) {
    if (value->type == ESK_JSON_STRING) {
        return find_named(parser, value->string, space, type);
    }
    if (value->type == ESK_JSON_OBJECT) {
        return parse_object(parser, value, space, type);
    }
    if (value->type != ESK_JSON_ARRAY) {
        return esk_fail(parser->error, ESK_ERR_INVALID,
                        "schema: a type must be a name, an object or an array, not %s",
                        esk_json_type_name(value->type));
    }
    struct eski_avro *found = allocate(parser, 1, sizeof *found);
    *type = found;
    return found == NULL ? ESK_ERR_TOO_LARGE : parse_union(parser, value, space, found);
}

enum esk_err eski_avro_init(struct eski_avro_schema *schema, struct esk_slice text,
                            struct esk_error *error) {
    memset(schema, 0, sizeof *schema);
    esk_arena_init(&schema->arena, ARENA_BYTES_MAX);
    esk_map_init(&schema->named);
    struct parser parser = {schema, error};
    enum esk_err err = eski_json_text_init(&schema->text, text, error);
    if (err == ESK_OK) {
        err = parse(&parser, &schema->text.root, esk_slice(NULL, 0), &schema->root);
    }
    return err ? err : eski_avro_check_defaults(schema, error);
}

void eski_avro_fini(struct eski_avro_schema *schema) {
    eski_json_text_fini(&schema->text);
    esk_map_fini(&schema->named);
    esk_arena_fini(&schema->arena);
}

enum esk_err eski_avro_canonical(struct esk_slice text, struct esk_buffer *canonical,
                                 struct esk_error *error) {
    struct eski_avro_schema schema;
    enum esk_err err = eski_avro_init(&schema, text, error);
    if (err == ESK_OK) {
        eski_json_canonical(canonical, &schema.text.root);
    }
    eski_avro_fini(&schema);
    return err;
}
