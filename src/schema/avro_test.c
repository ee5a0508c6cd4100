/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema_testing.h"

#include <stdio.h>

#define RECORD(fields) "{\"type\":\"record\",\"name\":\"R\",\"fields\":[" fields "]}"
#define FIELD(name, type) "{\"name\":\"" name "\",\"type\":" type "}"
#define FIELD_OR(name, type, value)                                                                \
    "{\"name\":\"" name "\",\"type\":" type ",\"default\":" value "}"
#define COLOUR(symbols) "{\"type\":\"enum\",\"name\":\"Colour\",\"symbols\":[" symbols "]}"

static const struct pair pairs[] = {
    /* promotions */
    {"\"int\"", "\"long\"", NULL},
    {"\"int\"", "\"float\"", NULL},
    {"\"long\"", "\"double\"", NULL},
    {"\"float\"", "\"double\"", NULL},
    {"\"string\"", "\"bytes\"", NULL},
    {"\"bytes\"", "\"string\"", NULL},
    {"\"long\"", "\"int\"", "type of the schema changes from long to int"},
    {"\"double\"", "\"float\"", "type of the schema changes from double to float"},
    {"{\"type\":\"int\"}", "\"boolean\"", "type of the schema changes from int to boolean"},
    /* records */
    {RECORD(FIELD("a", "\"int\"")), RECORD(FIELD("a", "\"int\"") "," FIELD("b", "\"int\"")),
     "new schema adds field 'b' without a default"},
    {RECORD(FIELD("a", "\"int\"")), RECORD(FIELD("a", "\"int\"") "," FIELD_OR("b", "\"int\"", "7")),
     NULL},
    {RECORD(FIELD("a", "\"int\"") "," FIELD("b", "\"int\"")), RECORD(FIELD("a", "\"int\"")), NULL},
    {RECORD(FIELD("a", "\"int\"")), RECORD(FIELD("a", "\"string\"")),
     "type of 'a' changes from int to string"},
    {RECORD(FIELD("a", "\"int\"")),
     RECORD("{\"name\":\"b\",\"aliases\":[\"a\"],\"type\":\"long\"}"), NULL},
    {RECORD(""), "\"string\"", "type of the schema changes from record R to string"},
    {RECORD(FIELD("x", "{\"type\":\"record\",\"name\":\"n.S\",\"fields\":[]}")),
     RECORD(FIELD("x",
                  "{\"type\":\"record\",\"name\":\"m.S\",\"fields\":[" FIELD("p", "\"int\"") "]}")),
     "new schema adds field 'x.p' without a default"},
    {"{\"type\":\"record\",\"name\":\"Old\",\"fields\":[]}",
     "{\"type\":\"record\",\"name\":\"New\",\"aliases\":[\"Old\"],\"fields\":[]}", NULL},
    {"{\"type\":\"record\",\"name\":\"Old\",\"fields\":[]}",
     "{\"type\":\"record\",\"name\":\"New\",\"fields\":[]}",
     "type of the schema changes from record Old to record New"},
    /* a list that refers to itself */
    {RECORD(FIELD("v", "\"int\"") "," FIELD("next", "[\"null\",\"R\"]")),
     RECORD(FIELD("v", "\"long\"") "," FIELD("next", "[\"null\",\"R\"]")), NULL},
    {RECORD(FIELD("v", "\"int\"") "," FIELD("next", "[\"null\",\"R\"]")),
     RECORD(FIELD("next", "[\"null\",\"R\"]") "," FIELD("v", "\"boolean\"")),
     "type of 'v' changes from int to boolean"},
    /* unions */
    {"\"int\"", "[\"null\",\"int\"]", NULL},
    {"[\"null\",\"int\"]", "[\"long\",\"null\"]", NULL},
    {"[\"int\",\"long\"]", "\"long\"", NULL},
    {"[\"null\",\"int\"]", "\"int\"", "type of the schema changes from null to int"},
    {RECORD(FIELD("a", "[\"null\",\"string\"]")), RECORD(FIELD("a", "[\"null\",\"int\"]")),
     "'a' no longer takes string"},
    {"[" RECORD(FIELD("a", "\"int\"")) "]", "[\"null\"," RECORD(FIELD("b", "\"int\"")) "]",
     "new schema adds field 'b' without a default"},
    /* enums, fixed, containers */
    {COLOUR("\"RED\""), COLOUR("\"RED\",\"BLUE\""), NULL},
    {COLOUR("\"RED\",\"BLUE\""), COLOUR("\"RED\""), "new schema removes the enum symbol 'BLUE'"},
    {COLOUR("\"RED\",\"BLUE\""),
     "{\"type\":\"enum\",\"name\":\"Colour\",\"symbols\":[\"RED\"],\"default\":\"RED\"}", NULL},
    {"{\"type\":\"fixed\",\"name\":\"F\",\"size\":4}",
     "{\"type\":\"fixed\",\"name\":\"F\",\"size\":8}", "fixed 'F' changes its size"},
    {"{\"type\":\"array\",\"items\":\"int\"}", "{\"type\":\"array\",\"items\":\"long\"}", NULL},
    {RECORD(FIELD("m", "{\"type\":\"map\",\"values\":\"int\"}")),
     RECORD(FIELD("m", "{\"type\":\"map\",\"values\":\"string\"}")),
     "type of 'm[]' changes from int to string"},
    {"{\"type\":\"array\",\"items\":\"int\"}", "{\"type\":\"map\",\"values\":\"int\"}",
     "type of the schema changes from array to map"},
};

