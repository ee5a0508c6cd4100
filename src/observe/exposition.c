/* SPDX-License-Identifier: Apache-2.0 */
/* The text format by hand: a scrape of 10,000 partitions is 120,000 lines, so a sample is copies
 * and digits, no printf. Nothing can fail but memory. */
#include "observe/exposition.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Static_assert(ESK_METRIC_BUCKETS == ESK_HISTOGRAM_BUCKETS, "tools/generate_metrics.py disagrees");

struct series {
    enum esk_metric metric;
    struct esk_buffer labels;
    const struct esk_counter *counter; /* one of both */
    const struct esk_histogram *histogram;
};

struct esk_metrics {
    uint32_t shard;
    struct series *series;
    size_t count;
    size_t capacity;
};

static const struct esk_metric_description *describe(enum esk_metric metric) {
    ESK_ASSERT((unsigned)metric < ESK_METRIC_COUNT);
    return &esk_metric_table[metric];
}

static void append_u64(struct esk_buffer *out, uint64_t value) {
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    esk_buffer_append(out, digits + at, sizeof(digits) - at);
}

static void append_value(struct esk_buffer *out, enum esk_metric_unit unit, uint64_t value) {
    if (unit == ESK_METRIC_PLAIN) {
        append_u64(out, value);
        return;
    }
    append_u64(out, value / 1000000000);
    uint32_t rest = (uint32_t)(value % 1000000000);
    if (rest == 0) {
        return;
    }
    char digits[10] = ".";
    for (int i = 9; i > 0; i--) {
        digits[i] = (char)('0' + rest % 10);
        rest /= 10;
    }
    size_t size = sizeof(digits);
    while (digits[size - 1] == '0') {
        size--;
    }
    esk_buffer_append(out, digits, size);
}

static void append_escaped(struct esk_buffer *out, struct esk_slice text) {
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        if (c == '\n') {
            esk_buffer_append(out, "\\n", 2);
        } else {
            if (c == '"' || c == '\\') {
                esk_buffer_u8(out, '\\');
            }
            esk_buffer_u8(out, c);
        }
    }
}

void esk_metrics_labels(struct esk_buffer *out, enum esk_metric metric,
                        const struct esk_slice *values) {
    const struct esk_metric_description *d = describe(metric);
    for (unsigned i = 0; i < d->label_count; i++) {
        esk_buffer_u8(out, i == 0 ? '{' : ',');
        esk_buffer_append_text(out, d->labels[i]);
        esk_buffer_append(out, "=\"", 2);
        append_escaped(out, values[i]);
        esk_buffer_u8(out, '"');
    }
    if (d->label_count > 0) {
        esk_buffer_u8(out, '}');
    }
}

void esk_metrics_family(struct esk_buffer *out, enum esk_metric metric) {
    static const char *const kinds[] = {"counter", "gauge", "histogram"};
    const struct esk_metric_description *d = describe(metric);
    esk_buffer_append_text(out, "# HELP ");
    esk_buffer_append_text(out, d->name);
    esk_buffer_u8(out, ' ');
    esk_buffer_append_text(out, d->help);
    esk_buffer_append_text(out, "\n# TYPE ");
    esk_buffer_append_text(out, d->name);
    esk_buffer_u8(out, ' ');
    esk_buffer_append_text(out, kinds[d->kind]);
    esk_buffer_u8(out, '\n');
}

void esk_metrics_sample(struct esk_buffer *out, enum esk_metric metric, struct esk_slice labels,
                        uint64_t value) {
    const struct esk_metric_description *d = describe(metric);
    size_t name_size = strlen(d->name);
    uint8_t *at = esk_buffer_grow(out, name_size + labels.size + 1);
    memcpy(at, d->name, name_size);
    if (labels.size > 0) {
        memcpy(at + name_size, labels.data, labels.size);
    }
    at[name_size + labels.size] = ' ';
    out->size += name_size + labels.size + 1;
    append_value(out, d->unit, value);
    esk_buffer_u8(out, '\n');
}

/* NAME_bucket{labels,le="bound"} count; bound NULL is +Inf. */
static void append_bucket(struct esk_buffer *out, const struct esk_metric_description *d,
                          struct esk_slice labels, const uint64_t *bound, uint64_t count) {
    esk_buffer_append_text(out, d->name);
    esk_buffer_append_text(out, "_bucket{");
    if (labels.size > 0) {
        esk_buffer_append(out, labels.data + 1, labels.size - 2);
        esk_buffer_u8(out, ',');
    }
    esk_buffer_append_text(out, "le=\"");
    if (bound) {
        append_value(out, d->unit, *bound);
    } else {
        esk_buffer_append_text(out, "+Inf");
    }
    esk_buffer_append_text(out, "\"} ");
    append_u64(out, count);
    esk_buffer_u8(out, '\n');
}

static void append_histogram(struct esk_buffer *out, const struct esk_metric_description *d,
                             struct esk_slice labels, const uint64_t *buckets, uint64_t sum) {
    uint64_t count = 0;
    for (unsigned i = 0; i < ESK_HISTOGRAM_BUCKETS; i++) {
        count += buckets[i];
        if (i >= d->first_bucket && i <= d->last_bucket) {
            uint64_t bound = UINT64_C(1) << i;
            append_bucket(out, d, labels, &bound, count);
        }
    }
    count += buckets[ESK_HISTOGRAM_BUCKETS];
    append_bucket(out, d, labels, NULL, count);
    esk_buffer_append_text(out, d->name);
    esk_buffer_append_text(out, "_sum");
    esk_buffer_append(out, labels.data, labels.size);
    esk_buffer_u8(out, ' ');
    append_value(out, d->unit, sum);
    esk_buffer_u8(out, '\n');
    esk_buffer_append_text(out, d->name);
    esk_buffer_append_text(out, "_count");
    esk_buffer_append(out, labels.data, labels.size);
    esk_buffer_u8(out, ' ');
    append_u64(out, count);
    esk_buffer_u8(out, '\n');
}

