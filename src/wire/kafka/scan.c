/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over fields: nothing is kept but the path on the stack. */
#include "wire/kafka/scan.h"
#include "model/names.h"
#include "wire/kafka/scan_private.h"
#include "wire/kafka/varint_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool scan_op(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                    const struct esk_kafka_op *op, bool last);

void esk_kafka_scan_init(struct esk_kafka_scan *scan, struct esk_slice bytes,
                         const struct esk_kafka_visitor *visitor) {
    static const uint8_t nothing = 0;
    if (bytes.data == NULL)
        bytes = esk_slice(&nothing, 0);
    *scan = (struct esk_kafka_scan){
        .start = bytes.data, .at = bytes.data, .end = bytes.data + bytes.size, .visitor = visitor};
    esk_buffer_init(&scan->scratch);
}

void esk_kafka_scan_fini(struct esk_kafka_scan *scan) {
    esk_buffer_fini(&scan->scratch);
}

static size_t path_append(const struct esk_kafka_node *node, char *text, size_t size) {
    if (node == NULL)
        return 0;
    size_t length = path_append(node->parent, text, size);
    int more = 0;
    if (length >= size)
        return length;
    switch (node->part) {
    case ESK_KAFKA_PART_ELEMENT:
        more = snprintf(text + length, size - length, "[%lld]", (long long)node->index);
        break;
    case ESK_KAFKA_PART_BATCH:
    case ESK_KAFKA_PART_MESSAGE:
        more = snprintf(text + length, size - length, "%sbatches[%lld]", length ? "." : "",
                        (long long)node->index);
        break;
    case ESK_KAFKA_PART_RECORD:
        more = snprintf(text + length, size - length, ".records[%lld]", (long long)node->index);
        break;
    case ESK_KAFKA_PART_HEADER:
        more = snprintf(text + length, size - length, "[%lld]", (long long)node->index);
        break;
    default:
        if (node->field != NULL && node->part == ESK_KAFKA_PART_FIELD)
            more = snprintf(text + length, size - length, "%s%s", length ? "." : "",
                            node->field->name);
        break;
    }
    return length + (size_t)(more > 0 ? more : 0);
}

void esk_kafka_path(const struct esk_kafka_node *parent, const struct esk_kafka_field *field,
                    char *text, size_t size) {
    text[0] = '\0';
    size_t length = path_append(parent, text, size);
    if (field != NULL && length < size)
        snprintf(text + length, size - length, "%s%s", length ? "." : "", field->name);
}

bool eski_scan_fail(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                    const struct esk_kafka_field *field, size_t position, const char *format, ...) {
    if (scan->failed)
        return false;
    scan->failed = true;
    scan->problem_position = position;
    char *text = scan->problem;
    esk_kafka_path(parent, field, text, sizeof(scan->problem) / 2);
    size_t length = strlen(text);
    if (length > 0) {
        text[length++] = ':';
        text[length++] = ' ';
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, sizeof(scan->problem) - length, format, arguments);
    va_end(arguments);
    return false;
}

void eski_scan_warn(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                    const struct esk_kafka_field *field, size_t position, const char *text) {
    if (scan->visitor != NULL && scan->visitor->warn != NULL)
        scan->visitor->warn(scan->visitor->context, parent, field, position, text);
}

bool eski_scan_needs(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                     const struct esk_kafka_field *field, uint64_t bytes) {
    if (bytes <= eski_scan_left(scan))
        return true;
    return eski_scan_fail(scan, parent, field, eski_scan_position(scan),
                          "expected %llu bytes, %zu are left", (unsigned long long)bytes,
                          eski_scan_left(scan));
}

void eski_scan_value(struct esk_kafka_scan *scan, struct esk_kafka_node *node, size_t position) {
    node->position = position;
    node->size = eski_scan_position(scan) - position;
    node->inflated = scan->inflated;
    if (scan->visitor != NULL && scan->visitor->value != NULL)
        scan->visitor->value(scan->visitor->context, node);
}

