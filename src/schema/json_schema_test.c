/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema_testing.h"

#include <stdio.h>

#define OBJECT(properties, required)                                                               \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define TEXT "{\"type\":\"string\"}"

static const struct pair pairs[] = {
    /* the page's own */
    {OBJECT("\"id\":{\"type\":\"integer\"}", "\"id\""),
     OBJECT("\"id\":{\"type\":\"integer\"},\"phone\":" TEXT, "\"id\",\"phone\""),
     "new schema adds required field 'phone'"},
    {OBJECT("\"id\":" TEXT ",\"phone\":" TEXT, ""), OBJECT("\"id\":" TEXT, ""),
     "new schema removes property 'phone'"},
    {OBJECT("\"id\":" TEXT, "\"id\""), OBJECT("\"id\":" TEXT ",\"phone\":" TEXT, "\"id\""), NULL},
    {OBJECT("\"id\":" TEXT, "\"id\""), OBJECT("\"id\":" TEXT, ""), NULL},
    {OBJECT("\"id\":" TEXT, ""), OBJECT("\"id\":" TEXT, "\"id\""),
     "new schema adds required field 'id'"},
    /* below the root */
    {OBJECT("\"a\":" OBJECT("\"b\":" TEXT, ""), ""),
     OBJECT("\"a\":" OBJECT("\"b\":" TEXT ",\"phone\":" TEXT, "\"phone\""), ""),
     "new schema adds required field 'a.phone'"},
    {OBJECT("\"a\":" OBJECT("\"b\":" OBJECT("\"c\":" TEXT, ""), ""), ""),
     OBJECT("\"a\":" OBJECT("\"b\":" OBJECT("", ""), ""), ""),
     "new schema removes property 'a.b.c'"},
    {OBJECT("\"a\":{\"items\":" OBJECT("\"b\":" TEXT, "") "}", ""),
     OBJECT("\"a\":{\"items\":" OBJECT("", "") "}", ""), "new schema removes property 'a[].b'"},
    {"{\"items\":" OBJECT("\"b\":" TEXT, "") "}", "{\"items\":" OBJECT("", "") "}",
     "new schema removes property '[].b'"},
    {"{\"additionalProperties\":" OBJECT("\"b\":" TEXT, "") "}",
     "{\"additionalProperties\":" OBJECT("", "") "}", "new schema removes property '.*.b'"},
    /* by reference, from inline to reference, and in a cycle */
    {"{\"$defs\":{\"n\":" OBJECT("\"v\":" TEXT, "") "},\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
                                                    "n\"}}}",
     "{\"$defs\":{\"n\":" OBJECT("", "") "},\"properties\":{\"a\":{\"$ref\":\"#/$defs/n\"}}}",
     "new schema removes property 'a.v'"},
    {OBJECT("\"a\":" OBJECT("\"v\":" TEXT, ""), ""),
     "{\"definitions\":{\"x/y\":" OBJECT(
         "\"v\":" TEXT ",\"w\":" TEXT,
         "\"w\"") "},\"properties\":{\"a\":{\"$ref\":\"#/definitions/x~1y\"}}}",
     "new schema adds required field 'a.w'"},
    {"{\"properties\":{\"next\":{\"$ref\":\"#\"},\"v\":" TEXT "}}",
     "{\"properties\":{\"next\":{\"$ref\":\"#\"},\"v\":" TEXT ",\"w\":" TEXT "}}", NULL},
    {"{\"$ref\":\"#/$ref\"}", "{\"$ref\":\"#\"}", NULL},
    {"{\"properties\":{\"a\":{\"$ref\":\"#/none\"}}}", OBJECT("\"a\":" TEXT, ""), NULL},
    /* allOf counts as its members together */
    {"{\"allOf\":[" OBJECT("\"a\":" TEXT, "\"a\"") "]}", OBJECT("\"a\":" TEXT, "\"a\""), NULL},
    {OBJECT("\"a\":" TEXT, ""), "{\"allOf\":[" OBJECT("\"a\":" TEXT ",\"b\":" TEXT, "\"b\"") "]}",
     "new schema adds required field 'b'"},
    {"true", OBJECT("\"a\":" TEXT, "\"a\""), NULL},
};

static void rules(void **state) {
    (void)state;
    check_pairs(ESK_SCHEMA_JSON, pairs, sizeof pairs / sizeof pairs[0]);
}

static void itself_is_compatible(void **state) {
    (void)state;
    check_reflexive(ESK_SCHEMA_JSON, pairs, sizeof pairs / sizeof pairs[0]);
}

