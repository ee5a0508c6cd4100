/* SPDX-License-Identifier: Apache-2.0 */
/* Compression as Kafka uses it inside record batches. The numbers are those of the attributes. */
#ifndef ESK_MODEL_CODEC_H
#define ESK_MODEL_CODEC_H

#include "base/error.h"
#include "base/memory.h"

enum esk_codec {
    ESK_CODEC_NONE = 0,
    ESK_CODEC_GZIP = 1,   /* RFC 1952, members may follow each other */
    ESK_CODEC_SNAPPY = 2, /* a bare block, or blocks in the framing of snappy-java ("xerial") */
    ESK_CODEC_LZ4 = 3,    /* LZ4 frames */
    ESK_CODEC_ZSTD = 4,   /* RFC 8878 frames */
};

/* Appends what `input` inflates to. Never appends, or holds beyond it, more than limit_bytes, plus
 * the codec's own state (at most 9 MiB, for LZ4 with 4 MiB blocks). ESK_ERR_CORRUPT: not this
 * codec, damaged, or cut short; ESK_ERR_TOO_LARGE: more than limit_bytes; ESK_ERR_UNSUPPORTED: an
 * unknown codec. After an error the buffer's size is as before. Blocks the thread for as long as it
 * computes. */
enum esk_err esk_inflate(enum esk_codec codec, struct esk_slice input, size_t limit_bytes,
                         struct esk_buffer *output, struct esk_error *error);

/* Appends the input (below 2 GiB) compressed, so that esk_inflate gives it back. Needs memory for
 * the worst case. ESK_ERR_UNSUPPORTED: an unknown codec. After an error the buffer's size is as
 * before. Blocks the thread for as long as it computes. */
enum esk_err esk_compress(enum esk_codec codec, struct esk_slice input, struct esk_buffer *output,
                          struct esk_error *error);

const char *esk_codec_name(enum esk_codec codec); /* "none", "gzip", …; "unknown" */

#endif
