/* SPDX-License-Identifier: Apache-2.0 */
/* Inflating, each codec with its bound: output never passes the limit, and a size that the input
 * claims is compared with the limit before anything is allocated for it. */
#include "model/codec.h"

#include "base/assert.h"

#include <lz4frame.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define XERIAL_MAGIC "\x82SNAPPY\0" /* snappy-java's stream header, then two int32 versions */
#define XERIAL_MAGIC_BYTES 8
#define XERIAL_HEADER_BYTES 16
#define STEP_BYTES_MIN 4096 /* of a growing output */

static enum esk_err too_large(size_t limit_bytes, struct esk_error *error) {
    return esk_fail(error, ESK_ERR_TOO_LARGE, "records inflate to more than %zu bytes",
                    limit_bytes);
}

static enum esk_err damaged(enum esk_codec codec, const char *reason, struct esk_error *error) {
    return esk_fail(error, ESK_ERR_CORRUPT, "%s data: %s", esk_codec_name(codec), reason);
}

/* More room at the end of an output of which `made` bytes count against the limit: as much again as
 * was made, so that a small input never holds much more than it gave. One byte over the limit is
 * offered to tell "exactly the limit" from "more". */
static size_t offer_room(struct esk_buffer *output, size_t made, size_t input_size,
                         size_t limit_bytes) {
    size_t room = made > input_size ? made : input_size;
    room = room < STEP_BYTES_MIN ? STEP_BYTES_MIN : room;
    size_t left = limit_bytes - made;
    room = room > left ? left + 1 : room;
    esk_buffer_grow(output, room);
    return room;
}

static enum esk_err inflate_gzip(struct esk_slice input, size_t limit_bytes,
                                 struct esk_buffer *output, struct esk_error *error) {
    z_stream stream = {0};
    int result = inflateInit2(&stream, MAX_WBITS + 16); /* +16: a gzip header, nothing else */
    if (result != Z_OK) {
        return esk_fail(error, ESK_ERR_INTERNAL, "cannot start zlib (%d)", result);
    }
    const size_t start = output->size;
    const uint8_t *at = input.data;
    size_t left = input.size;
    enum esk_err err = ESK_OK;
    for (;;) {
        size_t made = output->size - start;
        size_t room = offer_room(output, made, input.size, limit_bytes);
        stream.next_in = (Bytef *)(uintptr_t)at;
        stream.avail_in = left > UINT32_MAX ? UINT32_MAX : (uInt)left;
        stream.next_out = output->data + output->size;
        stream.avail_out = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
        uInt offered_in = stream.avail_in;
        uInt offered_out = stream.avail_out;
        result = inflate(&stream, Z_NO_FLUSH);
        at += offered_in - stream.avail_in;
        left -= offered_in - stream.avail_in;
        output->size += offered_out - stream.avail_out;
        if (output->size - start > limit_bytes) {
            err = too_large(limit_bytes, error);
            break;
        }
        if (result == Z_STREAM_END) {
            if (left == 0) {
                break;
            }
            result = inflateReset(&stream); /* the next member */
        }
        if (result != Z_OK) {
            err = damaged(ESK_CODEC_GZIP, result == Z_BUF_ERROR ? "cut short" : "damaged", error);
            break;
        }
    }
    inflateEnd(&stream);
    return err;
}

/* One snappy block behind what is there; `made` bytes count against the limit already. */
static enum esk_err inflate_snappy_block(struct esk_slice block, size_t made, size_t limit_bytes,
                                         struct esk_buffer *output, struct esk_error *error) {
    size_t size;
    if (snappy_uncompressed_length((const char *)block.data, block.size, &size) != SNAPPY_OK) {
        return damaged(ESK_CODEC_SNAPPY, "no length", error);
    }
    if (size > limit_bytes - made) {
        return too_large(limit_bytes, error);
    }
    /* A block can't expand beyond this: a copy of at most 64 bytes takes at least 2. */
    if (size / 64 > block.size) {
        return damaged(ESK_CODEC_SNAPPY, "claims more than it can hold", error);
    }
    char *room = (char *)esk_buffer_grow(output, size);
    if (snappy_uncompress((const char *)block.data, block.size, room, &size) != SNAPPY_OK) {
        return damaged(ESK_CODEC_SNAPPY, "damaged", error);
    }
    output->size += size;
    return ESK_OK;
}

static enum esk_err inflate_snappy(struct esk_slice input, size_t limit_bytes,
                                   struct esk_buffer *output, struct esk_error *error) {
    if (input.size < XERIAL_HEADER_BYTES ||
        memcmp(input.data, XERIAL_MAGIC, XERIAL_MAGIC_BYTES) != 0) {
        return inflate_snappy_block(input, 0, limit_bytes, output, error);
    }
    const size_t start = output->size;
    struct esk_reader reader = esk_reader(input);
    esk_read_bytes(&reader, XERIAL_HEADER_BYTES);
    while (esk_reader_left(&reader) > 0) {
        struct esk_slice block = esk_read_bytes(&reader, esk_read_u32(&reader));
        if (reader.failed) {
            return damaged(ESK_CODEC_SNAPPY, "cut short", error);
        }
        enum esk_err err =
            inflate_snappy_block(block, output->size - start, limit_bytes, output, error);
        if (err) {
            return err;
        }
    }
    return ESK_OK;
}

