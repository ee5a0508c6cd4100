/* SPDX-License-Identifier: Apache-2.0 */
/* The line of catalogue changes, and what all of them share. A crash between an entry and what
 * follows it leaves a topic whose partitions are made at the next start, or a tombstone that the
 * next start works off. */
#include "broker/topics_private.h"

#include "base/assert.h"
#include "model/limits.h"
#include "model/names.h"

#include <stdlib.h>
#include <string.h>

/* An answer on its way to the client's shard. */
struct answer {
    struct esk_mail mail;
    struct esk_broker_shard *home;
    struct esk_topic_operation *operation;
    enum esk_err err;
    struct esk_topic_config resolved;
    struct esk_error error;
};

static void answer_run(struct esk_mail *mail) {
    struct answer *answer = ESK_CONTAINER(mail, struct answer, mail);
    struct esk_topic_operation *operation = answer->operation;
    enum esk_err err = answer->err;
    operation->resolved = answer->resolved;
    operation->error = answer->error;
    eski_end(answer->home);
    free(answer);
    operation->done(operation, err);
}

void eski_topic_reply(struct eski_topic_job *job, enum esk_err err, const struct esk_error *error) {
    if (job->operation == NULL) {
        return;
    }
    struct answer *answer = esk_alloc_zeroed(1, sizeof(*answer));
    answer->home = job->home;
    answer->operation = job->operation;
    answer->err = err;
    answer->resolved = job->resolved;
    if (err != ESK_OK && error != NULL) {
        answer->error = *error;
    }
    job->operation = NULL;
    eski_post(job->home, &answer->mail, answer_run);
}

void eski_topic_job_destroy(struct eski_topic_job *job) {
    if (job->counted) {
        eski_end(job->zero);
    }
    esk_block_release(job->payload);
    free(job);
}

void eski_topic_job_count(struct eski_topic_job *job) {
    job->counted = true;
    eski_begin(job->zero);
}

/* --- copies --- */

/* An answer that waits until every copy has the change: the next request may come to any shard. */
struct round {
    struct eski_topic_job *job;
    size_t waiting;
};

struct publication {
    struct esk_mail mail;
    struct round *round; /* NULL: nobody waits */
    struct esk_broker_shard *shard;
    struct esk_topic_cursor *cursor;
    struct esk_block *payload;
};

static void configure_partitions(struct esk_broker_shard *shard, const struct esk_topic *topic) {
    const struct esk_partition_settings settings = eski_partition_settings(&topic->config);
    for (uint32_t i = 0; i < topic->partition_count; i++) {
        struct esk_partition *partition = esk_shard_find(shard->log, topic->first_group + i);
        if (partition != NULL) {
            esk_partition_configure(partition, &settings);
        }
    }
}

static void round_done(struct round *round) {
    eski_topic_reply(round->job, ESK_OK, NULL);
    eski_topic_job_destroy(round->job);
    free(round);
}

static void publication_back(struct esk_mail *mail) {
    struct publication *publication = ESK_CONTAINER(mail, struct publication, mail);
    struct round *round = publication->round;
    free(publication);
    if (--round->waiting == 0) {
        round_done(round);
    }
}

static void publication_run(struct esk_mail *mail) {
    struct publication *publication = ESK_CONTAINER(mail, struct publication, mail);
    struct esk_broker_shard *shard = publication->shard;
    struct esk_slice payload = esk_slice(publication->payload->data, publication->payload->size);
    struct esk_catalogue_change change;
    ESK_ASSERT(esk_catalogue_decode(payload, &change, NULL) == ESK_OK);
    ESK_ASSERT(esk_catalogue_apply(&shard->catalogue, payload, publication->cursor, NULL) ==
               ESK_OK);
    if (change.kind == ESK_CATALOGUE_TOPIC_CREATED) {
        esk_catalogue_topic(&shard->catalogue, change.topic_created.first_group)->serving = true;
    } else if (change.kind == ESK_CATALOGUE_TOPIC_CONFIGURED) {
        configure_partitions(
            shard, esk_catalogue_topic(&shard->catalogue, change.topic_configured.first_group));
    }
    esk_block_release(publication->payload);
    if (publication->round != NULL) {
        eski_post(&shard->broker->shards[0], mail, publication_back);
    } else {
        free(publication);
    }
}

