/* SPDX-License-Identifier: Apache-2.0 */
/* Reads everything after a start: topics, every partition from its start to its end, commits. Also
 * the check of batches that any consumer reads. */
#include "broker_clients.h"

#include "base/list.h"
#include "base/memory.h"
#include "model/record_batch.h"

#include <inttypes.h>
#include <stdlib.h>

void bc_check_parts(struct bs *bs, struct bm_topic *topic, const struct esk_consume *consume,
                    uint64_t *next) {
    struct sim_run *run = bs->run;
    uint64_t first =
        consume->offset > consume->start_offset ? consume->offset : consume->start_offset;
    *next = first;
    for (uint32_t i = 0; i < consume->part_count && !run->failed; i++) {
        const struct esk_consume_part *part = &consume->parts[i];
        struct esk_slice bytes = esk_slice(part->block->data + part->position, part->size);
        while (bytes.size > 0 && !run->failed) {
            struct esk_batch_header header;
            struct esk_buffer scratch;
            struct esk_slice records;
            struct esk_record record;
            esk_buffer_init(&scratch);
            if (esk_batch_parse(bytes, &header, NULL) != ESK_OK ||
                !esk_batch_crc_valid(bytes.data, &header) ||
                esk_batch_records(esk_slice(bytes.data, header.size_bytes), &header, 1u << 20,
                                  &scratch, &records, NULL) != ESK_OK) {
                sim_run_fail(run, "%s/%u: a broken batch was read at %" PRIu64, topic->name,
                             consume->partition, *next);
                return;
            }
            struct esk_record_iterator at = esk_record_iterator(records, header.record_count);
            while (esk_record_next(&at, &record)) {
                uint64_t offset = (uint64_t)header.base_offset + (uint64_t)record.offset_delta;
                bool before = offset < first;
                bool gap = topic->compacts && offset > *next;
                if (!before && offset != *next && !gap) {
                    sim_run_fail(run, "%s/%u: %" PRIu64 " was read where %" PRIu64 " follows",
                                 topic->name, consume->partition, offset, *next);
                }
                *next = before ? *next : offset + 1;
                bm_seen(&bs->model, topic, consume->partition, offset, &record);
            }
            if (at.failed) {
                sim_run_fail(run, "%s/%u: records do not parse", topic->name, consume->partition);
            }
            esk_buffer_fini(&scratch);
            bytes.data += header.size_bytes;
            bytes.size -= header.size_bytes;
        }
    }
    if (*next > consume->high_watermark && *next > first) {
        sim_run_fail(run, "%s/%u: read to %" PRIu64 ", behind the end at %" PRIu64, topic->name,
                     consume->partition, *next, consume->high_watermark);
    }
}

/* --- segments at rest ------------------------------------------------------------------------- */

static void note_batch(struct bs *bs, struct esk_slice batch,
                       const struct esk_batch_header *header) {
    struct esk_buffer scratch;
    struct esk_slice records;
    struct esk_record record;
    esk_buffer_init(&scratch);
    if (esk_batch_records(batch, header, 1u << 20, &scratch, &records, NULL) == ESK_OK) {
        struct esk_record_iterator at = esk_record_iterator(records, header->record_count);
        while (esk_record_next(&at, &record)) {
            uint64_t id = record.value.size >= BM_VALUE_MIN ? esk_load_u64(record.value.data) : 0;
            uint32_t index = id ? esk_load_u32(record.value.data + 8) : 0;
            if (id && id <= bs->model.count && index < bs->model.requests[id - 1]->count) {
                bs->model.requests[id - 1]->records[index].in_segment = true;
            }
        }
    }
    esk_buffer_fini(&scratch);
}

static void note_segment(struct bs *bs, const struct sim_inode *file) {
    uint64_t at = SIM_PAGE;
    while (at < file->media_size) {
        struct esk_slice bytes = esk_slice(file->media + at, file->media_size - at);
        struct esk_batch_header header;
        if (esk_batch_parse(bytes, &header, NULL) != ESK_OK ||
            !esk_batch_crc_valid(bytes.data, &header)) {
            return; /* the end mark, or what no sync covered */
        }
        note_batch(bs, esk_slice(bytes.data, header.size_bytes), &header);
        at += header.size_bytes;
    }
}

void bc_note_segments(struct bs *bs, const struct sim_inode *folder) {
    for (size_t i = 0; folder && i < folder->entries.count; i++) {
        const struct sim_entry *entry = &folder->entries.items[i];
        const char *dot = strchr(entry->name, '.');
        if (entry->inode->is_folder) {
            bc_note_segments(bs, entry->inode);
        } else if (dot && strstr(dot, ".segment") != NULL) {
            note_segment(bs, entry->inode);
        }
    }
}

