/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Schema: two rules, on the root and below it. A new version must not add required fields or
 * remove properties. "Below" follows properties, items and additionalProperties, through allOf and
 * references within the document. Pairs of objects wait in a queue, and each is compared once,
 * which ends cycles; nothing recurses, however long a chain of references is. */
#include "base/map.h"
#include "schema/schema_private.h"

#include <stdio.h>
#include <stdlib.h>

#define REFERENCES_MAX 64  /* one after the other */
#define PAIRS_MAX 1000000  /* compared at all: about a second */
#define PATH_BYTES_MAX 400 /* shown of it: an error has 511 bytes */
#define PATHS_BYTES_MAX (128u << 20)
#define MEMBERS_MAX 1000   /* of allOf, taken together */
#define WORK_MAX 100000000 /* fields looked at for references and keywords: about a second */

/* Two objects at one place; "a.b." is where. */
struct pair {
    struct esk_json_value newer, older;
    struct esk_slice path;
};

struct comparison {
    const struct esk_json_value *roots[2]; /* newer, older */
    struct esk_map seen;
    struct pair *pairs;
    size_t count, capacity;
    struct esk_arena paths;
    struct esk_slice path; /* of the present pair */
    uint64_t work;
    struct esk_error *error;
};

/* What an object demands and describes, its allOf included. */
struct shape {
    struct esk_slice *required;
    size_t required_count, required_capacity;
    struct property {
        struct esk_slice name;
        struct esk_json_value schema;
    } * properties;
    size_t property_count, property_capacity;
    struct esk_map names; /* property -> its index + 1 */
    struct esk_map needs;
    unsigned members;
    struct esk_json_value items, additional; /* null: none */
};

static void shape_init(struct shape *shape) {
    memset(shape, 0, sizeof *shape);
    esk_map_init(&shape->names);
    esk_map_init(&shape->needs);
}

static void shape_fini(struct shape *shape) {
    free(shape->required);
    free(shape->properties);
    esk_map_fini(&shape->names);
    esk_map_fini(&shape->needs);
}

/* One step of a JSON pointer: "~1" is "/", "~0" is "~", "%41" is "A". */
static struct esk_slice unescape(struct esk_slice step, uint8_t *to) {
    size_t size = 0;
    for (size_t i = 0; i < step.size; i++) {
        uint8_t c = step.data[i];
        unsigned high;
        if (c == '~' && i + 1 < step.size && (step.data[i + 1] == '0' || step.data[i + 1] == '1')) {
            c = step.data[++i] == '0' ? '~' : '/';
        } else if (c == '%' && i + 2 < step.size) {
            const char digits[3] = {(char)step.data[i + 1], (char)step.data[i + 2], 0};
            char *end;
            high = (unsigned)strtoul(digits, &end, 16);
            if (end == digits + 2) {
                c = (uint8_t)high;
                i += 2;
            }
        }
        to[size++] = c;
    }
    return esk_slice(to, size);
}

static bool step_into(struct comparison *comparison, struct esk_json_value *value,
                      struct esk_slice step) {
    struct esk_json_value found;
    comparison->work += esk_json_count(value);
    if (value->type == ESK_JSON_OBJECT) {
        if (!eski_json_find(value, step, &found)) {
            return false;
        }
        *value = found;
        return true;
    }
    struct esk_json_iterator iterator = esk_json_each(value);
    size_t index = 0;
    for (size_t i = 0; i < step.size; i++) {
        if (step.data[i] < '0' || step.data[i] > '9' || index > 10000000) {
            return false;
        }
        index = index * 10 + (size_t)(step.data[i] - '0');
    }
    while (value->type == ESK_JSON_ARRAY && esk_json_next_element(&iterator, &found)) {
        if (index-- == 0) {
            *value = found;
            return true;
        }
    }
    return false;
}

/* "#/definitions/address"; false: not within this document, or nothing there. */
static bool follow(struct comparison *comparison, unsigned side, struct esk_slice reference,
                   struct esk_json_value *target) {
    if (reference.size == 0 || reference.data[0] != '#' ||
        (reference.size > 1 && reference.data[1] != '/')) {
        return false;
    }
    *target = *comparison->roots[side];
    uint8_t *scratch = esk_alloc(reference.size);
    bool found = true;
    size_t at = 1;
    while (found && at < reference.size) {
        size_t begin = ++at;
        while (at < reference.size && reference.data[at] != '/') {
            at++;
        }
        found = comparison->work < WORK_MAX &&
                step_into(comparison, target,
                          unescape(esk_slice(reference.data + begin, at - begin), scratch));
    }
    free(scratch);
    return found;
}

