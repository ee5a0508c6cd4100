/* SPDX-License-Identifier: Apache-2.0 */
/* Merges: small produces to one topic that come to a shard within one turn of its loop become one
 * produce of the broker, whoever sent them, so that they share what a produce costs. Each frame is
 * checked first, so that none fails for another's sake; what can't be known here (a full disk, a
 * topic deleted meanwhile) fails the frames with records in the partitions that it concerns. A
 * frame is answered when the partitions that it has records in are done, so that its client need
 * not wait for the slowest of all journals.
 *
 * A merge is open until it is full, until a produce that is not merged needs to be behind it, or
 * until the turn's mails run. */
#include "server/es01/es01_private.h"

#include "base/assert.h"
#include "security/usage.h"

#include <stdlib.h>

#define POOL_MAX 16
#define CHARGE_BYTES 4096

/* --- memory --- */

static struct eski_es01_merge *take(struct eski_es01_shard *shard) {
    struct eski_es01_merge *merge = shard->merge_pool;
    if (merge) {
        shard->merge_pool = merge->next;
        shard->merge_pool_count--;
        return merge;
    }
    merge = esk_alloc_zeroed(1, sizeof *merge);
    merge->shard = shard;
    esk_list_init(&merge->link);
    return merge;
}

static void free_merge(struct eski_es01_merge *merge) {
    free(merge->frames);
    free(merge);
}

static void give(struct eski_es01_merge *merge) {
    struct eski_es01_shard *shard = merge->shard;
    esk_produce_end(&merge->produce);
    esk_broker_memory_give(shard->broker, merge->charged_bytes);
    esk_caller_release(&merge->caller);
    if (shard->merge_pool_count == POOL_MAX) {
        free_merge(merge);
        return;
    }
    merge->charged_bytes = 0;
    merge->used_bytes = 0;
    merge->frame_count = 0;
    merge->record_count = 0;
    merge->data_bytes = 0;
    merge->next = shard->merge_pool;
    shard->merge_pool = merge;
    shard->merge_pool_count++;
}

/* --- out --- */

/* The next record_count results, of which *run are left over, as a payload in the shard's scratch.
 * *err: why some of the records were not written; they are left out. false: something is not known
 * yet. */
static bool read_results(struct eski_es01_merge *merge, uint32_t record_count,
                         struct esk_produce_run *run, struct esk_slice *payload,
                         enum esk_err *err) {
    struct esk_buffer *scratch = &merge->shard->encoded;
    bool is_known = true;
    *err = ESK_OK;
    scratch->size = 0;
    uint8_t *start = esk_buffer_grow(scratch, 4 + (size_t)record_count * ESK_ES01_RESULT_BYTES);
    uint8_t *at = start + 4;
    esk_store_u32(start, record_count);
    for (uint32_t i = 0; i < record_count; i++, run->count--, run->offset++) {
        bool found = run->count > 0 || esk_produce_next_run(&merge->produce, run);
        ESK_ASSERT(found);
        is_known &= !run->is_out;
        if (run->err != ESK_OK) {
            *err = run->err;
            continue;
        }
        const struct esk_es01_result result = {run->partition, run->offset, run->duplicate};
        at = esk_es01_result_write(at, &result);
    }
    *payload = esk_slice(start, (size_t)(at - start));
    return is_known;
}

/* Answers the frames whose results are known and which were not answered before, from the first
 * record on, of which *run may have been read. A frame fails only if some of its own records were
 * not written. */
static void answer(struct eski_es01_merge *merge, struct esk_produce_run *run) {
    for (uint32_t i = 0; i < merge->frame_count; i++) {
        struct eski_es01_merged *frame = &merge->frames[i];
        struct esk_slice payload;
        enum esk_err err;
        bool is_known = read_results(merge, frame->record_count, run, &payload, &err);
        struct eski_es01_client *client = frame->client;
        if (!is_known || client == NULL) {
            continue;
        }
        if (err == ESK_OK) {
            eski_es01_answer(client, frame->id, ESK_ES01_PRODUCE, payload, false,
                             frame->started_ns);
        } else {
            struct esk_error error;
            esk_produce_explain(err, payload.size > 4, &error);
            eski_es01_answer_error(client, frame->id, ESK_ES01_PRODUCE, err, error.text);
        }
        frame->client = NULL;
        eski_es01_client_done(client);
    }
}

static void advanced(struct esk_produce *produce) {
    struct esk_produce_run run = {0};
    answer(ESK_CONTAINER(produce, struct eski_es01_merge, produce), &run);
}

