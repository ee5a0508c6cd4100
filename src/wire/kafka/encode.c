/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding from C structs in one pass: room is asked for before each variable part, tagged values
 * are measured first since their size goes before them. Records can be handed on unread. */
#include "wire/kafka/codec.h"
#include "wire/kafka/varint_private.h"

#include <limits.h>
#include <string.h>

#define FIXED_BYTES_MAX 16 /* the widest value or length prefix */

struct encoder {
    struct esk_buffer *output;
    struct esk_kafka_pieces *pieces; /* NULL: records are copied */
    size_t piece_start;              /* in output: where the current piece begins */
    const char *problem;             /* static text, NULL while all is well */
    const struct esk_kafka_field *culprit;
};

static bool encode_struct(struct encoder *e, const struct esk_kafka_layout *layout,
                          const uint8_t *body);
static size_t size_op(const struct esk_kafka_op *op, const uint8_t *member);
static size_t size_struct(const struct esk_kafka_layout *layout, const uint8_t *body);

static const uint8_t fixed_bytes[] = {
    [ESK_KAFKA_BOOL] = 1,   [ESK_KAFKA_INT8] = 1,    [ESK_KAFKA_INT16] = 2,
    [ESK_KAFKA_UINT16] = 2, [ESK_KAFKA_INT32] = 4,   [ESK_KAFKA_UINT32] = 4,
    [ESK_KAFKA_INT64] = 8,  [ESK_KAFKA_FLOAT64] = 8, [ESK_KAFKA_UUID] = 16,
};

static bool refuse(struct encoder *e, const struct esk_kafka_op *op, const char *problem) {
    if (e->problem == NULL) {
        e->problem = problem;
        e->culprit = op->field;
    }
    return false;
}

static inline uint8_t *room(struct encoder *e, size_t bytes) {
    struct esk_buffer *output = e->output;
    if (__builtin_expect(output->capacity - output->size < bytes, 0))
        return esk_buffer_grow(output, bytes);
    return output->data + output->size;
}

static inline void done(struct encoder *e, const uint8_t *at) {
    e->output->size = (size_t)(at - e->output->data);
}

static inline __attribute__((always_inline)) uint8_t *
encode_fixed(unsigned kind, const void *member, uint8_t *at) {
    switch (kind) {
    case ESK_KAFKA_BOOL:
        *at = *(const bool *)member ? 1 : 0;
        return at + 1;
    case ESK_KAFKA_INT8:
        *at = *(const uint8_t *)member;
        return at + 1;
    case ESK_KAFKA_INT16:
    case ESK_KAFKA_UINT16: {
        uint16_t value;
        memcpy(&value, member, 2);
        value = __builtin_bswap16(value);
        memcpy(at, &value, 2);
        return at + 2;
    }
    case ESK_KAFKA_INT32:
    case ESK_KAFKA_UINT32: {
        uint32_t value;
        memcpy(&value, member, 4);
        value = __builtin_bswap32(value);
        memcpy(at, &value, 4);
        return at + 4;
    }
    case ESK_KAFKA_INT64:
    case ESK_KAFKA_FLOAT64: {
        uint64_t value;
        memcpy(&value, member, 8);
        value = __builtin_bswap64(value);
        memcpy(at, &value, 8);
        return at + 8;
    }
    default:
        memcpy(at, member, 16);
        return at + 16;
    }
}

/* length -1 is null. */
static inline uint8_t *write_length(unsigned kind, int32_t length, uint8_t *at) {
    switch (kind) {
    case ESK_KAFKA_STRING:
        at[0] = (uint8_t)((uint32_t)length >> 8);
        at[1] = (uint8_t)length;
        return at + 2;
    case ESK_KAFKA_COMPACT_STRING:
    case ESK_KAFKA_COMPACT_BYTES:
    case ESK_KAFKA_COMPACT_RECORDS:
    case ESK_KAFKA_COMPACT_ARRAY:
        return eski_uvarint_write(at, (uint32_t)length + 1);
    default:
        esk_store_u32(at, (uint32_t)length);
        return at + 4;
    }
}

