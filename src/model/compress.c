/* SPDX-License-Identifier: Apache-2.0 */
/* Compressing, for batches that compaction writes anew: each codec in the form that Kafka's own
 * clients write and all others read, at the codec's usual level. */
#include "model/codec.h"

#include "base/assert.h"

#include <lz4frame.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>

#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3
#define XERIAL_BLOCK_BYTES 32768 /* as snappy-java */

static enum esk_err refused(enum esk_codec codec, const char *reason, struct esk_error *error) {
    return esk_fail(error, ESK_ERR_INTERNAL, "cannot compress with %s: %s", esk_codec_name(codec),
                    reason);
}

static enum esk_err compress_gzip(struct esk_slice input, struct esk_buffer *output,
                                  struct esk_error *error) {
    z_stream stream = {0};
    if (deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) { /* +16: with a gzip header */
        return refused(ESK_CODEC_GZIP, "no memory", error);
    }
    size_t bound = deflateBound(&stream, input.size);
    stream.next_in = (Bytef *)(uintptr_t)input.data;
    stream.avail_in = (uInt)input.size;
    stream.next_out = esk_buffer_grow(output, bound);
    stream.avail_out = (uInt)bound;
    int result = deflate(&stream, Z_FINISH);
    size_t made = stream.total_out;
    deflateEnd(&stream);
    if (result != Z_STREAM_END) {
        return refused(ESK_CODEC_GZIP, "no end", error);
    }
    output->size += made;
    return ESK_OK;
}

static enum esk_err compress_snappy(struct esk_slice input, struct esk_buffer *output,
                                    struct esk_error *error) {
    esk_buffer_append(output, "\x82SNAPPY\0\0\0\0\1\0\0\0\1", 16);
    while (input.size > 0) {
        size_t size = input.size < XERIAL_BLOCK_BYTES ? input.size : XERIAL_BLOCK_BYTES;
        size_t made = snappy_max_compressed_length(size);
        uint8_t *room = esk_buffer_grow(output, 4 + made);
        if (snappy_compress((const char *)input.data, size, (char *)room + 4, &made) != SNAPPY_OK) {
            return refused(ESK_CODEC_SNAPPY, "no room", error);
        }
        esk_store_u32(room, (uint32_t)made);
        output->size += 4 + made;
        input = esk_slice(input.data + size, input.size - size);
    }
    return ESK_OK;
}

static enum esk_err compress_lz4(struct esk_slice input, struct esk_buffer *output,
                                 struct esk_error *error) {
    const LZ4F_preferences_t preferences = {
        .frameInfo = {.blockSizeID = LZ4F_max64KB, .blockMode = LZ4F_blockIndependent}};
    size_t bound = LZ4F_compressFrameBound(input.size, &preferences);
    uint8_t *room = esk_buffer_grow(output, bound);
    size_t made = LZ4F_compressFrame(room, bound, input.data, input.size, &preferences);
    if (LZ4F_isError(made)) {
        return refused(ESK_CODEC_LZ4, LZ4F_getErrorName(made), error);
    }
    output->size += made;
    return ESK_OK;
}

static enum esk_err compress_zstd(struct esk_slice input, struct esk_buffer *output,
                                  struct esk_error *error) {
    size_t bound = ZSTD_compressBound(input.size);
    uint8_t *room = esk_buffer_grow(output, bound);
    size_t made = ZSTD_compress(room, bound, input.data, input.size, ZSTD_LEVEL);
    if (ZSTD_isError(made)) {
        return refused(ESK_CODEC_ZSTD, ZSTD_getErrorName(made), error);
    }
    output->size += made;
    return ESK_OK;
}

enum esk_err esk_compress(enum esk_codec codec, struct esk_slice input, struct esk_buffer *output,
                          struct esk_error *error) {
    ESK_ASSERT(input.size < UINT32_MAX / 2);
    const size_t start = output->size;
    enum esk_err err;
    switch (codec) {
    case ESK_CODEC_NONE:
        esk_buffer_append(output, input.data, input.size);
        return ESK_OK;
    case ESK_CODEC_GZIP:
        err = compress_gzip(input, output, error);
        break;
    case ESK_CODEC_SNAPPY:
        err = compress_snappy(input, output, error);
        break;
    case ESK_CODEC_LZ4:
        err = compress_lz4(input, output, error);
        break;
    case ESK_CODEC_ZSTD:
        err = compress_zstd(input, output, error);
        break;
    default:
        return esk_fail(error, ESK_ERR_UNSUPPORTED, "unknown compression codec %d", (int)codec);
    }
    if (err) {
        output->size = start;
    }
    return err;
}