/* Where references lead; the last one that leads somewhere. */
static struct esk_json_value resolve(struct comparison *comparison, unsigned side,
                                     const struct esk_json_value *schema) {
    struct esk_json_value at = *schema;
    struct esk_json_value reference;
    struct esk_json_value target;
    for (unsigned i = 0; i < REFERENCES_MAX && at.type == ESK_JSON_OBJECT; i++) {
        if (!esk_json_find(&at, "$ref", &reference) || reference.type != ESK_JSON_STRING ||
            !follow(comparison, side, reference.string, &target)) {
            break;
        }
        at = target;
    }
    return at;
}

static void add_required(struct shape *shape, const struct esk_json_value *list) {
    struct esk_json_iterator iterator = esk_json_each(list);
    struct esk_json_value element;
    while (esk_json_next_element(&iterator, &element)) {
        if (shape->required_count == shape->required_capacity) {
            shape->required_capacity = shape->required_capacity ? 2 * shape->required_capacity : 16;
            shape->required =
                esk_realloc(shape->required, shape->required_capacity * sizeof *shape->required);
        }
        shape->required[shape->required_count++] = element.string;
        esk_map_put(&shape->needs, element.string, shape);
    }
}

static void add_properties(struct shape *shape, const struct esk_json_value *object) {
    struct esk_json_iterator iterator = esk_json_each(object);
    struct property property;
    while (esk_json_next_field(&iterator, &property.name, &property.schema)) {
        if (esk_map_get(&shape->names, property.name) != NULL) {
            continue; /* twice by way of allOf: the first counts */
        }
        if (shape->property_count == shape->property_capacity) {
            shape->property_capacity = shape->property_capacity ? 2 * shape->property_capacity : 16;
            shape->properties = esk_realloc(shape->properties,
                                            shape->property_capacity * sizeof *shape->properties);
        }
        shape->properties[shape->property_count++] = property;
        esk_map_put(&shape->names, property.name, (void *)shape->property_count);
    }
}

/* `schema` is resolved already. */
static void gather(struct comparison *comparison, unsigned side, struct shape *shape,
                   const struct esk_json_value *schema) {
    struct esk_json_value value;
    comparison->work += esk_json_count(schema);
    if (esk_json_find(schema, "required", &value)) {
        add_required(shape, &value);
    }
    if (esk_json_find(schema, "properties", &value)) {
        add_properties(shape, &value);
    }
    if (shape->items.type == ESK_JSON_NULL && esk_json_find(schema, "items", &value)) {
        shape->items = value;
    }
    if (shape->additional.type == ESK_JSON_NULL &&
        esk_json_find(schema, "additionalProperties", &value)) {
        shape->additional = value;
    }
    if (esk_json_find(schema, "allOf", &value)) {
        struct esk_json_iterator iterator = esk_json_each(&value);
        struct esk_json_value element;
        while (shape->members < MEMBERS_MAX && esk_json_next_element(&iterator, &element)) {
            shape->members++;
            element = resolve(comparison, side, &element);
            gather(comparison, side, shape, &element);
        }
    }
}

static enum esk_err refuse(const struct comparison *comparison, const char *what,
                           struct esk_slice name) {
    return eski_incompatible(comparison->error, "new schema %s '%.*s%.*s'", what,
                             (int)comparison->path.size, (const char *)comparison->path.data,
                             (int)name.size, (const char *)name.data);
}

static enum esk_err entangled(const struct comparison *comparison) {
    return esk_fail(comparison->error, ESK_ERR_INVALID,
                    "schema: its references are too entangled to compare");
}

static enum esk_err add_pair(struct comparison *comparison, const struct pair *pair) {
    const uintptr_t identity[4] = {pair->newer.container[0], pair->newer.container[1],
                                   pair->older.container[0], pair->older.container[1]};
    if (esk_map_put(&comparison->seen, esk_slice(identity, sizeof identity), comparison) != NULL) {
        return ESK_OK;
    }
    if (comparison->count == PAIRS_MAX || comparison->work >= WORK_MAX) {
        return entangled(comparison);
    }
    if (comparison->count == comparison->capacity) {
        comparison->capacity = comparison->capacity ? 2 * comparison->capacity : 64;
        comparison->pairs =
            esk_realloc(comparison->pairs, comparison->capacity * sizeof *comparison->pairs);
    }
    struct pair *added = &comparison->pairs[comparison->count++];
    *added = *pair;
    added->path = esk_arena_copy(&comparison->paths, pair->path);
    return added->path.data != NULL ? ESK_OK : entangled(comparison);
}

