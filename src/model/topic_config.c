/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults and ranges of a topic's configuration (docs/product.md, Config). */
#include "model/topic_config.h"

#include "model/limits.h"

void esk_topic_config_init(struct esk_topic_config *config) {
    *config = (struct esk_topic_config){
        .retention_ms = ESK_RETENTION_MS_DEFAULT,
        .retention_bytes = ESK_UNLIMITED,
        .cleanup_policy = ESK_CLEANUP_DELETE,
        .segment_bytes = ESK_SEGMENT_BYTES_DEFAULT,
        .tombstone_retention_ms = ESK_TOMBSTONE_RETENTION_MS_DEFAULT,
        .partitioner = ESK_PARTITIONER_FNV1A,
    };
}

static enum esk_err check(const struct esk_topic_config *config,
                          const struct esk_topic_config_change *change, bool creating,
                          struct esk_error *error) {
    const struct esk_topic_config *values = &change->values;
    if (change->retention_ms && values->retention_ms < ESK_UNLIMITED) {
        return esk_fail(error, ESK_ERR_INVALID, "retention_ms must be 0 or more, -1 or null");
    }
    if (change->retention_bytes && values->retention_bytes < ESK_UNLIMITED) {
        return esk_fail(error, ESK_ERR_INVALID, "retention_bytes must be 0 or more, -1 or null");
    }
    if (change->cleanup_policy &&
        (values->cleanup_policy == 0 ||
         values->cleanup_policy > (ESK_CLEANUP_DELETE | ESK_CLEANUP_COMPACT))) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "cleanup_policy must be delete, compact or compact,delete");
    }
    if (change->segment_bytes && (values->segment_bytes < ESK_SEGMENT_BYTES_MIN ||
                                  values->segment_bytes > ESK_SEGMENT_BYTES_MAX)) {
        return esk_fail(error, ESK_ERR_INVALID, "segment_bytes must be %d to %d",
                        ESK_SEGMENT_BYTES_MIN, ESK_SEGMENT_BYTES_MAX);
    }
    if (change->tombstone_retention_ms && values->tombstone_retention_ms < 0) {
        return esk_fail(error, ESK_ERR_INVALID, "tombstone_retention_ms must be 0 or more");
    }
    if (change->partitioner && !creating && values->partitioner != config->partitioner) {
        return esk_fail(error, ESK_ERR_INVALID, "partitioner is fixed when the topic is created");
    }
    return ESK_OK;
}

enum esk_err esk_topic_config_apply(struct esk_topic_config *config,
                                    const struct esk_topic_config_change *change, bool creating,
                                    struct esk_error *error) {
    enum esk_err err = check(config, change, creating, error);
    if (err) {
        return err;
    }
    const struct esk_topic_config *values = &change->values;
    if (change->retention_ms) {
        config->retention_ms = values->retention_ms;
    }
    if (change->retention_bytes) {
        config->retention_bytes = values->retention_bytes;
    }
    if (change->cleanup_policy) {
        config->cleanup_policy = values->cleanup_policy;
    }
    if (change->segment_bytes) {
        config->segment_bytes = values->segment_bytes;
    }
    if (change->tombstone_retention_ms) {
        config->tombstone_retention_ms = values->tombstone_retention_ms;
    }
    if (change->partitioner) {
        config->partitioner = values->partitioner;
    }
    return ESK_OK;
}

const char *esk_cleanup_policy_text(uint8_t policy) {
    switch (policy) {
    case ESK_CLEANUP_COMPACT:
        return "compact";
    case ESK_CLEANUP_COMPACT | ESK_CLEANUP_DELETE:
        return "compact,delete";
    default:
        return "delete";
    }
}

bool esk_cleanup_policy_parse(struct esk_slice text, uint8_t *policy) {
    for (unsigned bits = 1; bits <= (ESK_CLEANUP_DELETE | ESK_CLEANUP_COMPACT); bits++) {
        if (esk_slice_equal(text, esk_slice_text(esk_cleanup_policy_text((uint8_t)bits)))) {
            *policy = (uint8_t)bits;
            return true;
        }
    }
    if (esk_slice_equal(text, esk_slice_text("delete,compact"))) {
        *policy = ESK_CLEANUP_DELETE | ESK_CLEANUP_COMPACT;
        return true;
    }
    return false;
}
