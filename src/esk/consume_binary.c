/* SPDX-License-Identifier: Apache-2.0 */
/* esk consume --binary: the same output as over HTTP, from the records of libesker. Following asks
 * again and again with a short pause, since the binary protocol has no answer that waits. */
#include "esk/binary.h"
#include "esk/consume_private.h"
#include "model/names.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define ANSWER_RECORDS_MAX 10000
#define ANSWER_BYTES_MAX (8 * 1024 * 1024)
#define FOLLOW_PAUSE_MS 50

static struct esk_slice key_of(const struct esk_client_message *message) {
    return esk_slice(message->key, message->key_size);
}

static struct esk_slice value_of(const struct esk_client_message *message) {
    return esk_slice(message->value, message->value_size);
}

static void write_part(struct esk_json_writer *writer, const char *name, struct esk_slice part,
                       bool is_base64) {
    esk_json_write_key(writer, name);
    if (is_base64) {
        esk_json_write_base64(writer, part);
    } else {
        esk_json_write_string(writer, part);
    }
}

static void print_json(const struct esk_client_message *message, bool is_base64,
                       struct esk_buffer *out) {
    struct esk_json_writer writer = esk_json_writer(out);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "partition");
    esk_json_write_uint64(&writer, message->partition);
    esk_json_write_key(&writer, "offset");
    esk_json_write_uint64(&writer, message->offset);
    esk_json_write_key(&writer, "timestamp_ms");
    esk_json_write_int64(&writer, message->timestamp_ms);
    write_part(&writer, "key", key_of(message), is_base64);
    write_part(&writer, "value", value_of(message), is_base64);
    esk_json_close_object(&writer);
}

static void print_part(struct esk_slice part, enum esk_print_form form, struct esk_buffer *out) {
    if (part.size && form == ESK_PRINT_BASE64) {
        struct esk_buffer quoted;
        esk_buffer_init(&quoted);
        struct esk_json_writer writer = esk_json_writer(&quoted);
        esk_json_write_base64(&writer, part);
        esk_buffer_append(out, quoted.data + 1, quoted.size - 2);
        esk_buffer_fini(&quoted);
    } else if (part.size) {
        esk_buffer_append(out, part.data, part.size);
    }
}

static void print_message(const struct eski_consuming *consuming,
                          const struct esk_client_message *message) {
    struct esk_buffer *out = &consuming->session->out;
    if (consuming->form == ESK_PRINT_JSON) {
        print_json(message, strcmp(consuming->encoding, "base64") == 0, out);
    } else {
        if (consuming->separator) {
            print_part(key_of(message), consuming->form, out);
            esk_buffer_append_text(out, consuming->separator);
        }
        print_part(value_of(message), consuming->form, out);
    }
    esk_buffer_append_text(out, "\n");
}

static bool is_text(const struct esk_client_message *message) {
    return (!message->key || esk_utf8_valid(key_of(message))) && esk_utf8_valid(value_of(message));
}

int eski_consume_binary(struct eski_consuming *consuming, struct eski_reading *reading) {
    struct esk_client_batch batch;
    struct esk_client_error error;
    bool wants_text = strcmp(consuming->encoding, "utf8") == 0;
    uint64_t most = consuming->left < ANSWER_RECORDS_MAX ? consuming->left : ANSWER_RECORDS_MAX;
    if (esk_client_consume(consuming->binary, consuming->topic, reading->partition, reading->offset,
                           (uint32_t)most, ANSWER_BYTES_MAX, &batch, &error) != ESK_CLIENT_OK) {
        return esk_binary_complain(&error);
    }
    reading->end = batch.high_watermark;
    for (size_t i = 0; i < batch.count && !reading->is_stopped; i++) {
        const struct esk_client_message *message = &batch.messages[i];
        if (wants_text && !is_text(message)) {
            eski_consume_stop(reading);
            break;
        }
        print_message(consuming, message);
        reading->offset = message->offset + 1;
        consuming->left--;
        consuming->printed++;
    }
    if (!reading->is_stopped && batch.next_offset > reading->offset) {
        reading->offset = batch.next_offset;
    }
    int code = esk_session_flush(consuming->session);
    if (consuming->shows_progress) {
        fprintf(stderr, "\r%" PRIu64 " records", consuming->printed);
    }
    return code == ESK_EXIT_DONE ? eski_consume_commit(consuming, reading) : code;
}

int eski_consume_binary_follow(struct eski_consuming *consuming) {
    bool is_any_left = true;
    while (is_any_left && consuming->left) {
        uint64_t before = consuming->printed;
        is_any_left = false;
        for (size_t i = 0; i < consuming->reading_count && consuming->left; i++) {
            struct eski_reading *reading = &consuming->readings[i];
            int code =
                reading->is_stopped ? ESK_EXIT_DONE : eski_consume_binary(consuming, reading);
            if (code != ESK_EXIT_DONE) {
                return code;
            }
            is_any_left |= !reading->is_stopped;
        }
        struct pollfd poller = {.fd = STDOUT_FILENO};
        int pause_ms = consuming->printed == before ? FOLLOW_PAUSE_MS : 0;
        if (poll(&poller, 1, pause_ms) > 0) {
            return ESK_EXIT_FAILED; /* nobody reads the output any more */
        }
    }
    return ESK_EXIT_DONE;
}
