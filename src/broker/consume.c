/* SPDX-License-Identifier: Apache-2.0 */
/* Consume: the owner's shard resolves the read into whole batches; their references come back by
 * mail and are released by whoever encodes them. A cancel follows the read to its shard and back,
 * so that neither outlives the other. */
#include "broker/broker_private.h"
#include "broker/quotas.h"

#include "base/assert.h"

#include <stdlib.h>

struct job {
    struct esk_mail mail;
    struct esk_mail cancel_mail;
    struct esk_broker_shard *home;
    struct esk_broker_shard *owner;
    struct esk_consume *consume; /* NULL once it was answered */
    uint64_t group_id;
    struct esk_read read;
    enum esk_err err;
    bool read_done; /* the owner's */
    bool is_near;   /* home is the owner, and starts the read: nothing is posted */
    bool cancelling;
};

static void job_destroy_if_done(struct job *job) {
    if (job->consume == NULL && !job->cancelling) {
        free(job);
    }
}

static void job_back(struct esk_mail *mail) {
    struct job *job = ESK_CONTAINER(mail, struct job, mail);
    struct esk_consume *consume = job->consume;
    const struct esk_read *read = &job->read;
    enum esk_err err = job->err;
    consume->parts = NULL;
    consume->part_count = 0;
    consume->start_offset = read->start_offset;
    consume->high_watermark = read->high_watermark;
    if (err == ESK_OK) {
        /* struct esk_consume_part and struct esk_read_part are the same on purpose */
        consume->parts = (struct esk_consume_part *)(void *)read->parts;
        consume->part_count = read->part_count;
    } else if (err == ESK_ERR_NOT_FOUND || err == ESK_ERR_UNAVAILABLE) {
        eski_explain(err, &consume->error);
    } else {
        consume->error = read->error;
    }
    job->consume = NULL;
    consume->internal = NULL;
    eski_end(job->home);
    job_destroy_if_done(job);
    consume->done(consume, err);
}

static void read_done(struct esk_read *read, enum esk_err err) {
    struct job *job = ESK_CONTAINER(read, struct job, read);
    job->err = err;
    if (read->away) { /* it is at home, and read_done the owner's */
        job_back(&job->mail);
        return;
    }
    job->read_done = true;
    if (err != ESK_OK) {
        esk_read_release(read);
    }
    if (!job->is_near) {
        eski_post(job->home, &job->mail, job_back);
    }
}

static void job_run(struct esk_mail *mail) {
    struct job *job = ESK_CONTAINER(mail, struct job, mail);
    struct esk_partition *partition = esk_shard_find(job->owner->log, job->group_id);
    if (partition == NULL) {
        read_done(&job->read, ESK_ERR_NOT_FOUND);
        return;
    }
    job->read.done = read_done;
    bool is_near = job->home == job->owner;
    job->is_near = is_near;
    esk_partition_read(partition, &job->read);
    if (is_near) { /* else the job may be gone */
        job->is_near = false;
        if (job->read_done) {
            job_back(mail);
        }
    }
}

static void cancel_back(struct esk_mail *mail) {
    struct job *job = ESK_CONTAINER(mail, struct job, cancel_mail);
    job->cancelling = false;
    eski_end(job->home);
    job_destroy_if_done(job);
}

static void cancel_run(struct esk_mail *mail) {
    struct job *job = ESK_CONTAINER(mail, struct job, cancel_mail);
    if (!job->read_done) {
        esk_partition_read_cancel(&job->read);
    }
    eski_post(job->home, mail, cancel_back);
}

static void job_refuse(struct esk_mail *mail) {
    struct job *job = ESK_CONTAINER(mail, struct job, mail);
    struct esk_consume *consume = job->consume;
    job->consume = NULL;
    consume->internal = NULL;
    eski_end(job->home);
    job_destroy_if_done(job);
    consume->done(consume, consume->error.code);
}

void esk_broker_consume(struct esk_broker_shard *shard, struct esk_consume *consume) {
    struct job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->home = shard;
    job->consume = consume;
    eski_begin(shard);
    consume->internal = job;
    consume->parts = NULL;
    consume->part_count = 0;
    const struct esk_topic *topic = eski_serving_topic(shard, consume->topic);
    enum esk_err err;
    if (topic == NULL) {
        err = eski_unknown_topic(consume->topic, &consume->error);
    } else if (consume->partition >= topic->partition_count) {
        err = eski_unknown_partition(consume->topic, consume->partition, &consume->error);
    } else {
        err = esk_quota_check_consume(consume->caller, esk_loop_now_ns(shard->loop),
                                      &consume->retry_after_s, &consume->error);
    }
    if (err != ESK_OK) {
        job->owner = shard;
        job->read_done = true;
        eski_post(shard, &job->mail, job_refuse);
        return;
    }
    job->group_id = topic->first_group + consume->partition;
    job->owner = eski_owner(shard->broker, job->group_id);
    job->read.offset = consume->offset;
    job->read.bytes_max = consume->bytes_max;
    job->read.records_max = consume->records_max;
    job->read.wait_ms = consume->wait_ms;
    job->read.reader = shard->log;
    eski_post(job->owner, &job->mail, job_run);
}

void esk_broker_consume_cancel(struct esk_broker_shard *shard, struct esk_consume *consume) {
    struct job *job = consume->internal;
    if (job != NULL && !job->cancelling) {
        job->cancelling = true;
        eski_begin(shard);
        eski_post(job->owner, &job->cancel_mail, cancel_run);
    }
}

void esk_consume_fini(struct esk_consume *consume) {
    for (uint32_t i = 0; i < consume->part_count; i++) {
        esk_block_release(consume->parts[i].block);
    }
    free(consume->parts);
    consume->parts = NULL;
    consume->part_count = 0;
}
