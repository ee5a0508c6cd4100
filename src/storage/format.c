/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of segment headers, index files and snapshot files: encode and parse, no I/O. All three
 * begin with magic, version and a CRC-32C of what follows; docs/format-segment.md and
 * docs/format-snapshot.md have every byte. Parsing checks lengths first, then magic, version, CRC,
 * then what the fields say about each other; it never trusts a count. */
#include "storage/segment_private.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mutation.h"

#include <stdlib.h>

#define AT_VERSION 8
#define AT_CRC 12

static const uint8_t segment_magic[8] = {'E', 'S', 'K', 'S', 'E', 'G', 'M', 'T'};
static const uint8_t index_magic[8] = {'E', 'S', 'K', 'I', 'N', 'D', 'E', 'X'};
static const uint8_t snapshot_magic[8] = {'E', 'S', 'K', 'S', 'N', 'A', 'P', 'S'};

static void prefix_encode(uint8_t *bytes, const uint8_t magic[8], uint32_t version, uint32_t crc) {
    memcpy(bytes, magic, 8);
    esk_store_u32(bytes + AT_VERSION, version);
    esk_store_u32(bytes + AT_CRC, crc);
}

/* bytes hold at least a prefix. Versions 1 to version_max are known. */
static enum esk_err prefix_check(struct esk_slice bytes, const uint8_t magic[8],
                                 uint32_t version_max, const char *path, const char *what,
                                 struct esk_error *error) {
    if (memcmp(bytes.data, magic, 8) != 0) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%s: not %s: its first 8 bytes are wrong", path,
                        what);
    }
    uint32_t version = esk_load_u32(bytes.data + AT_VERSION);
    if (version < 1 || version > version_max) {
        return esk_fail(error, ESK_ERR_VERSION,
                        "%s: %s of version %" PRIu32 "; this program knows versions up to %" PRIu32,
                        path, what, version, version_max);
    }
    uint32_t stored = esk_load_u32(bytes.data + AT_CRC);
    uint32_t crc = esk_crc32c(0, bytes.data + ESKI_PREFIX_BYTES, bytes.size - ESKI_PREFIX_BYTES);
    if (!ESK_MUTATED(NO_CRC_CHECK) && crc != stored) {
        return esk_fail(error, ESK_ERR_CORRUPT,
                        "%s: checksum of bytes 16 to %zu is %08" PRIx32 ", should be %08" PRIx32,
                        path, bytes.size, crc, stored);
    }
    return ESK_OK;
}

/* What was never rewritten keeps the first version, which older programs read. */
static uint32_t version_of(uint32_t revision) {
    return revision == 0 ? ESKI_FORMAT_VERSION : ESKI_FORMAT_VERSION_REWRITTEN;
}

static enum esk_err revision_check(struct esk_slice bytes, uint32_t revision, const char *path,
                                   struct esk_error *error) {
    uint32_t version = esk_load_u32(bytes.data + AT_VERSION);
    return version == version_of(revision)
               ? ESK_OK
               : esk_fail(error, ESK_ERR_CORRUPT,
                          "%s: version %" PRIu32 " does not have revision %" PRIu32, path, version,
                          revision);
}

void eski_segment_header_encode(uint8_t bytes[ESK_SEGMENT_HEADER_BYTES],
                                const struct eski_segment_header *header) {
    memset(bytes, 0, ESK_SEGMENT_HEADER_BYTES);
    esk_store_u64(bytes + 16, header->generation);
    esk_store_u64(bytes + 24, header->group_id);
    esk_store_u64(bytes + 32, header->base_offset);
    esk_store_u32(bytes + 40, (uint32_t)header->use);
    esk_store_u32(bytes + 44, header->revision);
    prefix_encode(
        bytes, segment_magic, version_of(header->revision),
        esk_crc32c(0, bytes + ESKI_PREFIX_BYTES, ESK_SEGMENT_HEADER_BYTES - ESKI_PREFIX_BYTES));
}

