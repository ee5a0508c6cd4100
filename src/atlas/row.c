/* SPDX-License-Identifier: Apache-2.0 */
#include "atlas/row.h"
#include "atlas/sink.h"
#include "model/codec.h"
#include "wire/kafka/utf8.h"

#include <stdio.h>
#include <string.h>

static bool in_header(const struct esk_kafka_node *node) {
    for (; node != NULL; node = node->parent)
        if (node->part == ESK_KAFKA_PART_RPC_HEADER)
            return true;
    return false;
}

static bool is_request(const struct esk_atlas_input *input) {
    return input->message != NULL && input->message->type == ESK_KAFKA_REQUEST;
}

static const char *message_name(const struct esk_atlas_input *input) {
    return input->message != NULL ? input->message->name
           : input->version == 2  ? "RecordBatches"
                                  : "MessageSet";
}

void esk_atlas_row_name(const struct esk_atlas_input *input, const struct esk_kafka_node *node,
                        struct esk_buffer *text) {
    static const char *const fixed[] = {
        [ESK_KAFKA_PART_LENGTH] = "length",         [ESK_KAFKA_PART_PRESENT] = "present",
        [ESK_KAFKA_PART_TAGS] = "tagged_fields",    [ESK_KAFKA_PART_TAG_ID] = "tag",
        [ESK_KAFKA_PART_TAG_SIZE] = "size",         [ESK_KAFKA_PART_UNKNOWN] = "data",
        [ESK_KAFKA_PART_BATCH] = "RecordBatch",     [ESK_KAFKA_PART_RECORD] = "Record",
        [ESK_KAFKA_PART_MESSAGE] = "Message",       [ESK_KAFKA_PART_INFLATED] = "inflated",
        [ESK_KAFKA_PART_PARTIAL] = "partial_batch", [ESK_KAFKA_PART_FRAME] = "Frame",
        [ESK_KAFKA_PART_FRAME_SIZE] = "size",       [ESK_KAFKA_PART_TRAILING] = "trailing",
    };
    const char *name = fixed[node->part];
    switch (node->part) {
    case ESK_KAFKA_PART_ELEMENT:
    case ESK_KAFKA_PART_HEADER:
        esk_buffer_format(text, "[%lld]", (long long)node->index);
        return;
    case ESK_KAFKA_PART_TAG:
        esk_buffer_format(text, "tag %lld", (long long)node->index);
        return;
    case ESK_KAFKA_PART_PRESENT:
        if (node->parent->part == ESK_KAFKA_PART_CONTROL)
            name = "version";
        break;
    case ESK_KAFKA_PART_PREFIX:
        name = input->message->type == ESK_KAFKA_COORDINATOR_KEY ? "record_type" : "version";
        break;
    case ESK_KAFKA_PART_RPC_HEADER:
        name = is_request(input) ? "RequestHeader" : "ResponseHeader";
        break;
    case ESK_KAFKA_PART_ROOT:
    case ESK_KAFKA_PART_BODY:
        name = message_name(input);
        break;
    case ESK_KAFKA_PART_FIELD:
    case ESK_KAFKA_PART_CONTROL:
        name = node->op == NULL || in_header(node) ? node->field->snake_name : node->field->name;
        break;
    default:
        break;
    }
    esk_buffer_append_text(text, name);
}

