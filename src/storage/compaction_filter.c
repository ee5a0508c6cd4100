/* SPDX-License-Identifier: Apache-2.0 */
/* The filter: which records of a batch stay, and the batch of those. Records are copied as they
 * are, but for the timestamp delta where the batch's base timestamp becomes its delete horizon. */
#include "storage/compaction_private.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mutation.h"

#define INFLATED_BYTES_MAX (64u * 1024 * 1024) /* as for every reader: far above the body limit */

/* What is known of a batch after looking at its records. */
struct verdict {
    int64_t horizon_ms; /* of the batch, as it is or as it begins now */
    bool stamp;         /* it begins now */
    bool tombstones;    /* some stay */
    int32_t count;      /* of what stays */
    int32_t last_delta;
    int64_t timestamp_ms;
};

void esk_compaction_filter_init(struct esk_compaction_filter *filter) {
    *filter = (struct esk_compaction_filter){0};
    esk_buffer_init(&filter->inflated);
    esk_buffer_init(&filter->kept);
    esk_buffer_init(&filter->records);
    esk_buffer_init(&filter->batch);
}

void esk_compaction_filter_fini(struct esk_compaction_filter *filter) {
    esk_buffer_fini(&filter->inflated);
    esk_buffer_fini(&filter->kept);
    esk_buffer_fini(&filter->records);
    esk_buffer_fini(&filter->batch);
}

static enum esk_err malformed(const struct esk_batch_header *header, struct esk_error *error) {
    return esk_fail(error, ESK_ERR_CORRUPT, "malformed records in the batch at offset %lld",
                    (long long)header->base_offset);
}

static int64_t horizon_of(const struct esk_compaction_filter *filter,
                          const struct esk_batch_header *header, bool *stamp) {
    int64_t horizon_ms = header->base_timestamp_ms;
    *stamp = (header->attributes & ESK_BATCH_DELETE_HORIZON) == 0;
    if (*stamp &&
        __builtin_add_overflow(filter->now_ms, filter->tombstone_retention_ms, &horizon_ms)) {
        horizon_ms = INT64_MAX;
    }
    return horizon_ms;
}

static bool stays(const struct esk_compaction_filter *filter, const struct verdict *verdict,
                  const struct esk_record *record, struct esk_hash128 hash, uint64_t offset) {
    if (record->key.data == NULL ||
        (offset >= filter->map_end && !ESK_MUTATED(COMPACTION_TOMBSTONE_FIRST))) {
        return true;
    }
    if (esk_key_map_has_newer(filter->map, hash, offset)) {
        return false;
    }
    bool over = record->value.size == 0 && verdict->horizon_ms <= filter->now_ms;
    if (over) {
        ESK_REACHED(COMPACTION_TOMBSTONE);
    }
    return !over;
}

/* Fills filter->kept with a byte per record. */
static enum esk_err judge(struct esk_compaction_filter *filter, struct esk_slice records,
                          const struct esk_batch_header *header, struct verdict *verdict,
                          struct esk_error *error) {
    struct esk_record_iterator iterator = esk_record_iterator(records, header->record_count);
    struct esk_record record;
    struct eski_ahead ahead = eski_ahead(filter->map, records, header->record_count);
    int64_t last_delta = -1;
    verdict->horizon_ms = horizon_of(filter, header, &verdict->stamp);
    verdict->timestamp_ms = INT64_MIN;
    filter->kept.size = 0;
    while (esk_record_next(&iterator, &record)) {
        if (record.offset_delta <= last_delta || record.offset_delta > header->last_offset_delta) {
            return malformed(header, error);
        }
        last_delta = record.offset_delta;
        uint64_t offset = (uint64_t)header->base_offset + (uint64_t)record.offset_delta;
        bool kept = stays(filter, verdict, &record, eski_ahead_next(&ahead), offset);
        esk_buffer_u8(&filter->kept, kept);
        if (!kept) {
            continue;
        }
        int64_t timestamp_ms = esk_record_timestamp_ms(header, &record);
        verdict->count++;
        verdict->last_delta = record.offset_delta;
        verdict->tombstones |= record.key.data != NULL && record.value.size == 0;
        verdict->timestamp_ms =
            timestamp_ms > verdict->timestamp_ms ? timestamp_ms : verdict->timestamp_ms;
    }
    if (iterator.failed) {
        return malformed(header, error);
    }
    uint64_t end = (uint64_t)header->base_offset + (uint64_t)header->last_offset_delta + 1;
    verdict->stamp &= verdict->tombstones && end <= filter->map_end;
    return ESK_OK;
}

/* A record with another timestamp delta. It was parsed before. */
static void copy_with_delta(struct esk_buffer *output, struct esk_slice bytes, int64_t delta) {
    struct esk_reader reader = esk_reader(bytes);
    esk_read_varint(&reader); /* its length */
    uint8_t attributes = esk_read_u8(&reader);
    esk_read_varint(&reader);
    ESK_ASSERT(!reader.failed);
    size_t left = esk_reader_left(&reader);
    esk_buffer_varint(output, (int64_t)(1 + esk_varint_size(delta) + left));
    esk_buffer_u8(output, attributes);
    esk_buffer_varint(output, delta);
    esk_buffer_append(output, reader.at, left);
}