enum esk_err eski_segment_header_parse(const uint8_t *bytes, const char *path,
                                       struct eski_segment_header *header,
                                       struct esk_error *error) {
    struct esk_slice slice = esk_slice(bytes, ESK_SEGMENT_HEADER_BYTES);
    enum esk_err err =
        prefix_check(slice, segment_magic, ESKI_FORMAT_VERSION_REWRITTEN, path, "a segment", error);
    if (err != ESK_OK) {
        return err;
    }
    uint32_t use = esk_load_u32(bytes + 40);
    if (use != ESKI_USE_SEGMENT && use != ESKI_USE_POOLED) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%s: its use is %" PRIu32 ", not 1 or 2", path,
                        use);
    }
    *header = (struct eski_segment_header){
        .generation = esk_load_u64(bytes + 16),
        .group_id = esk_load_u64(bytes + 24),
        .base_offset = esk_load_u64(bytes + 32),
        .use = (enum eski_use)use,
        .revision = esk_load_u32(bytes + 44),
    };
    return revision_check(slice, header->revision, path, error);
}

static size_t index_header_bytes(uint32_t version) {
    return version == ESKI_FORMAT_VERSION ? ESKI_INDEX_HEADER_BYTES
                                          : ESKI_INDEX_HEADER_BYTES_REWRITTEN;
}

void eski_index_encode(struct esk_buffer *buffer, uint64_t group_id,
                       const struct esk_segment_summary *summary, const struct esk_index *index) {
    size_t header_size = index_header_bytes(version_of(summary->revision));
    size_t size = header_size + index->count * ESKI_INDEX_ENTRY_BYTES;
    ESK_ASSERT(size <= ESKI_INDEX_FILE_BYTES_MAX);
    uint8_t *bytes = esk_buffer_grow(buffer, size);
    esk_store_u64(bytes + 16, group_id);
    esk_store_u64(bytes + 24, summary->base_offset);
    esk_store_u64(bytes + 32, summary->end_offset);
    esk_store_u64(bytes + 40, summary->bytes);
    esk_store_u64(bytes + 48, (uint64_t)summary->timestamp_ms);
    esk_store_u32(bytes + 56, (uint32_t)index->count);
    if (summary->revision > 0) {
        esk_store_u32(bytes + 60, summary->revision);
        esk_store_u64(bytes + 64, (uint64_t)summary->horizon_ms);
    }
    uint8_t *at = bytes + header_size;
    for (size_t i = 0; i < index->count; i++, at += ESKI_INDEX_ENTRY_BYTES) {
        esk_store_u32(at, index->entries[i].offset_delta);
        esk_store_u32(at + 4, index->entries[i].position);
        esk_store_u64(at + 8, (uint64_t)index->entries[i].timestamp_ms);
    }
    prefix_encode(bytes, index_magic, version_of(summary->revision),
                  esk_crc32c(0, bytes + ESKI_PREFIX_BYTES, size - ESKI_PREFIX_BYTES));
    buffer->size += size;
}

/* Of the bytes behind the header. */
static struct esk_index_entry index_entry(struct esk_slice bytes, size_t i) {
    const uint8_t *at = bytes.data + i * ESKI_INDEX_ENTRY_BYTES;
    return (struct esk_index_entry){
        .offset_delta = esk_load_u32(at),
        .position = esk_load_u32(at + 4),
        .timestamp_ms = (int64_t)esk_load_u64(at + 8),
    };
}

/* Whether entry i lies in the segment and behind the one before it. */
static bool index_entry_fits(struct esk_slice bytes, size_t i,
                             const struct esk_segment_summary *summary) {
    struct esk_index_entry entry = index_entry(bytes, i);
    if (entry.offset_delta >= summary->end_offset - summary->base_offset ||
        entry.position >= summary->bytes || entry.timestamp_ms > summary->timestamp_ms) {
        return false;
    }
    if (i == 0) {
        return true;
    }
    struct esk_index_entry before = index_entry(bytes, i - 1);
    return before.offset_delta < entry.offset_delta && before.position < entry.position &&
           before.timestamp_ms <= entry.timestamp_ms;
}

