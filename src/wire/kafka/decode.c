/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding into C structs: walks a layout once, checks only what it must, and leaves the wording of
 * a failure to the scanner, which walks the same bytes again to the same place. */
#include "wire/kafka/codec.h"
#include "wire/kafka/scan.h"
#include "wire/kafka/varint_private.h"

#include <string.h>

struct decoder {
    const uint8_t *end;
    struct esk_arena *arena;
    bool out_of_memory; /* the arena's limit, not the bytes, stopped it */
};

static const uint8_t *decode_struct(struct decoder *d, const struct esk_kafka_layout *layout,
                                    uint8_t *out, const uint8_t *at);

typedef const uint8_t *step(struct decoder *d, const struct esk_kafka_op *op,
                            const struct esk_kafka_op *ops_end, uint8_t *out, const uint8_t *at,
                            const uint8_t *end);
static step *const steps[];

/* esk_arena_alloc, with its usual case here. */
static inline void *take(struct decoder *d, size_t size) {
    size_t rounded = (size + 15) & ~(size_t)15;
    struct esk_arena *arena = d->arena;
    if (rounded > 0 && (size_t)(arena->end - arena->at) >= rounded) {
        void *memory = arena->at;
        arena->at += rounded;
        return memory;
    }
    void *memory = esk_arena_alloc(arena, size);
    d->out_of_memory |= memory == NULL;
    return memory;
}

/* One fixed-size value whose bytes are known to be there. */
static inline __attribute__((always_inline)) void decode_fixed(unsigned kind, void *out,
                                                               const uint8_t *at) {
    switch (kind) {
    case ESK_KAFKA_BOOL:
        *(bool *)out = *at != 0;
        break;
    case ESK_KAFKA_INT8:
        *(uint8_t *)out = *at;
        break;
    case ESK_KAFKA_INT16:
    case ESK_KAFKA_UINT16: {
        uint16_t value;
        memcpy(&value, at, 2);
        value = __builtin_bswap16(value);
        memcpy(out, &value, 2);
        break;
    }
    case ESK_KAFKA_INT32:
    case ESK_KAFKA_UINT32: {
        uint32_t value;
        memcpy(&value, at, 4);
        value = __builtin_bswap32(value);
        memcpy(out, &value, 4);
        break;
    }
    case ESK_KAFKA_INT64:
    case ESK_KAFKA_FLOAT64: {
        uint64_t value;
        memcpy(&value, at, 8);
        value = __builtin_bswap64(value);
        memcpy(out, &value, 8);
        break;
    }
    default:
        memcpy(out, at, 16);
        break;
    }
}

/* The length before a string, bytes, records or an array; negative is null. */
static inline __attribute__((always_inline)) const uint8_t *
read_length(const struct decoder *d, unsigned kind, const uint8_t *at, int32_t *length) {
    switch (kind) {
    case ESK_KAFKA_STRING:
        if (d->end - at < 2)
            return NULL;
        *length = (int16_t)(at[0] << 8 | at[1]);
        return at + 2;
    case ESK_KAFKA_COMPACT_STRING:
    case ESK_KAFKA_COMPACT_BYTES:
    case ESK_KAFKA_COMPACT_RECORDS:
    case ESK_KAFKA_COMPACT_ARRAY: {
        uint32_t value;
        at = eski_uvarint_read(at, d->end, &value);
        *length = (int32_t)(value - 1);
        return at;
    }
    default: {
        if (d->end - at < 4)
            return NULL;
        uint32_t value;
        memcpy(&value, at, 4);
        *length = (int32_t)__builtin_bswap32(value);
        return at + 4;
    }
    }
}

static inline __attribute__((always_inline)) const uint8_t *
decode_slice(const struct decoder *d, unsigned kind, unsigned flags, struct esk_slice *out,
             const uint8_t *at) {
    int32_t length;
    at = read_length(d, kind, at, &length);
    if (at == NULL)
        return NULL;
    if (length < 0) {
        *out = (struct esk_slice){NULL, 0};
        return flags & ESK_KAFKA_NULLABLE ? at : NULL;
    }
    if (length > d->end - at)
        return NULL;
    *out = (struct esk_slice){at, (size_t)length};
    return at + length;
}

static const uint8_t *decode_any_slice(const struct decoder *d, unsigned kind, unsigned flags,
                                       struct esk_slice *out, const uint8_t *at) {
    switch (kind) {
    case ESK_KAFKA_STRING:
        return decode_slice(d, ESK_KAFKA_STRING, flags, out, at);
    case ESK_KAFKA_BYTES:
    case ESK_KAFKA_RECORDS:
        return decode_slice(d, ESK_KAFKA_BYTES, flags, out, at);
    default:
        return decode_slice(d, ESK_KAFKA_COMPACT_STRING, flags, out, at);
    }
}

