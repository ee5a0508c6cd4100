/* SPDX-License-Identifier: Apache-2.0 */
/* A rebalance: all changes that wait in a group's line become one entry. The coordinator copies the
 * membership, a helper makes the next one and its payload, and the entry is submitted unless a
 * topic went meanwhile: then once more. A topic's deletion reaches this shard's catalogue before
 * its entry reaches this partition, so an entry that is submitted with all its topics alive comes
 * before the one that drops them. */
#include "broker/membership_private.h"

#include "base/mutation.h"
#include "model/limits.h"

#include <stdlib.h>

#define RETRY_MS 1000       /* after a silent member could not be removed, for want of room */
#define ANSWERS_PER_TURN 16 /* of joins: about 10 us each with 10,000 partitions */

struct rebalance {
    struct esk_mail mail;
    struct eski_group *group;
    struct esk_link jobs;
    struct esk_group_edit *edits; /* of the jobs, in order */
    size_t edit_count;
    struct esk_membership old;
    struct esk_membership made;
    bool changed;
    uint64_t generation;
    struct esk_block *payload;
    struct esk_submit submit;
    /* the answers */
    enum esk_err err;
    const struct esk_group_edit *next_edit;
};

static struct eski_member_job *job_at(struct esk_link *link) {
    return ESK_CONTAINER(link, struct eski_member_job, link);
}

static bool is_alive(const struct esk_broker_shard *shard, uint64_t topic_id) {
    const struct esk_topic *topic = esk_catalogue_topic(&shard->catalogue, topic_id);
    return topic != NULL && !topic->deleted;
}

/* --- before --- */

static enum esk_err check_join(const struct esk_broker_shard *shard, struct eski_member_job *job) {
    enum eski_ownership ownership = eski_group_ownership(shard, job->group, job->owner, job->admin);
    if (ownership == ESKI_FOREIGN) {
        return eski_foreign_group(job->group, &job->error);
    }
    job->claim_again = ownership == ESKI_UNOWNED;
    for (uint32_t i = 0; i < job->topic_count; i++) {
        if (!is_alive(shard, job->topics[i].id)) {
            return eski_explain(ESK_ERR_NOT_FOUND, &job->error);
        }
    }
    return ESK_OK;
}

/* Sends jobs away that there is nothing to do for. */
static void check_jobs(struct rebalance *rebalance) {
    struct eski_group *group = rebalance->group;
    struct esk_link *next;
    for (struct esk_link *link = rebalance->jobs.next; link != &rebalance->jobs; link = next) {
        struct eski_member_job *job = job_at(link);
        next = link->next;
        enum esk_err err = ESK_OK;
        bool pass = false;
        if (job->act == ESKI_JOIN) {
            err = check_join(group->coordinator->shard, job);
            pass = job->claim_again;
            eski_group_hear(group, job);
        } else if (job->act == ESKI_EXPIRE) {
            const struct eski_watch *watch = esk_u64_map_get(&group->watches, job->member_id);
            pass = watch == NULL || !watch->expired;
        }
        if (pass || err != ESK_OK) {
            esk_list_remove(link);
            eski_member_answer(job, err);
        }
    }
}

static void list_edits(struct rebalance *rebalance) {
    struct esk_platform *platform = rebalance->group->coordinator->shard->broker->options.platform;
    size_t count = 0;
    for (struct esk_link *link = rebalance->jobs.next; link != &rebalance->jobs;
         link = link->next) {
        count++;
    }
    rebalance->edits = esk_alloc_zeroed(count + 1, sizeof(*rebalance->edits));
    rebalance->edit_count = count;
    struct esk_group_edit *edit = rebalance->edits;
    for (struct esk_link *link = rebalance->jobs.next; link != &rebalance->jobs;
         link = link->next, edit++) {
        const struct eski_member_job *job = job_at(link);
        *edit = (struct esk_group_edit){
            .join = job->act == ESKI_JOIN,
            .forced = job->act == ESKI_EXPIRE,
            .member_id = job->member_id,
            .owner = job->owner,
            .topics = job->topics,
            .topic_count = job->topic_count,
            .err = job->act == ESKI_TIDY ? ESK_ERR_NOT_FOUND : ESK_OK, /* passed over */
        };
        if (edit->join) {
            esk_random_bytes(platform, &edit->fresh_id, sizeof(edit->fresh_id));
        }
    }
}

/* The membership as it is, without topics that are going. */
static void copy_state(struct rebalance *rebalance) {
    const struct esk_consumer_group *state = eski_group_state(rebalance->group);
    const struct esk_broker_shard *shard = rebalance->group->coordinator->shard;
    rebalance->generation = 1;
    rebalance->old = (struct esk_membership){0};
    if (state == NULL) {
        return;
    }
    rebalance->generation = state->generation + 1;
    rebalance->old = esk_membership_copy(&state->membership);
    for (uint32_t i = rebalance->old.topic_count; i-- > 0;) {
        if (!is_alive(shard, rebalance->old.topics[i].id)) {
            esk_membership_drop_topic(&rebalance->old, rebalance->old.topics[i].id);
        }
    }
}

static void clear(struct rebalance *rebalance) {
    esk_membership_fini(&rebalance->old);
    esk_membership_fini(&rebalance->made);
    free(rebalance->edits);
    rebalance->edits = NULL;
    esk_block_release(rebalance->payload);
    rebalance->payload = NULL;
}

/* --- after --- */

