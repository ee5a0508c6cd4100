/* SPDX-License-Identifier: Apache-2.0 */
/* A produce with a producer_id: its name is resolved in the client's shard; then the request goes
 * from shard to shard, takes its turn at each partition and is judged there, in ascending order, so
 * that two requests never wait for each other. Where the last part fits, everything is submitted;
 * where one does not, the turns are given back and nothing is written. On one shard all of that is
 * one mail, or none. */
#include "broker/produce_private.h"

#include <inttypes.h>
#include <stdlib.h>

#define LOOP_FILTER_BYTES (256u << 10) /* copied in the loop; more in a helper */

/* --- making one --- */

static int compare_parts(const void *a, const void *b) {
    const struct eski_produce_part *left = ((const struct eski_sequenced_part *)a)->part;
    const struct eski_produce_part *right = ((const struct eski_sequenced_part *)b)->part;
    if (left->owner != right->owner) {
        return left->owner < right->owner ? -1 : 1; /* in one array */
    }
    return left->partition < right->partition ? -1 : left->partition > right->partition;
}

size_t eski_sequenced_bytes(const struct esk_produce *produce, uint32_t part_count) {
    return sizeof(struct eski_sequenced) + part_count * sizeof(struct eski_sequenced_part) +
           produce->record_count * sizeof(struct esk_sequence);
}

void eski_sequenced_init(struct eski_produce_job *job) {
    const struct esk_produce *produce = job->produce;
    struct eski_sequenced *made = (struct eski_sequenced *)(void *)(job->parts + job->part_count);
    job->sequenced = made;
    made->job = job;
    made->parts = (struct eski_sequenced_part *)(made + 1);
    struct esk_sequence *items = (struct esk_sequence *)(made->parts + job->part_count);
    for (uint32_t i = 0; i < job->part_count; i++) {
        made->parts[i].sequenced = made;
        made->parts[i].part = &job->parts[i];
        made->parts[i].sequences.items = items;
        items += job->parts[i].record_count;
    }
    for (uint32_t i = 0; i < produce->record_count; i++) {
        struct esk_sequences *sequences =
            &made->parts[produce->records[i].written_offset].sequences;
        sequences->items[sequences->count++] =
            (struct esk_sequence){.sequence = produce->records[i].sequence, .record = i};
    }
    if (job->part_count > 1) {
        qsort(made->parts, job->part_count, sizeof(made->parts[0]), compare_parts);
    }
}

void eski_sequenced_fill(struct eski_produce_job *job) {
    for (uint32_t i = 0; i < job->part_count; i++) {
        const struct eski_sequenced_part *part = &job->sequenced->parts[i];
        for (uint32_t r = 0; r < part->sequences.count; r++) {
            const struct esk_sequence *item = &part->sequences.items[r];
            struct esk_produce_record *record = &job->produce->records[item->record];
            record->written_offset =
                item->offset + (item->here ? part->part->submit.base_offset : 0);
            record->duplicate = item->duplicate;
        }
    }
}

/* --- what does not fit --- */

static void refused(struct esk_mail *mail) {
    struct eski_sequenced *sequenced = ESK_CONTAINER(mail, struct eski_sequenced, mail);
    enum esk_err err = sequenced->err;
    if (!sequenced->told) {
        eski_explain(err, &sequenced->job->produce->error);
    }
    eski_produce_refuse(sequenced->job, err);
}

static void one_back(struct eski_sequenced *sequenced) {
    if (--sequenced->waiting == 0) {
        refused(&sequenced->mail);
    }
}

static void last_back(struct esk_mail *mail) {
    one_back(ESK_CONTAINER(mail, struct eski_sequenced, mail));
}

static void part_back(struct esk_mail *mail) {
    one_back(ESK_CONTAINER(mail, struct eski_sequenced_part, mail)->sequenced);
}

static void release_run(struct esk_mail *mail) {
    struct eski_sequenced_part *part = ESK_CONTAINER(mail, struct eski_sequenced_part, mail);
    esk_sequences_release(&part->sequences);
    eski_post(part->sequenced->job->home, mail, part_back);
}