static const uint8_t *decode_elements(struct decoder *d, const struct esk_kafka_op *op,
                                      uint8_t *items, size_t stride, int32_t count,
                                      const uint8_t *at) {
    if (op->element == ESK_KAFKA_STRUCT) {
        for (int32_t i = 0; i < count && at != NULL; i++)
            at = decode_struct(d, op->layout, items + (size_t)i * stride, at);
        return at;
    }
    if (op->element >= ESK_KAFKA_STRING) {
        for (int32_t i = 0; i < count && at != NULL; i++)
            at = decode_any_slice(d, op->element, 0, (struct esk_slice *)(void *)items + i, at);
        return at;
    }
    if ((uint64_t)count * stride > (uint64_t)(d->end - at))
        return NULL;
    for (int32_t i = 0; i < count; i++, at += stride)
        decode_fixed(op->element, items + (size_t)i * stride, at);
    return at;
}

static inline __attribute__((always_inline)) const uint8_t *
decode_array_of(struct decoder *d, const struct esk_kafka_op *op, unsigned kind,
                struct esk_kafka_array *out, const uint8_t *at) {
    int32_t count;
    at = read_length(d, kind, at, &count);
    if (at == NULL)
        return NULL;
    *out = (struct esk_kafka_array){NULL, count < 0 ? -1 : count};
    if (count < 0)
        return op->flags & ESK_KAFKA_NULLABLE ? at : NULL;
    /* As Kafka: no array has more elements than bytes are left, so memory follows the input. */
    if (count > d->end - at)
        return NULL;
    if (count == 0)
        return at;
    size_t stride = op->stride;
    uint8_t *items = take(d, (size_t)count * stride); /* at most 2^31 times a struct's size */
    if (items == NULL)
        return NULL;
    out->items = items;
    if (op->element == ESK_KAFKA_INT32 && (uint64_t)count * 4 <= (uint64_t)(d->end - at)) {
        for (int32_t i = 0; i < count; i++, at += 4, items += 4)
            decode_fixed(ESK_KAFKA_INT32, items, at);
        return at;
    }
    return decode_elements(d, op, items, stride, count, at);
}

/* One for each kind, so that the kind is a constant in it. */
static const uint8_t *decode_array(struct decoder *d, const struct esk_kafka_op *op,
                                   struct esk_kafka_array *out, const uint8_t *at) {
    return decode_array_of(d, op, ESK_KAFKA_ARRAY, out, at);
}

static const uint8_t *decode_compact_array(struct decoder *d, const struct esk_kafka_op *op,
                                           struct esk_kafka_array *out, const uint8_t *at) {
    return decode_array_of(d, op, ESK_KAFKA_COMPACT_ARRAY, out, at);
}

static const uint8_t *decode_inner(struct decoder *d, const struct esk_kafka_op *op, uint8_t *out,
                                   const uint8_t *at) {
    if (!(op->flags & ESK_KAFKA_POINTER))
        return decode_struct(d, op->layout, out, at);
    bool present = true;
    if (op->flags & ESK_KAFKA_NULLABLE) {
        if (op->flags & ESK_KAFKA_TAGGED) {
            uint32_t marker;
            at = eski_uvarint_read(at, d->end, &marker);
            present = at != NULL && (int32_t)marker > 0;
        } else if (at == d->end) {
            return NULL;
        } else {
            present = (int8_t)*at++ >= 0;
        }
    }
    const void *value = NULL;
    if (at != NULL && present) {
        uint8_t *memory = take(d, op->layout->struct_bytes);
        if (memory == NULL)
            return NULL;
        value = memory;
        at = decode_struct(d, op->layout, memory, at);
    }
    memcpy(out, &value, sizeof(value));
    return at;
}

static const uint8_t *keep_unknown(struct decoder *d, struct esk_kafka_unknown_tag **last,
                                   const struct esk_kafka_layout *layout, uint8_t *out,
                                   uint32_t tag, uint32_t size, const uint8_t *at) {
    if ((int32_t)size < 0 || (int32_t)size > d->end - at)
        return NULL;
    if (tag < 32 && (layout->other_tags >> tag & 1))
        return NULL;
    struct esk_kafka_unknown_tag *unknown = take(d, sizeof(*unknown));
    if (unknown == NULL)
        return NULL;
    *unknown = (struct esk_kafka_unknown_tag){NULL, tag, {at, size}};
    if (*last != NULL)
        (*last)->next = unknown;
    else
        memcpy(out + layout->tags_offset, &unknown, sizeof(unknown));
    *last = unknown;
    return at + size;
}