static void merged(struct esk_produce *produce, enum esk_err err) {
    struct eski_es01_merge *merge = ESK_CONTAINER(produce, struct eski_es01_merge, produce);
    struct esk_produce_run run = {0};
    if (esk_produce_next_run(produce, &run)) {
        answer(merge, &run);
        give(merge);
        return;
    }
    for (uint32_t i = 0; i < merge->frame_count; i++) { /* nothing was sent */
        const struct eski_es01_merged *frame = &merge->frames[i];
        eski_es01_answer_error(frame->client, frame->id, ESK_ES01_PRODUCE, err,
                               produce->error.text);
        eski_es01_client_done(frame->client);
    }
    give(merge);
}

static void flush(struct eski_es01_merge *merge) {
    struct eski_es01_shard *shard = merge->shard;
    esk_list_remove(&merge->link);
    shard->merge_count--;
    if (merge->frame_count == 0) { /* what it was opened for was not merged after all */
        give(merge);
        return;
    }
    uint32_t less =
        shard->merged_bytes - shard->merged_bytes / 64; /* growing costs more than room */
    shard->merged_bytes = less > merge->data_bytes ? less : merge->data_bytes;
    merge->produce.done = merged;
    merge->produce.advanced = advanced;
    enum esk_err err = esk_produce_seal(&merge->produce);
    ESK_ASSERT(err == ESK_OK); /* without a producer */
    esk_broker_produce(shard->broker, &merge->produce);
}

static void on_flush(struct esk_mail *mail) {
    struct eski_es01_shard *shard = ESK_CONTAINER(mail, struct eski_es01_shard, flush);
    struct esk_link *link;
    shard->is_flush_posted = false;
    while ((link = esk_list_first(&shard->merges))) {
        flush(ESK_CONTAINER(link, struct eski_es01_merge, link));
    }
}

/* --- in --- */

/* The open merge of the topic and, unless any does, of the key (NULL: auth is off). */
static struct eski_es01_merge *find(const struct eski_es01_shard *shard, struct esk_slice topic,
                                    const struct esk_key *key, bool any) {
    for (struct esk_link *link = shard->merges.next; link != &shard->merges; link = link->next) {
        struct eski_es01_merge *merge = ESK_CONTAINER(link, struct eski_es01_merge, link);
        if ((any || merge->caller.key == key) && esk_slice_equal(merge->produce.topic, topic)) {
            return merge;
        }
    }
    return NULL;
}

void eski_es01_merge_flush(struct eski_es01_shard *shard, struct esk_slice topic) {
    struct eski_es01_merge *merge;
    while ((merge = find(shard, topic, NULL, true))) {
        flush(merge);
    }
}

static struct eski_es01_merge *open_merge(struct eski_es01_shard *shard, struct esk_slice topic,
                                          const struct esk_caller *caller) {
    struct esk_topic_view view;
    if (!esk_broker_topic_find(shard->broker, topic, &view)) {
        return NULL;
    }
    if (shard->merge_count == ESKI_ES01_MERGES_MAX) {
        flush(ESK_CONTAINER(esk_list_first(&shard->merges), struct eski_es01_merge, link));
    }
    struct eski_es01_merge *merge = take(shard);
    memcpy(merge->topic, topic.data, topic.size); /* a topic's name: it exists */
    merge->produce.topic = esk_slice(merge->topic, topic.size);
    size_t guess = shard->merged_bytes / view.partition_count; /* as those before */
    enum esk_err err = esk_produce_open(shard->broker, &merge->produce, guess, guess);
    ESK_ASSERT(err == ESK_OK);
    merge->caller = esk_caller_hold(caller);
    merge->produce.caller = &merge->caller;
    merge->partition_count = view.partition_count;
    esk_list_append(&shard->merges, &merge->link);
    shard->merge_count++;
    if (!shard->is_flush_posted) {
        shard->is_flush_posted = true;
        shard->flush.run = on_flush;
        esk_post(&shard->loop->executor, &shard->flush);
    }
    return merge;
}

/* The merge of the topic with room for that much; NULL: there is no such topic. */
static struct eski_es01_merge *merge_with_room(struct eski_es01_client *client,
                                               struct esk_slice topic, uint32_t record_count,
                                               size_t bytes) {
    struct eski_es01_shard *shard = client->shard;
    struct eski_es01_merge *merge = find(shard, topic, client->caller.key, false);
    if (merge && (merge->data_bytes + bytes > ESKI_ES01_MERGE_BYTES_MAX ||
                  merge->record_count + record_count > ESKI_ES01_MERGE_RECORDS_MAX)) {
        flush(merge);
        merge = NULL;
    }
    return merge ? merge : open_merge(shard, topic, &client->caller);
}