/* Tuples go element by element; what is no pair of objects is passed over. */
static enum esk_err add(struct comparison *comparison, struct esk_slice path,
                        const struct esk_json_value *newer, const struct esk_json_value *older) {
    if (newer->type == ESK_JSON_ARRAY && older->type == ESK_JSON_ARRAY) {
        struct esk_json_iterator iterators[2] = {esk_json_each(newer), esk_json_each(older)};
        struct esk_json_value elements[2];
        enum esk_err err = ESK_OK;
        while (err == ESK_OK && esk_json_next_element(&iterators[0], &elements[0]) &&
               esk_json_next_element(&iterators[1], &elements[1])) {
            err = add(comparison, path, &elements[0], &elements[1]);
        }
        return err;
    }
    const struct pair pair = {resolve(comparison, 0, newer), resolve(comparison, 1, older), path};
    return pair.newer.type == ESK_JSON_OBJECT && pair.older.type == ESK_JSON_OBJECT
               ? add_pair(comparison, &pair)
               : ESK_OK;
}

/* What is below the present pair, at its path, `name` and `suffix`. */
static enum esk_err add_below(struct comparison *comparison, struct esk_slice name,
                              const char *suffix, const struct esk_json_value *newer,
                              const struct esk_json_value *older) {
    char path[PATH_BYTES_MAX];
    size_t prefix = comparison->path.size;
    if (name.size == 0 && prefix > 0) { /* "a." becomes "a[]." */
        prefix--;
    }
    int size =
        snprintf(path, sizeof path, "%.*s%.*s%s", (int)prefix, (const char *)comparison->path.data,
                 name.size > sizeof path ? (int)sizeof path : (int)name.size,
                 (const char *)name.data, suffix);
    return add(comparison,
               esk_slice(path, (size_t)size < sizeof path ? (size_t)size : sizeof path - 1), newer,
               older);
}

static enum esk_err compare_shapes(struct comparison *comparison, const struct shape *newer,
                                   const struct shape *older) {
    const struct esk_slice nothing = esk_slice("", 0);
    enum esk_err err = ESK_OK;
    for (size_t i = 0; i < newer->required_count; i++) {
        if (esk_map_get(&older->needs, newer->required[i]) == NULL) {
            return refuse(comparison, "adds required field", newer->required[i]);
        }
    }
    for (size_t i = 0; i < older->property_count; i++) {
        if (esk_map_get(&newer->names, older->properties[i].name) == NULL) {
            return refuse(comparison, "removes property", older->properties[i].name);
        }
    }
    for (size_t i = 0; err == ESK_OK && i < older->property_count; i++) {
        const struct property *property = &older->properties[i];
        size_t index = (size_t)esk_map_get(&newer->names, property->name);
        err = add_below(comparison, property->name, ".", &newer->properties[index - 1].schema,
                        &property->schema);
    }
    if (err == ESK_OK) {
        err = add_below(comparison, nothing, "[].", &newer->items, &older->items);
    }
    if (err == ESK_OK) {
        err = add_below(comparison, nothing, ".*.", &newer->additional, &older->additional);
    }
    return err;
}

static enum esk_err compare(struct comparison *comparison, const struct pair *pair) {
    struct shape shapes[2];
    shape_init(&shapes[0]);
    shape_init(&shapes[1]);
    gather(comparison, 0, &shapes[0], &pair->newer);
    gather(comparison, 1, &shapes[1], &pair->older);
    comparison->path = pair->path;
    enum esk_err err = compare_shapes(comparison, &shapes[0], &shapes[1]);
    shape_fini(&shapes[0]);
    shape_fini(&shapes[1]);
    return err;
}

static enum esk_err compare_all(struct comparison *comparison) {
    enum esk_err err =
        add(comparison, esk_slice("", 0), comparison->roots[0], comparison->roots[1]);
    for (size_t i = 0; err == ESK_OK && i < comparison->count; i++) {
        const struct pair pair = comparison->pairs[i]; /* the array may move */
        err = compare(comparison, &pair);
    }
    return err;
}

enum esk_err eski_json_schema_backward(struct esk_slice newer, struct esk_slice older,
                                       struct esk_error *error) {
    struct eski_json_text texts[2];
    enum esk_err err = eski_json_text_init(&texts[0], newer, error);
    enum esk_err older_err = eski_json_text_init(&texts[1], older, err ? NULL : error);
    err = err ? err : older_err;
    if (err == ESK_OK) {
        err = eski_json_schema_check(&texts[0].root, error);
    }
    if (err == ESK_OK) {
        err = eski_json_schema_check(&texts[1].root, error);
    }
    struct comparison comparison = {.roots = {&texts[0].root, &texts[1].root}, .error = error};
    esk_map_init(&comparison.seen);
    esk_arena_init(&comparison.paths, PATHS_BYTES_MAX);
    if (err == ESK_OK) {
        err = compare_all(&comparison);
    }
    esk_arena_fini(&comparison.paths);
    free(comparison.pairs);
    esk_map_fini(&comparison.seen);
    eski_json_text_fini(&texts[0]);
    eski_json_text_fini(&texts[1]);
    return err;
}
