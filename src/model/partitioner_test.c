/* SPDX-License-Identifier: Apache-2.0 */
/* What a key's partition is for ever: vectors of Sarama, of the Java client, and the API page. */
#include "model/partitioner.h"
#include "model/topic_config.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int32_t partition(enum esk_partitioner partitioner, const char *key, int32_t count) {
    return esk_partition_for_key(partitioner, esk_slice_text(key), count);
}

static void fnv1a_gives_the_first_session_of_the_api_page(void **state) {
    (void)state;
    assert_int_equal(partition(ESK_PARTITIONER_FNV1A, "user-1", 2), 0);
    assert_int_equal(partition(ESK_PARTITIONER_FNV1A, "user-2", 2), 1);
}

static void fnv1a_drops_the_sign_after_the_remainder(void **state) {
    (void)state;
    /* Hashes to -2^31, which has no absolute value: Sarama's own trap. -2^31 % 50 is -48. */
    assert_int_equal(partition(ESK_PARTITIONER_FNV1A, "1468509572224", 50), 48);
    assert_int_equal(partition(ESK_PARTITIONER_FNV1A, "1468509572224", INT32_MAX), 1);
    assert_int_equal(partition(ESK_PARTITIONER_FNV1A, "", 7), 0x7ee3623b % 7);
    assert_int_equal(partition(ESK_PARTITIONER_FNV1A, "anything", 1), 0);
}

static void murmur2_is_java_s_to_positive(void **state) {
    (void)state;
    /* Hashes from the Java client's tests; & 0x7fffffff, then the remainder. */
    assert_int_equal(partition(ESK_PARTITIONER_MURMUR2, "21", 100), (-973932308 & INT32_MAX) % 100);
    assert_int_equal(partition(ESK_PARTITIONER_MURMUR2, "foobar", 1000),
                     (-790332482 & INT32_MAX) % 1000);
    assert_int_equal(partition(ESK_PARTITIONER_MURMUR2, "abc", 12), 479470107 % 12);
}

static void partitioners_have_names(void **state) {
    (void)state;
    enum esk_partitioner found;
    assert_true(esk_partitioner_from_name(esk_slice_text("murmur2"), &found));
    assert_int_equal(found, ESK_PARTITIONER_MURMUR2);
    assert_true(esk_partitioner_from_name(esk_slice_text("fnv1a"), &found));
    assert_int_equal(found, ESK_PARTITIONER_FNV1A);
    assert_false(esk_partitioner_from_name(esk_slice_text("FNV1A"), &found));
}

static void a_topic_s_partitioner_is_fixed_and_ranges_are_checked(void **state) {
    (void)state;
    struct esk_topic_config config;
    esk_topic_config_init(&config);
    struct esk_topic_config_change change = {.values.partitioner = ESK_PARTITIONER_MURMUR2,
                                             .partitioner = true};
    assert_int_equal(esk_topic_config_apply(&config, &change, false, NULL), ESK_ERR_INVALID);
    assert_int_equal(esk_topic_config_apply(&config, &change, true, NULL), ESK_OK);
    assert_int_equal(esk_topic_config_apply(&config, &change, false, NULL), ESK_OK);
    assert_int_equal(config.partitioner, ESK_PARTITIONER_MURMUR2);

    const uint32_t sizes[] = {4095, 4096, 1u << 30, (1u << 30) + 1};
    for (int i = 0; i < 4; i++) {
        struct esk_topic_config_change size = {.values.segment_bytes = sizes[i],
                                               .segment_bytes = true};
        assert_int_equal(esk_topic_config_apply(&config, &size, false, NULL),
                         i == 1 || i == 2 ? ESK_OK : ESK_ERR_INVALID);
    }
    struct esk_topic_config_change bad = {.values = {.retention_ms = 5, .retention_bytes = -2},
                                          .retention_ms = true,
                                          .retention_bytes = true};
    struct esk_error error;
    assert_int_equal(esk_topic_config_apply(&config, &bad, false, &error), ESK_ERR_INVALID);
    assert_non_null(strstr(error.text, "retention_bytes"));
    assert_int_equal(config.retention_ms, 604800000); /* nothing was applied */
}

static void cleanup_policies_read_both_ways_round(void **state) {
    (void)state;
    uint8_t policy;
    assert_true(esk_cleanup_policy_parse(esk_slice_text("delete,compact"), &policy));
    assert_string_equal(esk_cleanup_policy_text(policy), "compact,delete");
    assert_true(esk_cleanup_policy_parse(esk_slice_text("compact"), &policy));
    assert_int_equal(policy, ESK_CLEANUP_COMPACT);
    assert_true(esk_cleanup_policy_parse(esk_slice_text("delete"), &policy));
    assert_int_equal(policy, ESK_CLEANUP_DELETE);
    assert_false(esk_cleanup_policy_parse(esk_slice_text("none"), &policy));
    assert_false(esk_cleanup_policy_parse(esk_slice_text(""), &policy));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fnv1a_gives_the_first_session_of_the_api_page),
        cmocka_unit_test(fnv1a_drops_the_sign_after_the_remainder),
        cmocka_unit_test(murmur2_is_java_s_to_positive),
        cmocka_unit_test(partitioners_have_names),
        cmocka_unit_test(a_topic_s_partitioner_is_fixed_and_ranges_are_checked),
        cmocka_unit_test(cleanup_policies_read_both_ways_round),
    };
    return cmocka_run_group_tests_name("model.partitioner", tests, NULL, NULL);
}