static const uint8_t *decode_tags(struct decoder *d, const struct esk_kafka_layout *layout,
                                  uint8_t *out, const uint8_t *at) {
    uint32_t count;
    at = eski_uvarint_read(at, d->end, &count);
    struct esk_kafka_unknown_tag *last = NULL;
    for (int32_t i = 0; at != NULL && i < (int32_t)count; i++) {
        uint32_t tag;
        uint32_t size;
        at = eski_uvarint_read(at, d->end, &tag);
        if (at != NULL)
            at = eski_uvarint_read(at, d->end, &size);
        if (at == NULL)
            return NULL;
        const struct esk_kafka_op *op = layout->ops + layout->plain_count;
        const struct esk_kafka_op *end = op + layout->tagged_count;
        while (op < end && op->tag != tag)
            op++;
        at = op < end ? steps[op->kind](d, op, op + 1, out, at, d->end)
                      : keep_unknown(d, &last, layout, out, tag, size, at);
    }
    return at;
}

/* --- plain fields -------------------------------------------------------------------------------
 * A step per kind; each ends in the call of the next field's step, which the compiler makes a jump.
 * So every kind has a jump of its own, which is predicted far better than that of one switch, and
 * this is where the time of a decode goes. */

static inline __attribute__((always_inline)) const uint8_t *
next(struct decoder *d, const struct esk_kafka_op *op, const struct esk_kafka_op *ops_end,
     uint8_t *out, const uint8_t *at, const uint8_t *end) {
    if (at == NULL || ++op == ops_end)
        return at;
    return steps[op->kind](d, op, ops_end, out, at, end);
}

static inline __attribute__((always_inline)) const uint8_t *
fixed(unsigned kind, ptrdiff_t size, struct decoder *d, const struct esk_kafka_op *op,
      const struct esk_kafka_op *ops_end, uint8_t *out, const uint8_t *at, const uint8_t *end) {
    if (end - at < size)
        return NULL;
    decode_fixed(kind, out + op->offset, at);
    return next(d, op, ops_end, out, at + size, end);
}

static const uint8_t *step_int8(struct decoder *d, const struct esk_kafka_op *op,
                                const struct esk_kafka_op *ops_end, uint8_t *out, const uint8_t *at,
                                const uint8_t *end) {
    return fixed(ESK_KAFKA_INT8, 1, d, op, ops_end, out, at, end);
}

static const uint8_t *step_bool(struct decoder *d, const struct esk_kafka_op *op,
                                const struct esk_kafka_op *ops_end, uint8_t *out, const uint8_t *at,
                                const uint8_t *end) {
    return fixed(ESK_KAFKA_BOOL, 1, d, op, ops_end, out, at, end);
}

static const uint8_t *step_int16(struct decoder *d, const struct esk_kafka_op *op,
                                 const struct esk_kafka_op *ops_end, uint8_t *out,
                                 const uint8_t *at, const uint8_t *end) {
    return fixed(ESK_KAFKA_INT16, 2, d, op, ops_end, out, at, end);
}

static const uint8_t *step_int32(struct decoder *d, const struct esk_kafka_op *op,
                                 const struct esk_kafka_op *ops_end, uint8_t *out,
                                 const uint8_t *at, const uint8_t *end) {
    return fixed(ESK_KAFKA_INT32, 4, d, op, ops_end, out, at, end);
}

static const uint8_t *step_int64(struct decoder *d, const struct esk_kafka_op *op,
                                 const struct esk_kafka_op *ops_end, uint8_t *out,
                                 const uint8_t *at, const uint8_t *end) {
    return fixed(ESK_KAFKA_INT64, 8, d, op, ops_end, out, at, end);
}

static const uint8_t *step_uuid(struct decoder *d, const struct esk_kafka_op *op,
                                const struct esk_kafka_op *ops_end, uint8_t *out, const uint8_t *at,
                                const uint8_t *end) {
    return fixed(ESK_KAFKA_UUID, 16, d, op, ops_end, out, at, end);
}

static const uint8_t *step_string(struct decoder *d, const struct esk_kafka_op *op,
                                  const struct esk_kafka_op *ops_end, uint8_t *out,
                                  const uint8_t *at, const uint8_t *end) {
    void *member = out + op->offset;
    at = decode_slice(d, ESK_KAFKA_STRING, op->flags, member, at);
    return next(d, op, ops_end, out, at, end);
}

static const uint8_t *step_bytes(struct decoder *d, const struct esk_kafka_op *op,
                                 const struct esk_kafka_op *ops_end, uint8_t *out,
                                 const uint8_t *at, const uint8_t *end) {
    void *member = out + op->offset;
    at = decode_slice(d, ESK_KAFKA_BYTES, op->flags, member, at);
    return next(d, op, ops_end, out, at, end);
}

