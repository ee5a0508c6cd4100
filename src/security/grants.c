/* SPDX-License-Identifier: Apache-2.0 */
#include "security/grants.h"

static const char *const action_names[] = {
    [ESK_ACTION_READ] = "read",
    [ESK_ACTION_WRITE] = "write",
    [ESK_ACTION_ADMIN] = "admin",
};

const char *esk_action_name(enum esk_action action) {
    return action_names[action];
}

bool esk_action_parse(struct esk_slice text, enum esk_action *action) {
    for (enum esk_action i = ESK_ACTION_READ; i <= ESK_ACTION_ADMIN; i++) {
        if (esk_slice_equal(text, esk_slice_text(action_names[i]))) {
            *action = i;
            return true;
        }
    }
    return false;
}

static bool is_separator(uint8_t byte) {
    return byte == '.' || byte == '-' || byte == '_';
}

static bool is_name_byte(uint8_t byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || is_separator(byte);
}

static bool is_everything(struct esk_slice prefix) {
    return prefix.size == 1 && prefix.data[0] == '*';
}

enum esk_err esk_grant_check(const struct esk_grant *grant, struct esk_error *error) {
    const struct esk_slice prefix = grant->prefix;
    if (prefix.size == 0) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "topic_prefix must not be empty; * stands for every topic");
    }
    if (grant->action == ESK_ACTION_ADMIN && !is_everything(prefix)) {
        return esk_fail(error, ESK_ERR_INVALID, "topic_prefix must be * where the action is admin");
    }
    if (prefix.size > ESK_GRANT_PREFIX_BYTES_MAX) {
        return esk_fail(error, ESK_ERR_INVALID, "topic_prefix must have at most %d characters",
                        ESK_GRANT_PREFIX_BYTES_MAX);
    }
    for (size_t i = 0; i < prefix.size && !is_everything(prefix); i++) {
        if (!is_name_byte(prefix.data[i])) {
            return esk_fail(error, ESK_ERR_INVALID,
                            "topic_prefix must be * or of letters, digits, '.', '-' and '_'");
        }
    }
    return ESK_OK;
}

bool esk_prefix_covers(struct esk_slice prefix, struct esk_slice topic) {
    if (is_everything(prefix)) {
        return true;
    }
    if (prefix.size == 0 || topic.size < prefix.size ||
        memcmp(prefix.data, topic.data, prefix.size) != 0) {
        return false;
    }
    return topic.size == prefix.size || is_separator(prefix.data[prefix.size - 1]) ||
           is_separator(topic.data[prefix.size]);
}

bool esk_grants_allow(const struct esk_grant *grants, uint32_t count, enum esk_action action,
                      struct esk_slice topic) {
    for (uint32_t i = 0; i < count; i++) {
        if (grants[i].action >= action && esk_prefix_covers(grants[i].prefix, topic)) {
            return true;
        }
    }
    return false;
}
