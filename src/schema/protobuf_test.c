/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/schema_testing.h"

#include <stdio.h>

#define PROTO3 "syntax = \"proto3\";\n"
#define M(body) PROTO3 "message M {" body "}"
#define M2(body) "syntax = \"proto2\"; message M {" body "}"

static const struct pair pairs[] = {
    /* fields by number */
    {M("string a = 1;"), M("string a = 1; int32 b = 2;"), NULL},
    {M("string a = 1; int32 b = 2;"), M("string a = 1;"), NULL},
    {M("string a = 1;"), M("string renamed = 1;"), NULL},
    {M("int32 a = 1;"), M("string a = 1;"), "type of 'M.a' changes from int32 to string"},
    /* groups on the wire */
    {M("int32 a = 1;"), M("uint64 a = 1;"), NULL},
    {M("bool a = 1;"), M("enum E { Z = 0; } E a = 1;"), NULL},
    {M("int32 a = 1;"), M("sint32 a = 1;"), "type of 'M.a' changes from int32 to sint32"},
    {M("fixed32 a = 1;"), M("sfixed32 a = 1;"), NULL},
    {M("fixed32 a = 1;"), M("fixed64 a = 1;"), "type of 'M.a' changes from fixed32 to fixed64"},
    {M("float a = 1;"), M("double a = 1;"), "type of 'M.a' changes from float to double"},
    {M("bytes a = 1;"), M("string a = 1;"), NULL},
    {M("message N {} N a = 1;"), M("message N {} bytes a = 1;"), NULL},
    {M("message N {} N a = 1;"), M("message N {} message O {} O a = 1;"),
     "type of 'M.a' changes from M.N to M.O"},
    /* labels */
    {M("repeated int32 a = 1;"), M("int32 a = 1;"),
     "field 'a' is no longer repeated in message 'M'"},
    {M("int32 a = 1;"), M("repeated int32 a = 1;"), "field 'a' becomes repeated in message 'M'"},
    {M("string a = 1;"), M("repeated string a = 1;"), NULL},
    {M2("optional int32 a = 1;"), M2("required int32 a = 1;"),
     "field 'a' becomes required in message 'M'"},
    {M2("required int32 a = 1;"), M2("optional int32 a = 1;"), NULL},
    {M2("required int32 a = 1;"), M2("required int32 a = 1; required int32 b = 2;"),
     "new schema adds required field 'b' in message 'M'"},
    {M2("required int32 a = 1;"), M2(""), NULL},
    /* what was reserved stays so */
    {M("reserved 2, 5 to 7; reserved \"old\";"), M("int32 b = 6;"),
     "field 'b' takes a number or name that was reserved in message 'M'"},
    {M("reserved 2, 5 to 7; reserved \"old\";"), M("int32 old = 8;"),
     "field 'old' takes a number or name that was reserved in message 'M'"},
    {M("reserved 100 to max;"), M("int32 b = 99;"), NULL},
    /* oneofs */
    {M("int32 a = 1; int32 b = 2;"), M("oneof o { int32 a = 1; int32 b = 2; }"),
     "several older fields move into oneof 'o' in message 'M'"},
    {M("int32 a = 1;"), M("oneof o { int32 a = 1; string b = 2; }"), NULL},
    {M("oneof o { int32 a = 1; int32 b = 2; }"), M("oneof p { int32 a = 1; int32 b = 2; }"), NULL},
    {M("oneof o { int32 a = 1; } int32 b = 2;"), M("oneof o { int32 a = 1; int32 b = 2; }"),
     "several older fields move into oneof 'o' in message 'M'"},
    /* maps, messages, packages */
    {M("map<string, int32> m = 1;"), M("map<string, int64> m = 1;"), NULL},
    {M("map<string, int32> m = 1;"), M("map<string, string> m = 1;"),
     "type of 'M.m' changes from int32 to string"},
    {M("message N {}"), M(""), "new schema removes message 'M.N'"},
    {PROTO3 "package a; message M { .a.N n = 1; } message N {}",
     PROTO3 "package b.c; message M { N n = 1; } message N {}", NULL},
    {PROTO3 "import \"x.proto\"; message M { x.T t = 1; }",
     PROTO3 "import \"y.proto\"; message M { y.T t = 1; }", NULL},
    /* what is passed over */
    {PROTO3
     "option java_package = \"a;}\"; // {\nmessage M { option (x) = { a: [1, 2] b { c: 1 } };"
     " /* } */ int32 a = 0x1 [deprecated = true, (y).z = \"]\"]; }\n"
     "service S { rpc F (M) returns (stream M) { option (g) = { get: \"/v1\" }; } }",
     M("int32 a = 1;"), NULL},
    {M2("optional group G = 1 { optional int32 a = 1; } extensions 100 to 199; extend M { optional "
        "int32 e = 100; }"),
     M2("optional group G = 1 { optional string a = 1; }"),
     "type of 'M.G.a' changes from int32 to string"},
};

static void rules(void **state) {
    (void)state;
    check_pairs(ESK_SCHEMA_PROTOBUF, pairs, sizeof pairs / sizeof pairs[0]);
}

