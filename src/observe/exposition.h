/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as Prometheus text (version 0.0.4). Two sources: series that are registered once with the
 * registry of their shard and read at each scrape, and values that a scrape finds by visiting
 * (partitions, groups), written sample by sample. All samples of a metric stand together, so each
 * metric has one source only.
 *
 * A registry is filled by its shard's start-up and never changes once scrapes may run; then any
 * thread reads it. Registries of several shards are merged: series with equal labels are summed,
 * and a metric whose first label is "shard" has one series for each. */
#ifndef ESK_OBSERVE_EXPOSITION_H
#define ESK_OBSERVE_EXPOSITION_H

#include "base/memory.h"
#include "observe/metric_table.h"
#include "observe/metrics.h"

struct esk_metrics;
struct esk_metrics *esk_metrics_create(uint32_t shard);
void esk_metrics_destroy(struct esk_metrics *metrics); /* NULL does nothing */

/* Registers a counter or gauge, or a histogram. `values` are the label values in the order of
 * definitions/metrics.toml, but without "shard", which the registry knows; copied. The counter is
 * borrowed until the registry is destroyed. */
void esk_metrics_add(struct esk_metrics *metrics, enum esk_metric metric, const char *const *values,
                     const struct esk_counter *counter);
void esk_metrics_add_histogram(struct esk_metrics *metrics, enum esk_metric metric,
                               const char *const *values, const struct esk_histogram *histogram);

/* Appends all registered series of the registries, in the order of the table. */
void esk_metrics_write(struct esk_buffer *out, const struct esk_metrics *const *registries,
                       size_t count);

/* Appends the HELP and TYPE lines: before the first sample of a metric that is not registered. */
void esk_metrics_family(struct esk_buffer *out, enum esk_metric metric);
/* Appends the label part of a sample, escaped: {topic="orders",partition="0"}; nothing for a metric
 * without labels. All metrics with the same labels can use it. */
void esk_metrics_labels(struct esk_buffer *out, enum esk_metric metric,
                        const struct esk_slice *values);
/* Appends one sample. labels: as esk_metrics_labels made them. */
void esk_metrics_sample(struct esk_buffer *out, enum esk_metric metric, struct esk_slice labels,
                        uint64_t value);
/* Appends all lines of one histogram. */
void esk_metrics_histogram(struct esk_buffer *out, enum esk_metric metric, struct esk_slice labels,
                           const struct esk_histogram *histogram);

#endif
