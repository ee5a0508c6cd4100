/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction passes: a pass walks over the shard's partitions and compacts one after the other, in
 * rounds: note the keys of the part that is not compacted yet, as many as the map holds; write the
 * segments up to there anew, a few at a time, each durable before the next; note how far it got.
 *
 * Invariants (storage/compaction.h says why they are enough):
 *  - Only settled segments are touched: sealed, stored, wholly below the last durable checkpoint.
 *  - A segment that a job works on is marked; retention advances the log start meanwhile, and drops
 *    it when the job is back. The files of a removed partition go when the job is back, too.
 *  - A switch is durable on disk before the loop learns of it. Reads that began before it end on
 *    the old file, or find it gone and begin again on the new one.
 *
 * Failure: a full disk or a damaged batch ends the work on that partition, which stays as it is;
 * ESK_ERR_IO ends the broker. */
#include "partition/compact_private.h"

#include "base/assert.h"
#include "base/mutation.h"

#include <stdlib.h>

#define PARTITIONS_PER_TURN 256          /* as retention: a look costs under a microsecond */
#define DIRTY_PERCENT 50                 /* of a log, from where on a pass is worth it: Kafka */
#define WATCH_NS UINT64_C(50000000)      /* between two looks at what else goes on: 50 ms */
#define BUSY_NS UINT64_C(1000000000)     /* since the last entry: clients are at work: 1 s */
#define BUSY_PAUSE_NS UINT64_C(4000000)  /* between two slices then: at most 32 MB/s */
#define PATIENCE_NS UINT64_C(2000000000) /* with checkpoints: 2 s */

static void walk(struct esk_mail *mail);
static void start_pass(struct esk_shard *shard);
static void plan(struct eski_compaction *pass);

static bool ending(const struct esk_shard *shard) {
    return shard->failed || shard->stopping || shard->no_waits;
}

bool eski_compaction_runs(const struct esk_shard *shard) {
    return shard->compaction != NULL;
}

/* --- one partition after the other --- */

static void post_removals(struct eski_compaction *pass) {
    while (pass->removals != NULL) {
        struct esk_mail *mail = pass->removals;
        pass->removals = mail->next;
        esk_post(pass->shard->writer, mail);
    }
}

bool eski_compaction_defers(struct esk_shard *shard, struct esk_partition_removal *removal) {
    struct eski_compaction *pass = shard->compaction;
    if (pass == NULL || !pass->working || !pass->partition->removed) {
        return false;
    }
    atomic_store_explicit(&pass->pace.stop, true, memory_order_relaxed);
    removal->mail.next = pass->removals;
    pass->removals = &removal->mail;
    return true;
}

static void partition_done(struct eski_compaction *pass) {
    struct esk_shard *shard = pass->shard;
    struct esk_partition *partition = pass->partition;
    pass->partition = NULL;
    pass->waiting = false;
    post_removals(pass);
    eski_partition_let_go(partition);
    pass->mail.run = walk;
    esk_post(&shard->loop->executor, &pass->mail);
}

/* Ends the work on the partition; what it holds is given back by the cleaner. */
static void finish_round(struct eski_compaction *pass, bool complete) {
    struct esk_partition *partition = pass->partition;
    pass->complete = complete;
    pass->cleaned_offset = pass->map_end;
    pass->store_cleaned =
        complete && !partition->removed && pass->map_end > partition->cleaned_offset;
    eski_compact_work(pass, ESKI_COMPACT_FINISH);
}

static void round_finished(struct eski_compaction *pass) {
    struct esk_partition *partition = pass->partition;
    if (pass->err == ESK_OK && pass->complete) {
        if (pass->map_end > partition->cleaned_offset) {
            partition->cleaned_offset = pass->map_end;
        }
        if (!ending(pass->shard) && !partition->removed) {
            plan(pass);
            return;
        }
    }
    partition_done(pass);
}

/* --- a round --- */

