/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as tables and lines. */
#include "esk/listing.h"

#include "esk/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define SHORT_FIELDS_MAX 3 /* of an object whose values say enough without their names */
#define DEPTH_MAX 4        /* of arrays and objects in a cell; what is deeper shows as ... */

static void append_value(struct esk_buffer *out, const struct esk_json_value *value, int depth) {
    struct esk_json_iterator each = esk_json_each(value);
    struct esk_json_value part;
    struct esk_slice key;
    size_t count = 0;
    bool is_long;
    if (depth > DEPTH_MAX) {
        esk_buffer_append_text(out, "...");
        return;
    }
    switch (value->type) {
    case ESK_JSON_NULL:
        esk_buffer_append_text(out, "-");
        break;
    case ESK_JSON_BOOL:
        esk_buffer_append_text(out, value->boolean ? "yes" : "no");
        break;
    case ESK_JSON_INT64:
        esk_buffer_format(out, "%" PRId64, value->int64);
        break;
    case ESK_JSON_UINT64:
        esk_buffer_format(out, "%" PRIu64, value->uint64);
        break;
    case ESK_JSON_REAL:
        esk_buffer_format(out, "%g", value->real);
        break;
    case ESK_JSON_STRING:
        esk_buffer_append(out, value->string.data, value->string.size);
        break;
    case ESK_JSON_ARRAY:
        while (esk_json_next_element(&each, &part)) {
            esk_buffer_append_text(out, count++ ? "," : "");
            append_value(out, &part, depth + 1);
        }
        esk_buffer_append_text(out, count ? "" : "-");
        break;
    case ESK_JSON_OBJECT:
        is_long = esk_json_count(value) > SHORT_FIELDS_MAX;
        while (esk_json_next_field(&each, &key, &part)) {
            esk_buffer_append_text(out, count++ == 0 ? "" : is_long ? " " : ":");
            if (is_long) {
                esk_buffer_append(out, key.data, key.size);
                esk_buffer_append_text(out, "=");
            }
            append_value(out, &part, depth + 1);
        }
        break;
    }
}

void esk_listing_value(struct esk_buffer *out, const struct esk_json_value *value) {
    append_value(out, value, 0);
}

static void append_time(struct esk_buffer *out, const struct esk_json_value *value) {
    uint64_t ms;
    struct tm parts;
    if (!esk_json_uint64(value, &ms)) {
        append_value(out, value, 0);
        return;
    }
    time_t seconds = (time_t)(ms / 1000);
    char text[32];
    if (!gmtime_r(&seconds, &parts) ||
        !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts)) {
        append_value(out, value, 0);
        return;
    }
    esk_buffer_append_text(out, text);
}

void esk_listing_table(struct esk_buffer *out, const struct esk_json_value *root, const char *name,
                       const struct esk_column *columns) {
    const char *heads[ESK_TABLE_COLUMNS_MAX + 1] = {NULL};
    struct esk_table table;
    struct esk_json_value list = {0};
    struct esk_json_value element;
    struct esk_buffer cell;
    for (size_t i = 0; columns[i].head; i++) {
        heads[i] = columns[i].head;
    }
    esk_table_init(&table, heads);
    esk_buffer_init(&cell);
    if (esk_json_find(root, name, &list) && list.type == ESK_JSON_ARRAY) {
        struct esk_json_iterator each = esk_json_each(&list);
        while (esk_json_next_element(&each, &element)) {
            for (size_t i = 0; columns[i].head; i++) {
                struct esk_json_value value = {.type = ESK_JSON_NULL};
                (void)esk_json_find(&element, columns[i].field, &value);
                cell.size = 0;
                if (columns[i].is_time) {
                    append_time(&cell, &value);
                } else {
                    append_value(&cell, &value, 0);
                }
                esk_table_text(&table, esk_buffer_slice(&cell));
            }
        }
    }
    esk_table_print(&table, out);
    esk_buffer_fini(&cell);
    esk_table_fini(&table);
}

int esk_listing_get(struct esk_session *session, const char *path, const char *name,
                    const struct esk_column *columns) {
    struct esk_json_value root;
    int code = esk_session_get(session, path, &root);
    if (code != ESK_EXIT_DONE || session->is_json) {
        return code == ESK_EXIT_DONE ? esk_session_print_answer(session) : code;
    }
    esk_listing_table(&session->out, &root, name, columns);
    return esk_session_flush(session);
}

int esk_listing_do(struct esk_session *session, const char *method, const char *path,
                   struct esk_slice body, const char *format, ...) {
    struct esk_json_value root;
    int code = esk_session_call(session, method, path, body, &root);
    if (code != ESK_EXIT_DONE || session->is_json) {
        return code == ESK_EXIT_DONE ? esk_session_print_answer(session) : code;
    }
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    esk_buffer_append_text(&session->out, text);
    esk_buffer_append_text(&session->out, "\n");
    return esk_session_flush(session);
}

int esk_listing_fields(struct esk_session *session, const struct esk_json_value *root) {
    if (session->is_json) {
        return esk_session_print_answer(session);
    }
    struct esk_json_iterator each = esk_json_each(root);
    struct esk_json_value value;
    struct esk_slice key;
    while (root->type == ESK_JSON_OBJECT && esk_json_next_field(&each, &key, &value)) {
        esk_buffer_format(&session->out, "%-22.*s  ", (int)key.size, (const char *)key.data);
        append_value(&session->out, &value, 0);
        esk_buffer_append_text(&session->out, "\n");
    }
    return esk_session_flush(session);
}
