/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas in the catalogue: what is found, what does not fit, and that a snapshot makes the same
 * state anew. */
#include "cluster/schemas.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static enum esk_err add(struct esk_schemas *schemas, uint32_t id, const char *subject,
                        uint32_t version, uint8_t type, const char *text) {
    const struct esk_catalogue_schema_registered registered = {
        .id = id,
        .version = version,
        .type = type,
        .fingerprint = id * 11,
        .subject = esk_slice_text(subject),
        .text = esk_slice_text(text),
    };
    struct esk_error error;
    return esk_schemas_apply(schemas, &registered, &error);
}

static void fill(struct esk_schemas *schemas) {
    esk_schemas_init(schemas);
    assert_int_equal(add(schemas, 1, "b", 1, ESK_SCHEMA_AVRO, "\"int\""), ESK_OK);
    assert_int_equal(add(schemas, 2, "a", 1, ESK_SCHEMA_JSON, "{}"), ESK_OK);
    assert_int_equal(add(schemas, 3, "b", 2, ESK_SCHEMA_AVRO, "\"long\""), ESK_OK);
}

static void found_by_id_and_by_subject(void **state) {
    struct esk_schemas schemas;
    (void)state;
    fill(&schemas);
    assert_null(esk_schemas_find(&schemas, 0));
    assert_null(esk_schemas_find(&schemas, 4));
    assert_null(esk_schemas_newest(&schemas, esk_slice_text("c")));
    const struct esk_schema *newest = esk_schemas_newest(&schemas, esk_slice_text("b"));
    assert_ptr_equal(newest, esk_schemas_find(&schemas, 3));
    assert_int_equal(newest->version, 2);
    assert_string_equal(newest->text, "\"long\"");
    assert_string_equal(newest->subject->name, "b");
    size_t count;
    const struct esk_subject **sorted = esk_schemas_sorted(&schemas, &count);
    assert_int_equal(count, 2);
    assert_string_equal(sorted[0]->name, "a");
    assert_int_equal(sorted[1]->count, 2);
    free(sorted);
    esk_schemas_fini(&schemas);
}

static void what_does_not_fit_is_refused(void **state) {
    struct esk_schemas schemas;
    (void)state;
    fill(&schemas);
    assert_int_equal(add(&schemas, 3, "a", 2, ESK_SCHEMA_JSON, "{}"), ESK_ERR_CORRUPT);
    assert_int_equal(add(&schemas, 5, "a", 2, ESK_SCHEMA_JSON, "{}"), ESK_ERR_CORRUPT);
    assert_int_equal(add(&schemas, 4, "a", 1, ESK_SCHEMA_JSON, "{}"), ESK_ERR_CORRUPT);
    assert_int_equal(add(&schemas, 4, "a", 3, ESK_SCHEMA_JSON, "{}"), ESK_ERR_CORRUPT);
    assert_int_equal(add(&schemas, 4, "c", 2, ESK_SCHEMA_JSON, "{}"), ESK_ERR_CORRUPT);
    assert_int_equal(add(&schemas, 4, "a b", 1, ESK_SCHEMA_JSON, "{}"), ESK_ERR_CORRUPT);
    assert_int_equal(add(&schemas, 4, "a", 2, 9, "{}"), ESK_ERR_VERSION);
    assert_int_equal(schemas.count, 3);
    assert_int_equal(add(&schemas, 4, "a", 2, ESK_SCHEMA_JSON, "{}"), ESK_OK);
    esk_schemas_fini(&schemas);
}

static void copy(void *context, struct esk_slice payload) {
    struct esk_catalogue_change change;
    struct esk_error error;
    assert_int_equal(esk_catalogue_decode(payload, &change, &error), ESK_OK);
    assert_int_equal(change.kind, ESK_CATALOGUE_SCHEMA_REGISTERED);
    assert_int_equal(esk_schemas_apply(context, &change.schema_registered, &error), ESK_OK);
}

static void a_snapshot_makes_the_same_state(void **state) {
    struct esk_schemas schemas;
    struct esk_schemas again;
    (void)state;
    fill(&schemas);
    esk_schemas_init(&again);
    esk_schemas_snapshot(&schemas, copy, &again);
    assert_int_equal(again.count, 3);
    assert_int_equal(again.bytes, schemas.bytes);
    for (uint32_t id = 1; id <= 3; id++) {
        const struct esk_schema *one = esk_schemas_find(&schemas, id);
        const struct esk_schema *other = esk_schemas_find(&again, id);
        assert_string_equal(one->text, other->text);
        assert_string_equal(one->subject->name, other->subject->name);
        assert_int_equal(one->version, other->version);
        assert_int_equal(one->type, other->type);
        assert_true(one->fingerprint == other->fingerprint);
    }
    esk_schemas_fini(&schemas);
    esk_schemas_fini(&again);
}

static void all_texts_together_are_bounded(void **state) {
    struct esk_schemas schemas;
    (void)state;
    esk_schemas_init(&schemas);
    char *text = esk_alloc_zeroed(1, ESK_SCHEMA_BYTES_MAX + 1);
    memset(text, 'x', ESK_SCHEMA_BYTES_MAX);
    uint32_t id = 1;
    uint64_t bytes = 0;
    for (; bytes + ESK_SCHEMA_BYTES_MAX <= ESK_SCHEMAS_BYTES_MAX; id++) {
        assert_int_equal(add(&schemas, id, "s", id, ESK_SCHEMA_AVRO, text), ESK_OK);
        bytes += ESK_SCHEMA_BYTES_MAX;
    }
    assert_int_equal(add(&schemas, id, "s", id, ESK_SCHEMA_AVRO, text), ESK_ERR_CORRUPT);
    free(text);
    esk_schemas_fini(&schemas);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_by_id_and_by_subject),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_snapshot_makes_the_same_state),
        cmocka_unit_test(all_texts_together_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
