/* SPDX-License-Identifier: Apache-2.0 */
/* Compaction by the code that the broker has, alone: how fast one thread notes the keys of segments
 * and writes them anew, and what a given number of distinct keys costs in a map of bounded memory.
 *
 *   bench_compaction rewrite FOLDER MEGABYTES VALUE_BYTES KEYS [CODEC]
 *     segments of 64 MiB with records of KEYS keys in turn; prints {"bytes":...,"bytes_left":...,
 *     "map_seconds":...,"rewrite_seconds":...,"cpu_seconds":...} (CPU of this thread)
 *   bench_compaction keys KEYS MAP_BYTES
 *     notes KEYS keys round by round, and looks all keys up to each round's end up, as the filter
 *     does; prints {"rounds":...,"put_ns":...,"find_ns":...,"seconds":...,"peak_bytes":...}
 *
 * It leaves nothing behind. */
#include "storage/compaction.h"
#include "base/memory.h"
#include "runtime/platform.h"
#include "storage/pool.h"
#include "storage/reserve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define SEGMENT_BYTES (64u << 20)
#define BATCH_RECORDS 100
#define GROUP 1
#define AHEAD 16 /* as the filter hashes keys ahead */

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check(enum esk_err err, const struct esk_error *error) {
    if (err != ESK_OK) {
        fprintf(stderr, "bench_compaction: %s\n", error->text);
        exit(1);
    }
}

/* --- keys --- */

/* A key is sixteen bytes: hashing it costs as much as that of a name does. */
static struct esk_hash128 hash_of(const struct esk_key_map *map, uint64_t number) {
    const uint64_t key[2] = {number, ~number};
    return esk_key_map_hash(map, esk_slice(key, sizeof(key)));
}

static int run_keys(uint64_t keys, uint64_t map_bytes) {
    uint64_t done = 0;
    uint64_t rounds = 0;
    uint64_t finds = 0;
    uint64_t found = 0;
    double put_seconds = 0;
    double find_seconds = 0;
    struct esk_hash128 hashes[AHEAD];
    double began = seconds(CLOCK_MONOTONIC);
    while (done < keys) {
        struct esk_key_map map;
        esk_key_map_init(&map, map_bytes, keys - done, rounds + 1);
        double from = seconds(CLOCK_MONOTONIC);
        for (uint64_t at = done; done < keys; done++) {
            for (; at < keys && at < done + AHEAD; at++) {
                hashes[at % AHEAD] = hash_of(&map, at);
            }
            if (!esk_key_map_put(&map, hashes[done % AHEAD], done)) {
                break;
            }
        }
        double to = seconds(CLOCK_MONOTONIC);
        put_seconds += to - from;
        for (uint64_t offset = 0, at = 0; offset < done; offset++) {
            for (; at < done && at < offset + AHEAD; at++) {
                hashes[at % AHEAD] = hash_of(&map, at);
            }
            found += esk_key_map_has_newer(&map, hashes[offset % AHEAD], offset);
        }
        finds += done;
        find_seconds += seconds(CLOCK_MONOTONIC) - to;
        rounds++;
        esk_key_map_fini(&map);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"rounds\":%llu,\"put_ns\":%.1f,\"find_ns\":%.1f,\"seconds\":%.1f,"
           "\"peak_bytes\":%llu,\"superseded\":%llu}\n",
           (unsigned long long)rounds, put_seconds * 1e9 / (double)keys,
           find_seconds * 1e9 / (double)finds, seconds(CLOCK_MONOTONIC) - began,
           (unsigned long long)usage.ru_maxrss * 1024, (unsigned long long)found);
    return found == 0 ? 0 : 1;
}

/* --- rewriting --- */

struct log {
    struct esk_platform *platform;
    struct esk_storage storage;
    struct esk_compaction_input inputs[1024];
    size_t count;
    uint64_t end;
    uint64_t keys;
    size_t value_bytes;
    enum esk_codec codec;
};

/* A batch at the log's end, compressed when that was asked for. */
static struct esk_block *make_batch(struct log *log) {
    struct esk_batch_builder builder;
    struct esk_error error;
    uint8_t *value = esk_alloc(log->value_bytes);
    esk_batch_builder_begin(&builder, 1700000000000, 64u << 10);
    for (uint64_t i = 0; i < BATCH_RECORDS; i++) {
        char key[32];
        uint64_t number = (log->end + i) * UINT64_C(0x9e3779b97f4a7c15) % log->keys;
        int size = snprintf(key, sizeof(key), "user-%010llu", (unsigned long long)number);
        for (size_t at = 0; at < log->value_bytes; at++) {
            value[at] = (uint8_t)("0123456789abcdef"[(number >> (at % 15)) & 15]);
        }
        check(esk_batch_builder_add(&builder, esk_slice(key, (size_t)size),
                                    esk_slice(value, log->value_bytes), NULL, 0),
              &error);
    }
    free(value);
    struct esk_block *block = esk_batch_builder_finish(&builder);
    esk_batch_patch(block->data, (int64_t)log->end, 1);
    log->end += BATCH_RECORDS;
    if (log->codec == ESK_CODEC_NONE) {
        return block;
    }
    struct esk_buffer packed;
    esk_buffer_init(&packed);
    esk_buffer_append(&packed, block->data, ESK_BATCH_HEADER_BYTES);
    check(esk_compress(
              log->codec,
              esk_slice(block->data + ESK_BATCH_HEADER_BYTES, block->size - ESK_BATCH_HEADER_BYTES),
              &packed, &error),
          &error);
    uint8_t *at = packed.data;
    esk_store_u32(at + ESK_BATCH_AT_LENGTH, (uint32_t)packed.size - ESK_BATCH_LENGTH_BYTES);
    esk_store_u16(at + ESK_BATCH_AT_ATTRIBUTES, (uint16_t)log->codec);
    esk_store_u32(at + ESK_BATCH_AT_CRC, esk_crc32c(0, at + ESK_BATCH_AT_ATTRIBUTES,
                                                    packed.size - ESK_BATCH_AT_ATTRIBUTES));
    esk_block_release(block);
    block = esk_block_copy(esk_buffer_slice(&packed));
    esk_buffer_fini(&packed);
    return block;
}

