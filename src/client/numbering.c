/* SPDX-License-Identifier: Apache-2.0 */
/* Few topics are used by one client, and mostly the same one again: they stand in a list, the last
 * used one in front. */
#include "client/numbering.h"

#include "base/assert.h"
#include "base/memory.h"
#include "wire/es01/produce.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

static void make_id(struct eski_numbering *numbering) {
    uint8_t bytes[16];
    size_t filled = 0;
    while (filled < sizeof(bytes)) {
        ssize_t count = getrandom(bytes + filled, sizeof(bytes) - filled, 0);
        filled += count > 0 ? (size_t)count : 0; /* interrupted, early in a system's life */
    }
    memcpy(numbering->id, "c-", 2);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        snprintf(numbering->id + 2 + 2 * i, 3, "%02x", bytes[i]);
    }
}

void eski_numbering_init(struct eski_numbering *numbering) {
    numbering->topics = NULL;
    make_id(numbering);
}

void eski_numbering_fini(struct eski_numbering *numbering) {
    while (numbering->topics) {
        struct eski_topic *topic = numbering->topics;
        numbering->topics = topic->following;
        free(topic->counters);
        free(topic->name);
        free(topic);
    }
}

void eski_numbering_renew(struct eski_numbering *numbering) {
    make_id(numbering);
    for (struct eski_topic *topic = numbering->topics; topic; topic = topic->following) {
        for (uint32_t i = 0; i < topic->count; i++) {
            topic->counters[i] = (struct eski_counter){0};
        }
        topic->opening = 0;
    }
}

void eski_numbering_rewind(struct eski_numbering *numbering) {
    for (struct eski_topic *topic = numbering->topics; topic; topic = topic->following) {
        for (uint32_t i = 0; i < topic->count; i++) {
            topic->counters[i].next = topic->counters[i].acknowledged;
        }
        topic->opening = 0;
    }
}

struct eski_topic *eski_numbering_topic(struct eski_numbering *numbering, struct esk_slice name) {
    struct eski_topic **at = &numbering->topics;
    while (*at && !esk_slice_equal(esk_slice_text((*at)->name), name)) {
        at = &(*at)->following;
    }
    struct eski_topic *topic = *at;
    if (topic) {
        *at = topic->following;
    } else {
        topic = esk_alloc_zeroed(1, sizeof(*topic));
        topic->name = esk_text_format("%.*s", (int)name.size, (const char *)name.data);
    }
    topic->following = numbering->topics;
    numbering->topics = topic;
    return topic;
}

struct eski_counter *eski_topic_counter(struct eski_topic *topic, uint32_t partition) {
    ESK_ASSERT(partition < ESK_TOPIC_PARTITIONS_MAX);
    if (partition >= topic->count) {
        uint32_t count = partition + 1;
        topic->counters = esk_realloc(topic->counters, count * sizeof(*topic->counters));
        memset(topic->counters + topic->count, 0,
               (count - topic->count) * sizeof(*topic->counters));
        topic->count = count;
    }
    return &topic->counters[partition];
}

bool eski_topic_acknowledge(struct eski_topic *topic, uint32_t partition) {
    if (partition >= topic->count) {
        return false;
    }
    struct eski_counter *counter = &topic->counters[partition];
    topic->opening -= counter->acknowledged == 0 && counter->next > 0;
    counter->acknowledged++;
    return counter->acknowledged <= counter->next;
}

static uint32_t request_id_of(const uint8_t *frame) {
    return esk_load_u32(frame + ESK_ES01_LENGTH_BYTES);
}

/* The records of a produce's frame, which is one of ours. */
static struct esk_reader records_of(const uint8_t *frame, size_t frame_size,
                                    struct esk_es01_produce *produce) {
    struct esk_slice payload =
        esk_slice(frame + ESK_ES01_FRAME_HEAD_BYTES, frame_size - ESK_ES01_FRAME_HEAD_BYTES);
    struct esk_reader r;
    enum esk_err err = esk_es01_produce_parse(payload, produce, &r, NULL);
    ESK_ASSERT(err == ESK_OK);
    return r;
}

bool eski_topic_may_send(const struct eski_topic *topic, const uint8_t *frame, size_t frame_size) {
    if (topic->opening == 0) {
        return true;
    }
    struct esk_es01_produce produce;
    struct esk_reader r = records_of(frame, frame_size, &produce);
    for (uint32_t i = 0; i < produce.record_count; i++) {
        struct esk_es01_record record;
        esk_es01_record_read(&r, &record);
        const struct eski_counter *counter = &topic->counters[record.partition];
        if (counter->acknowledged == 0 && counter->opener != request_id_of(frame)) {
            return false;
        }
    }
    return true;
}

void eski_numbering_number(struct eski_numbering *numbering, struct eski_topic *topic,
                           uint8_t *frame, size_t frame_size) {
    struct esk_es01_produce produce;
    struct esk_reader r = records_of(frame, frame_size, &produce);
    ESK_ASSERT(produce.producer_id.size == ESKI_PRODUCER_ID_BYTES);
    memcpy(frame + (produce.producer_id.data - frame), numbering->id, ESKI_PRODUCER_ID_BYTES);
    for (uint32_t i = 0; i < produce.record_count; i++) {
        struct esk_es01_record record;
        esk_es01_record_read(&r, &record);
        ESK_ASSERT(!r.failed);
        struct eski_counter *counter = eski_topic_counter(topic, (uint32_t)record.partition);
        if (counter->next == 0) {
            counter->opener = request_id_of(frame);
            topic->opening++;
        }
        esk_store_u64(frame + (r.at - frame) - 8, counter->next++);
    }
}
