/* SPDX-License-Identifier: Apache-2.0 */
/* The compressing half of each codec as clients of all kinds do it, for tests only: compaction, the
 * one place that compresses, uses esk_compress. */
#ifndef ESK_MODEL_CODEC_TESTING_H
#define ESK_MODEL_CODEC_TESTING_H

#include "base/assert.h"
#include "model/codec.h"

#include <lz4frame.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

static inline void deflate_gzip(struct esk_slice input, struct esk_buffer *output) {
    z_stream stream = {0};
    ESK_ASSERT(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    size_t bound = deflateBound(&stream, input.size);
    stream.next_in = (Bytef *)(uintptr_t)input.data;
    stream.avail_in = (uInt)input.size;
    stream.next_out = esk_buffer_grow(output, bound);
    stream.avail_out = (uInt)bound;
    ESK_ASSERT(deflate(&stream, Z_FINISH) == Z_STREAM_END);
    output->size += stream.total_out;
    deflateEnd(&stream);
}

static inline void deflate_snappy(struct esk_slice input, struct esk_buffer *output) {
    size_t size = snappy_max_compressed_length(input.size);
    char *room = (char *)esk_buffer_grow(output, size);
    ESK_ASSERT(snappy_compress((const char *)input.data, input.size, room, &size) == SNAPPY_OK);
    output->size += size;
}

/* As snappy-java: a header of 16 bytes, then blocks of at most block_bytes. */
static inline void deflate_xerial(struct esk_slice input, size_t block_bytes,
                                  struct esk_buffer *output) {
    esk_buffer_append(output, "\x82SNAPPY\0\0\0\0\1\0\0\0\1", 16);
    while (input.size > 0) {
        size_t size = input.size < block_bytes ? input.size : block_bytes;
        size_t at = output->size;
        esk_buffer_u32(output, 0);
        deflate_snappy(esk_slice(input.data, size), output);
        esk_store_u32(output->data + at, (uint32_t)(output->size - at - 4));
        input = esk_slice(input.data + size, input.size - size);
    }
}

static inline void deflate_lz4(struct esk_slice input, struct esk_buffer *output) {
    LZ4F_preferences_t preferences = {.frameInfo = {.blockSizeID = LZ4F_max64KB}};
    size_t bound = LZ4F_compressFrameBound(input.size, &preferences);
    uint8_t *room = esk_buffer_grow(output, bound);
    size_t size = LZ4F_compressFrame(room, bound, input.data, input.size, &preferences);
    ESK_ASSERT(!LZ4F_isError(size));
    output->size += size;
}

/* With known_size false as the Java client streams it: the frame does not say its content's size.
 */
static inline void deflate_zstd(struct esk_slice input, bool known_size,
                                struct esk_buffer *output) {
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, known_size);
    size_t bound = ZSTD_compressBound(input.size);
    uint8_t *room = esk_buffer_grow(output, bound);
    size_t size = ZSTD_compress2(context, room, bound, input.data, input.size);
    ESK_ASSERT(!ZSTD_isError(size));
    output->size += size;
    ZSTD_freeCCtx(context);
}

static inline void deflate_any(enum esk_codec codec, struct esk_slice input,
                               struct esk_buffer *output) {
    switch (codec) {
    case ESK_CODEC_GZIP:
        deflate_gzip(input, output);
        break;
    case ESK_CODEC_SNAPPY:
        deflate_xerial(input, 32768, output);
        break;
    case ESK_CODEC_LZ4:
        deflate_lz4(input, output);
        break;
    case ESK_CODEC_ZSTD:
        deflate_zstd(input, false, output);
        break;
    default:
        esk_buffer_append(output, input.data, input.size);
    }
}

#endif
