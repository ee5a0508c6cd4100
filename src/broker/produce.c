/* SPDX-License-Identifier: Apache-2.0 */
/* Produce: once one batch per partition is built (produce_prepare.c), hand each to the shard that
 * owns the partition, answer when all are in; who asks may look at those that are in before.
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
#define RECORD_OVERHEAD_BYTES 12    /* guesses for a batch's first size: besides key and value, */
#define OTHERS_SHARE 8              /* and the part of the whole that a further partition gets */

/* --- the answer --- */

/* Ends a request that was sent. The key pays for what was accepted, a duplicate too. */
static void finish(struct eski_produce_job *job, enum esk_err err, uint64_t accepted_bytes) {
    struct esk_produce *produce = job->produce;
    esk_quota_settle_produce(produce->caller, job->bytes, accepted_bytes);
    eski_end(job->home);
    produce->internal = NULL;
    if (job->is_array) {
        esk_produce_end(produce);
    }
    produce->done(produce, err);
}

void esk_produce_explain(enum esk_err err, bool in_part, struct esk_error *error) {
    struct esk_error whole;
    if (!in_part) {
        eski_explain(err, error);
        return;
    }
    eski_explain(err, &whole);
    (void)esk_fail(error, err, "%s: some of the records were written, some not",
                   err == ESK_ERR_NO_SPACE ? "the disk is full" : whole.text);
}

void eski_produce_refuse(struct eski_produce_job *job, enum esk_err err) {
    finish(job, err, 0);
}

bool esk_produce_next_run(struct esk_produce *produce, struct esk_produce_run *run) {
    struct eski_produce_job *job = produce->job;
    if (job == NULL || job->told_count == job->record_count) {
        return false;
    }
    uint32_t first = job->told_count;
    uint32_t place = eski_produce_place(job, first);
    struct eski_produce_part *part = &job->parts[place];
    if (part->sequenced != NULL) {
        eski_sequenced_tell(part, run);
        job->told_count++;
        return true;
    }
    uint32_t end = job->places == NULL ? job->record_count : first + 1;
    while (end < job->record_count && job->places[end] == place) {
        end++;
    }
    *run = (struct esk_produce_run){.partition = part->partition, .count = end - first};
    if (part->is_back) {
        run->offset = part->next;
        run->err = part->err;
        part->next += run->count;
    } else {
        run->is_out = true;
    }
    job->told_count = end;
    return true;
}

/* Into the records of an array. */
static void tell(struct esk_produce *produce) {
    struct esk_produce_run run;
    struct esk_produce_record *record = produce->records;
    while (esk_produce_next_run(produce, &run)) {
        for (uint32_t i = 0; i < run.count; i++, record++) {
            record->written_partition = run.partition;
            record->written_offset = run.offset + i;
            record->duplicate = run.duplicate;
        }
    }
}

/* The next run is the first one again. What the owner of a part that is out writes is not read. */
static void tell_anew(struct eski_produce_job *job) {
    job->told_count = 0;
    for (uint32_t i = 0; i < job->part_count; i++) {
        struct eski_produce_part *part = &job->parts[i];
        part->next = part->is_back && job->sequenced == NULL ? part->submit.base_offset : 0;
    }
}

static void answer(struct eski_produce_job *job) {
    struct esk_produce *produce = job->produce;
    enum esk_err err = ESK_OK;
    uint64_t accepted_bytes = 0;
    bool in_part = false;
    tell_anew(job);
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct eski_produce_part *part = &job->parts[i];
        accepted_bytes += part->err == ESK_OK ? part->bytes : 0;
        in_part |= part->err == ESK_OK;
        err = err == ESK_OK ? part->err : err;
    }
    if (err != ESK_OK) {
        esk_produce_explain(err, in_part, &produce->error);
    } else if (job->is_array) {
        tell(produce);
    }
    finish(job, err, accepted_bytes);
}

/* --- the way there and back --- */

/* Parts came back, perhaps the last one meanwhile. */
static void show(struct esk_mail *mail) {
    struct eski_produce_job *job = ESK_CONTAINER(mail, struct eski_produce_job, show);
    job->is_show_posted = false;
    if (job->waiting == 0) {
        answer(job);
        return;
    }
    job->shown_waiting = job->waiting;
    tell_anew(job);
    job->produce->advanced(job->produce);
}