/* Gives all turns back; in the shard of the part that does not fit, whose own turn is over. */
static void refuse(struct eski_sequenced *sequenced, enum esk_err err) {
    const struct esk_broker_shard *here = sequenced->here;
    sequenced->err = err;
    sequenced->waiting = 1;
    for (uint32_t i = 0; i < sequenced->at; i++) {
        sequenced->waiting += sequenced->parts[i].part->owner != here;
    }
    for (uint32_t i = 0; i < sequenced->at; i++) {
        struct eski_sequenced_part *part = &sequenced->parts[i];
        if (part->part->owner == here) {
            esk_sequences_release(&part->sequences);
        } else {
            eski_post(part->part->owner, &part->mail, release_run);
        }
    }
    eski_post(sequenced->job->home, &sequenced->mail, last_back);
}

static enum esk_err explain(const struct eski_sequenced_part *part,
                            enum esk_sequence_verdict verdict) {
    const struct esk_sequences *sequences = &part->sequences;
    const struct esk_sequence *item = &sequences->items[sequences->failed];
    struct esk_error *error = &part->sequenced->job->produce->error;
    switch (verdict) {
    case ESK_SEQUENCE_FITS:
        return ESK_OK;
    case ESK_SEQUENCE_GAP:
        return esk_fail(error, ESK_ERR_SEQUENCE_GAP,
                        "sequence gap: records[%" PRIu32 "].sequence is %" PRId64
                        ", partition %" PRIu32 " expects %" PRIu64
                        ": send the missing records first",
                        item->record, item->sequence, part->part->partition, sequences->expected);
    case ESK_SEQUENCE_TOO_LOW:
        return esk_fail(error, ESK_ERR_SEQUENCE_TOO_LOW,
                        "sequence too low: records[%" PRIu32 "].sequence is %" PRId64
                        ", partition %" PRIu32 " expects %" PRIu64
                        " and knows at most the %d before it",
                        item->record, item->sequence, part->part->partition, sequences->expected,
                        ESK_SEQUENCE_WINDOW);
    case ESK_SEQUENCE_FULL:
        return esk_fail(error, ESK_ERR_UNAVAILABLE,
                        "too many producers: there is no memory for another one's sequences");
    }
    return ESK_ERR_INTERNAL;
}

/* --- what does --- */

static void submit_run(struct esk_mail *mail) {
    struct eski_sequenced_part *sequenced = ESK_CONTAINER(mail, struct eski_sequenced_part, mail);
    struct eski_produce_part *part = sequenced->part;
    struct esk_sequences *sequences = &sequenced->sequences;
    if (esk_sequences_are_void(sequences)) {
        esk_sequences_release(sequences);
        esk_block_release(part->submit.block);
        eski_post(part->owner, &part->mail, eski_produce_part_fail);
        return;
    }
    part->submit.kind = ESK_ENTRY_PRODUCER;
    part->submit.strict = true;
    part->submit.sequences = sequences;
    part->submit.record_count = sequences->new_count;
    esk_partition_submit(sequences->partition, &part->submit);
}

static void filter_run(struct esk_mail *mail) {
    struct eski_sequenced_part *part = ESK_CONTAINER(mail, struct eski_sequenced_part, mail);
    eski_sequenced_filter(part);
    eski_post(part->part->owner, mail, submit_run);
}

/* Judged, in its turn, in its owner's loop. */
static void commit_run(struct esk_mail *mail) {
    struct eski_sequenced_part *sequenced = ESK_CONTAINER(mail, struct eski_sequenced_part, mail);
    struct eski_produce_part *part = sequenced->part;
    struct esk_sequences *sequences = &sequenced->sequences;
    part->submit.done = eski_produce_part_written;
    if (sequences->new_count == 0) {
        esk_block_release(part->submit.block);
        part->submit.block = NULL;
        esk_sequences_await(sequences, &part->submit);
        return;
    }
    if (sequences->new_count < sequences->count) {
        if (part->submit.block->size > LOOP_FILTER_BYTES) {
            mail->run = filter_run;
            esk_post(part->owner->broker->helpers, mail);
            return;
        }
        eski_sequenced_filter(sequenced);
    }
    submit_run(mail);
}

/* Every part fits; in the shard of the last one. */
static void commit(struct eski_sequenced *sequenced) {
    struct eski_produce_job *job = sequenced->job;
    const struct esk_broker_shard *here = sequenced->here;
    uint32_t count = job->part_count;
    job->waiting = count;
    for (uint32_t i = 0; i < count; i++) { /* the request may be answered with the last one */
        struct eski_sequenced_part *part = &sequenced->parts[i];
        if (part->part->owner == here) {
            commit_run(&part->mail);
        } else {
            eski_post(part->part->owner, &part->mail, commit_run);
        }
    }
}