void eski_scan_open(struct esk_kafka_scan *scan, struct esk_kafka_node *node) {
    node->inflated = scan->inflated;
    if (scan->visitor != NULL && scan->visitor->open != NULL)
        scan->visitor->open(scan->visitor->context, node);
}

void eski_scan_close(struct esk_kafka_scan *scan, const struct esk_kafka_node *node) {
    if (scan->visitor != NULL && scan->visitor->close != NULL)
        scan->visitor->close(scan->visitor->context, node);
}

/* Whether sizes of opened nodes have to be found out in advance. */
static bool measures(const struct esk_kafka_scan *scan) {
    return scan->visitor != NULL && scan->visitor->measure;
}

/* A silent walk from here, up to wherever it gets. */
static struct esk_kafka_scan silent(const struct esk_kafka_scan *scan) {
    struct esk_kafka_scan copy;
    esk_kafka_scan_init(&copy, esk_slice(scan->at, eski_scan_left(scan)), NULL);
    copy.shallow_records = true;
    return copy;
}

static size_t silent_size(struct esk_kafka_scan *copy) {
    return copy->failed ? copy->problem_position : eski_scan_position(copy);
}

static int64_t fixed_integer(unsigned kind, const uint8_t *at) {
    switch (kind) {
    case ESK_KAFKA_BOOL:
        return *at != 0;
    case ESK_KAFKA_INT8:
        return (int8_t)*at;
    case ESK_KAFKA_INT16:
        return (int16_t)esk_load_u16(at);
    case ESK_KAFKA_UINT16:
        return esk_load_u16(at);
    case ESK_KAFKA_INT32:
        return (int32_t)esk_load_u32(at);
    case ESK_KAFKA_UINT32:
        return esk_load_u32(at);
    default:
        return (int64_t)esk_load_u64(at);
    }
}

bool eski_scan_fixed(struct esk_kafka_scan *scan, struct esk_kafka_node *node) {
    static const uint8_t sizes[] = {
        [ESK_KAFKA_BOOL] = 1,   [ESK_KAFKA_INT8] = 1,    [ESK_KAFKA_INT16] = 2,
        [ESK_KAFKA_UINT16] = 2, [ESK_KAFKA_INT32] = 4,   [ESK_KAFKA_UINT32] = 4,
        [ESK_KAFKA_INT64] = 8,  [ESK_KAFKA_FLOAT64] = 8, [ESK_KAFKA_UUID] = 16,
    };
    size_t size = sizes[node->kind];
    if (!eski_scan_needs(scan, node->parent, node->field, size))
        return false;
    size_t position = eski_scan_position(scan);
    if (node->kind == ESK_KAFKA_UUID) {
        node->bytes = esk_slice(scan->at, 16);
    } else if (node->kind == ESK_KAFKA_FLOAT64) {
        uint64_t bits = esk_load_u64(scan->at);
        memcpy(&node->real, &bits, sizeof(bits));
    } else {
        node->integer = fixed_integer(node->kind, scan->at);
    }
    if (node->kind == ESK_KAFKA_BOOL && *scan->at > 1)
        eski_scan_warn(scan, node->parent, node->field, position,
                       "a bool that is neither 0 nor 1, read as true");
    scan->at += size;
    eski_scan_value(scan, node, position);
    return true;
}

bool eski_scan_uvarint(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                       const struct esk_kafka_field *field, uint32_t *value) {
    size_t position = eski_scan_position(scan);
    const uint8_t *at = eski_uvarint_read(scan->at, scan->end, value);
    if (at == NULL)
        return eski_scan_fail(scan, parent, field, position,
                              eski_scan_left(scan) < 5 ? "expected a uvarint, the bytes end in it"
                                                       : "expected a uvarint of at most 5 bytes");
    if ((size_t)(at - scan->at) != eski_uvarint_size(*value) ||
        (at - scan->at == 5 && at[-1] > 0x0f))
        eski_scan_warn(scan, parent, field, position, "a uvarint longer than its value needs");
    scan->at = at;
    return true;
}

