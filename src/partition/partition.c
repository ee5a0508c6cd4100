/* SPDX-License-Identifier: Apache-2.0 */
/* The partition as a struct: making and freeing it, its segments in memory, its figures. */
#include "partition/producers_private.h"

#include "base/assert.h"
#include "storage/reserve.h"

#include <stdlib.h>

struct esk_partition *eski_partition_create(struct esk_shard *shard,
                                            const struct esk_partition_spec *spec) {
    struct esk_partition *partition = esk_alloc_zeroed(1, sizeof(*partition));
    partition->shard = shard;
    partition->group_id = spec->group_id;
    partition->settings = spec->settings;
    partition->machine = spec->machine;
    esk_list_init(&partition->pending);
    esk_list_init(&partition->full);
    esk_list_init(&partition->settling);
    esk_list_init(&partition->retention_wait);
    esk_list_init(&partition->reads);
    eski_producers_init(partition);
    esk_tail_init(&partition->tail);
    ESK_ASSERT(esk_u64_map_put(&shard->partitions, spec->group_id, partition) == NULL);
    return partition;
}

static void segment_destroy(struct esk_shard *shard, struct eski_segment *segment) {
    if (segment->file != NULL) {
        esk_list_remove(&segment->recent);
        shard->open_files--;
        esk_segment_release(segment->file);
    }
    esk_index_fini(&segment->index);
    free(segment);
}

void eski_segments_forget(struct esk_partition *partition) {
    for (size_t i = 0; i < partition->segment_count; i++) {
        segment_destroy(partition->shard, partition->segments[i]);
    }
    partition->segment_count = 0;
}

void eski_partition_destroy(struct esk_partition *partition) {
    struct esk_shard *shard = partition->shard;
    eski_segments_forget(partition);
    eski_pending_forget(partition);
    eski_producers_fini(partition);
    free(partition->segments);
    eski_tail_bytes_release(shard, partition->tail.bytes);
    esk_tail_fini(&partition->tail);
    if (partition->group != NULL) {
        esk_group_destroy(partition->group);
    }
    esk_deadlines_remove(&shard->oldest, &partition->oldest);
    esk_list_remove(&partition->full);
    esk_list_remove(&partition->settling);
    free(partition);
}

void eski_tail_bytes_release(struct esk_shard *shard, uint64_t bytes) {
    ESK_ASSERT(bytes <= shard->tail_bytes);
    shard->tail_bytes -= bytes;
    esk_counter_set(&shard->metrics.tail_bytes, shard->tail_bytes);
    uint64_t reserved = bytes < shard->reserved_bytes ? bytes : shard->reserved_bytes;
    shard->reserved_bytes -= reserved;
    esk_reserve_give(shard->options.storage->reserve, reserved);
}

void eski_partition_hold(struct esk_partition *partition) {
    partition->busy++;
}

void eski_partition_let_go(struct esk_partition *partition) {
    ESK_ASSERT(partition->busy > 0);
    partition->busy--;
    if (partition->busy == 0 && partition->removed && eski_producers_reap(partition)) {
        eski_partition_destroy(partition);
    }
}

struct eski_segment *eski_segment_add(struct esk_partition *partition, uint64_t base_offset) {
    if (partition->segment_count == partition->segment_capacity) {
        size_t capacity = partition->segment_capacity == 0 ? 1 : 2 * partition->segment_capacity;
        partition->segments =
            esk_realloc(partition->segments, capacity * sizeof(struct eski_segment *));
        partition->segment_capacity = capacity;
    }
    struct eski_segment *segment = esk_alloc_zeroed(1, sizeof(*segment));
    segment->base_offset = base_offset;
    segment->end_offset = base_offset;
    segment->timestamp_ms = -1;
    segment->horizon_ms = ESK_HORIZON_NONE;
    segment->written_timestamp_ms = -1;
    segment->limit_bytes = partition->settings.segment_bytes;
    segment->index_ready = true;
    esk_index_init(&segment->index);
    esk_list_init(&segment->recent);
    partition->segments[partition->segment_count++] = segment;
    return segment;
}

