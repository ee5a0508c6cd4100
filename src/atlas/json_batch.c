/* SPDX-License-Identifier: Apache-2.0 */
/* Bare batches as JSON: {"batches":[{"baseOffset":…,"records":[…]}]}, an object for each batch and,
 * in message sets, for each message. */
#include "atlas/json_out.h"
#include "model/codec.h"
#include "model/record_batch.h"

#include <string.h>

struct batches {
    struct esk_atlas_sink *sink;
    int64_t base_offset;
    int64_t base_timestamp;
    int64_t max_timestamp;
    int64_t attributes;
    int64_t offset_delta;
    int64_t timestamp_delta;
    struct esk_slice message_key;
};

static bool named(const struct esk_kafka_node *node, const char *name) {
    return node->field != NULL && strcmp(node->field->name, name) == 0;
}

static void number(struct esk_atlas_sink *sink, const char *key, int64_t value) {
    esk_atlas_json_key(sink, key);
    esk_atlas_json_int(sink, value);
}

static void begin_records(struct batches *b) {
    esk_atlas_json_key(b->sink, "records");
    esk_atlas_json_open(b->sink, '[');
}

static void batch_field(struct batches *b, const struct esk_kafka_node *node) {
    if (named(node, "BatchLength"))
        return; /* follows from the rest */
    number(b->sink, node->field->json_name, node->integer);
    if (named(node, "BaseOffset"))
        b->base_offset = node->integer;
    if (named(node, "BaseTimestamp"))
        b->base_timestamp = node->integer;
    if (named(node, "MaxTimestamp"))
        b->max_timestamp = node->integer;
    if (named(node, "Attributes")) {
        b->attributes = node->integer;
        esk_atlas_json_key(b->sink, "compression");
        esk_atlas_json_string(b->sink,
                              esk_slice_text(esk_codec_name(node->integer & ESK_BATCH_CODEC_MASK)));
    }
    if (named(node, "RecordsCount"))
        begin_records(b);
}

static void record_field(struct batches *b, const struct esk_kafka_node *node) {
    if (named(node, "Attributes") && node->integer != 0)
        number(b->sink, "attributes", node->integer);
    if (named(node, "TimestampDelta"))
        b->timestamp_delta = node->integer;
    if (named(node, "OffsetDelta")) {
        bool appended = b->attributes & ESK_BATCH_LOG_APPEND_TIME;
        number(b->sink, "offset", (int64_t)((uint64_t)b->base_offset + (uint64_t)node->integer));
        number(b->sink, "timestamp",
               appended ? b->max_timestamp
                        : (int64_t)((uint64_t)b->base_timestamp + (uint64_t)b->timestamp_delta));
        if (appended)
            number(b->sink, "timestampDelta", b->timestamp_delta);
    }
    if (named(node, "Key") || named(node, "Value")) {
        esk_atlas_json_key(b->sink, node->field->json_name);
        esk_atlas_json_base64(b->sink, node->bytes);
    }
}

static void begin_message(struct batches *b, const struct esk_kafka_node *message) {
    unsigned codec = b->attributes & ESK_BATCH_CODEC_MASK;
    number(b->sink, "magic", message->integer);
    esk_atlas_json_key(b->sink, "compression");
    esk_atlas_json_string(b->sink, esk_slice_text(esk_codec_name((enum esk_codec)codec)));
    number(b->sink, "baseOffset", b->base_offset);
    number(b->sink, "attributes", b->attributes);
    begin_records(b);
}

static void message_field(struct batches *b, const struct esk_kafka_node *node) {
    if (named(node, "Offset"))
        b->base_offset = node->integer;
    if (named(node, "Timestamp"))
        b->base_timestamp = node->integer;
    if (named(node, "Attributes"))
        b->attributes = node->integer;
    if (named(node, "Key"))
        b->message_key = node->bytes;
    if (!named(node, "Value"))
        return;
    bool inner = node->inflated;
    if (!inner) {
        begin_message(b, node->parent);
        if (b->attributes & ESK_BATCH_CODEC_MASK)
            return; /* compressed nothing */
        esk_atlas_json_open(b->sink, '{');
    }
    number(b->sink, "offset", b->base_offset);
    if (node->parent->integer == 1)
        number(b->sink, "timestamp", b->base_timestamp);
    esk_atlas_json_key(b->sink, "key");
    esk_atlas_json_base64(b->sink, b->message_key);
    esk_atlas_json_key(b->sink, "value");
    esk_atlas_json_base64(b->sink, node->bytes);
    if (!inner)
        esk_atlas_json_close(b->sink, '}');
}

static void on_value(void *context, const struct esk_kafka_node *node) {
    struct batches *b = context;
    if (node->part == ESK_KAFKA_PART_FIELD) {
        switch (node->parent->part) {
        case ESK_KAFKA_PART_BATCH:
            batch_field(b, node);
            break;
        case ESK_KAFKA_PART_RECORD:
            record_field(b, node);
            break;
        case ESK_KAFKA_PART_MESSAGE:
            message_field(b, node);
            break;
        case ESK_KAFKA_PART_HEADER:
            esk_atlas_json_key(b->sink, named(node, "HeaderKey") ? "key" : "value");
            if (named(node, "HeaderKey"))
                esk_atlas_json_string(b->sink, node->bytes);
            else
                esk_atlas_json_base64(b->sink, node->bytes);
            break;
        default:
            break;
        }
    }
}

static void on_open(void *context, const struct esk_kafka_node *node) {
    struct batches *b = context;
    switch (node->part) {
    case ESK_KAFKA_PART_BATCH:
    case ESK_KAFKA_PART_RECORD:
    case ESK_KAFKA_PART_HEADER:
    case ESK_KAFKA_PART_MESSAGE:
        esk_atlas_json_open(b->sink, '{');
        break;
    case ESK_KAFKA_PART_INFLATED: /* of a message; in batches v2 the records have begun */
        if (node->parent->part == ESK_KAFKA_PART_MESSAGE)
            begin_message(b, node->parent);
        break;
    case ESK_KAFKA_PART_FIELD: /* headers */
        esk_atlas_json_key(b->sink, node->field->json_name);
        esk_atlas_json_open(b->sink, '[');
        break;
    default:
        break;
    }
}

static void on_close(void *context, const struct esk_kafka_node *node) {
    struct batches *b = context;
    switch (node->part) {
    case ESK_KAFKA_PART_BATCH:
        esk_atlas_json_close(b->sink, ']');
        esk_atlas_json_close(b->sink, '}');
        break;
    case ESK_KAFKA_PART_MESSAGE:
        if (!node->inflated)
            esk_atlas_json_close(b->sink, ']');
        esk_atlas_json_close(b->sink, '}');
        break;
    case ESK_KAFKA_PART_RECORD:
    case ESK_KAFKA_PART_HEADER:
        esk_atlas_json_close(b->sink, '}');
        break;
    case ESK_KAFKA_PART_FIELD:
        esk_atlas_json_close(b->sink, ']');
        break;
    default:
        break;
    }
}

void eski_json_batches(const struct esk_atlas_input *input, struct esk_atlas_sink *sink) {
    struct batches batches = {.sink = sink};
    struct esk_kafka_visitor visitor = {.context = &batches,
                                        .opaque_records = true,
                                        .open = on_open,
                                        .close = on_close,
                                        .value = on_value};
    esk_atlas_json_open(sink, '{');
    esk_atlas_json_key(sink, "batches");
    esk_atlas_json_open(sink, '[');
    esk_atlas_walk(input, &visitor, NULL);
    esk_atlas_json_close(sink, ']');
    esk_atlas_json_close(sink, '}');
}