static const char *kind_name(unsigned kind, bool nullable) {
    static const char *const names[] = {
        [ESK_KAFKA_BOOL] = "bool",
        [ESK_KAFKA_INT8] = "int8",
        [ESK_KAFKA_INT16] = "int16",
        [ESK_KAFKA_UINT16] = "uint16",
        [ESK_KAFKA_INT32] = "int32",
        [ESK_KAFKA_UINT32] = "uint32",
        [ESK_KAFKA_INT64] = "int64",
        [ESK_KAFKA_FLOAT64] = "float64",
        [ESK_KAFKA_UUID] = "uuid",
        [ESK_KAFKA_STRING] = "string",
        [ESK_KAFKA_COMPACT_STRING] = "compact_string",
        [ESK_KAFKA_BYTES] = "bytes",
        [ESK_KAFKA_COMPACT_BYTES] = "compact_bytes",
        [ESK_KAFKA_RECORDS] = "records",
        [ESK_KAFKA_COMPACT_RECORDS] = "compact_records",
        [ESK_KAFKA_ARRAY] = "array",
        [ESK_KAFKA_COMPACT_ARRAY] = "compact_array",
        [ESK_KAFKA_STRUCT] = "struct",
        [ESK_KAFKA_UVARINT] = "uvarint",
        [ESK_KAFKA_VARINT] = "varint",
        [ESK_KAFKA_VARLONG] = "varlong",
        [ESK_KAFKA_VARINT_STRING] = "string",
        [ESK_KAFKA_VARINT_BYTES] = "bytes",
        [ESK_KAFKA_RAW] = "bytes",
    };
    if (nullable && kind == ESK_KAFKA_STRING)
        return "nullable_string";
    if (nullable && kind == ESK_KAFKA_COMPACT_STRING)
        return "compact_nullable_string";
    return names[kind];
}

void esk_atlas_row_type(const struct esk_atlas_input *input, const struct esk_kafka_node *node,
                        struct esk_buffer *text) {
    switch (node->part) {
    case ESK_KAFKA_PART_ROOT:
        if (input->message != NULL)
            esk_buffer_format(text, "message v%d", input->version);
        else
            esk_buffer_append_text(text, "records");
        return;
    case ESK_KAFKA_PART_FRAME:
        return;
    case ESK_KAFKA_PART_RPC_HEADER:
    case ESK_KAFKA_PART_MESSAGE:
        esk_buffer_format(
            text, "v%lld",
            (long long)(node->part == ESK_KAFKA_PART_MESSAGE ? node->integer : node->index));
        return;
    case ESK_KAFKA_PART_BATCH:
    case ESK_KAFKA_PART_RECORD:
        esk_buffer_append_text(text, "v2");
        return;
    case ESK_KAFKA_PART_BODY:
    case ESK_KAFKA_PART_CONTROL:
        esk_buffer_append_text(text, "struct");
        return;
    case ESK_KAFKA_PART_TAG:
        esk_buffer_append_text(text, "tagged_field");
        return;
    case ESK_KAFKA_PART_INFLATED:
        esk_buffer_append_text(text, esk_codec_name((enum esk_codec)node->integer));
        return;
    default:
        esk_buffer_append_text(text, kind_name(node->kind, node->nullable));
        return;
    }
}

static const char *length_type(unsigned kind) {
    switch (kind) {
    case ESK_KAFKA_STRING:
        return "int16";
    case ESK_KAFKA_BYTES:
    case ESK_KAFKA_RECORDS:
        return "int32";
    case ESK_KAFKA_VARINT_STRING:
    case ESK_KAFKA_VARINT_BYTES:
        return "varint";
    default:
        return "uvarint";
    }
}

static bool printable(struct esk_slice bytes) {
    const uint8_t *end = bytes.data + bytes.size;
    for (const uint8_t *at = bytes.data; at < end;) {
        unsigned skip = 1;
        unsigned length = esk_utf8_length(at, end, &skip);
        if (length == 0 || (length == 1 && (*at < 0x20 || *at == 0x7f)))
            return false;
        at += length;
    }
    return true;
}

/* In quotes, at most chars_max characters; what is not printable as \xNN. */
static void put_text(struct esk_buffer *text, struct esk_slice bytes, size_t chars_max) {
    const uint8_t *end = bytes.data + bytes.size;
    size_t chars = 0;
    size_t cut = 0; /* where the text ends if it has to be cut */
    esk_buffer_u8(text, '"');
    for (const uint8_t *at = bytes.data; at < end; chars++) {
        unsigned skip = 1;
        unsigned length = esk_utf8_length(at, end, &skip);
        if (chars == chars_max - 3)
            cut = text->size;
        if (chars == chars_max) {
            text->size = cut;
            esk_buffer_append_text(text, "...");
            break;
        }
        if (length == 0 || (length == 1 && (*at < 0x20 || *at == 0x7f)))
            esk_buffer_format(text, "\\x%02x", *at);
        else
            esk_buffer_append(text, at, length);
        at += length ? length : 1;
    }
    esk_buffer_u8(text, '"');
}

