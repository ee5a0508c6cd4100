/* SPDX-License-Identifier: Apache-2.0 */
/* Random pairs of schemas, each against a model that is naive enough to be seen to be right. A pair
 * often shares most of its fields, so that both verdicts come up. */
#include "schema/schema_testing.h"

#define ROUNDS 3000
#define NAMES 5

static uint32_t state_of_random;

static uint32_t draw(uint32_t below) {
    state_of_random = state_of_random * 1664525u + 1013904223u;
    return (state_of_random >> 8) % below;
}

static enum esk_err compare(enum esk_schema_type type, const struct esk_buffer *newer,
                            const struct esk_buffer *older) {
    struct esk_error error = {0};
    enum esk_err err =
        esk_schema_backward(type, esk_buffer_slice(newer), esk_buffer_slice(older), &error);
    if (err == ESK_ERR_INVALID) {
        fail_msg("%s: %.*s", error.text, (int)newer->size, newer->data);
    }
    return err;
}

/* What the model says, and that each reads itself. */
static void check(enum esk_schema_type type, const struct esk_buffer *newer,
                  const struct esk_buffer *older, bool readable, unsigned seen[2]) {
    enum esk_err err = compare(type, newer, older);
    if ((err == ESK_OK) != readable) {
        fail_msg("expected %d: %.*s after %.*s", readable, (int)newer->size, newer->data,
                 (int)older->size, older->data);
    }
    assert_int_equal(compare(type, newer, newer), ESK_OK);
    seen[readable]++;
}

/* --- JSON Schema: objects within objects --- */

struct object {
    bool has[NAMES], needs[NAMES];
    struct object *below[NAMES]; /* of a property; NULL: a string */
};

static struct object *draw_object(unsigned depth, const struct object *like) {
    struct object *object = esk_alloc_zeroed(1, sizeof *object);
    for (unsigned i = 0; i < NAMES; i++) {
        bool keep = like != NULL && draw(20) > 0;
        object->has[i] = keep ? like->has[i] : draw(2) > 0;
        object->needs[i] = keep ? like->needs[i] : draw(3) == 0;
        const struct object *old = like != NULL && like->has[i] ? like->below[i] : NULL;
        if (object->has[i] && depth > 0 && (old != NULL || draw(4) == 0)) {
            object->below[i] = draw_object(depth - 1, old);
        }
    }
    return object;
}

static void free_object(struct object *object) {
    for (unsigned i = 0; object != NULL && i < NAMES; i++) {
        free_object(object->below[i]);
    }
    free(object);
}

static void write_object(struct esk_buffer *out, const struct object *object) {
    const char *comma = "";
    esk_buffer_append_text(out, "{\"properties\":{");
    for (unsigned i = 0; i < NAMES; i++) {
        if (object->has[i]) {
            esk_buffer_format(out, "%s\"p%u\":", comma, i);
            comma = ",";
            if (object->below[i] != NULL) {
                write_object(out, object->below[i]);
            } else {
                esk_buffer_append_text(out, "{\"type\":\"string\"}");
            }
        }
    }
    esk_buffer_append_text(out, "},\"required\":[");
    comma = "";
    for (unsigned i = 0; i < NAMES; i++) {
        if (object->needs[i]) {
            esk_buffer_format(out, "%s\"p%u\"", comma, i);
            comma = ",";
        }
    }
    esk_buffer_append_text(out, "]}");
}

static bool object_readable(const struct object *newer, const struct object *older) {
    static const struct object nothing;
    newer = newer != NULL ? newer : &nothing;
    older = older != NULL ? older : &nothing;
    for (unsigned i = 0; i < NAMES; i++) {
        if ((newer->needs[i] && !older->needs[i]) || (older->has[i] && !newer->has[i]) ||
            (older->has[i] && newer->has[i] &&
             !object_readable(newer->below[i], older->below[i]))) {
            return false;
        }
    }
    return true;
}

static void json_schema_agrees_with_a_model(void **state) {
    (void)state;
    unsigned seen[2] = {0};
    state_of_random = 1;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct object *older = draw_object(3, NULL);
        struct object *newer = draw_object(3, older);
        struct esk_buffer texts[2];
        esk_buffer_init(&texts[0]);
        esk_buffer_init(&texts[1]);
        write_object(&texts[0], newer);
        write_object(&texts[1], older);
        check(ESK_SCHEMA_JSON, &texts[0], &texts[1], object_readable(newer, older), seen);
        esk_buffer_fini(&texts[0]);
        esk_buffer_fini(&texts[1]);
        free_object(older);
        free_object(newer);
    }
    assert_true(seen[0] > ROUNDS / 20 && seen[1] > ROUNDS / 20);
}

/* --- Avro and protobuf: fields with scalar types --- */