static bool is_due(const struct eski_compaction *pass, const struct esk_compaction_input *input,
                   int64_t now_ms) {
    return input->horizon_ms != ESK_HORIZON_NONE && input->horizon_ms <= now_ms &&
           input->end_offset <= pass->partition->cleaned_offset;
}

/* How many inputs from `at` on fit into one segment. */
static size_t group_size(const struct eski_compaction *pass, size_t at) {
    const struct esk_compaction_input *first = &pass->inputs[at];
    uint64_t bytes = first->bytes;
    size_t end = at + 1;
    while (end < pass->input_count && pass->inputs[end].base_offset < pass->map_end &&
           pass->inputs[end].base_offset == pass->inputs[end - 1].end_offset &&
           bytes + pass->inputs[end].bytes <= pass->partition->settings.segment_bytes &&
           pass->inputs[end].end_offset - first->base_offset <= UINT32_MAX) {
        bytes += pass->inputs[end].bytes;
        end++;
    }
    return end - at;
}

static void take_inputs(struct eski_compaction *pass) {
    const struct esk_partition *partition = pass->partition;
    size_t settled = eski_settled_segments(partition);
    pass->inputs = esk_realloc(pass->inputs, (settled + 1) * sizeof(*pass->inputs));
    pass->input_count = 0;
    for (size_t i = 0; i < settled; i++) {
        const struct eski_segment *segment = partition->segments[i];
        if (segment->end_offset > partition->log_start) {
            pass->inputs[pass->input_count++] = (struct esk_compaction_input){
                .base_offset = segment->base_offset,
                .end_offset = segment->end_offset,
                .bytes = segment->bytes,
                .horizon_ms = segment->horizon_ms,
                .revision = segment->revision,
            };
        }
    }
}

/* Whether a round has anything to do, and from where on. */
static bool is_worth_it(struct eski_compaction *pass, int64_t now_ms) {
    const struct esk_partition *partition = pass->partition;
    uint64_t bytes = 0;
    uint64_t dirty_bytes = 0;
    bool work = false;
    uint64_t end = pass->inputs[pass->input_count - 1].end_offset;
    for (size_t i = 0; i < pass->input_count; i++) {
        const struct esk_compaction_input *input = &pass->inputs[i];
        bytes += input->bytes;
        dirty_bytes += input->end_offset > partition->cleaned_offset ? input->bytes : 0;
        work |= is_due(pass, input, now_ms);
    }
    bool dirty = end > partition->cleaned_offset;
    pass->map_end = end;
    if (dirty && (pass->everything || dirty_bytes * 100 >= bytes * DIRTY_PERCENT)) {
        pass->from = partition->cleaned_offset > pass->inputs[0].base_offset
                         ? partition->cleaned_offset
                         : pass->inputs[0].base_offset;
        return true;
    }
    while (pass->input_count > 0 &&
           pass->inputs[pass->input_count - 1].end_offset > partition->cleaned_offset) {
        pass->input_count--; /* not worth it yet */
    }
    if (pass->input_count == 0) {
        return false;
    }
    pass->map_end = pass->from = pass->inputs[pass->input_count - 1].end_offset;
    for (size_t i = 0; i < pass->input_count && !work; i++) {
        work = group_size(pass, i) > 1;
    }
    return work;
}

static void plan(struct eski_compaction *pass) {
    struct esk_shard *shard = pass->shard;
    int64_t now_ms = esk_wall_ms(shard->platform);
    take_inputs(pass);
    if (pass->input_count == 0 || !is_worth_it(pass, now_ms)) {
        partition_done(pass);
        return;
    }
    pass->now_ms = now_ms;
    pass->tombstone_retention_ms = pass->partition->settings.tombstone_retention_ms;
    pass->at = 0;
    pass->group_count = 0;
    pass->map_bytes_max = shard->options.key_map_bytes;
    pass->seed = 0;
    esk_random_bytes(shard->platform, &pass->seed, sizeof(pass->seed));
    eski_compact_work(pass, ESKI_COMPACT_MAP);
}

