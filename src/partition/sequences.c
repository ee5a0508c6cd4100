/* SPDX-License-Identifier: Apache-2.0 */
/* Turns and judgements, see sequences.h.
 *
 * Invariants: at most one produce holds a producer's turn; only the holder judges and submits, so
 * what it was told still holds when its entry gets its index. The turn ends there, not when the
 * entry is durable: the next one is judged over what is in flight. */
#include "partition/producers_private.h"

#include "base/assert.h"
#include "base/mutation.h"

bool esk_sequences_take(struct esk_partition *partition, struct esk_sequences *sequences) {
    struct eski_producer *producer = eski_producer_obtain(partition, sequences->producer_id);
    sequences->partition = partition;
    sequences->producer = producer;
    eski_partition_hold(partition);
    if (producer->holder == NULL) {
        producer->holder = sequences;
        return true;
    }
    ESK_REACHED(SEQUENCES_IN_LINE);
    partition->in_line++;
    esk_list_append(&producer->line, &sequences->link);
    return false;
}

static void taken_run(struct esk_mail *mail) {
    struct esk_sequences *sequences = ESK_CONTAINER(mail, struct esk_sequences, mail);
    struct esk_partition *partition = sequences->partition;
    enum esk_err err = sequences->err;
    if (err == ESK_OK && partition->removed) { /* deleted on the way */
        esk_sequences_release(sequences);
        err = ESK_ERR_NOT_FOUND;
    }
    sequences->taken(sequences, err);
}

static void tell(struct esk_sequences *sequences, enum esk_err err) {
    sequences->err = err;
    sequences->mail.run = taken_run;
    esk_post(&sequences->partition->shard->loop->executor, &sequences->mail);
}

void esk_sequences_release(struct esk_sequences *sequences) {
    struct eski_producer *producer = sequences->producer;
    ESK_ASSERT(producer->holder == sequences);
    struct esk_link *link = esk_list_first(&producer->line);
    producer->holder = NULL;
    if (link != NULL) {
        producer->holder = ESK_CONTAINER(link, struct esk_sequences, link);
        esk_list_remove(link);
        sequences->partition->in_line--;
        tell(producer->holder, ESK_OK);
    }
    eski_producer_release(producer);
    eski_partition_let_go(sequences->partition);
}

bool esk_sequences_are_void(const struct esk_sequences *sequences) {
    return sequences->partition->removed;
}

/* --- judgement --- */

static bool has_memory(const struct esk_shard *shard) {
    return shard->options.producer_bytes_max == 0 ||
           shard->producer_bytes <= shard->options.producer_bytes_max;
}

enum esk_sequence_verdict esk_sequences_judge(struct esk_sequences *sequences) {
    const struct eski_producer *producer = sequences->producer;
    bool known = producer->known;
    uint64_t next = producer->next;
    if (ESK_MUTATED(RETRY_WRITTEN_TWICE) && sequences->count > 0 &&
        (uint64_t)sequences->items[0].sequence < next) { /* blind to what is in flight */
        known = producer->applied;
        next = producer->applied_next;
    }
    if (!known && !has_memory(sequences->partition->shard)) {
        return ESK_SEQUENCE_FULL;
    }
    sequences->new_count = 0;
    sequences->first = 0;
    sequences->awaited = 0;
    for (uint32_t i = 0; i < sequences->count; i++) {
        struct esk_sequence *item = &sequences->items[i];
        uint64_t sequence = (uint64_t)item->sequence;
        sequences->failed = i;
        sequences->expected = next;
        item->duplicate = item->here = false;
        if (!known || sequence == next) {
            if (sequences->new_count == 0) {
                sequences->first = sequence;
            }
            item->here = true;
            item->offset = sequences->new_count++;
            known = true;
            next = sequence + 1;
            continue;
        }
        item->duplicate = true;
        if (sequence > next) {
            return ESK_SEQUENCE_GAP;
        }
        item->here = sequences->new_count > 0 && sequence >= sequences->first;
        item->offset = item->here ? sequence - sequences->first : 0;
        if (next - sequence > ESK_SEQUENCE_WINDOW ||
            (!item->here && !eski_producer_offset(producer, sequence, &item->offset))) {
            return ESK_SEQUENCE_TOO_LOW;
        }
        if (!item->here && sequence >= producer->applied_next && sequence >= sequences->awaited) {
            sequences->awaited = sequence + 1;
        }
    }
    return ESK_SEQUENCE_FITS;
}

void eski_sequences_submitted(struct esk_sequences *sequences, uint64_t base_offset) {
    eski_producer_accept(sequences->producer, sequences->first, sequences->new_count, base_offset);
    esk_sequences_release(sequences);
}

/* --- duplicates of what is in flight --- */

static void await_done(struct esk_mail *mail) {
    struct esk_submit *submit = ESK_CONTAINER(mail, struct esk_submit, mail);
    submit->done(submit, submit->err);
}

static void await_end(struct esk_submit *submit, enum esk_err err) {
    struct esk_partition *partition = submit->partition;
    submit->err = err;
    submit->mail.run = await_done;
    esk_post(&partition->shard->loop->executor, &submit->mail);
}

void esk_sequences_await(struct esk_sequences *sequences, struct esk_submit *submit) {
    struct esk_partition *partition = sequences->partition;
    submit->partition = partition;
    submit->sequences = sequences;
    submit->base_offset = 0;
    if (partition->removed) {
        await_end(submit, ESK_ERR_NOT_FOUND);
    } else if (sequences->producer->applied_next >= sequences->awaited) {
        await_end(submit, ESK_OK);
    } else {
        ESK_REACHED(RETRY_AWAITED);
        eski_partition_hold(partition);
        esk_list_append(&partition->awaits, &submit->link);
    }
    esk_sequences_release(sequences);
}

void eski_awaits_wake(struct esk_partition *partition) {
    struct esk_link *next;
    for (struct esk_link *link = partition->awaits.next; link != &partition->awaits; link = next) {
        struct esk_submit *submit = ESK_CONTAINER(link, struct esk_submit, link);
        next = link->next;
        if (submit->sequences->producer->applied_next >= submit->sequences->awaited) {
            esk_list_remove(link);
            await_end(submit, ESK_OK);
            eski_partition_let_go(partition);
        }
    }
}

void eski_awaits_end(struct esk_partition *partition, enum esk_err err) {
    struct esk_link *link;
    while ((link = esk_list_first(&partition->awaits)) != NULL) {
        esk_list_remove(link);
        await_end(ESK_CONTAINER(link, struct esk_submit, link), err);
        eski_partition_let_go(partition);
    }
}

void eski_sequences_end(struct esk_partition *partition) {
    struct esk_link *link;
    struct esk_link *next;
    eski_awaits_end(partition, ESK_ERR_NOT_FOUND);
    for (link = partition->producer_list.next;
         partition->in_line > 0 && link != &partition->producer_list; link = next) {
        struct eski_producer *producer = ESK_CONTAINER(link, struct eski_producer, link);
        struct esk_link *waiting;
        next = link->next;
        while ((waiting = esk_list_first(&producer->line)) != NULL) {
            struct esk_sequences *sequences = ESK_CONTAINER(waiting, struct esk_sequences, link);
            esk_list_remove(waiting);
            partition->in_line--;
            tell(sequences, ESK_ERR_NOT_FOUND);
            eski_partition_let_go(partition); /* not the last: the caller holds it */
        }
    }
}
