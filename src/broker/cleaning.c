/* SPDX-License-Identifier: Apache-2.0 */
/* A pass in every shard, and the sum of what they did. */
#include "broker/cleaning.h"

#include "broker/broker_private.h"

#include <stdlib.h>

/* One shard's part. */
struct esk_cleaning_job {
    struct esk_mail mail;
    struct esk_cleaning *cleaning;
    struct esk_broker_shard *target;
    struct esk_retention_pass retention;
    struct esk_compaction_pass compaction;
};

static void job_back(struct esk_mail *mail) {
    struct esk_cleaning_job *job = ESK_CONTAINER(mail, struct esk_cleaning_job, mail);
    struct esk_cleaning *cleaning = job->cleaning;
    cleaning->segments += job->retention.segments_deleted + job->compaction.segments_compacted;
    cleaning->records_removed += job->compaction.records_removed;
    cleaning->bytes_freed += job->retention.bytes_freed + job->compaction.bytes_freed;
    if (--cleaning->waiting > 0) {
        return;
    }
    eski_end(cleaning->home);
    free(cleaning->jobs);
    cleaning->jobs = NULL;
    cleaning->done(cleaning);
}

static void retained(struct esk_retention_pass *pass) {
    struct esk_cleaning_job *job = ESK_CONTAINER(pass, struct esk_cleaning_job, retention);
    eski_post(job->cleaning->home, &job->mail, job_back);
}

static void retention_run(struct esk_mail *mail) {
    struct esk_cleaning_job *job = ESK_CONTAINER(mail, struct esk_cleaning_job, mail);
    job->retention.done = retained;
    job->retention.everything = true;
    esk_shard_run_retention(job->target->log, &job->retention);
}

static void compacted(struct esk_compaction_pass *pass) {
    struct esk_cleaning_job *job = ESK_CONTAINER(pass, struct esk_cleaning_job, compaction);
    eski_post(job->cleaning->home, &job->mail, job_back);
}

static void compaction_run(struct esk_mail *mail) {
    struct esk_cleaning_job *job = ESK_CONTAINER(mail, struct esk_cleaning_job, mail);
    job->compaction.done = compacted;
    job->compaction.everything = true;
    esk_shard_run_compaction(job->target->log, &job->compaction);
}

static void begin(struct esk_broker_shard *shard, struct esk_cleaning *cleaning,
                  void (*run)(struct esk_mail *mail)) {
    struct esk_broker *broker = shard->broker;
    cleaning->home = shard;
    cleaning->waiting = broker->shard_count;
    cleaning->segments = cleaning->records_removed = cleaning->bytes_freed = 0;
    cleaning->jobs = esk_alloc_zeroed(broker->shard_count, sizeof(*cleaning->jobs));
    eski_begin(shard);
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        struct esk_cleaning_job *job = &cleaning->jobs[i];
        job->cleaning = cleaning;
        job->target = &broker->shards[i];
        eski_post(job->target, &job->mail, run);
    }
}

void esk_broker_run_retention(struct esk_broker_shard *shard, struct esk_cleaning *cleaning) {
    begin(shard, cleaning, retention_run);
}

void esk_broker_run_compaction(struct esk_broker_shard *shard, struct esk_cleaning *cleaning) {
    begin(shard, cleaning, compaction_run);
}
