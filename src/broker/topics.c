/* SPDX-License-Identifier: Apache-2.0 */
/* Topics: what each change of them checks and makes. A crash between an entry and what follows it
 * leaves a topic whose partitions are made at the next start, or a tombstone that the next start
 * works off. */
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

static void reply(struct eski_change *change, enum esk_err err, const struct esk_error *error) {
    struct eski_topic_job *job = (struct eski_topic_job *)change;
    if (job->operation == NULL) {
        return;
    }
    struct answer *answer = esk_alloc_zeroed(1, sizeof(*answer));
    answer->home = change->home;
    answer->operation = job->operation;
    answer->err = err;
    answer->resolved = job->resolved;
    if (err != ESK_OK && error != NULL) {
        answer->error = *error;
    }
    job->operation = NULL;
    eski_post(change->home, &answer->mail, answer_run);
}

static void configure_partitions(struct esk_broker_shard *shard, const struct esk_topic *topic) {
    const struct esk_partition_settings settings = eski_partition_settings(&topic->config);
    for (uint32_t i = 0; i < topic->partition_count; i++) {
        struct esk_partition *partition = esk_shard_find(shard->log, topic->first_group + i);
        if (partition != NULL) {
            esk_partition_configure(partition, &settings);
        }
    }
}

void eski_topic_change_arrived(struct esk_broker_shard *shard,
                               const struct esk_catalogue_change *entry) {
    if (entry->kind == ESK_CATALOGUE_TOPIC_CREATED) {
        esk_catalogue_topic(&shard->catalogue, entry->topic_created.first_group)->serving = true;
    } else if (entry->kind == ESK_CATALOGUE_TOPIC_CONFIGURED) {
        configure_partitions(
            shard, esk_catalogue_topic(&shard->catalogue, entry->topic_configured.first_group));
    }
}

/* --- the line --- */

static void applied(struct eski_change *change) {
    struct eski_topic_job *job = (struct eski_topic_job *)change;
    if (job->kind == ESKI_CREATE) {
        eski_topic_create_applied(job);
    } else if (job->kind == ESKI_DELETE) {
        eski_topic_delete_applied(job);
    } else {
        if (job->kind == ESKI_CONFIGURE) {
            configure_partitions(change->zero,
                                 esk_catalogue_topic(&change->zero->catalogue, job->first_group));
        }
        eski_change_publish_and_reply(change, NULL);
    }
}

/* Checks the job against the catalogue as it is now and makes its change. */
static enum esk_err decide(struct eski_change *line, const struct esk_catalogue *catalogue,
                           struct esk_catalogue_change *change, struct esk_error *error) {
    struct eski_topic_job *job = (struct eski_topic_job *)line;
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

const struct eski_change_ops eski_topic_ops = {decide, applied, reply};

/* --- the doors' calls --- */

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
    job->operation = operation;
    eski_begin(shard);
    job->kind = kind;
    job->name = operation->name;
    job->partition_count = operation->partition_count;
    job->config = operation->config;
    job->change.home = shard;
    job->change.frees_room = kind == ESKI_DELETE;
    struct esk_error error;
    enum esk_err err = check(job, &error);
    if (err != ESK_OK) {
        reply(&job->change, err, &error);
        free(job);
        return;
    }
    eski_change_start(&job->change, shard, &eski_topic_ops);
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
