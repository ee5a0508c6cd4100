/* SPDX-License-Identifier: Apache-2.0 */
/* A produce with a producer_id: its name is resolved in the client's shard; then the request goes
 * from shard to shard, in ascending order, takes its turns at that shard's partitions at once and
 * is judged there. So two requests never wait for each other, and none overtakes another in some
 * partition. Where the last part fits, everything is submitted;
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

void eski_sequenced_init(struct eski_produce_job *job) {
    size_t bytes = sizeof(struct eski_sequenced) +
                   job->part_count * sizeof(struct eski_sequenced_part) +
                   job->record_count * sizeof(struct esk_sequence);
    struct eski_sequenced *made = esk_alloc_zeroed(1, bytes);
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
    for (uint32_t i = 0; i < job->record_count; i++) {
        struct esk_sequences *sequences = &made->parts[eski_produce_place(job, i)].sequences;
        sequences->items[sequences->count++] =
            (struct esk_sequence){.sequence = job->sequences[i], .record = i};
    }
    if (job->part_count > 1) {
        qsort(made->parts, job->part_count, sizeof(made->parts[0]), compare_parts);
    }
    for (uint32_t i = 0; i < job->part_count; i++) {
        made->parts[i].part->sequenced = &made->parts[i];
    }
}

void eski_sequenced_tell(struct eski_produce_part *part, struct esk_produce_run *run) {
    const struct esk_sequence *item = &part->sequenced->sequences.items[part->next++];
    *run = (struct esk_produce_run){.partition = part->partition,
                                    .count = 1,
                                    .offset =
                                        item->offset + (item->here ? part->submit.base_offset : 0),
                                    .duplicate = item->duplicate};
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

/* Gives all turns back; in the shard of the part that does not fit. */
static void refuse(struct eski_sequenced *sequenced) {
    const struct esk_broker_shard *here = sequenced->here;
    uint32_t count = sequenced->end;
    sequenced->waiting = 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct eski_sequenced_part *part = &sequenced->parts[i];
        sequenced->waiting += part->held && part->part->owner != here;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct eski_sequenced_part *part = &sequenced->parts[i];
        if (part->held && part->part->owner != here) {
            eski_post(part->part->owner, &part->mail, release_run);
        } else if (part->held) {
            esk_sequences_release(&part->sequences);
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

/* This shard's parts have their turns, or there is an error. */
static void judge(struct eski_sequenced *sequenced) {
    for (uint32_t i = sequenced->at; i < sequenced->end && sequenced->err == ESK_OK; i++) {
        struct eski_sequenced_part *part = &sequenced->parts[i];
        sequenced->err = explain(part, esk_sequences_judge(&part->sequences));
        sequenced->told = sequenced->err != ESK_OK;
    }
    if (sequenced->err != ESK_OK) {
        refuse(sequenced);
        return;
    }
    sequenced->at = sequenced->end;
    walk(sequenced);
}

static void one_taken(struct eski_sequenced *sequenced) {
    if (--sequenced->waiting == 0) {
        judge(sequenced);
    }
}

static void taken(struct esk_sequences *sequences, enum esk_err err) {
    struct eski_sequenced_part *part =
        ESK_CONTAINER(sequences, struct eski_sequenced_part, sequences);
    part->held = err == ESK_OK;
    if (err != ESK_OK) {
        part->sequenced->err = err;
    }
    one_taken(part->sequenced);
}

/* In all lines of this shard at once, so that no later request is before it in some of them. */
static void take(struct eski_sequenced *sequenced, uint32_t i) {
    struct eski_sequenced_part *part = &sequenced->parts[i];
    struct esk_partition *partition =
        esk_shard_find(sequenced->here->log, sequenced->job->first_group + part->part->partition);
    if (partition == NULL) { /* deleted since it was routed */
        sequenced->err = ESK_ERR_NOT_FOUND;
        return;
    }
    part->sequences.producer_id = sequenced->producer_id;
    part->sequences.taken = taken;
    part->held = esk_sequences_take(partition, &part->sequences);
    sequenced->waiting += !part->held;
}

static bool is_forgotten(struct eski_sequenced *sequenced) {
    struct esk_produce *produce = sequenced->job->produce;
    if (esk_producer_by_id(&sequenced->here->catalogue.producers, sequenced->producer_id) != NULL) {
        return false;
    }
    sequenced->told = true;
    sequenced->err =
        esk_fail(&produce->error, ESK_ERR_UNAVAILABLE,
                 "producer_id '%.*s' was forgotten meanwhile: send it again",
                 (int)produce->producer_id.size, (const char *)produce->producer_id.data);
    return true;
}

/* Takes the turns of the next shard's parts, in its loop. */
static void walk(struct eski_sequenced *sequenced) {
    struct eski_produce_job *job = sequenced->job;
    if (sequenced->at == job->part_count) {
        commit(sequenced);
        return;
    }
    struct esk_broker_shard *owner = sequenced->parts[sequenced->at].part->owner;
    if (owner != sequenced->here) { /* by way of home: behind the mails of earlier requests */
        sequenced->here = sequenced->here == job->home ? owner : job->home;
        eski_post(sequenced->here, &sequenced->mail, walk_run);
        return;
    }
    sequenced->waiting = 1;
    bool forgotten = is_forgotten(sequenced); /* then its windows are going: none is to be begun */
    for (sequenced->end = sequenced->at;
         !forgotten && sequenced->end < job->part_count &&
         sequenced->parts[sequenced->end].part->owner == sequenced->here;
         sequenced->end++) {
        take(sequenced, sequenced->end);
    }
    one_taken(sequenced);
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
