/* SPDX-License-Identifier: Apache-2.0 */
#include "atlas/json_in.h"
#include "atlas/sink.h"
#include "wire/json/base64.h"
#include "wire/kafka/codec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct reader {
    struct esk_arena *arena;
    struct esk_error *error;
};

static bool read_struct(struct reader *r, const struct esk_kafka_layout *layout,
                        const struct esk_json_value *object, uint8_t *out);

static bool refuse(struct reader *r, const char *what, const char *wanted) {
    esk_fail(r->error, ESK_ERR_INVALID, "%s: expected %s", what, wanted);
    return false;
}

static bool read_integer(struct reader *r, unsigned kind, const char *name,
                         const struct esk_json_value *value, void *out) {
    static const struct {
        int64_t low;
        int64_t high;
        const char *name;
    } ranges[] = {
        [ESK_KAFKA_INT8] = {INT8_MIN, INT8_MAX, "an int8"},
        [ESK_KAFKA_INT16] = {INT16_MIN, INT16_MAX, "an int16"},
        [ESK_KAFKA_UINT16] = {0, UINT16_MAX, "a uint16"},
        [ESK_KAFKA_INT32] = {INT32_MIN, INT32_MAX, "an int32"},
        [ESK_KAFKA_UINT32] = {0, UINT32_MAX, "a uint32"},
        [ESK_KAFKA_INT64] = {INT64_MIN, INT64_MAX, "an int64"},
    };
    int64_t number;
    if (!esk_json_int64(value, &number) || number < ranges[kind].low || number > ranges[kind].high)
        return refuse(r, name, ranges[kind].name);
    switch (kind) {
    case ESK_KAFKA_INT8:
        *(int8_t *)out = (int8_t)number;
        break;
    case ESK_KAFKA_INT16:
    case ESK_KAFKA_UINT16:
        *(uint16_t *)out = (uint16_t)number;
        break;
    case ESK_KAFKA_INT32:
    case ESK_KAFKA_UINT32:
        *(uint32_t *)out = (uint32_t)number;
        break;
    default:
        *(int64_t *)out = number;
        break;
    }
    return true;
}

static bool read_real(struct reader *r, const char *name, const struct esk_json_value *value,
                      double *out) {
    switch (value->type) {
    case ESK_JSON_REAL:
        *out = value->real;
        return true;
    case ESK_JSON_INT64:
        *out = (double)value->int64;
        return true;
    case ESK_JSON_UINT64:
        *out = (double)value->uint64;
        return true;
    case ESK_JSON_STRING:
        if (esk_slice_equal(value->string, esk_slice_text("NaN")))
            *out = (double)NAN;
        else if (esk_slice_equal(value->string, esk_slice_text("Infinity")))
            *out = (double)INFINITY;
        else if (esk_slice_equal(value->string, esk_slice_text("-Infinity")))
            *out = -(double)INFINITY;
        else
            break;
        return true;
    default:
        break;
    }
    return refuse(r, name, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"");
}

bool eski_json_bytes(const struct esk_json_value *value, struct esk_arena *arena,
                     struct esk_slice *bytes) {
    if (value->type == ESK_JSON_NULL) {
        *bytes = (struct esk_slice){NULL, 0};
        return true;
    }
    if (value->type != ESK_JSON_STRING)
        return false;
    uint8_t *memory = esk_arena_alloc(arena, esk_base64_decoded_max(value->string.size) + 1);
    bytes->data = memory;
    return esk_base64_decode(value->string, memory, &bytes->size);
}

/* One value of a wire kind below array and struct. */
static bool read_scalar(struct reader *r, unsigned kind, const char *name,
                        const struct esk_json_value *value, void *out) {
    switch (kind) {
    case ESK_KAFKA_BOOL:
        if (value->type != ESK_JSON_BOOL)
            return refuse(r, name, "true or false");
        *(bool *)out = value->boolean;
        return true;
    case ESK_KAFKA_FLOAT64:
        return read_real(r, name, value, out);
    case ESK_KAFKA_UUID:
        if (value->type != ESK_JSON_STRING || !esk_atlas_uuid_parse(value->string, out))
            return refuse(r, name, "a uuid of 22 characters");
        return true;
    case ESK_KAFKA_STRING:
    case ESK_KAFKA_COMPACT_STRING:
        if (value->type == ESK_JSON_NULL) {
            memset(out, 0, sizeof(struct esk_slice)); /* the codec knows whether that may be */
            return true;
        }
        if (value->type != ESK_JSON_STRING)
            return refuse(r, name, "a string");
        memcpy(out, &value->string, sizeof(struct esk_slice));
        return true;
    case ESK_KAFKA_BYTES:
    case ESK_KAFKA_COMPACT_BYTES:
    case ESK_KAFKA_RECORDS:
    case ESK_KAFKA_COMPACT_RECORDS:
        return eski_json_bytes(value, r->arena, out) || refuse(r, name, "base64");
    default:
        return read_integer(r, kind, name, value, out);
    }
}

