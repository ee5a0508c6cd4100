/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms with buckets at powers of two: recording is a shift and two plain stores. */
#include "observe/metrics.h"

void esk_histogram_record(struct esk_histogram *histogram, uint64_t value) {
    /* The smallest i with value <= 2^i. */
    unsigned bucket = value <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(value - 1);
    if (bucket > ESK_HISTOGRAM_BUCKETS) {
        bucket = ESK_HISTOGRAM_BUCKETS;
    }
    esk_counter_add(&histogram->buckets[bucket], 1);
    esk_counter_add(&histogram->sum, value);
}

uint64_t esk_histogram_count(const struct esk_histogram *histogram) {
    uint64_t count = 0;
    for (unsigned i = 0; i <= ESK_HISTOGRAM_BUCKETS; i++) {
        count += esk_counter_get(&histogram->buckets[i]);
    }
    return count;
}

uint64_t esk_histogram_quantile(const struct esk_histogram *histogram, double quantile) {
    uint64_t count = esk_histogram_count(histogram);
    if (count == 0) {
        return 0;
    }
    double rank = quantile * (double)count;
    uint64_t below = 0;
    for (unsigned i = 0; i < ESK_HISTOGRAM_BUCKETS; i++) {
        below += esk_counter_get(&histogram->buckets[i]);
        if (below > 0 && (double)below >= rank) {
            return UINT64_C(1) << i;
        }
    }
    return UINT64_MAX;
}
