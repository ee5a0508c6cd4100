/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses what the shard's writer does next: one move at a time, so that checkpoints never burst.
 *
 * Tails that grew large are written to their segments at once. Checkpoints (which sync) follow the
 * journal: the partition whose oldest entry without a checkpoint is oldest in the journal comes
 * first, the more often the fuller the journal is. When memory for tails runs short, the oldest
 * tails go too. */
#include "partition/partition_private.h"

#include "base/assert.h"
#include "base/mutation.h"

#include <stdlib.h>

#define MOVE_BYTES_MAX (16u << 20) /* one move: bounds how long another one waits: 50 ms */
#define CHECKPOINT_FULLNESS 0.25   /* of the journal: below it nothing is urgent */
#define URGENT_FULLNESS 0.5        /* above it checkpoints follow without a pause */
#define CHECKPOINT_PAUSE_NS UINT64_C(20000000) /* between two at CHECKPOINT_FULLNESS: 20 ms */
#define IDLE_NS UINT64_C(2000000000)           /* without an entry: 2 s */
#define IDLE_PAUSE_NS UINT64_C(1000000)        /* between two checkpoints then: 1 ms */
#define SLICE_PAUSE_NS UINT64_C(300000) /* between two slices at CHECKPOINT_FULLNESS: 400 MB/s */
#define ENCODE_BYTES (256u << 10)       /* of windows in a turn: about 0.2 ms */
#define RETRY_NS UINT64_C(100000000)    /* after a full disk: 0.1 s */

/* A checkpoint on its way into the journal. */
struct checkpoint {
    struct esk_journal_append append;
    struct esk_group_state state;
    struct esk_partition *partition;
};

void eski_mover_note(struct esk_partition *partition, uint64_t journal_position) {
    if (!esk_deadline_queued(&partition->oldest)) {
        esk_deadlines_push(&partition->shard->oldest, &partition->oldest, journal_position);
    }
}

void eski_mover_note_tail(struct esk_partition *partition) {
    if (partition->tail.bytes >= partition->shard->options.move_bytes &&
        esk_list_empty(&partition->full)) {
        esk_list_append(&partition->shard->full, &partition->full);
    }
}

void eski_mover_settle(struct esk_partition *partition) {
    if (esk_list_empty(&partition->settling)) {
        esk_list_append(&partition->shard->settling, &partition->settling);
    }
    eski_mover_kick(partition->shard);
}

bool eski_mover_idle(const struct esk_shard *shard) {
    return !shard->moving && shard->checkpoints_out == 0 &&
           esk_deadlines_min(&shard->oldest) == NULL;
}

/* --- checkpoints --- */

static void checkpoint_persisted(struct esk_journal_append *append) {
    (void)append; /* it counts when it is durable */
}

static void checkpoint_durable(struct esk_journal_append *append) {
    struct checkpoint *checkpoint = ESK_CONTAINER(append, struct checkpoint, append);
    struct esk_partition *partition = checkpoint->partition;
    struct esk_shard *shard = partition->shard;
    uint64_t position = append->position;
    partition->checkpoint = checkpoint->state.checkpoint;
    partition->checkpointing = false;
    shard->checkpoints_out--;
    shard->in_journal--;
    ESK_REACHED(CHECKPOINT);
    esk_counter_add(&shard->metrics.checkpoints, 1);
    free(checkpoint);
    if (!partition->removed) {
        if (partition->applied_index > partition->checkpoint.applied_index) {
            eski_mover_note(partition, partition->tail.count > 0
                                           ? esk_tail_at(&partition->tail, 0)->journal_position
                                           : position);
        }
        eski_mover_note_tail(partition);
    }
    eski_retention_settled(partition);
    eski_compaction_settled(partition);
    eski_partition_let_go(partition);
    eski_mover_kick(shard);
    eski_shard_step_stop(shard);
}

static void append_checkpoint(struct esk_partition *partition,
                              const struct esk_group_state *state) {
    struct checkpoint *checkpoint = esk_alloc_zeroed(1, sizeof(*checkpoint));
    checkpoint->partition = partition;
    checkpoint->state = *state;
    checkpoint->append.group_id = partition->group_id;
    checkpoint->append.state = &checkpoint->state;
    checkpoint->append.strict = true;
    checkpoint->append.persisted = checkpoint_persisted;
    checkpoint->append.durable = checkpoint_durable;
    partition->checkpointing = true;
    partition->shard->checkpoints_out++;
    partition->shard->in_journal++;
    eski_stall_arm(partition->shard);
    esk_deadlines_remove(&partition->shard->oldest, &partition->oldest);
    eski_partition_hold(partition);
    esk_journal_append(partition->shard->journal, &checkpoint->append);
}

