/* SPDX-License-Identifier: Apache-2.0 */
/* Retention by age and size: a pass looks at every partition of the shard, a few per mail, and
 * submits a log-start entry where sealed segments are due. Segments go when that entry is applied,
 * so that replicas agree; their files go behind it, in the writer.
 *
 * Only sealed segments that are stored and lie wholly below the last checkpoint are touched: what
 * the journal might still replay never meets a missing file. */
#include "partition/partition_private.h"

#include "base/mutation.h"

#include <stdlib.h>

#define PARTITIONS_PER_TURN                                                                        \
    256 /* a look costs about 0.1 us a segment: well under a millisecond                           \
         */

/* The pass that runs. */
struct eski_retention {
    struct esk_mail mail;
    struct esk_shard *shard;
    uint64_t *group_ids; /* as of its start */
    size_t count;
    size_t next;
    size_t waiting; /* for log starts to be applied, files to go, segments to be settled */
    bool walked;
    bool everything;        /* somebody asked for it: what is due is settled first */
    struct esk_timer timer; /* ends the wait for that */
    uint64_t segments_deleted;
    uint64_t bytes_freed;
};

/* A file of a dropped segment. */
struct dropped {
    uint64_t base_offset;
    uint32_t revision;
};

/* Files of dropped segments, for the writer. */
struct removal {
    struct esk_mail mail;
    struct esk_partition *partition;
    struct esk_shard *shard;
    struct dropped *files;
    size_t count;
    bool counted; /* a pass waits for it */
    enum esk_err err;
    struct esk_error error;
};

/* A log-start entry of a pass. */
struct log_start {
    struct esk_submit submit;
    struct eski_retention *pass;
};

#define PATIENCE_NS UINT64_C(10000000000) /* with checkpoints, of those who asked: 10 s */

static void start_pass(struct esk_shard *shard);

bool eski_retention_runs(const struct esk_shard *shard) {
    /* After a failure nothing is answered any more: only the mail that walks counts. */
    return shard->retention != NULL && !(shard->failed && shard->retention->walked);
}

static void finish_pass_if_done(struct eski_retention *pass) {
    struct esk_shard *shard = pass->shard;
    if (!pass->walked || pass->waiting > 0) {
        return;
    }
    shard->retention = NULL;
    esk_timer_stop(shard->loop, &pass->timer);
    eski_ballast_shrink_if_idle(shard);
    esk_counter_add(&shard->metrics.cleanup_passes, 1);
    struct esk_link *link;
    while ((link = esk_list_first(&shard->passes_active)) != NULL) {
        struct esk_retention_pass *waiter = ESK_CONTAINER(link, struct esk_retention_pass, link);
        esk_list_remove(link);
        waiter->segments_deleted = pass->segments_deleted;
        waiter->bytes_freed = pass->bytes_freed;
        waiter->done(waiter);
    }
    free(pass->group_ids);
    free(pass);
    if (!esk_list_empty(&shard->passes)) {
        start_pass(shard);
    }
    eski_shard_step_stop(shard);
}

static void removed(struct esk_mail *mail) {
    struct removal *removal = ESK_CONTAINER(mail, struct removal, mail);
    struct esk_shard *shard = removal->shard;
    ESK_REACHED(RETENTION);
    if (removal->err == ESK_ERR_IO) { /* maybe a failed sync: who knows what else it took along */
        eski_shard_fail(shard, &removal->error);
    } else if (removal->err != ESK_OK) { /* the file stays behind; the next start removes it */
        ESK_LOG(shard->options.log, ESK_LOG_WARN, "segment-not-removed",
                "a segment beyond retention could not be removed",
                esk_field_text("detail", removal->error.text));
    }
    eski_partition_let_go(removal->partition);
    bool counted = removal->counted;
    free(removal->files);
    free(removal);
    shard->removing--;
    if (counted) {
        shard->retention->waiting--;
        finish_pass_if_done(shard->retention);
    }
    eski_shard_step_stop(shard);
}

