/* SPDX-License-Identifier: Apache-2.0 */
/* Codes: their texts, and which of them a broker's error text stands for. A broker's texts begin
 * with a fixed phrase (definitions/errors.toml); sequence errors have phrases of their own. Pure.
 */
#include "client/pipeline_private.h"
#include "model/partitioner.h"

#define LAST_CODE ESK_CLIENT_CLOSED

static const struct description {
    const char *text;
    bool retriable;
} descriptions[] = {
    [ESK_CLIENT_OK] = {"ok", false},
    [ESK_CLIENT_INVALID] = {"invalid request", false},
    [ESK_CLIENT_UNAUTHENTICATED] = {"unauthenticated", false},
    [ESK_CLIENT_FORBIDDEN] = {"forbidden", false},
    [ESK_CLIENT_NOT_FOUND] = {"not found", false},
    [ESK_CLIENT_TOO_LARGE] = {"too large", false},
    [ESK_CLIENT_THROTTLED] = {"throttled", true},
    [ESK_CLIENT_SEQUENCE_GAP] = {"sequence gap", false},
    [ESK_CLIENT_SEQUENCE_TOO_LOW] = {"sequence too low", false},
    [ESK_CLIENT_UNAVAILABLE] = {"unavailable", true},
    [ESK_CLIENT_NO_SPACE] = {"disk full", true},
    [ESK_CLIENT_BROKER] = {"broker error", false},
    [ESK_CLIENT_CONNECT] = {"no connection", true},
    [ESK_CLIENT_TLS] = {"TLS failed", false},
    [ESK_CLIENT_PROTOCOL] = {"protocol error", false},
    [ESK_CLIENT_TIMEOUT] = {"timed out", true},
    [ESK_CLIENT_LOST] = {"connection lost", true},
    [ESK_CLIENT_FULL] = {"pipeline full", true},
    [ESK_CLIENT_CLOSED] = {"pipeline closed", false},
};

static const struct description *describe(enum esk_client_code code) {
    unsigned number = (unsigned)code;
    return &descriptions[number <= LAST_CODE ? number : ESK_CLIENT_BROKER];
}

const char *esk_client_code_text(enum esk_client_code code) {
    return describe(code)->text;
}

bool esk_client_code_retriable(enum esk_client_code code) {
    return describe(code)->retriable;
}

static bool begins(struct esk_slice text, const char *with) {
    size_t size = strlen(with);
    return text.size >= size && memcmp(text.data, with, size) == 0;
}

enum esk_client_code eski_code_of_error(struct esk_slice text) {
    static const char invalid[] = "invalid request: ";
    struct esk_slice rest = text;
    if (begins(text, invalid)) {
        rest = esk_slice(text.data + sizeof(invalid) - 1, text.size - (sizeof(invalid) - 1));
    }
    if (begins(rest, "sequence gap")) {
        return ESK_CLIENT_SEQUENCE_GAP;
    }
    if (begins(rest, "sequence too low")) {
        return ESK_CLIENT_SEQUENCE_TOO_LOW;
    }
    switch (esk_es01_error_code(text)) {
    case ESK_ERR_INVALID:
        return ESK_CLIENT_INVALID;
    case ESK_ERR_UNAUTHENTICATED:
        return ESK_CLIENT_UNAUTHENTICATED;
    case ESK_ERR_FORBIDDEN:
        return ESK_CLIENT_FORBIDDEN;
    case ESK_ERR_NOT_FOUND:
        return ESK_CLIENT_NOT_FOUND;
    case ESK_ERR_TOO_LARGE:
        return ESK_CLIENT_TOO_LARGE;
    case ESK_ERR_THROTTLED:
        return ESK_CLIENT_THROTTLED;
    case ESK_ERR_UNAVAILABLE:
    case ESK_ERR_AGAIN:
        return ESK_CLIENT_UNAVAILABLE;
    case ESK_ERR_NO_SPACE:
        return ESK_CLIENT_NO_SPACE;
    default:
        return ESK_CLIENT_BROKER;
    }
}

uint32_t esk_client_partition(const void *key, size_t key_size, uint32_t count, bool murmur2) {
    static const uint8_t none = 0;
    return (uint32_t)esk_partition_for_key(
        murmur2 ? ESK_PARTITIONER_MURMUR2 : ESK_PARTITIONER_FNV1A,
        esk_slice(key ? key : &none, key ? key_size : 0), (int32_t)count);
}