static size_t length_bytes(unsigned kind, int32_t length) {
    switch (kind) {
    case ESK_KAFKA_STRING:
        return 2;
    case ESK_KAFKA_COMPACT_STRING:
    case ESK_KAFKA_COMPACT_BYTES:
    case ESK_KAFKA_COMPACT_RECORDS:
    case ESK_KAFKA_COMPACT_ARRAY:
        return eski_uvarint_size((uint32_t)length + 1);
    default:
        return 4;
    }
}

static void borrow(struct encoder *e, struct esk_slice bytes) {
    struct esk_kafka_piece own = {NULL, e->output->size - e->piece_start};
    struct esk_kafka_piece other = {bytes.data, bytes.size};
    esk_buffer_append(&e->pieces->pieces, &own, sizeof(own));
    esk_buffer_append(&e->pieces->pieces, &other, sizeof(other));
    e->pieces->size += own.size + other.size;
    e->piece_start = e->output->size;
}

static bool encode_slice(struct encoder *e, const struct esk_kafka_op *op, unsigned kind,
                         unsigned flags, const struct esk_slice *value) {
    uint8_t *at = room(e, FIXED_BYTES_MAX + value->size);
    if (value->data == NULL) {
        if (!(flags & ESK_KAFKA_NULLABLE))
            return refuse(e, op, "null where none is allowed");
        done(e, write_length(kind, -1, at));
        return true;
    }
    if (value->size > (kind <= ESK_KAFKA_COMPACT_STRING ? INT16_MAX : INT32_MAX - 1))
        return refuse(e, op, "longer than its length prefix can say");
    at = write_length(kind, (int32_t)value->size, at);
    if (e->pieces != NULL && kind >= ESK_KAFKA_RECORDS && value->size >= e->pieces->cut_bytes) {
        done(e, at);
        borrow(e, *value);
        return true;
    }
    memcpy(at, value->data, value->size);
    done(e, at + value->size);
    return true;
}

static bool encode_array(struct encoder *e, const struct esk_kafka_op *op,
                         const struct esk_kafka_array *array) {
    if (array->count < 0 && !(op->flags & ESK_KAFKA_NULLABLE))
        return refuse(e, op, "null where none is allowed");
    if (array->count == INT32_MAX)
        return refuse(e, op, "longer than its length prefix can say");
    done(e, write_length(op->kind, array->count < 0 ? -1 : array->count, room(e, FIXED_BYTES_MAX)));
    const uint8_t *items = array->items;
    if (op->element == ESK_KAFKA_STRUCT) {
        for (int32_t i = 0; i < array->count; i++)
            if (!encode_struct(e, op->layout, items + (size_t)i * op->layout->struct_bytes))
                return false;
    } else if (op->element >= ESK_KAFKA_STRING) {
        const struct esk_slice *slices = array->items;
        for (int32_t i = 0; i < array->count; i++)
            if (!encode_slice(e, op, op->element, 0, slices + i))
                return false;
    } else if (array->count > 0) {
        size_t stride = fixed_bytes[op->element];
        uint8_t *at = room(e, (size_t)array->count * stride);
        for (int32_t i = 0; i < array->count; i++)
            at = encode_fixed(op->element, items + (size_t)i * stride, at);
        done(e, at);
    }
    return true;
}

static bool encode_inner(struct encoder *e, const struct esk_kafka_op *op, const uint8_t *member) {
    if (!(op->flags & ESK_KAFKA_POINTER))
        return encode_struct(e, op->layout, member);
    const uint8_t *value;
    memcpy(&value, member, sizeof(value));
    if (value == NULL && !(op->flags & ESK_KAFKA_NULLABLE))
        return refuse(e, op, "null where none is allowed");
    if (op->flags & ESK_KAFKA_NULLABLE) {
        uint8_t *at = room(e, FIXED_BYTES_MAX);
        if (op->flags & ESK_KAFKA_TAGGED)
            *at++ = value != NULL ? 1 : 0;
        else
            *at++ = value != NULL ? 1 : 0xff;
        done(e, at);
    }
    return value == NULL || encode_struct(e, op->layout, value);
}

