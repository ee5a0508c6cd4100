/* SPDX-License-Identifier: Apache-2.0 */
/* Committed offsets: written and read in the shard that owns the group's offset partition. Names of
 * topics are translated in the client's shard, whose copy of the catalogue decides what exists. */
#include "broker/caller.h"
#include "broker/membership_private.h"

#include "base/mutation.h"
#include "model/names.h"

#include <stdlib.h>
#include <string.h>

/* --- commit --- */

struct commit_job {
    struct esk_mail mail;
    struct esk_broker_shard *home;
    struct esk_broker_shard *owner;
    struct esk_offset_commit *commit;
    struct eski_claim claim;
    uint64_t topic;
    uint64_t group_id;
    struct esk_block *payload;
    struct esk_submit submit;
    bool claim_again; /* the group is nobody's any more */
    enum esk_err err;
};

static void commit_run(struct esk_mail *mail);

static void commit_end(struct commit_job *job) {
    struct esk_offset_commit *commit = job->commit;
    enum esk_err err = job->err;
    if (err != ESK_OK && commit->error.code != err) {
        eski_explain(err, &commit->error);
    }
    eski_end(job->home);
    esk_block_release(job->payload);
    free(job);
    commit->done(commit, err);
}

static void claimed(struct eski_claim *claim, enum esk_err err) {
    struct commit_job *job = ESK_CONTAINER(claim, struct commit_job, claim);
    if (err != ESK_OK) {
        job->err = err;
        job->commit->error = claim->change.error;
        commit_end(job);
        return;
    }
    eski_post(job->owner, &job->mail, commit_run);
}

static void claim_first(struct commit_job *job) {
    job->claim.group = job->commit->group;
    job->claim.owner = job->commit->owner;
    job->claim.admin = job->commit->admin;
    job->claim.done = claimed;
    eski_claim_start(job->home, &job->claim);
}

static void commit_back(struct esk_mail *mail) {
    struct commit_job *job = ESK_CONTAINER(mail, struct commit_job, mail);
    if (job->claim_again) {
        job->claim_again = false;
        claim_first(job);
        return;
    }
    commit_end(job);
}

static void commit_done(struct esk_submit *submit, enum esk_err err) {
    struct commit_job *job = ESK_CONTAINER(submit, struct commit_job, submit);
    job->err = err;
    eski_post(job->home, &job->mail, commit_back);
}

/* What the owner of the offset partition sees, which may be newer than what the client's did. */
static enum esk_err check_here(struct commit_job *job) {
    const struct esk_broker_shard *shard = job->owner;
    const struct esk_offset_commit *commit = job->commit;
    const struct esk_topic *topic = esk_catalogue_topic(&shard->catalogue, job->topic);
    if (topic == NULL || topic->deleted) { /* else it might come behind the drop of its commits */
        return ESK_ERR_NOT_FOUND;
    }
    enum eski_ownership ownership =
        eski_group_ownership(shard, commit->group, commit->owner, commit->admin);
    job->claim_again = ownership == ESKI_UNOWNED;
    return ownership == ESKI_FOREIGN ? eski_foreign_group(commit->group, &job->commit->error)
                                     : ESK_OK;
}

static void commit_run(struct esk_mail *mail) {
    struct commit_job *job = ESK_CONTAINER(mail, struct commit_job, mail);
    if (eski_membership_hold(job->owner, job->commit->group, mail)) {
        return;
    }
    job->err = check_here(job);
    if (job->err != ESK_OK || job->claim_again) {
        eski_post(job->home, mail, commit_back);
        return;
    }
    job->submit = (struct esk_submit){
        .kind = ESK_ENTRY_OFFSETS,
        .strict = !ESK_MUTATED(COMMIT_BEFORE_DURABLE),
        .block = job->payload,
        .done = commit_done,
    };
    job->payload = NULL;
    esk_partition_submit(esk_shard_find(job->owner->log, job->group_id), &job->submit);
}

/* Here: what needs no coordinator. */
static enum esk_err check_commit(struct esk_offset_commit *commit, enum eski_ownership ownership,
                                 const struct esk_topic *topic) {
    enum esk_err err = esk_id_check(commit->group, "group", &commit->error);
    if (err == ESK_OK && ownership == ESKI_FOREIGN) {
        err = eski_foreign_group(commit->group, &commit->error);
    } else if (err == ESK_OK && topic == NULL) {
        err = eski_unknown_topic(commit->topic, &commit->error);
    } else if (err == ESK_OK && commit->partition >= topic->partition_count) {
        err = eski_unknown_partition(commit->topic, commit->partition, &commit->error);
    }
    return err;
}

