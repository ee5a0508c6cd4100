/* SPDX-License-Identifier: Apache-2.0 */
/* From a submit to its answer: admission, consensus, journal, apply.
 *
 * Invariants: entries of a partition get their index and offset in the order of submit; a submit
 * that waits for room makes all later ones of the shard wait behind it; an answer comes after the
 * entry was persisted (by the flush policy), committed and applied; what is admitted has a place in
 * the ballast until it is in a segment. After the journal failed nothing is answered any more. */
#include "partition/partition_private.h"

#include "base/assert.h"
#include "base/mutation.h"
#include "model/record_batch.h"
#include "storage/reserve.h"
#include "storage/room.h"

#include <stdlib.h>

#define ROOM_RETRY_NS UINT64_C(100000000) /* 0.1 s: how often a full disk is asked again */

static void fail_run(struct esk_mail *mail) {
    struct esk_submit *submit = ESK_CONTAINER(mail, struct esk_submit, mail);
    submit->done(submit, submit->err);
}

void eski_submit_fail(struct esk_submit *submit, enum esk_err err) {
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
    esk_list_remove(&pending->link);
    free(pending);
    eski_partition_let_go(partition);
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
    struct esk_link *link = partition->pending.next;
    while (link != &partition->pending) {
        struct eski_pending *pending = ESK_CONTAINER(link, struct eski_pending, link);
        link = link->next;
        if (pending->applied) {
            continue;
        }
        if (pending->append.entry.index > commit_index) {
            break;
        }
        struct esk_error error;
        bool term = pending->entry.entry.kind == ESK_ENTRY_TERM;
        bool records = pending->entry.entry.kind == ESK_ENTRY_BATCH;
        pending->entry.journal_position = pending->append.position;
        enum esk_err err =
            partition->removed ? ESK_ERR_NOT_FOUND : eski_apply(partition, &pending->entry, &error);
        ESK_ASSERT(err == ESK_OK || partition->removed); /* checked before the submit */
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
    eski_partition_hold(partition);
    if (!partition->removed) {
        eski_mover_note(partition, append->position);
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
    eski_partition_hold(partition);
    settle(pending);
    if (!partition->removed) {
        eski_mover_note_tail(partition);
    }
    eski_partition_let_go(partition);
    eski_mover_kick(shard);
}

static struct eski_pending *pending_create(struct esk_partition *partition, uint8_t kind,
                                           struct esk_block *block) {
    struct eski_pending *pending = esk_alloc_zeroed(1, sizeof(*pending));
    pending->partition = partition;
    pending->entry.block = block;
    pending->entry.entry.kind = kind;
    return pending;
}

/* Gives the entry its index and hands it to the journal. */
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
        entry->payload = esk_slice(pending->entry.block->data, pending->entry.block->size);
    }
    pending->append.group_id = partition->group_id;
    pending->append.entry = *entry;
    pending->append.records = pending->entry.record_count;
    pending->append.persisted = on_persisted;
    pending->append.durable = on_durable;
    esk_list_append(&partition->pending, &pending->link);
    eski_partition_hold(partition);
    esk_journal_append(partition->shard->journal, &pending->append);
}

void eski_submit_internal(struct esk_partition *partition, uint8_t kind, struct esk_block *block,
                          struct esk_submit *submit) {
    struct eski_pending *pending = pending_create(partition, kind, block);
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

static void submit_now(struct esk_submit *submit) {
    struct esk_partition *partition = submit->partition;
    bool batch = submit->kind == ESK_ENTRY_BATCH;
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
    append(pending);
}

/* --- admission ---------------------------------------------------------------------------------
 */

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
    shard->grow_err =
        esk_room_grow_reserve(shard->options.storage, shard->grow_bytes, &shard->grow_error);
    shard->grow_mail.run = grow_done;
    esk_post(&shard->loop->executor, mail);
}