/* A length before a string, bytes, records or an array, negative for null. */
static bool scan_length(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                        const struct esk_kafka_field *field, unsigned kind, bool nullable,
                        int32_t *length) {
    size_t position = eski_scan_position(scan);
    uint32_t value = 0;
    switch (kind) {
    case ESK_KAFKA_STRING:
        if (!eski_scan_needs(scan, parent, field, 2))
            return false;
        *length = (int16_t)esk_load_u16(scan->at);
        scan->at += 2;
        break;
    case ESK_KAFKA_BYTES:
    case ESK_KAFKA_RECORDS:
    case ESK_KAFKA_ARRAY:
        if (!eski_scan_needs(scan, parent, field, 4))
            return false;
        *length = (int32_t)esk_load_u32(scan->at);
        scan->at += 4;
        break;
    default:
        if (!eski_scan_uvarint(scan, parent, field, &value))
            return false;
        *length = (int32_t)(value - 1);
        break;
    }
    if (*length < 0 && !nullable)
        return eski_scan_fail(scan, parent, field, position,
                              "expected a length, found %d, and null is not allowed here",
                              (int)*length);
    if (*length < -1)
        eski_scan_warn(scan, parent, field, position, "a length below -1, read as null");
    return true;
}

bool eski_scan_slice(struct esk_kafka_scan *scan, struct esk_kafka_node *node) {
    size_t position = eski_scan_position(scan);
    int32_t length;
    if (!scan_length(scan, node->parent, node->field, node->kind, node->nullable, &length))
        return false;
    node->null = length < 0;
    node->integer = length;
    node->bytes = (struct esk_slice){NULL, 0};
    if (length >= 0) {
        if ((size_t)length > eski_scan_left(scan))
            return eski_scan_fail(scan, node->parent, node->field, position,
                                  "its length says %d bytes, %zu are left", (int)length,
                                  eski_scan_left(scan));
        node->bytes = esk_slice(scan->at, (size_t)length);
        if ((node->kind == ESK_KAFKA_STRING || node->kind == ESK_KAFKA_COMPACT_STRING) &&
            !esk_utf8_valid(node->bytes))
            eski_scan_warn(scan, node->parent, node->field, position, "not valid UTF-8");
        scan->at += length;
    }
    eski_scan_value(scan, node, position);
    return true;
}

/* Pieces of a snapshot, the one field of records that may begin and end inside a batch: whether
 * they do. */
static bool is_unaligned(const struct esk_kafka_scan *scan, const struct esk_kafka_node *node) {
    if (strcmp(node->field->name, "UnalignedRecords") != 0)
        return false;
    struct esk_kafka_scan copy = silent(scan);
    struct esk_kafka_node probe = *node;
    bool unaligned = false;
    if (eski_scan_slice(&copy, &probe) && probe.bytes.data != NULL) {
        struct esk_kafka_scan records;
        esk_kafka_scan_init(&records, probe.bytes, NULL);
        unaligned = !esk_kafka_scan_records(&records, NULL);
        esk_kafka_scan_fini(&records);
    }
    esk_kafka_scan_fini(&copy);
    return unaligned;
}

static bool scan_records_field(struct esk_kafka_scan *scan, struct esk_kafka_node *node) {
    if (scan->shallow_records || (scan->visitor != NULL && scan->visitor->opaque_records) ||
        is_unaligned(scan, node))
        return eski_scan_slice(scan, node);
    node->position = eski_scan_position(scan);
    if (measures(scan)) {
        struct esk_kafka_scan copy = silent(scan);
        struct esk_kafka_node probe = *node;
        eski_scan_slice(&copy, &probe);
        node->size = silent_size(&copy);
        esk_kafka_scan_fini(&copy);
    }
    eski_scan_open(scan, node);
    int32_t length;
    if (!scan_length(scan, node->parent, node->field, node->kind, node->nullable, &length))
        return false;
    node->null = length < 0;
    if (length > 0 && (size_t)length > eski_scan_left(scan))
        return eski_scan_fail(scan, node->parent, node->field, node->position,
                              "its length says %d bytes, %zu are left", (int)length,
                              eski_scan_left(scan));
    struct esk_kafka_node prefix = {.parent = node,
                                    .part = ESK_KAFKA_PART_LENGTH,
                                    .kind = node->kind == ESK_KAFKA_RECORDS ? ESK_KAFKA_INT32
                                                                            : ESK_KAFKA_UVARINT,
                                    .integer = length < 0 ? -1 : length,
                                    .last = length <= 0};
    eski_scan_value(scan, &prefix, node->position);
    if (length > 0) {
        const uint8_t *end = scan->end;
        scan->end = scan->at + length;
        if (!esk_kafka_scan_records(scan, node))
            return false;
        scan->at = scan->end;
        scan->end = end;
    }
    eski_scan_close(scan, node);
    return true;
}