static const uint8_t *step_compact_bytes(struct decoder *d, const struct esk_kafka_op *op,
                                         const struct esk_kafka_op *ops_end, uint8_t *out,
                                         const uint8_t *at, const uint8_t *end) {
    void *member = out + op->offset;
    at = decode_slice(d, ESK_KAFKA_COMPACT_BYTES, op->flags, member, at);
    return next(d, op, ops_end, out, at, end);
}

static const uint8_t *step_array(struct decoder *d, const struct esk_kafka_op *op,
                                 const struct esk_kafka_op *ops_end, uint8_t *out,
                                 const uint8_t *at, const uint8_t *end) {
    void *member = out + op->offset;
    at = decode_array(d, op, member, at);
    return next(d, op, ops_end, out, at, end);
}

static const uint8_t *step_compact_array(struct decoder *d, const struct esk_kafka_op *op,
                                         const struct esk_kafka_op *ops_end, uint8_t *out,
                                         const uint8_t *at, const uint8_t *end) {
    void *member = out + op->offset;
    at = decode_compact_array(d, op, member, at);
    return next(d, op, ops_end, out, at, end);
}

static const uint8_t *step_struct(struct decoder *d, const struct esk_kafka_op *op,
                                  const struct esk_kafka_op *ops_end, uint8_t *out,
                                  const uint8_t *at, const uint8_t *end) {
    void *member = out + op->offset;
    at = decode_inner(d, op, member, at);
    return next(d, op, ops_end, out, at, end);
}

static step *const steps[] = {
    [ESK_KAFKA_BOOL] = step_bool,
    [ESK_KAFKA_INT8] = step_int8,
    [ESK_KAFKA_INT16] = step_int16,
    [ESK_KAFKA_UINT16] = step_int16,
    [ESK_KAFKA_INT32] = step_int32,
    [ESK_KAFKA_UINT32] = step_int32,
    [ESK_KAFKA_INT64] = step_int64,
    [ESK_KAFKA_FLOAT64] = step_int64,
    [ESK_KAFKA_UUID] = step_uuid,
    [ESK_KAFKA_STRING] = step_string,
    [ESK_KAFKA_COMPACT_STRING] = step_compact_bytes,
    [ESK_KAFKA_BYTES] = step_bytes,
    [ESK_KAFKA_COMPACT_BYTES] = step_compact_bytes,
    [ESK_KAFKA_RECORDS] = step_bytes,
    [ESK_KAFKA_COMPACT_RECORDS] = step_compact_bytes,
    [ESK_KAFKA_ARRAY] = step_array,
    [ESK_KAFKA_COMPACT_ARRAY] = step_compact_array,
    [ESK_KAFKA_STRUCT] = step_struct,
};

static const uint8_t *decode_struct(struct decoder *d, const struct esk_kafka_layout *layout,
                                    uint8_t *out, const uint8_t *at) {
    const struct esk_kafka_op *op = layout->ops;
    const struct esk_kafka_op *ops_end = op + layout->plain_count;
    if (layout->partial)
        memcpy(out, layout->defaults, layout->struct_bytes);
    if (op < ops_end) {
        at = steps[op->kind](d, op, ops_end, out, at, d->end);
        if (at == NULL)
            return NULL;
    }
    if (!layout->flexible)
        return at;
    memset(out + layout->tags_offset, 0, sizeof(void *));
    if (at < d->end && *at == 0)
        return at + 1;
    return decode_tags(d, layout, out, at);
}

enum esk_err esk_kafka_decode(const struct esk_kafka_layout *layout, struct esk_slice bytes,
                              struct esk_arena *arena, const void **body, size_t *used,
                              struct esk_error *error) {
    static const uint8_t nothing = 0;
    if (bytes.data == NULL)
        bytes = esk_slice(&nothing, 0);
    struct decoder decoder = {bytes.data + bytes.size, arena, false};
    uint8_t *out = esk_arena_alloc(arena, layout->struct_bytes);
    if (out == NULL)
        return esk_fail(error, ESK_ERR_TOO_LARGE, "the message needs more memory than allowed");
    const uint8_t *at = decode_struct(&decoder, layout, out, bytes.data);
    if (decoder.out_of_memory)
        return esk_fail(error, ESK_ERR_TOO_LARGE, "the message needs more memory than allowed");
    if (at == NULL)
        return eski_scan_explain(layout, bytes, error);
    *body = out;
    *used = (size_t)(at - bytes.data);
    return ESK_OK;
}

enum esk_err esk_kafka_decode_message(const struct esk_kafka_message *message, int16_t version,
                                      struct esk_slice bytes, struct esk_arena *arena,
                                      const void **body, size_t *used, struct esk_error *error) {
    enum esk_err err =
        esk_kafka_decode(esk_kafka_layout_of(message, version), bytes, arena, body, used, error);
    if (err != ESK_OK && error != NULL)
        esk_wrap(error, "%s v%d", message->name, version);
    return err;
}
