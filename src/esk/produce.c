/* SPDX-License-Identifier: Apache-2.0 */
/* esk produce: lines become records, gathered into requests; a request is sent when it is full or
 * when the input has nothing more to read for now. */
#include "esk/binary.h"
#include "esk/commands.h"
#include "esk/lines.h"
#include "esk/produce_request.h"
#include "model/limits.h"
#include "model/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUEST_BYTES_MAX (1024 * 1024) /* of keys and values, unless one record is larger */

/* What went to a partition. */
struct destination {
    uint64_t records;
    uint64_t first_offset;
    uint64_t last_offset;
};

struct producing {
    struct esk_session *session;
    struct esk_client *binary; /* NULL: requests go over HTTP */
    struct esk_lines lines;
    struct esk_produce_request request;
    const char *separator; /* NULL: no keys */
    char *path;
    uint64_t batch;
    uint64_t records; /* acknowledged */
    uint64_t requests;
    struct destination *destinations; /* ESK_TOPIC_PARTITIONS_MAX of them */
};

static void show_progress(const struct producing *producing, bool is_last) {
    if (producing->session->shows_progress) {
        fprintf(stderr, is_last ? "\r\x1b[K" : "\r%" PRIu64 " records", producing->records);
    }
}

static void count_result(struct producing *producing, uint64_t partition, uint64_t offset) {
    if (partition < ESK_TOPIC_PARTITIONS_MAX) {
        struct destination *destination = &producing->destinations[partition];
        if (destination->records++ == 0) {
            destination->first_offset = offset;
        }
        destination->last_offset = offset;
    }
}

static void count_request(struct producing *producing) {
    producing->records += producing->request.record_count;
    producing->requests++;
    show_progress(producing, false);
}

static int send_binary(struct producing *producing) {
    const struct esk_produce_request *request = &producing->request;
    size_t count = request->record_count;
    struct esk_client_record *records = esk_alloc_zeroed(count, sizeof(*records));
    struct esk_client_written *written = esk_alloc_zeroed(count, sizeof(*written));
    struct esk_client_error error;
    for (size_t i = 0; i < count; i++) {
        const struct esk_produce_record *record = &request->records[i];
        const uint8_t *bytes = request->bytes.size ? request->bytes.data : (const uint8_t *)"";
        const uint8_t *at = bytes + record->begin;
        records[i] = (struct esk_client_record){
            .key = !record->has_key   ? NULL
                   : record->key_size ? at
                                      : (const uint8_t *)"",
            .key_size = record->key_size,
            .value = at + record->key_size,
            .value_size = record->value_size,
            .partition =
                request->partition < 0 ? ESK_CLIENT_PARTITION_ANY : (int32_t)request->partition,
            .sequence = ESK_CLIENT_SEQUENCE_NONE,
        };
    }
    const char *topic = producing->session->arguments->arguments[0];
    int code = ESK_EXIT_DONE;
    if (esk_client_produce(producing->binary, topic, records, count, written, &error) !=
        ESK_CLIENT_OK) {
        code = esk_binary_complain(&error);
    }
    for (size_t i = 0; i < count && code == ESK_EXIT_DONE; i++) {
        count_result(producing, written[i].partition, written[i].offset);
    }
    if (code == ESK_EXIT_DONE) {
        count_request(producing);
    }
    free(records);
    free(written);
    return code;
}

static int count_results(struct producing *producing, const struct esk_json_value *root) {
    struct esk_json_value results;
    struct esk_json_value result;
    size_t expected = producing->request.record_count;
    bool is_found = esk_json_find(root, "results", &results) && results.type == ESK_JSON_ARRAY;
    if (!is_found || esk_json_count(&results) != expected) {
        return esk_complain(ESK_EXIT_FAILED, "the broker's answer has not one result a record");
    }
    struct esk_json_iterator each = esk_json_each(&results);
    while (esk_json_next_element(&each, &result)) {
        count_result(producing, esk_json_field_number(&result, "partition"),
                     esk_json_field_number(&result, "offset"));
    }
    count_request(producing);
    return ESK_EXIT_DONE;
}

static int send_http(struct producing *producing) {
    struct esk_json_value root;
    int code = esk_session_call(producing->session, "POST", producing->path,
                                esk_produce_request_body(&producing->request), &root);
    return code == ESK_EXIT_DONE ? count_results(producing, &root) : code;
}

/* Sends what was gathered, if anything was. */
static int send_request(struct producing *producing) {
    size_t count = producing->request.record_count;
    if (count == 0) {
        return ESK_EXIT_DONE;
    }
    int code = producing->binary ? send_binary(producing) : send_http(producing);
    if (code != ESK_EXIT_DONE) {
        uint64_t first = producing->records + 1;
        return count == 1 ? esk_complain(code,
                                         "line %" PRIu64 " was not acknowledged, and those behind "
                                         "it were not sent",
                                         first)
                          : esk_complain(code,
                                         "lines %" PRIu64 " to %" PRIu64 " were not acknowledged, "
                                         "and those behind them were not sent",
                                         first, first + count - 1);
    }
    esk_produce_request_clear(&producing->request);
    return ESK_EXIT_DONE;
}

/* What came before is sent; what comes behind is not read. */
static int complain_of_key(struct producing *producing) {
    const char *separator = producing->separator;
    (void)send_request(producing);
    return esk_complain(ESK_EXIT_FAILED,
                        "%s, line %" PRIu64 ": no '%s' between key and value; "
                        "this line and those behind it were not sent",
                        esk_lines_name(&producing->lines), producing->lines.number,
                        strcmp(separator, "\t") == 0 ? "\\t" : separator);
}