static void resolution(void **state) {
    (void)state;
    check_pairs(ESK_SCHEMA_AVRO, pairs, sizeof pairs / sizeof pairs[0]);
}

static void itself_is_compatible(void **state) {
    (void)state;
    check_reflexive(ESK_SCHEMA_AVRO, pairs, sizeof pairs / sizeof pairs[0]);
}

static void what_is_no_schema_is_refused(void **state) {
    (void)state;
    static const char *const table[][2] = {
        {"\"strin\"", "schema: unknown type 'strin'"},
        {"7", "schema: a type must be a name, an object or an array, not integer"},
        {"{}", "schema: an object must have a 'type'"},
        {"{\"type\":\"record\",\"fields\":[]}", "schema: a record must have a 'name'"},
        {"{\"type\":\"record\",\"name\":\"R\"}", "schema: no array 'fields' in record 'R'"},
        {"{\"type\":\"record\",\"name\":\"1R\",\"fields\":[]}", "schema: not a name: '1R'"},
        {"{\"type\":\"record\",\"name\":\"int\",\"fields\":[]}",
         "schema: a primitive type's name is taken: 'int'"},
        {RECORD(FIELD("a", "\"int\"") "," FIELD("a", "\"int\"")),
         "schema: a record has two fields 'a'"},
        {RECORD(FIELD_OR("a", "\"int\"", "\"x\"")),
         "schema: the default of field 'a' is not of its type"},
        {RECORD(FIELD_OR("a", "[\"null\",\"string\"]", "5")),
         "schema: the default of field 'a' is not of its type"},
        {RECORD(FIELD_OR("a", "\"int\"", "2147483648")),
         "schema: the default of field 'a' is not of its type"},
        {"[\"int\",\"int\"]", "schema: a union has twice 'int'"},
        {"[[\"int\"],\"null\"]", "schema: a union must not hold another directly"},
        {COLOUR("\"A\",\"A\""), "schema: an enum has twice the symbol 'A'"},
        {"{\"type\":\"array\"}", "schema: no 'items' in array"},
        {"{\"type\":\"fixed\",\"name\":\"F\",\"size\":-1}", "schema: no size from 0 in fixed 'F'"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        check_refused(ESK_SCHEMA_AVRO, table[i][0], table[i][1]);
    }
}

static void defaults_of_every_type_are_taken(void **state) {
    (void)state;
    static const char *const fields[][2] = {
        {"[\"null\",\"int\"]", "null"},
        {"[\"null\",\"int\"]", "3"},
        {"\"bytes\"", "\"\\u00ff\""},
        {"{\"type\":\"fixed\",\"name\":\"F\",\"size\":2}", "\"\\u0000\\u00ff\""},
        {COLOUR("\"RED\""), "\"RED\""},
        {"{\"type\":\"map\",\"values\":\"double\"}", "{\"x\":1}"},
        {"{\"type\":\"array\",\"items\":[\"null\",\"R\"]}", "[null]"},
        {"{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}", "0"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char text[512];
        (void)snprintf(text, sizeof text, RECORD(FIELD_OR("a", "%s", "%s")), fields[i][0],
                       fields[i][1]);
        check_same(ESK_SCHEMA_AVRO, text, text, true);
    }
}

static void long_chains_of_types_are_followed(void **state) {
    (void)state;
    struct esk_buffer text;
    struct esk_error error = {0};
    esk_buffer_init(&text);
    esk_buffer_append_text(&text, "[\"null\"");
    for (unsigned i = 0; i < 600; i++) {
        esk_buffer_format(&text, ",{\"type\":\"record\",\"name\":\"R%u\",\"fields\":[", i);
        if (i > 0) {
            esk_buffer_format(&text, "{\"name\":\"n\",\"type\":[\"null\",\"R%u\"]}", i - 1);
        }
        esk_buffer_append_text(&text, "]}");
    }
    esk_buffer_append_text(&text, "]");
    if (esk_schema_backward(ESK_SCHEMA_AVRO, esk_buffer_slice(&text), esk_buffer_slice(&text),
                            &error)) {
        fail_msg("%s", error.text);
    }
    esk_buffer_fini(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resolution),
        cmocka_unit_test(itself_is_compatible),
        cmocka_unit_test(what_is_no_schema_is_refused),
        cmocka_unit_test(defaults_of_every_type_are_taken),
        cmocka_unit_test(long_chains_of_types_are_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