static bool encode_variable(struct encoder *e, const struct esk_kafka_op *op,
                            const uint8_t *member) {
    switch (op->kind) {
    case ESK_KAFKA_ARRAY:
    case ESK_KAFKA_COMPACT_ARRAY:
        return encode_array(e, op, (const struct esk_kafka_array *)(const void *)member);
    case ESK_KAFKA_STRUCT:
        return encode_inner(e, op, member);
    default:
        return encode_slice(e, op, op->kind, op->flags,
                            (const struct esk_slice *)(const void *)member);
    }
}

static bool encode_op(struct encoder *e, const struct esk_kafka_op *op, const uint8_t *member) {
    if (op->kind >= ESK_KAFKA_STRING)
        return encode_variable(e, op, member);
    done(e, encode_fixed(op->kind, member, room(e, FIXED_BYTES_MAX)));
    return true;
}

static const struct esk_kafka_unknown_tag *unknown_of(const struct esk_kafka_layout *layout,
                                                      const uint8_t *body) {
    const struct esk_kafka_unknown_tag *unknown;
    memcpy(&unknown, body + layout->tags_offset, sizeof(unknown));
    return unknown;
}

static void encode_unknown(struct encoder *e, const struct esk_kafka_unknown_tag *unknown) {
    uint8_t *at = room(e, FIXED_BYTES_MAX + unknown->data.size);
    at = eski_uvarint_write(at, unknown->tag);
    at = eski_uvarint_write(at, (uint32_t)unknown->data.size);
    if (unknown->data.size > 0)
        memcpy(at, unknown->data.data, unknown->data.size);
    done(e, at + unknown->data.size);
}

/* Known and unknown tags, merged in ascending order. */
static bool encode_tags(struct encoder *e, const struct esk_kafka_layout *layout,
                        const uint8_t *body, uint32_t known) {
    static const struct esk_kafka_op nothing = {.field = NULL};
    const struct esk_kafka_unknown_tag *unknown = unknown_of(layout, body);
    const struct esk_kafka_op *tagged = layout->ops + layout->plain_count;
    uint32_t count = (uint32_t)__builtin_popcount(known);
    int64_t previous = -1;
    for (const struct esk_kafka_unknown_tag *u = unknown; u != NULL; u = u->next, count++) {
        if ((int64_t)u->tag <= previous || u->data.size > INT32_MAX)
            return refuse(e, &nothing, "unknown tags are not in ascending order");
        previous = u->tag;
        if (u->tag < 32 && (layout->other_tags >> u->tag & 1))
            return refuse(e, &nothing, "an unknown tag is one of other versions");
        for (unsigned i = 0; i < layout->tagged_count; i++)
            if (tagged[i].tag == u->tag)
                return refuse(e, tagged + i, "its tag is also among the unknown ones");
    }
    done(e, eski_uvarint_write(room(e, FIXED_BYTES_MAX), count));
    for (unsigned i = 0; i < layout->tagged_count; i++) {
        if (!(known >> i & 1))
            continue;
        for (; unknown != NULL && unknown->tag < tagged[i].tag; unknown = unknown->next)
            encode_unknown(e, unknown);
        size_t size = size_op(&tagged[i], body + tagged[i].offset);
        uint8_t *at = eski_uvarint_write(room(e, FIXED_BYTES_MAX), tagged[i].tag);
        done(e, eski_uvarint_write(at, (uint32_t)size));
        if (!encode_op(e, &tagged[i], body + tagged[i].offset))
            return false;
    }
    for (; unknown != NULL; unknown = unknown->next)
        encode_unknown(e, unknown);
    return true;
}

