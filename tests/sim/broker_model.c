/* SPDX-License-Identifier: Apache-2.0 */
#include "broker_model.h"

#include "base/memory.h"
#include "model/record_batch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define OFFSET_MAX 1000000 /* more than a run can reach */

struct bm_request *bm_request_create(struct bm_model *model, struct bm_topic *topic,
                                     uint32_t client) {
    if (model->count == model->capacity) {
        model->capacity = model->capacity * 2 + 64;
        model->requests =
            esk_realloc(model->requests, model->capacity * sizeof(struct bm_request *));
    }
    struct bm_request *request = esk_alloc_zeroed(1, sizeof(*request));
    model->requests[model->count++] = request;
    request->id = model->count;
    request->topic = topic;
    request->client = client;
    return request;
}

void bm_value(const struct bm_request *request, uint32_t index, uint8_t *bytes) {
    uint32_t size = request->records[index].size;
    esk_store_u64(bytes, request->id);
    esk_store_u32(bytes + 8, index);
    uint64_t value = sim_mix(request->id * 16 + index);
    for (uint32_t i = BM_VALUE_MIN; i < size; i++) {
        if (i % 8 == 0) {
            value = sim_mix(value);
        }
        bytes[i] = (uint8_t)(value >> (i % 8 * 8));
    }
}

struct esk_slice bm_key(const struct bm_request *request, uint32_t index, uint8_t *space) {
    uint64_t value = sim_mix(request->id * 16 + index);
    if (value % 7 < 2) {
        return (struct esk_slice){0};
    }
    esk_store_u64(space, value / 7 % request->topic->keys);
    return esk_slice(space, 8);
}

bool bm_is_tombstone(const struct bm_request *request, uint32_t index) {
    uint8_t space[8];
    return request->topic->tombstones && bm_key(request, index, space).data != NULL &&
           sim_mix(request->id * 16 + index) / 1024 % 4 == 0;
}

static struct bm_place *place_at(struct bm_log *log, uint64_t offset) {
    while (log->capacity <= offset) {
        size_t capacity = log->capacity * 2 + 64;
        log->places = esk_realloc(log->places, capacity * sizeof(struct bm_place));
        memset(log->places + log->capacity, 0,
               (capacity - log->capacity) * sizeof(struct bm_place));
        log->capacity = capacity;
    }
    log->count = offset >= log->count ? (size_t)offset + 1 : log->count;
    return &log->places[offset];
}

/* The record is at this place, and was nowhere else; the place had no other. */
static void put(struct bm_model *model, struct bm_request *request, uint32_t index,
                uint32_t partition, uint64_t offset, bool answered) {
    struct sim_run *run = model->run;
    const char *topic = request->topic->name;
    struct bm_record *record = &request->records[index];
    struct bm_place *place = place_at(&request->topic->logs[partition], offset);
    if (record->dead || place->gone) {
        sim_run_fail(run, "%s/%u at %" PRIu64 ": record %" PRIu64 ".%u came back", topic, partition,
                     offset, request->id, index);
    } else if (record->asked != ESK_PARTITION_ANY && record->asked != (int32_t)partition) {
        sim_run_fail(run, "%s/%u at %" PRIu64 ": record %" PRIu64 ".%u was sent to partition %d",
                     topic, partition, offset, request->id, index, record->asked);
    } else if (record->offset >= 0 &&
               (record->offset != (int64_t)offset || record->partition != (int32_t)partition)) {
        sim_run_fail(run, "%s/%u at %" PRIu64 ": record %" PRIu64 ".%u is also at %d/%" PRId64,
                     topic, partition, offset, request->id, index, record->partition,
                     record->offset);
    } else if (place->request && (place->request != request || place->index != index)) {
        sim_run_fail(run, "%s/%u at %" PRIu64 ": record %" PRIu64 ".%u, where %" PRIu64 ".%u was",
                     topic, partition, offset, request->id, index, place->request->id,
                     place->index);
    }
    record->offset = (int64_t)offset;
    record->partition = (int32_t)partition;
    place->request = request;
    place->index = index;
    place->answered |= answered;
    place->scan = answered ? place->scan : model->scan;
}

void bm_answered_record(struct bm_model *model, struct bm_request *request, uint32_t index) {
    const struct bm_record *record = &request->records[index];
    struct bm_log *log = &request->topic->logs[record->partition];
    put(model, request, index, (uint32_t)record->partition, (uint64_t)record->offset, true);
    uint64_t end = (uint64_t)record->offset + 1;
    log->answered_end = end > log->answered_end ? end : log->answered_end;
    if (request->strict && end > log->strict_end) {
        log->strict_end = end;
    }
}

