/* SPDX-License-Identifier: Apache-2.0 */
/* esk consume: finds where to begin, then reads partition after partition; consume_follow.c reads
 * them all at once. */
#include "esk/binary.h"
#include "esk/commands.h"
#include "esk/consume_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ANSWER_RECORDS_MAX 10000
#define HTTP_NOT_TEXT 422

char *eski_consume_path(const struct eski_consuming *consuming, const struct eski_reading *reading,
                        uint32_t wait_ms) {
    uint64_t most = consuming->left < ANSWER_RECORDS_MAX ? consuming->left : ANSWER_RECORDS_MAX;
    char query[160];
    snprintf(query, sizeof(query),
             "/consume?partition=%" PRIu32 "&offset=%" PRIu64 "&max_records=%" PRIu64
             "&encoding=%s&wait_ms=%" PRIu32,
             reading->partition, reading->offset, most, consuming->encoding, wait_ms);
    return esk_path("/topics/", consuming->topic, query);
}

static int print_records(struct eski_consuming *consuming, struct eski_reading *reading,
                         const struct esk_json_value *root) {
    struct esk_buffer *out = &consuming->session->out;
    struct esk_json_value records;
    struct esk_json_value record;
    if (!esk_json_find(root, "records", &records) || records.type != ESK_JSON_ARRAY) {
        return esk_complain(ESK_EXIT_FAILED, "the broker's answer has no records");
    }
    struct esk_json_iterator each = esk_json_each(&records);
    while (consuming->left && esk_json_next_element(&each, &record)) {
        if (!esk_record_print(&record, consuming->form, consuming->separator, out)) {
            return esk_complain(ESK_EXIT_FAILED, "the broker's answer has a record that is none");
        }
        reading->offset = esk_json_field_number(&record, "offset") + 1;
        consuming->left--;
        consuming->printed++;
    }
    if (consuming->left) {
        uint64_t next = esk_json_field_number(root, "next_offset");
        reading->offset = next > reading->offset ? next : reading->offset;
    }
    return ESK_EXIT_DONE;
}

int eski_consume_commit(struct eski_consuming *consuming, struct eski_reading *reading) {
    if (!consuming->group || reading->offset == reading->committed) {
        return ESK_EXIT_DONE;
    }
    int code = esk_commit(consuming->session, consuming->group, consuming->topic,
                          reading->partition, reading->offset);
    if (code == ESK_EXIT_DONE) {
        reading->committed = reading->offset;
    }
    return code;
}

void eski_consume_stop(struct eski_reading *reading) {
    reading->is_stopped = true;
    (void)esk_complain(ESK_EXIT_FAILED,
                       "partition %" PRIu32 " is read up to offset %" PRIu64
                       ": the next record is not UTF-8; --encoding raw prints its bytes, "
                       "--encoding base64 writes them as such",
                       reading->partition, reading->offset);
}

int eski_consume_take(struct eski_consuming *consuming, struct eski_reading *reading,
                      const struct esk_http_answer *answer) {
    struct esk_json_value root;
    if (answer->status == HTTP_NOT_TEXT) {
        eski_consume_stop(reading);
        return ESK_EXIT_DONE;
    }
    int code = esk_session_read(consuming->session, answer, &root);
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    code = print_records(consuming, reading, &root);
    reading->end = esk_json_field_number(&root, "high_watermark");
    int written = esk_session_flush(consuming->session);
    if (code == ESK_EXIT_DONE) {
        code = written;
    }
    if (consuming->shows_progress) {
        fprintf(stderr, "\r%" PRIu64 " records", consuming->printed);
    }
    return code == ESK_EXIT_DONE ? eski_consume_commit(consuming, reading) : code;
}

/* One request, and what came of it. */
static int read_on(struct eski_consuming *consuming, struct eski_reading *reading) {
    if (consuming->binary) {
        return eski_consume_binary(consuming, reading);
    }
    char *path = eski_consume_path(consuming, reading, 0);
    int code = esk_session_exchange(consuming->session, "GET", path, esk_slice(NULL, 0));
    free(path);
    return code == ESK_EXIT_DONE
               ? eski_consume_take(consuming, reading, &consuming->session->client.answer)
               : code;
}

/* Reads up to the end that the partition has at the first answer. */
static int read_partition(struct eski_consuming *consuming, struct eski_reading *reading) {
    uint64_t end = UINT64_MAX;
    while (consuming->left && reading->offset < end && !reading->is_stopped) {
        uint64_t before = reading->offset;
        int code = read_on(consuming, reading);
        if (code != ESK_EXIT_DONE) {
            return code;
        }
        if (end == UINT64_MAX) {
            end = reading->end;
        }
        if (reading->offset == before) {
            break; /* nothing there, or the broker gives no more */
        }
    }
    return ESK_EXIT_DONE;
}

/* --- where to begin --- */

/* All partitions of the topic, with their ends. */
static int find_partitions(struct eski_consuming *consuming) {
    struct esk_json_value root;
    struct esk_json_value partitions;
    struct esk_json_value partition;
    char *path = esk_path("/topics/", consuming->topic, "");
    int code = esk_session_get(consuming->session, path, &root);
    free(path);
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    if (!esk_json_find(&root, "partitions", &partitions) || partitions.type != ESK_JSON_ARRAY) {
        return esk_complain(ESK_EXIT_FAILED, "the broker's answer has no partitions");
    }
    consuming->readings =
        esk_alloc_zeroed(esk_json_count(&partitions) + 1, sizeof(*consuming->readings));
    struct esk_json_iterator each = esk_json_each(&partitions);
    while (esk_json_next_element(&each, &partition)) {
        consuming->readings[consuming->reading_count++] = (struct eski_reading){
            .partition = (uint32_t)esk_json_field_number(&partition, "partition"),
            .end = esk_json_field_number(&partition, "high_watermark"),
        };
    }
    return ESK_EXIT_DONE;
}

