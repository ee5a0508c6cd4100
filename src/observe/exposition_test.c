/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/exposition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char *text_of(struct esk_buffer *buffer) {
    esk_buffer_u8(buffer, 0);
    return (const char *)buffer->data;
}

static void a_histogram_counts_at_its_bounds(void **state) {
    (void)state;
    struct esk_histogram histogram = {0};
    const uint64_t values[] = {0, 1, 2, 3, 4, 5, UINT64_C(1) << 35, (UINT64_C(1) << 35) + 1};
    for (size_t i = 0; i < 8; i++) {
        esk_histogram_record(&histogram, values[i]);
    }
    assert_int_equal(esk_counter_get(&histogram.buckets[0]), 2); /* <= 1 */
    assert_int_equal(esk_counter_get(&histogram.buckets[1]), 1); /* 2 */
    assert_int_equal(esk_counter_get(&histogram.buckets[2]), 2); /* 3, 4 */
    assert_int_equal(esk_counter_get(&histogram.buckets[3]), 1); /* 5 */
    assert_int_equal(esk_counter_get(&histogram.buckets[35]), 1);
    assert_int_equal(esk_counter_get(&histogram.buckets[36]), 1);
    assert_int_equal(esk_histogram_count(&histogram), 8);
}

static void a_quantile_is_the_bound_above_it(void **state) {
    (void)state;
    struct esk_histogram histogram = {0};
    assert_int_equal(esk_histogram_quantile(&histogram, 0.5), 0);
    for (uint64_t value = 1; value <= 1000; value++) {
        esk_histogram_record(&histogram, value);
    }
    assert_int_equal(esk_histogram_quantile(&histogram, 0.0), 1);
    assert_int_equal(esk_histogram_quantile(&histogram, 0.5), 512);
    assert_int_equal(esk_histogram_quantile(&histogram, 0.99), 1024);
    esk_histogram_record(&histogram, UINT64_MAX);
    assert_true(esk_histogram_quantile(&histogram, 1.0) == UINT64_MAX);
}

static void registries_sum_and_tell_shards_apart(void **state) {
    (void)state;
    struct esk_counter flushes[2] = {{3}, {4}};
    struct esk_counter requests[2] = {{10}, {20}};
    struct esk_counter turns[2] = {{1500000}, {2000000000}};
    struct esk_metrics *shards[2];
    const char *produce[] = {"http", "produce"};
    const char *health[] = {"http", "healthz"};
    struct esk_counter healths = {1};
    for (uint32_t i = 0; i < 2; i++) {
        shards[i] = esk_metrics_create(i);
        esk_metrics_add(shards[i], ESK_METRIC_LOOP_TURN_MAX_SECONDS, NULL, &turns[i]);
        esk_metrics_add(shards[i], ESK_METRIC_REQUESTS_TOTAL, produce, &requests[i]);
        esk_metrics_add(shards[i], ESK_METRIC_JOURNAL_FLUSHES_TOTAL, NULL, &flushes[i]);
    }
    esk_metrics_add(shards[1], ESK_METRIC_REQUESTS_TOTAL, health, &healths);
    struct esk_buffer out;
    esk_buffer_init(&out);
    esk_metrics_write(&out, (const struct esk_metrics *const *)shards, 2);
    assert_string_equal(
        text_of(&out), "# HELP esker_journal_flushes_total Durable writes of the shard's journal.\n"
                       "# TYPE esker_journal_flushes_total counter\n"
                       "esker_journal_flushes_total{shard=\"0\"} 3\n"
                       "esker_journal_flushes_total{shard=\"1\"} 4\n"
                       "# HELP esker_requests_total Requests answered.\n"
                       "# TYPE esker_requests_total counter\n"
                       "esker_requests_total{door=\"http\",operation=\"produce\"} 30\n"
                       "esker_requests_total{door=\"http\",operation=\"healthz\"} 1\n"
                       "# HELP esker_loop_turn_max_seconds CPU time of the shard's longest turn "
                       "since the start.\n"
                       "# TYPE esker_loop_turn_max_seconds gauge\n"
                       "esker_loop_turn_max_seconds{shard=\"0\"} 0.0015\n"
                       "esker_loop_turn_max_seconds{shard=\"1\"} 2\n");
    esk_buffer_fini(&out);
    esk_metrics_destroy(shards[0]);
    esk_metrics_destroy(shards[1]);
}

