/* SPDX-License-Identifier: Apache-2.0 */
#include "atlas/page.h"
#include "atlas/smallest.h"

#include <stdio.h>
#include <string.h>

#define ROW_BYTES 16

void esk_atlas_versions(const struct esk_kafka_message *message, char text[16]) {
    if (message->version_min == message->version_max)
        snprintf(text, 16, "%d", message->version_min);
    else
        snprintf(text, 16, "%d-%d", message->version_min, message->version_max);
}

void esk_atlas_headers(const struct esk_atlas_page *page, char text[48]) {
    int16_t request;
    int16_t response;
    esk_kafka_header_layout(page->request, page->request_version, &request);
    esk_kafka_header_layout(page->response, page->response_version, &response);
    snprintf(text, 48, "req v%d, resp v%d", request, response);
}

static size_t smallest_bytes(const struct esk_kafka_message *message, int16_t version) {
    struct esk_buffer buffer;
    esk_buffer_init(&buffer);
    esk_atlas_smallest(message, version, &buffer);
    size_t size = buffer.size;
    esk_buffer_fini(&buffer);
    return size;
}

void esk_atlas_facts(const struct esk_atlas_page *page, struct esk_atlas_sink *sink) {
    char requests[16];
    char responses[16];
    char headers[48];
    esk_atlas_versions(page->request, requests);
    esk_atlas_versions(page->response, responses);
    esk_atlas_headers(page, headers);
    esk_atlas_format(sink, "API key: %d\n", page->request->api_key);
    if (page->request_version == page->response_version)
        esk_atlas_format(sink, "Encoded at: v%d\n", page->request_version);
    else
        esk_atlas_format(sink, "Encoded at: v%d, response v%d\n", page->request_version,
                         page->response_version);
    esk_atlas_format(sink, "Flexible versions: %s\n", page->request->flexible_text);
    esk_atlas_format(sink, "Headers: %s\n", headers);
    esk_atlas_format(sink, "Request versions: %s\n", requests);
    esk_atlas_format(sink, "Response versions: %s\n", responses);
    esk_atlas_format(sink, "Request size: %zu bytes\n",
                     smallest_bytes(page->request, page->request_version));
    esk_atlas_format(sink, "Response size: %zu bytes\n",
                     smallest_bytes(page->response, page->response_version));
}

void esk_atlas_introduction(const struct esk_kafka_message *message, int16_t version,
                            struct esk_atlas_sink *sink) {
    bool flexible = esk_kafka_layout_of(message, version)->flexible;
    esk_atlas_text(sink, "Shown is the smallest legal instance: numbers are zero, strings and byte "
                         "arrays are empty, every array has one element, and records are one empty "
                         "batch of 61 bytes. ");
    esk_atlas_format(sink,
                     flexible ? "Version %d is flexible: each struct ends in a uvarint that counts "
                                "its tagged fields, and the lengths of strings and arrays are "
                                "uvarints of length plus one. "
                              : "Version %d is not flexible: lengths of strings are int16, those "
                                "of arrays and bytes int32, and there are no tagged fields. ",
                     version);
    esk_atlas_text(sink, "Sizes include the int32 in front that holds the size of the rest.\n");
}

void esk_atlas_caption(const struct esk_kafka_message *message, int16_t version, size_t size,
                       struct esk_atlas_sink *sink) {
    if (message->type > ESK_KAFKA_RESPONSE) {
        esk_atlas_format(sink, "%s v%d, %zu bytes", message->name, version, size);
        return;
    }
    int16_t header;
    esk_kafka_header_layout(message, version, &header);
    esk_atlas_format(sink, "%s v%d, %s header v%d, %zu bytes on the wire", message->name, version,
                     message->type == ESK_KAFKA_REQUEST ? "request" : "response", header, size);
}

void esk_atlas_layout_text(struct esk_slice bytes, struct esk_atlas_sink *sink) {
    esk_atlas_format(sink, "byte layout (%zu bytes, %d bytes per row)\n\n     ", bytes.size,
                     ROW_BYTES);
    for (unsigned i = 0; i < ROW_BYTES; i++)
        esk_atlas_format(sink, "  %X", i);
    for (size_t at = 0; at < bytes.size; at += ROW_BYTES) {
        esk_atlas_format(sink, "\n%04zx ", at);
        for (size_t i = at; i < bytes.size && i < at + ROW_BYTES; i++)
            esk_atlas_format(sink, " %02x", bytes.data[i]);
    }
    esk_atlas_text(sink, "\n");
}