/* The first of the inputs at `at`, when all of them are still what they were. */
static bool find_group(const struct eski_compaction *pass, size_t *first) {
    const struct esk_partition *partition = pass->partition;
    const struct esk_compaction_input *inputs = pass->inputs + pass->at;
    size_t i = 0;
    while (i < partition->segment_count &&
           partition->segments[i]->base_offset < inputs[0].base_offset) {
        i++;
    }
    *first = i;
    for (size_t k = 0; k < pass->group_count; k++, i++) {
        if (i + 1 >= partition->segment_count ||
            partition->segments[i]->base_offset != inputs[k].base_offset ||
            partition->segments[i]->revision != inputs[k].revision) {
            return false;
        }
    }
    return true;
}

static void mark_group(struct eski_compaction *pass, size_t first, bool compacting) {
    for (size_t i = first; i < first + pass->group_count; i++) {
        pass->partition->segments[i]->compacting = compacting;
    }
}

/* The next inputs that may change. */
static void next_group(struct eski_compaction *pass) {
    size_t first;
    bool mapped = pass->map.count > 0;
    for (; pass->at < pass->input_count; pass->at += pass->group_count) {
        if (pass->inputs[pass->at].base_offset >= pass->map_end) {
            break;
        }
        pass->group_count = group_size(pass, pass->at);
        bool wanted =
            pass->group_count > 1 || mapped || is_due(pass, &pass->inputs[pass->at], pass->now_ms);
        if (wanted && find_group(pass, &first)) {
            mark_group(pass, first, true);
            eski_compact_work(pass, ESKI_COMPACT_REWRITE);
            return;
        }
        pass->group_count = wanted ? 1 : pass->group_count; /* retention dropped the first */
    }
    finish_round(pass, true);
}

static void swap(struct eski_compaction *pass, size_t first) {
    struct esk_partition *partition = pass->partition;
    struct esk_shard *shard = pass->shard;
    struct esk_compaction_result *result = &pass->result;
    const struct esk_segment_summary *summary = &result->summary;
    uint64_t freed =
        result->bytes_before > summary->bytes ? result->bytes_before - summary->bytes : 0;
    for (size_t i = 0; i < pass->group_count; i++) {
        const struct esk_compaction_input *input = &pass->inputs[pass->at + i];
        eski_compact_remove_later(
            pass, (struct eski_compact_file){input->base_offset, input->revision, i > 0});
    }
    struct eski_segment *segment = eski_segments_replace(partition, first, pass->group_count);
    segment->bytes = segment->written = segment->synced = segment->indexed = summary->bytes;
    segment->timestamp_ms = segment->written_timestamp_ms = summary->timestamp_ms;
    segment->revision = summary->revision;
    segment->horizon_ms = summary->horizon_ms;
    segment->index = result->index;
    segment->index_ready = true;
    esk_index_init(&result->index);
    eski_segment_keep_file(shard, segment, result->file);
    result->file = NULL;
    pass->segments_compacted += pass->group_count;
    pass->records_removed += result->records_removed;
    pass->bytes_freed += freed;
    esk_counter_add(&shard->metrics.compaction_records, result->records_removed);
    esk_counter_add(&shard->metrics.compaction_bytes, freed);
    ESK_REACHED(COMPACTION);
    if (pass->group_count > 1) {
        ESK_REACHED(COMPACTION_MERGE);
    }
}

static void rewritten(struct eski_compaction *pass) {
    struct esk_partition *partition = pass->partition;
    size_t first;
    ESK_ASSERT(find_group(pass, &first)); /* it was marked */
    mark_group(pass, first, false);
    if (pass->err == ESK_OK && pass->result.rewritten && !partition->removed) {
        swap(pass, first);
    }
    esk_segment_release(pass->result.file);
    esk_index_fini(&pass->result.index);
    if (!partition->removed) {
        eski_log_start_applied(partition); /* what retention wanted meanwhile */
    }
    if (pass->err != ESK_OK || partition->removed || ending(pass->shard)) {
        finish_round(pass, false);
        return;
    }
    pass->at += pass->group_count;
    next_group(pass);
}

/* --- the steps of a partition --- */

