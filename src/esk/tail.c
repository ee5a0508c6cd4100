/* SPDX-License-Identifier: Apache-2.0 */
/* esk topic tail: the broker's stream of server-sent events of one partition, printed as it comes.
 * When the stream ends it is asked for again, from behind the last record. */
#include "esk/commands.h"
#include "esk/record_print.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SILENCE_MS 45000 /* the broker sends a comment every 15 s */
#define PAUSE_MS_MIN 100
#define PAUSE_MS_MAX 5000

struct tailing {
    struct esk_session *session;
    const char *topic;
    const char *encoding;
    const char *separator;
    enum esk_print_form form;
    uint64_t partition;
    char from[24];          /* the offset to ask for; empty: the end */
    uint64_t left;          /* records that may still be printed */
    struct esk_buffer data; /* of the event that is being read */
    char id[24];            /* its id */
    bool is_error;          /* the event is an error */
    bool is_away;           /* the stream was lost, and it was said */
};

static void begin_event(struct tailing *tailing) {
    tailing->data.size = 0;
    tailing->id[0] = '\0';
    tailing->is_error = false;
}

static int print_event(struct tailing *tailing) {
    struct esk_json_value root;
    struct esk_error error;
    struct esk_session *session = tailing->session;
    if (tailing->data.size == 0) {
        return ESK_EXIT_DONE;
    }
    memset(esk_buffer_grow(&tailing->data, ESK_JSON_PADDING), 0, ESK_JSON_PADDING);
    if (esk_json_document_parse(session->document, esk_buffer_slice(&tailing->data), &root,
                                &error) != ESK_OK) {
        return esk_complain(ESK_EXIT_FAILED, "the broker's event: %s", error.text);
    }
    if (tailing->is_error) {
        static const char not_text[] = "encoding=base64"; /* what the API's clients are told */
        struct esk_slice text = esk_json_field_text(&root, "error");
        bool is_not_text =
            text.size && memmem(text.data, text.size, not_text, sizeof(not_text) - 1) != NULL;
        return esk_complain(ESK_EXIT_FAILED, "the broker ended the stream: %.*s%s", (int)text.size,
                            text.data ? (const char *)text.data : "",
                            is_not_text ? "; that is --encoding base64 here, or raw" : "");
    }
    if (!esk_record_print(&root, tailing->form, tailing->separator, &session->out)) {
        return esk_complain(ESK_EXIT_FAILED, "the broker's event is no record");
    }
    tailing->left--;
    if (tailing->id[0]) {
        strcpy(tailing->from, tailing->id);
    }
    return ESK_EXIT_DONE;
}

static bool has_field(struct esk_slice line, const char *name, struct esk_slice *value) {
    size_t size = strlen(name);
    if (line.size < size || memcmp(line.data, name, size) != 0) {
        return false;
    }
    *value = esk_slice(line.data + size, line.size - size);
    if (value->size && value->data[0] == ' ') {
        *value = esk_slice(value->data + 1, value->size - 1);
    }
    return true;
}

static int take_line(struct tailing *tailing, struct esk_slice line) {
    struct esk_slice value;
    int code = ESK_EXIT_DONE;
    if (line.size && line.data[line.size - 1] == '\r') {
        line.size--;
    }
    if (line.size == 0) {
        code = print_event(tailing);
        begin_event(tailing);
    } else if (has_field(line, "data:", &value)) {
        esk_buffer_append(&tailing->data, value.data, value.size);
    } else if (has_field(line, "id:", &value) && value.size < sizeof(tailing->id)) {
        memcpy(tailing->id, value.data, value.size);
        tailing->id[value.size] = '\0';
    } else if (has_field(line, "event:", &value)) {
        tailing->is_error = esk_slice_equal(value, esk_slice_text("error"));
    }
    return code;
}

/* Takes the whole lines out of the answer's body. */
static int take_lines(struct tailing *tailing, struct esk_buffer *body) {
    size_t begin = 0;
    int code = ESK_EXIT_DONE;
    while (code == ESK_EXIT_DONE && tailing->left) {
        const uint8_t *at = body->data + begin;
        const uint8_t *end = body->size > begin ? memchr(at, '\n', body->size - begin) : NULL;
        if (!end) {
            break;
        }
        code = take_line(tailing, esk_slice(at, (size_t)(end - at)));
        begin += (size_t)(end - at) + 1;
    }
    if (begin) {
        memmove(body->data, body->data + begin, body->size - begin);
        body->size -= begin;
    }
    int written = esk_session_flush(tailing->session);
    return code == ESK_EXIT_DONE ? written : code;
}

