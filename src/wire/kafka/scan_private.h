/* SPDX-License-Identifier: Apache-2.0 */
/* What scan.c and scan_records.c share. */
#ifndef ESK_WIRE_KAFKA_SCAN_PRIVATE_H
#define ESK_WIRE_KAFKA_SCAN_PRIVATE_H

#include "wire/kafka/scan.h"

static inline size_t eski_scan_position(const struct esk_kafka_scan *scan) {
    return (size_t)(scan->at - scan->start);
}

static inline size_t eski_scan_left(const struct esk_kafka_scan *scan) {
    return (size_t)(scan->end - scan->at);
}

/* Records the first failure, at `position`; returns false. */
bool eski_scan_fail(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                    const struct esk_kafka_field *field, size_t position, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
void eski_scan_warn(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                    const struct esk_kafka_field *field, size_t position, const char *text);
bool eski_scan_needs(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                     const struct esk_kafka_field *field, uint64_t bytes);

/* Report a leaf that began at `position` and ends here, and the two ends of a node with children.
 */
void eski_scan_value(struct esk_kafka_scan *scan, struct esk_kafka_node *node, size_t position);
void eski_scan_open(struct esk_kafka_scan *scan, struct esk_kafka_node *node);
void eski_scan_close(struct esk_kafka_scan *scan, const struct esk_kafka_node *node);

/* A leaf of fixed size, read and reported. */
bool eski_scan_fixed(struct esk_kafka_scan *scan, struct esk_kafka_node *node);
bool eski_scan_uvarint(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                       const struct esk_kafka_field *field, uint32_t *value);
/* A string or byte string of any kind, read and reported. */
bool eski_scan_slice(struct esk_kafka_scan *scan, struct esk_kafka_node *node);

#endif