/* The records that stay, into filter->records. */
static void copy_records(struct esk_compaction_filter *filter, struct esk_slice records,
                         const struct esk_batch_header *header, const struct verdict *verdict) {
    struct esk_record_iterator iterator = esk_record_iterator(records, header->record_count);
    struct esk_record record;
    bool shift = verdict->stamp && (header->attributes & ESK_BATCH_LOG_APPEND_TIME) == 0;
    uint64_t base_ms = (uint64_t)verdict->horizon_ms;
    filter->records.size = 0;
    for (size_t i = 0;; i++) {
        const uint8_t *from = iterator.at;
        if (!esk_record_next(&iterator, &record)) {
            return;
        }
        struct esk_slice bytes = esk_slice(from, (size_t)(iterator.at - from));
        if (filter->kept.data[i] == 0) {
            continue;
        }
        if (shift) {
            uint64_t timestamp_ms = (uint64_t)esk_record_timestamp_ms(header, &record);
            copy_with_delta(&filter->records, bytes, (int64_t)(timestamp_ms - base_ms));
        } else {
            esk_buffer_append(&filter->records, bytes.data, bytes.size);
        }
    }
}

/* The batch of filter->records, into filter->batch. */
static enum esk_err build(struct esk_compaction_filter *filter, const uint8_t *old,
                          const struct esk_batch_header *header, const struct verdict *verdict,
                          struct esk_error *error) {
    struct esk_buffer *batch = &filter->batch;
    batch->size = 0;
    esk_buffer_append(batch, old, ESK_BATCH_HEADER_BYTES);
    enum esk_err err =
        esk_compress(esk_batch_codec(header), esk_buffer_slice(&filter->records), batch, error);
    if (err != ESK_OK) {
        return err;
    }
    if (batch->size > ESKI_BATCH_BYTES_MAX) { /* its writer compressed better */
        return esk_fail(error, ESK_ERR_TOO_LARGE,
                        "what stays of the batch at offset %lld has %zu bytes, at most %u",
                        (long long)header->base_offset, batch->size, ESKI_BATCH_BYTES_MAX);
    }
    uint8_t *at = batch->data;
    esk_store_u32(at + ESK_BATCH_AT_LENGTH, (uint32_t)batch->size - ESK_BATCH_LENGTH_BYTES);
    esk_store_u32(at + ESK_BATCH_AT_LAST_DELTA, (uint32_t)verdict->last_delta);
    esk_store_u32(at + ESK_BATCH_AT_RECORD_COUNT, (uint32_t)verdict->count);
    esk_store_u64(at + ESK_BATCH_AT_MAX_TIMESTAMP, (uint64_t)verdict->timestamp_ms);
    if (verdict->stamp) {
        esk_store_u16(at + ESK_BATCH_AT_ATTRIBUTES,
                      header->attributes | (uint16_t)ESK_BATCH_DELETE_HORIZON);
        esk_store_u64(at + ESK_BATCH_AT_BASE_TIMESTAMP, (uint64_t)verdict->horizon_ms);
    }
    esk_store_u32(at + ESK_BATCH_AT_CRC, esk_crc32c(0, at + ESK_BATCH_AT_ATTRIBUTES,
                                                    batch->size - ESK_BATCH_AT_ATTRIBUTES));
    return ESK_OK;
}

enum esk_err esk_compaction_filter_batch(struct esk_compaction_filter *filter,
                                         struct esk_slice batch,
                                         const struct esk_batch_header *header,
                                         struct esk_compaction_outcome *outcome,
                                         struct esk_error *error) {
    struct verdict verdict = {0};
    struct esk_slice records;
    *outcome = (struct esk_compaction_outcome){
        .batch = esk_slice(batch.data, header->size_bytes),
        .timestamp_ms = header->max_timestamp_ms,
        .horizon_ms = ESK_HORIZON_NONE,
    };
    if ((header->attributes & ESK_BATCH_CONTROL) != 0) {
        return ESK_OK;
    }
    enum esk_err err =
        esk_batch_records(batch, header, INFLATED_BYTES_MAX, &filter->inflated, &records, error);
    if (err == ESK_OK) {
        err = judge(filter, records, header, &verdict, error);
    }
    if (err != ESK_OK) {
        return err;
    }
    outcome->removed = (uint64_t)(header->record_count - verdict.count);
    if (verdict.tombstones &&
        ((header->attributes & ESK_BATCH_DELETE_HORIZON) != 0 || verdict.stamp)) {
        outcome->horizon_ms = verdict.horizon_ms < 0 ? 0 : verdict.horizon_ms;
    }
    if (outcome->removed == 0 && !verdict.stamp) {
        return ESK_OK;
    }
    outcome->changed = true;
    if (verdict.count == 0) {
        outcome->batch = esk_slice(NULL, 0);
        return ESK_OK;
    }
    copy_records(filter, records, header, &verdict);
    err = build(filter, batch.data, header, &verdict, error);
    outcome->batch = esk_buffer_slice(&filter->batch);
    outcome->timestamp_ms = verdict.timestamp_ms;
    return err;
}
