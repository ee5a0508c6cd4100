/* SPDX-License-Identifier: Apache-2.0 */
#include "model/topic_config.h"


#define SEGMENT_BYTES_MIN 4096u
#define SEGMENT_BYTES_MAX (1u << 30)

void esk_topic_config_init(struct esk_topic_config *config)
{
    *config = (struct esk_topic_config){
        .retention_ms = INT64_C(604800000), /* a week */
        .retention_bytes = ESK_UNLIMITED,
        .cleanup_policy = ESK_CLEANUP_DELETE,
        .segment_bytes = 64u << 20,
        .tombstone_retention_ms = INT64_C(86400000), /* a day */
        .partitioner = ESK_PARTITIONER_FNV1A,
    };
}

static enum esk_err check_limit(const char *field, int64_t value, struct esk_error *error)
{
    if (value < ESK_UNLIMITED) {
        return esk_fail(error, ESK_ERR_INVALID, "%s must be 0 or more, or null or -1 for unlimited",
                        field);
    }
    return ESK_OK;
}

static enum esk_err check(const struct esk_topic_config *values,
                          const struct esk_topic_config_change *change, struct esk_error *error)
{
    enum esk_err err = ESK_OK;
    if (change->retention_ms) {
        err = check_limit("config.retention_ms", values->retention_ms, error);
    }
    if (err == ESK_OK && change->retention_bytes) {
        err = check_limit("config.retention_bytes", values->retention_bytes, error);
    }
    if (err == ESK_OK && change->cleanup_policy &&
        (values->cleanup_policy == 0 ||
         values->cleanup_policy > (ESK_CLEANUP_DELETE | ESK_CLEANUP_COMPACT))) {
        err = esk_fail(error, ESK_ERR_INVALID,
                       "config.cleanup_policy must be delete, compact or compact,delete");
    }
    if (err == ESK_OK && change->segment_bytes &&
        (values->segment_bytes < SEGMENT_BYTES_MIN || values->segment_bytes > SEGMENT_BYTES_MAX)) {
        err = esk_fail(error, ESK_ERR_INVALID, "config.segment_bytes must be from %u to %u",
                       SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX);
    }
    if (err == ESK_OK && change->tombstone_retention_ms && values->tombstone_retention_ms < 0) {
        err = esk_fail(error, ESK_ERR_INVALID, "config.tombstone_retention_ms must be 0 or more");
    }
    return err;
}

enum esk_err esk_topic_config_apply(struct esk_topic_config *config,
                                    const struct esk_topic_config_change *change, bool creating,
                                    struct esk_error *error)
{
    const struct esk_topic_config *values = &change->values;
    enum esk_err err = check(values, change, error);
    if (err != ESK_OK) {
        return err;
    }
    if (change->partitioner && !creating && values->partitioner != config->partitioner) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "config.partitioner is fixed when the topic is created");
    }
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

const char *esk_cleanup_policy_text(uint8_t policy)
{
    if (policy == ESK_CLEANUP_DELETE) {
        return "delete";
    }
    return policy == ESK_CLEANUP_COMPACT ? "compact" : "compact,delete";
}

bool esk_cleanup_policy_parse(struct esk_slice text, uint8_t *policy)
{
    static const struct {
        const char *text;
        uint8_t policy;
    } policies[] = {
        {"delete", ESK_CLEANUP_DELETE},
        {"compact", ESK_CLEANUP_COMPACT},
        {"compact,delete", ESK_CLEANUP_COMPACT | ESK_CLEANUP_DELETE},
        {"delete,compact", ESK_CLEANUP_COMPACT | ESK_CLEANUP_DELETE},
    };
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
        if (esk_slice_equal(text, esk_slice_text(policies[i].text))) {
            *policy = policies[i].policy;
            return true;
        }
    }
    return false;
}
