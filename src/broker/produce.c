/* SPDX-License-Identifier: Apache-2.0 */
/* Produce: check everything, route each record, build one batch per partition, hand each to the
 * shard that owns the partition, answer when all are in.
 *
 * Invariants: nothing is written unless every record passed; records of one request for one
 * partition keep their order and share one batch; parts go out in the order of the requests, so a
 * connection's produces to one partition keep theirs. When a part fails after others were written
 * the answer is an error and those stay. */
#include "broker/broker_private.h"

#include "base/assert.h"
#include "model/limits.h"
#include "model/record_batch.h"

#include <stdlib.h>
#include <string.h>

#define RECORD_OVERHEAD_BYTES 24    /* a guess for the batch's first size; it grows beyond */
#define BATCH_BYTES_MAX (15u << 20) /* one journal entry holds 16 MiB */

struct job;

/* One partition's batch. */
struct part {
    struct esk_mail mail;
    struct job *job;
    struct esk_broker_shard *owner;
    uint32_t partition;
    uint32_t record_count;
    uint64_t size_hint;
    struct esk_batch_builder builder;
    struct esk_submit submit;
    uint64_t next_offset; /* while the answer is made */
    enum esk_err err;
};

struct job {
    struct esk_mail mail; /* for answers that need no other shard */
    struct esk_broker_shard *home;
    struct esk_produce *produce;
    uint64_t first_group;
    uint32_t part_count;
    uint32_t waiting;
    enum esk_err err;
    struct part parts[];
};

/* --- checks and routing ------------------------------------------------------------------------
 */

static uint64_t record_bytes(const struct esk_produce_record *record) {
    uint64_t bytes = record->key.size + record->value.size;
    for (uint32_t i = 0; i < record->header_count; i++) {
        bytes += record->headers[i].name.size + record->headers[i].value.size;
    }
    return bytes;
}

static enum esk_err route(struct esk_broker_shard *shard, struct esk_produce *produce,
                          const struct esk_topic *topic) {
    uint64_t limit = shard->broker->options.record_bytes_max;
    for (uint32_t i = 0; i < produce->record_count; i++) {
        struct esk_produce_record *record = &produce->records[i];
        uint64_t bytes = record_bytes(record);
        if (bytes > limit) {
            return esk_fail(&produce->error, ESK_ERR_TOO_LARGE,
                            "records[%u] has %llu bytes; a record may have %llu", i,
                            (unsigned long long)bytes, (unsigned long long)limit);
        }
        record->duplicate = false;
        if (record->partition != ESK_PARTITION_ANY) {
            if (record->partition < 0) {
                return esk_fail(&produce->error, ESK_ERR_INVALID,
                                "records[%u].partition must be 0 or more", i);
            }
            if ((uint32_t)record->partition >= topic->partition_count) {
                return eski_unknown_partition(produce->topic, (uint64_t)record->partition,
                                              &produce->error);
            }
            record->written_partition = (uint32_t)record->partition;
        }
    }
    /* Only a request that passed moves the round-robin. */
    for (uint32_t i = 0; i < produce->record_count; i++) {
        struct esk_produce_record *record = &produce->records[i];
        if (record->partition != ESK_PARTITION_ANY) {
            continue;
        }
        record->written_partition =
            record->key.data != NULL
                ? (uint32_t)esk_partition_for_key(topic->config.partitioner, record->key,
                                                  (int32_t)topic->partition_count)
                : atomic_fetch_add_explicit(&topic->cursor->next, 1, memory_order_relaxed) %
                      topic->partition_count;
    }
    return ESK_OK;
}

/* --- parts -------------------------------------------------------------------------------------
 */

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

static struct job *job_create(struct esk_broker_shard *shard, struct esk_produce *produce,
                              uint64_t first_group, uint32_t part_count) {
    struct job *job = esk_alloc_zeroed(1, sizeof(*job) + part_count * sizeof(struct part));
    job->home = shard;
    job->produce = produce;
    job->first_group = first_group;
    job->part_count = part_count;
    return job;
}

static struct job *split(struct esk_broker_shard *shard, struct esk_produce *produce,
                         const struct esk_topic *topic) {
    uint32_t count = 1;
    if (produce->record_count == 1 || topic->partition_count == 1) {
        for (uint32_t i = 0; i < produce->record_count; i++) {
            produce->records[i].written_offset = 0;
        }
    } else {
        uint32_t *slots = esk_alloc_zeroed(topic->partition_count, sizeof(*slots));
        count = number_parts(produce, slots);
        free(slots);
    }
    struct job *job = job_create(shard, produce, topic->first_group, count);
    for (uint32_t i = 0; i < produce->record_count; i++) {
        const struct esk_produce_record *record = &produce->records[i];
        struct part *part = &job->parts[record->written_offset];
        part->partition = record->written_partition;
        part->record_count++;
        part->size_hint += RECORD_OVERHEAD_BYTES + record->key.size + record->value.size;
    }
    return job;
}

