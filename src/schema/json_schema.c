/* SPDX-License-Identifier: Apache-2.0 */
/* JSON Schema: what is one. The check looks at the shape of the keywords that the comparison relies
 * on; other keywords may say what they like. */
#include "schema/schema_private.h"

/* --- the check --- */

static enum esk_err misshapen(struct esk_error *error, const char *keyword, const char *wanted) {
    return esk_fail(error, ESK_ERR_INVALID, "schema: '%s' must be %s", keyword, wanted);
}

static bool is_type_name(const struct esk_json_value *value) {
    static const char *const names[] = {"null",    "boolean", "object", "array",
                                        "integer", "number",  "string", "any"};
    for (size_t i = 0; value->type == ESK_JSON_STRING && i < sizeof names / sizeof names[0]; i++) {
        if (esk_slice_equal(value->string, esk_slice_text(names[i]))) {
            return true;
        }
    }
    return false;
}

static enum esk_err check_type(const struct esk_json_value *value, struct esk_error *error) {
    static const char wanted[] =
        "null, boolean, object, array, integer, number or string, or an array of them";
    if (value->type != ESK_JSON_ARRAY) {
        return is_type_name(value) ? ESK_OK : misshapen(error, "type", wanted);
    }
    struct esk_json_iterator iterator = esk_json_each(value);
    struct esk_json_value element;
    while (esk_json_next_element(&iterator, &element)) {
        if (!is_type_name(&element) && element.type != ESK_JSON_OBJECT) {
            return misshapen(error, "type", wanted);
        }
    }
    return ESK_OK;
}

static enum esk_err check_required(const struct esk_json_value *value, struct esk_error *error) {
    struct esk_json_iterator iterator = esk_json_each(value);
    struct esk_json_value element;
    if (value->type != ESK_JSON_ARRAY) {
        return misshapen(error, "required", "an array of strings");
    }
    while (esk_json_next_element(&iterator, &element)) {
        if (element.type != ESK_JSON_STRING) {
            return misshapen(error, "required", "an array of strings");
        }
    }
    return ESK_OK;
}

static enum esk_err check_schema(const struct esk_json_value *schema, const char *keyword,
                                 struct esk_error *error);

static enum esk_err check_members(const struct esk_json_value *value, const char *keyword,
                                  enum esk_json_type container, struct esk_error *error) {
    struct esk_json_iterator iterator = esk_json_each(value);
    struct esk_json_value member;
    struct esk_slice key;
    enum esk_err err = ESK_OK;
    if (value->type != container) {
        return misshapen(error, keyword,
                         container == ESK_JSON_OBJECT ? "an object of schemas"
                                                      : "an array of schemas");
    }
    while (err == ESK_OK &&
           (container == ESK_JSON_OBJECT ? esk_json_next_field(&iterator, &key, &member)
                                         : esk_json_next_element(&iterator, &member))) {
        err = check_schema(&member, keyword, error);
    }
    return err;
}

static enum esk_err check_schema(const struct esk_json_value *schema, const char *keyword,
                                 struct esk_error *error) {
    static const char *const maps[] = {"properties", "patternProperties", "definitions", "$defs"};
    static const char *const lists[] = {"allOf", "anyOf", "oneOf", "prefixItems"};
    static const char *const singles[] = {"additionalProperties", "not", "contains"};
    if (schema->type == ESK_JSON_BOOL) {
        return ESK_OK;
    }
    if (schema->type != ESK_JSON_OBJECT) {
        return keyword ? misshapen(error, keyword, "made of schemas: objects or booleans")
                       : esk_fail(error, ESK_ERR_INVALID, "schema must be an object, not %s",
                                  esk_json_type_name(schema->type));
    }
    struct esk_json_value value;
    enum esk_err err = ESK_OK;
    if (esk_json_find(schema, "type", &value)) {
        err = check_type(&value, error);
    }
    if (err == ESK_OK && esk_json_find(schema, "required", &value)) {
        err = check_required(&value, error);
    }
    for (size_t i = 0; err == ESK_OK && i < sizeof maps / sizeof maps[0]; i++) {
        if (esk_json_find(schema, maps[i], &value)) {
            err = check_members(&value, maps[i], ESK_JSON_OBJECT, error);
        }
    }
    for (size_t i = 0; err == ESK_OK && i < sizeof lists / sizeof lists[0]; i++) {
        if (esk_json_find(schema, lists[i], &value)) {
            err = check_members(&value, lists[i], ESK_JSON_ARRAY, error);
        }
    }
    for (size_t i = 0; err == ESK_OK && i < sizeof singles / sizeof singles[0]; i++) {
        if (esk_json_find(schema, singles[i], &value)) {
            err = check_schema(&value, singles[i], error);
        }
    }
    if (err == ESK_OK && esk_json_find(schema, "items", &value)) {
        err = value.type == ESK_JSON_ARRAY ? check_members(&value, "items", ESK_JSON_ARRAY, error)
                                           : check_schema(&value, "items", error);
    }
    return err;
}

enum esk_err eski_json_schema_check(const struct esk_json_value *root, struct esk_error *error) {
    return check_schema(root, NULL, error);
}

enum esk_err eski_json_schema_canonical(struct esk_slice text, struct esk_buffer *canonical,
                                        struct esk_error *error) {
    struct eski_json_text json;
    enum esk_err err = eski_json_text_init(&json, text, error);
    if (err == ESK_OK) {
        err = check_schema(&json.root, NULL, error);
    }
    if (err == ESK_OK) {
        eski_json_canonical(canonical, &json.root);
    }
    eski_json_text_fini(&json);
    return err;
}
