/* SPDX-License-Identifier: Apache-2.0 */
/* esk schema register, check, list, show, latest. */
#include "esk/commands.h"
#include "esk/listing.h"
#include "model/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SCHEMA_BYTES_MAX (10 * 1024 * 1024) /* the broker's default limit of a body */

/* Reads a file, or standard input for "-" and NULL. */
static int read_schema(const char *path, struct esk_buffer *text) {
    bool is_input = !path || strcmp(path, "-") == 0;
    FILE *file = is_input ? stdin : fopen(path, "re");
    const char *name = is_input ? "standard input" : path;
    if (!file) {
        return esk_complain(ESK_EXIT_FAILED, "%s: %s", name, strerror(errno));
    }
    size_t count;
    do {
        count = fread(esk_buffer_grow(text, 65536), 1, 65536, file);
        text->size += count;
    } while (count && text->size <= SCHEMA_BYTES_MAX);
    bool is_bad = ferror(file);
    if (!is_input) {
        fclose(file);
    }
    if (is_bad || text->size > SCHEMA_BYTES_MAX) {
        return esk_complain(ESK_EXIT_FAILED, "%s: %s", name,
                            is_bad ? "it cannot be read" : "it is over 10 MiB");
    }
    if (!esk_utf8_valid(esk_buffer_slice(text))) {
        return esk_complain(ESK_EXIT_FAILED, "%s: it is not UTF-8", name);
    }
    return ESK_EXIT_DONE;
}

/* The body {"<subject>": ..., "<type>": ..., "schema": ...} of either kind of route. */
static int write_body(const struct esk_session *session, bool is_check, struct esk_buffer *body) {
    const struct esk_arguments *arguments = session->arguments;
    static const char *const check_types[] = {"JSON", "AVRO", "PROTOBUF"};
    struct esk_buffer text;
    esk_buffer_init(&text);
    int code = read_schema(arguments->count > 1 ? arguments->arguments[1] : NULL, &text);
    struct esk_json_writer writer = esk_json_writer(body);
    esk_json_open_object(&writer);
    if (is_check) {
        esk_json_write_key(&writer, "schemaType");
        esk_json_write_text(&writer, check_types[esk_arguments_number(arguments, "type")]);
    } else {
        esk_json_write_key(&writer, "subject");
        esk_json_write_text(&writer, arguments->arguments[0]);
        esk_json_write_key(&writer, "type");
        esk_json_write_text(&writer, esk_arguments_text(arguments, "type"));
    }
    esk_json_write_key(&writer, "schema");
    esk_json_write_string(&writer, esk_slice(text.data ? text.data : (const uint8_t *)"",
                                             code == ESK_EXIT_DONE ? text.size : 0));
    esk_json_close_object(&writer);
    esk_buffer_fini(&text);
    return code;
}

int esk_schema_register(struct esk_session *session) {
    struct esk_buffer body;
    struct esk_json_value root;
    esk_buffer_init(&body);
    int code = write_body(session, false, &body);
    if (code == ESK_EXIT_DONE) {
        code = esk_session_call(session, "POST", "/schemas", esk_buffer_slice(&body), &root);
    }
    esk_buffer_fini(&body);
    if (code != ESK_EXIT_DONE || session->is_json) {
        return code == ESK_EXIT_DONE ? esk_session_print_answer(session) : code;
    }
    esk_buffer_format(&session->out, "%s has schema %llu\n", session->arguments->arguments[0],
                      (unsigned long long)esk_json_field_number(&root, "id"));
    return esk_session_flush(session);
}

int esk_schema_check(struct esk_session *session) {
    struct esk_buffer body;
    struct esk_json_value root;
    struct esk_json_value answer = {.type = ESK_JSON_NULL};
    esk_buffer_init(&body);
    int code = write_body(session, true, &body);
    if (code == ESK_EXIT_DONE) {
        char *path = esk_path("/compatibility/subjects/", session->arguments->arguments[0],
                              "/versions/latest");
        code = esk_session_call(session, "POST", path, esk_buffer_slice(&body), &root);
        free(path);
    }
    esk_buffer_fini(&body);
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    bool is_good = esk_json_find(&root, "is_compatible", &answer) && answer.type == ESK_JSON_BOOL &&
                   answer.boolean;
    if (session->is_json) {
        code = esk_session_print_answer(session);
    } else {
        esk_buffer_append_text(&session->out, is_good ? "compatible\n" : "not compatible");
        if (!is_good && esk_json_find(&root, "messages", &answer)) {
            esk_buffer_append_text(&session->out, ": ");
            esk_listing_value(&session->out, &answer);
        }
        esk_buffer_append_text(&session->out, is_good ? "" : "\n");
        code = esk_session_flush(session);
    }
    return code == ESK_EXIT_DONE && !is_good ? ESK_EXIT_FAILED : code;
}

int esk_schema_list(struct esk_session *session) {
    static const struct esk_column columns[] = {
        {">ID", "id", false},
        {"SUBJECT", "subject", false},
        {">VERSION", "version", false},
        {"TYPE", "type", false},
        {0},
    };
    return esk_listing_get(session, "/schemas", "schemas", columns);
}

/* Prints the schema itself, so that it can go into a file. */
static int print_schema(struct esk_session *session, const char *path) {
    struct esk_json_value root;
    int code = esk_session_get(session, path, &root);
    if (code != ESK_EXIT_DONE || session->is_json) {
        return code == ESK_EXIT_DONE ? esk_session_print_answer(session) : code;
    }
    struct esk_slice text = esk_json_field_text(&root, "schema");
    if (text.size) {
        esk_buffer_append(&session->out, text.data, text.size);
    }
    if (text.size == 0 || text.data[text.size - 1] != '\n') {
        esk_buffer_append_text(&session->out, "\n");
    }
    return esk_session_flush(session);
}

int esk_schema_show(struct esk_session *session) {
    char *path = esk_path("/schemas/", session->arguments->arguments[0], "");
    int code = print_schema(session, path);
    free(path);
    return code;
}

int esk_schema_latest(struct esk_session *session) {
    char *path = esk_path("/subjects/", session->arguments->arguments[0], "/versions/latest");
    int code = print_schema(session, path);
    free(path);
    return code;
}