/* --- the scanner --- */

struct scan {
    struct esk_consume consume;
    struct bs *bs;
};

static void scan_step(struct bs *bs);

static void scan_next_partition(struct bs *bs) {
    bs->scan_begun = false;
    if (++bs->scan_partition >= bs->model.names[bs->scan_name]->partitions) {
        bs->scan_partition = 0;
        bs->scan_name++;
    }
}

static void scan_read(struct esk_consume *consume, enum esk_err err) {
    struct scan *own = ESK_CONTAINER(consume, struct scan, consume);
    struct bs *bs = own->bs;
    struct bm_topic *topic = bs->model.names[bs->scan_name];
    bs->in_flight--;
    if (err != ESK_OK) {
        if (bs_tolerates(bs, err, topic)) {
            bs->failed = true; /* this life shows nothing more */
        } else {
            sim_run_fail(bs->run, "read %s/%u at %" PRIu64 ": error %d: %s", topic->name,
                         bs->scan_partition, bs->scan_offset, (int)err, consume->error.text);
        }
        free(own);
        return;
    }
    uint64_t next;
    if (!bs->scan_begun) {
        bs->scan_begun = true;
        bs->scan_start = consume->start_offset;
    } else if (topic->retains && consume->start_offset != bs->scan_start) {
        sim_run_fail(bs->run, "%s/%u: the start moves", topic->name, bs->scan_partition);
    }
    bs->scan_start = consume->start_offset;
    bc_check_parts(bs, topic, consume, &next);
    bool at_end = next >= consume->high_watermark ||
                  (topic->compacts && consume->part_count == 0); /* all of the rest is gone */
    if (!at_end && consume->part_count == 0) {
        sim_run_fail(bs->run, "%s/%u: nothing at %" PRIu64 " of %" PRIu64, topic->name,
                     bs->scan_partition, next, consume->high_watermark);
    }
    if (at_end && !bs->run->failed) {
        bm_scanned(&bs->model, topic, bs->scan_partition, consume->start_offset,
                   consume->high_watermark);
        scan_next_partition(bs);
    } else {
        bs->scan_offset = next;
    }
    esk_consume_fini(consume);
    free(own);
    if (!bs->run->failed) {
        scan_step(bs);
    }
}

/* What a start made of the operations that had no answer. */
static bool settle_topic(struct bs *bs, struct bm_topic *topic) {
    struct esk_topic_view view;
    bool found =
        esk_broker_topic_find(esk_broker_shard(bs->broker, 0), esk_slice_text(topic->name), &view);
    if (found && topic->deleted) {
        sim_run_fail(bs->run, "%s was deleted and is there again", topic->name);
    } else if (!found && topic->created && !topic->deleting) {
        sim_run_fail(bs->run, "%s is gone", topic->name);
    } else if (found && view.partition_count != topic->partitions) {
        sim_run_fail(bs->run, "%s has %u partitions, not %u", topic->name, view.partition_count,
                     topic->partitions);
    }
    if (!found) {
        topic->deleted = true;
        return false;
    }
    topic->created = true;
    topic->deleting = false;
    struct esk_topic_config changed = topic->config;
    if (topic->config_pending) {
        esk_topic_config_apply(&changed, &topic->change, false, NULL);
        topic->config_pending = false;
    }
    const struct esk_topic_config *is = &view.config, *was = &topic->config;
    bool old = is->retention_bytes == was->retention_bytes &&
               is->retention_ms == was->retention_ms && is->segment_bytes == was->segment_bytes &&
               is->cleanup_policy == was->cleanup_policy;
    bool new = is->retention_bytes == changed.retention_bytes &&
               is->retention_ms == changed.retention_ms &&
               is->segment_bytes == changed.segment_bytes &&
               is->cleanup_policy == changed.cleanup_policy;
    if (!old && !new) {
        sim_run_fail(bs->run, "%s has a configuration that nobody gave it", topic->name);
    }
    topic->config = view.config;
    return true;
}

/* --- commits --- */

struct fetch {
    struct esk_offset_fetch fetch;
    struct bs *bs;
};

static const char *const group_names[BM_GROUPS] = {"analytics", "billing"};

