/* SPDX-License-Identifier: Apache-2.0 */
/* The generated tables and the ways to find something in them. */
#include "wire/kafka/messages.h"
#include "wire/kafka/schema.h"

#include <string.h>
#include <strings.h>

#include "wire/kafka/error_table.inc"
#include "wire/kafka/formats.inc"
#include "wire/kafka/releases.inc"
#include "wire/kafka/tables.inc"

#define MESSAGE_COUNT (sizeof(messages) / sizeof(messages[0]))
#define ERROR_COUNT (sizeof(errors) / sizeof(errors[0]))

const struct esk_kafka_field *const esk_kafka_batch_fields = record_batch_fields;
const struct esk_kafka_field *const esk_kafka_record_fields = record_fields;
const struct esk_kafka_field *const esk_kafka_message_set_fields = message_set_fields;

const struct esk_kafka_message *esk_kafka_messages(size_t *count) {
    *count = MESSAGE_COUNT;
    return messages;
}

const struct esk_kafka_message *esk_kafka_message_named(const char *name, int16_t version) {
    const struct esk_kafka_message *found = NULL;
    for (size_t i = 0; i < MESSAGE_COUNT; i++) {
        if (strcmp(messages[i].name, name) == 0) {
            if (esk_kafka_has_version(&messages[i], version))
                return &messages[i];
            if (found == NULL)
                found = &messages[i];
        }
    }
    return found;
}

const struct esk_kafka_message *esk_kafka_message_find(enum esk_kafka_message_type type,
                                                       int16_t api_key, int16_t version) {
    const int16_t *now = type == ESK_KAFKA_REQUEST ? request_by_key : response_by_key;
    const int16_t *old =
        type == ESK_KAFKA_REQUEST ? request_removed_by_key : response_removed_by_key;
    if (api_key < 0 || (size_t)api_key >= sizeof(request_by_key) / sizeof(request_by_key[0]))
        return NULL;
    if (now[api_key] >= 0 && esk_kafka_has_version(&messages[now[api_key]], version))
        return &messages[now[api_key]];
    if (old[api_key] >= 0 && esk_kafka_has_version(&messages[old[api_key]], version))
        return &messages[old[api_key]];
    return NULL;
}

const struct esk_kafka_message *esk_kafka_api_find(const char *api_name,
                                                   enum esk_kafka_message_type type, bool removed) {
    for (size_t i = 0; i < MESSAGE_COUNT; i++) {
        if (messages[i].type == type && messages[i].removed == removed &&
            strcasecmp(messages[i].api_name, api_name) == 0)
            return &messages[i];
    }
    return NULL;
}

#define API_VERSIONS_KEY 18
#define CONTROLLED_SHUTDOWN_KEY 7

const struct esk_kafka_layout *esk_kafka_header_layout(const struct esk_kafka_message *message,
                                                       int16_t version, int16_t *header_version) {
    bool flexible = message->flexible_min >= 0 && version >= message->flexible_min;
    size_t index = response_header_index;
    int16_t header = flexible && message->api_key != API_VERSIONS_KEY ? 1 : 0;
    if (message->type == ESK_KAFKA_REQUEST) {
        bool without_client = message->api_key == CONTROLLED_SHUTDOWN_KEY && version == 0;
        index = without_client ? request_header_removed_index : request_header_index;
        header = flexible ? 2 : without_client ? 0 : 1;
    }
    if (header_version != NULL)
        *header_version = header;
    return esk_kafka_layout_of(&messages[index], header);
}

const struct esk_kafka_release *esk_kafka_releases(size_t *count) {
    *count = sizeof(releases) / sizeof(releases[0]);
    return releases;
}

const struct esk_kafka_error *esk_kafka_errors(size_t *count) {
    *count = ERROR_COUNT;
    return errors;
}

const struct esk_kafka_error *esk_kafka_error_of(int16_t code) {
    if (code < -1 || code >= (int32_t)ERROR_COUNT - 1)
        return NULL;
    return &errors[code + 1];
}
