/* SPDX-License-Identifier: Apache-2.0 */
/* The shard: from recovery to the loop, and its end. A stop is a chain of conditions that every
 * event re-examines (eski_shard_step_stop): nothing waits, everything is checkpointed, files that
 * go are gone; then the journal closes. */
#include "partition/partition_private.h"

#include "base/assert.h"

#include <stdlib.h>

static void room(void *context) {
    eski_waiting_kick(context);
}

static void room_timer(struct esk_timer *timer) {
    struct esk_shard *shard = ESK_CONTAINER(timer, struct esk_shard, room_timer);
    eski_waiting_kick(shard);
    eski_shard_step_stop(shard);
}

static void journal_failed(void *context, const struct esk_error *error) {
    eski_shard_fail(context, error);
}

void eski_shard_fail(struct esk_shard *shard, const struct esk_error *error) {
    if (!shard->failed) {
        shard->failed = true;
        shard->options.failed(shard->options.context, error);
        eski_retention_stop(shard);
        eski_compaction_stop(shard);
        eski_waiting_kick(shard);
    }
}

enum esk_err esk_shard_recover(const struct esk_shard_options *options, struct esk_shard **shard,
                               struct esk_error *error) {
    struct esk_shard *made = esk_alloc_zeroed(1, sizeof(*made));
    made->options = *options;
    made->loop = options->loop;
    made->platform = options->platform;
    made->options.journal.platform = options->platform;
    made->options.journal.loop = options->loop;
    made->options.journal.metrics = &made->metrics.journal;
    made->options.journal.failed = journal_failed;
    made->options.journal.room = room;
    made->options.journal.context = made;
    made->room_timer.run = room_timer;
    made->stall_timer.run = eski_stall_check;
    esk_u64_map_init(&made->partitions);
    esk_u64_map_init(&made->producers);
    esk_list_init(&made->waiting);
    esk_list_init(&made->reads);
    esk_list_init(&made->recent);
    esk_list_init(&made->passes);
    esk_list_init(&made->passes_active);
    esk_list_init(&made->retention_waits);
    esk_list_init(&made->compactions);
    esk_list_init(&made->compactions_active);
    eski_mover_init(made);
    enum esk_err err = esk_journal_recover(&made->options.journal, &made->recovery, error);
    if (err != ESK_OK) {
        esk_shard_destroy(made);
        return err;
    }
    *shard = made;
    return ESK_OK;
}

bool esk_shard_knows(const struct esk_shard *shard, uint64_t group_id) {
    return esk_journal_recovery_find(shard->recovery, group_id) != NULL;
}

void esk_shard_destroy(struct esk_shard *shard) {
    size_t position = 0;
    uint64_t group_id;
    void *partition;
    while (esk_u64_map_next(&shard->partitions, &position, &group_id, &partition)) {
        eski_partition_destroy(partition);
    }
    if (shard->recovery != NULL) {
        esk_journal_recovery_destroy(shard->recovery);
    }
    if (shard->writer != NULL) {
        esk_worker_destroy(shard->platform, shard->writer);
    }
    if (shard->cleaner != NULL) {
        esk_worker_destroy(shard->platform, shard->cleaner);
    }
    esk_u64_map_fini(&shard->partitions);
    esk_u64_map_fini(&shard->producers);
    esk_deadlines_fini(&shard->oldest);
    free(shard);
}

/* --- start --- */

/* Raises a group's term; state is what the journal is to store. */
static void raise_term(struct esk_partition *partition, struct esk_group_state *state) {
    const struct esk_event event = {.kind = ESK_EVENT_START};
    struct esk_update update;
    ESK_ASSERT(esk_group_step(partition->group, &event, &update) == ESK_OK);
    ESK_ASSERT(update.store_state);
    *state = (struct esk_group_state){
        .group_id = partition->group_id,
        .term = update.term,
        .voted_for = update.voted_for,
        .configuration = {.count = 1, .nodes = {partition->shard->options.node}},
        .checkpoint = partition->checkpoint,
    };
}

