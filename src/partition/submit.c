/* SPDX-License-Identifier: Apache-2.0 */
/* From an admitted submit to its answer: consensus, journal, apply.
 *
 * Invariants: entries of a partition get their index and offset in the order of submit; an answer
 * comes after the entry was persisted (by the flush policy), committed and applied. After the
 * journal failed nothing is answered any more. */
#include "partition/producers_private.h"

#include "base/assert.h"
#include "base/mutation.h"
#include "model/record_batch.h"

#include <stdlib.h>

#define STALL_NS UINT64_C(2000000000) /* 2 s without room or progress: then nobody waits longer */
#define ACTIVE_STEP_NS UINT64_C(50000000) /* between two times that others hear of: 50 ms */

static void fail_run(struct esk_mail *mail) {
    struct esk_submit *submit = ESK_CONTAINER(mail, struct esk_submit, mail);
    submit->done(submit, submit->err);
}

void eski_submit_fail(struct esk_submit *submit, enum esk_err err) {
    if (submit->sequences != NULL) {
        esk_sequences_release(submit->sequences);
    }
    esk_block_release(submit->block);
    submit->block = NULL;
    submit->err = err;
    submit->mail.run = fail_run;
    esk_post(&submit->partition->shard->loop->executor, &submit->mail);
}

static void answer(struct eski_pending *pending, enum esk_err err) {
    struct esk_submit *submit = pending->submit;
    pending->submit = NULL;
    if (submit != NULL) {
        submit->base_offset = pending->entry.base_offset;
        submit->done(submit, err);
    }
}

static void settle(struct eski_pending *pending) {
    if (!pending->applied || !pending->durable) {
        return;
    }
    struct esk_partition *partition = pending->partition;
    partition->shard->in_journal--;
    esk_list_remove(&pending->link);
    free(pending);
    eski_partition_let_go(partition);
}

void eski_stall_arm(struct esk_shard *shard) {
    if (!shard->stall_armed) {
        shard->stall_armed = true;
        esk_timer_start(shard->loop, &shard->stall_timer, esk_loop_now_ns(shard->loop) + STALL_NS);
    }
}

static void began_serving(struct esk_partition *partition) {
    struct esk_shard *shard = partition->shard;
    partition->serving = true;
    if (partition->creation != NULL) {
        struct esk_partition_creation *creation = partition->creation;
        partition->creation = NULL;
        if (--creation->waiting == 0) {
            creation->done(creation);
        }
    } else if (shard->starting > 0 && --shard->starting == 0) {
        shard->done(shard->done_context);
    }
}

/* Applies what is committed now. */
static void apply_committed(struct esk_partition *partition, uint64_t commit_index) {
    while (partition->unapplied != NULL) {
        struct eski_pending *pending =
            ESK_CONTAINER(partition->unapplied, struct eski_pending, link);
        if (pending->append.entry.index > commit_index) {
            break;
        }
        struct esk_link *next = pending->link.next;
        partition->unapplied = next == &partition->pending ? NULL : next;
        struct esk_error error;
        bool term = pending->entry.entry.kind == ESK_ENTRY_TERM;
        bool records = esk_entry_has_batch(pending->entry.entry.kind);
        pending->entry.journal_position = pending->append.position;
        enum esk_err err =
            partition->removed ? ESK_ERR_NOT_FOUND : eski_apply(partition, &pending->entry, &error);
        ESK_ASSERT(err == ESK_OK || partition->removed); /* checked before the submit */
        if (partition->removed && records) {
            eski_tail_bytes_release(partition->shard, pending->entry.block->size);
        }
        esk_block_release(pending->entry.block);
        pending->entry.block = NULL;
        pending->applied = true;
        answer(pending, err);
        if (term && !partition->removed) {
            began_serving(partition);
        }
        if (records && !partition->removed) {
            eski_reads_wake(partition);
        }
    }
}

/* Also for the other shards' cleaners; not with each entry, since cores share it. */
static void note_active(struct esk_shard *shard) {
    uint64_t now = esk_loop_now_ns(shard->loop);
    atomic_uint_fast64_t *any = shard->options.active_ns;
    shard->active_ns = now;
    if (any != NULL && atomic_load_explicit(any, memory_order_relaxed) + ACTIVE_STEP_NS < now) {
        atomic_store_explicit(any, now, memory_order_relaxed);
    }
}