static void remove_files(struct esk_mail *mail) {
    struct removal *removal = ESK_CONTAINER(mail, struct removal, mail);
    for (size_t i = 0; i < removal->count && removal->err == ESK_OK; i++) {
        removal->err = esk_segment_remove(
            removal->shard->options.storage, removal->partition->group_id,
            removal->files[i].base_offset, removal->files[i].revision, &removal->error);
    }
    mail->run = removed;
    esk_post(&removal->shard->loop->executor, mail);
}

static bool is_settled(const struct esk_partition *partition, const struct eski_segment *segment) {
    return segment->stored && (segment->end_offset <= partition->checkpoint.segment_offset ||
                               ESK_MUTATED(CLEANING_ABOVE_CHECKPOINT));
}

size_t eski_settled_segments(const struct esk_partition *partition) {
    size_t count = 0;
    while (count + 1 < partition->segment_count &&
           is_settled(partition, partition->segments[count])) {
        count++;
    }
    return count;
}

/* Settled segments wholly below the log start, up to the first that compaction works on. */
static size_t droppable(const struct esk_partition *partition) {
    size_t count = 0;
    while (count + 1 < partition->segment_count) {
        const struct eski_segment *segment = partition->segments[count];
        if (!is_settled(partition, segment) || segment->end_offset > partition->log_start ||
            segment->compacting) {
            break;
        }
        count++;
    }
    return count;
}

void eski_log_start_applied(struct esk_partition *partition) {
    struct esk_shard *shard = partition->shard;
    size_t count = droppable(partition);
    if (count == 0 || shard->journal == NULL) {
        return; /* recovery removes leftovers itself */
    }
    struct removal *removal = esk_alloc_zeroed(1, sizeof(*removal));
    removal->partition = partition;
    removal->shard = shard;
    removal->files = esk_alloc(count * sizeof(struct dropped));
    removal->count = count;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct eski_segment *segment = partition->segments[i];
        removal->files[i] = (struct dropped){segment->base_offset, segment->revision};
        bytes += segment->bytes;
        esk_counter_add(&shard->metrics.cleanup_records,
                        segment->end_offset - segment->base_offset);
    }
    eski_segments_drop(partition, count);
    esk_counter_add(&shard->metrics.cleanup_bytes, bytes);
    shard->removing++;
    if (shard->retention != NULL) {
        removal->counted = true;
        shard->retention->waiting++;
        shard->retention->segments_deleted += count;
        shard->retention->bytes_freed += bytes;
    }
    eski_partition_hold(partition);
    removal->mail.run = remove_files;
    esk_post(shard->writer, &removal->mail);
}

/* The log start that the settings ask for now, as far as what lies before it is settled;
 * *unsettled: they ask for more. */
static uint64_t wanted_start(const struct esk_partition *partition, int64_t now_ms,
                             bool *unsettled) {
    const struct esk_partition_settings *settings = &partition->settings;
    uint64_t start = partition->log_start;
    uint64_t bytes = 0;
    for (size_t i = 0; i < partition->segment_count; i++) {
        bytes += partition->segments[i]->bytes;
    }
    for (size_t i = 0; i + 1 < partition->segment_count; i++) {
        const struct eski_segment *segment = partition->segments[i];
        bool old = settings->retention_ms >= 0 && segment->timestamp_ms >= 0 &&
                   now_ms - segment->timestamp_ms > settings->retention_ms;
        bool large = settings->retention_bytes >= 0 && bytes > (uint64_t)settings->retention_bytes;
        if (!old && !large) {
            break;
        }
        if (!is_settled(partition, segment)) {
            *unsettled = true;
            break;
        }
        bytes -= segment->bytes;
        start = segment->end_offset;
    }
    return start;
}

static void log_start_done(struct esk_submit *submit, enum esk_err err) {
    (void)err; /* applied, or its topic is gone */
    struct log_start *log_start = ESK_CONTAINER(submit, struct log_start, submit);
    struct eski_retention *pass = log_start->pass;
    free(log_start);
    pass->waiting--;
    finish_pass_if_done(pass);
}

static bool ending(const struct esk_shard *shard) {
    return shard->failed || shard->stopping || shard->no_waits;
}

