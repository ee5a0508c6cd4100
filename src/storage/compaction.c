/* SPDX-License-Identifier: Apache-2.0 */
/* Writing segments anew: look whether anything changes; if so, write what stays into a new file,
 * sync it and its name, and let an index file that names it take the old one's place. */
#include "storage/compaction_private.h"
#include "storage/segment_private.h"

#include "base/assert.h"
#include "base/mutation.h"

#include <stdlib.h>

#define SYNC_BYTES (4u << 20)  /* between two syncs: as much as a move writes, so neither stalls */
#define FREE_BYTES (16u << 20) /* that are left to others: what the ballast begins with */

/* One rewriting. */
struct rewrite {
    const struct esk_storage *storage;
    uint64_t group_id;
    const struct esk_compaction_input *inputs;
    size_t count;
    struct esk_compaction_filter *filter;
    struct esk_compaction_pace *pace;
    struct esk_compaction_result *result;
    struct eski_scan scan;
    struct esk_buffer pending; /* batches that were not written yet */
    uint64_t unpaced;
    uint64_t unsynced;
};

/* --- is there anything to do --- */

static enum esk_err probe(struct rewrite *rewrite, bool *needed, struct esk_error *error) {
    const struct esk_compaction_input *input = &rewrite->inputs[0];
    enum esk_err err = eski_scan_begin(&rewrite->scan, rewrite->storage, rewrite->group_id, input,
                                       rewrite->pace, error);
    while (err == ESK_OK && !*needed) {
        struct esk_slice batch;
        struct esk_batch_header header;
        struct esk_compaction_outcome outcome;
        err = eski_scan_next(&rewrite->scan, &batch, &header, error);
        if (err != ESK_OK || batch.size == 0) {
            break;
        }
        err = esk_compaction_filter_batch(rewrite->filter, batch, &header, &outcome, error);
        *needed = outcome.changed;
    }
    eski_scan_end(&rewrite->scan);
    return err;
}

/* A second copy must fit without what others count on. */
static enum esk_err check_space(const struct rewrite *rewrite, struct esk_error *error) {
    uint64_t free_bytes = 0;
    uint64_t total_bytes = 0;
    uint64_t needed = 0;
    for (size_t i = 0; i < rewrite->count; i++) {
        needed += rewrite->inputs[i].bytes;
    }
    enum esk_err err = esk_path_space(rewrite->storage->platform, rewrite->storage->folder,
                                      &free_bytes, &total_bytes, error);
    uint64_t margin = total_bytes / 64 < FREE_BYTES ? total_bytes / 64 : FREE_BYTES;
    if (err == ESK_OK && free_bytes < needed + margin) {
        return esk_fail(error, ESK_ERR_NO_SPACE,
                        "%" PRIu64 " bytes are free, compaction needs %" PRIu64, free_bytes,
                        needed + margin);
    }
    return err;
}

/* --- writing --- */

static enum esk_err flush(struct rewrite *rewrite, struct esk_error *error) {
    struct esk_compaction_result *result = rewrite->result;
    struct esk_slice bytes = esk_buffer_slice(&rewrite->pending);
    while (bytes.size > 0) {
        size_t size = bytes.size < ESK_SEGMENT_WRITE_BYTES ? bytes.size : ESK_SEGMENT_WRITE_BYTES;
        struct esk_slice part = esk_slice(bytes.data, size);
        enum esk_err err =
            esk_segment_append(result->file, result->summary.bytes, &part, 1, 0, error);
        if (err == ESK_OK) {
            result->summary.bytes += size;
            rewrite->unsynced += size;
            err = eski_compaction_pace(rewrite->storage, rewrite->pace, &rewrite->unpaced, size,
                                       error);
        }
        if (err == ESK_OK && rewrite->unsynced >= SYNC_BYTES) {
            err = esk_segment_sync(result->file, error);
            rewrite->unsynced = 0;
        }
        if (err != ESK_OK) {
            return err;
        }
        bytes = esk_slice(bytes.data + size, bytes.size - size);
    }
    rewrite->pending.size = 0;
    return ESK_OK;
}

static enum esk_err add(struct rewrite *rewrite, const struct esk_batch_header *header,
                        const struct esk_compaction_outcome *outcome, struct esk_error *error) {
    struct esk_compaction_result *result = rewrite->result;
    struct esk_segment_summary *summary = &result->summary;
    result->records_removed += outcome->removed;
    if (outcome->batch.size == 0) {
        return ESK_OK;
    }
    if (outcome->timestamp_ms > summary->timestamp_ms) {
        summary->timestamp_ms = outcome->timestamp_ms;
    }
    if (outcome->horizon_ms != ESK_HORIZON_NONE &&
        (summary->horizon_ms == ESK_HORIZON_NONE || outcome->horizon_ms < summary->horizon_ms)) {
        summary->horizon_ms = outcome->horizon_ms;
    }
    esk_index_add(&result->index, (uint64_t)header->base_offset - summary->base_offset,
                  summary->bytes + rewrite->pending.size, summary->timestamp_ms);
    esk_buffer_append(&rewrite->pending, outcome->batch.data, outcome->batch.size);
    return rewrite->pending.size < ESK_SEGMENT_WRITE_BYTES ? ESK_OK : flush(rewrite, error);
}