static void on_persisted(struct esk_journal_append *append) {
    struct eski_pending *pending = ESK_CONTAINER(append, struct eski_pending, append);
    struct esk_partition *partition = pending->partition;
    if (partition->shard->failed) {
        return;
    }
    const struct esk_event event = {
        .kind = ESK_EVENT_PERSISTED,
        .index = append->entry.index,
        .term = append->entry.term,
    };
    struct esk_update update;
    partition->shard->persisted++;
    eski_partition_hold(partition);
    if (!partition->removed) {
        eski_mover_note(partition, append->position);
        note_active(partition->shard);
    }
    ESK_ASSERT(esk_group_step(partition->group, &event, &update) == ESK_OK);
    apply_committed(partition, update.commit_index);
    eski_partition_let_go(partition);
}

static void on_durable(struct esk_journal_append *append) {
    struct eski_pending *pending = ESK_CONTAINER(append, struct eski_pending, append);
    struct esk_partition *partition = pending->partition;
    struct esk_shard *shard = partition->shard;
    partition->durable_index = append->entry.index;
    partition->durable_term = append->entry.term;
    pending->durable = true;
    bool records = pending->append.records > 0;
    eski_partition_hold(partition);
    settle(pending);
    if (records) {
        eski_ballast_begin(partition->shard);
    }
    if (!partition->removed) {
        eski_mover_note_tail(partition);
    }
    eski_partition_let_go(partition);
    eski_mover_kick(shard);
}

static struct eski_pending *pending_create(struct esk_partition *partition, uint8_t kind,
                                           struct esk_block *block) {
    struct eski_pending *pending = esk_alloc(sizeof(*pending)); /* calloc has no cache */
    *pending = (struct eski_pending){
        .partition = partition,
        .entry = {.block = block, .entry.kind = kind},
    };
    return pending;
}

void eski_pending_forget(struct esk_partition *partition) {
    struct esk_link *link;
    while ((link = esk_list_first(&partition->pending)) != NULL) {
        struct eski_pending *pending = ESK_CONTAINER(link, struct eski_pending, link);
        esk_list_remove(link);
        esk_block_release(pending->entry.block);
        free(pending);
    }
}

/* --- a disk that became full within a write --- */

/* Nobody is to wait for room without bound. */
static void tell_late(struct esk_partition *partition) {
    for (struct esk_link *link = partition->unapplied; link != NULL && link != &partition->pending;
         link = link->next) {
        struct eski_pending *pending = ESK_CONTAINER(link, struct eski_pending, link);
        struct esk_submit *submit = pending->submit;
        if (submit != NULL && submit->late == NULL) {
            answer(pending, ESK_ERR_AGAIN);
        } else if (submit != NULL) {
            void (*late)(struct esk_submit *) = submit->late;
            submit->late = NULL;
            late(submit);
        }
    }
    eski_awaits_end(partition, ESK_ERR_AGAIN);
}

void eski_stall_check(struct esk_timer *timer) {
    struct esk_shard *shard = ESK_CONTAINER(timer, struct esk_shard, stall_timer);
    enum esk_err err;
    bool stalled = shard->persisted == shard->persisted_before && !shard->failed &&
                   !esk_journal_has_room(shard->journal, &err) && err == ESK_ERR_NO_SPACE;
    size_t position = 0;
    uint64_t group_id;
    void *partition;
    while (stalled && esk_u64_map_next(&shard->partitions, &position, &group_id, &partition)) {
        tell_late(partition);
    }
    shard->persisted_before = shard->persisted;
    shard->stall_armed = false;
    if (shard->in_journal > 0) {
        eski_stall_arm(shard);
    }
    eski_shard_step_stop(shard); /* which does not wait for room */
}

/* Hands the entry to the journal. */
static void queue(struct eski_pending *pending) {
    struct esk_partition *partition = pending->partition;
    pending->append.group_id = partition->group_id;
    pending->append.entry = pending->entry.entry;
    pending->append.persisted = on_persisted;
    pending->append.durable = on_durable;
    esk_list_append(&partition->pending, &pending->link);
    if (partition->unapplied == NULL) {
        partition->unapplied = &pending->link;
    }
    partition->shard->in_journal++;
    eski_stall_arm(partition->shard);
    eski_partition_hold(partition);
    esk_journal_append(partition->shard->journal, &pending->append);
}

