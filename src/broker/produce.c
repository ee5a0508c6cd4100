/* SPDX-License-Identifier: Apache-2.0 */
/* Produce: check everything, route each record, build one batch per partition (produce_prepare.c),
 * hand each to the shard that owns the partition, answer when all are in.
 *
 * Invariants: nothing is written unless every record passed; records of one request for one
 * partition keep their order and share one batch; small requests go out in the order of the calls,
 * a large one is prepared in a helper first: a door that needs order waits for it (HTTP serves one
 * request of a connection at a time). When a part fails after others were written the answer is an
 * error and those stay. */
#include "broker/produce_private.h"
#include "broker/quotas.h"

#include <stdlib.h>

#define LOOP_RECORDS_MAX 4096       /* prepared in the loop: about 0.1 us each */
#define LOOP_BYTES_MAX (256u << 10) /* likewise: copying and checksumming takes about 0.1 ms */

/* --- the way there and back --- */

/* The key pays for what was accepted, a duplicate too. */
static void settle(const struct esk_produce *produce, uint64_t written) {
    esk_quota_settle_produce(produce->caller, produce->taken_bytes, written);
}

/* Of a request that failed in part, while its records have the numbers of their parts. */
static uint64_t written_bytes(const struct eski_produce_job *job) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < job->produce->record_count; i++) {
        const struct esk_produce_record *record = &job->produce->records[i];
        if (job->parts[record->written_offset].err == ESK_OK) {
            bytes += eski_record_bytes(record);
        }
    }
    return bytes;
}

static void finish(struct eski_produce_job *job, enum esk_err err) {
    struct esk_produce *produce = job->produce;
    eski_end(job->home);
    free(job);
    produce->internal = NULL;
    produce->done(produce, err);
}

void eski_produce_refuse(struct eski_produce_job *job, enum esk_err err) {
    for (uint32_t i = 0; i < job->part_count; i++) {
        esk_block_release(job->parts[i].submit.block);
    }
    settle(job->produce, 0);
    finish(job, err);
}

static void answer(struct eski_produce_job *job) {
    struct esk_produce *produce = job->produce;
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < job->part_count && err == ESK_OK; i++) {
        job->parts[i].next_offset = job->parts[i].submit.base_offset;
        err = job->parts[i].err;
    }
    settle(produce, err == ESK_OK ? produce->taken_bytes : written_bytes(job));
    if (err != ESK_OK) {
        eski_explain(err, &produce->error);
    } else if (job->sequenced != NULL) {
        eski_sequenced_fill(job);
    } else {
        for (uint32_t i = 0; i < produce->record_count; i++) {
            struct esk_produce_record *record = &produce->records[i];
            record->written_offset = job->parts[record->written_offset].next_offset++;
        }
    }
    finish(job, err);
}

static void part_back(struct esk_mail *mail) {
    struct eski_produce_job *job = ESK_CONTAINER(mail, struct eski_produce_part, mail)->job;
    if (--job->waiting == 0) {
        answer(job);
    }
}

void eski_produce_part_written(struct esk_submit *submit, enum esk_err err) {
    struct eski_produce_part *part = ESK_CONTAINER(submit, struct eski_produce_part, submit);
    part->err = err;
    if (part->owner == part->job->home) {
        part_back(&part->mail);
    } else {
        eski_post(part->job->home, &part->mail, part_back);
    }
}

void eski_produce_part_fail(struct esk_mail *mail) {
    struct eski_produce_part *part = ESK_CONTAINER(mail, struct eski_produce_part, mail);
    eski_produce_part_written(&part->submit, ESK_ERR_NOT_FOUND);
}

static void part_run(struct esk_mail *mail) {
    struct eski_produce_part *part = ESK_CONTAINER(mail, struct eski_produce_part, mail);
    struct esk_partition *partition =
        esk_shard_find(part->owner->log, part->job->first_group + part->partition);
    part->submit.done = eski_produce_part_written;
    if (partition == NULL) { /* deleted since it was routed */
        esk_block_release(part->submit.block);
        eski_post(part->owner, mail, eski_produce_part_fail);
        return;
    }
    esk_partition_submit(partition, &part->submit);
}

