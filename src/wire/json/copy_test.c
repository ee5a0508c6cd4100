/* SPDX-License-Identifier: Apache-2.0 */
/* What is written again, byte by byte, in both orders. */
#include "wire/json/copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void expect(const char *text, enum esk_json_order order, const char *expected) {
    struct esk_json_document *document = esk_json_document_create();
    struct esk_json_value root;
    char padded[512] = {0};
    size_t size = strlen(text);
    assert_true(size + ESK_JSON_PADDING <= sizeof(padded));
    memcpy(padded, text, size);
    assert_int_equal(esk_json_document_parse(document, esk_slice(padded, size), &root, NULL),
                     ESK_OK);
    struct esk_buffer out;
    esk_buffer_init(&out);
    struct esk_json_writer writer = esk_json_writer(&out);
    esk_json_copy(&writer, &root, order);
    esk_buffer_u8(&out, 0);
    assert_string_equal(out.data, expected);
    esk_buffer_fini(&out);
    esk_json_document_destroy(document);
}

static void a_copy_keeps_values_and_order(void **state) {
    (void)state;
    const char *text = "{\"z\":[1,-1,18446744073709551615,0.5,1e+300,true,false,null,\"\"],\"a\":{}"
                       ",\"\\n\\\"\":[],"
                       "\"ab\":{\"y\":{\"é\":\"\\u001f\"},\"x\":1}}";
    expect(text, ESK_JSON_AS_READ,
           "{\"z\":[1,-1,18446744073709551615,0.5,1.0000000000000001e+300,true,false,null,\"\"],"
           "\"a\":{},\"\\n\\\"\":[],\"ab\":{\"y\":{\"é\":\"\\u001f\"},\"x\":1}}");
    expect(" [ 1.0 , 2E2 ,\n-0.0, 9007199254740993 ]", ESK_JSON_AS_READ,
           "[1,200,0,9007199254740993]");
}

static void a_copy_by_key_is_sorted_at_every_depth(void **state) {
    (void)state;
    expect("{\"b\":[{\"d\":1,\"c\":2}],\"ab\":2,\"a\":{\"f\":null,\"e\":true},\"\":0}",
           ESK_JSON_BY_KEY,
           "{\"\":0,\"a\":{\"e\":true,\"f\":null},\"ab\":2,\"b\":[{\"c\":2,\"d\":1}]}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_keeps_values_and_order),
        cmocka_unit_test(a_copy_by_key_is_sorted_at_every_depth),
    };
    return cmocka_run_group_tests_name("wire.json.copy", tests, NULL, NULL);
}