static void settle_commit(struct bs *bs, struct bm_topic *topic, uint32_t partition,
                          struct bm_commit *commit, const struct esk_offset_fetch *fetch) {
    const struct esk_offset_view *view = NULL;
    for (size_t i = 0; i < fetch->count; i++) {
        if (strcmp(fetch->offsets[i].topic, topic->name) == 0 &&
            fetch->offsets[i].partition == partition) {
            view = &fetch->offsets[i];
        }
    }
    bool old = view ? commit->known && view->offset == commit->offset : !commit->known;
    bool new = view && commit->pending && view->offset == commit->pending_offset;
    if (!old && !new) {
        sim_run_fail(bs->run, "%s/%u: group has committed %" PRId64 ", not %" PRId64, topic->name,
                     partition, view ? (int64_t)view->offset : -1,
                     commit->known ? (int64_t)commit->offset : -1);
    }
    commit->pending = false;
    commit->known = view != NULL;
    commit->offset = view ? view->offset : 0;
}

static void scan_fetched(struct esk_offset_fetch *fetch, enum esk_err err) {
    struct fetch *own = ESK_CONTAINER(fetch, struct fetch, fetch);
    struct bs *bs = own->bs;
    bs->in_flight--;
    if (err != ESK_OK && bs_tolerates(bs, err, NULL)) {
        bs->failed = true;
    } else if (err != ESK_OK) {
        sim_run_fail(bs->run, "fetch of offsets: error %d: %s", (int)err, fetch->error.text);
    }
    size_t expected = 0;
    for (size_t i = 0; i < BM_NAMES && err == ESK_OK; i++) {
        struct bm_topic *topic = bs->model.names[i];
        for (uint32_t p = 0; topic && !topic->deleted && p < topic->partitions; p++) {
            struct bm_commit *commit = &topic->commits[bs->scan_group][p];
            settle_commit(bs, topic, p, commit, fetch);
            expected += commit->known;
        }
    }
    if (err == ESK_OK && fetch->count != expected) {
        sim_run_fail(bs->run, "group %s has %zu commits, not %zu", group_names[bs->scan_group],
                     fetch->count, expected);
    }
    if (err == ESK_OK) {
        esk_offset_fetch_fini(fetch);
    }
    free(own);
    bs->scan_group++;
    if (!bs->failed && !bs->run->failed) {
        scan_step(bs);
    }
}

static void scan_fetch(struct bs *bs) {
    struct fetch *own = esk_alloc_zeroed(1, sizeof(*own));
    own->bs = bs;
    own->fetch.group = esk_slice_text(group_names[bs->scan_group]);
    own->fetch.done = scan_fetched;
    bs->in_flight++;
    esk_broker_offset_fetch(esk_broker_shard(bs->broker, 0), &own->fetch);
}

static void scan_step(struct bs *bs) {
    struct bm_model *model = &bs->model;
    while (bs->scan_name < BM_NAMES && !bs->run->failed) {
        struct bm_topic *topic = model->names[bs->scan_name];
        if (topic && bs->scan_partition == 0 && !bs->scan_begun && !settle_topic(bs, topic)) {
            topic = NULL;
        }
        if (topic) {
            break;
        }
        bs->scan_name++;
    }
    if (bs->run->failed) {
        return;
    }
    if (bs->scan_name < BM_NAMES) {
        if (!bs->scan_begun) { /* what is compacted from here on may be seen in part */
            bs->scan_offset = 0;
            model->compactions = esk_reached_count[ESK_REACHED_COMPACTION];
        }
        struct scan *own = esk_alloc_zeroed(1, sizeof(*own));
        own->bs = bs;
        own->consume = (struct esk_consume){
            .topic = esk_slice_text(model->names[bs->scan_name]->name),
            .partition = bs->scan_partition,
            .offset = bs->scan_offset,
            .records_max = 1000,
            .bytes_max = 1u << 20,
            .done = scan_read,
        };
        bs->in_flight++;
        esk_broker_consume(esk_broker_shard(bs->broker, 0), &own->consume);
    } else if (bs->scan_group < BM_GROUPS) {
        scan_fetch(bs);
    } else {
        bm_settle(model);
        bs->scanned = true;
    }
}

static void scan_start(struct esk_mail *mail) {
    scan_step(ESK_CONTAINER(mail, struct bs, scan_mail));
}

void bc_scan(struct bs *bs) {
    bs->scanned = bs->scan_begun = false;
    bs->model.scan++;
    bs->scan_name = bs->scan_group = 0;
    bs->scan_partition = 0;
    bs->scan_mail = (struct esk_mail){.run = scan_start};
    esk_post(&bs->loops[0]->executor, &bs->scan_mail);
}