static enum esk_err add_record(struct part *part, const struct esk_produce_record *record) {
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

static enum esk_err build(struct job *job) {
    struct esk_produce *produce = job->produce;
    int64_t now_ms = esk_wall_ms(job->home->broker->options.platform);
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        part->job = job;
        part->owner = eski_owner(job->home->broker, job->first_group + part->partition);
        esk_batch_builder_begin(&part->builder, now_ms, ESK_BATCH_HEADER_BYTES + part->size_hint);
    }
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < produce->record_count && err == ESK_OK; i++) {
        err = add_record(&job->parts[produce->records[i].written_offset], &produce->records[i]);
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        if (err == ESK_OK) {
            part->submit.block = esk_batch_builder_finish(&part->builder);
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

/* --- the way there and back --------------------------------------------------------------------
 */

static void answer(struct job *job) {
    struct esk_produce *produce = job->produce;
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < job->part_count && err == ESK_OK; i++) {
        job->parts[i].next_offset = job->parts[i].submit.base_offset;
        err = job->parts[i].err;
    }
    if (err != ESK_OK) {
        eski_explain(err, &produce->error);
    } else {
        for (uint32_t i = 0; i < produce->record_count; i++) {
            struct esk_produce_record *record = &produce->records[i];
            record->written_offset = job->parts[record->written_offset].next_offset++;
        }
    }
    eski_end(job->home);
    free(job);
    produce->done(produce, err);
}

static void part_back(struct esk_mail *mail) {
    struct job *job = ESK_CONTAINER(mail, struct part, mail)->job;
    if (--job->waiting == 0) {
        answer(job);
    }
}

static void part_written(struct esk_submit *submit, enum esk_err err) {
    struct part *part = ESK_CONTAINER(submit, struct part, submit);
    part->err = err;
    if (part->owner == part->job->home) {
        part_back(&part->mail);
    } else {
        eski_post(part->job->home, &part->mail, part_back);
    }
}

static void part_fail(struct esk_mail *mail) {
    struct part *part = ESK_CONTAINER(mail, struct part, mail);
    part_written(&part->submit, ESK_ERR_NOT_FOUND);
}

static void part_run(struct esk_mail *mail) {
    struct part *part = ESK_CONTAINER(mail, struct part, mail);
    struct esk_partition *partition =
        esk_shard_find(part->owner->log, part->job->first_group + part->partition);
    part->submit.done = part_written;
    if (partition == NULL) { /* deleted since it was routed */
        esk_block_release(part->submit.block);
        eski_post(part->owner, mail, part_fail);
        return;
    }
    esk_partition_submit(partition, &part->submit);
}

static void send(struct job *job) {
    job->waiting = job->part_count;
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct part *part = &job->parts[i];
        if (part->owner == job->home) {
            part_run(&part->mail);
        } else {
            eski_post(part->owner, &part->mail, part_run);
        }
    }
}

static void answer_run(struct esk_mail *mail) {
    struct job *job = ESK_CONTAINER(mail, struct job, mail);
    struct esk_produce *produce = job->produce;
    enum esk_err err = job->err;
    eski_end(job->home);
    free(job);
    produce->done(produce, err);
}

static void answer_later(struct esk_broker_shard *shard, struct esk_produce *produce,
                         enum esk_err err) {
    struct job *job = job_create(shard, produce, 0, 0);
    job->err = err;
    eski_post(shard, &job->mail, answer_run);
}

void esk_broker_produce(struct esk_broker_shard *shard, struct esk_produce *produce) {
    eski_begin(shard);
    const struct esk_topic *topic = eski_serving_topic(shard, produce->topic);
    enum esk_err err = topic == NULL ? eski_unknown_topic(produce->topic, &produce->error)
                                     : route(shard, produce, topic);
    if (err != ESK_OK || produce->record_count == 0) {
        answer_later(shard, produce, err);
        return;
    }
    struct job *job = split(shard, produce, topic);
    err = build(job);
    if (err != ESK_OK) {
        free(job);
        answer_later(shard, produce, err);
        return;
    }
    send(job);
}
