/* SPDX-License-Identifier: Apache-2.0 */
/* Admission of submits: room in the journal, in memory for tails, and in the ballast.
 *
 * Invariants: a submit that waits for room makes all later ones of the shard wait behind it; what
 * is admitted has a place in the ballast until it is in a segment. A full disk refuses what would
 * write more (ESK_ERR_NO_SPACE) and lets deletions pass: the journal keeps room for them. */
#include "partition/partition_private.h"

#include "base/assert.h"
#include "storage/reserve.h"
#include "storage/room.h"

#include <stdlib.h>

#define TELL_NO_SPACE_NS UINT64_C(10000000000) /* 10 s between two lines about a full disk */
#define ROOM_RETRY_NS UINT64_C(100000000)      /* 0.1 s: how often a full disk is asked again */

/* --- the ballast --- */

static void grow_done(struct esk_mail *mail) {
    struct esk_shard *shard = ESK_CONTAINER(mail, struct esk_shard, grow_mail);
    shard->growing = false;
    if (shard->grow_err == ESK_OK || shard->grow_err == ESK_ERR_NO_SPACE) {
        eski_waiting_kick(shard);
    } else if (shard->grow_err != ESK_ERR_AGAIN) { /* AGAIN: at its largest, moves make room */
        eski_shard_fail(shard, &shard->grow_error);
    }
    eski_shard_step_stop(shard);
}

static void grow_run(struct esk_mail *mail) {
    struct esk_shard *shard = ESK_CONTAINER(mail, struct esk_shard, grow_mail);
    const struct esk_storage *storage = shard->options.storage;
    shard->grow_err = shard->shrinking
                          ? esk_reserve_shrink(storage->reserve, &shard->grow_error)
                          : esk_room_grow_reserve(storage, shard->grow_bytes, &shard->grow_error);
    shard->grow_mail.run = grow_done;
    esk_post(&shard->loop->executor, mail);
}

static void change_ballast(struct esk_shard *shard, bool shrink, uint64_t bytes) {
    if (shard->growing || shard->closing) {
        return;
    }
    shard->shrinking = shrink;
    shard->grow_bytes = bytes;
    shard->growing = true;
    shard->grow_mail.run = grow_run;
    esk_post(shard->writer, &shard->grow_mail);
}

void eski_ballast_begin(struct esk_shard *shard) {
    if (!shard->ballast_begun) {
        shard->ballast_begun = true;
        change_ballast(shard, false, 0);
    }
}

void eski_ballast_shrink_if_idle(struct esk_shard *shard) {
    if (shard->ballast_begun && shard->admitted == shard->admitted_before) {
        change_ballast(shard, true, 0);
    }
    shard->admitted_before = shard->admitted;
}

/* --- the line --- */

/* ESK_OK: admitted. ESK_ERR_AGAIN: it has to wait. */
static enum esk_err admit(struct esk_shard *shard, const struct esk_submit *submit) {
    if (shard->failed) {
        return ESK_ERR_UNAVAILABLE;
    }
    enum esk_err err;
    if (!esk_journal_has_room(shard->journal, &err) &&
        !(err == ESK_ERR_NO_SPACE && submit->frees_room)) {
        return err;
    }
    if (!esk_entry_has_batch(submit->kind)) {
        return ESK_OK;
    }
    uint64_t size = submit->block->size;
    if (shard->tail_bytes > 0 && shard->tail_bytes + size > shard->options.tail_bytes_max) {
        return shard->mover_stuck ? ESK_ERR_NO_SPACE : ESK_ERR_AGAIN;
    }
    err = esk_reserve_take(shard->options.storage->reserve, size);
    if (err == ESK_OK) {
        shard->tail_bytes += size;
        shard->reserved_bytes += size;
        shard->admitted++;
        esk_counter_set(&shard->metrics.tail_bytes, shard->tail_bytes);
        uint64_t ahead = esk_reserve_wanted(shard->options.storage->reserve);
        if (ahead > 0) {
            change_ballast(shard, false, ahead);
        }
    } else {
        change_ballast(shard, false, size); /* also after NO_SPACE: the next one may find room */
    }
    return err;
}

/* A line at the first refusal, and again while it goes on. */
static void tell_no_space(struct esk_shard *shard, enum esk_err err) {
    uint64_t now = esk_loop_now_ns(shard->loop);
    if (err == ESK_ERR_NO_SPACE && now >= shard->no_space_told_ns) {
        shard->no_space_told_ns = now + TELL_NO_SPACE_NS;
        ESK_LOG(shard->options.log, ESK_LOG_WARN, "produce_no_space",
                "the disk is full: produces are refused until there is room",
                esk_field_u64("shard", shard->options.journal.shard));
    }
}

static void wait_for_room(struct esk_shard *shard) {
    esk_timer_start(shard->loop, &shard->room_timer, esk_loop_now_ns(shard->loop) + ROOM_RETRY_NS);
    eski_mover_kick(shard);
}

static void take_out(struct esk_submit *submit, enum esk_err err) {
    struct esk_partition *partition = submit->partition;
    struct esk_shard *shard = partition->shard;
    esk_list_remove(&submit->link);
    if (err == ESK_OK) {
        eski_submit_now(submit);
    } else {
        tell_no_space(shard, err);
        eski_submit_fail(submit, err);
    }
    eski_partition_let_go(partition);
}

void eski_waiting_kick(struct esk_shard *shard) {
    struct esk_link *link;
    while ((link = esk_list_first(&shard->waiting)) != NULL) {
        struct esk_submit *submit = ESK_CONTAINER(link, struct esk_submit, link);
        enum esk_err err = admit(shard, submit);
        if (err == ESK_ERR_AGAIN) {
            wait_for_room(shard);
            return;
        }
        take_out(submit, err);
    }
}

void eski_waiting_drop_removed(struct esk_shard *shard) {
    struct esk_link *next;
    for (struct esk_link *link = shard->waiting.next; link != &shard->waiting; link = next) {
        struct esk_submit *submit = ESK_CONTAINER(link, struct esk_submit, link);
        next = link->next;
        if (submit->partition->removed) {
            take_out(submit, ESK_ERR_NOT_FOUND);
        }
    }
}

void esk_partition_submit(struct esk_partition *partition, struct esk_submit *submit) {
    struct esk_shard *shard = partition->shard;
    submit->partition = partition;
    ESK_ASSERT(esk_entry_has_batch(submit->kind) || partition->machine != NULL);
    ESK_ASSERT((submit->kind == ESK_ENTRY_PRODUCER) == (submit->sequences != NULL));
    if (!partition->serving || shard->stopping) {
        eski_submit_fail(submit, ESK_ERR_UNAVAILABLE);
        return;
    }
    enum esk_err err = esk_list_empty(&shard->waiting) ? admit(shard, submit) : ESK_ERR_AGAIN;
    if (err == ESK_OK) {
        eski_submit_now(submit);
    } else if (err == ESK_ERR_AGAIN) {
        eski_partition_hold(partition);
        esk_list_append(&shard->waiting, &submit->link);
        wait_for_room(shard);
    } else {
        tell_no_space(shard, err);
        eski_submit_fail(submit, err);
    }
}
