/* SPDX-License-Identifier: Apache-2.0 */
/* The filter of compaction on a batch whose CRC is right and whose contents are anybody's. Bits of
 * the first byte choose: whether the map knows newer records of its keys, whether the batch lies
 * below the map's end, whether tombstones are due. What comes out of a batch that passes the check
 * passes it, too, has at most its records, and is not changed when it is filtered again. */
#include "fuzz.h"

#include "base/assert.h"
#include "base/hash.h"
#include "storage/compaction.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT_BYTES (1u << 20)
#define BATCH_BYTES_MIN ESK_BATCH_HEADER_BYTES

static void make_right(uint8_t *batch, size_t size) {
    batch[ESK_BATCH_AT_MAGIC] = ESK_BATCH_MAGIC;
    batch[ESK_BATCH_AT_BASE_OFFSET] = 0; /* so that no offset passes 2^63 */
    batch[ESK_BATCH_AT_LAST_DELTA] &= 0x7f;
    esk_store_u32(batch + ESK_BATCH_AT_LENGTH, (uint32_t)size - ESK_BATCH_LENGTH_BYTES);
    esk_store_u32(batch + ESK_BATCH_AT_CRC,
                  esk_crc32c(0, batch + ESK_BATCH_AT_ATTRIBUTES, size - ESK_BATCH_AT_ATTRIBUTES));
}

/* Every other key has a newer record. */
static void fill_map(struct esk_key_map *map, struct esk_slice batch,
                     const struct esk_batch_header *header) {
    struct esk_buffer scratch;
    struct esk_slice records;
    struct esk_record record;
    bool odd = false;
    esk_buffer_init(&scratch);
    if (esk_batch_records(batch, header, LIMIT_BYTES, &scratch, &records, NULL) == ESK_OK) {
        struct esk_record_iterator at = esk_record_iterator(records, header->record_count);
        while (esk_record_next(&at, &record)) {
            odd = !odd;
            if (odd && record.key.data != NULL) {
                esk_key_map_put(map, esk_key_map_hash(map, record.key), INT64_MAX);
            }
        }
    }
    esk_buffer_fini(&scratch);
}

static void check_outcome(struct esk_compaction_filter *filter,
                          const struct esk_compaction_outcome *outcome,
                          const struct esk_batch_header *header) {
    const struct esk_batch_limits limits = {INT32_MAX, 64u << 20, INT32_MAX, false};
    struct esk_batch_header found;
    if (outcome->batch.size == 0) {
        ESK_ASSERT(outcome->removed == (uint64_t)header->record_count);
        return;
    }
    uint8_t *copy = esk_alloc(outcome->batch.size);
    memcpy(copy, outcome->batch.data, outcome->batch.size);
    struct esk_slice batch = esk_slice(copy, outcome->batch.size);
    if (esk_batch_check(batch, &limits, &found, NULL, NULL) == ESK_OK) {
        ESK_ASSERT((uint64_t)found.record_count + outcome->removed ==
                   (uint64_t)header->record_count);
        ESK_ASSERT(found.base_offset == header->base_offset);
        ESK_ASSERT(found.last_offset_delta <= header->last_offset_delta);
        struct esk_compaction_outcome again;
        ESK_ASSERT(esk_compaction_filter_batch(filter, batch, &found, &again, NULL) == ESK_OK);
        ESK_ASSERT(!again.changed);
    } else { /* headers are not walked, and timestamps may be out of range */
        ESK_ASSERT(esk_batch_parse(batch, &found, NULL) == ESK_OK);
        ESK_ASSERT(esk_batch_crc_valid(batch.data, &found));
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 + BATCH_BYTES_MIN || size > LIMIT_BYTES) {
        return 0;
    }
    size--;
    uint8_t *batch = esk_alloc(size); /* of the exact size, so that a read behind it is seen */
    memcpy(batch, data + 1, size);
    make_right(batch, size);
    struct esk_batch_header header;
    struct esk_key_map map;
    struct esk_compaction_filter filter;
    struct esk_compaction_outcome outcome;
    ESK_ASSERT(esk_batch_parse(esk_slice(batch, size), &header, NULL) == ESK_OK);
    esk_key_map_init(&map, 4096, UINT64_MAX, 1);
    esk_compaction_filter_init(&filter);
    filter.map = &map;
    filter.map_end = data[0] & 2 ? UINT64_MAX : (uint64_t)header.base_offset + 1;
    filter.now_ms = data[0] & 4 ? INT64_MAX : 1700000000000;
    filter.tombstone_retention_ms = data[0] & 8 ? 0 : 86400000;
    if (data[0] & 1) {
        fill_map(&map, esk_slice(batch, size), &header);
    }
    if (esk_compaction_filter_batch(&filter, esk_slice(batch, size), &header, &outcome, NULL) ==
        ESK_OK) {
        check_outcome(&filter, &outcome, &header);
    }
    esk_compaction_filter_fini(&filter);
    esk_key_map_fini(&map);
    free(batch);
    return 0;
}
