/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with an error text for people, and output. */
#include "esk/commands.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int esk_complain(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("esk: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return code;
}

uint64_t esk_json_field_number(const struct esk_json_value *object, const char *key) {
    struct esk_json_value value;
    uint64_t number;
    return esk_json_find(object, key, &value) && esk_json_uint64(&value, &number) ? number : 0;
}

struct esk_slice esk_json_field_text(const struct esk_json_value *object, const char *key) {
    struct esk_json_value value;
    if (esk_json_find(object, key, &value) && value.type == ESK_JSON_STRING) {
        return value.string;
    }
    return esk_slice(NULL, 0);
}

char *esk_path(const char *before, const char *name, const char *after) {
    struct esk_buffer path;
    esk_buffer_init(&path);
    esk_buffer_append_text(&path, before);
    esk_http_append_encoded(&path, name);
    esk_buffer_append_text(&path, after);
    esk_buffer_u8(&path, '\0');
    return (char *)path.data;
}

int esk_session_read(struct esk_session *session, const struct esk_http_answer *answer,
                     struct esk_json_value *root) {
    struct esk_error error;
    enum esk_err err =
        esk_json_document_parse(session->document, esk_buffer_slice(&answer->body), root, &error);
    bool is_object = err == ESK_OK && root->type == ESK_JSON_OBJECT;
    session->is_unreachable = answer->status == 503;
    if (answer->status / 100 != 2) {
        struct esk_slice text = esk_slice(NULL, 0);
        if (is_object) {
            text = esk_json_field_text(root, "error");
        }
        return esk_complain(ESK_EXIT_FAILED, "the broker answered %d%s%.*s%s", answer->status,
                            text.size ? ": " : "", (int)text.size,
                            text.data ? (const char *)text.data : "",
                            answer->status == 401 ? ESK_KEY_HINT : "");
    }
    if (!is_object) {
        return esk_complain(ESK_EXIT_FAILED, "the broker's answer: %s",
                            err == ESK_OK ? "not a JSON object" : error.text);
    }
    return ESK_EXIT_DONE;
}

int esk_session_exchange(struct esk_session *session, const char *method, const char *path,
                         struct esk_slice body) {
    struct esk_error error;
    enum esk_err err = esk_http_client_send(&session->client, method, path, body, &error);
    if (err == ESK_OK) {
        err = esk_http_client_receive(&session->client, 0, &error);
    }
    session->is_unreachable = err != ESK_OK;
    if (err == ESK_OK) {
        session->was_reached = true;
        return ESK_EXIT_DONE;
    }
    bool is_new = err == ESK_ERR_UNAVAILABLE && !session->was_reached;
    return esk_complain(ESK_EXIT_FAILED, "%s%s", error.text,
                        is_new ? "; start a broker there (esker), or name another with --server "
                                 "or ESK_SERVER"
                               : "");
}

int esk_session_call(struct esk_session *session, const char *method, const char *path,
                     struct esk_slice body, struct esk_json_value *root) {
    int code = esk_session_exchange(session, method, path, body);
    return code == ESK_EXIT_DONE ? esk_session_read(session, &session->client.answer, root) : code;
}

int esk_session_flush(struct esk_session *session) {
    const uint8_t *at = session->out.data;
    size_t left = session->out.size;
    session->out.size = 0;
    while (left) {
        ssize_t count = write(STDOUT_FILENO, at, left);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            /* A reader such as head that has seen enough is no trouble to tell of. */
            return errno == EPIPE ? ESK_EXIT_FAILED
                                  : esk_complain(ESK_EXIT_FAILED, "write to standard output: %s",
                                                 strerror(errno));
        }
        at += count;
        left -= (size_t)count;
    }
    return ESK_EXIT_DONE;
}

int esk_session_print_answer(struct esk_session *session) {
    const struct esk_buffer *body = &session->client.answer.body;
    esk_buffer_append(&session->out, body->data, body->size);
    if (body->size == 0 || body->data[body->size - 1] != '\n') {
        esk_buffer_append_text(&session->out, "\n");
    }
    return esk_session_flush(session);
}

const char *esk_separator(const struct esk_arguments *arguments) {
    const char *text = esk_arguments_text(arguments, "key-separator");
    return text && strcmp(text, "\\t") == 0 ? "\t" : text;
}
