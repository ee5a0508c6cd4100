/* SPDX-License-Identifier: Apache-2.0 */
/* A compressed payload from a stranger. The first byte cuts input and room into pieces: whatever
 * they are, the same comes out, never more than there is room for, and what came out is the same
 * again when it is compressed and inflated anew. */
#include "fuzz.h"

#include "base/assert.h"
#include "wire/es01/gzip.h"

#define PLAIN_BYTES_MAX (1 << 20)

static struct esk_es01_inflater *inflater;
static struct esk_es01_deflater *deflater;

static enum esk_err inflate_all(struct esk_slice packed, size_t piece, struct esk_buffer *out) {
    struct esk_error error;
    enum esk_err err = ESK_ERR_AGAIN;
    size_t at = 0;
    esk_es01_inflater_begin(inflater);
    out->size = 0;
    while (err == ESK_ERR_AGAIN && out->size < PLAIN_BYTES_MAX) {
        size_t left = packed.size - at;
        struct esk_slice input = esk_slice(packed.data + at, left < piece ? left : piece);
        size_t before = out->size;
        size_t given = input.size;
        err = esk_es01_inflate(inflater, &input, piece, out, &error);
        ESK_ASSERT(out->size - before <= piece);
        at += given - input.size;
        if (err == ESK_ERR_AGAIN && at == packed.size && out->size == before) {
            break;
        }
    }
    /* A piece may end with the member: what is behind it is then told by the next, or never. */
    return err == ESK_OK && at < packed.size ? ESK_ERR_INVALID : err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct esk_buffer whole, pieces, packed;
    if (size == 0) {
        return 0;
    }
    if (!inflater) {
        inflater = esk_es01_inflater_create();
        deflater = esk_es01_deflater_create();
    }
    size_t piece = 1 + (size_t)data[0] * 16;
    struct esk_slice input = esk_slice(data + 1, size - 1);
    enum esk_err err = inflate_all(input, PLAIN_BYTES_MAX, &whole);
    ESK_ASSERT(err == ESK_OK || err == ESK_ERR_AGAIN || err == ESK_ERR_INVALID);
    enum esk_err by_pieces = inflate_all(input, piece, &pieces);
    if (whole.size < PLAIN_BYTES_MAX && pieces.size < PLAIN_BYTES_MAX) {
        ESK_ASSERT(err == by_pieces);
    }
    if (err == ESK_OK) {
        packed.size = 0;
        esk_es01_deflate(deflater, esk_buffer_slice(&whole), &packed);
        ESK_ASSERT(inflate_all(esk_buffer_slice(&packed), piece, &pieces) == ESK_OK ||
                   pieces.size >= PLAIN_BYTES_MAX);
        ESK_ASSERT(pieces.size >= PLAIN_BYTES_MAX ||
                   esk_slice_equal(esk_buffer_slice(&whole), esk_buffer_slice(&pieces)));
    }
    return 0;
}