static bool scan_element(struct esk_kafka_scan *scan, const struct esk_kafka_node *array,
                         const struct esk_kafka_op *op, int64_t index, bool last) {
    struct esk_kafka_node node = {.parent = array,
                                  .part = ESK_KAFKA_PART_ELEMENT,
                                  .kind = op->element,
                                  .op = op,
                                  .index = index,
                                  .last = last};
    if (op->element < ESK_KAFKA_STRING)
        return eski_scan_fixed(scan, &node);
    if (op->element != ESK_KAFKA_STRUCT)
        return eski_scan_slice(scan, &node);
    node.position = eski_scan_position(scan);
    if (measures(scan)) {
        struct esk_kafka_scan copy = silent(scan);
        esk_kafka_scan_struct(&copy, op->layout, array);
        node.size = silent_size(&copy);
        esk_kafka_scan_fini(&copy);
    }
    eski_scan_open(scan, &node);
    if (!esk_kafka_scan_struct(scan, op->layout, &node))
        return false;
    eski_scan_close(scan, &node);
    return true;
}

static bool scan_array(struct esk_kafka_scan *scan, struct esk_kafka_node *node) {
    const struct esk_kafka_op *op = node->op;
    int32_t count;
    if (!scan_length(scan, node->parent, node->field, op->kind, node->nullable, &count))
        return false;
    node->null = count < 0;
    struct esk_kafka_node length = {.parent = node,
                                    .part = ESK_KAFKA_PART_LENGTH,
                                    .kind = op->kind == ESK_KAFKA_ARRAY ? ESK_KAFKA_INT32
                                                                        : ESK_KAFKA_UVARINT,
                                    .integer = count < 0 ? -1 : count,
                                    .last = count <= 0};
    eski_scan_value(scan, &length, node->position);
    if (count > 0 && (size_t)count > eski_scan_left(scan))
        return eski_scan_fail(scan, node->parent, node->field, node->position,
                              "its length says %d elements, only %zu bytes are left", (int)count,
                              eski_scan_left(scan));
    for (int32_t i = 0; i < count; i++)
        if (!scan_element(scan, node, op, i, i == count - 1))
            return false;
    return true;
}

static bool scan_inner(struct esk_kafka_scan *scan, struct esk_kafka_node *node) {
    const struct esk_kafka_op *op = node->op;
    if (op->flags & ESK_KAFKA_NULLABLE) {
        size_t position = eski_scan_position(scan);
        struct esk_kafka_node marker = {.parent = node, .part = ESK_KAFKA_PART_PRESENT};
        uint32_t value = 0;
        if (op->flags & ESK_KAFKA_TAGGED) {
            if (!eski_scan_uvarint(scan, node, NULL, &value))
                return false;
            marker.kind = ESK_KAFKA_UVARINT;
            marker.integer = (int32_t)value;
            node->null = (int32_t)value <= 0;
        } else {
            if (!eski_scan_needs(scan, node, NULL, 1))
                return false;
            marker.kind = ESK_KAFKA_INT8;
            marker.integer = (int8_t)*scan->at++;
            node->null = marker.integer < 0;
        }
        if (marker.integer != (!node->null ? 1 : op->flags & ESK_KAFKA_TAGGED ? 0 : -1))
            eski_scan_warn(scan, node->parent, node->field, position,
                           "an unusual marker before a nullable struct");
        marker.last = node->null;
        eski_scan_value(scan, &marker, position);
        if (node->null)
            return true;
    }
    return esk_kafka_scan_struct(scan, op->layout, node);
}

