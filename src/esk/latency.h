/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of durations, from 1 ns to 584 years, each kept to within 1 in 128. Pure; merge those
 * of several threads. */
#ifndef ESK_ESK_LATENCY_H
#define ESK_ESK_LATENCY_H

#include <stdint.h>

#define ESK_LATENCY_STEPS_LOG2 7 /* steps of each power of two */
#define ESK_LATENCY_BUCKETS ((64 - ESK_LATENCY_STEPS_LOG2 + 1) << ESK_LATENCY_STEPS_LOG2)

struct esk_latency {
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
    uint64_t buckets[ESK_LATENCY_BUCKETS];
};

void esk_latency_record(struct esk_latency *latency, uint64_t duration_ns);
void esk_latency_merge(struct esk_latency *into, const struct esk_latency *from);
/* The duration that a share of them (0 to 1) does not exceed: the upper end of its bucket, and at
 * most the longest. 0 when there are none. */
uint64_t esk_latency_quantile(const struct esk_latency *latency, double share);

#endif