static bool read_array(struct reader *r, const struct esk_kafka_op *op,
                       const struct esk_json_value *value, void *out) {
    const char *name = op->field->json_name;
    struct esk_kafka_array array = {NULL, -1};
    if (value->type == ESK_JSON_NULL) {
        memcpy(out, &array, sizeof(array));
        return true;
    }
    if (value->type != ESK_JSON_ARRAY)
        return refuse(r, name, "an array");
    struct esk_json_value element;
    size_t count = 0;
    struct esk_json_iterator each = esk_json_each(value);
    while (esk_json_next_element(&each, &element))
        count++;
    size_t stride = op->stride;
    uint8_t *items = esk_arena_alloc_array(r->arena, count, stride);
    each = esk_json_each(value);
    for (size_t i = 0; esk_json_next_element(&each, &element); i++) {
        uint8_t *item = items + i * stride;
        if (op->element == ESK_KAFKA_STRUCT ? !read_struct(r, op->layout, &element, item)
                                            : !read_scalar(r, op->element, name, &element, item)) {
            esk_wrap(r->error, "%s[%zu]", name, i);
            return false;
        }
    }
    array = (struct esk_kafka_array){items, (int32_t)count};
    memcpy(out, &array, sizeof(array));
    return true;
}

static bool read_member(struct reader *r, const struct esk_kafka_op *op,
                        const struct esk_json_value *value, uint8_t *out) {
    void *member = out + op->offset;
    if (op->kind == ESK_KAFKA_ARRAY || op->kind == ESK_KAFKA_COMPACT_ARRAY)
        return read_array(r, op, value, member);
    if (op->kind != ESK_KAFKA_STRUCT)
        return read_scalar(r, op->kind, op->field->json_name, value, member);
    if (op->flags & ESK_KAFKA_POINTER) {
        uint8_t *inner = NULL;
        if (value->type != ESK_JSON_NULL) {
            inner = esk_arena_alloc(r->arena, op->layout->struct_bytes);
            if (!read_struct(r, op->layout, value, inner))
                goto wrapped;
        }
        memcpy(member, &inner, sizeof(inner));
        return true;
    }
    if (read_struct(r, op->layout, value, member))
        return true;
wrapped:
    esk_wrap(r->error, "%s", op->field->json_name);
    return false;
}

static bool read_unknown(struct reader *r, const struct esk_kafka_layout *layout,
                         const struct esk_json_value *list, uint8_t *out) {
    struct esk_kafka_unknown_tag *last = NULL;
    struct esk_json_iterator each = esk_json_each(list);
    struct esk_json_value entry;
    if (!layout->flexible)
        return refuse(r, "unknownTaggedFields", "a flexible version");
    while (esk_json_next_element(&each, &entry)) {
        struct esk_json_value tag;
        struct esk_json_value data;
        int64_t number;
        struct esk_kafka_unknown_tag *unknown = esk_arena_alloc(r->arena, sizeof(*unknown));
        if (!esk_json_find(&entry, "tag", &tag) || !esk_json_find(&entry, "data", &data) ||
            !esk_json_int64(&tag, &number) || number < 0 || number > UINT32_MAX ||
            !eski_json_bytes(&data, r->arena, &unknown->data) || unknown->data.data == NULL)
            return refuse(r, "unknownTaggedFields", "objects with tag and data");
        unknown->tag = (uint32_t)number;
        unknown->next = NULL;
        if (last != NULL)
            last->next = unknown;
        else
            memcpy(out + layout->tags_offset, &unknown, sizeof(unknown));
        last = unknown;
    }
    return true;
}

static const struct esk_kafka_op *op_named(const struct esk_kafka_layout *layout,
                                           struct esk_slice key) {
    for (unsigned i = 0; i < (unsigned)layout->plain_count + layout->tagged_count; i++)
        if (esk_slice_equal(key, esk_slice_text(layout->ops[i].field->json_name)))
            return &layout->ops[i];
    return NULL;
}

