/* SPDX-License-Identifier: Apache-2.0 */
/* Speed of the Kafka codec on whole messages, in nanoseconds of CPU time.
 *
 *   bench_kafka_codec [DIR]   prints a line per case; with DIR it also writes the bodies that it
 *                             decodes there, for kafka_codec_bench.py to give to the Java client
 */
#include "base/assert.h"
#include "wire/kafka/codec.h"
#include "wire/kafka/messages.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PARTITIONS 100
#define RECORDS_BYTES 1024
#define TOPICS 1000
#define ROUNDS 20          /* the best one counts, as in KafkaParse.java */
#define ROUND_NS 100000000 /* of each */

static uint8_t records[RECORDS_BYTES];

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static const struct esk_kafka_layout *layout_of(const char *name, int16_t version) {
    return esk_kafka_layout_of(esk_kafka_message_named(name, version), version);
}

struct decode_case {
    const struct esk_kafka_layout *layout;
    struct esk_slice bytes;
    struct esk_arena arena;
};

static void decode_once(void *context) {
    struct decode_case *c = context;
    const void *body;
    size_t used;
    esk_arena_reset(&c->arena);
    enum esk_err err = esk_kafka_decode(c->layout, c->bytes, &c->arena, &body, &used, NULL);
    ESK_ASSERT(err == ESK_OK && used == c->bytes.size);
}

struct encode_case {
    const struct esk_kafka_layout *layout;
    const void *body;
    struct esk_buffer output;
    struct esk_kafka_pieces pieces;
};

static void encode_once(void *context) {
    struct encode_case *c = context;
    c->output.size = 0;
    enum esk_err err = esk_kafka_encode(c->layout, c->body, &c->output, NULL);
    ESK_ASSERT(err == ESK_OK);
}

static void encode_pieces_once(void *context) {
    struct encode_case *c = context;
    esk_kafka_pieces_reset(&c->pieces);
    enum esk_err err = esk_kafka_encode_pieces(c->layout, c->body, &c->pieces, NULL);
    ESK_ASSERT(err == ESK_OK);
}

static double measure(void (*once)(void *context), void *context) {
    double best = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t count = 0;
        uint64_t start = now_ns();
        uint64_t end;
        do {
            for (unsigned i = 0; i < 16; i++, count++)
                once(context);
            end = now_ns();
        } while (end - start < ROUND_NS);
        double each = (double)(end - start) / (double)count;
        if (round == 0 || each < best)
            best = each;
    }
    return best;
}

static void report(const char *name, double ns, unsigned parts, const char *part) {
    printf("%-28s %10.0f ns a message %8.1f ns per %s\n", name, ns, ns / parts, part);
}

static void bench_decode(const char *directory, const char *name, const char *message,
                         int16_t version, const void *body, unsigned parts, const char *part) {
    struct esk_buffer bytes;
    esk_buffer_init(&bytes);
    struct decode_case c = {.layout = layout_of(message, version)};
    enum esk_err err = esk_kafka_encode(c.layout, body, &bytes, NULL);
    ESK_ASSERT(err == ESK_OK);
    c.bytes = esk_buffer_slice(&bytes);
    esk_arena_init(&c.arena, 0);
    report(name, measure(decode_once, &c), parts, part);
    if (directory != NULL) {
        char path[512];
        snprintf(path, sizeof(path), "%s/%s-%d", directory, message, version);
        FILE *file = fopen(path, "wb");
        ESK_ASSERT(file != NULL && fwrite(bytes.data, 1, bytes.size, file) == bytes.size);
        fclose(file);
    }
    esk_arena_fini(&c.arena);
    esk_buffer_fini(&bytes);
}

static void bench_produce(const char *directory) {
    struct esk_kafka_produce_request_partition_produce_data partitions[PARTITIONS];
    memset(partitions, 0, sizeof(partitions));
    for (int i = 0; i < PARTITIONS; i++) {
        partitions[i].index = i;
        partitions[i].records = esk_slice(records, sizeof(records));
    }
    struct esk_kafka_produce_request_topic_produce_data topic = {
        .name = esk_slice_text("orders"), .partition_data = {partitions, PARTITIONS}};
    struct esk_kafka_produce_request request = {
        .acks = -1, .timeout_ms = 30000, .topic_data = {&topic, 1}};
    bench_decode(directory, "decode Produce v9", "ProduceRequest", 9, &request, PARTITIONS,
                 "partition");
}