/* Adds the histogram to buckets and sum. */
static void sum_histogram(const struct esk_histogram *histogram, uint64_t *buckets, uint64_t *sum) {
    for (unsigned i = 0; i <= ESK_HISTOGRAM_BUCKETS; i++) {
        buckets[i] += esk_counter_get(&histogram->buckets[i]);
    }
    *sum += esk_counter_get(&histogram->sum);
}

void esk_metrics_histogram(struct esk_buffer *out, enum esk_metric metric, struct esk_slice labels,
                           const struct esk_histogram *histogram) {
    ESK_ASSERT(describe(metric)->kind == ESK_METRIC_HISTOGRAM);
    uint64_t buckets[ESK_HISTOGRAM_BUCKETS + 1] = {0};
    uint64_t sum = 0;
    sum_histogram(histogram, buckets, &sum);
    append_histogram(out, describe(metric), labels, buckets, sum);
}

struct esk_metrics *esk_metrics_create(uint32_t shard) {
    struct esk_metrics *metrics = esk_alloc_zeroed(1, sizeof(*metrics));
    metrics->shard = shard;
    return metrics;
}

void esk_metrics_destroy(struct esk_metrics *metrics) {
    if (!metrics) {
        return;
    }
    for (size_t i = 0; i < metrics->count; i++) {
        esk_buffer_fini(&metrics->series[i].labels);
    }
    free(metrics->series);
    free(metrics);
}

static struct series *add_series(struct esk_metrics *metrics, enum esk_metric metric,
                                 const char *const *values) {
    const struct esk_metric_description *d = describe(metric);
    if (metrics->count == metrics->capacity) {
        metrics->capacity = metrics->capacity ? metrics->capacity * 2 : 16;
        metrics->series =
            esk_realloc(metrics->series, metrics->capacity * sizeof(*metrics->series));
    }
    struct series *series = &metrics->series[metrics->count++];
    *series = (struct series){.metric = metric};
    esk_buffer_init(&series->labels);
    char shard[12];
    struct esk_slice slices[ESK_METRIC_LABELS_MAX];
    unsigned own = 0;
    if (d->label_count > 0 && strcmp(d->labels[0], "shard") == 0) {
        int size = snprintf(shard, sizeof(shard), "%u", (unsigned)metrics->shard);
        slices[own++] = esk_slice(shard, (size_t)size);
    }
    for (unsigned i = own; i < d->label_count; i++) {
        slices[i] = esk_slice_text(values[i - own]);
    }
    esk_metrics_labels(&series->labels, metric, slices);
    return series;
}

void esk_metrics_add(struct esk_metrics *metrics, enum esk_metric metric, const char *const *values,
                     const struct esk_counter *counter) {
    ESK_ASSERT(describe(metric)->kind != ESK_METRIC_HISTOGRAM);
    add_series(metrics, metric, values)->counter = counter;
}

void esk_metrics_add_histogram(struct esk_metrics *metrics, enum esk_metric metric,
                               const char *const *values, const struct esk_histogram *histogram) {
    ESK_ASSERT(describe(metric)->kind == ESK_METRIC_HISTOGRAM);
    add_series(metrics, metric, values)->histogram = histogram;
}

static const struct series *find(const struct esk_metrics *metrics, size_t end,
                                 enum esk_metric metric, struct esk_slice labels) {
    for (size_t i = 0; i < end; i++) {
        const struct series *series = &metrics->series[i];
        if (series->metric == metric &&
            esk_slice_equal(esk_buffer_slice(&series->labels), labels)) {
            return series;
        }
    }
    return NULL;
}

/* Sums the series of all registries with the labels of `first`, which none before has. */
static void write_series(struct esk_buffer *out, const struct series *first,
                         const struct esk_metrics *const *registries, size_t count) {
    const struct esk_metric_description *d = describe(first->metric);
    struct esk_slice labels = esk_buffer_slice(&first->labels);
    uint64_t buckets[ESK_HISTOGRAM_BUCKETS + 1] = {0};
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        const struct series *series =
            find(registries[i], registries[i]->count, first->metric, labels);
        if (!series) {
            continue;
        }
        if (series->counter) {
            sum += esk_counter_get(series->counter);
            continue;
        }
        sum_histogram(series->histogram, buckets, &sum);
    }
    if (first->counter) {
        esk_metrics_sample(out, first->metric, labels, sum);
    } else {
        append_histogram(out, d, labels, buckets, sum);
    }
}

static bool seen_before(const struct esk_metrics *const *registries, size_t registry,
                        const struct series *series) {
    for (size_t i = 0; i < registry; i++) {
        if (find(registries[i], registries[i]->count, series->metric,
                 esk_buffer_slice(&series->labels))) {
            return true;
        }
    }
    return false;
}

void esk_metrics_write(struct esk_buffer *out, const struct esk_metrics *const *registries,
                       size_t count) {
    for (unsigned metric = 0; metric < ESK_METRIC_COUNT; metric++) {
        bool headed = false;
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; k < registries[i]->count; k++) {
                const struct series *series = &registries[i]->series[k];
                if (series->metric != metric || seen_before(registries, i, series)) {
                    continue;
                }
                if (!headed) {
                    esk_metrics_family(out, (enum esk_metric)metric);
                    headed = true;
                }
                write_series(out, series, registries, count);
            }
        }
    }
}
