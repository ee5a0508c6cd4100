/* SPDX-License-Identifier: Apache-2.0 */
/* Avro's schema resolution: whether a reader with the newer schema gets every value that a writer
 * with the older one can have written. A pair of named types that is being compared counts as
 * readable, which ends cycles; what was found for a pair is kept. */
#include "schema/avro_private.h"

#include <stdio.h>

#define PAIRS_MAX 1000000
#define DEPTH_MAX 5000 /* longest chain of different types within types: 2 MB of stack */

struct comparison {
    struct esk_map verdicts; /* pair of named types -> yes or no */
    struct esk_buffer path;
    unsigned depth;
    unsigned silent; /* trying branches of a union: nothing is said of those that do not fit */
    size_t pairs;
    bool is_over; /* gave up */
    struct esk_error *error;
};

static char yes, no; /* their addresses are the verdicts */

static bool readable(struct comparison *comparison, const struct eski_avro *reader,
                     const struct eski_avro *writer);

/* --- what is said --- */

static void describe(const struct eski_avro *type, char text[256]) {
    if (type->full_name.size > 0) {
        (void)snprintf(text, 256, "%s %.*s", eski_avro_kind_names[type->kind],
                       type->full_name.size > 200 ? 200 : (int)type->full_name.size,
                       (const char *)type->full_name.data);
    } else {
        (void)snprintf(text, 256, "%s", eski_avro_kind_names[type->kind]);
    }
}

/* Where in the schema: a path in quotes, or the schema itself. */
static void place(const struct comparison *comparison, char text[256]) {
    const struct esk_buffer *path = &comparison->path;
    if (path->size == 0) {
        (void)snprintf(text, 256, "the schema");
        return;
    }
    (void)snprintf(text, 256, "'%.*s'", path->size > 250 ? 250 : (int)path->size,
                   (const char *)path->data);
}

__attribute__((noinline)) static bool changed(struct comparison *comparison,
                                              const struct eski_avro *reader,
                                              const struct eski_avro *writer) {
    char where[256];
    char from[256];
    char to[256];
    if (comparison->silent == 0) {
        describe(writer, from);
        describe(reader, to);
        place(comparison, where);
        (void)eski_incompatible(comparison->error, "type of %s changes from %s to %s", where, from,
                                to);
    }
    return false;
}

__attribute__((noinline)) static bool about(struct comparison *comparison, const char *format,
                                            struct esk_slice name) {
    if (comparison->silent == 0) {
        char text[300];
        (void)snprintf(text, sizeof text, format, name.size > 200 ? 200 : (int)name.size,
                       (const char *)name.data);
        (void)eski_incompatible(comparison->error, "%s", text);
    }
    return false;
}

__attribute__((noinline)) static bool not_taken(struct comparison *comparison,
                                                const struct eski_avro *writer) {
    char where[256];
    char text[256];
    place(comparison, where);
    describe(writer, text);
    (void)eski_incompatible(comparison->error, "%s no longer takes %s", where, text);
    return false;
}

/* --- the rules --- */

static bool readable_below(struct comparison *comparison, struct esk_slice step,
                           const struct eski_avro *reader, const struct eski_avro *writer) {
    size_t size = comparison->path.size;
    if (size > 0 && step.size > 0 && step.data[0] != '[') {
        esk_buffer_u8(&comparison->path, '.');
    }
    esk_buffer_append(&comparison->path, step.data, step.size);
    bool result = readable(comparison, reader, writer);
    comparison->path.size = size;
    return result;
}

static bool promotes(enum eski_avro_kind writer, enum eski_avro_kind reader) {
    switch (writer) {
    case ESKI_AVRO_INT:
        return reader == ESKI_AVRO_LONG || reader == ESKI_AVRO_FLOAT || reader == ESKI_AVRO_DOUBLE;
    case ESKI_AVRO_LONG:
        return reader == ESKI_AVRO_FLOAT || reader == ESKI_AVRO_DOUBLE;
    case ESKI_AVRO_FLOAT:
        return reader == ESKI_AVRO_DOUBLE;
    case ESKI_AVRO_STRING:
        return reader == ESKI_AVRO_BYTES;
    case ESKI_AVRO_BYTES:
        return reader == ESKI_AVRO_STRING;
    default:
        return false;
    }
}

/* Names match without their namespaces, or by an alias of the reader. */
static bool names_match(const struct eski_avro *reader, const struct eski_avro *writer) {
    if (esk_slice_equal(reader->name, writer->name)) {
        return true;
    }
    for (size_t i = 0; i < reader->aliases.count; i++) {
        if (esk_slice_equal(reader->aliases.names[i], writer->full_name)) {
            return true;
        }
    }
    return false;
}

static const struct eski_avro_field *find_field(const struct esk_map *names,
                                                const struct eski_avro_field *field) {
    const struct eski_avro_field *found = esk_map_get(names, field->name);
    for (size_t i = 0; found == NULL && i < field->aliases.count; i++) {
        found = esk_map_get(names, field->aliases.names[i]);
    }
    return found;
}

