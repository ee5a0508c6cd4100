/* SPDX-License-Identifier: Apache-2.0 */
/* Applying committed entries, in order of index: the only way in which a partition's state changes,
 * live and in recovery alike. Deterministic: replicas that apply the same entries are the same. */
#include "partition/producers_private.h"

#include "base/assert.h"
#include "base/mutation.h"

static void apply_batch(struct esk_partition *partition, struct eski_entry *entry) {
    struct eski_segment *segment = eski_segment_open_one(partition);
    struct esk_tail_batch batch = {
        .block = entry->block,
        .base_offset = entry->base_offset,
        .end_offset = entry->base_offset + entry->record_count,
        .index = entry->entry.index,
        .term = entry->entry.term,
        .journal_position = entry->journal_position,
        .segment_offset = segment->base_offset,
        .segment_position = segment->bytes,
        .timestamp_ms = entry->timestamp_ms,
        .record_count = entry->record_count,
    };
    entry->block = NULL;
    segment->bytes += batch.block->size;
    segment->end_offset = batch.end_offset;
    if (batch.timestamp_ms > segment->timestamp_ms) {
        segment->timestamp_ms = batch.timestamp_ms;
    }
    esk_tail_append(&partition->tail, &batch);
    partition->next_offset = batch.end_offset;
    partition->records_in += batch.record_count;
    partition->bytes_in += batch.block->size;
    eski_mover_note_tail(partition);
}

/* The window first: it is read from behind the batch, which the tail takes. */
static enum esk_err apply_sequenced(struct esk_partition *partition, struct eski_entry *entry,
                                    struct esk_error *error) {
    enum esk_err err = eski_producer_apply(partition, entry, error);
    if (err == ESK_OK) {
        apply_batch(partition, entry);
    }
    return err;
}

static enum esk_err read_offset(const struct eski_entry *entry, uint64_t *offset,
                                struct esk_error *error) {
    struct esk_reader reader = esk_reader(entry->entry.payload);
    *offset = esk_read_u64(&reader);
    if (reader.failed || esk_reader_left(&reader) != 0) {
        return esk_fail(error, ESK_ERR_CORRUPT, "entry %llu of kind %u has %zu bytes, not 8",
                        (unsigned long long)entry->entry.index, entry->entry.kind,
                        entry->entry.payload.size);
    }
    return ESK_OK;
}

static enum esk_err apply_roll(struct esk_partition *partition, const struct eski_entry *entry,
                               struct esk_error *error) {
    uint64_t offset;
    enum esk_err err = read_offset(entry, &offset, error);
    if (err == ESK_OK && offset != partition->next_offset) {
        err = esk_fail(error, ESK_ERR_CORRUPT, "entry %llu begins a segment at %llu, not at %llu",
                       (unsigned long long)entry->entry.index, (unsigned long long)offset,
                       (unsigned long long)partition->next_offset);
    }
    if (err != ESK_OK) {
        return err;
    }
    struct eski_segment *sealed = eski_segment_open_one(partition);
    sealed->sealed = true;
    sealed->end_offset = partition->next_offset;
    struct eski_segment *segment = eski_segment_add(partition, partition->next_offset);
    segment->roll_index = entry->entry.index;
    ESK_REACHED(SEGMENT_ROLL);
    return ESK_OK;
}

static enum esk_err apply_log_start(struct esk_partition *partition, const struct eski_entry *entry,
                                    struct esk_error *error) {
    uint64_t offset;
    enum esk_err err = read_offset(entry, &offset, error);
    if (err == ESK_OK && offset > partition->log_start) {
        partition->log_start = offset < partition->next_offset ? offset : partition->next_offset;
        eski_log_start_applied(partition);
    }
    return err;
}

/* Whether the partition knows such entries; an unknown kind is of a newer program. */
static bool fits(const struct esk_partition *partition, uint8_t kind) {
    switch (kind) {
    case ESK_ENTRY_TERM:
        return true;
    case ESK_ENTRY_BATCH:
    case ESK_ENTRY_PRODUCER:
    case ESK_ENTRY_SEGMENT_ROLL:
    case ESK_ENTRY_LOG_START:
        return partition->machine == NULL;
    default:
        return partition->machine != NULL && partition->machine->entry_kind == kind;
    }
}

static enum esk_err apply_kind(struct esk_partition *partition, struct eski_entry *entry,
                               struct esk_error *error) {
    if (!fits(partition, entry->entry.kind)) {
        return esk_fail(error, ESK_ERR_VERSION,
                        "group %llu has an entry of unknown kind %u at index %llu",
                        (unsigned long long)partition->group_id, entry->entry.kind,
                        (unsigned long long)entry->entry.index);
    }
    switch (entry->entry.kind) {
    case ESK_ENTRY_TERM:
        return ESK_OK;
    case ESK_ENTRY_BATCH:
        apply_batch(partition, entry);
        return ESK_OK;
    case ESK_ENTRY_PRODUCER:
        return apply_sequenced(partition, entry, error);
    case ESK_ENTRY_SEGMENT_ROLL:
        return apply_roll(partition, entry, error);
    case ESK_ENTRY_LOG_START:
        return apply_log_start(partition, entry, error);
    default:
        partition->machine_changed = true;
        return partition->machine->ops->apply(partition->machine, &entry->entry, error);
    }
}

enum esk_err eski_apply(struct esk_partition *partition, struct eski_entry *entry,
                        struct esk_error *error) {
    ESK_ASSERT(entry->entry.index == partition->applied_index + 1);
    enum esk_err err = apply_kind(partition, entry, error);
    esk_block_release(entry->block);
    entry->block = NULL;
    partition->applied_index = entry->entry.index;
    partition->applied_term = entry->entry.term;
    return err;
}
