/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets: below 128 ns one each; above, 128 steps to each power of two. */
#include "esk/latency.h"

#define STEPS (UINT64_C(1) << ESK_LATENCY_STEPS_LOG2)

static uint32_t bucket_of(uint64_t duration_ns) {
    if (duration_ns < STEPS) {
        return (uint32_t)duration_ns;
    }
    uint32_t shift = 63u - (uint32_t)__builtin_clzll(duration_ns) - ESK_LATENCY_STEPS_LOG2;
    return (uint32_t)((shift << ESK_LATENCY_STEPS_LOG2) + (duration_ns >> shift));
}

/* The longest duration of a bucket. */
static uint64_t bucket_end(uint32_t bucket) {
    if (bucket < 2 * STEPS) {
        return bucket;
    }
    uint32_t shift = (bucket >> ESK_LATENCY_STEPS_LOG2) - 1;
    uint64_t step = bucket - ((uint64_t)shift << ESK_LATENCY_STEPS_LOG2);
    return (step << shift) + ((UINT64_C(1) << shift) - 1);
}

void esk_latency_record(struct esk_latency *latency, uint64_t duration_ns) {
    latency->count++;
    latency->sum_ns += duration_ns;
    latency->max_ns = duration_ns > latency->max_ns ? duration_ns : latency->max_ns;
    latency->buckets[bucket_of(duration_ns)]++;
}

void esk_latency_merge(struct esk_latency *into, const struct esk_latency *from) {
    into->count += from->count;
    into->sum_ns += from->sum_ns;
    into->max_ns = from->max_ns > into->max_ns ? from->max_ns : into->max_ns;
    for (uint32_t i = 0; i < ESK_LATENCY_BUCKETS; i++) {
        into->buckets[i] += from->buckets[i];
    }
}

uint64_t esk_latency_quantile(const struct esk_latency *latency, double share) {
    double wanted = share * (double)latency->count;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < ESK_LATENCY_BUCKETS; i++) {
        seen += latency->buckets[i];
        if (seen > 0 && (double)seen >= wanted) {
            uint64_t end = bucket_end(i);
            return end < latency->max_ns ? end : latency->max_ns;
        }
    }
    return latency->max_ns;
}