void bm_answered(struct bm_model *model, struct bm_request *request) {
    request->answered = true;
    for (uint32_t i = 0; i < request->count; i++) {
        bm_answered_record(model, request, i);
    }
}

void bm_seen(struct bm_model *model, struct bm_topic *topic, uint32_t partition, uint64_t offset,
             const struct esk_record *record) {
    struct sim_run *run = model->run;
    struct esk_slice found = record->value;
    struct esk_record copy = *record;
    struct esk_record_header header = {0};
    if (found.size == 0 && esk_record_header_next(&copy, &header)) {
        found = header.value;
    }
    uint64_t id = found.size >= BM_VALUE_MIN ? esk_load_u64(found.data) : 0;
    uint32_t index = id ? esk_load_u32(found.data + 8) : 0;
    struct bm_request *request = id && id <= model->count ? model->requests[id - 1] : NULL;
    if (!request || request->topic != topic || index >= request->count || offset > OFFSET_MAX) {
        sim_run_fail(run,
                     "%s/%u at %" PRIu64 ": a record that was never sent there (%" PRIu64
                     ".%u of %zu bytes)",
                     topic->name, partition, offset, id, index, record->value.size);
        return;
    }
    uint32_t size = request->records[index].size;
    uint8_t *value = esk_alloc(size), space[8];
    bm_value(request, index, value);
    struct esk_slice key = bm_key(request, index, space);
    bool tombstone = bm_is_tombstone(request, index);
    struct esk_slice whole = esk_slice(value, tombstone ? BM_VALUE_MIN : size);
    if (!esk_slice_equal(found, whole) || tombstone != (record->value.size == 0) ||
        (key.data == NULL) != (record->key.data == NULL) || !esk_slice_equal(record->key, key)) {
        sim_run_fail(run, "%s/%u at %" PRIu64 ": record %" PRIu64 ".%u is modified", topic->name,
                     partition, offset, id, index);
    }
    free(value);
    put(model, request, index, partition, offset, false);
}

/* Records of one client are in the order in which it sent them, those of a request side by side. */
static void check_order(struct bm_model *model, struct bm_topic *topic, uint32_t partition,
                        uint64_t start, uint64_t end) {
    const struct bm_log *log = &topic->logs[partition];
    for (uint64_t offset = start + 1; offset < end && !model->run->failed; offset++) {
        const struct bm_place *place = &log->places[offset], *before = place - 1;
        if (topic->compacts) {
            continue; /* not all of them are known */
        }
        if (place->request == before->request && place->index <= before->index) {
            sim_run_fail(model->run, "%s/%u at %" PRIu64 ": records of a request are out of order",
                         topic->name, partition, offset);
        }
        for (uint64_t back = offset; back-- > start;) {
            const struct bm_place *other = &log->places[back];
            if (other->request == place->request && before->request != place->request) {
                sim_run_fail(model->run, "%s/%u at %" PRIu64 ": request %" PRIu64 " is in pieces",
                             topic->name, partition, offset, place->request->id);
            }
            if (other->request->client == place->request->client) {
                if (other->request->id > place->request->id) {
                    sim_run_fail(model->run,
                                 "%s/%u at %" PRIu64 ": request %" PRIu64 " is behind %" PRIu64
                                 " of the same client",
                                 topic->name, partition, offset, place->request->id,
                                 other->request->id);
                }
                break;
            }
        }
    }
}

static struct esk_slice key_at(const struct bm_log *log, uint64_t offset, uint8_t *space) {
    const struct bm_place *place = &log->places[offset];
    return bm_key(place->request, place->index, space);
}

/* A record that is not there: a newer one of its key was written, or it was a tombstone. One that
 * nobody knows may have been either. */
static bool may_be_gone(const struct bm_log *log, uint64_t offset, uint64_t end) {
    const struct bm_place *place = &log->places[offset];
    uint8_t space[8], other_space[8];
    struct esk_slice key = key_at(log, offset, space);
    if (key.data == NULL) {
        return false;
    }
    if (bm_is_tombstone(place->request, place->index)) {
        return true;
    }
    for (uint64_t later = offset + 1; later < end; later++) {
        const struct bm_place *other = &log->places[later];
        if (!other->request || esk_slice_equal(key, key_at(log, later, other_space))) {
            return true;
        }
    }
    return false;
}