/* One stream, to its end. *is_lost: it may be asked for again, and error says why it ended. */
static int read_stream(struct tailing *tailing, bool *is_lost, struct esk_error *error) {
    struct esk_http_client *client = &tailing->session->client;
    char query[128];
    snprintf(query, sizeof(query), "/tail?partition=%" PRIu64 "&encoding=%s%s%s",
             tailing->partition, tailing->encoding, tailing->from[0] ? "&offset=" : "",
             tailing->from);
    char *path = esk_path("/topics/", tailing->topic, query);
    enum esk_err err = esk_http_client_send(client, "GET", path, esk_slice(NULL, 0), error);
    free(path);
    int code = ESK_EXIT_DONE;
    begin_event(tailing);
    err = err == ESK_OK ? ESK_ERR_AGAIN : err;
    while (err == ESK_ERR_AGAIN && code == ESK_EXIT_DONE && tailing->left) {
        err = esk_http_client_pull(client, SILENCE_MS, error);
        bool is_stream = client->answer.status == 200;
        if (is_stream && (err == ESK_OK || err == ESK_ERR_AGAIN)) {
            tailing->session->was_reached = true;
            if (tailing->is_away) {
                tailing->is_away = false;
                (void)esk_complain(0, "the broker is back");
            }
            code = take_lines(tailing, &client->answer.body);
        }
    }
    if (err == ESK_OK && client->answer.status != 200) {
        struct esk_json_value root;
        memset(esk_buffer_grow(&client->answer.body, ESK_JSON_PADDING), 0, ESK_JSON_PADDING);
        code = esk_session_read(tailing->session, &client->answer, &root);
        *is_lost = client->answer.status == 503;
        esk_fail(error, ESK_ERR_UNAVAILABLE, "the broker is not ready");
        return code;
    }
    if (err == ESK_OK) {
        esk_fail(error, ESK_ERR_UNAVAILABLE, "the broker ended the stream");
    }
    *is_lost = code == ESK_EXIT_DONE && tailing->left;
    return code;
}

static int tail(struct tailing *tailing) {
    int pause_ms = PAUSE_MS_MIN;
    for (;;) {
        struct esk_error error;
        bool is_lost = false;
        uint64_t before = tailing->left;
        int code = read_stream(tailing, &is_lost, &error);
        if (!is_lost) {
            return code;
        }
        if (!tailing->session->was_reached) {
            return esk_complain(ESK_EXIT_FAILED, "%s", error.text);
        }
        if (!tailing->is_away) {
            tailing->is_away = true;
            (void)esk_complain(0, "%s; trying again until the broker is back", error.text);
        }
        pause_ms = tailing->left != before       ? PAUSE_MS_MIN
                   : pause_ms * 2 < PAUSE_MS_MAX ? pause_ms * 2
                                                 : PAUSE_MS_MAX;
        struct pollfd poller = {.fd = STDOUT_FILENO};
        if (poll(&poller, 1, pause_ms) > 0) {
            return ESK_EXIT_FAILED; /* nobody reads the output any more */
        }
    }
}

int esk_topic_tail(struct esk_session *session) {
    static const enum esk_print_form forms[] = {ESK_PRINT_TEXT, ESK_PRINT_BASE64, ESK_PRINT_RAW};
    const struct esk_arguments *arguments = session->arguments;
    const char *offset = esk_arguments_text(arguments, "offset");
    enum esk_print_form form = forms[esk_arguments_number(arguments, "encoding")];
    struct tailing tailing = {
        .session = session,
        .topic = arguments->arguments[0],
        .encoding = form == ESK_PRINT_TEXT ? "utf8" : "base64",
        .separator = esk_separator(arguments),
        .form = session->is_json ? ESK_PRINT_JSON : form,
        .partition = esk_arguments_number(arguments, "partition"),
        .left = esk_arguments_given(arguments, "max") ? esk_arguments_number(arguments, "max")
                                                      : UINT64_MAX,
    };
    uint64_t number;
    if (strcmp(offset, "start") == 0) {
        strcpy(tailing.from, "0");
    } else if (esk_number_read(offset, ESK_TOOL_INTEGER, &number) && number <= INT64_MAX) {
        snprintf(tailing.from, sizeof(tailing.from), "%" PRIu64, number);
    } else if (strcmp(offset, "end") != 0) {
        return esk_complain(ESK_EXIT_USAGE, "--offset '%s': allowed is a number, start or end",
                            offset);
    }
    esk_buffer_init(&tailing.data);
    int code = tail(&tailing);
    esk_buffer_fini(&tailing.data);
    return code;
}