static void grow(struct esk_shard *shard, uint64_t bytes) {
    if (shard->growing) {
        return;
    }
    shard->grow_bytes = bytes;
    shard->growing = true;
    shard->grow_mail.run = grow_run;
    esk_post(shard->writer, &shard->grow_mail);
}

/* ESK_OK: admitted. ESK_ERR_AGAIN: it has to wait. */
static enum esk_err admit(struct esk_shard *shard, const struct esk_submit *submit) {
    if (shard->failed) {
        return ESK_ERR_UNAVAILABLE;
    }
    enum esk_err err;
    if (!esk_journal_has_room(shard->journal, &err)) {
        return err;
    }
    if (submit->kind != ESK_ENTRY_BATCH) {
        return ESK_OK;
    }
    uint64_t size = submit->block->size;
    if (shard->tail_bytes > 0 && shard->tail_bytes + size > shard->options.tail_bytes_max) {
        return ESK_ERR_AGAIN;
    }
    err = esk_reserve_take(shard->options.storage->reserve, size);
    if (err == ESK_OK) {
        shard->tail_bytes += size;
        shard->reserved_bytes += size;
        esk_counter_set(&shard->metrics.tail_bytes, shard->tail_bytes);
    } else {
        grow(shard, size); /* also after NO_SPACE: the next one may find room */
    }
    return err;
}

static void wait_for_room(struct esk_shard *shard) {
    esk_timer_start(shard->loop, &shard->room_timer, esk_loop_now_ns(shard->loop) + ROOM_RETRY_NS);
    eski_mover_kick(shard);
}

void eski_waiting_kick(struct esk_shard *shard) {
    struct esk_link *link;
    while ((link = esk_list_first(&shard->waiting)) != NULL) {
        struct esk_submit *submit = ESK_CONTAINER(link, struct esk_submit, link);
        enum esk_err err = submit->partition->removed ? ESK_ERR_NOT_FOUND : admit(shard, submit);
        if (err == ESK_ERR_AGAIN) {
            wait_for_room(shard);
            return;
        }
        esk_list_remove(link);
        if (err == ESK_OK) {
            submit_now(submit);
        } else {
            eski_submit_fail(submit, err);
        }
        eski_partition_let_go(submit->partition);
    }
}

void esk_partition_submit(struct esk_partition *partition, struct esk_submit *submit) {
    struct esk_shard *shard = partition->shard;
    submit->partition = partition;
    ESK_ASSERT(submit->kind == ESK_ENTRY_BATCH || partition->machine != NULL);
    if (!partition->serving || shard->stopping) {
        eski_submit_fail(submit, ESK_ERR_UNAVAILABLE);
        return;
    }
    enum esk_err err = esk_list_empty(&shard->waiting) ? admit(shard, submit) : ESK_ERR_AGAIN;
    if (err == ESK_OK) {
        submit_now(submit);
    } else if (err == ESK_ERR_AGAIN) {
        eski_partition_hold(partition);
        esk_list_append(&shard->waiting, &submit->link);
        wait_for_room(shard);
    } else {
        eski_submit_fail(submit, err);
    }
}

/* --- the first entry of a term -----------------------------------------------------------------
 */

void eski_partition_begin(struct esk_partition *partition) {
    const struct esk_event event = {.kind = ESK_EVENT_STATE_STORED};
    struct esk_update update;
    ESK_ASSERT(esk_group_step(partition->group, &event, &update) == ESK_OK);
    ESK_ASSERT(update.append_term_entry);
    struct eski_pending *pending = pending_create(partition, ESK_ENTRY_TERM, NULL);
    pending->append.strict = true;
    pending->entry.entry.index = update.first_index;
    pending->entry.entry.term = esk_group_term(partition->group);
    pending->append.group_id = partition->group_id;
    pending->append.entry = pending->entry.entry;
    pending->append.persisted = on_persisted;
    pending->append.durable = on_durable;
    esk_list_append(&partition->pending, &pending->link);
    eski_partition_hold(partition);
    esk_journal_append(partition->shard->journal, &pending->append);
}