/* --- the turns --- */

static void walk(struct eski_sequenced *sequenced);

static void walk_run(struct esk_mail *mail) {
    walk(ESK_CONTAINER(mail, struct eski_sequenced, mail));
}

/* The part at `at` has its turn. false: it does not fit, and the request is over. */
static bool judge(struct eski_sequenced *sequenced) {
    struct eski_sequenced_part *part = &sequenced->parts[sequenced->at];
    enum esk_err err = explain(part, esk_sequences_judge(&part->sequences));
    if (err != ESK_OK) {
        sequenced->told = true;
        esk_sequences_release(&part->sequences);
        refuse(sequenced, err);
        return false;
    }
    sequenced->at++;
    return true;
}

static void taken(struct esk_sequences *sequences, enum esk_err err) {
    struct eski_sequenced *sequenced =
        ESK_CONTAINER(sequences, struct eski_sequenced_part, sequences)->sequenced;
    if (err != ESK_OK) {
        refuse(sequenced, err);
    } else if (judge(sequenced)) {
        walk(sequenced);
    }
}

/* Takes the turns of this shard's parts, then goes on to the next shard. */
static void walk(struct eski_sequenced *sequenced) {
    struct eski_produce_job *job = sequenced->job;
    while (sequenced->at < job->part_count) {
        struct eski_sequenced_part *part = &sequenced->parts[sequenced->at];
        if (part->part->owner != sequenced->here) {
            sequenced->here = part->part->owner;
            eski_post(sequenced->here, &sequenced->mail, walk_run);
            return;
        }
        struct esk_partition *partition =
            esk_shard_find(sequenced->here->log, job->first_group + part->part->partition);
        if (partition == NULL) { /* deleted since it was routed */
            refuse(sequenced, ESK_ERR_NOT_FOUND);
            return;
        }
        part->sequences.producer_id = sequenced->producer_id;
        part->sequences.taken = taken;
        if (!esk_sequences_take(partition, &part->sequences) || !judge(sequenced)) {
            return;
        }
    }
    commit(sequenced);
}

/* --- start --- */

/* A later request could overtake one that goes through several shards. */
static void begin(struct eski_sequenced *sequenced) {
    struct eski_produce_job *job = sequenced->job;
    bool several =
        sequenced->parts[0].part->owner != sequenced->parts[job->part_count - 1].part->owner;
    job->produce->internal = several ? job : NULL;
    sequenced->here = job->home;
    walk(sequenced);
}

/* The first use of a name. */
struct first_use {
    struct eski_producer_use use;
    struct eski_sequenced *sequenced;
};

static void resolved(struct eski_producer_use *use, enum esk_err err) {
    struct first_use *first = ESK_CONTAINER(use, struct first_use, use);
    struct eski_sequenced *sequenced = first->sequenced;
    sequenced->producer_id = use->id;
    if (err != ESK_OK) {
        sequenced->job->produce->error = use->change.error;
    }
    free(first);
    if (err != ESK_OK) {
        eski_produce_refuse(sequenced->job, err);
        return;
    }
    begin(sequenced);
}

void eski_sequenced_start(struct eski_produce_job *job) {
    struct eski_sequenced *sequenced = job->sequenced;
    struct esk_produce *produce = job->produce;
    enum esk_err err = eski_producer_resolve(job->home, produce->producer_id, produce->owner,
                                             job->parts[0].submit.timestamp_ms,
                                             &sequenced->producer_id, &produce->error);
    if (err == ESK_OK) {
        begin(sequenced);
    } else if (err == ESK_ERR_AGAIN) {
        struct first_use *first = esk_alloc_zeroed(1, sizeof(*first));
        first->sequenced = sequenced;
        first->use.shard = job->home;
        first->use.name = produce->producer_id;
        first->use.owner = produce->owner;
        first->use.done = resolved;
        produce->internal = job;
        eski_producer_use_start(&first->use);
    } else {
        sequenced->err = err;
        sequenced->told = true;
        eski_post(job->home, &sequenced->mail, refused);
    }
}
