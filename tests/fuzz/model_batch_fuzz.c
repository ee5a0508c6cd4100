/* SPDX-License-Identifier: Apache-2.0 */
/* A batch from a stranger: the first byte chooses whether its CRC is made right and whether deltas
 * must be dense. What passes the check must read back completely, within every limit. */
#include "fuzz.h"

#include "base/assert.h"
#include "base/hash.h"
#include "model/record_batch.h"

#include <stdlib.h>

#define LIMIT_BYTES 65536

static void read_back(struct esk_slice batch, const struct esk_batch_header *header,
                      uint64_t record_bytes) {
    struct esk_buffer scratch;
    esk_buffer_init(&scratch);
    struct esk_slice records;
    ESK_ASSERT(esk_batch_records(batch, header, LIMIT_BYTES, &scratch, &records, NULL) == ESK_OK);
    ESK_ASSERT(esk_batch_codec(header) == ESK_CODEC_NONE || records.size <= LIMIT_BYTES);
    struct esk_record_iterator iterator = esk_record_iterator(records, header->record_count);
    struct esk_record record;
    uint64_t total = 0;
    int32_t count = 0;
    while (esk_record_next(&iterator, &record)) {
        total += esk_record_size(&record);
        count++;
    }
    ESK_ASSERT(!iterator.failed);
    ESK_ASSERT(count == header->record_count);
    ESK_ASSERT(total == record_bytes);
    esk_buffer_fini(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    bool make_right = data[0] & 1;
    struct esk_batch_limits limits = {1 << 20, LIMIT_BYTES, LIMIT_BYTES, data[0] & 2};
    size--;
    uint8_t *batch = esk_alloc(size); /* of the exact size, so that a read behind it is seen */
    memcpy(batch, data + 1, size);
    struct esk_batch_header header;
    struct esk_error error;
    if (make_right && esk_batch_parse(esk_slice(batch, size), &header, &error) == ESK_OK) {
        esk_store_u32(batch + ESK_BATCH_AT_CRC,
                      esk_crc32c(0, batch + ESK_BATCH_AT_ATTRIBUTES,
                                 header.size_bytes - ESK_BATCH_AT_ATTRIBUTES));
    }
    uint64_t record_bytes;
    if (esk_batch_check(esk_slice(batch, size), &limits, &header, &record_bytes, &error) ==
        ESK_OK) {
        read_back(esk_slice(batch, size), &header, record_bytes);
    }
    free(batch);
    return 0;
}