static enum esk_err copy_input(struct rewrite *rewrite, const struct esk_compaction_input *input,
                               struct esk_error *error) {
    enum esk_err err = eski_scan_begin(&rewrite->scan, rewrite->storage, rewrite->group_id, input,
                                       rewrite->pace, error);
    while (err == ESK_OK) {
        struct esk_slice batch;
        struct esk_batch_header header;
        struct esk_compaction_outcome outcome;
        err = eski_scan_next(&rewrite->scan, &batch, &header, error);
        if (err != ESK_OK || batch.size == 0) {
            break;
        }
        err = esk_compaction_filter_batch(rewrite->filter, batch, &header, &outcome, error);
        if (err == ESK_OK) {
            err = add(rewrite, &header, &outcome, error);
        }
    }
    eski_scan_end(&rewrite->scan);
    return err;
}

/* Everything is in the file; from here on it is durable. */
static enum esk_err settle(struct rewrite *rewrite, struct esk_error *error) {
    struct esk_compaction_result *result = rewrite->result;
    enum esk_err err = flush(rewrite, error);
    if (err == ESK_OK) {
        err = eski_segment_trim(result->file, result->summary.bytes, error);
    }
    if (err == ESK_OK && !ESK_MUTATED(COMPACTION_UNSYNCED)) {
        err = esk_segment_sync(result->file, error);
    }
    if (err == ESK_OK) {
        err = esk_segment_sync_names(rewrite->storage, rewrite->group_id, error);
    }
    return err;
}

/* Whether the index on the disk is still the old one, for sure. */
static bool is_old(const struct rewrite *rewrite) {
    struct esk_segment_summary found;
    return esk_segment_load(rewrite->storage, rewrite->group_id, rewrite->inputs[0].base_offset,
                            &found, NULL, NULL) == ESK_OK &&
           found.revision == rewrite->inputs[0].revision;
}

/* The switch. ESK_ERR_IO leaves open which file counts; on any other error it is the old one. */
static enum esk_err switch_over(struct rewrite *rewrite, struct esk_error *error) {
    struct esk_compaction_result *result = rewrite->result;
    enum esk_err err = esk_segment_seal(rewrite->storage, rewrite->group_id, result->file,
                                        &result->summary, &result->index, error);
    if (err != ESK_OK && err != ESK_ERR_IO && !is_old(rewrite)) {
        err = ESK_ERR_IO;
        if (error != NULL) {
            error->code = err;
        }
    }
    if (err == ESK_OK) {
        result->rewritten = true;
        err = esk_segment_sync_names(rewrite->storage, rewrite->group_id, error);
    }
    return err;
}

static void give_up(struct rewrite *rewrite, bool remove) {
    struct esk_compaction_result *result = rewrite->result;
    bool made = result->file != NULL;
    esk_segment_release(result->file);
    result->file = NULL;
    if (made && remove) {
        esk_segment_remove_revision(rewrite->storage, rewrite->group_id,
                                    result->summary.base_offset, result->summary.revision, NULL);
    }
    esk_index_fini(&result->index);
}

static enum esk_err write_anew(struct rewrite *rewrite, struct esk_error *error) {
    struct esk_compaction_result *result = rewrite->result;
    const struct esk_segment_summary *summary = &result->summary;
    enum esk_err err = check_space(rewrite, error);
    if (err == ESK_OK) {
        err = esk_segment_create_revision(rewrite->storage, rewrite->group_id, summary->base_offset,
                                          summary->revision, &result->file, error);
    }
    for (size_t i = 0; err == ESK_OK && i < rewrite->count; i++) {
        err = copy_input(rewrite, &rewrite->inputs[i], error);
        result->bytes_before += rewrite->inputs[i].bytes;
    }
    if (err == ESK_OK) {
        err = settle(rewrite, error);
    }
    if (err == ESK_OK) {
        err = switch_over(rewrite, error);
    }
    if (err != ESK_OK) {
        give_up(rewrite, err != ESK_ERR_IO);
    }
    return err;
}

enum esk_err esk_compaction_rewrite(const struct esk_storage *storage, uint64_t group_id,
                                    const struct esk_compaction_input *inputs, size_t count,
                                    struct esk_compaction_filter *filter,
                                    struct esk_compaction_pace *pace,
                                    struct esk_compaction_result *result, struct esk_error *error) {
    ESK_ASSERT(count > 0);
    bool needed = count > 1;
    struct rewrite rewrite = {
        .storage = storage,
        .group_id = group_id,
        .inputs = inputs,
        .count = count,
        .filter = filter,
        .pace = pace,
        .result = result,
    };
    *result = (struct esk_compaction_result){
        .summary = {.base_offset = inputs[0].base_offset,
                    .end_offset = inputs[count - 1].end_offset,
                    .timestamp_ms = -1,
                    .horizon_ms = ESK_HORIZON_NONE,
                    .revision = inputs[0].revision + 1},
    };
    esk_index_init(&result->index);
    esk_buffer_init(&rewrite.pending);
    enum esk_err err = needed ? ESK_OK : probe(&rewrite, &needed, error);
    if (err == ESK_OK && needed) {
        err = write_anew(&rewrite, error);
    }
    eski_scan_fini(&rewrite.scan);
    esk_buffer_fini(&rewrite.pending);
    return err;
}