static bool scan_op(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                    const struct esk_kafka_op *op, bool last) {
    struct esk_kafka_node node = {.parent = parent,
                                  .part = ESK_KAFKA_PART_FIELD,
                                  .kind = op->kind,
                                  .nullable = (op->flags & ESK_KAFKA_NULLABLE) != 0,
                                  .field = op->field,
                                  .op = op,
                                  .last = last};
    if (op->kind < ESK_KAFKA_STRING)
        return eski_scan_fixed(scan, &node);
    if (op->kind == ESK_KAFKA_RECORDS || op->kind == ESK_KAFKA_COMPACT_RECORDS)
        return scan_records_field(scan, &node);
    if (op->kind < ESK_KAFKA_RECORDS)
        return eski_scan_slice(scan, &node);
    node.position = eski_scan_position(scan);
    if (measures(scan)) {
        struct esk_kafka_scan copy = silent(scan);
        scan_op(&copy, parent, op, last);
        node.size = silent_size(&copy);
        esk_kafka_scan_fini(&copy);
    }
    eski_scan_open(scan, &node);
    bool good = op->kind == ESK_KAFKA_STRUCT ? scan_inner(scan, &node) : scan_array(scan, &node);
    if (good)
        eski_scan_close(scan, &node);
    return good;
}

static const struct esk_kafka_op *tagged_op(const struct esk_kafka_layout *layout, uint32_t tag) {
    for (unsigned i = 0; i < layout->tagged_count; i++)
        if (layout->ops[layout->plain_count + i].tag == tag)
            return &layout->ops[layout->plain_count + i];
    return NULL;
}

/* One entry of a tagged section, behind its number. */
static bool scan_tag(struct esk_kafka_scan *scan, const struct esk_kafka_layout *layout,
                     struct esk_kafka_node *node, uint32_t tag) {
    struct esk_kafka_node id = {
        .parent = node, .part = ESK_KAFKA_PART_TAG_ID, .kind = ESK_KAFKA_UVARINT, .integer = tag};
    eski_scan_value(scan, &id, node->position);
    size_t position = eski_scan_position(scan);
    uint32_t size;
    if (!eski_scan_uvarint(scan, node, NULL, &size))
        return false;
    struct esk_kafka_node length = {.parent = node,
                                    .part = ESK_KAFKA_PART_TAG_SIZE,
                                    .kind = ESK_KAFKA_UVARINT,
                                    .integer = size};
    const struct esk_kafka_op *op = tagged_op(layout, tag);
    length.last = op == NULL && size == 0;
    eski_scan_value(scan, &length, position);
    position = eski_scan_position(scan);
    if (op != NULL) {
        if (!scan_op(scan, node, op, true))
            return false;
        if (eski_scan_position(scan) - position != size)
            eski_scan_warn(scan, node->parent, op->field, position,
                           "the size before a tagged field is not that of its value");
        return true;
    }
    if (tag < 32 && (layout->other_tags >> tag & 1))
        return eski_scan_fail(scan, node, NULL, node->position,
                              "expected a tag of this version, %u is only in others", tag);
    if ((int32_t)size < 0 || size > eski_scan_left(scan))
        return eski_scan_fail(scan, node, NULL, position,
                              "unknown tag %u: its size says %d bytes, %zu are left", tag,
                              (int)size, eski_scan_left(scan));
    struct esk_kafka_node data = {.parent = node,
                                  .part = ESK_KAFKA_PART_UNKNOWN,
                                  .kind = ESK_KAFKA_RAW,
                                  .integer = tag,
                                  .bytes = esk_slice(scan->at, size),
                                  .last = true};
    scan->at += size;
    if (size > 0 || (scan->visitor != NULL && scan->visitor->opaque_records))
        eski_scan_value(scan, &data, position);
    return true;
}