static void what_is_no_schema_is_refused(void **state) {
    (void)state;
    check_refused(ESK_SCHEMA_JSON, "{\"type\"}", "schema: invalid JSON at byte 7: expected ':'");
    check_refused(ESK_SCHEMA_JSON, "[]", "schema must be an object, not array");
    check_refused(ESK_SCHEMA_JSON, "{\"required\":true}",
                  "schema: 'required' must be an array of strings");
    check_refused(ESK_SCHEMA_JSON, "{\"properties\":{\"a\":1}}",
                  "schema: 'properties' must be made of schemas: objects or booleans");
    check_refused(ESK_SCHEMA_JSON, "{\"properties\":[]}",
                  "schema: 'properties' must be an object of schemas");
    check_refused(ESK_SCHEMA_JSON, "{\"items\":{\"type\":\"text\"}}",
                  "schema: 'type' must be null, boolean, object, array, integer, number or string, "
                  "or an array of them");
}

static void equal_as_json(void **state) {
    (void)state;
    check_same(ESK_SCHEMA_JSON, "{\"type\":\"object\",\"required\":[\"a\"]}",
               " { \"required\" : [ \"a\" ], \"type\":\"\\u006fbject\" } ", true);
    check_same(ESK_SCHEMA_JSON, "{\"minimum\":1.0}", "{\"minimum\":1}", true);
    check_same(ESK_SCHEMA_JSON, "{\"minimum\":1e3}", "{\"minimum\":1000}", true);
    check_same(ESK_SCHEMA_JSON, "{\"minimum\":1.5}", "{\"minimum\":1}", false);
    check_same(ESK_SCHEMA_JSON, "{\"required\":[\"a\",\"b\"]}", "{\"required\":[\"b\",\"a\"]}",
               false);
}

/* References that fan out at every step would take 2^30 comparisons without a memory of pairs. */
static void shared_references_are_compared_once(void **state) {
    (void)state;
    struct esk_buffer text;
    esk_buffer_init(&text);
    esk_buffer_append_text(&text, "{\"$defs\":{");
    for (unsigned i = 0; i < 30; i++) {
        esk_buffer_format(&text,
                          "\"d%u\":{\"properties\":{\"a\":{\"$ref\":\"#/$defs/d%u\"},\"b\":{"
                          "\"$ref\":\"#/$defs/d%u\"}}},",
                          i, i + 1, i + 1);
    }
    esk_buffer_append_text(&text,
                           "\"d30\":{\"properties\":{\"v\":true}}},\"$ref\":\"#/$defs/d0\"}");
    struct esk_error error = {0};
    assert_int_equal(esk_schema_backward(ESK_SCHEMA_JSON, esk_buffer_slice(&text),
                                         esk_buffer_slice(&text), &error),
                     ESK_OK);
    esk_buffer_fini(&text);
}

static void chain_of_references(struct esk_buffer *text, const char *end) {
    esk_buffer_append_text(text, "{\"$defs\":{");
    for (unsigned i = 0; i < 3000; i++) {
        esk_buffer_format(text, "\"d%u\":{\"properties\":{\"n\":{\"$ref\":\"#/$defs/d%u\"}}},", i,
                          i + 1);
    }
    esk_buffer_format(text, "\"d3000\":{\"properties\":{%s}}},\"$ref\":\"#/$defs/d0\"}", end);
}

static void long_chains_of_references_are_followed(void **state) {
    (void)state;
    struct esk_buffer texts[2];
    struct esk_error error = {0};
    esk_buffer_init(&texts[0]);
    esk_buffer_init(&texts[1]);
    chain_of_references(&texts[0], "\"v\":true");
    chain_of_references(&texts[1], "\"v\":true,\"w\":true");
    assert_int_equal(esk_schema_backward(ESK_SCHEMA_JSON, esk_buffer_slice(&texts[1]),
                                         esk_buffer_slice(&texts[0]), &error),
                     ESK_OK);
    assert_int_equal(esk_schema_backward(ESK_SCHEMA_JSON, esk_buffer_slice(&texts[0]),
                                         esk_buffer_slice(&texts[1]), &error),
                     ESK_ERR_CONFLICT);
    assert_non_null(strstr(error.text, "removes property 'n.n.n."));
    esk_buffer_fini(&texts[0]);
    esk_buffer_fini(&texts[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),
        cmocka_unit_test(itself_is_compatible),
        cmocka_unit_test(what_is_no_schema_is_refused),
        cmocka_unit_test(equal_as_json),
        cmocka_unit_test(shared_references_are_compared_once),
        cmocka_unit_test(long_chains_of_references_are_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
