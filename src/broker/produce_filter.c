/* SPDX-License-Identifier: Apache-2.0 */
/* A batch without those of its records that the partition has already. */
#include "broker/produce_private.h"

#include "base/assert.h"

#include <stdlib.h>

static void copy_record(struct esk_batch_builder *builder, struct esk_record *record) {
    size_t count = (size_t)record->header_count;
    struct esk_record_header *headers = esk_alloc(count * sizeof(*headers));
    for (size_t i = 0; i < count; i++) {
        ESK_ASSERT(esk_record_header_next(record, &headers[i]));
    }
    ESK_ASSERT(esk_batch_builder_add(builder, record->key, record->value, headers,
                                     (int32_t)count) == ESK_OK);
    free(headers);
}

void eski_sequenced_filter(struct eski_sequenced_part *part) {
    struct esk_block *block = part->part->submit.block;
    struct esk_slice batch = esk_slice(block->data, block->size);
    struct esk_batch_header header;
    struct esk_buffer scratch; /* not used: our own batches are not compressed */
    struct esk_slice records;
    esk_buffer_init(&scratch);
    ESK_ASSERT(esk_batch_parse(batch, &header, NULL) == ESK_OK);
    ESK_ASSERT(esk_batch_records(batch, &header, block->size, &scratch, &records, NULL) == ESK_OK);
    struct esk_record_iterator iterator = esk_record_iterator(records, header.record_count);
    struct esk_batch_builder builder;
    struct esk_record record;
    esk_batch_builder_begin(&builder, part->part->submit.timestamp_ms,
                            block->size + ESK_SEQUENCE_TRAILER_BYTES);
    for (uint32_t i = 0; esk_record_next(&iterator, &record); i++) {
        if (!part->sequences.items[i].duplicate) {
            copy_record(&builder, &record);
        }
    }
    part->part->submit.block = esk_batch_builder_finish(&builder); /* not larger than before */
    esk_buffer_fini(&scratch);
    esk_block_release(block);
}