/* A bit for each tagged member that is not at its default. */
static inline uint32_t known_tags(const struct esk_kafka_layout *layout, const uint8_t *body) {
    uint32_t known = 0;
    if (memcmp(body + layout->tagged_begin,
               (const uint8_t *)layout->defaults + layout->tagged_begin,
               layout->tagged_end - layout->tagged_begin) == 0)
        return 0; /* the usual case */
    const struct esk_kafka_op *tagged = layout->ops + layout->plain_count;
    for (unsigned i = 0; i < layout->tagged_count; i++)
        if (memcmp(body + tagged[i].offset, (const uint8_t *)layout->defaults + tagged[i].offset,
                   tagged[i].size) != 0 &&
            !esk_kafka_is_default(&tagged[i], layout, body))
            known |= 1U << i;
    return known;
}

/* Runs of fixed-size members are written with one look at the room that is left. */
static bool encode_plain(struct encoder *e, const struct esk_kafka_layout *layout,
                         const uint8_t *body) {
    const struct esk_kafka_op *op = layout->ops;
    const struct esk_kafka_op *end = op + layout->plain_count;
    while (op < end) {
        if (op->kind >= ESK_KAFKA_STRING) {
            if (!encode_variable(e, op, body + op->offset))
                return false;
            op++;
            continue;
        }
        uint8_t *at = room(e, (size_t)(end - op) * FIXED_BYTES_MAX);
        for (; op < end && op->kind < ESK_KAFKA_STRING; op++)
            at = encode_fixed(op->kind, body + op->offset, at);
        done(e, at);
    }
    return true;
}

static bool encode_struct(struct encoder *e, const struct esk_kafka_layout *layout,
                          const uint8_t *body) {
    if (!encode_plain(e, layout, body))
        return false;
    if (!layout->flexible)
        return true;
    uint32_t known = layout->tagged_count ? known_tags(layout, body) : 0;
    if (known == 0 && unknown_of(layout, body) == NULL) {
        uint8_t *at = room(e, 1);
        *at = 0;
        done(e, at + 1);
        return true;
    }
    return encode_tags(e, layout, body, known);
}

static size_t size_array(const struct esk_kafka_op *op, const struct esk_kafka_array *array) {
    size_t size = length_bytes(op->kind, array->count < 0 ? -1 : array->count);
    if (array->count <= 0)
        return size;
    if (op->element < ESK_KAFKA_STRING)
        return size + (size_t)array->count * fixed_bytes[op->element];
    const uint8_t *items = array->items;
    for (int32_t i = 0; i < array->count; i++) {
        if (op->element == ESK_KAFKA_STRUCT) {
            size += size_struct(op->layout, items + (size_t)i * op->layout->struct_bytes);
        } else {
            const struct esk_slice *slice = (const struct esk_slice *)array->items + i;
            size += length_bytes(op->element, (int32_t)slice->size) + slice->size;
        }
    }
    return size;
}

static size_t size_op(const struct esk_kafka_op *op, const uint8_t *member) {
    if (op->kind < ESK_KAFKA_STRING)
        return fixed_bytes[op->kind];
    if (op->kind == ESK_KAFKA_STRUCT) {
        if (!(op->flags & ESK_KAFKA_POINTER))
            return size_struct(op->layout, member);
        const uint8_t *value;
        memcpy(&value, member, sizeof(value));
        return (op->flags & ESK_KAFKA_NULLABLE ? 1 : 0) +
               (value != NULL ? size_struct(op->layout, value) : 0);
    }
    if (op->kind == ESK_KAFKA_ARRAY || op->kind == ESK_KAFKA_COMPACT_ARRAY)
        return size_array(op, (const struct esk_kafka_array *)(const void *)member);
    struct esk_slice slice;
    memcpy(&slice, member, sizeof(slice));
    return length_bytes(op->kind, slice.data == NULL ? -1 : (int32_t)slice.size) + slice.size;
}

