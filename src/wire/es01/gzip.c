/* SPDX-License-Identifier: Apache-2.0 */
/* zlib behind the two small interfaces of gzip.h. Deflate favours speed; what is too small to gain
 * becomes a stored block, which costs no state. */
#include "wire/es01/gzip.h"

#include "base/assert.h"

#include <stdlib.h>
#include <zlib.h>

#define WINDOW_BITS_GZIP (15 + 16) /* zlib: 32 KiB of window, the gzip wrapper only */
#define LEVEL 1
#define MEMORY_LEVEL 8
#define STORED_BYTES_MAX 128 /* compressing so little gains less than the 18 bytes around it */
#define STEP_BYTES (64 * 1024)

/* --- inflate --- */

struct esk_es01_inflater {
    z_stream stream;
    bool ended;
};

static void expect(int result) {
    ESK_ASSERT(result == Z_OK); /* anything else: no memory, or a call that zlib forbids */
}

struct esk_es01_inflater *esk_es01_inflater_create(void) {
    struct esk_es01_inflater *inflater = esk_alloc_zeroed(1, sizeof *inflater);
    expect(inflateInit2(&inflater->stream, WINDOW_BITS_GZIP));
    return inflater;
}

void esk_es01_inflater_destroy(struct esk_es01_inflater *inflater) {
    if (inflater) {
        inflateEnd(&inflater->stream);
        free(inflater);
    }
}

void esk_es01_inflater_begin(struct esk_es01_inflater *inflater) {
    expect(inflateReset(&inflater->stream));
    inflater->ended = false;
}

enum esk_err esk_es01_inflate(struct esk_es01_inflater *inflater, struct esk_slice *input,
                              size_t room_bytes, struct esk_buffer *output,
                              struct esk_error *error) {
    z_stream *stream = &inflater->stream;
    size_t left = room_bytes;
    while (!inflater->ended) {
        size_t step = left < STEP_BYTES ? left : STEP_BYTES;
        size_t take = input->size < UINT32_MAX ? input->size : UINT32_MAX;
        uint8_t none = 0;
        stream->next_out = step ? esk_buffer_grow(output, step) : &none;
        stream->avail_out = (uInt)step;
        stream->next_in = (Bytef *)(uintptr_t)input->data;
        stream->avail_in = (uInt)take;
        int result = inflate(stream, Z_NO_FLUSH);
        size_t made = step - stream->avail_out;
        output->size += made;
        left -= made;
        size_t taken = take - stream->avail_in;
        *input = esk_slice(input->data + taken, input->size - taken);
        if (result == Z_STREAM_END) {
            inflater->ended = true;
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            ESK_ASSERT(result != Z_MEM_ERROR && result != Z_STREAM_ERROR);
            return esk_fail(error, ESK_ERR_INVALID, "the payload is not gzip, or damaged");
        } else if (made == 0 && taken == 0) {
            return ESK_ERR_AGAIN;
        }
    }
    return input->size ? esk_fail(error, ESK_ERR_INVALID, "bytes follow the payload's gzip member")
                       : ESK_OK;
}

/* --- deflate --- */

struct esk_es01_deflater {
    z_stream stream;
};

struct esk_es01_deflater *esk_es01_deflater_create(void) {
    struct esk_es01_deflater *deflater = esk_alloc_zeroed(1, sizeof *deflater);
    expect(deflateInit2(&deflater->stream, LEVEL, Z_DEFLATED, WINDOW_BITS_GZIP, MEMORY_LEVEL,
                        Z_DEFAULT_STRATEGY));
    return deflater;
}

void esk_es01_deflater_destroy(struct esk_es01_deflater *deflater) {
    if (deflater) {
        deflateEnd(&deflater->stream);
        free(deflater);
    }
}

void esk_es01_deflate_begin(struct esk_es01_deflater *deflater) {
    expect(deflateReset(&deflater->stream));
}

void esk_es01_deflate_more(struct esk_es01_deflater *deflater, struct esk_slice piece, bool is_last,
                           struct esk_buffer *output) {
    z_stream *stream = &deflater->stream;
    ESK_ASSERT(piece.size <= UINT32_MAX);
    uint8_t none = 0;
    stream->next_in = piece.size ? (Bytef *)(uintptr_t)piece.data : &none;
    stream->avail_in = (uInt)piece.size;
    int result = Z_OK;
    do {
        size_t step = stream->avail_in / 2 + 64;
        step = step < STEP_BYTES ? step : STEP_BYTES;
        stream->next_out = esk_buffer_grow(output, step);
        stream->avail_out = (uInt)step;
        result = deflate(stream, is_last ? Z_FINISH : Z_NO_FLUSH);
        ESK_ASSERT(result != Z_STREAM_ERROR);
        output->size += step - stream->avail_out;
    } while (is_last ? result != Z_STREAM_END : stream->avail_out == 0);
}

/* RFC 1952 around one stored block of RFC 1951. */
static void store(struct esk_slice input, struct esk_buffer *output) {
    static const uint8_t head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
    uint8_t *at = esk_buffer_grow(output, sizeof head + 5 + input.size + 8);
    memcpy(at, head, sizeof head);
    at += sizeof head;
    *at++ = 1; /* the last block, stored */
    uint16_t sizes[2] = {htole16((uint16_t)input.size), htole16((uint16_t)~input.size)};
    memcpy(at, sizes, sizeof sizes);
    at += sizeof sizes;
    memcpy(at, input.data, input.size);
    at += input.size;
    uint32_t check[2] = {htole32((uint32_t)crc32(0, input.data, (uInt)input.size)),
                         htole32((uint32_t)input.size)};
    memcpy(at, check, sizeof check);
    output->size += sizeof head + 5 + input.size + 8;
}

void esk_es01_deflate(struct esk_es01_deflater *deflater, struct esk_slice input,
                      struct esk_buffer *output) {
    if (input.size && input.size <= STORED_BYTES_MAX) {
        store(input, output);
        return;
    }
    esk_es01_deflate_begin(deflater);
    esk_es01_deflate_more(deflater, input, true, output);
}
