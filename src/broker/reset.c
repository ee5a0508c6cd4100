/* SPDX-License-Identifier: Apache-2.0 */
/* Every group's commits on a topic move to the partitions' start offsets: the start offsets are
 * asked for first, then each offset partition that has such commits gets one entry. If one fails
 * the answer is an error and the others stay; doing it again is harmless. */
#include "broker/membership_private.h"

#include <stdlib.h>

struct reset_job;

struct part {
    struct esk_mail mail;
    struct reset_job *job;
    struct esk_broker_shard *owner;
    uint32_t partition;
    uint64_t groups;
    struct esk_submit submit;
    enum esk_err err;
};

struct reset_job {
    struct esk_broker_shard *home;
    struct esk_offset_reset *reset;
    struct esk_topic_description description;
    uint64_t topic;
    uint64_t *starts;
    uint32_t start_count;
    uint32_t waiting;
    struct part *parts;
};

static void finish(struct reset_job *job, enum esk_err err) {
    struct esk_offset_reset *reset = job->reset;
    if (err != ESK_OK && reset->error.code != err) {
        eski_explain(err, &reset->error);
    }
    eski_end(job->home);
    free(job->parts);
    free(job->starts);
    free(job);
    reset->done(reset, err);
}

static void part_back(struct esk_mail *mail) {
    struct part *part = ESK_CONTAINER(mail, struct part, mail);
    struct reset_job *job = part->job;
    if (--job->waiting > 0) {
        return;
    }
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < job->home->broker->options.offset_partitions; i++) {
        job->reset->groups += job->parts[i].groups;
        err = err == ESK_OK ? job->parts[i].err : err;
    }
    finish(job, err);
}

static void part_done(struct esk_submit *submit, enum esk_err err) {
    struct part *part = ESK_CONTAINER(submit, struct part, submit);
    part->err = err;
    eski_post(part->job->home, &part->mail, part_back);
}

static void count_group(void *context, const struct esk_consumer_group *group) {
    struct part *part = context;
    part->groups += esk_consumer_group_reads(group, part->job->topic);
}

static void part_run(struct esk_mail *mail) {
    struct part *part = ESK_CONTAINER(mail, struct part, mail);
    struct reset_job *job = part->job;
    const struct esk_topic *topic = esk_catalogue_topic(&part->owner->catalogue, job->topic);
    if (topic == NULL || topic->deleted) {
        part->err = ESK_ERR_NOT_FOUND;
    } else {
        esk_offsets_each(part->owner->offsets[part->partition], count_group, part);
    }
    if (part->groups == 0) {
        eski_post(job->home, mail, part_back);
        return;
    }
    part->submit = (struct esk_submit){
        .kind = ESK_ENTRY_OFFSETS,
        .strict = true,
        .block = esk_offsets_reset_payload(job->topic, job->starts, job->start_count),
        .done = part_done,
    };
    esk_partition_submit(esk_shard_find(part->owner->log, ESK_FIRST_OFFSET_GROUP + part->partition),
                         &part->submit);
}

static void described(struct esk_topic_description *description, enum esk_err err) {
    struct reset_job *job = ESK_CONTAINER(description, struct reset_job, description);
    struct esk_broker *broker = job->home->broker;
    if (err == ESK_OK) {
        job->start_count = description->partition_count;
        job->starts = esk_alloc(job->start_count * sizeof(uint64_t));
        for (uint32_t i = 0; i < job->start_count; i++) {
            job->starts[i] = description->partitions[i].start_offset;
        }
        free(description->partitions);
    } else {
        job->reset->error = description->error;
    }
    if (err != ESK_OK) {
        finish(job, err);
        return;
    }
    job->waiting = broker->options.offset_partitions;
    job->parts = esk_alloc_zeroed(job->waiting, sizeof(struct part));
    for (uint32_t i = 0; i < broker->options.offset_partitions; i++) {
        struct part *part = &job->parts[i];
        part->job = job;
        part->partition = i;
        part->owner = eski_owner(broker, ESK_FIRST_OFFSET_GROUP + i);
        eski_post(part->owner, &part->mail, part_run);
    }
}

void esk_broker_offset_reset(struct esk_broker_shard *shard, struct esk_offset_reset *reset) {
    struct reset_job *job = esk_alloc_zeroed(1, sizeof(*job));
    const struct esk_topic *topic = eski_serving_topic(shard, reset->topic);
    job->home = shard;
    job->reset = reset;
    reset->groups = 0;
    reset->error.code = ESK_OK;
    job->topic = topic == NULL ? 0 : topic->first_group;
    job->description.name = reset->topic;
    job->description.done = described;
    eski_begin(shard);
    esk_broker_topic_describe(shard, &job->description); /* refuses an unknown topic */
}
