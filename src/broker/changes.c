/* SPDX-License-Identifier: Apache-2.0 */
/* The line of catalogue changes, and the doors' way into it. An answer waits until every copy has
 * the change, since the client's next request may come to any shard. */
#include "broker/changes_private.h"

#include "base/assert.h"

#include <stdlib.h>

void eski_change_count(struct eski_change *change) {
    change->counted = true;
    eski_begin(change->zero);
}

void eski_change_reply(struct eski_change *change, enum esk_err err,
                       const struct esk_error *error) {
    if (!change->replied) {
        change->replied = true;
        change->ops->reply(change, err, error);
    }
}

void eski_change_destroy(struct eski_change *change) {
    if (change->counted) {
        eski_end(change->zero);
    }
    esk_block_release(change->payload);
    free(change);
}

/* --- copies --- */

struct round {
    struct eski_change *change;
    size_t waiting;
};

struct publication {
    struct esk_mail mail;
    struct round *round; /* NULL: nobody waits */
    struct esk_broker_shard *shard;
    struct esk_topic_cursor *cursor;
    struct esk_block *payload;
};

static void round_done(struct round *round) {
    eski_change_reply(round->change, ESK_OK, NULL);
    eski_change_destroy(round->change);
    free(round);
}

static void publication_back(struct esk_mail *mail) {
    struct publication *publication = ESK_CONTAINER(mail, struct publication, mail);
    struct round *round = publication->round;
    free(publication);
    if (--round->waiting == 0) {
        round_done(round);
    }
}

static void publication_run(struct esk_mail *mail) {
    struct publication *publication = ESK_CONTAINER(mail, struct publication, mail);
    struct esk_broker_shard *shard = publication->shard;
    struct esk_slice payload = esk_slice(publication->payload->data, publication->payload->size);
    struct esk_catalogue_change entry;
    ESK_ASSERT(esk_catalogue_decode(payload, &entry, NULL) == ESK_OK);
    ESK_ASSERT(esk_catalogue_apply(&shard->catalogue, payload, publication->cursor, NULL) ==
               ESK_OK);
    eski_topic_change_arrived(shard, &entry);
    esk_block_release(publication->payload);
    if (publication->round != NULL) {
        eski_post(&shard->broker->shards[0], mail, publication_back);
    } else {
        free(publication);
    }
}

static void publish(struct esk_broker *broker, struct esk_block *payload,
                    struct esk_topic_cursor *cursor, struct round *round) {
    for (uint32_t i = 1; i < broker->shard_count; i++) {
        struct publication *publication = esk_alloc_zeroed(1, sizeof(*publication));
        publication->shard = &broker->shards[i];
        publication->cursor = cursor;
        publication->round = round;
        publication->payload = esk_block_retain(payload);
        eski_post(publication->shard, &publication->mail, publication_run);
    }
}

void eski_change_publish(struct eski_change *change, struct esk_topic_cursor *cursor) {
    publish(change->zero->broker, change->payload, cursor, NULL);
}

void eski_change_publish_and_reply(struct eski_change *change, struct esk_topic_cursor *cursor) {
    struct esk_broker *broker = change->zero->broker;
    struct round *round = esk_alloc_zeroed(1, sizeof(*round));
    round->change = change;
    round->waiting = broker->shard_count - 1;
    if (round->waiting == 0) {
        round_done(round);
    } else {
        publish(broker, change->payload, cursor, round);
    }
}

/* --- the line --- */

static void start_next(struct esk_broker_shard *zero);

static void applied(struct esk_submit *submit, enum esk_err err) {
    struct eski_change *change = ESK_CONTAINER(submit, struct eski_change, submit);
    struct esk_broker_shard *zero = change->zero;
    zero->changing = false;
    if (err != ESK_OK) {
        struct esk_error error;
        eski_explain(err, &error);
        eski_change_reply(change, err, &error);
        eski_change_destroy(change);
    } else if (change->ops->applied != NULL) {
        change->ops->applied(change);
    } else {
        eski_change_publish_and_reply(change, NULL);
    }
    start_next(zero);
}