void esk_broker_offset_commit(struct esk_broker_shard *shard, struct esk_offset_commit *commit) {
    struct commit_job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->home = shard;
    job->commit = commit;
    eski_begin(shard);
    commit->error.code = ESK_OK;
    const struct esk_topic *topic = eski_serving_topic(shard, commit->topic);
    enum eski_ownership ownership =
        eski_group_ownership(shard, commit->group, commit->owner, commit->admin);
    job->err = check_commit(commit, ownership, topic);
    if (job->err != ESK_OK) {
        eski_post(shard, &job->mail, commit_back);
        return;
    }
    job->topic = topic->first_group;
    const struct esk_committed committed = {topic->first_group, commit->partition, commit->offset};
    job->payload = esk_offsets_commit_payload(commit->group, &committed);
    job->group_id = ESK_FIRST_OFFSET_GROUP +
                    esk_offsets_partition(commit->group, shard->broker->options.offset_partitions);
    job->owner = eski_owner(shard->broker, job->group_id);
    if (ownership == ESKI_UNOWNED) {
        claim_first(job);
        return;
    }
    eski_post(job->owner, &job->mail, commit_run);
}

/* --- fetch --- */

struct fetch_job {
    struct esk_mail mail;
    struct esk_broker_shard *home;
    struct esk_broker_shard *owner;
    struct esk_offset_fetch *fetch;
    uint32_t partition;
    struct esk_committed *commits;
    size_t count;
    enum esk_err err;
};

static int compare_views(const void *a, const void *b) {
    const struct esk_offset_view *left = a;
    const struct esk_offset_view *right = b;
    int order = strcmp(left->topic, right->topic);
    if (order != 0) {
        return order;
    }
    return left->partition < right->partition ? -1 : left->partition > right->partition;
}

static void fetch_back(struct esk_mail *mail) {
    struct fetch_job *job = ESK_CONTAINER(mail, struct fetch_job, mail);
    struct esk_offset_fetch *fetch = job->fetch;
    enum esk_err err = job->err;
    fetch->offsets = err == ESK_OK ? esk_alloc((job->count + 1) * sizeof(*fetch->offsets)) : NULL;
    fetch->count = 0;
    for (size_t i = 0; i < job->count; i++) {
        const struct esk_committed *commit = &job->commits[i];
        const struct esk_topic *topic = esk_catalogue_topic(&job->home->catalogue, commit->topic);
        if (topic == NULL || topic->deleted || !topic->serving ||
            (fetch->caller != NULL && !esk_caller_may(fetch->caller, ESK_ACTION_READ,
                                                      esk_slice(topic->name, topic->name_size))) ||
            (fetch->topic.size > 0 &&
             !esk_slice_equal(fetch->topic, esk_slice(topic->name, topic->name_size)))) {
            continue;
        }
        fetch->offsets[fetch->count++] =
            (struct esk_offset_view){esk_text_copy(topic->name), commit->partition, commit->offset};
    }
    if (fetch->count > 1) {
        qsort(fetch->offsets, fetch->count, sizeof(*fetch->offsets), compare_views);
    }
    eski_end(job->home);
    free(job->commits);
    free(job);
    fetch->done(fetch, err);
}

static void fetch_run(struct esk_mail *mail) {
    struct fetch_job *job = ESK_CONTAINER(mail, struct fetch_job, mail);
    const struct esk_committed *commits;
    job->count = esk_offsets_find(job->owner->offsets[job->partition], job->fetch->group, &commits);
    if (job->count > 0) {
        job->commits = esk_alloc(job->count * sizeof(*commits));
        memcpy(job->commits, commits, job->count * sizeof(*commits));
    }
    eski_post(job->home, mail, fetch_back);
}

void esk_broker_offset_fetch(struct esk_broker_shard *shard, struct esk_offset_fetch *fetch) {
    struct fetch_job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->home = shard;
    job->fetch = fetch;
    eski_begin(shard);
    job->err = esk_id_check(fetch->group, "group", &fetch->error);
    if (job->err == ESK_OK &&
        eski_group_ownership(shard, fetch->group, fetch->owner, fetch->admin) == ESKI_FOREIGN) {
        job->err = eski_foreign_group(fetch->group, &fetch->error);
    }
    if (job->err != ESK_OK) {
        eski_post(shard, &job->mail, fetch_back);
        return;
    }
    job->partition = esk_offsets_partition(fetch->group, shard->broker->options.offset_partitions);
    job->owner = eski_owner(shard->broker, ESK_FIRST_OFFSET_GROUP + job->partition);
    eski_post(job->owner, &job->mail, fetch_run);
}

void esk_offset_fetch_fini(struct esk_offset_fetch *fetch) {
    for (size_t i = 0; i < fetch->count; i++) {
        free((char *)fetch->offsets[i].topic);
    }
    free(fetch->offsets);
    fetch->offsets = NULL;
    fetch->count = 0;
}