static void publish(struct esk_broker *broker, struct esk_block *payload,
                    struct esk_topic_cursor *cursor, struct round *round) {
    for (uint32_t i = 1; i < broker->shard_count; i++) {
        struct publication *publication = esk_alloc_zeroed(1, sizeof(*publication));
        publication->shard = &broker->shards[i];
        publication->cursor = cursor;
        publication->round = round;
        publication->payload = esk_block_retain(payload);
        eski_post(publication->shard, &publication->mail, publication_run);
    }
}

void eski_topic_publish(struct esk_broker *broker, struct esk_block *payload,
                        struct esk_topic_cursor *cursor) {
    publish(broker, payload, cursor, NULL);
}

void eski_topic_publish_and_reply(struct eski_topic_job *job, struct esk_topic_cursor *cursor) {
    struct esk_broker *broker = job->zero->broker;
    struct round *round = esk_alloc_zeroed(1, sizeof(*round));
    round->job = job;
    round->waiting = broker->shard_count - 1;
    if (round->waiting == 0) {
        round_done(round);
    } else {
        publish(broker, job->payload, cursor, round);
    }
}

/* --- the line --- */

static void start_next(struct esk_broker_shard *zero);

static void configure_applied(struct eski_topic_job *job) {
    configure_partitions(job->zero, esk_catalogue_topic(&job->zero->catalogue, job->first_group));
    eski_topic_publish_and_reply(job, NULL);
}

static void applied(struct esk_submit *submit, enum esk_err err) {
    struct eski_topic_job *job = ESK_CONTAINER(submit, struct eski_topic_job, submit);
    struct esk_broker_shard *zero = job->zero;
    zero->changing = false;
    if (err != ESK_OK) {
        struct esk_error error;
        eski_explain(err, &error);
        eski_topic_reply(job, err, &error);
        eski_topic_job_destroy(job);
    } else if (job->kind == ESKI_CREATE) {
        eski_topic_create_applied(job);
    } else if (job->kind == ESKI_CONFIGURE) {
        configure_applied(job);
    } else if (job->kind == ESKI_DELETE) {
        eski_topic_delete_applied(job);
    } else {
        eski_topic_publish_and_reply(job, NULL);
    }
    start_next(zero);
}

static void late(struct esk_submit *submit) {
    struct eski_topic_job *job = ESK_CONTAINER(submit, struct eski_topic_job, submit);
    struct esk_error error;
    eski_explain(ESK_ERR_AGAIN, &error);
    eski_topic_reply(job, ESK_ERR_AGAIN, &error);
}

/* Checks the job against the catalogue as it is now and makes its change. */
static enum esk_err decide(struct eski_topic_job *job, struct esk_catalogue_change *change,
                           struct esk_error *error) {
    struct esk_catalogue *catalogue = &job->zero->catalogue;
    struct esk_topic *topic =
        job->operation == NULL ? NULL : esk_catalogue_find(catalogue, job->name);
    if (job->kind == ESKI_FORGET) {
        *change = (struct esk_catalogue_change){.kind = ESK_CATALOGUE_TOPIC_GONE,
                                                .topic_gone = {job->first_group}};
        return ESK_OK;
    }
    if (job->kind == ESKI_CREATE) {
        if (topic != NULL) {
            return esk_fail(error, ESK_ERR_CONFLICT, "topic '%s' exists", topic->name);
        }
        job->first_group = catalogue->next_group;
        *change = esk_catalogue_configuration(job->first_group, &job->resolved);
        change->kind = ESK_CATALOGUE_TOPIC_CREATED;
        change->topic_created = (struct esk_catalogue_topic_created){
            .first_group = job->first_group,
            .partition_count = job->partition_count,
            .name = job->name,
            .retention_ms = job->resolved.retention_ms,
            .retention_bytes = job->resolved.retention_bytes,
            .cleanup_policy = job->resolved.cleanup_policy,
            .segment_bytes = job->resolved.segment_bytes,
            .tombstone_retention_ms = job->resolved.tombstone_retention_ms,
            .partitioner = (uint8_t)job->resolved.partitioner,
        };
        return ESK_OK;
    }
    if (topic == NULL || !topic->serving) {
        return eski_unknown_topic(job->name, error);
    }
    job->first_group = topic->first_group;
    job->partition_count = topic->partition_count;
    if (job->kind == ESKI_DELETE) {
        *change = (struct esk_catalogue_change){.kind = ESK_CATALOGUE_TOPIC_DELETED,
                                                .topic_deleted = {job->first_group}};
        return ESK_OK;
    }
    job->resolved = topic->config;
    enum esk_err err = esk_topic_config_apply(&job->resolved, job->config, false, error);
    *change = esk_catalogue_configuration(job->first_group, &job->resolved);
    return err;
}

