/* SPDX-License-Identifier: Apache-2.0 */
#include "atlas/frame.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FRAME_SIZE_BYTES 4
#define PREFIX_BYTES 2
#define REQUEST_KEY_AT 4 /* of the frame: int16 api key, int16 api version */
#define REQUEST_VERSION_AT 6

void esk_atlas_input_title(const struct esk_atlas_input *input, char *text, size_t size) {
    const struct esk_kafka_message *message = input->message;
    if (message == NULL)
        snprintf(text, size, "%s v%d", input->version == 2 ? "RecordBatch" : "MessageSet",
                 input->version);
    else
        snprintf(text, size, "%s%s v%d", message->api_name,
                 message->type == ESK_KAFKA_REQUEST    ? " request"
                 : message->type == ESK_KAFKA_RESPONSE ? " response"
                                                       : "",
                 input->version);
}

static bool report(const struct esk_atlas_input *input, const struct esk_kafka_scan *scan,
                   struct esk_atlas_problem *problem) {
    if (problem == NULL)
        return false;
    char title[78];
    esk_atlas_input_title(input, title, sizeof(title));
    snprintf(problem->text, sizeof(problem->text), "%s: %s", title, scan->problem);
    problem->offset = scan->problem_position;
    return false;
}

static bool refuse(struct esk_kafka_scan *scan, size_t position, const char *what, long long wanted,
                   long long found) {
    scan->failed = true;
    scan->problem_position = position;
    snprintf(scan->problem, sizeof(scan->problem), "%s: expected %lld, found %lld", what, wanted,
             found);
    return false;
}

static void value(struct esk_kafka_scan *scan, struct esk_kafka_node *node, size_t bytes) {
    node->position = (size_t)(scan->at - scan->start);
    node->size = bytes;
    scan->at += bytes;
    if (scan->visitor != NULL && scan->visitor->value != NULL)
        scan->visitor->value(scan->visitor->context, node);
}

static void open_node(struct esk_kafka_scan *scan, const struct esk_kafka_node *node) {
    if (scan->visitor != NULL && scan->visitor->open != NULL)
        scan->visitor->open(scan->visitor->context, node);
}

static void close_node(struct esk_kafka_scan *scan, const struct esk_kafka_node *node) {
    if (scan->visitor != NULL && scan->visitor->close != NULL)
        scan->visitor->close(scan->visitor->context, node);
}

static bool needs(struct esk_kafka_scan *scan, size_t bytes, const char *what) {
    size_t left = (size_t)(scan->end - scan->at);
    if (left >= bytes)
        return true;
    scan->failed = true;
    scan->problem_position = (size_t)(scan->at - scan->start);
    snprintf(scan->problem, sizeof(scan->problem), "%s: expected %zu bytes, %zu are left", what,
             bytes, left);
    return false;
}

/* How many bytes a struct takes from here, or up to its damage. */
static size_t struct_bytes(const struct esk_kafka_scan *scan, const struct esk_kafka_layout *layout,
                           bool shallow) {
    struct esk_kafka_scan copy;
    esk_kafka_scan_init(&copy, esk_slice(scan->at, (size_t)(scan->end - scan->at)), NULL);
    copy.shallow_records = shallow;
    size_t size = esk_kafka_scan_struct(&copy, layout, NULL) ? (size_t)(copy.at - copy.start)
                                                             : copy.problem_position;
    esk_kafka_scan_fini(&copy);
    return size;
}

static bool walk_frame(struct esk_kafka_scan *scan, const struct esk_kafka_node *root) {
    struct esk_kafka_node frame = {
        .parent = root, .part = ESK_KAFKA_PART_FRAME, .size = FRAME_SIZE_BYTES};
    if (!needs(scan, FRAME_SIZE_BYTES, "frame size"))
        return false;
    struct esk_kafka_node size = {.parent = &frame,
                                  .part = ESK_KAFKA_PART_FRAME_SIZE,
                                  .kind = ESK_KAFKA_INT32,
                                  .integer = (int32_t)esk_load_u32(scan->at),
                                  .last = true};
    open_node(scan, &frame);
    value(scan, &size, FRAME_SIZE_BYTES);
    close_node(scan, &frame);
    if (size.integer != scan->end - scan->at)
        return refuse(scan, 0, "frame size", scan->end - scan->at, size.integer);
    return true;
}

/* A request says itself which API and version it is. */
static bool check_request(struct esk_kafka_scan *scan, const struct esk_atlas_input *input) {
    if (input->bytes.size >= REQUEST_KEY_AT + 2) {
        int16_t key = (int16_t)esk_load_u16(scan->start + REQUEST_KEY_AT);
        if (key != input->message->api_key)
            return refuse(scan, REQUEST_KEY_AT, "RequestApiKey", input->message->api_key, key);
    }
    if (input->bytes.size >= REQUEST_VERSION_AT + 2) {
        int16_t version = (int16_t)esk_load_u16(scan->start + REQUEST_VERSION_AT);
        if (version != input->version)
            return refuse(scan, REQUEST_VERSION_AT, "RequestApiVersion", input->version, version);
    }
    return true;
}

static bool walk_header(struct esk_kafka_scan *scan, const struct esk_atlas_input *input,
                        const struct esk_kafka_node *root) {
    struct esk_kafka_node header = {.parent = root, .part = ESK_KAFKA_PART_RPC_HEADER};
    int16_t version;
    const struct esk_kafka_layout *layout =
        esk_kafka_header_layout(input->message, input->version, &version);
    if (input->message->type == ESK_KAFKA_REQUEST && !check_request(scan, input))
        return false;
    header.index = version;
    header.layout = layout;
    header.position = (size_t)(scan->at - scan->start);
    header.size = struct_bytes(scan, layout, true);
    open_node(scan, &header);
    if (!esk_kafka_scan_struct(scan, layout, &header))
        return false;
    close_node(scan, &header);
    return true;
}

