/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to batches: check, route, split by partition, build. Pure work on the request, so
 * a large one is done in a helper. */
#include "broker/produce_private.h"
#include "broker/quotas.h"

#include "model/limits.h"
#include "model/names.h"

#include <stdlib.h>

#define RECORD_OVERHEAD_BYTES 24    /* a guess for the batch's first size; it grows beyond */
#define BATCH_BYTES_MAX (15u << 20) /* one journal entry holds 16 MiB */

/* --- checks and routing --- */

uint64_t eski_record_bytes(const struct esk_produce_record *record) {
    uint64_t bytes = record->key.size + record->value.size;
    for (uint32_t i = 0; i < record->header_count; i++) {
        bytes += record->headers[i].name.size + record->headers[i].value.size;
    }
    return bytes;
}

/* What a record of a request with a producer_id must have, and others must not. */
static enum esk_err check_sequence(struct esk_produce *produce, uint32_t i) {
    const struct esk_produce_record *record = &produce->records[i];
    if (produce->producer_id.data == NULL) {
        return record->sequence < 0 ? ESK_OK
                                    : esk_fail(&produce->error, ESK_ERR_INVALID,
                                               "records[%u].sequence needs a producer_id", i);
    }
    if (record->sequence < 0) {
        return esk_fail(&produce->error, ESK_ERR_INVALID,
                        "records[%u].sequence is required with a producer_id", i);
    }
    return record->key.data != NULL || record->partition != ESK_PARTITION_ANY
               ? ESK_OK
               : esk_fail(&produce->error, ESK_ERR_INVALID,
                          "records[%u] needs a partition or a key, as it has a sequence", i);
}

static enum esk_err route(struct esk_broker_shard *shard, struct esk_produce *produce,
                          const struct eski_produce_target *target) {
    uint64_t limit = shard->broker->options.record_bytes_max;
    if (produce->producer_id.data != NULL) {
        enum esk_err err = esk_id_check(produce->producer_id, "producer_id", &produce->error);
        if (err != ESK_OK) {
            return err;
        }
    }
    uint64_t all_bytes = 0;
    for (uint32_t i = 0; i < produce->record_count; i++) {
        struct esk_produce_record *record = &produce->records[i];
        uint64_t bytes = eski_record_bytes(record);
        if (bytes > limit) {
            return esk_fail(&produce->error, ESK_ERR_TOO_LARGE,
                            "records[%u] has %llu bytes; a record may have %llu", i,
                            (unsigned long long)bytes, (unsigned long long)limit);
        }
        all_bytes += bytes;
        record->duplicate = false;
        enum esk_err err = check_sequence(produce, i);
        if (err != ESK_OK) {
            return err;
        }
        if (record->partition != ESK_PARTITION_ANY) {
            if (record->partition < 0) {
                return esk_fail(&produce->error, ESK_ERR_INVALID,
                                "records[%u].partition must be 0 or more", i);
            }
            if ((uint32_t)record->partition >= target->partition_count) {
                return eski_unknown_partition(produce->topic, (uint64_t)record->partition,
                                              &produce->error);
            }
            record->written_partition = (uint32_t)record->partition;
        }
    }
    if (produce->caller != NULL && produce->caller->key != NULL) {
        uint64_t now_ns = esk_monotonic_ns(shard->broker->options.platform);
        enum esk_err err = esk_quota_take_produce(produce->caller, all_bytes, now_ns,
                                                  &produce->retry_after_s, &produce->error);
        if (err != ESK_OK) {
            return err;
        }
        produce->taken_bytes = all_bytes;
    }
    /* Only a request that passed moves the round-robin. */
    for (uint32_t i = 0; i < produce->record_count; i++) {
        struct esk_produce_record *record = &produce->records[i];
        if (record->partition != ESK_PARTITION_ANY) {
            continue;
        }
        record->written_partition =
            record->key.data != NULL
                ? (uint32_t)esk_partition_for_key(target->partitioner, record->key,
                                                  (int32_t)target->partition_count)
                : atomic_fetch_add_explicit(&target->cursor->next, 1, memory_order_relaxed) %
                      target->partition_count;
    }
    return ESK_OK;
}

/* --- parts --- */

/* Numbers the partitions of the request in order of appearance; a record's part is kept in its
 * written_offset until the answer. slots: one per partition of the topic, zero, or NULL when all
 * records go to one partition. Returns the number of parts. */
static uint32_t number_parts(struct esk_produce *produce, uint32_t *slots) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < produce->record_count; i++) {
        struct esk_produce_record *record = &produce->records[i];
        uint32_t *slot = &slots[record->written_partition];
        if (*slot == 0) {
            *slot = ++count;
        }
        record->written_offset = *slot - 1;
    }
    return count;
}