struct fields {
    bool has[NAMES];
    bool has_default[NAMES]; /* protobuf: is not required */
    unsigned type[NAMES];
};

static struct fields draw_fields(unsigned types, const struct fields *like) {
    struct fields fields;
    for (unsigned i = 0; i < NAMES; i++) {
        bool keep = like != NULL && draw(12) > 0;
        fields.has[i] = keep ? like->has[i] : draw(2) > 0;
        fields.has_default[i] = keep ? like->has_default[i] : draw(2) > 0;
        fields.type[i] = keep ? like->type[i] : draw(types);
    }
    return fields;
}

static const char *const avro_types[] = {"int", "long", "float", "double", "string", "bytes"};
static const char *const avro_defaults[] = {"1", "1", "1", "1", "\"a\"", "\"a\""};
/* Rows: written; columns: read. */
static const bool avro_reads[6][6] = {
    {1, 1, 1, 1, 0, 0}, {0, 1, 1, 1, 0, 0}, {0, 0, 1, 1, 0, 0},
    {0, 0, 0, 1, 0, 0}, {0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 1, 1},
};

static void write_avro(struct esk_buffer *out, const struct fields *fields) {
    const char *comma = "";
    esk_buffer_append_text(out, "{\"type\":\"record\",\"name\":\"R\",\"fields\":[");
    for (unsigned i = 0; i < NAMES; i++) {
        if (fields->has[i]) {
            esk_buffer_format(out, "%s{\"name\":\"f%u\",\"type\":\"%s\"", comma, i,
                              avro_types[fields->type[i]]);
            if (fields->has_default[i]) {
                esk_buffer_format(out, ",\"default\":%s", avro_defaults[fields->type[i]]);
            }
            esk_buffer_append_text(out, "}");
            comma = ",";
        }
    }
    esk_buffer_append_text(out, "]}");
}

static bool avro_readable(const struct fields *newer, const struct fields *older) {
    for (unsigned i = 0; i < NAMES; i++) {
        if (newer->has[i] && (older->has[i] ? !avro_reads[older->type[i]][newer->type[i]]
                                            : !newer->has_default[i])) {
            return false;
        }
    }
    return true;
}

static const char *const proto_types[] = {"int32",   "bool",     "sint64", "fixed32",
                                          "fixed64", "sfixed32", "string", "bytes"};
static const unsigned proto_groups[] = {0, 0, 1, 2, 3, 2, 4, 4};

static void write_proto(struct esk_buffer *out, const struct fields *fields) {
    esk_buffer_append_text(out, "syntax = \"proto2\"; message M {");
    for (unsigned i = 0; i < NAMES; i++) {
        if (fields->has[i]) {
            esk_buffer_format(out, " %s %s f%u = %u;",
                              fields->has_default[i] ? "optional" : "required",
                              proto_types[fields->type[i]], i, i + 1);
        }
    }
    esk_buffer_append_text(out, " }");
}

static bool proto_readable(const struct fields *newer, const struct fields *older) {
    for (unsigned i = 0; i < NAMES; i++) {
        bool both = newer->has[i] && older->has[i];
        if ((both && proto_groups[newer->type[i]] != proto_groups[older->type[i]]) ||
            (newer->has[i] && !newer->has_default[i] &&
             !(older->has[i] && !older->has_default[i]))) {
            return false;
        }
    }
    return true;
}

static void run_fields(enum esk_schema_type type, unsigned types,
                       void (*write)(struct esk_buffer *out, const struct fields *fields),
                       bool (*readable)(const struct fields *newer, const struct fields *older)) {
    unsigned seen[2] = {0};
    state_of_random = 2;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct fields older = draw_fields(types, NULL);
        struct fields newer = draw_fields(types, &older);
        struct esk_buffer texts[2];
        esk_buffer_init(&texts[0]);
        esk_buffer_init(&texts[1]);
        write(&texts[0], &newer);
        write(&texts[1], &older);
        check(type, &texts[0], &texts[1], readable(&newer, &older), seen);
        esk_buffer_fini(&texts[0]);
        esk_buffer_fini(&texts[1]);
    }
    assert_true(seen[0] > ROUNDS / 20 && seen[1] > ROUNDS / 20);
}

static void avro_agrees_with_a_model(void **state) {
    (void)state;
    run_fields(ESK_SCHEMA_AVRO, 6, write_avro, avro_readable);
}

static void protobuf_agrees_with_a_model(void **state) {
    (void)state;
    run_fields(ESK_SCHEMA_PROTOBUF, 8, write_proto, proto_readable);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_schema_agrees_with_a_model),
        cmocka_unit_test(avro_agrees_with_a_model),
        cmocka_unit_test(protobuf_agrees_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