static bool walk_prefix(struct esk_kafka_scan *scan, const struct esk_atlas_input *input,
                        const struct esk_kafka_node *root) {
    bool key = input->message->type == ESK_KAFKA_COORDINATOR_KEY;
    int16_t wanted = key ? input->message->api_key : input->version;
    struct esk_kafka_node prefix = {
        .parent = root, .part = ESK_KAFKA_PART_PREFIX, .kind = ESK_KAFKA_INT16};
    const char *what = key ? "record type" : "record version";
    if (!needs(scan, PREFIX_BYTES, what))
        return false;
    prefix.integer = (int16_t)esk_load_u16(scan->at);
    if (prefix.integer != wanted)
        return refuse(scan, 0, what, wanted, prefix.integer);
    value(scan, &prefix, PREFIX_BYTES);
    return true;
}

static bool walk_body(struct esk_kafka_scan *scan, const struct esk_atlas_input *input,
                      const struct esk_kafka_node *root) {
    const struct esk_kafka_layout *layout = esk_kafka_layout_of(input->message, input->version);
    struct esk_kafka_node body = {.parent = root,
                                  .part = ESK_KAFKA_PART_BODY,
                                  .index = input->version,
                                  .layout = layout,
                                  .position = (size_t)(scan->at - scan->start)};
    body.size = struct_bytes(scan, layout, true);
    body.last = body.size == (size_t)(scan->end - scan->at);
    open_node(scan, &body);
    if (!esk_kafka_scan_struct(scan, layout, &body))
        return false;
    close_node(scan, &body);
    if (scan->at == scan->end)
        return true;
    size_t left = (size_t)(scan->end - scan->at);
    if (scan->visitor != NULL && scan->visitor->warn != NULL)
        scan->visitor->warn(scan->visitor->context, NULL, NULL, (size_t)(scan->at - scan->start),
                            "bytes behind the body");
    struct esk_kafka_node trailing = {.parent = root,
                                      .part = ESK_KAFKA_PART_TRAILING,
                                      .kind = ESK_KAFKA_RAW,
                                      .bytes = esk_slice(scan->at, left),
                                      .last = true};
    value(scan, &trailing, left);
    return true;
}

#define FETCH_KEY 1
#define SHARE_FETCH_KEY 78

static bool walk(struct esk_kafka_scan *scan, const struct esk_atlas_input *input) {
    const struct esk_kafka_message *message = input->message;
    struct esk_kafka_node root = {.part = ESK_KAFKA_PART_ROOT,
                                  .index = input->version,
                                  .size = input->bytes.size,
                                  .last = true};
    open_node(scan, &root);
    if (message == NULL) {
        if (!esk_kafka_scan_records(scan, &root))
            return false;
    } else {
        bool framed = message->type <= ESK_KAFKA_RESPONSE;
        scan->partial_batches =
            message->type == ESK_KAFKA_RESPONSE &&
            (message->api_key == FETCH_KEY || message->api_key == SHARE_FETCH_KEY);
        if (framed && (!walk_frame(scan, &root) || !walk_header(scan, input, &root)))
            return false;
        if (message->type >= ESK_KAFKA_COORDINATOR_KEY && !walk_prefix(scan, input, &root))
            return false;
        if (!walk_body(scan, input, &root))
            return false;
    }
    close_node(scan, &root);
    return true;
}

bool esk_atlas_walk(const struct esk_atlas_input *input, const struct esk_kafka_visitor *visitor,
                    struct esk_atlas_problem *problem) {
    struct esk_kafka_scan scan;
    esk_kafka_scan_init(&scan, input->bytes, visitor);
    bool good = walk(&scan, input) || report(input, &scan, problem);
    esk_kafka_scan_fini(&scan);
    return good;
}

static bool unknown(struct esk_atlas_problem *problem, const char *format, const char *a,
                    const char *b, int version) {
    problem->offset = 0;
    snprintf(problem->text, sizeof(problem->text), format, a, b, version);
    return false;
}

bool esk_atlas_input_named(struct esk_atlas_input *input, const char *type, const char *name,
                           int version, struct esk_atlas_problem *problem) {
    char full[96];
    bool request = strcmp(type, "request") == 0;
    bool data = strcmp(type, "data") == 0;
    if (!request && !data && strcmp(type, "response") != 0)
        return unknown(problem, "%.20s: expected request, response or data%s", type, "", 0);
    input->version = (int16_t)version;
    input->message = NULL;
    if (data && ((strcmp(name, "RecordBatch") == 0 && version == 2) ||
                 (strcmp(name, "MessageSet") == 0 && (version == 0 || version == 1))))
        return true;
    const char *suffix = request ? "Request" : "Response";
    size_t length = strlen(name);
    bool complete = length > strlen(suffix) && strcmp(name + length - strlen(suffix), suffix) == 0;
    snprintf(full, sizeof(full), "%.60s%s", name, data || complete ? "" : suffix);
    if (version < 0 || version > INT16_MAX)
        version = -1;
    const struct esk_kafka_message *message = esk_kafka_message_named(full, (int16_t)version);
    if (message == NULL || (data && message->type < ESK_KAFKA_DATA))
        return unknown(problem, "there is no %.10s named %.60s", type, name, 0);
    if (version < 0 || !esk_kafka_has_version(message, version))
        return unknown(problem, "%.60s %.10s has no version %d", message->api_name, type, version);
    input->message = message;
    return true;
}