static void histograms_are_cumulative_in_seconds(void **state) {
    (void)state;
    struct esk_histogram histograms[2] = {0};
    esk_histogram_record(&histograms[0], 1000);       /* below the first bound shown */
    esk_histogram_record(&histograms[0], 20000);      /* 2^15 ns */
    esk_histogram_record(&histograms[1], 1000000000); /* 2^30 ns */
    esk_histogram_record(&histograms[1], UINT64_C(60) * 1000000000);
    struct esk_metrics *shards[2];
    const char *labels[] = {"http", "produce"};
    for (uint32_t i = 0; i < 2; i++) {
        shards[i] = esk_metrics_create(i);
        esk_metrics_add_histogram(shards[i], ESK_METRIC_REQUEST_DURATION_SECONDS, labels,
                                  &histograms[i]);
    }
    struct esk_buffer out;
    esk_buffer_init(&out);
    esk_metrics_write(&out, (const struct esk_metrics *const *)shards, 2);
    const char *text = text_of(&out);
#define SERIES "esker_request_duration_seconds"
#define OF "door=\"http\",operation=\"produce\""
    assert_non_null(strstr(text, "# TYPE " SERIES " histogram\n" SERIES "_bucket{" OF
                                 ",le=\"0.000016384\"} 1\n" SERIES "_bucket{" OF
                                 ",le=\"0.000032768\"} 2\n"));
    assert_non_null(strstr(text, SERIES "_bucket{" OF ",le=\"1.073741824\"} 3\n"));
    assert_non_null(strstr(text, SERIES "_bucket{" OF ",le=\"34.359738368\"} 3\n" SERIES
                                        "_bucket{" OF ",le=\"+Inf\"} 4\n" SERIES "_sum{" OF
                                        "} 61.000021\n" SERIES "_count{" OF "} 4\n"));
    esk_buffer_fini(&out);
    esk_buffer_init(&out);
    esk_metrics_histogram(&out, ESK_METRIC_JOURNAL_COMMIT_RECORDS, esk_slice_text("{shard=\"7\"}"),
                          &histograms[0]);
    text = text_of(&out);
    assert_non_null(
        strstr(text, "esker_journal_commit_records_bucket{shard=\"7\",le=\"1024\"} 1\n"));
    assert_non_null(strstr(text, "esker_journal_commit_records_sum{shard=\"7\"} 21000\n"));
    esk_buffer_fini(&out);
    esk_metrics_destroy(shards[0]);
    esk_metrics_destroy(shards[1]);
}

static void label_values_are_escaped(void **state) {
    (void)state;
    struct esk_buffer labels;
    struct esk_buffer out;
    esk_buffer_init(&labels);
    esk_buffer_init(&out);
    const struct esk_slice values[] = {esk_slice_text("a\"b\\c\nd"), esk_slice_text("orders"),
                                       esk_slice_text("0")};
    esk_metrics_labels(&labels, ESK_METRIC_GROUP_LAG_RECORDS, values);
    esk_metrics_sample(&out, ESK_METRIC_GROUP_LAG_RECORDS, esk_buffer_slice(&labels), 7);
    esk_metrics_sample(&out, ESK_METRIC_TOPICS, esk_slice_text(""), UINT64_MAX);
    assert_string_equal(text_of(&out), "esker_group_lag_records{group=\"a\\\"b\\\\c\\nd\","
                                       "topic=\"orders\",partition=\"0\"} 7\n"
                                       "esker_topics 18446744073709551615\n");
    esk_buffer_fini(&labels);
    esk_buffer_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_histogram_counts_at_its_bounds),
        cmocka_unit_test(a_quantile_is_the_bound_above_it),
        cmocka_unit_test(registries_sum_and_tell_shards_apart),
        cmocka_unit_test(histograms_are_cumulative_in_seconds),
        cmocka_unit_test(label_values_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