static void tell(struct eski_compaction *pass, enum esk_err err, const struct esk_error *error) {
    struct esk_shard *shard = pass->shard;
    if (err == ESK_ERR_IO) {
        eski_shard_fail(shard, error);
    } else if (err != ESK_OK && err != ESK_ERR_UNAVAILABLE && !pass->partition->removed) {
        ESK_LOG(shard->options.log, ESK_LOG_WARN, "not-compacted",
                "a partition could not be compacted, or files it no longer needs stay until the "
                "next start",
                esk_field_u64("group", pass->partition->group_id),
                esk_field_text("detail", error->text));
    }
}

void eski_compact_done(struct eski_compaction *pass) {
    struct esk_shard *shard = pass->shard;
    struct esk_partition *partition = pass->partition;
    tell(pass, pass->err, &pass->error);
    tell(pass, pass->remove_err, &pass->remove_error);
    pass->remove_err = ESK_OK;
    if (partition->removed) {
        post_removals(pass);
    }
    switch (pass->step) {
    case ESKI_COMPACT_LOAD:
        if (pass->err == ESK_OK) {
            partition->cleaned_known = true;
            partition->cleaned_offset = pass->cleaned_offset;
        }
        if (pass->err == ESK_OK && !partition->removed && !ending(shard)) {
            plan(pass);
        } else {
            partition_done(pass);
        }
        break;
    case ESKI_COMPACT_MAP:
        if (pass->err != ESK_OK || partition->removed || ending(shard)) {
            finish_round(pass, false);
            break;
        }
        if (pass->map_end < pass->inputs[pass->input_count - 1].end_offset) {
            ESK_REACHED(COMPACTION_MAP_FULL);
        }
        next_group(pass);
        break;
    case ESKI_COMPACT_REWRITE:
        rewritten(pass);
        break;
    case ESKI_COMPACT_FINISH:
        round_finished(pass);
        break;
    }
}

static void begin_work(struct eski_compaction *pass) {
    pass->waiting = false;
    if (pass->partition->cleaned_known) {
        plan(pass);
    } else {
        eski_compact_work(pass, ESKI_COMPACT_LOAD);
    }
}

static bool is_unsettled(const struct esk_partition *partition) {
    return eski_settled_segments(partition) + 1 < partition->segment_count;
}

/* What is asked for is everything: what is sealed already is settled first. */
static void begin(struct eski_compaction *pass, struct esk_partition *partition) {
    struct esk_shard *shard = pass->shard;
    eski_partition_hold(partition);
    pass->partition = partition;
    atomic_store_explicit(&pass->pace.stop, false, memory_order_relaxed);
    if (pass->everything && is_unsettled(partition)) {
        pass->waiting = true;
        pass->patience_ns = esk_loop_now_ns(shard->loop) + PATIENCE_NS;
        eski_mover_settle(partition);
    } else {
        begin_work(pass);
    }
}

static void wait_over(struct eski_compaction *pass) {
    if (ending(pass->shard) || pass->partition->removed) {
        partition_done(pass);
    } else {
        begin_work(pass);
    }
}

void eski_compaction_settled(struct esk_partition *partition) {
    struct eski_compaction *pass = partition->shard->compaction;
    if (pass == NULL || !pass->waiting || pass->partition != partition) {
        return;
    }
    if (is_unsettled(partition) && !partition->removed && !ending(pass->shard)) {
        eski_mover_settle(partition);
    } else {
        wait_over(pass);
    }
}

/* --- the pass --- */

static void set_pace(struct eski_compaction *pass) {
    struct esk_shard *shard = pass->shard;
    uint64_t now = esk_loop_now_ns(shard->loop);
    bool busy = now < shard->active_ns + BUSY_NS && shard->active_ns != 0;
    atomic_store_explicit(&pass->pace.pause_ns, busy ? BUSY_PAUSE_NS : 0, memory_order_relaxed);
}