/* Keeps the partitions that were asked for, in that order. */
static int choose_partitions(struct eski_consuming *consuming, const struct esk_tool_value *asked) {
    if (asked->count == 0) {
        return ESK_EXIT_DONE;
    }
    struct eski_reading *chosen = esk_alloc_zeroed(asked->count, sizeof(*chosen));
    size_t count = 0;
    int code = ESK_EXIT_DONE;
    for (uint32_t i = 0; i < asked->count; i++) {
        uint64_t number = 0;
        size_t at = 0;
        (void)esk_number_read(asked->texts[i], ESK_TOOL_INTEGER, &number);
        while (at < consuming->reading_count && consuming->readings[at].partition != number) {
            at++;
        }
        if (at == consuming->reading_count) {
            code = esk_complain(ESK_EXIT_FAILED, "%s has no partition %" PRIu64, consuming->topic,
                                number);
            break;
        }
        size_t known = 0;
        while (known < count && chosen[known].partition != number) {
            known++;
        }
        chosen[known] = consuming->readings[at];
        count += known == count;
    }
    free(consuming->readings);
    consuming->readings = chosen;
    consuming->reading_count = count;
    return code;
}

static int begin_at_commits(struct eski_consuming *consuming) {
    struct esk_json_value root;
    struct esk_json_value topics;
    struct esk_json_value commits;
    char *path = esk_path("/groups/", consuming->group, "/offsets");
    int code = esk_session_get(consuming->session, path, &root);
    free(path);
    if (code != ESK_EXIT_DONE || !esk_json_find(&root, "offsets", &topics) ||
        !esk_json_find(&topics, consuming->topic, &commits)) {
        return code;
    }
    for (size_t i = 0; i < consuming->reading_count; i++) {
        char partition[16];
        snprintf(partition, sizeof(partition), "%" PRIu32, consuming->readings[i].partition);
        consuming->readings[i].offset = esk_json_field_number(&commits, partition);
        consuming->readings[i].committed = consuming->readings[i].offset;
    }
    return code;
}

static int find_start(struct eski_consuming *consuming, const struct esk_arguments *arguments) {
    const char *offset = esk_arguments_text(arguments, "offset");
    uint64_t number = 0;
    bool is_end = strcmp(offset, "end") == 0;
    if (consuming->group && esk_arguments_given(arguments, "offset")) {
        return esk_complain(ESK_EXIT_USAGE, "--offset and --group exclude each other");
    }
    if (!is_end && strcmp(offset, "start") != 0 &&
        (!esk_number_read(offset, ESK_TOOL_INTEGER, &number) || number > INT64_MAX)) {
        return esk_complain(ESK_EXIT_USAGE, "--offset '%s': allowed is a number, start or end",
                            offset);
    }
    int code = esk_binary_check(arguments);
    if (code == ESK_EXIT_DONE) {
        code = find_partitions(consuming);
    }
    if (code == ESK_EXIT_DONE) {
        code = choose_partitions(consuming, esk_arguments_value(arguments, "partition"));
    }
    for (size_t i = 0; code == ESK_EXIT_DONE && i < consuming->reading_count; i++) {
        struct eski_reading *reading = &consuming->readings[i];
        reading->offset = is_end ? reading->end : number;
    }
    return code == ESK_EXIT_DONE && consuming->group ? begin_at_commits(consuming) : code;
}

static enum esk_print_form choose_form(const struct esk_session *session) {
    static const enum esk_print_form forms[] = {ESK_PRINT_TEXT, ESK_PRINT_BASE64, ESK_PRINT_RAW};
    return session->is_json ? ESK_PRINT_JSON
                            : forms[esk_arguments_number(session->arguments, "encoding")];
}

int esk_consume(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    bool is_limited = esk_arguments_given(arguments, "max");
    bool is_text = esk_arguments_number(arguments, "encoding") == ESK_PRINT_TEXT;
    struct eski_consuming consuming = {
        .session = session,
        .topic = arguments->arguments[0],
        .group = esk_arguments_text(arguments, "group"),
        .separator = esk_separator(arguments),
        .encoding = is_text ? "utf8" : "base64",
        .form = choose_form(session),
        .left = is_limited ? esk_arguments_number(arguments, "max") : UINT64_MAX,
        .shows_progress = session->shows_progress && !isatty(STDOUT_FILENO),
    };
    int code = find_start(&consuming, arguments);
    if (code == ESK_EXIT_DONE && esk_arguments_number(arguments, "binary")) {
        consuming.binary = esk_binary_open(session);
        code = consuming.binary ? code : ESK_EXIT_FAILED;
    }
    if (code == ESK_EXIT_DONE && esk_arguments_number(arguments, "follow")) {
        code = consuming.binary ? eski_consume_binary_follow(&consuming)
                                : eski_consume_follow(&consuming);
    } else {
        for (size_t i = 0; code == ESK_EXIT_DONE && i < consuming.reading_count; i++) {
            code = read_partition(&consuming, &consuming.readings[i]);
        }
    }
    if (consuming.shows_progress) {
        fputs("\r\x1b[K", stderr);
    }
    for (size_t i = 0; i < consuming.reading_count; i++) {
        code = consuming.readings[i].is_stopped ? ESK_EXIT_FAILED : code;
    }
    free(consuming.readings);
    esk_client_close(consuming.binary);
    return code;
}