static size_t size_struct(const struct esk_kafka_layout *layout, const uint8_t *body) {
    size_t size = 0;
    for (unsigned i = 0; i < layout->plain_count; i++)
        size += size_op(&layout->ops[i], body + layout->ops[i].offset);
    if (!layout->flexible)
        return size;
    uint32_t known = known_tags(layout, body);
    uint32_t count = (uint32_t)__builtin_popcount(known);
    const struct esk_kafka_op *tagged = layout->ops + layout->plain_count;
    for (unsigned i = 0; i < layout->tagged_count; i++) {
        if (known >> i & 1) {
            size_t value = size_op(&tagged[i], body + tagged[i].offset);
            size += eski_uvarint_size(tagged[i].tag) + eski_uvarint_size((uint32_t)value) + value;
        }
    }
    const struct esk_kafka_unknown_tag *unknown = unknown_of(layout, body);
    for (; unknown != NULL; unknown = unknown->next, count++)
        size += eski_uvarint_size(unknown->tag) + eski_uvarint_size((uint32_t)unknown->data.size) +
                unknown->data.size;
    return size + eski_uvarint_size(count);
}

size_t esk_kafka_size(const struct esk_kafka_layout *layout, const void *body) {
    return size_struct(layout, body);
}

static enum esk_err encode(struct encoder *e, const struct esk_kafka_layout *layout,
                           const void *body, struct esk_error *error) {
    size_t before = e->output->size;
    if (encode_struct(e, layout, body))
        return ESK_OK;
    e->output->size = before;
    return esk_fail(error, ESK_ERR_INVALID, "%s.%s: %s", layout->name,
                    e->culprit != NULL ? e->culprit->name : "tagged_fields", e->problem);
}

enum esk_err esk_kafka_encode(const struct esk_kafka_layout *layout, const void *body,
                              struct esk_buffer *output, struct esk_error *error) {
    struct encoder encoder = {output, NULL, 0, NULL, NULL};
    return encode(&encoder, layout, body, error);
}

void esk_kafka_encode_default(const struct esk_kafka_op *op, const struct esk_kafka_layout *owner,
                              struct esk_buffer *output) {
    struct encoder encoder = {output, NULL, 0, NULL, NULL};
    encode_op(&encoder, op, (const uint8_t *)owner->defaults + op->offset);
}

void esk_kafka_pieces_init(struct esk_kafka_pieces *pieces, size_t cut_bytes) {
    esk_buffer_init(&pieces->bytes);
    esk_buffer_init(&pieces->pieces);
    pieces->cut_bytes = cut_bytes;
    pieces->size = 0;
}

void esk_kafka_pieces_fini(struct esk_kafka_pieces *pieces) {
    esk_buffer_fini(&pieces->bytes);
    esk_buffer_fini(&pieces->pieces);
}

void esk_kafka_pieces_reset(struct esk_kafka_pieces *pieces) {
    pieces->bytes.size = pieces->pieces.size = pieces->size = 0;
}

enum esk_err esk_kafka_encode_pieces(const struct esk_kafka_layout *layout, const void *body,
                                     struct esk_kafka_pieces *pieces, struct esk_error *error) {
    struct encoder encoder = {&pieces->bytes, pieces, pieces->bytes.size, NULL, NULL};
    struct esk_kafka_pieces before = *pieces;
    enum esk_err err = encode(&encoder, layout, body, error);
    if (err != ESK_OK) {
        pieces->pieces.size = before.pieces.size;
        pieces->size = before.size;
        return err;
    }
    struct esk_kafka_piece own = {NULL, pieces->bytes.size - encoder.piece_start};
    if (own.size > 0)
        esk_buffer_append(&pieces->pieces, &own, sizeof(own));
    pieces->size += own.size;
    return ESK_OK;
}
