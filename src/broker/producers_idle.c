/* SPDX-License-Identifier: Apache-2.0 */
/* Producers that are not used are forgotten. Every shard notes which ones it served; a round,
 * started by shard 0 now and then, gathers those that the catalogue has not heard of for a while,
 * tells it, and then forgets the ones that it has not heard of for options.producer_idle_ms. The
 * catalogue keeps them in order of their last use, so a round looks only at what goes.
 *
 * A use is told at most once in TELL_FRACTION of that time, so it is forgotten that much later. */
#include "broker/producers_private.h"

#include "base/mutation.h"

#include <stdlib.h>
#include <string.h>

#define TELL_FRACTION 168 /* of 7 days: an hour */
#define IDS_MAX 2000      /* of one shard in one round, and of one entry: about 0.5 ms to apply */

struct share {
    struct esk_mail mail;
    struct round *round;
    struct esk_broker_shard *shard;
    uint64_t *ids;
    size_t count;
};

struct round {
    struct esk_broker_shard *zero;
    struct esk_change change;
    struct eski_forgetting forgetting;
    int64_t now_ms;
    uint64_t *ids; /* told, then forgotten */
    size_t count, capacity;
    uint8_t *id_bytes;
    uint32_t waiting;
    struct share shares[];
};

int64_t eski_producer_tell_ms(const struct esk_broker *broker) {
    return (int64_t)(broker->options.producer_idle_ms / TELL_FRACTION);
}

static void arm(struct esk_broker_shard *zero) {
    uint64_t interval_ns = zero->broker->options.producer_interval_ms * UINT64_C(1000000);
    esk_timer_start(zero->loop, &zero->producers_timer, esk_loop_now_ns(zero->loop) + interval_ns);
}

static void round_end(struct round *round) {
    struct esk_broker_shard *zero = round->zero;
    free(round->ids);
    free(round->id_bytes);
    free(round);
    eski_end(zero);
    if (!zero->stopping) {
        arm(zero);
    }
}

static void add_id(struct round *round, uint64_t id) {
    if (round->count == round->capacity) {
        round->capacity = round->capacity * 2 + 64;
        round->ids = esk_realloc(round->ids, round->capacity * sizeof(*round->ids));
    }
    round->ids[round->count++] = id;
}

/* The ids as an entry has them, borrowed from the round. */
static struct esk_slice encode_ids(struct round *round) {
    round->id_bytes = esk_realloc(round->id_bytes, round->count * 8);
    for (size_t i = 0; i < round->count; i++) {
        esk_store_u64(round->id_bytes + i * 8, round->ids[i]);
    }
    return esk_slice(round->id_bytes, round->count * 8);
}

/* --- the longest unused --- */

static void forget_next(struct round *round);

static enum esk_err decide_forgotten(struct esk_change *change,
                                     const struct esk_catalogue *catalogue,
                                     struct esk_catalogue_change *entry, struct esk_error *error) {
    struct round *round = ESK_CONTAINER(change, struct round, change);
    const struct esk_broker *broker = round->zero->broker;
    int64_t oldest_ms =
        round->now_ms - (int64_t)broker->options.producer_idle_ms - eski_producer_tell_ms(broker);
    const struct esk_link *head = &catalogue->producers.recent;
    (void)error;
    round->count = 0;
    for (const struct esk_link *link = head->next; link != head && round->count < IDS_MAX;
         link = link->next) {
        const struct esk_producer *producer = ESK_CONTAINER(link, struct esk_producer, recent);
        if (producer->used_ms > oldest_ms) {
            break;
        }
        add_id(round, producer->id);
    }
    if (round->count > 0) {
        entry->kind = ESK_CATALOGUE_PRODUCERS_FORGOTTEN;
        entry->producers_forgotten.ids = encode_ids(round);
    }
    return ESK_OK;
}

static void windows_gone(struct eski_forgetting *forgetting) {
    struct round *round = ESK_CONTAINER(forgetting, struct round, forgetting);
    ESK_REACHED(PRODUCER_EXPIRED);
    if (round->count == IDS_MAX && !round->zero->stopping) {
        forget_next(round);
        return;
    }
    round_end(round);
}

static void forgotten(struct esk_change *change, enum esk_err err) {
    struct round *round = ESK_CONTAINER(change, struct round, change);
    if (err != ESK_OK || round->count == 0) { /* else the next round tries again */
        round_end(round);
        return;
    }
    round->forgetting = (struct eski_forgetting){
        .home = round->zero, .done = windows_gone, .ids = round->ids, .count = round->count};
    eski_forget_windows(&round->forgetting);
}

static void forget_next(struct round *round) {
    round->change.decide = decide_forgotten;
    round->change.done = forgotten;
    round->change.frees_room = true;
    esk_change_submit(round->zero, &round->change);
}

/* --- those that were used --- */

static enum esk_err decide_used(struct esk_change *change, const struct esk_catalogue *catalogue,
                                struct esk_catalogue_change *entry, struct esk_error *error) {
    struct round *round = ESK_CONTAINER(change, struct round, change);
    size_t kept = 0;
    (void)error;
    for (size_t i = 0; i < round->count; i++) {
        if (esk_producer_by_id(&catalogue->producers, round->ids[i]) != NULL) {
            round->ids[kept++] = round->ids[i];
        }
    }
    round->count = kept;
    if (kept > 0) {
        entry->kind = ESK_CATALOGUE_PRODUCERS_USED;
        entry->producers_used.used_ms = round->now_ms;
        entry->producers_used.ids = encode_ids(round);
    }
    return ESK_OK;
}

static void told(struct esk_change *change, enum esk_err err) {
    struct round *round = ESK_CONTAINER(change, struct round, change);
    if (err != ESK_OK || round->zero->stopping) {
        round_end(round);
        return;
    }
    forget_next(round);
}

static void share_back(struct esk_mail *mail) {
    struct share *share = ESK_CONTAINER(mail, struct share, mail);
    struct round *round = share->round;
    for (size_t i = 0; i < share->count; i++) {
        add_id(round, share->ids[i]);
    }
    free(share->ids);
    if (--round->waiting == 0) {
        round->change.decide = decide_used;
        round->change.done = told;
        esk_change_submit(round->zero, &round->change);
    }
}

static void share_run(struct esk_mail *mail) {
    struct share *share = ESK_CONTAINER(mail, struct share, mail);
    struct esk_producers *producers = &share->shard->catalogue.producers;
    struct esk_link *link;
    share->ids = esk_alloc(IDS_MAX * sizeof(*share->ids));
    while (share->count < IDS_MAX && (link = esk_list_first(&producers->touched)) != NULL) {
        esk_list_remove(link);
        share->ids[share->count++] = ESK_CONTAINER(link, struct esk_producer, touched)->id;
    }
    eski_post(share->round->zero, mail, share_back);
}

static void timer_run(struct esk_timer *timer) {
    struct esk_broker_shard *zero = ESK_CONTAINER(timer, struct esk_broker_shard, producers_timer);
    struct esk_broker *broker = zero->broker;
    struct round *round =
        esk_alloc_zeroed(1, sizeof(*round) + broker->shard_count * sizeof(struct share));
    round->zero = zero;
    round->now_ms = esk_wall_ms(broker->options.platform);
    round->waiting = broker->shard_count;
    eski_begin(zero);
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        round->shares[i].round = round;
        round->shares[i].shard = &broker->shards[i];
        eski_post(round->shares[i].shard, &round->shares[i].mail, share_run);
    }
}

void eski_producers_start(struct esk_broker_shard *zero) {
    zero->producers_timer.run = timer_run;
    arm(zero);
}
