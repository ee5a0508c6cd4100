/* SPDX-License-Identifier: Apache-2.0 */
/* Segment headers, index files, snapshots, and the walk over a segment's batches. The first byte
 * tells which, and whether the checksum is made right first, so that the checks behind it are
 * reached. What parses must encode to the same bytes. */
#include "fuzz.h"

#include "base/hash.h"
#include "storage/fake_disk.inc"

#define RIGHT_CHECKSUM 4
#define INPUT_BYTES_MAX (1u << 20)

static void fuzz_header(const uint8_t *bytes, size_t size) {
    struct eski_segment_header header;
    uint8_t again[ESK_SEGMENT_HEADER_BYTES];
    if (size >= sizeof(again) &&
        eski_segment_header_parse(bytes, "fuzz", &header, NULL) == ESK_OK) {
        eski_segment_header_encode(again, &header);
        ESK_ASSERT(memcmp(again, bytes, 12) == 0);
        ESK_ASSERT(memcmp(again + 16, bytes + 16, 28) == 0); /* the zeros behind may be others */
    }
}

static void fuzz_index(const uint8_t *bytes, size_t size) {
    uint64_t group;
    struct esk_segment_summary summary;
    struct esk_index index;
    struct esk_error error;
    esk_index_init(&index);
    if (eski_index_parse(esk_slice(bytes, size), "fuzz", &group, &summary, &index, &error) ==
        ESK_OK) {
        struct esk_buffer again;
        esk_buffer_init(&again);
        eski_index_encode(&again, group, &summary, &index);
        ESK_ASSERT(esk_slice_equal(esk_buffer_slice(&again), esk_slice(bytes, size)));
        esk_buffer_fini(&again);
        ESK_ASSERT(index.count == 0 || esk_index_find(&index, UINT64_MAX) < summary.bytes);
    } else {
        ESK_ASSERT(index.entries == NULL);
    }
    esk_index_fini(&index);
}

static void fuzz_snapshot(const uint8_t *bytes, size_t size) {
    struct eski_snapshot_header header;
    struct esk_slice payload;
    uint8_t again[ESKI_SNAPSHOT_HEADER_BYTES];
    if (eski_snapshot_parse(esk_slice(bytes, size), "fuzz", &header, &payload, NULL) == ESK_OK) {
        eski_snapshot_encode(again, &header, payload);
        ESK_ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
    }
}

static void fuzz_batches(const uint8_t *bytes, size_t size) {
    struct fixture *fixture = fixture_create(0);
    struct esk_segment *segment = NULL;
    enum esk_err err = esk_segment_create(&fixture->storage, 1, 0, &segment, &fixture->error);
    ESK_ASSERT(err == ESK_OK);
    struct esk_slice slice = esk_slice(bytes, size);
    err = esk_segment_append(segment, 0, &slice, 1, 0, NULL);
    ESK_ASSERT(err == ESK_OK);
    struct esk_index index;
    esk_index_init(&index);
    err = esk_index_build(segment, 0, size, &index, &fixture->error);
    ESK_ASSERT(err == ESK_OK || index.entries == NULL);
    for (size_t i = 0; i < index.count; i++) {
        ESK_ASSERT(index.entries[i].position < size);
    }
    esk_index_fini(&index);
    esk_segment_release(segment);
    fixture_destroy(fixture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    uint8_t kind = data[0];
    size--;
    uint8_t *bytes = esk_alloc(size);
    memcpy(bytes, data + 1, size);
    if ((kind & RIGHT_CHECKSUM) && size >= ESKI_PREFIX_BYTES) {
        size_t covered =
            (kind & 3) == 0 && size > ESK_SEGMENT_HEADER_BYTES ? ESK_SEGMENT_HEADER_BYTES : size;
        esk_store_u32(bytes + 12, esk_crc32c(0, bytes + 16, covered - ESKI_PREFIX_BYTES));
    }
    switch (kind & 3) {
    case 0:
        fuzz_header(bytes, size);
        break;
    case 1:
        fuzz_index(bytes, size);
        break;
    case 2:
        fuzz_snapshot(bytes, size);
        break;
    default:
        fuzz_batches(bytes, size);
        break;
    }
    free(bytes);
    return 0;
}
