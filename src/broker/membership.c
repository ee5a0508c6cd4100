/* SPDX-License-Identifier: Apache-2.0 */
/* Members' calls in the client's shard: what is asked is checked against its copy of the catalogue,
 * the group becomes the caller's if it is nobody's, and what the coordinator answered is given
 * names. */
#include "broker/membership_private.h"

#include "model/limits.h"
#include "model/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hex_digit(uint8_t byte) {
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* 0: not a member's id, so an unknown member's. */
static uint64_t parse_member(struct esk_slice text) {
    uint64_t id = 0;
    if (text.size != ESK_MEMBER_ID_BYTES || text.data[0] != 'm' || text.data[1] != '_') {
        return 0;
    }
    for (size_t i = 2; i < ESK_MEMBER_ID_BYTES; i++) {
        int digit = hex_digit(text.data[i]);
        if (digit < 0) {
            return 0;
        }
        id = id << 4 | (uint64_t)digit;
    }
    return id;
}

/* --- the answer --- */

static int compare_partitions(const void *a, const void *b) {
    const struct esk_member_partition *left = a;
    const struct esk_member_partition *right = b;
    int order = left->topic == right->topic ? 0 : strcmp(left->topic, right->topic);
    if (order != 0) {
        return order;
    }
    return left->partition < right->partition ? -1 : left->partition > right->partition;
}

/* What the member has, by name. A topic that is going has none any more, though the generation that
 * comes without it may not be there yet. Held ones come topic by topic. */
static void name_partitions(const struct eski_member_job *job,
                            struct esk_member_operation *operation) {
    operation->partitions = esk_alloc((job->held_count + 1) * sizeof(*operation->partitions));
    operation->names = NULL;
    const struct esk_topic *topic = NULL;
    for (size_t i = 0; i < job->held_count; i++) {
        const struct eski_held *held = &job->held[i];
        if (i == 0 || held->topic != job->held[i - 1].topic) {
            topic = esk_catalogue_topic(&job->home->catalogue, held->topic);
            topic = topic == NULL || topic->deleted || !topic->serving ? NULL : topic;
            if (topic != NULL) {
                operation->names =
                    esk_realloc(operation->names, (operation->name_count + 1) * sizeof(char *));
                operation->names[operation->name_count++] = esk_text_copy(topic->name);
            }
        }
        if (topic != NULL) {
            operation->partitions[operation->partition_count++] = (struct esk_member_partition){
                operation->names[operation->name_count - 1], held->partition};
        }
    }
    if (operation->name_count > 1) {
        qsort(operation->partitions, operation->partition_count, sizeof(*operation->partitions),
              compare_partitions);
    }
}

static void finish(struct eski_member_job *job) {
    struct esk_member_operation *operation = job->operation;
    enum esk_err err = job->err;
    operation->status = job->status;
    operation->generation = job->generation;
    operation->error = job->error;
    snprintf(operation->member, sizeof(operation->member), "m_%016" PRIx64, job->member_id);
    if (err == ESK_OK && (job->act == ESKI_JOIN || job->act == ESKI_ASSIGNMENT)) {
        name_partitions(job, operation);
    } else if (err != ESK_OK && operation->error.code != err) {
        eski_explain(err, &operation->error);
    }
    eski_end(job->home);
    free(job->topics);
    free(job->held);
    free(job);
    operation->done(operation, err);
}

static void refuse_run(struct esk_mail *mail) {
    finish(ESK_CONTAINER(mail, struct eski_member_job, mail));
}

/* At home, from inside the starting call too. */
static void refuse(struct eski_member_job *job, enum esk_err err) {
    job->err = err;
    eski_post(job->home, &job->mail, refuse_run);
}

static void back_run(struct esk_mail *mail);

void eski_member_answer(struct eski_member_job *job, enum esk_err err) {
    if (job->operation == NULL) {
        free(job);
        return;
    }
    job->err = err;
    eski_post(job->home, &job->mail, back_run);
}

/* --- on the way --- */

static void send(struct eski_member_job *job) {
    eski_post(job->coordinator, &job->mail, eski_member_arrive);
}

static void claimed(struct eski_claim *claim, enum esk_err err) {
    struct eski_member_job *job = ESK_CONTAINER(claim, struct eski_member_job, claim);
    if (err != ESK_OK) {
        job->error = claim->change.error;
        job->err = err;
        finish(job);
        return;
    }
    send(job);
}

static void claim_first(struct eski_member_job *job) {
    job->claim.group = job->group;
    job->claim.owner = job->owner;
    job->claim.admin = job->admin;
    job->claim.done = claimed;
    eski_claim_start(job->home, &job->claim);
}

