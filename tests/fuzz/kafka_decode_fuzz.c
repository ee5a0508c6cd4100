/* SPDX-License-Identifier: Apache-2.0 */
/* What `esk kafka decode` may be given: a message or batch that the first three bytes choose, a run
 * of requests, or a capture. Trees and JSON must hold together: an accepted message prints JSON
 * that parses, and goes back to bytes that print the same JSON. */
#include "fuzz.h"

#include "atlas/capture.h"
#include "atlas/json_in.h"
#include "atlas/json_out.h"
#include "atlas/tree.h"
#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

#define CHOICE_BYTES 3
#define VALUE_CHARS 48

static void on_message(void *context, const struct esk_atlas_input *input) {
    struct esk_atlas_sink sink;
    struct esk_atlas_problem problem;
    (void)context;
    esk_atlas_sink_init(&sink, NULL);
    bool good = esk_atlas_tree(input, VALUE_CHARS, &sink, &problem);
    ESK_ASSERT(good || problem.offset <= input->bytes.size);
    esk_atlas_warnings(input, "", &sink);
    esk_atlas_sink_fini(&sink);
}

static void on_note(void *context, const char *text, bool problem) {
    (void)context;
    (void)problem;
    ESK_ASSERT(text[0] != '\0');
}

static const struct esk_capture_visitor visitor = {NULL, on_message, on_note};

static size_t warnings(const struct esk_atlas_input *input) {
    struct esk_atlas_sink sink;
    esk_atlas_sink_init(&sink, NULL);
    size_t count = esk_atlas_warnings(input, "", &sink);
    esk_atlas_sink_fini(&sink);
    return count;
}

/* From JSON to bytes and from those to JSON: the same again. */
static void check_way_back(struct esk_atlas_input *input, struct esk_atlas_sink *json) {
    static struct esk_json_document *document;
    struct esk_json_value root;
    struct esk_error error;
    struct esk_buffer bytes;
    struct esk_atlas_sink again;
    size_t size = json->buffer.size;
    document = document ? document : esk_json_document_create();
    memset(esk_buffer_grow(&json->buffer, ESK_JSON_PADDING), 0, ESK_JSON_PADDING);
    ESK_ASSERT(esk_json_document_parse(document, esk_slice(json->buffer.data, size), &root,
                                       &error) == ESK_OK);
    if (warnings(input) > 0 || (input->message == NULL && input->version != 2))
        return; /* need not come back */
    esk_buffer_init(&bytes);
    esk_atlas_sink_init(&again, NULL);
    enum esk_err err = esk_atlas_from_json(input, &root, &bytes, &error);
    if (input->message != NULL) {
        ESK_ASSERT(err == ESK_OK);
        input->bytes = esk_buffer_slice(&bytes);
        ESK_ASSERT(esk_atlas_json_line(input, &again));
        ESK_ASSERT(
            esk_slice_equal(esk_slice(json->buffer.data, size), esk_buffer_slice(&again.buffer)));
    }
    esk_atlas_sink_fini(&again);
    esk_buffer_fini(&bytes);
}

static void check_named(struct esk_atlas_input *input, bool tree) {
    struct esk_atlas_sink json;
    if (tree)
        on_message(NULL, input);
    esk_atlas_sink_init(&json, NULL);
    if (esk_atlas_json_line(input, &json))
        check_way_back(input, &json);
    esk_atlas_sink_fini(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < CHOICE_BYTES)
        return 0;
    size_t count;
    const struct esk_kafka_message *messages = esk_kafka_messages(&count);
    size_t choice = esk_load_u16(data) % (count + 4);
    struct esk_slice bytes = esk_slice(data + CHOICE_BYTES, size - CHOICE_BYTES);
    struct esk_atlas_input input = {NULL, data[2] % 3, bytes};
    if (choice == count) {
        esk_capture_requests(bytes, &visitor);
    } else if (choice == count + 1) {
        if (esk_capture_is(bytes))
            esk_capture_walk(bytes, &visitor);
    } else {
        if (choice < count && messages[choice].type != ESK_KAFKA_HEADER) {
            input.message = &messages[choice];
            int versions = input.message->version_max - input.message->version_min + 1;
            input.version = (int16_t)(input.message->version_min + data[2] % versions);
        }
        check_named(&input, data[2] % 4 == 0); /* trees are slow */
    }
    return 0;
}
