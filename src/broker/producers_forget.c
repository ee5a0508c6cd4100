/* SPDX-License-Identifier: Apache-2.0 */
/* Forgetting producers: an entry of the catalogue takes the name away, so that its next use gets
 * another numeric id; then the windows of the old id go, shard by shard, in turns. What a crash
 * leaves of those goes at the next start: the catalogue decides. */
#include "broker/producers.h"
#include "broker/producers_private.h"

#include <stdlib.h>

#define WINDOWS_PER_TURN 1000 /* about 0.2 us each */

struct eski_forgetting_share {
    struct esk_mail mail;
    struct eski_forgetting *forgetting;
    struct esk_broker_shard *shard;
    size_t at;
};

static void share_back(struct esk_mail *mail) {
    struct eski_forgetting *forgetting =
        ESK_CONTAINER(mail, struct eski_forgetting_share, mail)->forgetting;
    if (--forgetting->waiting == 0) {
        free(forgetting->shares);
        forgetting->done(forgetting);
    }
}

static void share_run(struct esk_mail *mail) {
    struct eski_forgetting_share *share = ESK_CONTAINER(mail, struct eski_forgetting_share, mail);
    struct eski_forgetting *forgetting = share->forgetting;
    size_t budget = WINDOWS_PER_TURN;
    size_t end = share->at + WINDOWS_PER_TURN; /* ids without any cost time, too */
    while (share->at < forgetting->count && share->at < end &&
           esk_shard_forget_producer(share->shard->log, forgetting->ids[share->at], &budget)) {
        share->at++;
    }
    bool done = share->at == forgetting->count;
    eski_post(done ? forgetting->home : share->shard, mail, done ? share_back : share_run);
}

void eski_forget_windows(struct eski_forgetting *forgetting) {
    struct esk_broker *broker = forgetting->home->broker;
    uint32_t count = broker->shard_count;
    struct eski_forgetting_share *shares = esk_alloc_zeroed(count, sizeof(*shares));
    forgetting->shares = shares;
    forgetting->waiting = count;
    for (uint32_t i = 0; i < count; i++) { /* the last one to be back frees them */
        shares[i].forgetting = forgetting;
        shares[i].shard = &broker->shards[i];
        eski_post(shares[i].shard, &shares[i].mail, share_run);
    }
}

static bool keeps(void *context, uint64_t producer_id) {
    const struct esk_broker_shard *shard = context;
    return esk_producer_by_id(&shard->catalogue.producers, producer_id) != NULL;
}

void eski_producers_purge(struct esk_broker_shard *shard) {
    esk_shard_forget_unknown_producers(shard->log, keeps, shard);
}

/* --- one by name --- */

struct removal_job {
    struct esk_change change;
    struct eski_forgetting forgetting;
    struct esk_producer_removal *removal;
    uint64_t id;
    uint8_t id_bytes[8];
};

static enum esk_err decide(struct esk_change *change, const struct esk_catalogue *catalogue,
                           struct esk_catalogue_change *entry, struct esk_error *error) {
    struct removal_job *job = ESK_CONTAINER(change, struct removal_job, change);
    struct esk_slice name = job->removal->producer_id;
    const struct esk_producer *producer = esk_producer_find(&catalogue->producers, name);
    if (producer == NULL) {
        return esk_fail(error, ESK_ERR_NOT_FOUND, "producer '%.*s' does not exist",
                        name.size > 200 ? 200 : (int)name.size, (const char *)name.data);
    }
    job->id = producer->id;
    esk_store_u64(job->id_bytes, producer->id);
    entry->kind = ESK_CATALOGUE_PRODUCERS_FORGOTTEN;
    entry->producers_forgotten.ids = esk_slice(job->id_bytes, sizeof(job->id_bytes));
    return ESK_OK;
}

static void finish(struct removal_job *job, enum esk_err err) {
    struct esk_producer_removal *removal = job->removal;
    removal->error = job->change.error;
    eski_end(job->forgetting.home);
    free(job);
    removal->done(removal, err);
}

static void windows_gone(struct eski_forgetting *forgetting) {
    finish(ESK_CONTAINER(forgetting, struct removal_job, forgetting), ESK_OK);
}

static void changed(struct esk_change *change, enum esk_err err) {
    struct removal_job *job = ESK_CONTAINER(change, struct removal_job, change);
    if (err != ESK_OK) {
        finish(job, err);
        return;
    }
    job->forgetting.ids = &job->id;
    job->forgetting.count = 1;
    job->forgetting.done = windows_gone;
    eski_forget_windows(&job->forgetting);
}

void esk_broker_producer_remove(struct esk_broker_shard *shard,
                                struct esk_producer_removal *removal) {
    struct removal_job *job = esk_alloc_zeroed(1, sizeof(*job));
    eski_begin(shard);
    job->removal = removal;
    job->forgetting.home = shard;
    job->change.decide = decide;
    job->change.done = changed;
    job->change.frees_room = true;
    esk_change_submit(shard, &job->change);
}