static bool read_struct(struct reader *r, const struct esk_kafka_layout *layout,
                        const struct esk_json_value *object, uint8_t *out) {
    if (object->type != ESK_JSON_OBJECT)
        return refuse(r, layout->name, "an object");
    memcpy(out, layout->defaults, layout->struct_bytes);
    struct esk_json_iterator each = esk_json_each(object);
    struct esk_slice key;
    struct esk_json_value value;
    while (esk_json_next_field(&each, &key, &value)) {
        const struct esk_kafka_op *op = op_named(layout, key);
        if (op != NULL) {
            if (!read_member(r, op, &value, out))
                return false;
        } else if (esk_slice_equal(key, esk_slice_text("unknownTaggedFields"))) {
            if (!read_unknown(r, layout, &value, out))
                return false;
        } else {
            esk_fail(r->error, ESK_ERR_INVALID, "%.*s: no such field in this version",
                     (int)(key.size < 100 ? key.size : 100), (const char *)key.data);
            return false;
        }
    }
    return true;
}

static enum esk_err put_struct(struct reader *r, const struct esk_kafka_layout *layout,
                               const struct esk_json_value *object, struct esk_buffer *output) {
    uint8_t *body = esk_arena_alloc(r->arena, layout->struct_bytes);
    if (!read_struct(r, layout, object, body))
        return ESK_ERR_INVALID;
    return esk_kafka_encode(layout, body, output, r->error);
}

/* A request whose JSON has no header gets the plainest one. */
static void default_header(const struct esk_atlas_input *input, struct esk_buffer *output) {
    size_t start = output->size;
    const struct esk_kafka_layout *layout =
        esk_kafka_header_layout(input->message, input->version, NULL);
    esk_kafka_encode(layout, layout->defaults, output, NULL);
    if (input->message->type == ESK_KAFKA_REQUEST) {
        esk_store_u16(output->data + start, (uint16_t)input->message->api_key);
        esk_store_u16(output->data + start + 2, (uint16_t)input->version);
    }
}

/* A request's header must say what its line says: nobody else could read the bytes. */
static enum esk_err check_header(const struct esk_atlas_input *input, const uint8_t *header,
                                 struct esk_error *error) {
    if (input->message->type != ESK_KAFKA_REQUEST)
        return ESK_OK;
    int16_t api_key = (int16_t)esk_load_u16(header);
    int16_t version = (int16_t)esk_load_u16(header + 2);
    if (api_key != input->message->api_key)
        return esk_fail(error, ESK_ERR_INVALID, "RequestApiKey: expected %d, found %d",
                        input->message->api_key, api_key);
    return version == input->version
               ? ESK_OK
               : esk_fail(error, ESK_ERR_INVALID, "RequestApiVersion: expected %d, found %d",
                          input->version, version);
}

static enum esk_err put_message(const struct esk_atlas_input *input, struct reader *r,
                                const struct esk_json_value *root, struct esk_buffer *output) {
    const struct esk_kafka_message *message = input->message;
    struct esk_json_value part;
    size_t start = output->size;
    bool framed = message->type <= ESK_KAFKA_RESPONSE;
    if (framed) {
        esk_buffer_u32(output, 0);
        if (!esk_json_find(root, "header", &part))
            default_header(input, output);
        else if (put_struct(r, esk_kafka_header_layout(message, input->version, NULL), &part,
                            output) != ESK_OK ||
                 check_header(input, output->data + start + 4, r->error) != ESK_OK)
            return ESK_ERR_INVALID;
    } else if (message->type == ESK_KAFKA_COORDINATOR_KEY) {
        esk_buffer_u16(output, (uint16_t)message->api_key);
    } else if (message->type == ESK_KAFKA_COORDINATOR_VALUE) {
        esk_buffer_u16(output, (uint16_t)input->version);
    }
    if (!esk_json_find(root, "body", &part))
        return esk_fail(r->error, ESK_ERR_INVALID, "body: expected an object");
    enum esk_err err = put_struct(r, esk_kafka_layout_of(message, input->version), &part, output);
    if (err == ESK_OK && framed)
        esk_store_u32(output->data + start, (uint32_t)(output->size - start - 4));
    return err;
}

enum esk_err esk_atlas_from_json(const struct esk_atlas_input *input,
                                 const struct esk_json_value *root, struct esk_buffer *output,
                                 struct esk_error *error) {
    struct esk_arena arena;
    esk_arena_init(&arena, 0);
    struct reader reader = {&arena, error};
    size_t before = output->size;
    enum esk_err err;
    struct esk_json_value body;
    if (input->message != NULL)
        err = put_message(input, &reader, root, output);
    else if (esk_json_find(root, "body", &body))
        err = eski_batches_from_json(&body, &arena, output, error);
    else
        err = esk_fail(error, ESK_ERR_INVALID, "body: expected an object");
    if (err != ESK_OK) {
        char title[80];
        output->size = before;
        esk_atlas_input_title(input, title, sizeof(title));
        esk_wrap(error, "%s", title);
    }
    esk_arena_fini(&arena);
    return err;
}
