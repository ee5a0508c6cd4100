/* SPDX-License-Identifier: Apache-2.0 */
/* After a topic's tombstone: every shard drops its partitions (then the client is answered: the
 * data is out of reach for good), their files go, the commits on it go, and an entry says that
 * nothing is left. A start after a crash begins again behind the tombstone; each step may be done
 * twice. */
#include "broker/membership_private.h"
#include "broker/topics_private.h"

#include "base/assert.h"

#include <stdlib.h>

#define PARTITIONS_PER_TURN 256

struct deletion;

struct share {
    struct esk_mail drop_mail;
    struct esk_mail gone_mail;
    struct deletion *deletion;
    struct esk_broker_shard *shard;
    uint64_t *group_ids;
    size_t count;
    size_t dropped;
    struct esk_partition_removal removal;
};

struct commit_drop {
    struct esk_mail mail;
    struct deletion *deletion;
    struct esk_broker_shard *owner;
    uint32_t partition;
    enum esk_err err;
    struct esk_submit submit;
};

struct deletion {
    struct eski_topic_job *job;
    size_t dropping; /* shares whose partitions are still there */
    size_t going;    /* shares whose files are, and offset partitions with commits */
    bool incomplete; /* the tombstone stays for the next start */
    struct commit_drop *commit_drops;
    struct share shares[];
};

/* The last step: an entry of its own. */
static void finish(struct deletion *deletion) {
    struct eski_topic_job *job = deletion->job;
    struct esk_broker *broker = job->change.zero->broker;
    bool incomplete = deletion->incomplete;
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        free(deletion->shares[i].group_ids);
    }
    free(deletion->commit_drops);
    free(deletion);
    if (incomplete) {
        eski_change_destroy(&job->change);
        return;
    }
    esk_block_release(job->change.payload);
    job->change.payload = NULL;
    job->kind = ESKI_FORGET;
    job->change.frees_room = true;
    eski_change_queue(&job->change);
}

static void part_gone(struct deletion *deletion) {
    if (--deletion->going == 0) {
        finish(deletion);
    }
}

static void share_gone(struct esk_mail *mail) {
    part_gone(ESK_CONTAINER(mail, struct share, gone_mail)->deletion);
}

static void share_dropped(struct esk_mail *mail) {
    struct deletion *deletion = ESK_CONTAINER(mail, struct share, drop_mail)->deletion;
    if (--deletion->dropping == 0) {
        eski_change_reply(&deletion->job->change, ESK_OK, NULL);
    }
}

static void share_run(struct esk_mail *mail);

static void removal_done(struct esk_partition_removal *removal) {
    struct share *share = ESK_CONTAINER(removal, struct share, removal);
    struct esk_broker_shard *zero = share->deletion->job->change.zero;
    share->dropped += removal->count;
    if (share->dropped < share->count) {
        eski_post(share->shard, &share->drop_mail, share_run);
        return;
    }
    eski_post(zero, &share->gone_mail, share_gone);
}

static void share_run(struct esk_mail *mail) {
    struct share *share = ESK_CONTAINER(mail, struct share, drop_mail);
    size_t left = share->count - share->dropped;
    share->removal = (struct esk_partition_removal){
        .group_ids = share->group_ids + share->dropped,
        .count = left < PARTITIONS_PER_TURN ? left : PARTITIONS_PER_TURN,
        .done = removal_done,
    };
    esk_shard_remove_partitions(share->shard->log, &share->removal);
    if (left <= PARTITIONS_PER_TURN) {
        eski_post(share->deletion->job->change.zero, &share->drop_mail, share_dropped);
    }
}

/* --- commits --- */

static void commits_gone(struct esk_mail *mail) {
    struct commit_drop *drop = ESK_CONTAINER(mail, struct commit_drop, mail);
    drop->deletion->incomplete |= drop->err != ESK_OK;
    part_gone(drop->deletion);
}

static void commits_dropped(struct esk_submit *submit, enum esk_err err) {
    struct commit_drop *drop = ESK_CONTAINER(submit, struct commit_drop, submit);
    drop->err = err;
    if (err == ESK_OK) {
        eski_membership_topic_dropped(drop->owner, drop->partition);
    }
    eski_post(drop->deletion->job->change.zero, &drop->mail, commits_gone);
}

static void drop_commits(struct esk_mail *mail) {
    struct commit_drop *drop = ESK_CONTAINER(mail, struct commit_drop, mail);
    drop->submit = (struct esk_submit){
        .kind = ESK_ENTRY_OFFSETS,
        .strict = true,
        .frees_room = true,
        .block = esk_offsets_drop_payload(drop->deletion->job->first_group),
        .done = commits_dropped,
    };
    esk_partition_submit(esk_shard_find(drop->owner->log, ESK_FIRST_OFFSET_GROUP + drop->partition),
                         &drop->submit);
}

static void start_commit_drops(struct deletion *deletion) {
    struct esk_broker *broker = deletion->job->change.zero->broker;
    uint32_t count = broker->options.offset_partitions;
    deletion->commit_drops = esk_alloc_zeroed(count, sizeof(struct commit_drop));
    for (uint32_t i = 0; i < count; i++) {
        struct commit_drop *drop = &deletion->commit_drops[i];
        drop->deletion = deletion;
        drop->partition = i;
        drop->owner = eski_owner(broker, ESK_FIRST_OFFSET_GROUP + i);
        eski_post(drop->owner, &drop->mail, drop_commits);
    }
}

/* --- start --- */

static void fill(struct share *share, const struct eski_topic_job *job) {
    struct esk_broker *broker = share->shard->broker;
    share->group_ids =
        esk_alloc((job->partition_count / broker->shard_count + 1) * sizeof(uint64_t));
    for (uint32_t i = 0; i < job->partition_count; i++) {
        if (eski_owner(broker, job->first_group + i) == share->shard) {
            share->group_ids[share->count++] = job->first_group + i;
        }
    }
}

void eski_topic_delete_applied(struct eski_topic_job *job) {
    struct esk_broker *broker = job->change.zero->broker;
    if (job->change.payload != NULL) {
        eski_change_publish(&job->change, NULL);
    }
    struct deletion *deletion =
        esk_alloc_zeroed(1, sizeof(*deletion) + broker->shard_count * sizeof(struct share));
    deletion->job = job;
    deletion->going = broker->options.offset_partitions;
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        struct share *share = &deletion->shares[i];
        share->deletion = deletion;
        share->shard = &broker->shards[i];
        fill(share, job);
        deletion->dropping += share->count > 0;
        deletion->going += share->count > 0;
    }
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        if (deletion->shares[i].count > 0) {
            eski_post(deletion->shares[i].shard, &deletion->shares[i].drop_mail, share_run);
        }
    }
    start_commit_drops(deletion);
}

void eski_topic_delete_again(struct esk_broker_shard *shard, uint64_t first_group) {
    const struct esk_topic *topic = esk_catalogue_topic(&shard->catalogue, first_group);
    struct eski_topic_job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->change.ops = &eski_topic_ops;
    job->change.home = shard;
    job->change.zero = shard;
    job->kind = ESKI_DELETE;
    job->first_group = first_group;
    job->partition_count = topic->partition_count;
    eski_change_count(&job->change);
    eski_topic_delete_applied(job);
}