enum esk_err eski_index_parse(struct esk_slice bytes, const char *path, uint64_t *group_id,
                              struct esk_segment_summary *summary, struct esk_index *index,
                              struct esk_error *error) {
    if (bytes.size < ESKI_INDEX_HEADER_BYTES) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%s: %zu bytes are too short for an index file",
                        path, bytes.size);
    }
    enum esk_err err = prefix_check(bytes, index_magic, ESKI_FORMAT_VERSION_REWRITTEN, path,
                                    "an index file", error);
    if (err != ESK_OK) {
        return err;
    }
    uint64_t count = esk_load_u32(bytes.data + 56);
    uint32_t version = esk_load_u32(bytes.data + AT_VERSION);
    size_t header_size = index_header_bytes(version);
    if (bytes.size != header_size + count * ESKI_INDEX_ENTRY_BYTES) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%s: %zu bytes do not hold %" PRIu64 " entries",
                        path, bytes.size, count);
    }
    struct esk_segment_summary found = {
        .base_offset = esk_load_u64(bytes.data + 24),
        .end_offset = esk_load_u64(bytes.data + 32),
        .bytes = esk_load_u64(bytes.data + 40),
        .timestamp_ms = (int64_t)esk_load_u64(bytes.data + 48),
        .horizon_ms = ESK_HORIZON_NONE,
    };
    if (version != ESKI_FORMAT_VERSION) {
        found.revision = esk_load_u32(bytes.data + 60);
        found.horizon_ms = (int64_t)esk_load_u64(bytes.data + 64);
    }
    err = revision_check(bytes, found.revision, path, error);
    if (err != ESK_OK) {
        return err;
    }
    if (found.end_offset < found.base_offset || found.bytes > INT64_MAX) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%s: impossible offsets or size", path);
    }
    struct esk_slice entries = esk_slice(bytes.data + header_size, bytes.size - header_size);
    for (size_t i = 0; i < count; i++) {
        if (!index_entry_fits(entries, i, &found)) {
            return esk_fail(error, ESK_ERR_CORRUPT, "%s: entry %zu is out of order or range", path,
                            i);
        }
    }
    *group_id = esk_load_u64(bytes.data + 16);
    *summary = found;
    if (index) {
        index->entries = esk_alloc((size_t)count * sizeof(*index->entries));
        index->count = index->capacity = (size_t)count;
        index->timestamp_ms = found.timestamp_ms;
        for (size_t i = 0; i < count; i++) {
            index->entries[i] = index_entry(entries, i);
        }
    }
    return ESK_OK;
}

void eski_snapshot_encode(uint8_t bytes[ESKI_SNAPSHOT_HEADER_BYTES],
                          const struct eski_snapshot_header *header, struct esk_slice payload) {
    esk_store_u64(bytes + 16, header->group_id);
    esk_store_u64(bytes + 24, header->index);
    esk_store_u64(bytes + 32, header->term);
    esk_store_u64(bytes + 40, payload.size);
    uint32_t crc =
        esk_crc32c(0, bytes + ESKI_PREFIX_BYTES, ESKI_SNAPSHOT_HEADER_BYTES - ESKI_PREFIX_BYTES);
    prefix_encode(bytes, snapshot_magic, ESKI_FORMAT_VERSION,
                  esk_crc32c(crc, payload.data, payload.size));
}

enum esk_err eski_snapshot_parse(struct esk_slice bytes, const char *path,
                                 struct eski_snapshot_header *header, struct esk_slice *payload,
                                 struct esk_error *error) {
    if (bytes.size < ESKI_SNAPSHOT_HEADER_BYTES) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%s: %zu bytes are too short for a snapshot", path,
                        bytes.size);
    }
    enum esk_err err =
        prefix_check(bytes, snapshot_magic, ESKI_FORMAT_VERSION, path, "a snapshot", error);
    if (err != ESK_OK) {
        return err;
    }
    uint64_t size = esk_load_u64(bytes.data + 40);
    if (size != bytes.size - ESKI_SNAPSHOT_HEADER_BYTES) {
        return esk_fail(error, ESK_ERR_CORRUPT, "%s: %zu bytes do not hold a payload of %" PRIu64,
                        path, bytes.size, size);
    }
    *header = (struct eski_snapshot_header){
        .group_id = esk_load_u64(bytes.data + 16),
        .index = esk_load_u64(bytes.data + 24),
        .term = esk_load_u64(bytes.data + 32),
    };
    *payload = esk_slice(bytes.data + ESKI_SNAPSHOT_HEADER_BYTES, (size_t)size);
    return ESK_OK;
}