static void bench_fetch(void) {
    const struct esk_kafka_layout *layout = layout_of("FetchResponse", 12);
    struct esk_kafka_fetch_response_partition_data partitions[PARTITIONS];
    struct esk_kafka_fetch_response_fetchable_topic_response topic;
    struct esk_kafka_fetch_response response;
    memcpy(&response, layout->defaults, sizeof(response));
    const struct esk_kafka_layout *topic_layout = layout->ops[3].layout;
    ESK_ASSERT(topic_layout->struct_bytes == sizeof(topic));
    memcpy(&topic, topic_layout->defaults, sizeof(topic));
    for (int i = 0; i < PARTITIONS; i++) {
        memcpy(&partitions[i], topic_layout->ops[1].layout->defaults, sizeof(partitions[i]));
        partitions[i].partition_index = i;
        partitions[i].high_watermark = partitions[i].last_stable_offset = 1000 + i;
        partitions[i].records = esk_slice(records, sizeof(records));
        partitions[i].aborted_transactions.count = -1;
    }
    topic.topic = esk_slice_text("orders");
    topic.partitions.items = partitions;
    topic.partitions.count = PARTITIONS;
    response.responses.items = &topic;
    response.responses.count = 1;
    struct encode_case c = {.layout = layout, .body = &response};
    esk_buffer_init(&c.output);
    esk_kafka_pieces_init(&c.pieces, 512);
    report("encode Fetch v12, pieces", measure(encode_pieces_once, &c), PARTITIONS, "partition");
    report("encode Fetch v12, copied", measure(encode_once, &c), PARTITIONS, "partition");
    ESK_ASSERT(c.output.size == c.pieces.size);
    esk_buffer_fini(&c.output);
    esk_kafka_pieces_fini(&c.pieces);
}

static void bench_api_versions(const char *directory) {
    struct esk_kafka_api_versions_response_api_version keys[91];
    memset(keys, 0, sizeof(keys));
    for (int16_t i = 0; i < 91; i++) {
        keys[i].api_key = i;
        keys[i].max_version = (int16_t)(i % 18);
    }
    const struct esk_kafka_layout *layout = layout_of("ApiVersionsResponse", 3);
    struct esk_kafka_api_versions_response response;
    memcpy(&response, layout->defaults, sizeof(response));
    response.api_keys.items = keys;
    response.api_keys.count = 91;
    bench_decode(directory, "decode ApiVersions v3", "ApiVersionsResponse", 3, &response, 91,
                 "API");
}

static void bench_metadata(const char *directory) {
    static struct esk_kafka_metadata_response_metadata_response_topic topics[TOPICS];
    static struct esk_kafka_metadata_response_metadata_response_partition partitions[3];
    static struct esk_kafka_metadata_response_metadata_response_broker brokers[3];
    static char names[TOPICS][32];
    static const int32_t nodes[3] = {1, 2, 3};
    for (int i = 0; i < 3; i++) {
        partitions[i].partition_index = i;
        partitions[i].leader_id = i + 1;
        partitions[i].leader_epoch = 7;
        partitions[i].replica_nodes.items = partitions[i].isr_nodes.items = nodes;
        partitions[i].replica_nodes.count = partitions[i].isr_nodes.count = 3;
        brokers[i].node_id = i + 1;
        brokers[i].host = esk_slice_text("broker.example.com");
        brokers[i].port = 9092;
    }
    for (int i = 0; i < TOPICS; i++) {
        snprintf(names[i], sizeof(names[i]), "topic-%d-of-the-bench", i);
        topics[i].name = esk_slice_text(names[i]);
        esk_store_u64(topics[i].topic_id.bytes, (uint64_t)i + 1);
        topics[i].partitions.items = partitions;
        topics[i].partitions.count = 3;
        topics[i].topic_authorized_operations = INT32_MIN;
    }
    struct esk_kafka_metadata_response response = {.brokers = {brokers, 3},
                                                   .cluster_id = esk_slice_text("a-cluster"),
                                                   .controller_id = 1,
                                                   .topics = {topics, TOPICS}};
    bench_decode(directory, "decode Metadata v12", "MetadataResponse", 12, &response, TOPICS,
                 "topic");
}

int main(int argc, char **argv) {
    const char *directory = argc > 1 ? argv[1] : NULL;
    mallopt(M_TRIM_THRESHOLD, 64 << 20); /* as the broker has them: freed memory stays */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    memset(records, 'r', sizeof(records));
    bench_produce(directory);
    bench_fetch();
    bench_api_versions(directory);
    bench_metadata(directory);
    return 0;
}
