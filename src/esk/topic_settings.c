/* SPDX-License-Identifier: Apache-2.0 */
/* The broker ignores fields it does not know, so a mistyped name has to be noticed here. */
#include "esk/topic_settings.h"

#include "esk/arguments.h"

#include <string.h>

static const struct setting {
    const char *name;
    enum esk_tool_type type;
    bool may_be_unlimited;
} known[] = {
    {"retention_ms", ESK_TOOL_DURATION, true},
    {"retention_bytes", ESK_TOOL_SIZE, true},
    {"cleanup_policy", ESK_TOOL_TEXT, false},
    {"segment_bytes", ESK_TOOL_SIZE, false},
    {"tombstone_retention_ms", ESK_TOOL_DURATION, false},
    {"partitioner", ESK_TOOL_TEXT, false},
};

static const struct setting *find(const char *text, const char **value) {
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        size_t size = strlen(known[i].name);
        if (strncmp(text, known[i].name, size) == 0 && text[size] == '=') {
            *value = text + size + 1;
            return &known[i];
        }
    }
    return NULL;
}

static enum esk_err write_value(struct esk_json_writer *writer, const struct setting *setting,
                                const char *value, struct esk_error *error) {
    uint64_t number;
    if (setting->type == ESK_TOOL_TEXT) {
        esk_json_write_text(writer, value);
    } else if (setting->may_be_unlimited &&
               (strcmp(value, "unlimited") == 0 || strcmp(value, "null") == 0 ||
                strcmp(value, "-1") == 0)) {
        esk_json_write_null(writer);
    } else if (esk_number_read(value, setting->type, &number) ||
               esk_number_read(value, ESK_TOOL_INTEGER, &number)) {
        esk_json_write_uint64(writer, number);
    } else {
        return esk_fail(error, ESK_ERR_INVALID, "%s '%s': allowed is a %s%s", setting->name, value,
                        setting->type == ESK_TOOL_SIZE ? "size, such as 64MiB" : "time, such as 7d",
                        setting->may_be_unlimited ? ", or unlimited" : "");
    }
    return ESK_OK;
}

enum esk_err esk_topic_settings_write(struct esk_json_writer *writer, const char *const *settings,
                                      uint32_t count, struct esk_error *error) {
    esk_json_open_object(writer);
    for (uint32_t i = 0; i < count; i++) {
        const char *value;
        const struct setting *setting = find(settings[i], &value);
        if (!setting) {
            return esk_fail(error, ESK_ERR_INVALID,
                            "'%s' is no setting; allowed is NAME=VALUE with one of retention_ms, "
                            "retention_bytes, cleanup_policy, segment_bytes, "
                            "tombstone_retention_ms, partitioner",
                            settings[i]);
        }
        esk_json_write_key(writer, setting->name);
        enum esk_err err = write_value(writer, setting, value, error);
        if (err != ESK_OK) {
            return err;
        }
    }
    esk_json_close_object(writer);
    return ESK_OK;
}