static void look_at(struct eski_retention *pass, struct esk_partition *partition) {
    if (partition->machine != NULL || !partition->settings.retention || !partition->serving) {
        return;
    }
    bool unsettled = false;
    uint64_t start = wanted_start(partition, esk_wall_ms(pass->shard->platform), &unsettled);
    if (unsettled) {
        eski_mover_settle(partition); /* for the next pass, or for this one */
    }
    if (unsettled && pass->everything && !ending(pass->shard)) {
        esk_list_append(&pass->shard->retention_waits, &partition->retention_wait);
        pass->waiting++;
    }
    if (start > partition->log_start) {
        struct log_start *log_start = esk_alloc_zeroed(1, sizeof(*log_start));
        log_start->pass = pass;
        log_start->submit.done = log_start_done;
        pass->waiting++;
        eski_submit_internal(partition, ESK_ENTRY_LOG_START, eski_offset_payload(start),
                             &log_start->submit);
    }
}

void eski_retention_settled(struct esk_partition *partition) {
    struct esk_shard *shard = partition->shard;
    if (esk_list_empty(&partition->retention_wait)) {
        return;
    }
    esk_list_remove(&partition->retention_wait);
    if (!partition->removed && !ending(shard)) {
        look_at(shard->retention, partition);
    }
    shard->retention->waiting--;
    finish_pass_if_done(shard->retention);
}

static void wait_over(struct esk_timer *timer) {
    struct eski_retention *pass = ESK_CONTAINER(timer, struct eski_retention, timer);
    struct esk_link *link;
    while ((link = esk_list_first(&pass->shard->retention_waits)) != NULL) {
        esk_list_remove(link);
        pass->waiting--;
    }
    finish_pass_if_done(pass);
}

void eski_retention_stop(struct esk_shard *shard) {
    if (shard->retention != NULL) {
        esk_timer_start(shard->loop, &shard->retention->timer, esk_loop_now_ns(shard->loop));
    }
}

static void walk(struct esk_mail *mail) {
    struct eski_retention *pass = ESK_CONTAINER(mail, struct eski_retention, mail);
    struct esk_shard *shard = pass->shard;
    size_t end = pass->next + PARTITIONS_PER_TURN;
    for (; pass->next < pass->count && pass->next < end && !ending(shard); pass->next++) {
        struct esk_partition *partition = esk_shard_find(shard, pass->group_ids[pass->next]);
        if (partition != NULL) {
            look_at(pass, partition);
        }
    }
    if (pass->next < pass->count && !ending(shard)) {
        esk_post(&shard->loop->executor, mail);
        return;
    }
    pass->walked = true;
    finish_pass_if_done(pass);
}

static void start_pass(struct esk_shard *shard) {
    struct eski_retention *pass = esk_alloc_zeroed(1, sizeof(*pass));
    pass->shard = shard;
    pass->group_ids = esk_alloc((shard->partitions.count + 1) * sizeof(uint64_t));
    size_t position = 0;
    void *partition;
    while (esk_u64_map_next(&shard->partitions, &position, &pass->group_ids[pass->count],
                            &partition)) {
        pass->count++;
    }
    shard->retention = pass;
    struct esk_link *link;
    while ((link = esk_list_first(&shard->passes)) != NULL) {
        pass->everything |= ESK_CONTAINER(link, struct esk_retention_pass, link)->everything;
        esk_list_remove(link);
        esk_list_append(&shard->passes_active, link);
    }
    pass->timer.run = wait_over;
    esk_timer_start(shard->loop, &pass->timer, esk_loop_now_ns(shard->loop) + PATIENCE_NS);
    pass->mail.run = walk;
    esk_post(&shard->loop->executor, &pass->mail);
}

void esk_shard_run_retention(struct esk_shard *shard, struct esk_retention_pass *pass) {
    pass->segments_deleted = 0;
    pass->bytes_freed = 0;
    esk_list_append(&shard->passes, &pass->link);
    if (shard->retention == NULL) {
        start_pass(shard);
    }
}
