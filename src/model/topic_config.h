/* SPDX-License-Identifier: Apache-2.0 */
/* A topic's configuration and a change to it. Plain data. */
#ifndef ESK_MODEL_TOPIC_CONFIG_H
#define ESK_MODEL_TOPIC_CONFIG_H

#include "base/bytes.h"
#include "base/error.h"
#include "model/partitioner.h"

#include <stdbool.h>
#include <stdint.h>

#define ESK_UNLIMITED (-1)

enum esk_cleanup_policy {
    ESK_CLEANUP_DELETE = 1,
    ESK_CLEANUP_COMPACT = 2, /* both bits: compact,delete */
};

struct esk_topic_config {
    int64_t retention_ms;    /* or ESK_UNLIMITED */
    int64_t retention_bytes; /* per partition, or ESK_UNLIMITED */
    uint8_t cleanup_policy;  /* bits */
    uint32_t segment_bytes;  /* 4096 .. 1 GiB */
    int64_t tombstone_retention_ms;
    enum esk_partitioner partitioner; /* fixed at creation */
};

/* The fields that a request gives. */
struct esk_topic_config_change {
    struct esk_topic_config values;
    bool retention_ms;
    bool retention_bytes;
    bool cleanup_policy;
    bool segment_bytes;
    bool tombstone_retention_ms;
    bool partitioner;
};

void esk_topic_config_init(struct esk_topic_config *config); /* the defaults */
/* Checks ranges and applies; ESK_ERR_INVALID names the field. creating: the partitioner may be
 * given; later only as it is. */
enum esk_err esk_topic_config_apply(struct esk_topic_config *config,
                                    const struct esk_topic_config_change *change, bool creating,
                                    struct esk_error *error);
/* "delete", "compact" or "compact,delete". */
const char *esk_cleanup_policy_text(uint8_t policy);
/* Accepts "delete", "compact", "compact,delete" and "delete,compact". */
bool esk_cleanup_policy_parse(struct esk_slice text, uint8_t *policy);

#endif