/* Room for one frame more; it grows to its bound and stays. */
static void grow(struct eski_es01_merge *merge) {
    if (merge->frame_count == merge->frame_capacity) {
        merge->frame_capacity = merge->frame_capacity * 2 + 64;
        merge->frames = esk_realloc(merge->frames, merge->frame_capacity * sizeof *merge->frames);
    }
}

/* The budget is charged ahead, so that not every frame has to ask. */
static bool charge(struct eski_es01_merge *merge, uint64_t bytes) {
    uint64_t needed = merge->used_bytes + bytes;
    if (needed > merge->charged_bytes) {
        uint64_t missing = needed - merge->charged_bytes;
        missing = missing < CHARGE_BYTES ? CHARGE_BYTES : missing;
        if (!esk_broker_memory_take(merge->shard->broker, missing)) {
            return false;
        }
        merge->charged_bytes += missing;
    }
    merge->used_bytes = needed;
    return true;
}

/* Whether the records can be written for sure, as far as this shard knows. */
static bool fit(const struct eski_es01_merge *merge, struct esk_slice bytes, uint32_t count) {
    struct esk_reader reader = esk_reader(bytes);
    uint64_t limit = merge->shard->record_bytes_max;
    bool fits = true;
    for (uint32_t i = 0; i < count; i++) {
        struct esk_es01_record sent;
        esk_es01_record_read(&reader, &sent);
        fits &= sent.sequence == ESK_ES01_SEQUENCE_NONE;
        fits &= sent.partition >= ESK_ES01_PARTITION_ANY;
        fits &= sent.partition < 0 || (uint32_t)sent.partition < merge->partition_count;
        fits &= sent.key.size + sent.value.size <= limit;
    }
    return fits && !reader.failed && esk_reader_left(&reader) == 0;
}

static void put(struct eski_es01_merge *merge, struct esk_slice bytes, uint32_t count) {
    struct esk_reader reader = esk_reader(bytes);
    for (uint32_t i = 0; i < count; i++) {
        struct esk_es01_record sent;
        esk_es01_record_read(&reader, &sent);
        enum esk_err err = eski_es01_put(&merge->produce, &sent);
        ESK_ASSERT(err == ESK_OK); /* it fits */
    }
}

/* Quotas judge each frame by itself. */
static bool has_quota(const struct esk_caller *caller) {
    return caller->key && caller->key->usage && caller->key->usage->produce_rate;
}

bool eski_es01_merge_add(struct eski_es01_client *client, uint32_t id, struct esk_slice topic,
                         uint32_t record_count, struct esk_slice records) {
    struct eski_es01_shard *shard = client->shard;
    if (records.size > ESKI_ES01_MERGED_FRAME_BYTES_MAX || record_count == 0 ||
        record_count > ESKI_ES01_MERGE_RECORDS_MAX || has_quota(&client->caller)) {
        return false;
    }
    struct eski_es01_merge *merge = merge_with_room(client, topic, record_count, records.size);
    if (!merge) {
        return false;
    }
    if (!fit(merge, records, record_count) ||
        !charge(merge, records.size + record_count * ESK_PRODUCE_RECORD_BYTES)) {
        return false; /* a merge that is empty now stays open for the next frame */
    }
    grow(merge);
    put(merge, records, record_count);
    merge->data_bytes += (uint32_t)records.size;
    merge->record_count += record_count;
    merge->frames[merge->frame_count++] = (struct eski_es01_merged){
        .client = client,
        .id = id,
        .record_count = record_count,
        .started_ns = esk_loop_now_ns(shard->loop),
    };
    client->in_flight++;
    return true;
}

void eski_es01_merge_init(struct eski_es01_shard *shard) {
    esk_list_init(&shard->merges);
    shard->record_bytes_max = esk_broker_shard_options(shard->broker)->record_bytes_max;
}

void eski_es01_merge_fini(struct eski_es01_shard *shard) {
    ESK_ASSERT(esk_list_empty(&shard->merges));
    while (shard->merge_pool) {
        struct eski_es01_merge *next = shard->merge_pool->next;
        free_merge(shard->merge_pool);
        shard->merge_pool = next;
    }
}