static void watch(struct esk_timer *timer) {
    struct eski_compaction *pass = ESK_CONTAINER(timer, struct eski_compaction, timer);
    struct esk_shard *shard = pass->shard;
    uint64_t now = esk_loop_now_ns(shard->loop);
    set_pace(pass);
    esk_timer_start(shard->loop, &pass->timer, now + WATCH_NS);
    if (pass->waiting && (now >= pass->patience_ns || ending(shard) || pass->partition->removed)) {
        wait_over(pass);
    }
}

void eski_compaction_stop(struct esk_shard *shard) {
    if (shard->compaction != NULL) {
        atomic_store_explicit(&shard->compaction->pace.stop, true, memory_order_relaxed);
        esk_timer_start(shard->loop, &shard->compaction->timer, esk_loop_now_ns(shard->loop));
    }
}

static void finish_pass(struct eski_compaction *pass) {
    struct esk_shard *shard = pass->shard;
    struct esk_link served;
    struct esk_link *link;
    esk_list_init(&served);
    while ((link = esk_list_first(&shard->compactions_active)) != NULL) {
        esk_list_remove(link);
        esk_list_append(&served, link);
    }
    shard->compaction = NULL;
    esk_timer_stop(shard->loop, &pass->timer);
    esk_counter_add(&shard->metrics.compaction_passes, 1);
    while ((link = esk_list_first(&served)) != NULL) {
        struct esk_compaction_pass *waiter = ESK_CONTAINER(link, struct esk_compaction_pass, link);
        esk_list_remove(link);
        waiter->segments_compacted = pass->segments_compacted;
        waiter->records_removed = pass->records_removed;
        waiter->bytes_freed = pass->bytes_freed;
        waiter->done(waiter);
    }
    free(pass->group_ids);
    free(pass->inputs);
    free(pass->files);
    free(pass);
    if (!esk_list_empty(&shard->compactions) && shard->compaction == NULL) {
        start_pass(shard);
    }
    eski_shard_step_stop(shard);
}

static void walk(struct esk_mail *mail) {
    struct eski_compaction *pass = ESK_CONTAINER(mail, struct eski_compaction, mail);
    struct esk_shard *shard = pass->shard;
    size_t end = pass->next + PARTITIONS_PER_TURN;
    while (pass->next < pass->count && pass->next < end && !ending(shard)) {
        struct esk_partition *partition = esk_shard_find(shard, pass->group_ids[pass->next++]);
        if (partition != NULL && partition->machine == NULL && partition->serving &&
            partition->settings.compaction && partition->segment_count > 1) {
            begin(pass, partition);
            return;
        }
    }
    if (pass->next < pass->count && !ending(shard)) {
        esk_post(&shard->loop->executor, mail);
    } else {
        finish_pass(pass);
    }
}

static void start_pass(struct esk_shard *shard) {
    struct eski_compaction *pass = esk_alloc_zeroed(1, sizeof(*pass));
    size_t position = 0;
    void *partition;
    struct esk_link *link;
    pass->shard = shard;
    pass->group_ids = esk_alloc((shard->partitions.count + 1) * sizeof(uint64_t));
    while (esk_u64_map_next(&shard->partitions, &position, &pass->group_ids[pass->count],
                            &partition)) {
        pass->count++;
    }
    shard->compaction = pass;
    while ((link = esk_list_first(&shard->compactions)) != NULL) {
        pass->everything |= ESK_CONTAINER(link, struct esk_compaction_pass, link)->everything;
        esk_list_remove(link);
        esk_list_append(&shard->compactions_active, link);
    }
    pass->timer.run = watch;
    set_pace(pass);
    esk_timer_start(shard->loop, &pass->timer, esk_loop_now_ns(shard->loop) + WATCH_NS);
    pass->mail.run = walk;
    esk_post(&shard->loop->executor, &pass->mail);
}

void esk_shard_run_compaction(struct esk_shard *shard, struct esk_compaction_pass *pass) {
    pass->segments_compacted = pass->records_removed = pass->bytes_freed = 0;
    esk_list_append(&shard->compactions, &pass->link);
    if (shard->compaction == NULL) {
        start_pass(shard);
    }
}