enum esk_err esk_shard_open(struct esk_shard *shard, struct esk_error *error) {
    size_t count = shard->partitions.count;
    struct esk_group_state *states = esk_alloc_zeroed(count + 1, sizeof(*states));
    size_t position = 0;
    size_t i = 0;
    uint64_t group_id;
    void *partition;
    enum esk_err err = ESK_OK;
    while (err == ESK_OK &&
           esk_u64_map_next(&shard->partitions, &position, &group_id, &partition)) {
        err = eski_partition_ready(partition, error);
        if (err == ESK_OK) {
            raise_term(partition, &states[i++]);
        }
    }
    if (err == ESK_OK) {
        err = esk_journal_open(&shard->options.journal, &shard->recovery, states, count,
                               &shard->journal, error);
    }
    free(states);
    if (err != ESK_OK) {
        esk_wrap(error, "open the journal of shard %u", shard->options.journal.shard);
        return err;
    }
    shard->writer = esk_worker_create(shard->platform, "writer", 1);
    return ESK_OK;
}

static void start_run(struct esk_mail *mail) {
    struct esk_shard *shard = ESK_CONTAINER(mail, struct esk_shard, mail);
    shard->started = true;
    shard->starting = shard->partitions.count;
    size_t position = 0;
    uint64_t group_id;
    void *value;
    while (esk_u64_map_next(&shard->partitions, &position, &group_id, &value)) {
        struct esk_partition *partition = value;
        partition->records_in = partition->bytes_in = 0;
        eski_partition_begin(partition);
        if (partition->applied_index > partition->checkpoint.applied_index) {
            eski_mover_note(partition, 0);
        }
        eski_mover_note_tail(partition);
    }
    if (shard->starting == 0) {
        shard->done(shard->done_context);
    }
    eski_mover_kick(shard);
}

void esk_shard_start(struct esk_shard *shard, void (*done)(void *context), void *context) {
    shard->done = done;
    shard->done_context = context;
    shard->mail.run = start_run;
    esk_post(&shard->loop->executor, &shard->mail);
}

/* --- stop --- */

static void stopped(void *context) {
    struct esk_shard *shard = context;
    esk_timer_stop(shard->loop, &shard->stall_timer);
    shard->journal = NULL;
    shard->done(shard->done_context);
}

void eski_shard_step_stop(struct esk_shard *shard) {
    if (!shard->stopping || shard->journal == NULL || shard->closing) {
        return;
    }
    bool settled = shard->failed || !shard->started || !esk_shard_has_space(shard) ||
                   (esk_list_empty(&shard->waiting) && shard->checkpoints_out == 0 &&
                    (eski_mover_idle(shard) || shard->mover_stuck));
    if (!settled || eski_retention_runs(shard) || eski_compaction_runs(shard) || shard->moving ||
        shard->growing || shard->removing > 0 || shard->reads_away > 0) {
        eski_mover_kick(shard);
        return;
    }
    shard->closing = true;
    esk_timer_stop(shard->loop, &shard->room_timer);
    esk_timer_stop(shard->loop, &shard->mover_timer);
    esk_journal_close(shard->journal, stopped, shard);
}

void esk_shard_end_waits(struct esk_shard *shard) {
    shard->no_waits = true;
    eski_retention_stop(shard);
    eski_compaction_stop(shard);
    size_t position = 0;
    uint64_t group_id;
    void *partition;
    while (esk_u64_map_next(&shard->partitions, &position, &group_id, &partition)) {
        eski_reads_end(partition, ESK_OK);
    }
}

void esk_shard_stop(struct esk_shard *shard, void (*done)(void *context), void *context) {
    shard->done = done;
    shard->done_context = context;
    shard->stopping = true;
    esk_shard_end_waits(shard);
    eski_shard_step_stop(shard);
}

/* --- look-ups --- */

bool esk_shard_has_space(const struct esk_shard *shard) {
    enum esk_err err;
    return esk_journal_has_room(shard->journal, &err) || err != ESK_ERR_NO_SPACE;
}

bool esk_shard_is_open(const struct esk_shard *shard) {
    return shard->journal != NULL;
}

struct esk_loop *esk_shard_loop(const struct esk_shard *shard) {
    return shard->loop;
}

struct esk_partition *esk_shard_find(const struct esk_shard *shard, uint64_t group_id) {
    return esk_u64_map_get(&shard->partitions, group_id);
}

const struct esk_shard_metrics *esk_shard_metrics(const struct esk_shard *shard) {
    return &shard->metrics;
}