/* Each look goes over all records, so one is worth it when a quarter of the parts that were out at
 * the last are back: of 1,000 parts, 24 looks at most. Behind the mails that have come, since
 * parts that were committed together come together. */
static void part_back(struct esk_mail *mail) {
    struct eski_produce_part *part = ESK_CONTAINER(mail, struct eski_produce_part, mail);
    struct eski_produce_job *job = part->job;
    part->is_back = true;
    job->waiting--;
    if (job->is_show_posted) {
        return;
    }
    if (job->waiting == 0) {
        answer(job);
    } else if (job->produce->advanced != NULL && job->sequenced == NULL &&
               job->waiting <= job->shown_waiting - job->shown_waiting / 4) {
        job->is_show_posted = true;
        eski_post(job->home, &job->show, show);
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
        eski_post(part->owner, mail, eski_produce_part_fail);
        return;
    }
    esk_partition_submit(partition, &part->submit);
}

static void send(struct eski_produce_job *job) {
    job->is_sent = true;
    if (job->sequenced != NULL) {
        eski_sequenced_start(job);
        return;
    }
    job->waiting = job->part_count;
    job->shown_waiting = job->part_count;
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
    enum esk_err err;
};

/* Sealed. Sends what there is to send; else *err is the answer. */
static bool sent(struct esk_broker_shard *shard, struct esk_produce *produce, enum esk_err *err) {
    const struct eski_produce_job *job = produce->job;
    if (*err == ESK_OK && job->record_count > 0 && produce->caller != NULL &&
        produce->caller->key != NULL) {
        *err = esk_quota_take_produce(produce->caller, job->bytes,
                                      esk_monotonic_ns(shard->broker->options.platform),
                                      &produce->retry_after_s, &produce->error);
    }
    if (*err != ESK_OK || job->record_count == 0) {
        esk_produce_end(produce);
        return false;
    }
    send(produce->job);
    return true;
}

static void prepared(struct esk_mail *mail) {
    struct preparation *preparation = ESK_CONTAINER(mail, struct preparation, mail);
    struct esk_broker_shard *home = preparation->home;
    struct esk_produce *produce = preparation->produce;
    enum esk_err err = preparation->err;
    free(preparation);
    produce->internal = NULL;
    if (produce->job == NULL || !sent(home, produce, &err)) {
        eski_end(home);
        produce->done(produce, err);
    }
}

static void prepare_run(struct esk_mail *mail) {
    struct preparation *preparation = ESK_CONTAINER(mail, struct preparation, mail);
    preparation->err = eski_produce_put_array(preparation->produce);
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

/* Bytes of the keys and values of an array. */
static uint64_t bytes_of(const struct esk_produce *produce) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < produce->record_count; i++) {
        bytes += produce->records[i].key.size + produce->records[i].value.size;
    }
    return bytes;
}

/* Opens an array's produce and puts its records, or has a helper do it: then ESK_ERR_AGAIN. */
static enum esk_err prepare(struct esk_broker_shard *shard, struct esk_produce *produce) {
    uint64_t bytes = bytes_of(produce);
    size_t guess = (size_t)bytes + (size_t)produce->record_count * RECORD_OVERHEAD_BYTES;
    enum esk_err err = esk_produce_open(shard, produce, guess, guess / OTHERS_SHARE);
    if (err != ESK_OK) {
        return err;
    }
    produce->job->is_array = true;
    /* Would the loop take too long? */
    if (produce->record_count > LOOP_RECORDS_MAX || bytes > LOOP_BYTES_MAX) {
        struct preparation *preparation = preparation_create(shard, produce);
        preparation->mail.run = prepare_run;
        esk_post(shard->broker->helpers, &preparation->mail);
        return ESK_ERR_AGAIN;
    }
    return eski_produce_put_array(produce);
}

void esk_broker_produce(struct esk_broker_shard *shard, struct esk_produce *produce) {
    enum esk_err err = ESK_OK;
    produce->internal = NULL;
    eski_begin(shard);
    if (produce->job == NULL) {
        err = prepare(shard, produce);
    }
    if (err == ESK_ERR_AGAIN) {
        return;
    }
    if (produce->job == NULL || !sent(shard, produce, &err)) {
        answer_later(shard, produce, err);
    }
}
