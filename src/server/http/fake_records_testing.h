/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of the broker in memory: records, commits, metrics. */
#ifndef ESK_SERVER_HTTP_FAKE_RECORDS_TESTING_H
#define ESK_SERVER_HTTP_FAKE_RECORDS_TESTING_H

#include "server/http/fake_broker_testing.h"

static inline void produce_done(void *context, enum esk_err err) {
    struct esk_produce *produce = context;
    produce->done(produce, err);
}
static inline void append(uint32_t partition, struct esk_produce *produce) {
    struct esk_batch_builder builder;
    esk_batch_builder_begin(&builder, 1763500000000, 100);
    for (uint32_t i = 0; i < produce->record_count; i++) {
        struct esk_produce_record *record = &produce->records[i];
        if (record->written_partition != partition) {
            continue;
        }
        struct esk_record_header headers[8];
        for (uint32_t j = 0; j < record->header_count; j++) {
            headers[j] =
                (struct esk_record_header){record->headers[j].name, record->headers[j].value};
        }
        enum esk_err err = esk_batch_builder_add(&builder, record->key, record->value, headers,
                                                 (int32_t)record->header_count);
        assert_int_equal(err, ESK_OK);
        record->written_offset = fake.next_offset[partition] + (uint32_t)builder.record_count - 1;
    }
    uint32_t count = (uint32_t)builder.record_count;
    if (count == 0) {
        esk_batch_builder_abandon(&builder);
        return;
    }
    struct esk_block *block = esk_batch_builder_finish(&builder);
    esk_batch_patch(block->data, (int64_t)fake.next_offset[partition], 1);
    fake.batches[partition][fake.batch_count[partition]++] = block;
    fake.next_offset[partition] += count;
}
void esk_broker_produce(struct esk_broker_shard *shard, struct esk_produce *produce) {
    pthread_mutex_lock(&fake.mutex);
    enum esk_err err = fake.failure;
    fake.failure = ESK_OK;
    if (err) {
        (void)esk_fail(&produce->error, err, "write segment 3: secret path");
    } else if (!is_orders(produce->topic)) {
        err = esk_fail(&produce->error, ESK_ERR_NOT_FOUND, "unknown topic 'x'");
    } else {
        for (uint32_t i = 0; i < produce->record_count; i++) {
            struct esk_produce_record *record = &produce->records[i];
            record->written_partition =
                record->partition != ESK_PARTITION_ANY
                    ? (uint32_t)record->partition
                    : (uint32_t)esk_partition_for_key(ESK_PARTITIONER_FNV1A, record->key, 2);
        }
        append(0, produce);
        append(1, produce);
        fake.produced++;
        pthread_cond_broadcast(&fake.changed);
    }
    pthread_mutex_unlock(&fake.mutex);
    answer_later(shard, produce, err, produce_done);
}

static inline void consume_done(void *context, enum esk_err err) {
    struct esk_consume *consume = context;
    consume->done(consume, err);
}
void esk_broker_consume(struct esk_broker_shard *shard, struct esk_consume *consume) {
    pthread_mutex_lock(&fake.mutex);
    uint32_t partition = consume->partition;
    enum esk_err err = ESK_OK;
    if (partition > 1 || !is_orders(consume->topic)) {
        err = esk_fail(&consume->error, ESK_ERR_NOT_FOUND, "unknown partition");
    } else if (consume->wait_ms && consume->offset >= fake.next_offset[partition]) {
        fake.waiting = consume;
        fake.waiting_at = shard;
        pthread_cond_broadcast(&fake.changed);
        pthread_mutex_unlock(&fake.mutex);
        return;
    } else {
        consume->parts = esk_alloc_zeroed(fake.batch_count[partition], sizeof *consume->parts);
        for (uint32_t i = 0; i < fake.batch_count[partition]; i++) {
            struct esk_block *block = esk_block_retain(fake.batches[partition][i]);
            consume->parts[consume->part_count++] =
                (struct esk_consume_part){block, 0, block->size};
        }
        consume->high_watermark = fake.next_offset[partition];
    }
    pthread_mutex_unlock(&fake.mutex);
    answer_later(shard, consume, err, consume_done);
}
void esk_broker_consume_cancel(struct esk_broker_shard *shard, struct esk_consume *consume) {
    pthread_mutex_lock(&fake.mutex);
    assert_ptr_equal(fake.waiting, consume);
    fake.waiting = NULL;
    fake.cancelled = true;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.mutex);
    answer_later(shard, consume, ESK_OK, consume_done);
}
void esk_consume_fini(struct esk_consume *consume) {
    for (uint32_t i = 0; i < consume->part_count; i++) {
        esk_block_release(consume->parts[i].block);
    }
    free(consume->parts);
    consume->parts = NULL;
    consume->part_count = 0;
}

static inline void commit_done(void *context, enum esk_err err) {
    struct esk_offset_commit *commit = context;
    commit->done(commit, err);
}
void esk_broker_offset_commit(struct esk_broker_shard *shard, struct esk_offset_commit *commit) {
    enum esk_err err = is_orders(commit->topic)
                           ? ESK_OK
                           : esk_fail(&commit->error, ESK_ERR_NOT_FOUND, "unknown topic");
    answer_later(shard, commit, err, commit_done);
}

static inline void fetch_done(void *context, enum esk_err err) {
    struct esk_offset_fetch *fetch = context;
    fetch->done(fetch, err);
}
/* The group "analytics" has committed twice. */
void esk_broker_offset_fetch(struct esk_broker_shard *shard, struct esk_offset_fetch *fetch) {
    if (esk_slice_equal(fetch->group, esk_slice_text("analytics"))) {
        fetch->count = fetch->topic.size ? 1 : 2;
        fetch->offsets = esk_alloc_zeroed(2, sizeof *fetch->offsets);
        fetch->offsets[0] = (struct esk_offset_view){"orders", 0, 1};
        fetch->offsets[1] = (struct esk_offset_view){"orders", 1, 0};
    }
    answer_later(shard, fetch, ESK_OK, fetch_done);
}
void esk_offset_fetch_fini(struct esk_offset_fetch *fetch) {
    free(fetch->offsets);
    fetch->offsets = NULL;
    fetch->count = 0;
}

static inline void scrape_done(void *context, enum esk_err err) {
    (void)err;
    struct esk_metrics_scrape *scrape = context;
    scrape->done(scrape);
}
void esk_broker_metrics(struct esk_broker_shard *shard, struct esk_metrics_scrape *scrape) {
    esk_buffer_append_text(&scrape->text, "esker_topics 1\n");
    answer_later(shard, scrape, ESK_OK, scrape_done);
}

#endif
