/* SPDX-License-Identifier: Apache-2.0 */
/* The walk over records: batches v2 with their records, message sets v0 and v1, compressed or not,
 * and the contents of control records. Checksums, magic and counts are checked. A compressed batch
 * is inflated as a whole into scan->scratch, within ESK_KAFKA_INFLATED_BYTES_MAX. */
#include "base/assert.h"
#include "base/hash.h"
#include "model/record_batch.h"
#include "wire/kafka/scan_private.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define BATCH_AT_MAGIC ESK_BATCH_AT_MAGIC
#define MESSAGE_BYTES_MIN 14 /* behind the size: crc, magic, attributes, two lengths */
#define COMPRESSION_MASK 7

enum record_field { /* as in definitions/kafka/record/Record.json */
                    RECORD_LENGTH,
                    RECORD_ATTRIBUTES,
                    RECORD_TIMESTAMP_DELTA,
                    RECORD_OFFSET_DELTA,
                    RECORD_KEY,
                    RECORD_VALUE,
                    RECORD_HEADERS,
                    RECORD_HEADER_KEY,
                    RECORD_HEADER_VALUE,
};

struct batch {
    int32_t length;
    int16_t attributes;
    int32_t count;
    size_t count_position;
};

/* A zig-zag number, reported as a leaf. Like Kafka, 32-bit ones drop what is beyond. */
static bool scan_varint(struct esk_kafka_scan *scan, struct esk_kafka_node *node, int64_t *value) {
    size_t position = eski_scan_position(scan);
    unsigned bytes_max = node->kind == ESK_KAFKA_VARLONG ? 10 : 5;
    uint64_t raw = 0;
    unsigned size = 0;
    do {
        if (size == eski_scan_left(scan) || size == bytes_max)
            return eski_scan_fail(scan, node->parent, node->field, position,
                                  "expected a varint of at most %u bytes", bytes_max);
        raw |= (uint64_t)(scan->at[size] & 0x7f) << (7 * size);
    } while (scan->at[size++] >= 0x80);
    if (node->kind != ESK_KAFKA_VARLONG)
        raw = (uint32_t)raw;
    node->integer = (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
    scan->at += size;
    *value = node->integer;
    return true;
}

static struct esk_kafka_node record_node(const struct esk_kafka_node *parent,
                                         enum record_field field, unsigned kind) {
    return (struct esk_kafka_node){.parent = parent,
                                   .part = ESK_KAFKA_PART_FIELD,
                                   .kind = (uint8_t)kind,
                                   .field = &esk_kafka_record_fields[field]};
}

static bool scan_number(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                        enum record_field field, unsigned kind, int64_t *value) {
    struct esk_kafka_node node = record_node(parent, field, kind);
    size_t position = eski_scan_position(scan);
    if (!scan_varint(scan, &node, value))
        return false;
    eski_scan_value(scan, &node, position);
    return true;
}

/* Bytes or text behind a varint length, -1 for null. */
static bool scan_varint_bytes(struct esk_kafka_scan *scan, struct esk_kafka_node *node) {
    size_t position = eski_scan_position(scan);
    int64_t length;
    if (!scan_varint(scan, node, &length))
        return false;
    if (length < (node->nullable ? -1 : 0))
        return eski_scan_fail(scan, node->parent, node->field, position,
                              "expected a length, found %lld", (long long)length);
    node->null = length < 0;
    if (length > 0 && (uint64_t)length > eski_scan_left(scan))
        return eski_scan_fail(scan, node->parent, node->field, position,
                              "its length says %lld bytes, %zu are left", (long long)length,
                              eski_scan_left(scan));
    node->bytes = node->null ? (struct esk_slice){NULL, 0} : esk_slice(scan->at, (size_t)length);
    scan->at += node->null ? 0 : length;
    eski_scan_value(scan, node, position);
    return true;
}

static bool scan_header(struct esk_kafka_scan *scan, const struct esk_kafka_node *headers,
                        int64_t index, bool last) {
    struct esk_kafka_node node = {.parent = headers,
                                  .part = ESK_KAFKA_PART_HEADER,
                                  .kind = ESK_KAFKA_STRUCT,
                                  .index = index,
                                  .last = last,
                                  .position = eski_scan_position(scan)};
    struct esk_kafka_node key = record_node(&node, RECORD_HEADER_KEY, ESK_KAFKA_VARINT_STRING);
    struct esk_kafka_node value = record_node(&node, RECORD_HEADER_VALUE, ESK_KAFKA_VARINT_BYTES);
    value.nullable = value.last = true;
    if (scan->visitor != NULL && scan->visitor->measure) {
        struct esk_kafka_scan copy = *scan;
        copy.visitor = NULL;
        struct esk_kafka_node key_copy = key;
        struct esk_kafka_node value_copy = value;
        if (scan_varint_bytes(&copy, &key_copy))
            scan_varint_bytes(&copy, &value_copy);
        node.size = (size_t)(copy.at - scan->at);
    }
    eski_scan_open(scan, &node);
    if (!scan_varint_bytes(scan, &key) || !scan_varint_bytes(scan, &value))
        return false;
    eski_scan_close(scan, &node);
    return true;
}

static bool scan_headers(struct esk_kafka_scan *scan, const struct esk_kafka_node *record) {
    struct esk_kafka_node node = record_node(record, RECORD_HEADERS, ESK_KAFKA_ARRAY);
    node.position = eski_scan_position(scan);
    node.size = eski_scan_left(scan); /* they are the rest of the record */
    node.last = true;
    eski_scan_open(scan, &node);
    struct esk_kafka_node length = {
        .parent = &node, .part = ESK_KAFKA_PART_LENGTH, .kind = ESK_KAFKA_VARINT};
    int64_t count = 0;
    if (!scan_varint(scan, &length, &count))
        return false;
    if (count < 0 || (uint64_t)count > eski_scan_left(scan) / 2)
        return eski_scan_fail(scan, record, node.field, node.position,
                              "claims %lld headers in %zu bytes", (long long)count,
                              eski_scan_left(scan));
    length.last = count == 0;
    eski_scan_value(scan, &length, node.position);
    for (int64_t i = 0; i < count; i++)
        if (!scan_header(scan, &node, i, i == count - 1))
            return false;
    eski_scan_close(scan, &node);
    return true;
}

/* --- control records ------------------------------------------------------------------------- */

#define CONTROL_VERSION_BYTES 2 /* an int16 before the key, and before a transaction marker */

struct control {
    const struct esk_kafka_layout *layout; /* NULL: unknown */
    bool prefixed;                         /* by its version */
};

static struct control control_value(struct esk_slice key, struct esk_slice value) {
    static const char *const names[] = {
        "EndTxnMarker",         "EndTxnMarker",       "LeaderChangeMessage", "SnapshotHeaderRecord",
        "SnapshotFooterRecord", "KRaftVersionRecord", "VotersRecord"};
    struct control result = {NULL, false};
    if (key.size < 4 || value.size < CONTROL_VERSION_BYTES)
        return result;
    uint16_t type = esk_load_u16(key.data + 2);
    int16_t version = (int16_t)esk_load_u16(value.data);
    if (type >= sizeof(names) / sizeof(names[0]))
        return result;
    const struct esk_kafka_message *message = esk_kafka_message_named(names[type], version);
    if (!esk_kafka_has_version(message, version))
        return result;
    result.layout = esk_kafka_layout_of(message, version);
    result.prefixed = type <= 1;
    return result;
}

/* Key or value of a control record as a node with children, if it is one that is known. */
static bool scan_control(struct esk_kafka_scan *scan, struct esk_kafka_node *node,
                         struct control control) {
    struct esk_kafka_scan whole = *scan;
    struct esk_kafka_node length = {
        .parent = node, .part = ESK_KAFKA_PART_LENGTH, .kind = ESK_KAFKA_VARINT};
    int64_t size = 0;
    size_t position = eski_scan_position(scan);
    if (!scan_varint(&whole, &length, &size) || size < 0)
        return false;
    struct esk_kafka_scan inner;
    size_t prefix = control.prefixed ? CONTROL_VERSION_BYTES : 0;
    if (control.layout == NULL || (uint64_t)size > eski_scan_left(&whole) || (size_t)size < prefix)
        return false;
    esk_kafka_scan_init(&inner, esk_slice(whole.at + prefix, (size_t)size - prefix), NULL);
    if (!esk_kafka_scan_struct(&inner, control.layout, NULL) || inner.at != inner.end)
        return false;
    node->part = ESK_KAFKA_PART_CONTROL;
    node->position = position;
    node->size = (size_t)(inner.end - scan->at);
    eski_scan_open(scan, node);
    scan->at = whole.at;
    eski_scan_value(scan, &length, position);
    if (control.prefixed) {
        struct esk_kafka_node version = {.parent = node,
                                         .part = ESK_KAFKA_PART_PRESENT,
                                         .kind = ESK_KAFKA_INT16,
                                         .integer = (int16_t)esk_load_u16(scan->at)};
        position = eski_scan_position(scan);
        scan->at += CONTROL_VERSION_BYTES;
        eski_scan_value(scan, &version, position);
    }
    esk_kafka_scan_struct(scan, control.layout, node);
    eski_scan_close(scan, node);
    return true;
}

static bool scan_key_and_value(struct esk_kafka_scan *scan, const struct esk_kafka_node *record,
                               bool control) {
    struct esk_kafka_node key = record_node(record, RECORD_KEY, ESK_KAFKA_VARINT_BYTES);
    struct esk_kafka_node value = record_node(record, RECORD_VALUE, ESK_KAFKA_VARINT_BYTES);
    key.nullable = value.nullable = true;
    control = control && scan->visitor != NULL && !scan->visitor->opaque_records;
    const uint8_t *start = scan->at;
    if (!control)
        return scan_varint_bytes(scan, &key) && scan_varint_bytes(scan, &value);
    struct esk_kafka_scan copy = *scan;
    copy.visitor = NULL;
    struct esk_kafka_node key_copy = key;
    struct esk_kafka_node value_copy = value;
    if (!scan_varint_bytes(&copy, &key_copy) || !scan_varint_bytes(&copy, &value_copy))
        return scan_varint_bytes(scan, &key) && scan_varint_bytes(scan, &value);
    struct control type = {
        esk_kafka_layout_of(esk_kafka_message_named("ControlRecordTypeSchema", 0), 0), true};
    if (!scan_control(scan, &key, type) && !scan_varint_bytes(scan, &key))
        return false;
    ESK_ASSERT(scan->at > start);
    return scan_control(scan, &value, control_value(key_copy.bytes, value_copy.bytes)) ||
           scan_varint_bytes(scan, &value);
}

/* --- batches v2 ------------------------------------------------------------------------------ */

static bool scan_record(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                        int64_t index, bool last, bool control) {
    struct esk_kafka_node node = {.parent = parent,
                                  .part = ESK_KAFKA_PART_RECORD,
                                  .kind = ESK_KAFKA_STRUCT,
                                  .index = index,
                                  .last = last,
                                  .position = eski_scan_position(scan)};
    struct esk_kafka_scan copy = *scan;
    copy.visitor = NULL;
    struct esk_kafka_node length = record_node(&node, RECORD_LENGTH, ESK_KAFKA_VARINT);
    int64_t size = 0;
    if (!scan_varint(scan, &length, &size))
        return false;
    if (size < 0 || (uint64_t)size > eski_scan_left(scan))
        return eski_scan_fail(scan, &node, length.field, node.position,
                              "its length says %lld bytes, %zu are left", (long long)size,
                              eski_scan_left(scan));
    node.size = (size_t)(scan->at - copy.at) + (size_t)size;
    eski_scan_open(scan, &node);
    eski_scan_value(scan, &length, node.position);
    const uint8_t *end = scan->end;
    scan->end = scan->at + size;
    struct esk_kafka_node attributes = record_node(&node, RECORD_ATTRIBUTES, ESK_KAFKA_INT8);
    int64_t ignored;
    if (!eski_scan_fixed(scan, &attributes) ||
        !scan_number(scan, &node, RECORD_TIMESTAMP_DELTA, ESK_KAFKA_VARLONG, &ignored) ||
        !scan_number(scan, &node, RECORD_OFFSET_DELTA, ESK_KAFKA_VARINT, &ignored) ||
        !scan_key_and_value(scan, &node, control) || !scan_headers(scan, &node))
        return false;
    if (scan->at != scan->end)
        return eski_scan_fail(scan, &node, NULL, eski_scan_position(scan),
                              "expected the end of the record, %zu bytes are left",
                              eski_scan_left(scan));
    scan->end = end;
    eski_scan_close(scan, &node);
    return true;
}

static bool scan_record_list(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                             const struct batch *batch) {
    if ((uint64_t)batch->count > eski_scan_left(scan) / ESK_RECORD_BYTES_MIN)
        return eski_scan_fail(scan, parent, &esk_kafka_batch_fields[12], batch->count_position,
                              "claims %d records, %zu bytes can't hold them", (int)batch->count,
                              eski_scan_left(scan));
    for (int32_t i = 0; i < batch->count; i++)
        if (!scan_record(scan, parent, i, i == batch->count - 1,
                         (batch->attributes & ESK_BATCH_CONTROL) != 0))
            return false;
    if (scan->at != scan->end)
        return eski_scan_fail(scan, parent, NULL, eski_scan_position(scan),
                              "expected the end of the batch, %zu bytes are left",
                              eski_scan_left(scan));
    return true;
}

/* Inflates the rest of scan into scratch and opens a scan over that; false: failed. */
static bool inflate_records(struct esk_kafka_scan *scan, const struct esk_kafka_node *node,
                            struct esk_slice input, unsigned codec, struct esk_kafka_scan *inner) {
    struct esk_error error;
    scan->scratch.size = 0;
    if (esk_inflate((enum esk_codec)codec, input, ESK_KAFKA_INFLATED_BYTES_MAX, &scan->scratch,
                    &error) != ESK_OK)
        return eski_scan_fail(scan, node->parent, NULL, node->position, "%s", error.text);
    esk_kafka_scan_init(inner, esk_buffer_slice(&scan->scratch), scan->visitor);
    inner->inflated = true;
    return true;
}

static bool inner_failed(struct esk_kafka_scan *scan, const struct esk_kafka_scan *inner,
                         size_t position) {
    scan->failed = true;
    scan->problem_position = position;
    snprintf(scan->problem, sizeof(scan->problem), "%.400s (byte %zu of the inflated records)",
             inner->problem, inner->problem_position);
    return false;
}

static bool scan_compressed(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                            const struct batch *batch) {
    struct esk_kafka_node node = {.parent = parent,
                                  .part = ESK_KAFKA_PART_INFLATED,
                                  .kind = ESK_KAFKA_RAW,
                                  .integer = batch->attributes & COMPRESSION_MASK,
                                  .position = eski_scan_position(scan),
                                  .size = eski_scan_left(scan),
                                  .last = true};
    if (node.size == 0 && batch->count == 0)
        return true;
    struct esk_kafka_scan inner;
    if (!inflate_records(scan, &node, esk_slice(scan->at, node.size),
                         batch->attributes & COMPRESSION_MASK, &inner))
        return false;
    eski_scan_open(scan, &node);
    if (!scan_record_list(&inner, &node, batch))
        return inner_failed(scan, &inner, node.position);
    eski_scan_close(scan, &node);
    scan->at = scan->end;
    return true;
}

/* The thirteen fields before the records, with their checks. */
static bool scan_batch_header(struct esk_kafka_scan *scan, const struct esk_kafka_node *batch_node,
                              struct batch *batch) {
    static const uint8_t kinds[] = {
        ESK_KAFKA_INT64, ESK_KAFKA_INT32, ESK_KAFKA_INT32, ESK_KAFKA_INT8,  ESK_KAFKA_UINT32,
        ESK_KAFKA_INT16, ESK_KAFKA_INT32, ESK_KAFKA_INT64, ESK_KAFKA_INT64, ESK_KAFKA_INT64,
        ESK_KAFKA_INT16, ESK_KAFKA_INT32, ESK_KAFKA_INT32};
    const uint8_t *start = scan->at;
    uint32_t crc = esk_crc32c(0, start + ESK_BATCH_AT_ATTRIBUTES,
                              (size_t)(scan->end - start) - ESK_BATCH_AT_ATTRIBUTES);
    for (unsigned i = 0; i < sizeof(kinds); i++) {
        struct esk_kafka_node node = {.parent = batch_node,
                                      .part = ESK_KAFKA_PART_FIELD,
                                      .kind = kinds[i],
                                      .field = &esk_kafka_batch_fields[i]};
        size_t at = (size_t)(scan->at - start);
        size_t position = eski_scan_position(scan);
        node.last = at == ESK_BATCH_AT_RECORD_COUNT && eski_scan_left(scan) == sizeof(int32_t);
        if (!eski_scan_fixed(scan, &node))
            return false;
        if (at == ESK_BATCH_AT_CRC && node.integer != crc)
            return eski_scan_fail(scan, batch_node, node.field, position,
                                  "expected CRC 0x%08x, found 0x%08x", crc, (unsigned)node.integer);
        if (at == ESK_BATCH_AT_ATTRIBUTES) {
            batch->attributes = (int16_t)node.integer;
            if ((batch->attributes & COMPRESSION_MASK) > ESK_CODEC_ZSTD)
                return eski_scan_fail(scan, batch_node, node.field, position,
                                      "expected codec 0 to 4, found %d",
                                      batch->attributes & COMPRESSION_MASK);
        }
        if (at == ESK_BATCH_AT_RECORD_COUNT) {
            batch->count = (int32_t)node.integer;
            batch->count_position = position;
            if (batch->count < 0)
                return eski_scan_fail(scan, batch_node, node.field, position,
                                      "expected a count, found %d", (int)batch->count);
        }
    }
    return true;
}

static bool scan_batch(struct esk_kafka_scan *scan, struct esk_kafka_node *node) {
    struct batch batch = {0};
    eski_scan_open(scan, node);
    if (!scan_batch_header(scan, node, &batch))
        return false;
    if (batch.attributes & COMPRESSION_MASK ? !scan_compressed(scan, node, &batch)
                                            : !scan_record_list(scan, node, &batch))
        return false;
    eski_scan_close(scan, node);
    return true;
}

/* --- message sets ---------------------------------------------------------------------------- */

static bool scan_message(struct esk_kafka_scan *scan, struct esk_kafka_node *node, int magic) {
    static const uint8_t kinds[] = {ESK_KAFKA_INT64, ESK_KAFKA_INT32, ESK_KAFKA_UINT32,
                                    ESK_KAFKA_INT8,  ESK_KAFKA_INT8,  ESK_KAFKA_INT64,
                                    ESK_KAFKA_BYTES, ESK_KAFKA_BYTES};
    const uint8_t *crc_start = scan->at + BATCH_AT_MAGIC;
    uint32_t crc = (uint32_t)crc32(0, crc_start, (uInt)(scan->end - crc_start));
    unsigned codec = 0;
    eski_scan_open(scan, node);
    for (unsigned i = 0; i < sizeof(kinds); i++) {
        struct esk_kafka_node field = {.parent = node,
                                       .part = ESK_KAFKA_PART_FIELD,
                                       .kind = kinds[i],
                                       .nullable = kinds[i] == ESK_KAFKA_BYTES,
                                       .last = i == sizeof(kinds) - 1,
                                       .field = &esk_kafka_message_set_fields[i]};
        size_t position = eski_scan_position(scan);
        if (i == 5 && magic == 0) /* no timestamp yet */
            continue;
        const struct esk_kafka_visitor *visitor = scan->visitor;
        bool compressed = i == 7 && codec != 0;
        if (compressed) /* the messages inside are shown in place of the value */
            scan->visitor = NULL;
        bool good = kinds[i] == ESK_KAFKA_BYTES ? eski_scan_slice(scan, &field)
                                                : eski_scan_fixed(scan, &field);
        scan->visitor = visitor;
        if (!good)
            return false;
        if (i == 2 && field.integer != crc)
            return eski_scan_fail(scan, node, field.field, position,
                                  "expected CRC 0x%08x, found 0x%08x", crc,
                                  (unsigned)field.integer);
        if (i == 4)
            codec = (unsigned)field.integer & COMPRESSION_MASK;
        if (compressed && field.bytes.data == NULL)
            eski_scan_value(scan, &field, position);
        if (compressed && field.bytes.data != NULL) {
            if (scan->inflated)
                return eski_scan_fail(scan, node, field.field, position,
                                      "compressed messages inside compressed ones");
            struct esk_kafka_scan inner;
            field.position = position;
            field.integer = codec;
            field.part = ESK_KAFKA_PART_INFLATED;
            if (!inflate_records(scan, &field, field.bytes, codec, &inner))
                return false;
            eski_scan_open(scan, &field);
            if (!esk_kafka_scan_records(&inner, &field))
                return inner_failed(scan, &inner, position);
            eski_scan_close(scan, &field);
        }
    }
    if (scan->at != scan->end)
        return eski_scan_fail(scan, node, NULL, eski_scan_position(scan),
                              "expected the end of the message, %zu bytes are left",
                              eski_scan_left(scan));
    eski_scan_close(scan, node);
    return true;
}

/* The rest of the records is the beginning of a batch, which fetch responses may end in. */
static bool scan_partial(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent) {
    struct esk_kafka_node node = {.parent = parent,
                                  .part = ESK_KAFKA_PART_PARTIAL,
                                  .kind = ESK_KAFKA_RAW,
                                  .last = true,
                                  .bytes = esk_slice(scan->at, eski_scan_left(scan))};
    size_t position = eski_scan_position(scan);
    scan->at = scan->end;
    eski_scan_value(scan, &node, position);
    return true;
}

static bool scan_one(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent,
                     int64_t index) {
    struct esk_kafka_node node = {.parent = parent,
                                  .kind = ESK_KAFKA_STRUCT,
                                  .index = index,
                                  .position = eski_scan_position(scan)};
    size_t left = eski_scan_left(scan);
    if (left <= BATCH_AT_MAGIC)
        return scan->partial_batches
                   ? scan_partial(scan, parent)
                   : eski_scan_fail(scan, parent, NULL, node.position,
                                    "expected a batch of records, only %zu bytes are left", left);
    int32_t length = (int32_t)esk_load_u32(scan->at + ESK_BATCH_AT_LENGTH);
    int magic = (int8_t)scan->at[BATCH_AT_MAGIC];
    if (magic < 0 || magic > ESK_BATCH_MAGIC || (scan->inflated && magic == ESK_BATCH_MAGIC))
        return eski_scan_fail(scan, parent, &esk_kafka_batch_fields[3],
                              node.position + BATCH_AT_MAGIC, "expected magic 0, 1 or 2, found %d",
                              magic);
    int32_t least = magic == ESK_BATCH_MAGIC ? ESK_BATCH_HEADER_BYTES - ESK_BATCH_LENGTH_BYTES
                                             : MESSAGE_BYTES_MIN + magic * 8;
    if (length < least)
        return eski_scan_fail(
            scan, parent, &esk_kafka_batch_fields[1], node.position + ESK_BATCH_AT_LENGTH,
            "expected a length of at least %d, found %d", (int)least, (int)length);
    node.size = (size_t)length + ESK_BATCH_LENGTH_BYTES;
    if (node.size > left)
        return scan->partial_batches ? scan_partial(scan, parent)
                                     : eski_scan_fail(scan, parent, &esk_kafka_batch_fields[1],
                                                      node.position + ESK_BATCH_AT_LENGTH,
                                                      "its length says %d bytes, %zu are left",
                                                      (int)length, left - ESK_BATCH_LENGTH_BYTES);
    node.part = magic == ESK_BATCH_MAGIC ? ESK_KAFKA_PART_BATCH : ESK_KAFKA_PART_MESSAGE;
    node.integer = magic;
    node.last = node.size == left;
    const uint8_t *end = scan->end;
    scan->end = scan->at + node.size;
    if (magic == ESK_BATCH_MAGIC ? !scan_batch(scan, &node) : !scan_message(scan, &node, magic))
        return false;
    scan->at = scan->end;
    scan->end = end;
    return true;
}

bool esk_kafka_scan_records(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent) {
    for (int64_t i = 0; scan->at < scan->end; i++)
        if (!scan_one(scan, parent, i))
            return false;
    return true;
}
