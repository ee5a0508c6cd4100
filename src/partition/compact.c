/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction passes: a pass walks over the shard's partitions and compacts one after the other.
 * What somebody asked for is settled first: it waits for the checkpoint of what is sealed.
 *
 * A stop, or a removal of the partition, ends the work on it soon; the files of a removed one go
 * when its job is back. */
#include "partition/compact_private.h"

#include <stdlib.h>

#define PARTITIONS_PER_TURN 256          /* as retention: a look costs under a microsecond */
#define WATCH_NS UINT64_C(50000000)      /* between two looks at what else goes on: 50 ms */
#define BUSY_NS UINT64_C(1000000000)     /* since the last entry: clients are at work: 1 s */
#define BUSY_PAUSE_NS UINT64_C(4000000)  /* between two slices then: at most 32 MB/s */
#define PATIENCE_NS UINT64_C(2000000000) /* with checkpoints: 2 s */

static void walk(struct esk_mail *mail);
static void start_pass(struct esk_shard *shard);

bool eski_compaction_runs(const struct esk_shard *shard) {
    return shard->compaction != NULL;
}

/* --- one partition after the other --- */

void eski_compact_post_removals(struct eski_compaction *pass) {
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

void eski_compact_partition_done(struct eski_compaction *pass) {
    struct esk_shard *shard = pass->shard;
    struct esk_partition *partition = pass->partition;
    pass->partition = NULL;
    pass->waiting = false;
    eski_compact_post_removals(pass);
    eski_partition_let_go(partition);
    pass->mail.run = walk;
    esk_post(&shard->loop->executor, &pass->mail);
}

static void begin_work(struct eski_compaction *pass) {
    pass->waiting = false;
    if (pass->partition->cleaned_known) {
        eski_compact_plan(pass);
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
    for (size_t i = 0; i < partition->segment_count; i++) {
        partition->segments[i]->compacted = false;
    }
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
    if (eski_compact_ends(pass->shard) || pass->partition->removed) {
        eski_compact_partition_done(pass);
    } else {
        begin_work(pass);
    }
}

void eski_compaction_settled(struct esk_partition *partition) {
    struct eski_compaction *pass = partition->shard->compaction;
    if (pass == NULL || !pass->waiting || pass->partition != partition) {
        return;
    }
    if (is_unsettled(partition) && !partition->removed && !eski_compact_ends(pass->shard)) {
        eski_mover_settle(partition);
    } else {
        wait_over(pass);
    }
}

/* --- the pass --- */

static void set_pace(struct eski_compaction *pass) {
    struct esk_shard *shard = pass->shard;
    uint64_t active_ns = shard->active_ns;
    if (shard->options.active_ns != NULL) {
        active_ns = atomic_load_explicit(shard->options.active_ns, memory_order_relaxed);
    }
    bool busy = active_ns != 0 && esk_loop_now_ns(shard->loop) < active_ns + BUSY_NS;
    atomic_store_explicit(&pass->pace.pause_ns, busy ? BUSY_PAUSE_NS : 0, memory_order_relaxed);
}

static void watch(struct esk_timer *timer) {
    struct eski_compaction *pass = ESK_CONTAINER(timer, struct eski_compaction, timer);
    struct esk_shard *shard = pass->shard;
    uint64_t now = esk_loop_now_ns(shard->loop);
    set_pace(pass);
    esk_timer_start(shard->loop, &pass->timer, now + WATCH_NS);
    if (pass->waiting &&
        (now >= pass->patience_ns || eski_compact_ends(shard) || pass->partition->removed)) {
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
    while (pass->next < pass->count && pass->next < end && !eski_compact_ends(shard)) {
        struct esk_partition *partition = esk_shard_find(shard, pass->group_ids[pass->next++]);
        if (partition != NULL && partition->machine == NULL && partition->serving &&
            partition->settings.compaction && partition->segment_count > 1) {
            begin(pass, partition);
            return;
        }
    }
    if (pass->next < pass->count && !eski_compact_ends(shard)) {
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