static void late(struct esk_submit *submit) {
    struct eski_change *change = ESK_CONTAINER(submit, struct eski_change, submit);
    struct esk_error error;
    eski_explain(ESK_ERR_AGAIN, &error);
    eski_change_reply(change, ESK_ERR_AGAIN, &error);
}

/* Makes the entry, unless the change is refused or needs none. */
static void decide(struct eski_change *change) {
    struct esk_broker_shard *zero = change->zero;
    struct esk_catalogue_change entry = {0};
    struct esk_error error;
    enum esk_err err = change->ops->decide(change, &zero->catalogue, &entry, &error);
    if (err != ESK_OK || entry.kind == 0) {
        eski_change_reply(change, err, &error);
        eski_change_destroy(change);
        return;
    }
    zero->changing = true;
    esk_block_release(change->payload);
    change->payload = esk_catalogue_payload(&entry);
    change->submit = (struct esk_submit){
        .kind = ESK_ENTRY_CATALOGUE,
        .strict = true,
        .frees_room = change->frees_room,
        .block = esk_block_retain(change->payload),
        .done = applied,
        .late = late,
    };
    esk_partition_submit(esk_shard_find(zero->log, ESK_CATALOGUE_GROUP), &change->submit);
}

static void start_next(struct esk_broker_shard *zero) {
    struct esk_link *link;
    while (!zero->changing && (link = esk_list_first(&zero->changes)) != NULL) {
        esk_list_remove(link);
        decide(ESK_CONTAINER(link, struct eski_change, link));
    }
}

void eski_change_queue(struct eski_change *change) {
    esk_list_append(&change->zero->changes, &change->link);
    start_next(change->zero);
}

static void arrive(struct esk_mail *mail) {
    struct eski_change *change = ESK_CONTAINER(mail, struct eski_change, mail);
    eski_change_count(change);
    eski_change_queue(change);
}

void eski_change_start(struct eski_change *change, struct esk_broker_shard *home,
                       const struct eski_change_ops *ops) {
    change->ops = ops;
    change->home = home;
    change->zero = &home->broker->shards[0];
    eski_post(change->zero, &change->mail, arrive);
}

/* --- the doors' way in --- */

struct job {
    struct eski_change line; /* first */
    struct esk_change *change;
};

/* The answer outlives the job, which may still wait for the disk. */
struct answer {
    struct esk_mail mail;
    struct esk_broker_shard *home;
    struct esk_change *change;
    enum esk_err err;
    struct esk_error error;
};

static void answer_run(struct esk_mail *mail) {
    struct answer *answer = ESK_CONTAINER(mail, struct answer, mail);
    struct esk_change *change = answer->change;
    enum esk_err err = answer->err;
    change->error = answer->error;
    eski_end(answer->home);
    free(answer);
    change->done(change, err);
}

static enum esk_err job_decide(struct eski_change *line, const struct esk_catalogue *catalogue,
                               struct esk_catalogue_change *entry, struct esk_error *error) {
    struct esk_change *change = ((struct job *)line)->change;
    return change->decide(change, catalogue, entry, error);
}

static void job_reply(struct eski_change *line, enum esk_err err, const struct esk_error *error) {
    struct answer *answer = esk_alloc_zeroed(1, sizeof(*answer));
    answer->home = line->home;
    answer->change = ((struct job *)line)->change;
    answer->err = err;
    if (err != ESK_OK && error != NULL) {
        answer->error = *error;
    }
    eski_post(line->home, &answer->mail, answer_run);
}

static const struct eski_change_ops job_ops = {.decide = job_decide, .reply = job_reply};

void esk_change_submit(struct esk_broker_shard *shard, struct esk_change *change) {
    struct job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->change = change;
    job->line.frees_room = change->frees_room;
    eski_begin(shard);
    eski_change_start(&job->line, shard, &job_ops);
}