static void back_run(struct esk_mail *mail) {
    struct eski_member_job *job = ESK_CONTAINER(mail, struct eski_member_job, mail);
    if (job->claim_again) {
        job->claim_again = false;
        claim_first(job);
        return;
    }
    finish(job);
}

static int compare_topics(const void *a, const void *b) {
    const struct esk_group_topic *left = a;
    const struct esk_group_topic *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* The topics that a join names, by id, each once. */
static enum esk_err resolve_topics(struct eski_member_job *job) {
    const struct esk_member_operation *operation = job->operation;
    job->topics = esk_alloc_zeroed(operation->topic_count, sizeof(*job->topics));
    for (uint32_t i = 0; i < operation->topic_count; i++) {
        const struct esk_topic *topic = eski_serving_topic(job->home, operation->topics[i]);
        if (topic == NULL) {
            return eski_unknown_topic(operation->topics[i], &job->error);
        }
        job->topics[i].id = topic->first_group;
        job->topics[i].partition_count = topic->partition_count;
    }
    qsort(job->topics, operation->topic_count, sizeof(*job->topics), compare_topics);
    for (uint32_t i = 0; i < operation->topic_count; i++) {
        if (i == 0 || job->topics[i].id != job->topics[i - 1].id) {
            job->topics[job->topic_count++] = job->topics[i];
        }
    }
    return ESK_OK;
}

/* What needs no coordinator. */
static enum esk_err check(struct eski_member_job *job) {
    const struct esk_member_operation *operation = job->operation;
    enum esk_err err = esk_id_check(job->group, "group", &job->error);
    if (err == ESK_OK &&
        eski_group_ownership(job->home, job->group, job->owner, job->admin) == ESKI_FOREIGN) {
        err = eski_foreign_group(job->group, &job->error);
    }
    if (err != ESK_OK || job->act != ESKI_JOIN) {
        return err;
    }
    if (operation->topic_count < 1 || operation->topic_count > ESK_MEMBER_TOPICS_MAX) {
        return esk_fail(&job->error, ESK_ERR_INVALID, "topics: name 1 to %d of them",
                        ESK_MEMBER_TOPICS_MAX);
    }
    return resolve_topics(job);
}

static void start(struct esk_broker_shard *shard, struct esk_member_operation *operation,
                  enum eski_member_act act) {
    struct eski_member_job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->home = shard;
    job->operation = operation;
    job->act = act;
    job->group = operation->group;
    job->owner = operation->owner;
    job->admin = operation->admin;
    job->member_id = operation->member_id.data == NULL ? 0 : parse_member(operation->member_id);
    operation->partitions = NULL;
    operation->partition_count = 0;
    operation->names = NULL;
    operation->name_count = 0;
    eski_begin(shard);
    enum esk_err err = check(job);
    if (err != ESK_OK) {
        refuse(job, err);
        return;
    }
    job->partition = esk_offsets_partition(job->group, shard->broker->options.offset_partitions);
    job->coordinator = eski_owner(shard->broker, ESK_FIRST_OFFSET_GROUP + job->partition);
    if (act == ESKI_JOIN &&
        eski_group_ownership(shard, job->group, job->owner, job->admin) == ESKI_UNOWNED) {
        claim_first(job);
        return;
    }
    send(job);
}

void esk_broker_group_join(struct esk_broker_shard *shard, struct esk_member_operation *operation) {
    start(shard, operation, ESKI_JOIN);
}

void esk_broker_group_leave(struct esk_broker_shard *shard,
                            struct esk_member_operation *operation) {
    start(shard, operation, ESKI_LEAVE);
}

void esk_broker_group_assignment(struct esk_broker_shard *shard,
                                 struct esk_member_operation *operation) {
    start(shard, operation, ESKI_ASSIGNMENT);
}

void esk_broker_group_heartbeat(struct esk_broker_shard *shard,
                                struct esk_member_operation *operation) {
    start(shard, operation, ESKI_HEARTBEAT);
}

void esk_broker_group_delete(struct esk_broker_shard *shard,
                             struct esk_member_operation *operation) {
    start(shard, operation, ESKI_GROUP_DELETE);
}

void esk_member_operation_fini(struct esk_member_operation *operation) {
    for (uint32_t i = 0; i < operation->name_count; i++) {
        free(operation->names[i]);
    }
    free(operation->names);
    free(operation->partitions);
    operation->names = NULL;
    operation->partitions = NULL;
    operation->name_count = 0;
    operation->partition_count = 0;
}
