/* SPDX-License-Identifier: Apache-2.0 */
/* esk topic create, list, describe, config, delete. */
#include "esk/commands.h"
#include "esk/table.h"
#include "esk/topic_settings.h"

#include <stdio.h>
#include <stdlib.h>

static const char *first_argument(const struct esk_session *session) {
    return session->arguments->arguments[0];
}

/* A setting for people: null is unlimited. */
static void append_setting(struct esk_buffer *out, const struct esk_json_value *value) {
    if (value->type == ESK_JSON_STRING) {
        esk_buffer_append(out, value->string.data, value->string.size);
    } else if (value->type == ESK_JSON_INT64) {
        esk_buffer_format(out, "%lld", (long long)value->int64);
    } else {
        esk_buffer_append_text(out, value->type == ESK_JSON_NULL ? "unlimited" : "?");
    }
}

static void print_settings(struct esk_session *session, const struct esk_json_value *config) {
    struct esk_table table;
    esk_table_init(&table, (const char *const[]){"SETTING", "VALUE", NULL});
    struct esk_json_iterator each = esk_json_each(config);
    struct esk_slice key;
    struct esk_json_value value;
    struct esk_buffer text;
    esk_buffer_init(&text);
    while (esk_json_next_field(&each, &key, &value)) {
        text.size = 0;
        append_setting(&text, &value);
        esk_table_text(&table, key);
        esk_table_text(&table, esk_buffer_slice(&text));
    }
    esk_table_print(&table, &session->out);
    esk_buffer_fini(&text);
    esk_table_fini(&table);
}

int esk_topic_create(struct esk_session *session) {
    const struct esk_tool_value *settings = esk_arguments_value(session->arguments, "config");
    uint64_t partitions = esk_arguments_number(session->arguments, "partitions");
    struct esk_error error;
    struct esk_buffer body;
    esk_buffer_init(&body);
    struct esk_json_writer writer = esk_json_writer(&body);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "name");
    esk_json_write_text(&writer, first_argument(session));
    esk_json_write_key(&writer, "partitions");
    esk_json_write_uint64(&writer, partitions);
    esk_json_write_key(&writer, "config");
    int code;
    if (esk_topic_settings_write(&writer, settings->texts, settings->count, &error) != ESK_OK) {
        code = esk_complain(ESK_EXIT_USAGE, "--config %s", error.text);
    } else {
        esk_json_close_object(&writer);
        struct esk_json_value root;
        code = esk_session_call(session, "POST", "/topics", esk_buffer_slice(&body), &root);
    }
    esk_buffer_fini(&body);
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    if (session->is_json) {
        return esk_session_print_answer(session);
    }
    esk_buffer_format(&session->out, "%s created with %llu partition%s\n", first_argument(session),
                      (unsigned long long)partitions, partitions == 1 ? "" : "s");
    return esk_session_flush(session);
}

int esk_topic_list(struct esk_session *session) {
    struct esk_json_value root;
    struct esk_json_value topics;
    int code = esk_session_get(session, "/topics", &root);
    if (code != ESK_EXIT_DONE || session->is_json) {
        return code == ESK_EXIT_DONE ? esk_session_print_answer(session) : code;
    }
    struct esk_table table;
    esk_table_init(&table, (const char *const[]){"TOPIC", ">PARTITIONS", NULL});
    if (esk_json_find(&root, "topics", &topics)) {
        struct esk_json_iterator each = esk_json_each(&topics);
        struct esk_json_value topic;
        while (topics.type == ESK_JSON_ARRAY && esk_json_next_element(&each, &topic)) {
            esk_table_text(&table, esk_json_field_text(&topic, "name"));
            esk_table_number(&table, esk_json_field_number(&topic, "partitions"));
        }
    }
    esk_table_print(&table, &session->out);
    esk_table_fini(&table);
    return esk_session_flush(session);
}

static void print_partitions(struct esk_session *session, const struct esk_json_value *partitions) {
    static const char *const fields[] = {"partition", "start_offset", "high_watermark",
                                         "size_bytes", "segments"};
    struct esk_table table;
    esk_table_init(
        &table, (const char *const[]){">PARTITION", ">START", ">END", ">BYTES", ">SEGMENTS", NULL});
    struct esk_json_iterator each = esk_json_each(partitions);
    struct esk_json_value partition;
    while (partitions->type == ESK_JSON_ARRAY && esk_json_next_element(&each, &partition)) {
        for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
            esk_table_number(&table, esk_json_field_number(&partition, fields[i]));
        }
    }
    esk_table_print(&table, &session->out);
    esk_table_fini(&table);
}

int esk_topic_describe(struct esk_session *session) {
    char *path = esk_path("/topics/", first_argument(session), "");
    struct esk_json_value root;
    struct esk_json_value part;
    int code = esk_session_get(session, path, &root);
    free(path);
    if (code != ESK_EXIT_DONE || session->is_json) {
        return code == ESK_EXIT_DONE ? esk_session_print_answer(session) : code;
    }
    if (esk_json_find(&root, "partitions", &part)) {
        print_partitions(session, &part);
    }
    if (esk_json_find(&root, "config", &part)) {
        esk_buffer_append_text(&session->out, "\n");
        print_settings(session, &part);
    }
    return esk_session_flush(session);
}

int esk_topic_config_command(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    struct esk_error error;
    struct esk_buffer body;
    esk_buffer_init(&body);
    struct esk_json_writer writer = esk_json_writer(&body);
    if (arguments->count > 1 && esk_topic_settings_write(&writer, arguments->arguments + 1,
                                                         arguments->count - 1, &error) != ESK_OK) {
        esk_buffer_fini(&body);
        return esk_complain(ESK_EXIT_USAGE, "%s", error.text);
    }
    char *path = esk_path("/topics/", arguments->arguments[0], "/config");
    struct esk_json_value root;
    int code = arguments->count > 1
                   ? esk_session_call(session, "PUT", path, esk_buffer_slice(&body), &root)
                   : esk_session_get(session, path, &root);
    free(path);
    esk_buffer_fini(&body);
    if (code != ESK_EXIT_DONE || session->is_json) {
        return code == ESK_EXIT_DONE ? esk_session_print_answer(session) : code;
    }
    print_settings(session, &root);
    return esk_session_flush(session);
}

int esk_topic_delete(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    for (uint32_t i = 0; i < arguments->count; i++) {
        char *path = esk_path("/topics/", arguments->arguments[i], "");
        struct esk_json_value root;
        int code = esk_session_call(session, "DELETE", path, esk_slice(NULL, 0), &root);
        free(path);
        if (code == ESK_EXIT_DONE && session->is_json) {
            code = esk_session_print_answer(session);
        } else if (code == ESK_EXIT_DONE) {
            esk_buffer_format(&session->out, "%s deleted\n", arguments->arguments[i]);
            code = esk_session_flush(session);
        }
        if (code != ESK_EXIT_DONE) {
            return code;
        }
    }
    return ESK_EXIT_DONE;
}