static bool scan_tag_entries(struct esk_kafka_scan *scan, const struct esk_kafka_layout *layout,
                             const struct esk_kafka_node *section, int32_t count) {
    int64_t previous = -1;
    for (int32_t i = 0; i < count; i++) {
        size_t position = eski_scan_position(scan);
        uint32_t tag;
        if (!eski_scan_uvarint(scan, section, NULL, &tag))
            return false;
        if ((int64_t)tag <= previous)
            eski_scan_warn(scan, section, NULL, position,
                           (int64_t)tag == previous ? "a tag that repeats"
                                                    : "tags that do not ascend");
        previous = tag;
        struct esk_kafka_node node = {.parent = section,
                                      .part = ESK_KAFKA_PART_TAG,
                                      .index = tag,
                                      .op = tagged_op(layout, tag),
                                      .position = position,
                                      .last = i == count - 1};
        node.field = node.op != NULL ? node.op->field : NULL;
        if (measures(scan)) {
            struct esk_kafka_scan copy = silent(scan);
            scan_tag(&copy, layout, &node, tag);
            node.size = eski_scan_position(scan) - position + silent_size(&copy);
            esk_kafka_scan_fini(&copy);
        }
        eski_scan_open(scan, &node);
        if (!scan_tag(scan, layout, &node, tag))
            return false;
        eski_scan_close(scan, &node);
    }
    return true;
}

bool esk_kafka_scan_tags(struct esk_kafka_scan *scan, const struct esk_kafka_layout *layout,
                         const struct esk_kafka_node *parent) {
    size_t position = eski_scan_position(scan);
    struct esk_kafka_node node = {.parent = parent,
                                  .part = ESK_KAFKA_PART_TAGS,
                                  .layout = layout,
                                  .kind = ESK_KAFKA_UVARINT,
                                  .position = position,
                                  .last = true};
    uint32_t count;
    if (!eski_scan_uvarint(scan, parent, NULL, &count))
        return false;
    node.integer = count;
    if ((int32_t)count < 0)
        eski_scan_warn(scan, parent, NULL, position,
                       "a count of tagged fields beyond 2^31-1, read as none");
    if ((int32_t)count <= 0) {
        eski_scan_value(scan, &node, position);
        return true;
    }
    if (measures(scan)) {
        struct esk_kafka_scan copy = silent(scan);
        scan_tag_entries(&copy, layout, &node, (int32_t)count);
        node.size = eski_scan_position(scan) - position + silent_size(&copy);
        esk_kafka_scan_fini(&copy);
    }
    eski_scan_open(scan, &node);
    struct esk_kafka_node length = {.parent = &node,
                                    .part = ESK_KAFKA_PART_LENGTH,
                                    .kind = ESK_KAFKA_UVARINT,
                                    .integer = count};
    eski_scan_value(scan, &length, position);
    if (!scan_tag_entries(scan, layout, &node, (int32_t)count))
        return false;
    eski_scan_close(scan, &node);
    return true;
}

bool esk_kafka_scan_struct(struct esk_kafka_scan *scan, const struct esk_kafka_layout *layout,
                           const struct esk_kafka_node *parent) {
    for (unsigned i = 0; i < layout->plain_count; i++)
        if (!scan_op(scan, parent, &layout->ops[i],
                     i == layout->plain_count - 1U && !layout->flexible))
            return false;
    return !layout->flexible || esk_kafka_scan_tags(scan, layout, parent);
}

enum esk_err eski_scan_explain(const struct esk_kafka_layout *layout, struct esk_slice bytes,
                               struct esk_error *error) {
    struct esk_kafka_scan scan;
    esk_kafka_scan_init(&scan, bytes, NULL);
    scan.shallow_records = true;
    bool good = esk_kafka_scan_struct(&scan, layout, NULL);
    enum esk_err err = esk_fail(error, ESK_ERR_CORRUPT, "%s (offset %zu)",
                                good ? "not such a message" : scan.problem, scan.problem_position);
    esk_kafka_scan_fini(&scan);
    return err;
}
