/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of Kafka's wire format at /kafka, and the decoder behind its page. Pages are made
 * anew for each request, on the door's helper; nothing of them is kept. A page may load its own
 * style sheet and script, and talk to this broker, and nothing else. */
#include "server/http/access_private.h"
#include "server/http/http_private.h"

#include "atlas/capture.h"
#include "atlas/lines.h"
#include "atlas/page.h"
#include "atlas/row.h"
#include "atlas/site.h"
#include "atlas/tree.h"
#include "wire/http/target.h"
#include "wire/json/base64.h"

#include <stdlib.h>

#define PAGE_BYTES (1u << 20) /* the largest page, at most */
#define INPUT_BYTES_MAX 65536
#define ANSWER_BYTES_MAX (32u << 20) /* trees are long: some 200 bytes for a value of one byte */

#define POLICY                                                                                     \
    "\r\nContent-Security-Policy: default-src 'none'; style-src 'self'; script-src 'self'; "       \
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "                     \
    "frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff"

static struct esk_executor *loop_of(const struct eski_request *request) {
    return &esk_broker_shard_loop(request->shard->broker)->executor;
}

static void to_helper(struct eski_request *request, void (*run)(struct esk_mail *mail)) {
    request->mail.run = run;
    esk_post(request->shard->http->helper, &request->mail);
}

/* --- pages --- */