/* Gives the entry its index. */
static void append(struct eski_pending *pending) {
    struct esk_partition *partition = pending->partition;
    const struct esk_event event = {.kind = ESK_EVENT_SUBMIT, .count = 1};
    struct esk_update update;
    ESK_ASSERT(esk_group_step(partition->group, &event, &update) == ESK_OK);
    ESK_ASSERT(update.append && update.first_index == update.last_index);
    struct esk_entry *entry = &pending->entry.entry;
    entry->index = update.first_index;
    entry->term = esk_group_term(partition->group);
    if (pending->entry.block != NULL) {
        size_t trailer = entry->kind == ESK_ENTRY_PRODUCER ? ESK_SEQUENCE_TRAILER_BYTES : 0;
        entry->payload =
            esk_slice(pending->entry.block->data, pending->entry.block->size + trailer);
    }
    pending->append.records = pending->entry.record_count;
    queue(pending);
}

void eski_submit_internal(struct esk_partition *partition, uint8_t kind, struct esk_block *block,
                          struct esk_submit *submit) {
    struct eski_pending *pending = pending_create(partition, kind, block);
    pending->append.strict = kind == ESK_ENTRY_LOG_START;
    pending->submit = submit;
    append(pending);
}

struct esk_block *eski_offset_payload(uint64_t offset) {
    struct esk_block *block = esk_block_create(8);
    esk_store_u64(block->data, offset);
    block->size = 8;
    return block;
}

/* Begins the next segment when this batch would pass the open one's limit. */
static void roll_if_full(struct esk_partition *partition, uint32_t size) {
    if (partition->submit_segment_bytes == 0 ||
        partition->submit_segment_bytes + size <= partition->submit_segment_limit) {
        return;
    }
    eski_submit_internal(partition, ESK_ENTRY_SEGMENT_ROLL,
                         eski_offset_payload(partition->submit_offset), NULL);
    partition->submit_segment_bytes = 0;
    partition->submit_segment_limit = partition->settings.segment_bytes;
}

void eski_submit_now(struct esk_submit *submit) {
    struct esk_partition *partition = submit->partition;
    bool batch = esk_entry_has_batch(submit->kind);
    if (batch) {
        roll_if_full(partition, submit->block->size);
    }
    struct eski_pending *pending = pending_create(partition, submit->kind, submit->block);
    pending->append.strict = submit->strict;
    submit->block = NULL;
    pending->submit = submit;
    pending->entry.timestamp_ms = submit->timestamp_ms;
    pending->entry.record_count = submit->record_count;
    pending->entry.base_offset = partition->submit_offset;
    if (batch) {
        esk_batch_patch(pending->entry.block->data, (int64_t)partition->submit_offset,
                        (int32_t)esk_group_term(partition->group));
        partition->submit_offset += submit->record_count;
        partition->submit_segment_bytes += pending->entry.block->size;
    }
    if (submit->sequences != NULL) {
        const struct eski_trailer trailer = {submit->sequences->producer_id,
                                             submit->sequences->first};
        eski_trailer_write(pending->entry.block, &trailer);
        pending->append.strict = true;
        pending->entry.producer = submit->sequences->producer;
        append(pending);
        eski_sequences_submitted(submit->sequences, pending->entry.base_offset);
        return;
    }
    append(pending);
}

/* --- the first entry of a term --- */

void eski_partition_begin(struct esk_partition *partition) {
    const struct esk_event event = {.kind = ESK_EVENT_STATE_STORED};
    struct esk_update update;
    ESK_ASSERT(esk_group_step(partition->group, &event, &update) == ESK_OK);
    ESK_ASSERT(update.append_term_entry);
    struct eski_pending *pending = pending_create(partition, ESK_ENTRY_TERM, NULL);
    pending->append.strict = true;
    pending->entry.entry.index = update.first_index;
    pending->entry.entry.term = esk_group_term(partition->group);
    queue(pending);
}