/* --- moves --- */

static void move_done(struct esk_mail *mail) {
    struct eski_move *move = eski_move_of_mail(mail);
    struct esk_partition *partition = eski_move_partition(move);
    struct esk_shard *shard = partition->shard;
    struct esk_group_state state;
    struct esk_error error = {0};
    bool checkpoint;
    shard->moving = false;
    enum esk_err err = eski_move_finish(move, &checkpoint, &state, &error);
    eski_move_destroy(move);
    if (err == ESK_ERR_NO_SPACE) {
        ESK_REACHED(APPLY_NO_SPACE);
        if (!shard->mover_stuck) {
            ESK_LOG(shard->options.log, ESK_LOG_WARN, "disk-full",
                    "moving records to their segment waits for room",
                    esk_field_text("detail", error.text));
        }
        shard->mover_stuck = true;
        esk_timer_start(shard->loop, &shard->mover_timer, esk_loop_now_ns(shard->loop) + RETRY_NS);
    } else if (err != ESK_OK) {
        eski_shard_fail(shard, &error);
    } else {
        shard->mover_stuck = false;
        shard->trim_due = true;
        if (checkpoint && !shard->failed) {
            append_checkpoint(partition, &state);
        }
    }
    if (!partition->removed) {
        eski_mover_note_tail(partition);
    }
    eski_partition_let_go(partition);
    eski_waiting_kick(shard);
    eski_mover_kick(shard);
    eski_shard_step_stop(shard);
}

static void move_run(struct esk_mail *mail) {
    struct eski_move *move = eski_move_of_mail(mail);
    struct esk_shard *shard = eski_move_partition(move)->shard;
    eski_move_execute(move);
    mail->run = move_done;
    esk_post(&shard->loop->executor, mail);
}

/* A turn at a time, until the windows of producers are encoded. */
static void encode_run(struct esk_mail *mail) {
    struct eski_move *move = eski_move_of_mail(mail);
    struct esk_shard *shard = eski_move_partition(move)->shard;
    bool done = eski_move_encode(move, ENCODE_BYTES);
    mail->run = done ? move_run : encode_run;
    esk_post(done ? shard->writer : &shard->loop->executor, mail);
}

static void start_move(struct eski_move *move) {
    eski_move_partition(move)->shard->moving = true;
    encode_run(eski_move_mail(move));
}

/* The next tail that is large enough by itself. */
static struct eski_move *pick_full(struct esk_shard *shard) {
    struct esk_link *link;
    while ((link = esk_list_first(&shard->full)) != NULL) {
        struct esk_partition *partition = ESK_CONTAINER(link, struct esk_partition, full);
        esk_list_remove(link);
        if (partition->tail.bytes < shard->options.move_bytes) {
            continue;
        }
        struct eski_move *move = eski_move_create(partition, MOVE_BYTES_MAX, false);
        if (move != NULL) {
            return move;
        }
    }
    return NULL;
}

/* What was only written can't be moved. Where moves are due, waiting for the interval of relaxed
 * flushes would wait long: an entry that has to be durable starts a sync. */
static void make_durable(struct esk_partition *partition) {
    struct esk_shard *shard = partition->shard;
    if (shard->options.journal.flush_every_records != 1 && !partition->checkpointing &&
        partition->durable_index < partition->applied_index) {
        const struct esk_group_state state =
            *esk_journal_state(shard->journal, partition->group_id);
        append_checkpoint(partition, &state);
    }
}

static struct eski_move *pick_oldest(struct esk_shard *shard) {
    struct esk_deadline *first = esk_deadlines_min(&shard->oldest);
    if (first == NULL) {
        return NULL;
    }
    struct esk_partition *partition = ESK_CONTAINER(first, struct esk_partition, oldest);
    struct eski_move *move = eski_move_create(partition, MOVE_BYTES_MAX, true);
    if (move == NULL && !partition->moving && !partition->checkpointing &&
        partition->applied_index == partition->checkpoint.applied_index) {
        esk_deadlines_remove(&shard->oldest, first); /* nothing came since its checkpoint */
    } else if (move == NULL) {
        make_durable(partition);
    }
    return move;
}

static void trim_run(struct esk_mail *mail) {
    (void)mail;
    esk_memory_trim();
}