enum esk_err eski_atlas_root_read(struct eski_request *request, const struct esk_json_value *body,
                                  struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

/* Links of the pages are relative to /kafka/. */
void eski_atlas_root_run(struct eski_request *request) {
    request->response.more = "\r\nLocation: /kafka/";
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_close_object(&writer);
    eski_respond(request, 308);
}

enum esk_err eski_atlas_page_read(struct eski_request *request, const struct esk_json_value *body,
                                  struct esk_error *error) {
    struct esk_slice *page = &request->parameters[0];
    (void)body;
    return esk_http_percent_decode(*page, &request->arena, page)
               ? ESK_OK
               : esk_fail(error, ESK_ERR_INVALID, "bad percent-encoding in the path");
}

static void page_made(struct esk_mail *mail) {
    struct eski_request *request = ESK_CONTAINER(mail, struct eski_request, mail);
    if (!request->atlas.is_found) {
        request->response.content_type = NULL;
        eski_fail_text(request, ESK_ERR_NOT_FOUND, "no such path");
        return;
    }
    request->response.more = POLICY;
    eski_respond(request, 200);
}

static void make_page(struct esk_mail *mail) {
    struct eski_request *request = ESK_CONTAINER(mail, struct eski_request, mail);
    struct esk_atlas_sink sink;
    esk_atlas_sink_init(&sink, NULL);
    request->atlas.is_found =
        esk_atlas_file(request->parameters[0], &sink, &request->response.content_type);
    (void)eski_respond_begin(request);
    esk_buffer_append(&request->text, sink.buffer.data, sink.buffer.size);
    esk_atlas_sink_fini(&sink);
    request->mail.run = page_made;
    esk_post(loop_of(request), &request->mail);
}

void eski_atlas_page_run(struct eski_request *request) {
    if (eski_request_charge(request, 2 * PAGE_BYTES)) {
        to_helper(request, make_page);
    }
}

/* --- the decoder --- */

static enum esk_err read_text(struct eski_request *request, const struct esk_json_value *body,
                              const char *name, char **text, struct esk_error *error) {
    struct esk_json_value value;
    struct esk_slice slice;
    if (!esk_json_find(body, name, &value)) {
        return ESK_OK;
    }
    enum esk_err err = eski_field_text(name, &value, &slice, error);
    if (err == ESK_OK) {
        *text = esk_arena_text(&request->arena, slice);
        err = *text == NULL ? eski_out_of_memory(error) : ESK_OK;
    }
    return err;
}

enum esk_err eski_atlas_decode_read(struct eski_request *request, const struct esk_json_value *body,
                                    struct esk_error *error) {
    struct esk_json_value value;
    int64_t version = -1;
    char *hex = NULL;
    char *base64 = NULL;
    enum esk_err err = eski_body_object(body, error);
    if (err == ESK_OK) {
        err = read_text(request, body, "hex", &hex, error);
    }
    if (err == ESK_OK) {
        err = read_text(request, body, "base64", &base64, error);
    }
    if (err == ESK_OK && (hex == NULL) == (base64 == NULL)) {
        err = esk_fail(error, ESK_ERR_INVALID, "one of hex and base64 is required");
    }
    if (err == ESK_OK) {
        err = read_text(request, body, "type", &request->atlas.type, error);
    }
    if (err == ESK_OK) {
        err = read_text(request, body, "name", &request->atlas.name, error);
    }
    if (err == ESK_OK && esk_json_find(body, "version", &value)) {
        err = eski_field_integer("version", &value, 0, INT16_MAX, &version, error);
    }
    if (err == ESK_OK && request->atlas.type != NULL &&
        (request->atlas.name == NULL || version < 0)) {
        err = esk_fail(error, ESK_ERR_INVALID, "name and version are required with type");
    }
    request->atlas.bytes = hex != NULL ? hex : base64;
    request->atlas.is_hex = hex != NULL;
    request->atlas.version = (int)version;
    return err;
}

/* In place: what comes of a text is shorter. */
static enum esk_err take_bytes(struct eski_request *request, struct esk_slice *bytes,
                               struct esk_error *error) {
    char *text = request->atlas.bytes;
    size_t size = strlen(text);
    size_t bad = 0;
    size_t count = 0;
    if (request->atlas.is_hex) {
        if (!esk_atlas_unhex(text, size, &count, &bad)) {
            return esk_fail(error, ESK_ERR_INVALID, "hex is not hex behind byte %zu", bad);
        }
    } else {
        uint8_t *decoded = esk_arena_alloc(&request->arena, esk_base64_decoded_max(size) + 1);
        if (decoded == NULL) {
            return eski_out_of_memory(error);
        }
        if (!esk_base64_decode(esk_slice(text, size), decoded, &count)) {
            return esk_fail(error, ESK_ERR_INVALID, "base64 is not base64");
        }
        text = (char *)decoded;
    }
    *bytes = esk_slice(text, count);
    return count <= INPUT_BYTES_MAX
               ? ESK_OK
               : esk_fail(error, ESK_ERR_TOO_LARGE, "over %d bytes to decode", INPUT_BYTES_MAX);
}

struct output {
    struct esk_json_writer messages;
    struct esk_buffer notes;
};

static void write_sink(struct esk_json_writer *writer, struct esk_atlas_sink *sink) {
    esk_buffer_u8(&sink->buffer, '\0');
    esk_json_write_text(writer, (const char *)sink->buffer.data);
    sink->buffer.size = 0;
}

static void write_lines(struct esk_json_writer *writer, struct esk_atlas_sink *sink) {
    char *save = NULL;
    esk_buffer_u8(&sink->buffer, '\0');
    esk_json_open_array(writer);
    for (char *line = strtok_r((char *)sink->buffer.data, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        esk_json_write_text(writer, line);
    }
    esk_json_close_array(writer);
}

static void on_message(void *context, const struct esk_atlas_input *input) {
    struct output *output = context;
    struct esk_json_writer *writer = &output->messages;
    struct esk_atlas_problem problem;
    struct esk_atlas_sink sink;
    char title[200];
    if (writer->buffer->size > ANSWER_BYTES_MAX) {
        return;
    }
    esk_atlas_sink_init(&sink, NULL);
    esk_atlas_input_title(input, title, sizeof title);
    esk_json_open_object(writer);
    esk_json_write_key(writer, "title");
    esk_json_write_text(writer, title);
    esk_json_write_key(writer, "bytes");
    esk_json_write_uint64(writer, input->bytes.size);
    esk_json_write_key(writer, "tree");
    bool is_legal = esk_atlas_tree(input, ESK_ATLAS_VALUE_CHARS, &sink, &problem);
    write_sink(writer, &sink);
    esk_json_write_key(writer, "warnings");
    esk_atlas_warnings(input, "", &sink);
    write_lines(writer, &sink);
    esk_json_write_key(writer, "error");
    if (is_legal) {
        esk_json_write_null(writer);
    } else {
        esk_json_open_object(writer);
        esk_json_write_key(writer, "offset");
        esk_json_write_uint64(writer, problem.offset);
        esk_json_write_key(writer, "text");
        esk_json_write_text(writer, problem.text);
        esk_json_close_object(writer);
    }
    esk_json_close_object(writer);
    esk_atlas_sink_fini(&sink);
}

static void on_note(void *context, const char *text, bool problem) {
    struct output *output = context;
    struct esk_json_writer notes = esk_json_writer(&output->notes);
    (void)problem;
    if (output->notes.size < ANSWER_BYTES_MAX) {
        notes.comma = output->notes.size > 0;
        esk_json_write_text(&notes, text);
    }
}

static enum esk_err decode(struct eski_request *request, struct output *output,
                           struct esk_error *error) {
    struct esk_capture_visitor visitor = {output, on_message, on_note};
    struct esk_atlas_problem problem;
    struct esk_atlas_input input;
    struct esk_slice bytes;
    enum esk_err err = take_bytes(request, &bytes, error);
    if (err) {
        return err;
    }
    if (request->atlas.type != NULL) {
        if (!esk_atlas_input_named(&input, request->atlas.type, request->atlas.name,
                                   request->atlas.version, &problem)) {
            return esk_fail(error, ESK_ERR_INVALID, "%s", problem.text);
        }
        input.bytes = bytes;
        on_message(output, &input);
    } else if (esk_capture_is(bytes)) {
        esk_capture_walk(bytes, &visitor);
    } else {
        esk_capture_requests(bytes, &visitor);
    }
    return ESK_OK;
}

static void decoded(struct esk_mail *mail) {
    struct eski_request *request = ESK_CONTAINER(mail, struct eski_request, mail);
    if (request->read_result) {
        eski_fail(request, request->read_result, &request->error);
    } else {
        eski_respond(request, 200);
    }
}

static void decode_here(struct esk_mail *mail) {
    struct eski_request *request = ESK_CONTAINER(mail, struct eski_request, mail);
    struct output output = {.messages = eski_respond_begin(request)};
    struct esk_json_writer *writer = &output.messages;
    esk_buffer_init(&output.notes);
    esk_json_open_object(writer);
    esk_json_write_key(writer, "messages");
    esk_json_open_array(writer);
    request->error.text[0] = '\0';
    request->read_result = decode(request, &output, &request->error);
    esk_json_close_array(writer);
    esk_json_write_key(writer, "notes");
    esk_json_open_array(writer);
    if (output.notes.size > 0) {
        esk_json_write_raw(writer, esk_buffer_slice(&output.notes));
    }
    esk_json_close_array(writer);
    esk_json_close_object(writer);
    esk_buffer_fini(&output.notes);
    request->mail.run = decoded;
    esk_post(loop_of(request), &request->mail);
}

void eski_atlas_decode_run(struct eski_request *request) {
    if (eski_request_charge(request, 2 * ANSWER_BYTES_MAX)) {
        to_helper(request, decode_here);
    }
}