static int add_line(struct producing *producing, struct esk_slice line) {
    struct esk_produce_request *request = &producing->request;
    struct esk_slice key = esk_slice(NULL, 0);
    if (producing->separator) {
        size_t size = strlen(producing->separator);
        const uint8_t *found =
            line.size ? memmem(line.data, line.size, producing->separator, size) : NULL;
        if (!found) {
            return complain_of_key(producing);
        }
        key = esk_slice(line.data, (size_t)(found - line.data));
        line = esk_slice(found + size, line.size - key.size - size);
    }
    int code = ESK_EXIT_DONE;
    if (request->bytes.size + line.size > REQUEST_BYTES_MAX) {
        code = send_request(producing);
    }
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    esk_produce_request_add(request, key, line);
    return request->record_count >= producing->batch ? send_request(producing) : code;
}

static int send_lines(struct producing *producing) {
    struct esk_error error;
    bool blocks = false;
    for (;;) {
        struct esk_slice line;
        int code = ESK_EXIT_DONE;
        switch (esk_lines_next(&producing->lines, blocks, &line, &error)) {
        case ESK_LINES_LINE:
            code = add_line(producing, line);
            blocks = false;
            break;
        case ESK_LINES_WAIT:
            code = send_request(producing);
            blocks = true;
            break;
        case ESK_LINES_END:
            return send_request(producing);
        case ESK_LINES_FAILED:
            code = send_request(producing);
            return code != ESK_EXIT_DONE ? code : esk_complain(ESK_EXIT_FAILED, "%s", error.text);
        }
        if (code != ESK_EXIT_DONE) {
            return code;
        }
    }
}

static void write_summary(const struct producing *producing) {
    struct esk_json_writer writer = esk_json_writer(&producing->session->out);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "topic");
    esk_json_write_text(&writer, producing->session->arguments->arguments[0]);
    esk_json_write_key(&writer, "records");
    esk_json_write_uint64(&writer, producing->records);
    esk_json_write_key(&writer, "requests");
    esk_json_write_uint64(&writer, producing->requests);
    esk_json_write_key(&writer, "partitions");
    esk_json_open_array(&writer);
    for (uint64_t i = 0; i < ESK_TOPIC_PARTITIONS_MAX; i++) {
        const struct destination *destination = &producing->destinations[i];
        if (destination->records) {
            esk_json_open_object(&writer);
            esk_json_write_key(&writer, "partition");
            esk_json_write_uint64(&writer, i);
            esk_json_write_key(&writer, "records");
            esk_json_write_uint64(&writer, destination->records);
            esk_json_write_key(&writer, "first_offset");
            esk_json_write_uint64(&writer, destination->first_offset);
            esk_json_write_key(&writer, "last_offset");
            esk_json_write_uint64(&writer, destination->last_offset);
            esk_json_close_object(&writer);
        }
    }
    esk_json_close_array(&writer);
    esk_json_close_object(&writer);
    esk_buffer_append_text(&producing->session->out, "\n");
}

static int check_options(const struct esk_arguments *arguments) {
    const struct esk_tool_value *headers = esk_arguments_value(arguments, "header");
    const char *separator = esk_arguments_text(arguments, "key-separator");
    for (uint32_t i = 0; i < headers->count; i++) {
        const char *equals = strchr(headers->texts[i], '=');
        if (!equals || equals == headers->texts[i]) {
            return esk_complain(ESK_EXIT_USAGE, "--header '%s': allowed is NAME=VALUE",
                                headers->texts[i]);
        }
        if (!esk_utf8_valid(esk_slice(headers->texts[i], (size_t)(equals - headers->texts[i])))) {
            return esk_complain(ESK_EXIT_USAGE, "--header: its name is not UTF-8");
        }
    }
    if (headers->count && esk_arguments_number(arguments, "binary")) {
        return esk_complain(ESK_EXIT_USAGE, "--header: the binary protocol has no headers");
    }
    if (separator && !*separator) {
        return esk_complain(ESK_EXIT_USAGE, "--key-separator: it is empty");
    }
    return esk_binary_check(arguments);
}

int esk_produce(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    const struct esk_tool_value *headers = esk_arguments_value(arguments, "header");
    int code = check_options(arguments);
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    struct esk_client *binary = NULL;
    if (esk_arguments_number(arguments, "binary") && !(binary = esk_binary_open(session))) {
        return ESK_EXIT_FAILED;
    }
    bool has_partition = esk_arguments_given(arguments, "partition");
    struct producing producing = {
        .session = session,
        .binary = binary,
        .separator = esk_separator(arguments),
        .path = esk_path("/topics/", arguments->arguments[0], "/produce"),
        .batch = esk_arguments_number(arguments, "batch"),
        .destinations = esk_alloc_zeroed(ESK_TOPIC_PARTITIONS_MAX, sizeof(struct destination)),
    };
    esk_lines_init(&producing.lines, arguments->arguments + 1, arguments->count - 1);
    esk_produce_request_init(&producing.request, headers->texts, headers->count,
                             has_partition ? (int64_t)esk_arguments_number(arguments, "partition")
                                           : -1);
    code = send_lines(&producing);
    show_progress(&producing, true);
    if (session->is_json) {
        write_summary(&producing);
    } else {
        esk_buffer_format(&session->out, "%" PRIu64 " record%s written\n", producing.records,
                          producing.records == 1 ? "" : "s");
    }
    int written = esk_session_flush(session);
    esk_produce_request_fini(&producing.request);
    esk_lines_fini(&producing.lines);
    esk_client_close(producing.binary);
    free(producing.destinations);
    free(producing.path);
    return code != ESK_EXIT_DONE ? code : written;
}
