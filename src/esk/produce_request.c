/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes are kept raw until the request is made, since only then it is known how to write them. */
#include "esk/produce_request.h"

#include "model/names.h"
#include "wire/json/writer.h"

#include <stdlib.h>

/* A larger body goes in base64 when that is this much smaller: half of what brokers take. */
#define TEXT_BODY_BYTES (4 * 1024 * 1024)

void esk_produce_request_init(struct esk_produce_request *request, const char *const *headers,
                              uint32_t header_count, int64_t partition) {
    memset(request, 0, sizeof(*request));
    request->headers = headers;
    request->header_count = header_count;
    request->partition = partition;
    esk_buffer_init(&request->bytes);
    esk_buffer_init(&request->body);
    esk_produce_request_clear(request);
}

void esk_produce_request_fini(struct esk_produce_request *request) {
    esk_buffer_fini(&request->bytes);
    esk_buffer_fini(&request->body);
    free(request->records);
}

void esk_produce_request_clear(struct esk_produce_request *request) {
    request->bytes.size = 0;
    request->record_count = 0;
    request->is_text = true;
    for (uint32_t i = 0; i < request->header_count; i++) {
        request->is_text = request->is_text && esk_utf8_valid(esk_slice_text(request->headers[i]));
    }
}

void esk_produce_request_add(struct esk_produce_request *request, struct esk_slice key,
                             struct esk_slice value) {
    if (request->record_count == request->record_capacity) {
        request->record_capacity = request->record_capacity ? request->record_capacity * 2 : 64;
        request->records =
            esk_realloc(request->records, request->record_capacity * sizeof(*request->records));
    }
    request->records[request->record_count++] = (struct esk_produce_record){
        .begin = request->bytes.size,
        .key_size = key.size,
        .value_size = value.size,
        .has_key = key.data != NULL,
    };
    request->is_text = request->is_text && esk_utf8_valid(key) && esk_utf8_valid(value);
    if (key.size) {
        esk_buffer_append(&request->bytes, key.data, key.size);
    }
    if (value.size) {
        esk_buffer_append(&request->bytes, value.data, value.size);
    }
}

static void write_bytes(struct esk_json_writer *writer, bool is_text, struct esk_slice bytes) {
    if (is_text) {
        esk_json_write_string(writer, bytes);
    } else {
        esk_json_write_base64(writer, bytes);
    }
}

static size_t name_size(const char *header) {
    return strcspn(header, "=");
}

static bool has_same_name(const char *a, const char *b) {
    return name_size(a) == name_size(b) && strncmp(a, b, name_size(a)) == 0;
}

static uint32_t count_same(const struct esk_produce_request *request, uint32_t end,
                           const char *header) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < end; i++) {
        count += has_same_name(request->headers[i], header);
    }
    return count;
}

/* A name that repeats has an array of values. */
static void write_headers(const struct esk_produce_request *request,
                          struct esk_json_writer *writer) {
    esk_json_write_key(writer, "headers");
    esk_json_open_object(writer);
    for (uint32_t i = 0; i < request->header_count; i++) {
        const char *header = request->headers[i];
        if (count_same(request, i, header)) {
            continue;
        }
        bool is_array = count_same(request, request->header_count, header) > 1;
        esk_json_write_key_bytes(writer, esk_slice(header, name_size(header)));
        if (is_array) {
            esk_json_open_array(writer);
        }
        for (uint32_t k = i; k < request->header_count; k++) {
            if (has_same_name(request->headers[k], header)) {
                const char *value = request->headers[k] + name_size(header) + 1;
                write_bytes(writer, request->is_text, esk_slice_text(value));
            }
        }
        if (is_array) {
            esk_json_close_array(writer);
        }
    }
    esk_json_close_object(writer);
}

static void write_record(const struct esk_produce_request *request, size_t index,
                         struct esk_json_writer *writer) {
    const struct esk_produce_record *record = &request->records[index];
    const uint8_t *key = (request->bytes.data ? request->bytes.data : (const uint8_t *)"");
    key += record->begin;
    esk_json_open_object(writer);
    if (record->has_key) {
        esk_json_write_key(writer, "key");
        write_bytes(writer, request->is_text, esk_slice(key, record->key_size));
    }
    esk_json_write_key(writer, "value");
    write_bytes(writer, request->is_text, esk_slice(key + record->key_size, record->value_size));
    if (request->partition >= 0) {
        esk_json_write_key(writer, "partition");
        esk_json_write_int64(writer, request->partition);
    }
    if (request->header_count) {
        write_headers(request, writer);
    }
    esk_json_close_object(writer);
}

/* Bytes that base64 makes of text's. */
static size_t base64_size(size_t size) {
    return (size + 2) / 3 * 4;
}

struct esk_slice esk_produce_request_body(struct esk_produce_request *request) {
    request->body.size = 0;
    struct esk_json_writer writer = esk_json_writer(&request->body);
    esk_json_open_object(&writer);
    if (!request->is_text) {
        esk_json_write_key(&writer, "encoding");
        esk_json_write_string(&writer, esk_slice_text("base64"));
    }
    esk_json_write_key(&writer, "records");
    esk_json_open_array(&writer);
    for (size_t i = 0; i < request->record_count; i++) {
        write_record(request, i, &writer);
    }
    esk_json_close_array(&writer);
    esk_json_close_object(&writer);
    if (request->is_text && request->body.size > TEXT_BODY_BYTES &&
        request->body.size > base64_size(request->bytes.size) + TEXT_BODY_BYTES) {
        request->is_text = false; /* much of it had to be escaped */
        return esk_produce_request_body(request);
    }
    return esk_buffer_slice(&request->body);
}