static enum esk_err inflate_lz4(struct esk_slice input, size_t limit_bytes,
                                struct esk_buffer *output, struct esk_error *error) {
    LZ4F_dctx *context;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) {
        return esk_fail(error, ESK_ERR_INTERNAL, "cannot start lz4");
    }
    const size_t start = output->size;
    const uint8_t *at = input.data;
    size_t left = input.size;
    size_t hint = 1; /* 0: between frames */
    enum esk_err err = ESK_OK;
    while (left > 0 || hint != 0) {
        size_t room = offer_room(output, output->size - start, input.size, limit_bytes);
        size_t consumed = left;
        size_t produced = room;
        hint =
            LZ4F_decompress(context, output->data + output->size, &produced, at, &consumed, NULL);
        if (LZ4F_isError(hint)) {
            err = damaged(ESK_CODEC_LZ4, LZ4F_getErrorName(hint), error);
            break;
        }
        at += consumed;
        left -= consumed;
        output->size += produced;
        if (output->size - start > limit_bytes) {
            err = too_large(limit_bytes, error);
            break;
        }
        if (consumed == 0 && produced == 0 && hint != 0) {
            err = damaged(ESK_CODEC_LZ4, "cut short", error);
            break;
        }
    }
    LZ4F_freeDecompressionContext(context);
    return err;
}

/* In one go into memory of the size that the frames claim, or of the limit where one claims nothing
 * (pages that stay untouched cost nothing): no window is held beside the output, whatever a frame
 * asks for. */
static enum esk_err inflate_zstd(struct esk_slice input, size_t limit_bytes,
                                 struct esk_buffer *output, struct esk_error *error) {
    unsigned long long bound = 0;
    for (struct esk_slice rest = input; rest.size > 0;) {
        size_t frame = ZSTD_findFrameCompressedSize(rest.data, rest.size);
        if (ZSTD_isError(frame)) {
            return damaged(ESK_CODEC_ZSTD, ZSTD_getErrorName(frame), error);
        }
        unsigned long long size = ZSTD_getFrameContentSize(rest.data, frame);
        if (size == ZSTD_CONTENTSIZE_ERROR) {
            return damaged(ESK_CODEC_ZSTD, "no frame", error);
        }
        if (size == ZSTD_CONTENTSIZE_UNKNOWN) {
            size = limit_bytes;
        } else if (size > limit_bytes - bound) {
            return too_large(limit_bytes, error);
        }
        bound = size > limit_bytes - bound ? limit_bytes : bound + size;
        rest = esk_slice(rest.data + frame, rest.size - frame);
    }
    uint8_t *room = esk_buffer_grow(output, (size_t)bound);
    size_t made = ZSTD_decompress(room, (size_t)bound, input.data, input.size);
    if (ZSTD_isError(made)) {
        if (ZSTD_getErrorCode(made) == ZSTD_error_dstSize_tooSmall && bound == limit_bytes) {
            return too_large(limit_bytes, error);
        }
        return damaged(ESK_CODEC_ZSTD, ZSTD_getErrorName(made), error);
    }
    output->size += made;
    return ESK_OK;
}

enum esk_err esk_inflate(enum esk_codec codec, struct esk_slice input, size_t limit_bytes,
                         struct esk_buffer *output, struct esk_error *error) {
    ESK_ASSERT(limit_bytes < SIZE_MAX / 4);
    if (input.size == 0 && codec != ESK_CODEC_NONE) {
        return damaged(codec, "empty", error);
    }
    const size_t start = output->size;
    enum esk_err err;
    switch (codec) {
    case ESK_CODEC_NONE:
        if (input.size > limit_bytes) {
            return too_large(limit_bytes, error);
        }
        esk_buffer_append(output, input.data, input.size);
        return ESK_OK;
    case ESK_CODEC_GZIP:
        err = inflate_gzip(input, limit_bytes, output, error);
        break;
    case ESK_CODEC_SNAPPY:
        err = inflate_snappy(input, limit_bytes, output, error);
        break;
    case ESK_CODEC_LZ4:
        err = inflate_lz4(input, limit_bytes, output, error);
        break;
    case ESK_CODEC_ZSTD:
        err = inflate_zstd(input, limit_bytes, output, error);
        break;
    default:
        return esk_fail(error, ESK_ERR_UNSUPPORTED, "unknown compression codec %d", (int)codec);
    }
    if (err) {
        output->size = start;
    }
    return err;
}

const char *esk_codec_name(enum esk_codec codec) {
    static const char *const names[] = {"none", "gzip", "snappy", "lz4", "zstd"};
    return (size_t)codec < sizeof(names) / sizeof(names[0]) ? names[codec] : "unknown";
}