static void put_hex(struct esk_buffer *text, struct esk_slice bytes, size_t chars_max) {
    size_t count = bytes.size * 2 <= chars_max ? bytes.size : (chars_max - 3) / 2;
    esk_buffer_append_text(text, "0x");
    for (size_t i = 0; i < count; i++)
        esk_buffer_format(text, "%02x", bytes.data[i]);
    if (count < bytes.size)
        esk_buffer_append_text(text, "...");
}

static void put_slice(const struct esk_kafka_node *node, size_t chars_max,
                      struct esk_buffer *text) {
    bool string = node->kind == ESK_KAFKA_STRING || node->kind == ESK_KAFKA_COMPACT_STRING ||
                  node->kind == ESK_KAFKA_VARINT_STRING;
    if (node->null) {
        esk_buffer_format(text, "= null (%s len=-1)", length_type(node->kind));
        return;
    }
    esk_buffer_append_text(text, "= ");
    if (string || (node->kind == ESK_KAFKA_VARINT_BYTES && node->bytes.size > 0 &&
                   node->bytes.size <= chars_max * 4 && printable(node->bytes)))
        put_text(text, node->bytes, chars_max);
    else if (node->bytes.size == 0)
        esk_buffer_append_text(text, "0 bytes");
    else
        put_hex(text, node->bytes, chars_max);
    if (node->kind == ESK_KAFKA_RAW)
        esk_buffer_format(text, " (%zu bytes)", node->bytes.size);
    else
        esk_buffer_format(text, " (%s len=%zu)", length_type(node->kind), node->bytes.size);
}

static void put_integer(const struct esk_atlas_input *input, const struct esk_kafka_node *node,
                        struct esk_buffer *text) {
    esk_buffer_format(text, "= %lld", (long long)node->integer);
    if (node->part != ESK_KAFKA_PART_FIELD && node->part != ESK_KAFKA_PART_PREFIX)
        return;
    const char *name = node->field != NULL ? node->field->name : "";
    if (strcmp(name, "RequestApiKey") == 0 && in_header(node)) {
        esk_buffer_format(text, " (%s)", input->message->api_name);
    } else if (node->kind == ESK_KAFKA_INT16 && node->integer != 0 && strlen(name) >= 9 &&
               strcmp(name + strlen(name) - 9, "ErrorCode") == 0) {
        const struct esk_kafka_error *error = esk_kafka_error_of((int16_t)node->integer);
        if (error != NULL)
            esk_buffer_format(text, " (%s)", error->name);
    } else if (strcmp(name, "Type") == 0 && node->parent != NULL &&
               node->parent->part == ESK_KAFKA_PART_CONTROL) {
        static const char *const types[] = {"abort",           "commit",          "leader change",
                                            "snapshot header", "snapshot footer", "KRaft version",
                                            "KRaft voters"};
        if (node->integer >= 0 && node->integer < (int64_t)(sizeof(types) / sizeof(types[0])))
            esk_buffer_format(text, " (%s)", types[node->integer]);
    }
}