/* Once after each time that an idle shard settled; the mail is out of the writer's queue again
 * before a later move sets trim_due. */
static void trim(struct esk_shard *shard, bool idle) {
    if (idle && shard->trim_due && !shard->stopping) {
        shard->trim_due = false;
        shard->trim_mail.run = trim_run;
        esk_post(shard->writer, &shard->trim_mail);
    }
}

/* A shard that nothing was written to for a while settles: memory goes back to the system, and a
 * restart finds little to replay. */
static bool idle_due(struct esk_shard *shard, uint64_t now) {
    uint64_t idle_ns = shard->active_ns + IDLE_NS;
    uint64_t due_ns = idle_ns > shard->mover_next_ns ? idle_ns : shard->mover_next_ns;
    if (esk_deadlines_min(&shard->oldest) == NULL) {
        trim(shard, now >= idle_ns);
        return false;
    }
    if (now < due_ns) {
        esk_timer_start(shard->loop, &shard->mover_timer, due_ns);
        return false;
    }
    shard->mover_next_ns = now + IDLE_PAUSE_NS;
    return true;
}

/* The next partition whose sealed segments retention would drop, were they settled. */
static struct eski_move *pick_settling(struct esk_shard *shard) {
    struct esk_link *link;
    while ((link = esk_list_first(&shard->settling)) != NULL) {
        struct esk_partition *partition = ESK_CONTAINER(link, struct esk_partition, settling);
        if (partition->moving || partition->checkpointing) {
            return NULL; /* when that is done */
        }
        esk_list_remove(link);
        struct eski_move *move = eski_move_create(partition, MOVE_BYTES_MAX, true);
        if (move != NULL) {
            return move;
        }
    }
    return NULL;
}

/* How far from urgent the journal's fullness is: 1 while nothing presses, 0 at URGENT_FULLNESS. */
static double slack(const struct esk_shard *shard) {
    double left = URGENT_FULLNESS - esk_journal_fullness(shard->journal);
    double share = left / (URGENT_FULLNESS - CHECKPOINT_FULLNESS);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Whether a checkpoint is due now; starts the timer when it is due later. */
static bool checkpoint_due(struct esk_shard *shard) {
    if (shard->stopping || !esk_list_empty(&shard->waiting) ||
        shard->tail_bytes * 4 > shard->options.tail_bytes_max * 3) {
        return true;
    }
    double fullness = esk_journal_fullness(shard->journal);
    uint64_t now = esk_loop_now_ns(shard->loop);
    if (fullness < CHECKPOINT_FULLNESS) {
        return idle_due(shard, now);
    }
    if (fullness >= URGENT_FULLNESS || now >= shard->mover_next_ns) {
        shard->mover_next_ns = now + (uint64_t)(slack(shard) * (double)CHECKPOINT_PAUSE_NS);
        return true;
    }
    esk_timer_start(shard->loop, &shard->mover_timer, shard->mover_next_ns);
    return false;
}

void eski_mover_kick(struct esk_shard *shard) {
    if (shard->moving || shard->failed || shard->mover_stuck || shard->journal == NULL ||
        shard->closing) {
        return;
    }
    struct eski_move *move = NULL;
    bool urgent = esk_journal_fullness(shard->journal) >= URGENT_FULLNESS;
    if (!urgent) {
        move = pick_full(shard);
    }
    if (move == NULL && !urgent) {
        move = pick_settling(shard);
    }
    if (move == NULL && checkpoint_due(shard)) {
        move = pick_oldest(shard);
    }
    if (move == NULL) {
        move = pick_full(shard);
    }
    if (move != NULL) {
        bool hurry = shard->stopping || !esk_list_empty(&shard->waiting) ||
                     shard->tail_bytes * 2 > shard->options.tail_bytes_max;
        eski_move_pace(move, hurry ? 0 : (uint64_t)(slack(shard) * (double)SLICE_PAUSE_NS));
        start_move(move);
    }
}

static void mover_timer(struct esk_timer *timer) {
    struct esk_shard *shard = ESK_CONTAINER(timer, struct esk_shard, mover_timer);
    shard->mover_stuck = false;
    eski_mover_kick(shard);
    eski_shard_step_stop(shard);
}

void eski_mover_init(struct esk_shard *shard) {
    esk_deadlines_init(&shard->oldest);
    esk_list_init(&shard->full);
    esk_list_init(&shard->settling);
    shard->mover_timer.run = mover_timer;
}
