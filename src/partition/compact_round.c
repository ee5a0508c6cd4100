/* SPDX-License-Identifier: Apache-2.0 */
/* Compacting one partition, in rounds: note the keys of the part that is not compacted yet, as many
 * as the map holds; write the segments up to there anew, a few at a time, each durable before the
 * next; note how far it got.
 *
 * Invariants (storage/compaction.h says why they are enough):
 *  - Only settled segments are touched: sealed, stored, wholly below the last durable checkpoint.
 *  - A segment that a job works on is marked; retention advances the log start meanwhile, and drops
 *    it when the job is back.
 *  - A switch is durable on disk before the loop learns of it. Reads that began before it end on
 *    the old file, or find it gone and begin again on the new one.
 *
 * Failure: a full disk or a damaged batch ends the work on that partition, which stays as it is;
 * ESK_ERR_IO ends the broker. */
#include "partition/compact_private.h"

#include "base/assert.h"
#include "base/mutation.h"

#include <stdlib.h>

#define DIRTY_PERCENT 50 /* of a log, from where on a pass is worth it: Kafka */

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
    bool complete = pass->err == ESK_OK && pass->complete;
    if (complete && pass->map_end > partition->cleaned_offset) {
        partition->cleaned_offset = pass->map_end;
    }
    if ((complete || pass->again) && !eski_compact_ends(pass->shard) && !partition->removed) {
        eski_compact_plan(pass);
    } else {
        eski_compact_partition_done(pass);
    }
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

void eski_compact_plan(struct eski_compaction *pass) {
    struct esk_shard *shard = pass->shard;
    int64_t now_ms = esk_wall_ms(shard->platform);
    pass->again = false;
    take_inputs(pass);
    if (pass->input_count == 0 || !is_worth_it(pass, now_ms)) {
        eski_compact_partition_done(pass);
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
        /* What a round wrote anew, the next one may make one of with others: it counts once. */
        pass->segments_compacted += !partition->segments[first + i]->compacted;
    }
    struct eski_segment *segment = eski_segments_replace(partition, first, pass->group_count);
    segment->compacted = true;
    segment->bytes = segment->written = segment->synced = segment->indexed = summary->bytes;
    segment->timestamp_ms = segment->written_timestamp_ms = summary->timestamp_ms;
    segment->revision = summary->revision;
    segment->horizon_ms = summary->horizon_ms;
    segment->index = result->index;
    segment->index_ready = true;
    esk_index_init(&result->index);
    eski_segment_keep_file(shard, segment, result->file);
    result->file = NULL;
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
    if (pass->err != ESK_OK || partition->removed || eski_compact_ends(pass->shard)) {
        finish_round(pass, false);
        return;
    }
    pass->at += pass->group_count;
    next_group(pass);
}

/* --- the steps of a partition --- */

/* Retention drops segments while their keys are read. */
static bool are_dropped(const struct eski_compaction *pass) {
    return pass->step == ESKI_COMPACT_MAP && pass->err == ESK_ERR_NOT_FOUND &&
           pass->partition->segments[0]->base_offset > pass->inputs[0].base_offset;
}

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
    pass->again = are_dropped(pass) || (pass->again && pass->step == ESKI_COMPACT_FINISH);
    if (!pass->again) {
        tell(pass, pass->err, &pass->error);
    }
    tell(pass, pass->remove_err, &pass->remove_error);
    pass->remove_err = ESK_OK;
    if (partition->removed) {
        eski_compact_post_removals(pass);
    }
    switch (pass->step) {
    case ESKI_COMPACT_LOAD:
        if (pass->err == ESK_OK) {
            partition->cleaned_known = true;
            partition->cleaned_offset = pass->cleaned_offset;
        }
        if (pass->err == ESK_OK && !partition->removed && !eski_compact_ends(shard)) {
            eski_compact_plan(pass);
        } else {
            eski_compact_partition_done(pass);
        }
        break;
    case ESKI_COMPACT_MAP:
        esk_counter_set(&shard->metrics.key_map_bytes,
                        pass->map.capacity * sizeof(struct esk_key_map_entry));
        if (pass->err != ESK_OK || partition->removed || eski_compact_ends(shard)) {
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
        esk_counter_set(&shard->metrics.key_map_bytes, 0);
        round_finished(pass);
        break;
    }
}