static void send(struct eski_produce_job *job) {
    if (job->sequenced != NULL) {
        eski_sequenced_start(job);
        return;
    }
    job->waiting = job->part_count;
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct eski_produce_part *part = &job->parts[i];
        if (part->owner == job->home) {
            part_run(&part->mail);
        } else {
            eski_post(part->owner, &part->mail, part_run);
        }
    }
}

/* --- the door's call --- */

/* A request that is prepared elsewhere, or only answered. */
struct preparation {
    struct esk_mail mail;
    struct esk_broker_shard *home;
    struct esk_produce *produce;
    struct eski_produce_target target;
    struct eski_produce_job *job;
    enum esk_err err;
};

static void prepared(struct esk_mail *mail) {
    struct preparation *preparation = ESK_CONTAINER(mail, struct preparation, mail);
    struct esk_broker_shard *home = preparation->home;
    struct esk_produce *produce = preparation->produce;
    struct eski_produce_job *job = preparation->job;
    enum esk_err err = preparation->err;
    if (preparation->target.cursor != NULL) {
        esk_topic_cursor_release(preparation->target.cursor);
    }
    free(preparation);
    produce->internal = NULL;
    if (job != NULL) {
        send(job);
    } else {
        settle(produce, 0);
        eski_end(home);
        produce->done(produce, err);
    }
}

static void prepare_run(struct esk_mail *mail) {
    struct preparation *preparation = ESK_CONTAINER(mail, struct preparation, mail);
    preparation->err = eski_produce_prepare(preparation->home, preparation->produce,
                                            &preparation->target, &preparation->job);
    eski_post(preparation->home, mail, prepared);
}

static struct preparation *preparation_create(struct esk_broker_shard *shard,
                                              struct esk_produce *produce) {
    struct preparation *preparation = esk_alloc_zeroed(1, sizeof(*preparation));
    preparation->home = shard;
    preparation->produce = produce;
    produce->internal = preparation;
    return preparation;
}

static void answer_later(struct esk_broker_shard *shard, struct esk_produce *produce,
                         enum esk_err err) {
    struct preparation *preparation = preparation_create(shard, produce);
    preparation->err = err;
    eski_post(shard, &preparation->mail, prepared);
}

/* Whether preparing the request would keep the loop too long. */
static bool is_large(const struct esk_produce *produce) {
    uint64_t bytes = 0;
    if (produce->record_count > LOOP_RECORDS_MAX) {
        return true;
    }
    for (uint32_t i = 0; i < produce->record_count; i++) {
        bytes += produce->records[i].key.size + produce->records[i].value.size;
    }
    return bytes > LOOP_BYTES_MAX;
}

void esk_broker_produce(struct esk_broker_shard *shard, struct esk_produce *produce) {
    produce->internal = NULL;
    produce->taken_bytes = 0;
    eski_begin(shard);
    const struct esk_topic *topic = eski_serving_topic(shard, produce->topic);
    if (topic == NULL) {
        answer_later(shard, produce, eski_unknown_topic(produce->topic, &produce->error));
        return;
    }
    const struct eski_produce_target target = {topic->first_group, topic->partition_count,
                                               topic->config.partitioner, topic->cursor};
    if (is_large(produce)) {
        struct preparation *preparation = preparation_create(shard, produce);
        preparation->target = target;
        esk_topic_cursor_retain(target.cursor);
        preparation->mail.run = prepare_run;
        esk_post(shard->broker->helpers, &preparation->mail);
        return;
    }
    struct eski_produce_job *job;
    enum esk_err err = eski_produce_prepare(shard, produce, &target, &job);
    if (job == NULL) {
        answer_later(shard, produce, err);
        return;
    }
    send(job);
}