struct eski_segment *eski_segment_at(const struct esk_partition *partition, uint64_t offset) {
    size_t low = 0;
    size_t high = partition->segment_count - 1;
    while (low < high) { /* the last segment whose base is at or below offset */
        size_t middle = (low + high + 1) / 2;
        if (partition->segments[middle]->base_offset <= offset) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return partition->segments[low];
}

void eski_segments_drop(struct esk_partition *partition, size_t count) {
    ESK_ASSERT(count < partition->segment_count);
    for (size_t i = 0; i < count; i++) {
        segment_destroy(partition->shard, partition->segments[i]);
    }
    partition->segment_count -= count;
    for (size_t i = 0; i < partition->segment_count; i++) {
        partition->segments[i] = partition->segments[i + count];
    }
}

/* Closes a file between uses. A sealed segment's index goes too: its index file has it. */
static void forget_file(struct esk_shard *shard, struct eski_segment *segment) {
    esk_list_remove(&segment->recent);
    esk_segment_release(segment->file);
    segment->file = NULL;
    shard->open_files--;
    if (segment->stored) {
        esk_index_fini(&segment->index);
        segment->index_ready = false;
    }
}

struct eski_segment *eski_segments_replace(struct esk_partition *partition, size_t first,
                                           size_t count) {
    ESK_ASSERT(count > 0 && first + count < partition->segment_count);
    struct eski_segment *segment = partition->segments[first];
    if (segment->file != NULL) {
        forget_file(partition->shard, segment);
    }
    esk_index_fini(&segment->index);
    segment->index_ready = false;
    segment->end_offset = partition->segments[first + count - 1]->end_offset;
    for (size_t i = first + 1; i < first + count; i++) {
        segment_destroy(partition->shard, partition->segments[i]);
    }
    partition->segment_count -= count - 1;
    for (size_t i = first + 1; i < partition->segment_count; i++) {
        partition->segments[i] = partition->segments[i + count - 1];
    }
    return segment;
}

void eski_segment_keep_file(struct esk_shard *shard, struct eski_segment *segment,
                            struct esk_segment *file) {
    if (segment->file != NULL) { /* a move and a read opened it at the same time */
        esk_segment_release(file);
        return;
    }
    segment->file = file;
    esk_list_append(&shard->recent, &segment->recent);
    shard->open_files++;
    while (shard->open_files > shard->options.open_files_max) {
        forget_file(shard,
                    ESK_CONTAINER(esk_list_first(&shard->recent), struct eski_segment, recent));
    }
}

uint64_t eski_partition_term(const struct esk_partition *partition) {
    return partition->group == NULL ? partition->recovered.term : esk_group_term(partition->group);
}

uint64_t esk_partition_group_id(const struct esk_partition *partition) {
    return partition->group_id;
}

void esk_partition_configure(struct esk_partition *partition,
                             const struct esk_partition_settings *settings) {
    partition->settings = *settings;
}

void esk_partition_figures(const struct esk_partition *partition,
                           struct esk_partition_figures *figures) {
    *figures = (struct esk_partition_figures){
        .start_offset = partition->log_start,
        .high_watermark = partition->next_offset,
        .segments = (uint32_t)partition->segment_count,
        .records_in = partition->records_in,
        .bytes_in = partition->bytes_in,
        .records_out = partition->records_out,
        .bytes_out = partition->bytes_out,
        .role = esk_group_role(partition->group),
        .term = esk_group_term(partition->group),
        .last_index = esk_group_last_index(partition->group),
        .commit_index = esk_group_commit_index(partition->group),
        .applied_index = partition->applied_index,
    };
    for (size_t i = 0; i < partition->segment_count; i++) {
        figures->size_bytes += partition->segments[i]->bytes;
    }
}