/* No record is there whose key has a later tombstone that went. */
static void check_tombstone(struct bm_model *model, struct bm_topic *topic, uint32_t partition,
                            uint64_t start, uint64_t offset) {
    const struct bm_log *log = &topic->logs[partition];
    const struct bm_place *place = &log->places[offset];
    uint8_t space[8], other_space[8];
    if (!bm_is_tombstone(place->request, place->index)) {
        return;
    }
    struct esk_slice key = key_at(log, offset, space);
    for (uint64_t back = start; back < offset; back++) {
        const struct bm_place *other = &log->places[back];
        if (other->request && other->scan == model->scan &&
            esk_slice_equal(key, key_at(log, back, other_space))) {
            sim_run_fail(model->run,
                         "%s/%u at %" PRIu64 ": a record whose tombstone at %" PRIu64 " is gone",
                         topic->name, partition, back, offset);
        }
    }
}

/* What a compacted partition does not have. */
static void check_gaps(struct bm_model *model, struct bm_topic *topic, uint32_t partition,
                       uint64_t start, uint64_t end) {
    struct bm_log *log = &topic->logs[partition];
    bool quiet = model->compactions == esk_reached_count[ESK_REACHED_COMPACTION];
    for (uint64_t offset = start; offset < end && !model->run->failed; offset++) {
        struct bm_place *place = offset < log->count ? &log->places[offset] : NULL;
        if (!place || !place->request || place->scan == model->scan) {
            continue;
        }
        if (!may_be_gone(log, offset, end)) {
            sim_run_fail(model->run,
                         "%s/%u at %" PRIu64 ": the newest record of its key is gone, of %" PRIu64
                         " to %" PRIu64,
                         topic->name, partition, offset, start, end);
        } else if (quiet) {
            check_tombstone(model, topic, partition, start, offset);
        }
        place->gone = true;
    }
}

void bm_scanned(struct bm_model *model, struct bm_topic *topic, uint32_t partition, uint64_t start,
                uint64_t end) {
    struct bm_log *log = &topic->logs[partition];
    struct sim_run *run = model->run;
    uint64_t least = model->loose ? log->durable : log->answered_end;
    least = log->strict_end > least ? log->strict_end : least;
    if (end < least || start < log->start || (topic->retains && start > 0)) {
        sim_run_fail(run,
                     "%s/%u: from %" PRIu64 " to %" PRIu64 "; was from %" PRIu64 ", and %" PRIu64
                     " must be there%s",
                     topic->name, partition, start, end, log->start, least,
                     topic->retains ? ", without retention" : "");
        return;
    }
    if (topic->compacts && end > 0) {
        place_at(log, end - 1);
        check_gaps(model, topic, partition, start, end);
    }
    for (uint64_t offset = start; offset < end && !topic->compacts; offset++) {
        if (offset >= log->count || !log->places[offset].request) {
            sim_run_fail(run, "%s/%u at %" PRIu64 ": no record, of %" PRIu64 " to %" PRIu64,
                         topic->name, partition, offset, start, end);
            return;
        }
    }
    for (uint64_t offset = end; offset < log->count; offset++) { /* loose ones that are lost */
        struct bm_place *place = &log->places[offset];
        if (place->request) {
            place->request->records[place->index].dead = true;
            *place = (struct bm_place){0};
        }
    }
    log->count = end < log->count ? end : log->count;
    log->start = start;
    log->durable = log->answered_end = end;
    check_order(model, topic, partition, start, end);
}

void bm_settle(struct bm_model *model) {
    for (size_t i = 0; i < model->count; i++) {
        struct bm_request *request = model->requests[i];
        if (request->topic->deleted) {
            continue;
        }
        for (uint32_t a = 0; a < request->count; a++) {
            struct bm_record *record = &request->records[a];
            record->dead |= record->offset < 0 && request->topic->retains;
            if (record->dead && record->in_segment && !request->topic->compacts) {
                sim_run_fail(model->run,
                             "record %" PRIu64 ".%u was in a segment, and is lost with the journal",
                             request->id, a);
            }
            record->in_segment = false;
            for (uint32_t b = 0; b < a; b++) {
                const struct bm_record *other = &request->records[b];
                if (request->topic->retains && !request->topic->compacts && record->asked >= 0 &&
                    record->asked == other->asked && record->dead != other->dead) {
                    sim_run_fail(model->run, "request %" PRIu64 " is there in part", request->id);
                }
            }
        }
    }
    model->loose = model->unsynced = false;
}