static enum esk_err list_row_json(void *context, const struct esk_kafka_message *request,
                                  const struct esk_kafka_message *response,
                                  struct esk_error *error) {
    struct esk_atlas_sink *sink = context;
    (void)error;
    esk_atlas_json_open(sink, '{');
    esk_atlas_json_key(sink, "api_key");
    esk_atlas_json_int(sink, request->api_key);
    esk_atlas_json_key(sink, "name");
    esk_atlas_json_string(sink, esk_slice_text(request->api_name));
    esk_atlas_json_key(sink, "request_versions");
    esk_atlas_json_open(sink, '[');
    esk_atlas_json_int(sink, request->version_min);
    esk_atlas_json_int(sink, request->version_max);
    esk_atlas_json_close(sink, ']');
    esk_atlas_json_key(sink, "response_versions");
    esk_atlas_json_open(sink, '[');
    esk_atlas_json_int(sink, response->version_min);
    esk_atlas_json_int(sink, response->version_max);
    esk_atlas_json_close(sink, ']');
    esk_atlas_json_key(sink, "flexible_versions");
    esk_atlas_json_string(sink, esk_slice_text(request->flexible_text));
    esk_atlas_json_key(sink, "listeners");
    esk_atlas_json_open(sink, '[');
    for (unsigned i = 0; i < ESK_KAFKA_LISTENERS_MAX && request->listeners[i] != NULL; i++)
        esk_atlas_json_string(sink, esk_slice_text(request->listeners[i]));
    esk_atlas_json_close(sink, ']');
    if (request->removed) {
        esk_atlas_json_key(sink, "removed");
        esk_atlas_json_word(sink, "true");
    }
    esk_atlas_json_close(sink, '}');
    return ESK_OK;
}

static enum esk_err list_row_text(void *context, const struct esk_kafka_message *request,
                                  const struct esk_kafka_message *response,
                                  struct esk_error *error) {
    struct esk_atlas_sink *sink = context;
    (void)error;
    char requests[16];
    char responses[16];
    esk_atlas_versions(request, requests);
    esk_atlas_versions(response, responses);
    esk_atlas_format(sink, "%3d  %-36s %-8s  %-8s  %-8s  ", request->api_key, request->api_name,
                     requests, responses, request->flexible_text);
    for (unsigned i = 0; i < ESK_KAFKA_LISTENERS_MAX && request->listeners[i] != NULL; i++)
        esk_atlas_format(sink, "%s%s", i ? ", " : "", request->listeners[i]);
    esk_atlas_text(sink, request->removed ? " (removed in 4.0)\n" : "\n");
    return ESK_OK;
}

void esk_atlas_releases(const struct esk_kafka_message *request, const char *separator,
                        struct esk_atlas_sink *sink) {
    size_t count;
    const struct esk_kafka_release *releases = esk_kafka_releases(&count);
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < releases[i].span_count; k++) {
            const struct esk_kafka_span *span = &releases[i].spans[k];
            if (span->api_key != request->api_key || span->version_max < request->version_min ||
                span->version_min > request->version_max)
                continue;
            esk_atlas_text(sink, any ? separator : "");
            esk_atlas_text(sink, releases[i].name);
            any = true;
        }
    }
}

enum esk_err esk_atlas_each_api(bool removed,
                                enum esk_err (*visit)(void *context,
                                                      const struct esk_kafka_message *request,
                                                      const struct esk_kafka_message *response,
                                                      struct esk_error *error),
                                void *context, struct esk_error *error) {
    size_t count;
    const struct esk_kafka_message *messages = esk_kafka_messages(&count);
    int previous = -1;
    for (;;) {
        int key = INT32_MAX; /* the next one */
        for (size_t i = 0; i < count; i++)
            if (messages[i].type == ESK_KAFKA_REQUEST && messages[i].api_key > previous &&
                messages[i].api_key < key && (removed || !messages[i].removed))
                key = messages[i].api_key;
        if (key == INT32_MAX)
            return ESK_OK;
        for (size_t i = 0; i < count; i++) {
            if (messages[i].type != ESK_KAFKA_REQUEST || messages[i].api_key != key ||
                (messages[i].removed && !removed))
                continue;
            const struct esk_kafka_message *response =
                esk_kafka_api_find(messages[i].api_name, ESK_KAFKA_RESPONSE, messages[i].removed);
            enum esk_err err = visit(context, &messages[i], response, error);
            if (err != ESK_OK)
                return err;
        }
        previous = key;
    }
}

void esk_atlas_list_json(bool removed, struct esk_atlas_sink *sink) {
    esk_atlas_json_open(sink, '[');
    esk_atlas_each_api(removed, list_row_json, sink, NULL);
    esk_atlas_json_close(sink, ']');
    esk_atlas_text(sink, "\n");
}

void esk_atlas_list_text(bool removed, struct esk_atlas_sink *sink) {
    esk_atlas_format(sink, "%3s  %-36s %-8s  %-8s  %-8s  %s\n", "KEY", "NAME", "REQUEST",
                     "RESPONSE", "FLEXIBLE", "LISTENERS");
    esk_atlas_each_api(removed, list_row_text, sink, NULL);
}