static bool readable_record(struct comparison *comparison, const struct eski_avro *reader,
                            const struct eski_avro *writer) {
    struct esk_map names;
    bool result = true;
    esk_map_init(&names);
    for (size_t i = 0; i < writer->field_count; i++) {
        esk_map_put(&names, writer->fields[i].name, &writer->fields[i]);
    }
    for (size_t i = 0; result && i < reader->field_count; i++) {
        const struct eski_avro_field *field = &reader->fields[i];
        const struct eski_avro_field *written = find_field(&names, field);
        if (written != NULL) {
            result = readable_below(comparison, field->name, field->type, written->type);
        } else if (!field->has_default) {
            struct esk_slice name = field->name;
            size_t size = comparison->path.size;
            if (size > 0) {
                esk_buffer_u8(&comparison->path, '.');
            }
            esk_buffer_append(&comparison->path, name.data, name.size);
            result = about(comparison, "new schema adds field '%.*s' without a default",
                           esk_buffer_slice(&comparison->path));
            comparison->path.size = size;
        }
    }
    esk_map_fini(&names);
    return result;
}

static bool readable_enum(struct comparison *comparison, const struct eski_avro *reader,
                          const struct eski_avro *writer) {
    if (reader->default_symbol.size > 0) {
        return true;
    }
    struct esk_map symbols;
    bool result = true;
    esk_map_init(&symbols);
    for (size_t i = 0; i < reader->symbols.count; i++) {
        esk_map_put(&symbols, reader->symbols.names[i], &symbols);
    }
    for (size_t i = 0; result && i < writer->symbols.count; i++) {
        if (esk_map_get(&symbols, writer->symbols.names[i]) == NULL) {
            result = about(comparison, "new schema removes the enum symbol '%.*s'",
                           writer->symbols.names[i]);
        }
    }
    esk_map_fini(&symbols);
    return result;
}

static bool readable_named(struct comparison *comparison, const struct eski_avro *reader,
                           const struct eski_avro *writer) {
    const void *const pair[2] = {reader, writer};
    const struct esk_slice key = esk_slice(pair, sizeof pair);
    void *verdict = esk_map_get(&comparison->verdicts, key);
    if (verdict == &yes || (verdict == &no && comparison->silent > 0)) {
        return verdict == &yes;
    }
    if (!names_match(reader, writer)) {
        return changed(comparison, reader, writer);
    }
    esk_map_put(&comparison->verdicts, key, &yes);
    bool result;
    if (reader->kind == ESKI_AVRO_RECORD) {
        result = readable_record(comparison, reader, writer);
    } else if (reader->kind == ESKI_AVRO_ENUM) {
        result = readable_enum(comparison, reader, writer);
    } else {
        result = reader->size_bytes == writer->size_bytes ||
                 about(comparison, "fixed '%.*s' changes its size", writer->full_name);
    }
    esk_map_put(&comparison->verdicts, key, result ? &yes : &no);
    return result;
}

static bool readable_union(struct comparison *comparison, const struct eski_avro *reader,
                           const struct eski_avro *writer) {
    if (writer->kind == ESKI_AVRO_UNION) {
        for (size_t i = 0; i < writer->branch_count; i++) {
            if (!readable(comparison, reader, writer->branches[i])) {
                return false;
            }
        }
        return true;
    }
    bool found = false;
    comparison->silent++;
    for (size_t i = 0; !found && i < reader->branch_count; i++) {
        found = readable(comparison, reader->branches[i], writer);
    }
    comparison->silent--;
    if (found || comparison->silent > 0) {
        return found;
    }
    /* A branch of the same name says best what is wrong. */
    for (size_t i = 0; writer->full_name.size > 0 && i < reader->branch_count; i++) {
        if (reader->branches[i]->kind == writer->kind && names_match(reader->branches[i], writer)) {
            return readable(comparison, reader->branches[i], writer);
        }
    }
    return not_taken(comparison, writer);
}

static bool compare(struct comparison *comparison, const struct eski_avro *reader,
                    const struct eski_avro *writer) {
    if (reader->kind == ESKI_AVRO_UNION || writer->kind == ESKI_AVRO_UNION) {
        return readable_union(comparison, reader, writer);
    }
    if (reader->kind != writer->kind) {
        return promotes(writer->kind, reader->kind) || changed(comparison, reader, writer);
    }
    switch (reader->kind) {
    case ESKI_AVRO_RECORD:
    case ESKI_AVRO_ENUM:
    case ESKI_AVRO_FIXED:
        return readable_named(comparison, reader, writer);
    case ESKI_AVRO_ARRAY:
    case ESKI_AVRO_MAP:
        return readable_below(comparison, esk_slice_text("[]"), reader->element, writer->element);
    default:
        return true;
    }
}

static bool readable(struct comparison *comparison, const struct eski_avro *reader,
                     const struct eski_avro *writer) {
    if (comparison->is_over || ++comparison->pairs > PAIRS_MAX || comparison->depth == DEPTH_MAX) {
        comparison->is_over = true;
        return false;
    }
    comparison->depth++;
    bool result = compare(comparison, reader, writer);
    comparison->depth--;
    return result;
}

enum esk_err eski_avro_backward(struct esk_slice newer, struct esk_slice older,
                                struct esk_error *error) {
    struct eski_avro_schema reader;
    struct eski_avro_schema writer;
    struct comparison comparison = {.error = error};
    enum esk_err err = eski_avro_init(&reader, newer, error);
    enum esk_err older_err = eski_avro_init(&writer, older, err ? NULL : error);
    err = err ? err : older_err;
    esk_map_init(&comparison.verdicts);
    esk_buffer_init(&comparison.path);
    if (err == ESK_OK && !readable(&comparison, reader.root, writer.root)) {
        err = comparison.is_over ? esk_fail(error, ESK_ERR_INVALID,
                                            "schema: its types are too entangled to compare")
                                 : ESK_ERR_CONFLICT;
    }
    esk_buffer_fini(&comparison.path);
    esk_map_fini(&comparison.verdicts);
    eski_avro_fini(&reader);
    eski_avro_fini(&writer);
    return err;
}