static struct eski_produce_job *job_create(struct esk_broker_shard *shard,
                                           struct esk_produce *produce, uint64_t first_group,
                                           uint32_t part_count) {
    size_t bytes = sizeof(struct eski_produce_job) + part_count * sizeof(struct eski_produce_part);
    if (produce->producer_id.data != NULL) {
        bytes += eski_sequenced_bytes(produce, part_count);
    }
    struct eski_produce_job *job = esk_alloc_zeroed(1, bytes);
    job->home = shard;
    job->produce = produce;
    job->first_group = first_group;
    job->part_count = part_count;
    return job;
}

static struct eski_produce_job *split(struct esk_broker_shard *shard, struct esk_produce *produce,
                                      const struct eski_produce_target *target) {
    uint32_t count = 1;
    if (produce->record_count == 1 || target->partition_count == 1) {
        for (uint32_t i = 0; i < produce->record_count; i++) {
            produce->records[i].written_offset = 0;
        }
    } else {
        uint32_t *slots = esk_alloc_zeroed(target->partition_count, sizeof(*slots));
        count = number_parts(produce, slots);
        free(slots);
    }
    struct eski_produce_job *job = job_create(shard, produce, target->first_group, count);
    for (uint32_t i = 0; i < produce->record_count; i++) {
        const struct esk_produce_record *record = &produce->records[i];
        struct eski_produce_part *part = &job->parts[record->written_offset];
        part->partition = record->written_partition;
        part->record_count++;
        part->size_hint += RECORD_OVERHEAD_BYTES + record->key.size + record->value.size;
    }
    return job;
}

static enum esk_err add_record(struct eski_produce_part *part,
                               const struct esk_produce_record *record) {
    struct esk_record_header few[8];
    struct esk_record_header *headers = few;
    if (record->header_count > 8) {
        headers = esk_alloc(record->header_count * sizeof(*headers));
    }
    for (uint32_t i = 0; i < record->header_count; i++) {
        headers[i] = (struct esk_record_header){record->headers[i].name, record->headers[i].value};
    }
    enum esk_err err = esk_batch_builder_add(&part->builder, record->key, record->value, headers,
                                             (int32_t)record->header_count);
    if (headers != few) {
        free(headers);
    }
    return err;
}

/* A block with room for what a sequenced entry has behind its batch. */
static struct esk_block *finish_batch(struct esk_batch_builder *builder, uint32_t trailer) {
    struct esk_block *block = esk_batch_builder_finish(builder);
    return block->capacity - block->size < trailer ? esk_block_grow(block, block->size + trailer)
                                                   : block;
}

static enum esk_err build(struct eski_produce_job *job) {
    struct esk_produce *produce = job->produce;
    int64_t now_ms = esk_wall_ms(job->home->broker->options.platform);
    uint32_t trailer = produce->producer_id.data == NULL ? 0 : ESK_SEQUENCE_TRAILER_BYTES;
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct eski_produce_part *part = &job->parts[i];
        part->job = job;
        part->owner = eski_owner(job->home->broker, job->first_group + part->partition);
        esk_batch_builder_begin(&part->builder, now_ms,
                                ESK_BATCH_HEADER_BYTES + part->size_hint + trailer);
    }
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < produce->record_count && err == ESK_OK; i++) {
        err = add_record(&job->parts[produce->records[i].written_offset], &produce->records[i]);
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct eski_produce_part *part = &job->parts[i];
        if (err == ESK_OK) {
            part->submit.block = finish_batch(&part->builder, trailer);
            part->submit.timestamp_ms = now_ms;
            part->submit.record_count = part->record_count;
            part->submit.kind = ESK_ENTRY_BATCH;
            if (part->submit.block->size > BATCH_BYTES_MAX) {
                err = ESK_ERR_TOO_LARGE;
            }
        } else {
            esk_batch_builder_abandon(&part->builder);
        }
    }
    if (err != ESK_OK) {
        for (uint32_t i = 0; i < job->part_count; i++) {
            esk_block_release(job->parts[i].submit.block);
        }
        return esk_fail(&produce->error, err,
                        "one partition's records of the request pass %u bytes", BATCH_BYTES_MAX);
    }
    return ESK_OK;
}

enum esk_err eski_produce_prepare(struct esk_broker_shard *home, struct esk_produce *produce,
                                  const struct eski_produce_target *target,
                                  struct eski_produce_job **job) {
    *job = NULL;
    enum esk_err err = route(home, produce, target);
    if (err != ESK_OK || produce->record_count == 0) {
        return err;
    }
    struct eski_produce_job *made = split(home, produce, target);
    err = build(made);
    if (err != ESK_OK) {
        free(made);
        return err;
    }
    if (produce->producer_id.data != NULL) {
        eski_sequenced_init(made);
    }
    *job = made;
    return ESK_OK;
}
