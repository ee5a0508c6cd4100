/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/kafka/store.h"

#include <zlib.h>

#define GZIP_BLOCK_BYTES 65535        /* what a stored block of deflate can say */
#define FRAME_BLOCK_BYTES (64 << 10)  /* of LZ4 with block size 4, and well within zstd's window */
#define SNAPPY_BLOCK_BYTES (32 << 10) /* as snappy-java cuts */
#define LZ4_UNCOMPRESSED 0x80000000U

static void put_u32_le(struct esk_buffer *output, uint32_t value) {
    for (unsigned i = 0; i < 4; i++)
        esk_buffer_u8(output, (uint8_t)(value >> (8 * i)));
}

static void store_gzip(struct esk_slice bytes, struct esk_buffer *output) {
    static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
    esk_buffer_append(output, head, sizeof(head));
    size_t at = 0;
    do {
        size_t size = bytes.size - at < GZIP_BLOCK_BYTES ? bytes.size - at : GZIP_BLOCK_BYTES;
        esk_buffer_u8(output, at + size == bytes.size); /* the last block; stored */
        esk_buffer_u8(output, (uint8_t)size);
        esk_buffer_u8(output, (uint8_t)(size >> 8));
        esk_buffer_u8(output, (uint8_t)~size);
        esk_buffer_u8(output, (uint8_t)(~size >> 8));
        esk_buffer_append(output, bytes.data + at, size);
        at += size;
    } while (at < bytes.size);
    put_u32_le(output, (uint32_t)crc32_z(0, bytes.data, bytes.size));
    put_u32_le(output, (uint32_t)bytes.size);
}

static void store_snappy(struct esk_slice bytes, struct esk_buffer *output) {
    static const uint8_t head[] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1};
    esk_buffer_append(output, head, sizeof(head));
    for (size_t at = 0; at < bytes.size;) {
        size_t size = bytes.size - at < SNAPPY_BLOCK_BYTES ? bytes.size - at : SNAPPY_BLOCK_BYTES;
        esk_buffer_u32(output, (uint32_t)(esk_uvarint_size(size) + 3 + size));
        esk_buffer_uvarint(output, size);
        esk_buffer_u8(output, 61 << 2); /* a literal whose length less one is in two bytes */
        esk_buffer_u8(output, (uint8_t)(size - 1));
        esk_buffer_u8(output, (uint8_t)((size - 1) >> 8));
        esk_buffer_append(output, bytes.data + at, size);
        at += size;
    }
}

static void store_lz4(struct esk_slice bytes, struct esk_buffer *output) {
    /* Version 1, independent blocks of 64 KiB; the last byte is the checksum of the two before. */
    static const uint8_t head[] = {0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82};
    esk_buffer_append(output, head, sizeof(head));
    for (size_t at = 0; at < bytes.size;) {
        size_t size = bytes.size - at < FRAME_BLOCK_BYTES ? bytes.size - at : FRAME_BLOCK_BYTES;
        put_u32_le(output, (uint32_t)size | LZ4_UNCOMPRESSED);
        esk_buffer_append(output, bytes.data + at, size);
        at += size;
    }
    put_u32_le(output, 0);
}

static void store_zstd(struct esk_slice bytes, struct esk_buffer *output) {
    /* No content size, a window of 128 KiB. */
    static const uint8_t head[] = {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38};
    esk_buffer_append(output, head, sizeof(head));
    size_t at = 0;
    do {
        size_t size = bytes.size - at < FRAME_BLOCK_BYTES ? bytes.size - at : FRAME_BLOCK_BYTES;
        uint32_t block = (uint32_t)size << 3 | (at + size == bytes.size);
        for (unsigned i = 0; i < 3; i++)
            esk_buffer_u8(output, (uint8_t)(block >> (8 * i)));
        esk_buffer_append(output, bytes.data + at, size);
        at += size;
    } while (at < bytes.size);
}

void esk_kafka_store(enum esk_codec codec, struct esk_slice bytes, struct esk_buffer *output) {
    switch (codec) {
    case ESK_CODEC_NONE:
        esk_buffer_append(output, bytes.data, bytes.size);
        break;
    case ESK_CODEC_GZIP:
        store_gzip(bytes, output);
        break;
    case ESK_CODEC_SNAPPY:
        store_snappy(bytes, output);
        break;
    case ESK_CODEC_LZ4:
        store_lz4(bytes, output);
        break;
    case ESK_CODEC_ZSTD:
        store_zstd(bytes, output);
        break;
    }
}