static enum esk_err explain_edit(const struct esk_group_edit *edit, struct eski_member_job *job) {
    if (edit->err == ESK_ERR_NOT_FOUND) {
        return esk_fail(&job->error, edit->err, "member_id: no such member of the group");
    }
    if (edit->err == ESK_ERR_FORBIDDEN && (!edit->join || edit->member_id != 0)) {
        return esk_fail(&job->error, edit->err, "member_id: the member is of another key");
    }
    if (edit->err == ESK_ERR_FORBIDDEN) {
        return esk_fail(&job->error, edit->err,
                        "the group is full: at most %d members and %d partitions",
                        ESK_GROUP_MEMBERS_MAX, ESK_GROUP_PARTITIONS_MAX);
    }
    return edit->err;
}

static void answer_job(struct eski_group *group, struct eski_member_job *job,
                       const struct esk_group_edit *edit, enum esk_err err) {
    if (job->act == ESKI_EXPIRE && err != ESK_OK) {
        eski_group_refresh(group, job->member_id, RETRY_MS);
    } else if (job->act == ESKI_EXPIRE) {
        ESK_REACHED(MEMBER_EXPIRED);
    }
    if (err == ESK_OK && job->act != ESKI_TIDY && job->act != ESKI_EXPIRE) {
        err = explain_edit(edit, job);
    }
    if (err == ESK_OK && job->act == ESKI_JOIN) {
        job->member_id = edit->member_id;
        eski_group_refresh(group, job->member_id,
                           group->coordinator->shard->broker->options.member_timeout_ms);
        if (!eski_group_collect(group, job)) {
            err = esk_fail(&job->error, ESK_ERR_CONFLICT, "member_id: the member left meanwhile");
        }
    }
    eski_member_answer(job, err);
}

static void finish_run(struct esk_mail *mail) {
    struct rebalance *rebalance = ESK_CONTAINER(mail, struct rebalance, mail);
    struct eski_group *group = rebalance->group;
    struct esk_link *link = NULL;
    for (unsigned i = 0; i < ANSWERS_PER_TURN; i++) {
        link = esk_list_first(&rebalance->jobs);
        if (link == NULL) {
            break;
        }
        esk_list_remove(link);
        answer_job(group, job_at(link), rebalance->next_edit++, rebalance->err);
    }
    if (link != NULL) {
        eski_post(group->coordinator->shard, mail, finish_run);
        return;
    }
    clear(rebalance);
    free(rebalance);
    eski_group_next(group);
}

static void finish(struct rebalance *rebalance, enum esk_err err) {
    rebalance->err = err;
    rebalance->next_edit = rebalance->edits;
    finish_run(&rebalance->mail);
}

static void applied(struct esk_submit *submit, enum esk_err err) {
    struct rebalance *rebalance = ESK_CONTAINER(submit, struct rebalance, submit);
    if (err == ESK_OK) {
        rebalance->group->rebalances++;
        eski_group_sync(rebalance->group);
    }
    finish(rebalance, err);
}

/* The disk became full: clients are told, the group waits. */
static void late(struct esk_submit *submit) {
    struct rebalance *rebalance = ESK_CONTAINER(submit, struct rebalance, submit);
    struct esk_link *link;
    while ((link = esk_list_first(&rebalance->jobs)) != NULL) {
        struct eski_member_job *job = job_at(link);
        esk_list_remove(link);
        eski_member_answer(job, ESK_ERR_AGAIN);
    }
}

/* --- the helper's part and back --- */

static void begin(struct rebalance *rebalance);

static void computed(struct esk_mail *mail) {
    struct rebalance *rebalance = ESK_CONTAINER(mail, struct rebalance, mail);
    struct esk_broker_shard *shard = rebalance->group->coordinator->shard;
    for (uint32_t i = 0; i < rebalance->made.topic_count; i++) {
        if (!is_alive(shard, rebalance->made.topics[i].id)) {
            clear(rebalance);
            begin(rebalance);
            return;
        }
    }
    if (!rebalance->changed) {
        finish(rebalance, ESK_OK);
        return;
    }
    rebalance->submit = (struct esk_submit){
        .kind = ESK_ENTRY_OFFSETS,
        .strict = !ESK_MUTATED(ASSIGNMENT_BEFORE_DURABLE),
        .block = rebalance->payload,
        .done = applied,
        .late = late,
    };
    rebalance->payload = NULL;
    esk_partition_submit(
        esk_shard_find(shard->log, ESK_FIRST_OFFSET_GROUP + rebalance->group->partition),
        &rebalance->submit);
}

static void compute(struct esk_mail *mail) {
    struct rebalance *rebalance = ESK_CONTAINER(mail, struct rebalance, mail);
    rebalance->changed = esk_membership_edit(&rebalance->old, rebalance->edits,
                                             rebalance->edit_count, &rebalance->made);
    if (rebalance->changed) {
        rebalance->payload = esk_offsets_assign_payload(eski_group_name(rebalance->group),
                                                        rebalance->generation, &rebalance->made);
    }
    eski_post(rebalance->group->coordinator->shard, mail, computed);
}

static void begin(struct rebalance *rebalance) {
    struct eski_group *group = rebalance->group;
    check_jobs(rebalance);
    if (esk_list_empty(&rebalance->jobs)) {
        free(rebalance);
        eski_group_next(group);
        return;
    }
    list_edits(rebalance);
    copy_state(rebalance);
    rebalance->mail.run = compute;
    esk_post(group->coordinator->shard->broker->helpers, &rebalance->mail);
}

void eski_rebalance_start(struct eski_group *group) {
    struct rebalance *rebalance = esk_alloc_zeroed(1, sizeof(*rebalance));
    rebalance->group = group;
    esk_list_init(&rebalance->jobs);
    struct esk_link *link;
    while ((link = esk_list_first(&group->line)) != NULL &&
           job_at(link)->act != ESKI_GROUP_DELETE) {
        esk_list_remove(link);
        esk_list_append(&rebalance->jobs, link);
    }
    begin(rebalance);
}