static void itself_is_compatible(void **state) {
    (void)state;
    check_reflexive(ESK_SCHEMA_PROTOBUF, pairs, sizeof pairs / sizeof pairs[0]);
}

static void what_is_no_schema_is_refused(void **state) {
    (void)state;
    static const char *const table[][2] = {
        {"message ", "schema, line 1: it ends where a message's name should be"},
        {"message M {\n int32 a 1; }", "schema, line 2: '1' where = should be"},
        {"message M { int32 a = 0; }", "schema: not a field's number, at field 'a'"},
        {"message M { int32 a = 19000; }", "schema: not a field's number, at field 'a'"},
        {"message M { int32 a = 536870912; }", "schema: not a field's number, at field 'a'"},
        {"message M { int32 a = 1; int32 b = 1; }",
         "schema: a number is given twice, at field 'b'"},
        {"message M { int32 a = 1; int32 a = 2; }", "schema: two fields are called 'a'"},
        {"message M { reserved 1; int32 a = 1; }",
         "schema: its number or name is reserved, at field 'a'"},
        {"message M { reserved 5 to 2; }",
         "schema, line 1: reserved: not a range of field numbers"},
        {M("required int32 a = 1;"), "schema: proto3 has no required fields, such as 'a'"},
        {"message M {} message M {}", "schema: defined twice: 'M'"},
        {"message M {} /* no end", "schema, line 1: a comment does not end"},
        {"import \"x.proto;", "schema, line 1: a string does not end"},
        {"message M { }}",
         "schema, line 1: '}' where message, enum, package or the like should be"},
        {"{\"type\":\"record\"}",
         "schema, line 1: '{' where message, enum, package or the like should be"},
        {"abcd", "schema: neither a .proto file nor a FileDescriptorProto in base64"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        check_refused(ESK_SCHEMA_PROTOBUF, table[i][0], table[i][1]);
    }
}

static void spaces_and_comments_do_not_count(void **state) {
    (void)state;
    check_same(ESK_SCHEMA_PROTOBUF, M("int32 a = 1;"),
               "// a comment\nsyntax=\"proto3\";message M{int32 a=1;}", true);
    check_same(ESK_SCHEMA_PROTOBUF, M("int32 a = 1;"), M("int32 a = 2;"), false);
}

/* What protoc makes of
 *   syntax = "proto3"; package p; message M { string a = 1; map<string, int32> m = 2;
 *   optional int32 o = 3; reserved 9; } */
static const char descriptor[] =
    "CgdtLnByb3RvEgFwIoEBCgFNEgwKAWEYASABKAlSAWESGQoBbRgCIAMoCzILLnAuTS5NRW50cnlSAW0SEQoBbxgDIA"
    "EoBUgAUgFviAEBGjQKBk1FbnRyeRIQCgNrZXkYASABKAlSA2tleRIUCgV2YWx1ZRgCIAEoBVIFdmFsdWU6AjgBQgQK"
    "Al9vSgQICRAKYgZwcm90bzM=";

static void a_descriptor_is_the_same_as_its_text(void **state) {
    (void)state;
#define PM(body) PROTO3 "package p; message M {" body "}"
    const struct pair both[] = {
        {descriptor, PM("string a = 1; map<string, int32> m = 2; optional int32 o = 3;"), NULL},
        {PM("string a = 1; map<string, int32> m = 2; optional int32 o = 3;"), descriptor, NULL},
        {descriptor, PM("int32 a = 1;"), "type of 'M.a' changes from string to int32"},
        {descriptor, PM("map<string, string> m = 2;"),
         "type of 'M.m' changes from int32 to string"},
        {descriptor, PM("int32 x = 9;"),
         "field 'x' takes a number or name that was reserved in message 'M'"},
    };
    check_pairs(ESK_SCHEMA_PROTOBUF, both, sizeof both / sizeof both[0]);
}

static void what_would_take_long_is_refused(void **state) {
    (void)state;
    struct esk_buffer text;
    esk_buffer_init(&text);
    esk_buffer_append_text(&text, "message M { reserved 1");
    for (unsigned i = 1; i <= 2000; i++) {
        esk_buffer_format(&text, ", %u", 2 * i + 1);
    }
    esk_buffer_append_text(&text, "; }");
    esk_buffer_u8(&text, 0);
    check_refused(ESK_SCHEMA_PROTOBUF, (const char *)text.data,
                  "schema: too much is reserved in message 'M'");
    text.size = 0;
    esk_buffer_append_text(&text, "message M {");
    for (unsigned i = 0; i <= 2000; i++) {
        esk_buffer_format(&text, " oneof o%u { int32 a%u = %u; }", i, i, i + 1);
    }
    esk_buffer_append_text(&text, "}");
    esk_buffer_u8(&text, 0);
    check_refused(ESK_SCHEMA_PROTOBUF, (const char *)text.data,
                  "schema: too many oneofs in message 'M'");
    esk_buffer_fini(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules),
        cmocka_unit_test(itself_is_compatible),
        cmocka_unit_test(what_is_no_schema_is_refused),
        cmocka_unit_test(spaces_and_comments_do_not_count),
        cmocka_unit_test(a_descriptor_is_the_same_as_its_text),
        cmocka_unit_test(what_would_take_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