static void add_segment(struct log *log) {
    struct esk_error error;
    struct esk_segment *segment;
    struct esk_index index;
    struct esk_segment_summary summary = {.base_offset = log->end, .timestamp_ms = 1700000000000};
    esk_index_init(&index);
    check(esk_segment_create(&log->storage, GROUP, log->end, &segment, &error), &error);
    while (summary.bytes < SEGMENT_BYTES) {
        esk_index_add(&index, log->end - summary.base_offset, summary.bytes, 1700000000000);
        struct esk_block *block = make_batch(log);
        const struct esk_slice slice = esk_slice(block->data, block->size);
        check(esk_segment_append(segment, summary.bytes, &slice, 1, 0, &error), &error);
        summary.bytes += block->size;
        esk_block_release(block);
    }
    summary.end_offset = log->end;
    check(esk_segment_sync(segment, &error), &error);
    check(esk_segment_seal(&log->storage, GROUP, segment, &summary, &index, &error), &error);
    log->inputs[log->count++] = (struct esk_compaction_input){
        summary.base_offset, summary.end_offset, summary.bytes, ESK_HORIZON_NONE, 0};
    esk_segment_release(segment);
    esk_index_fini(&index);
}

static void compact(struct log *log, uint64_t bytes) {
    struct esk_error error;
    struct esk_key_map map;
    struct esk_compaction_filter filter;
    struct esk_compaction_pace pace = {0};
    uint64_t left = 0;
    double cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
    double began = seconds(CLOCK_MONOTONIC);
    esk_key_map_init(&map, UINT64_C(128) << 20, log->end, 7);
    esk_compaction_filter_init(&filter);
    filter.map = &map;
    filter.now_ms = 1700000000000;
    check(esk_compaction_map(&log->storage, GROUP, log->inputs, log->count, 0, &pace, &map,
                             &filter.map_end, &error),
          &error);
    double mapped = seconds(CLOCK_MONOTONIC);
    for (size_t i = 0; i < log->count; i++) {
        struct esk_compaction_result result;
        check(esk_compaction_rewrite(&log->storage, GROUP, &log->inputs[i], 1, &filter, &pace,
                                     &result, &error),
              &error);
        left += result.rewritten ? result.summary.bytes : log->inputs[i].bytes;
        esk_segment_release(result.file);
        esk_index_fini(&result.index);
    }
    double ended = seconds(CLOCK_MONOTONIC);
    cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
    printf("{\"bytes\":%llu,\"bytes_left\":%llu,\"keys\":%zu,\"map_seconds\":%.3f,"
           "\"rewrite_seconds\":%.3f,\"cpu_seconds\":%.3f}\n",
           (unsigned long long)bytes, (unsigned long long)left, map.count, mapped - began,
           ended - mapped, cpu);
    esk_compaction_filter_fini(&filter);
    esk_key_map_fini(&map);
}

static int run_rewrite(const char *folder, uint64_t megabytes, struct log *log) {
    struct esk_error error;
    char *groups = esk_text_format("%s/groups", folder);
    char *pool = esk_text_format("%s/pool", folder);
    char *ballast = esk_text_format("%s/ballast", folder);
    uint64_t bytes = 0;
    log->platform = esk_runtime_platform_create();
    check(esk_folder_make(log->platform, groups, &error), &error);
    log->storage = (struct esk_storage){
        .platform = log->platform,
        .folder = groups,
        .reserve = esk_reserve_create(log->platform, ballast, ESK_RESERVE_STEP_BYTES,
                                      ESK_RESERVE_BYTES_MAX),
    };
    check(esk_pool_create(log->platform, pool, 1, &log->storage.pool, &error), &error);
    while (bytes < megabytes << 20 && log->count < 1024) {
        add_segment(log);
        bytes += log->inputs[log->count - 1].bytes;
    }
    compact(log, bytes);
    check(esk_group_files_remove(&log->storage, GROUP, &error), &error);
    esk_pool_destroy(log->storage.pool);
    esk_reserve_destroy(log->storage.reserve);
    esk_path_remove(log->platform, pool, NULL);
    esk_path_remove(log->platform, groups, NULL);
    esk_runtime_platform_destroy(log->platform);
    free(groups);
    free(pool);
    free(ballast);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "keys") == 0) {
        return run_keys(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
    }
    if (argc >= 6 && strcmp(argv[1], "rewrite") == 0) {
        static struct log log;
        log.value_bytes = strtoull(argv[4], NULL, 10);
        log.keys = strtoull(argv[5], NULL, 10);
        log.codec = (enum esk_codec)(argc > 6 ? atoi(argv[6]) : 0);
        return run_rewrite(argv[2], strtoull(argv[3], NULL, 10), &log);
    }
    fputs("bench_compaction rewrite FOLDER MEGABYTES VALUE_BYTES KEYS [CODEC] | keys KEYS "
          "MAP_BYTES\n",
          stderr);
    return 2;
}
