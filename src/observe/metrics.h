/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, gauges and histograms: relaxed atomics, written by their owner and read by a scrape in
 * any thread. What exists, with help texts and labels, is in definitions/metrics.toml, from which
 * observe/metric_table.h is generated; observe/exposition.h turns them into text. */
#ifndef ESK_OBSERVE_METRICS_H
#define ESK_OBSERVE_METRICS_H

#include "base/memory.h"

#include <stdatomic.h>

struct esk_counter {
    atomic_uint_fast64_t value;
};

/* One owner writes: a plain load and store, no locked instruction. */
static inline void esk_counter_add(struct esk_counter *counter, uint64_t more) {
    uint64_t now = atomic_load_explicit(&counter->value, memory_order_relaxed);
    atomic_store_explicit(&counter->value, now + more, memory_order_relaxed);
}

static inline void esk_counter_set(struct esk_counter *counter, uint64_t value) {
    atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

static inline uint64_t esk_counter_get(const struct esk_counter *counter) {
    return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

#define ESK_HISTOGRAM_BUCKETS 36 /* powers of two of the unit: bucket i holds values <= 2^i */

/* Values are in nanoseconds or plain counts; the exposition scales by the metric's unit. */
struct esk_histogram {
    struct esk_counter buckets[ESK_HISTOGRAM_BUCKETS + 1]; /* the last: above all */
    struct esk_counter sum;
};
/* The owner only. */
void esk_histogram_record(struct esk_histogram *histogram, uint64_t value);
/* Values recorded. Any thread, as the next. */
uint64_t esk_histogram_count(const struct esk_histogram *histogram);
/* The upper bound of the bucket in which the quantile (0 to 1) lies, so at most twice the true one;
 * UINT64_MAX when it is above all buckets, 0 when nothing was recorded. */
uint64_t esk_histogram_quantile(const struct esk_histogram *histogram, double quantile);

#endif
