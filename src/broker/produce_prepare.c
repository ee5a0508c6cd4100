/* SPDX-License-Identifier: Apache-2.0 */
/* From records to batches, in one walk: each record is checked, routed, and written to the batch of
 * its partition; that the request's last one fits is known before anything is sent. Pure work on
 * the request, so a large one is done in a helper. */
#include "broker/produce_private.h"

#include "model/limits.h"
#include "model/names.h"

#include <stdlib.h>

#define BATCH_BYTES_MAX (15u << 20) /* one journal entry holds 16 MiB */
#define PLACES_FIRST 256            /* records */
#define PARTS_GROWTH 16             /* from one, which needs no memory of its own */
#define SEQUENCES_FIRST 16          /* of records with a producer_id */
#define SLACK_BYTES 1024            /* a batch may have so much, and a quarter, that it needs not */

/* --- life --- */

static struct eski_produce_part *part_add(struct eski_produce_job *job, uint32_t partition) {
    if (job->part_count == job->part_capacity) {
        job->part_capacity *= PARTS_GROWTH;
        size_t bytes = job->part_capacity * sizeof(*job->parts);
        if (job->parts == &job->first) {
            job->parts = esk_alloc(bytes);
            job->parts[0] = job->first;
        } else {
            job->parts = esk_realloc(job->parts, bytes);
        }
    }
    job->last = job->part_count++;
    struct eski_produce_part *part = &job->parts[job->last];
    *part = (struct eski_produce_part){.partition = partition};
    esk_batch_builder_begin(&part->builder, 0, ESK_BATCH_HEADER_BYTES + job->guess_bytes);
    job->guess_bytes = job->other_bytes;
    return part;
}

enum esk_err esk_produce_open(struct esk_broker_shard *shard, struct esk_produce *produce,
                              size_t first_bytes, size_t other_bytes) {
    const struct esk_topic *topic = eski_serving_topic(shard, produce->topic);
    if (topic == NULL) {
        return eski_unknown_topic(produce->topic, &produce->error);
    }
    struct eski_produce_job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->home = shard;
    job->produce = produce;
    job->first_group = topic->first_group;
    job->partition_count = topic->partition_count;
    job->partitioner = topic->config.partitioner;
    job->cursor = topic->cursor;
    esk_topic_cursor_retain(job->cursor);
    job->guess_bytes = first_bytes;
    job->other_bytes = other_bytes;
    job->parts = &job->first;
    job->part_capacity = 1;
    produce->job = job;
    return ESK_OK;
}

void esk_produce_end(struct esk_produce *produce) {
    struct eski_produce_job *job = produce->job;
    if (job == NULL) {
        return;
    }
    produce->job = NULL;
    if (!job->is_sent && job->routed_count > 0) { /* as if it had not been there */
        atomic_fetch_sub_explicit(&job->cursor->next, job->routed_count, memory_order_relaxed);
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        esk_batch_builder_abandon(&job->parts[i].builder);
        esk_block_release(job->parts[i].submit.block);
    }
    if (job->parts != &job->first) {
        free(job->parts);
    }
    esk_topic_cursor_release(job->cursor);
    free(job->slots);
    free(job->places);
    free(job->sequences);
    free(job->sequenced);
    free(job);
}

/* --- checks and routing --- */

static uint64_t record_bytes(const struct esk_produce_record *record) {
    uint64_t bytes = record->key.size + record->value.size;
    for (uint32_t i = 0; i < record->header_count; i++) {
        bytes += record->headers[i].name.size + record->headers[i].value.size;
    }
    return bytes;
}

/* What a record of a request with a producer_id must have, and others must not. */
static enum esk_err check_sequence(struct esk_produce *produce, uint32_t number,
                                   const struct esk_produce_record *record) {
    if (produce->producer_id.data == NULL) {
        return record->sequence < 0 ? ESK_OK
                                    : esk_fail(&produce->error, ESK_ERR_INVALID,
                                               "records[%u].sequence needs a producer_id", number);
    }
    if (record->sequence < 0) {
        return esk_fail(&produce->error, ESK_ERR_INVALID,
                        "records[%u].sequence is required with a producer_id", number);
    }
    return record->key.data != NULL || record->partition != ESK_PARTITION_ANY
               ? ESK_OK
               : esk_fail(&produce->error, ESK_ERR_INVALID,
                          "records[%u] needs a partition or a key, as it has a sequence", number);
}

static enum esk_err route(struct eski_produce_job *job, const struct esk_produce_record *record,
                          uint32_t *partition) {
    struct esk_produce *produce = job->produce;
    if (record->partition == ESK_PARTITION_ANY) {
        if (record->key.data != NULL) {
            *partition = (uint32_t)esk_partition_for_key(job->partitioner, record->key,
                                                         (int32_t)job->partition_count);
        } else {
            job->routed_count++;
            *partition = atomic_fetch_add_explicit(&job->cursor->next, 1, memory_order_relaxed) %
                         job->partition_count;
        }
        return ESK_OK;
    }
    if (record->partition < 0) {
        return esk_fail(&produce->error, ESK_ERR_INVALID, "records[%u].partition must be 0 or more",
                        job->record_count);
    }
    if ((uint32_t)record->partition >= job->partition_count) {
        return eski_unknown_partition(produce->topic, (uint64_t)record->partition, &produce->error);
    }
    *partition = (uint32_t)record->partition;
    return ESK_OK;
}

/* --- parts --- */