static void start_next(struct esk_broker_shard *zero) {
    struct esk_link *link;
    while (!zero->changing && (link = esk_list_first(&zero->changes)) != NULL) {
        struct eski_topic_job *job = ESK_CONTAINER(link, struct eski_topic_job, link);
        esk_list_remove(link);
        struct esk_catalogue_change change;
        struct esk_error error;
        enum esk_err err = decide(job, &change, &error);
        if (err != ESK_OK) {
            eski_topic_reply(job, err, &error);
            eski_topic_job_destroy(job);
            continue;
        }
        zero->changing = true;
        job->payload = esk_catalogue_payload(&change);
        job->submit = (struct esk_submit){
            .kind = ESK_ENTRY_CATALOGUE,
            .strict = true,
            .frees_room = job->kind == ESKI_DELETE || job->kind == ESKI_FORGET,
            .block = esk_block_retain(job->payload),
            .done = applied,
            .late = late,
        };
        esk_partition_submit(esk_shard_find(zero->log, ESK_CATALOGUE_GROUP), &job->submit);
    }
}

void eski_topic_job_queue(struct eski_topic_job *job) {
    esk_list_append(&job->zero->changes, &job->link);
    start_next(job->zero);
}

/* --- the doors' calls --- */

static void arrive(struct esk_mail *mail) {
    struct eski_topic_job *job = ESK_CONTAINER(mail, struct eski_topic_job, mail);
    eski_topic_job_count(job);
    eski_topic_job_queue(job);
}

/* Checks what needs no catalogue. */
static enum esk_err check(struct eski_topic_job *job, struct esk_error *error) {
    if (job->kind != ESKI_CREATE) {
        return ESK_OK;
    }
    enum esk_err err = esk_topic_name_check(job->name, error);
    if (err != ESK_OK) {
        return err;
    }
    if (job->partition_count < 1 || job->partition_count > ESK_TOPIC_PARTITIONS_MAX) {
        return esk_fail(error, ESK_ERR_INVALID, "partitions must be from 1 to %d",
                        ESK_TOPIC_PARTITIONS_MAX);
    }
    esk_topic_config_init(&job->resolved);
    return job->config == NULL ? ESK_OK
                               : esk_topic_config_apply(&job->resolved, job->config, true, error);
}

static void start(struct esk_broker_shard *shard, struct esk_topic_operation *operation,
                  enum eski_change_kind kind) {
    struct eski_topic_job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->home = shard;
    job->zero = &shard->broker->shards[0];
    job->operation = operation;
    eski_begin(shard);
    job->kind = kind;
    job->name = operation->name;
    job->partition_count = operation->partition_count;
    job->config = operation->config;
    struct esk_error error;
    enum esk_err err = check(job, &error);
    if (err != ESK_OK) {
        eski_topic_reply(job, err, &error);
        eski_topic_job_destroy(job);
        return;
    }
    eski_post(job->zero, &job->mail, arrive);
}

void esk_broker_topic_create(struct esk_broker_shard *shard,
                             struct esk_topic_operation *operation) {
    start(shard, operation, ESKI_CREATE);
}

void esk_broker_topic_configure(struct esk_broker_shard *shard,
                                struct esk_topic_operation *operation) {
    ESK_ASSERT(operation->config != NULL);
    start(shard, operation, ESKI_CONFIGURE);
}

void esk_broker_topic_delete(struct esk_broker_shard *shard,
                             struct esk_topic_operation *operation) {
    start(shard, operation, ESKI_DELETE);
}