void esk_atlas_row_value(const struct esk_atlas_input *input, const struct esk_kafka_node *node,
                         size_t chars_max, struct esk_buffer *text) {
    switch (node->part) {
    case ESK_KAFKA_PART_ROOT:
    case ESK_KAFKA_PART_FRAME:
    case ESK_KAFKA_PART_RPC_HEADER:
    case ESK_KAFKA_PART_BODY:
    case ESK_KAFKA_PART_TAG:
    case ESK_KAFKA_PART_BATCH:
    case ESK_KAFKA_PART_RECORD:
    case ESK_KAFKA_PART_HEADER:
    case ESK_KAFKA_PART_MESSAGE:
    case ESK_KAFKA_PART_CONTROL:
    case ESK_KAFKA_PART_INFLATED:
        return;
    default:
        break;
    }
    char word[64];
    switch (node->kind) {
    case ESK_KAFKA_RECORDS:
    case ESK_KAFKA_COMPACT_RECORDS:
    case ESK_KAFKA_ARRAY:
    case ESK_KAFKA_COMPACT_ARRAY:
    case ESK_KAFKA_STRUCT:
        return;
    case ESK_KAFKA_BOOL:
        esk_buffer_append_text(text, node->integer ? "= true" : "= false");
        return;
    case ESK_KAFKA_FLOAT64:
        esk_atlas_real_text(node->real, word);
        esk_buffer_format(text, "= %s", word);
        return;
    case ESK_KAFKA_UUID:
        esk_atlas_uuid_text(node->bytes, word);
        esk_buffer_format(text, "= %s", word);
        return;
    case ESK_KAFKA_STRING:
    case ESK_KAFKA_COMPACT_STRING:
    case ESK_KAFKA_BYTES:
    case ESK_KAFKA_COMPACT_BYTES:
    case ESK_KAFKA_VARINT_STRING:
    case ESK_KAFKA_VARINT_BYTES:
    case ESK_KAFKA_RAW:
        put_slice(node, chars_max, text);
        return;
    default:
        put_integer(input, node, text);
        return;
    }
}

static const char *length_about(const struct esk_kafka_node *node) {
    const struct esk_kafka_node *owner = node->parent;
    if (owner->part == ESK_KAFKA_PART_TAGS)
        return "number of tagged fields";
    if (owner->part == ESK_KAFKA_PART_CONTROL)
        return "number of bytes that follow";
    return owner->kind == ESK_KAFKA_RECORDS || owner->kind == ESK_KAFKA_COMPACT_RECORDS
               ? "number of bytes of records that follow"
               : "number of elements";
}

const char *esk_atlas_row_about(const struct esk_atlas_input *input,
                                const struct esk_kafka_node *node, char scratch[64]) {
    switch (node->part) {
    case ESK_KAFKA_PART_FRAME:
        return "length-delimited framing";
    case ESK_KAFKA_PART_FRAME_SIZE:
        return "number of bytes that follow, patched after encoding";
    case ESK_KAFKA_PART_RPC_HEADER:
        return is_request(input) ? "common request header" : "common response header";
    case ESK_KAFKA_PART_BODY:
        snprintf(scratch, 64, "message body, version %d", input->version);
        return scratch;
    case ESK_KAFKA_PART_PREFIX:
        return input->message->type == ESK_KAFKA_COORDINATOR_KEY ? "which kind of record this is"
                                                                 : "version of the record";
    case ESK_KAFKA_PART_LENGTH:
        return length_about(node);
    case ESK_KAFKA_PART_PRESENT:
        if (node->parent->part == ESK_KAFKA_PART_CONTROL)
            return "version of the control record";
        return node->kind == ESK_KAFKA_INT8 ? "1 when the struct follows, -1 for null"
                                            : "1 when the struct follows, 0 for null";
    case ESK_KAFKA_PART_TAGS:
        return node->parent != NULL && node->parent->part == ESK_KAFKA_PART_RPC_HEADER
                   ? "number of tagged fields in the header"
                   : "number of tagged fields in this struct";
    case ESK_KAFKA_PART_TAG_ID:
        return "number of the tagged field";
    case ESK_KAFKA_PART_TAG_SIZE:
        return "number of bytes of its value";
    case ESK_KAFKA_PART_TAG:
        return node->field == NULL ? "not in the definitions of this version" : "";
    case ESK_KAFKA_PART_BATCH:
        return "batch of records";
    case ESK_KAFKA_PART_RECORD:
        snprintf(scratch, 64, "record %lld of the batch", (long long)node->index);
        return scratch;
    case ESK_KAFKA_PART_MESSAGE:
        return "message of the older format";
    case ESK_KAFKA_PART_INFLATED:
        return "compressed; offsets below count in what it inflates to";
    case ESK_KAFKA_PART_PARTIAL:
        return "beginning of a batch that the size limit cut";
    case ESK_KAFKA_PART_TRAILING:
        return "bytes behind the body";
    case ESK_KAFKA_PART_FIELD:
    case ESK_KAFKA_PART_CONTROL:
        return node->field->about;
    default:
        return "";
    }
}