/* Another partition than the last record's. */
static struct eski_produce_part *part_of(struct eski_produce_job *job, uint32_t partition) {
    if (job->part_count == 0) {
        return part_add(job, partition);
    }
    if (job->slots == NULL) {
        job->slots = esk_alloc_zeroed(job->partition_count, sizeof(*job->slots));
        job->slots[job->parts[0].partition] = 1;
        job->place_capacity = PLACES_FIRST + job->record_count * 2;
        job->places = esk_alloc_zeroed(job->place_capacity, sizeof(*job->places));
    }
    uint32_t *slot = &job->slots[partition];
    if (*slot == 0) {
        struct eski_produce_part *part = part_add(job, partition);
        *slot = job->part_count;
        return part;
    }
    job->last = *slot - 1;
    return &job->parts[job->last];
}

static void keep_place(struct eski_produce_job *job) {
    if (job->record_count == job->place_capacity) {
        job->place_capacity *= 2;
        job->places = esk_realloc(job->places, job->place_capacity * sizeof(*job->places));
    }
    job->places[job->record_count] = job->last;
}

static void keep_sequence(struct eski_produce_job *job, int64_t sequence) {
    if (job->record_count == job->sequence_capacity) {
        job->sequence_capacity = job->sequence_capacity * 2 + SEQUENCES_FIRST;
        job->sequences =
            esk_realloc(job->sequences, job->sequence_capacity * sizeof(*job->sequences));
    }
    job->sequences[job->record_count] = sequence;
}

static enum esk_err add_with_headers(struct esk_batch_builder *builder,
                                     const struct esk_produce_record *record) {
    struct esk_record_header few[8] = {0};
    struct esk_record_header *headers = few;
    if (record->header_count > 8) {
        headers = esk_alloc(record->header_count * sizeof(*headers));
    }
    for (uint32_t i = 0; i < record->header_count; i++) {
        headers[i] = (struct esk_record_header){record->headers[i].name, record->headers[i].value};
    }
    enum esk_err err = esk_batch_builder_add(builder, record->key, record->value, headers,
                                             (int32_t)record->header_count);
    if (headers != few) {
        free(headers);
    }
    return err;
}

/* --- for doors --- */

enum esk_err esk_produce_put(struct esk_produce *produce, const struct esk_produce_record *record) {
    struct eski_produce_job *job = produce->job;
    uint64_t limit = job->home->broker->options.record_bytes_max;
    uint64_t bytes = record_bytes(record);
    if (bytes > limit) {
        return esk_fail(&produce->error, ESK_ERR_TOO_LARGE,
                        "records[%u] has %llu bytes; a record may have %llu", job->record_count,
                        (unsigned long long)bytes, (unsigned long long)limit);
    }
    uint32_t partition = 0;
    enum esk_err err = check_sequence(produce, job->record_count, record);
    if (err == ESK_OK) {
        err = route(job, record, &partition);
    }
    if (err != ESK_OK) {
        return err;
    }
    struct eski_produce_part *part = &job->parts[job->last];
    if (partition != part->partition || job->part_count == 0) {
        part = part_of(job, partition);
    }
    if (job->places != NULL) {
        keep_place(job);
    }
    if (produce->producer_id.data != NULL) {
        keep_sequence(job, record->sequence);
    }
    job->record_count++;
    job->bytes += bytes;
    part->bytes += bytes;
    err = record->header_count == 0
              ? esk_batch_builder_add(&part->builder, record->key, record->value, NULL, 0)
              : add_with_headers(&part->builder, record);
    return err == ESK_OK && part->builder.block->size <= BATCH_BYTES_MAX
               ? ESK_OK
               : esk_fail(&produce->error, ESK_ERR_TOO_LARGE,
                          "one partition's records of the request pass %u bytes", BATCH_BYTES_MAX);
}

/* The block is of just the batch's size, or little more; with room for what a sequenced entry has
 * behind it. */
static struct esk_block *finish_batch(struct esk_batch_builder *builder, uint32_t trailer) {
    struct esk_block *block = esk_batch_builder_finish(builder);
    uint32_t needed = block->size + trailer;
    bool fits = block->capacity >= needed && block->capacity <= needed + needed / 4 + SLACK_BYTES;
    return fits ? block : esk_block_grow(block, needed);
}

enum esk_err esk_produce_seal(struct esk_produce *produce) {
    struct eski_produce_job *job = produce->job;
    int64_t now_ms = esk_wall_ms(job->home->broker->options.platform);
    uint32_t trailer = produce->producer_id.data == NULL ? 0 : ESK_SEQUENCE_TRAILER_BYTES;
    produce->record_count = job->record_count;
    if (produce->producer_id.data != NULL) {
        enum esk_err err = esk_id_check(produce->producer_id, "producer_id", &produce->error);
        if (err != ESK_OK) {
            return err;
        }
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct eski_produce_part *part = &job->parts[i];
        part->job = job;
        part->owner = eski_owner(job->home->broker, job->first_group + part->partition);
        part->record_count = (uint32_t)part->builder.record_count;
        part->builder.timestamp_ms = now_ms;
        part->submit.block = finish_batch(&part->builder, trailer);
        part->submit.timestamp_ms = now_ms;
        part->submit.record_count = part->record_count;
        part->submit.kind = ESK_ENTRY_BATCH;
    }
    if (produce->producer_id.data != NULL && job->part_count > 0) {
        eski_sequenced_init(job);
    }
    return ESK_OK;
}

enum esk_err eski_produce_put_array(struct esk_produce *produce) {
    uint32_t count = produce->record_count; /* the seal sets it to what was put */
    for (uint32_t i = 0; i < count; i++) {
        enum esk_err err = esk_produce_put(produce, &produce->records[i]);
        if (err != ESK_OK) {
            return err;
        }
    }
    return esk_produce_seal(produce);
}
