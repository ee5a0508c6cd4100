/* SPDX-License-Identifier: Apache-2.0 */
/* A scrape: the figures of all partitions and groups are gathered shard by shard, then written
 * family by family, a bounded number of each a turn, so that ten thousand partitions stall nobody.
 */
#include "broker/keys.h"
#include "broker/membership_private.h"

#include "observe/exposition.h"
#include "security/usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_PER_TURN 1000 /* about 0.2 us each to gather or write */

struct row {
    const char *topic; /* the job's copy */
    uint32_t partition;
    uint32_t labels_size; /* 0: not made yet */
    size_t labels;        /* their position in the job's */
    uint64_t group_id;
    struct esk_partition_figures figures;
};

struct commit_row {
    char *group;
    size_t group_size;
    uint32_t labels_size; /* as a row's */
    size_t labels;
    struct esk_committed commit;
};

struct job {
    struct esk_mail mail;
    struct esk_broker_shard *home;
    struct esk_metrics_scrape *scrape;
    char **names;
    size_t name_count;
    struct row *rows;
    size_t row_count;
    struct esk_u64_map first_rows; /* topic id -> its first row */
    struct commit_row *commits;
    size_t commit_count;
    size_t commit_capacity;
    struct esk_buffer rebalances; /* samples of groups, as text */
    struct esk_buffer labels;     /* of rows and commits, for all their families */
    struct esk_key_list keys;
    uint32_t shard; /* being visited */
    size_t next;    /* row, commit or key */
    size_t family;
};

/* --- families --- */

static uint64_t role_number(const struct esk_partition_figures *figures) {
    return (uint64_t)figures->role;
}

#define FIGURE(name)                                                                               \
    static uint64_t figure_##name(const struct esk_partition_figures *figures) {                   \
        return figures->name;                                                                      \
    }
FIGURE(records_in)
FIGURE(bytes_in)
FIGURE(records_out)
FIGURE(bytes_out)
FIGURE(start_offset)
FIGURE(high_watermark)
FIGURE(size_bytes)
FIGURE(segments)
FIGURE(term)
FIGURE(commit_index)

static const struct {
    enum esk_metric metric;
    uint64_t (*value)(const struct esk_partition_figures *figures);
} families[] = {
    {ESK_METRIC_PARTITION_RECORDS_IN_TOTAL, figure_records_in},
    {ESK_METRIC_PARTITION_BYTES_IN_TOTAL, figure_bytes_in},
    {ESK_METRIC_PARTITION_RECORDS_OUT_TOTAL, figure_records_out},
    {ESK_METRIC_PARTITION_BYTES_OUT_TOTAL, figure_bytes_out},
    {ESK_METRIC_PARTITION_START_OFFSET, figure_start_offset},
    {ESK_METRIC_PARTITION_HIGH_WATERMARK, figure_high_watermark},
    {ESK_METRIC_PARTITION_SIZE_BYTES, figure_size_bytes},
    {ESK_METRIC_PARTITION_SEGMENTS, figure_segments},
    {ESK_METRIC_RAFT_ROLE, role_number},
    {ESK_METRIC_RAFT_TERM, figure_term},
    {ESK_METRIC_RAFT_COMMIT_INDEX, figure_commit_index},
};
#define FAMILY_COUNT (sizeof(families) / sizeof(families[0]))

/* Of keys; written behind those of partitions. */
static const struct {
    enum esk_metric metric;
    size_t counter; /* of struct esk_usage */
} key_families[] = {
    {ESK_METRIC_KEY_PRODUCE_BYTES_TOTAL, offsetof(struct esk_usage, produced_bytes)},
    {ESK_METRIC_KEY_CONSUME_BYTES_TOTAL, offsetof(struct esk_usage, consumed_bytes)},
    {ESK_METRIC_KEY_THROTTLED_TOTAL, offsetof(struct esk_usage, throttled)},
};
#define KEY_FAMILY_COUNT (sizeof(key_families) / sizeof(key_families[0]))

/* Whether who looks sees all. */
static bool sees_all(const struct job *job) {
    const struct esk_caller *caller = job->scrape->caller;
    return caller == NULL || caller->admin;
}

/* --- writing --- */

static void finish(struct job *job) {
    struct esk_metrics_scrape *scrape = job->scrape;
    for (size_t i = 0; i < job->name_count; i++) {
        free(job->names[i]);
    }
    for (size_t i = 0; i < job->commit_count; i++) {
        free(job->commits[i].group);
    }
    free(job->names);
    free(job->rows);
    free(job->commits);
    esk_buffer_fini(&job->rebalances);
    esk_key_list_fini(&job->keys);
    esk_buffer_fini(&job->labels);
    esk_u64_map_fini(&job->first_rows);
    eski_end(job->home);
    free(job);
    scrape->done(scrape);
}

static void write_single(struct esk_buffer *out, enum esk_metric metric, uint64_t value) {
    esk_metrics_family(out, metric);
    esk_metrics_sample(out, metric, esk_slice(NULL, 0), value);
}

static void write_rest(struct job *job) {
    struct esk_broker *broker = job->home->broker;
    struct esk_buffer *out = &job->scrape->text;
    const struct esk_metrics **registries =
        esk_alloc(broker->shard_count * sizeof(struct esk_metrics *));
    uint64_t used = 0;
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        registries[i] = broker->shards[i].metrics;
        used += atomic_load_explicit(&broker->shards[i].memory_used, memory_order_relaxed);
        const struct esk_shard_metrics *log = esk_shard_metrics(broker->shards[i].log);
        used += esk_counter_get(&log->tail_bytes) + esk_counter_get(&log->producer_bytes);
        used += esk_counter_get(&log->key_map_bytes);
    }
    esk_metrics_write(out, registries, broker->shard_count);
    free(registries);
    write_single(out, ESK_METRIC_MEMORY_BUDGET_BYTES, broker->options.memory_bytes);
    write_single(out, ESK_METRIC_MEMORY_USED_BYTES, used);
    write_single(out, ESK_METRIC_TOPICS, esk_broker_topic_count(job->home));
    const struct esk_slice version = esk_slice_text(ESK_VERSION);
    struct esk_buffer labels;
    esk_buffer_init(&labels);
    esk_metrics_family(out, ESK_METRIC_BUILD_INFO);
    esk_metrics_labels(&labels, ESK_METRIC_BUILD_INFO, &version);
    esk_metrics_sample(out, ESK_METRIC_BUILD_INFO, esk_buffer_slice(&labels), 1);
    esk_buffer_fini(&labels);
}

/* Made for a row's first family. */
static struct esk_slice labels_of(struct job *job, struct row *row) {
    if (row->labels_size == 0) {
        char number[16];
        snprintf(number, sizeof(number), "%u", row->partition);
        const struct esk_slice values[] = {esk_slice_text(row->topic), esk_slice_text(number)};
        row->labels = job->labels.size;
        esk_metrics_labels(&job->labels, ESK_METRIC_PARTITION_SEGMENTS, values);
        row->labels_size = (uint32_t)(job->labels.size - row->labels);
    }
    return esk_slice(job->labels.data + row->labels, row->labels_size);
}

static struct esk_slice commit_labels(struct job *job, struct commit_row *commit,
                                      const struct row *row) {
    if (commit->labels_size == 0) {
        char number[16];
        snprintf(number, sizeof(number), "%u", row->partition);
        const struct esk_slice values[] = {esk_slice(commit->group, commit->group_size),
                                           esk_slice_text(row->topic), esk_slice_text(number)};
        commit->labels = job->labels.size;
        esk_metrics_labels(&job->labels, ESK_METRIC_GROUP_LAG_RECORDS, values);
        commit->labels_size = (uint32_t)(job->labels.size - commit->labels);
    }
    return esk_slice(job->labels.data + commit->labels, commit->labels_size);
}

/* In one of the two families of commits. */
static void write_commit(struct job *job, enum esk_metric metric) {
    struct commit_row *commit = &job->commits[job->next];
    const struct row *row = esk_u64_map_get(&job->first_rows, commit->commit.topic);
    if (row == NULL) {
        return; /* a topic that is gone, or came since */
    }
    row += commit->commit.partition;
    uint64_t end = row->figures.high_watermark;
    uint64_t value = commit->commit.offset;
    if (metric == ESK_METRIC_GROUP_LAG_RECORDS) {
        value = value < end ? end - value : 0;
    }
    esk_metrics_sample(&job->scrape->text, metric, commit_labels(job, commit, row), value);
}

static void write_row(struct job *job) {
    struct row *row = &job->rows[job->next];
    esk_metrics_sample(&job->scrape->text, families[job->family].metric, labels_of(job, row),
                       families[job->family].value(&row->figures));
}

static void write_key(struct job *job) {
    struct esk_buffer labels;
    const struct esk_key *key = job->keys.keys[job->next];
    size_t family = job->family - FAMILY_COUNT;
    const void *counter = (const char *)key->usage + key_families[family].counter;
    char id[ESK_KEY_ID_BYTES];
    esk_key_id_format(key->about.id, id);
    const struct esk_slice value = esk_slice_text(id);
    esk_buffer_init(&labels);
    esk_metrics_labels(&labels, key_families[family].metric, &value);
    esk_metrics_sample(
        &job->scrape->text, key_families[family].metric, esk_buffer_slice(&labels),
        atomic_load_explicit((const atomic_uint_fast64_t *)counter, memory_order_relaxed));
    esk_buffer_fini(&labels);
}

/* Families come in this order: of partitions, of keys, of commits. */
static const enum esk_metric commit_families[] = {ESK_METRIC_GROUP_COMMITTED_OFFSET,
                                                  ESK_METRIC_GROUP_LAG_RECORDS};
#define COMMITS_FIRST (FAMILY_COUNT + KEY_FAMILY_COUNT)
#define ALL_FAMILIES (COMMITS_FIRST + 2)

static enum esk_metric metric_of(size_t family) {
    return family < FAMILY_COUNT    ? families[family].metric
           : family < COMMITS_FIRST ? key_families[family - FAMILY_COUNT].metric
                                    : commit_families[family - COMMITS_FIRST];
}

static size_t count_of(const struct job *job) {
    return job->family < FAMILY_COUNT    ? job->row_count
           : job->family < COMMITS_FIRST ? job->keys.count
                                         : job->commit_count;
}

static void write_run(struct esk_mail *mail) {
    struct job *job = ESK_CONTAINER(mail, struct job, mail);
    struct esk_buffer *out = &job->scrape->text;
    if (job->family < ALL_FAMILIES) {
        if (job->next == 0) {
            esk_metrics_family(out, metric_of(job->family));
        }
        size_t count = count_of(job);
        size_t end = job->next + ROWS_PER_TURN;
        for (; job->next < count && job->next < end; job->next++) {
            if (job->family < FAMILY_COUNT) {
                write_row(job);
            } else if (job->family < COMMITS_FIRST) {
                write_key(job);
            } else {
                write_commit(job, metric_of(job->family));
            }
        }
        if (job->next >= count) {
            job->family++;
            job->next = 0;
        }
        eski_post(job->home, mail, write_run);
        return;
    }
    esk_metrics_family(out, ESK_METRIC_GROUP_REBALANCES_TOTAL);
    esk_buffer_append(out, job->rebalances.data, job->rebalances.size);
    if (sees_all(job)) {
        write_rest(job);
    }
    finish(job);
}

/* --- gathering --- */

static bool sees_group(const struct job *job, struct esk_slice group) {
    const struct esk_owners *owners =
        &job->home->broker->shards[job->shard].catalogue.owners; /* the present loop's */
    return sees_all(job) || esk_caller_owns(job->scrape->caller, esk_owners_find(owners, group));
}

static void add_group(void *context, const struct esk_consumer_group *state) {
    struct job *job = context;
    struct esk_slice group = esk_consumer_group_name(state);
    if (!sees_group(job, group)) {
        return;
    }
    for (size_t i = 0; i < state->commit_count; i++) {
        if (job->commit_count == job->commit_capacity) {
            job->commit_capacity = job->commit_capacity == 0 ? 64 : 2 * job->commit_capacity;
            job->commits =
                esk_realloc(job->commits, job->commit_capacity * sizeof(struct commit_row));
        }
        char *copy = esk_alloc(group.size);
        memcpy(copy, group.data, group.size);
        job->commits[job->commit_count++] = (struct commit_row){
            .group = copy, .group_size = group.size, .commit = state->commits[i]};
    }
}

static void add_rebalances(void *context, struct esk_slice group, uint64_t count) {
    struct job *job = context;
    if (!sees_group(job, group)) {
        return;
    }
    struct esk_buffer labels;
    esk_buffer_init(&labels);
    esk_metrics_labels(&labels, ESK_METRIC_GROUP_REBALANCES_TOTAL, &group);
    esk_metrics_sample(&job->rebalances, ESK_METRIC_GROUP_REBALANCES_TOTAL,
                       esk_buffer_slice(&labels), count);
    esk_buffer_fini(&labels);
}

static void visit_run(struct esk_mail *mail);

/* On to the next shard, or home. */
static void visit_next(struct job *job) {
    struct esk_broker *broker = job->home->broker;
    job->next = 0;
    job->shard++;
    if (job->shard < broker->shard_count) {
        eski_post(&broker->shards[job->shard], &job->mail, visit_run);
    } else {
        eski_post(job->home, &job->mail, write_run);
    }
}

static void visit_run(struct esk_mail *mail) {
    struct job *job = ESK_CONTAINER(mail, struct job, mail);
    struct esk_broker_shard *shard = &job->home->broker->shards[job->shard];
    size_t end = job->next + ROWS_PER_TURN;
    for (; job->next < job->row_count && job->next < end; job->next++) {
        struct row *row = &job->rows[job->next];
        struct esk_partition *partition = esk_shard_find(shard->log, row->group_id);
        if (partition != NULL) {
            esk_partition_figures(partition, &row->figures);
        }
    }
    if (job->next < job->row_count) {
        eski_post(shard, mail, visit_run);
        return;
    }
    for (uint32_t i = 0; i < shard->broker->options.offset_partitions; i++) {
        if (shard->offsets[i] != NULL) {
            esk_offsets_each(shard->offsets[i], add_group, job);
        }
    }
    eski_membership_each(shard, add_rebalances, job);
    visit_next(job);
}

/* Those that may be seen. */
static const struct esk_topic **list_topics(struct job *job, size_t *count) {
    size_t all;
    const struct esk_topic **topics = esk_catalogue_sorted(&job->home->catalogue, &all);
    *count = 0;
    for (size_t i = 0; i < all; i++) {
        if (sees_all(job) || esk_caller_may(job->scrape->caller, ESK_ACTION_READ,
                                            esk_slice(topics[i]->name, topics[i]->name_size))) {
            topics[(*count)++] = topics[i];
        }
    }
    return topics;
}

static void list_keys(struct job *job) {
    esk_broker_key_list(job->home, &job->keys);
    size_t kept = 0;
    for (size_t i = 0; i < job->keys.count; i++) {
        struct esk_key *key = job->keys.keys[i];
        if (sees_all(job) || key == job->scrape->caller->key) {
            job->keys.keys[kept++] = key;
        } else {
            esk_key_release(key);
        }
    }
    job->keys.count = kept;
}

static void list_rows(struct job *job) {
    const struct esk_topic **topics = list_topics(job, &job->name_count);
    size_t count = 0;
    for (size_t i = 0; i < job->name_count; i++) {
        count += topics[i]->partition_count;
    }
    job->names = esk_alloc((job->name_count + 1) * sizeof(char *));
    job->rows = esk_alloc_zeroed(count + 1, sizeof(struct row));
    for (size_t i = 0; i < job->name_count; i++) {
        job->names[i] = esk_text_copy(topics[i]->name);
        esk_u64_map_put(&job->first_rows, topics[i]->first_group, &job->rows[job->row_count]);
        for (uint32_t p = 0; p < topics[i]->partition_count; p++) {
            struct row *row = &job->rows[job->row_count++];
            row->topic = job->names[i];
            row->partition = p;
            row->group_id = topics[i]->first_group + p;
        }
    }
    free(topics);
}

void esk_broker_metrics(struct esk_broker_shard *shard, struct esk_metrics_scrape *scrape) {
    struct job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->home = shard;
    job->scrape = scrape;
    eski_begin(shard);
    esk_u64_map_init(&job->first_rows);
    esk_buffer_init(&job->rebalances);
    esk_buffer_init(&job->labels);
    list_rows(job);
    list_keys(job);
    eski_post(&shard->broker->shards[0], &job->mail, visit_run);
}

/* --- registries --- */

void eski_metrics_start(struct esk_broker_shard *shard) {
    const struct esk_shard_metrics *metrics = esk_shard_metrics(shard->log);
    static const char *const policy[] = {"delete"};
    static const char *const compact[] = {"compact"};
    shard->metrics = esk_metrics_create(shard->index);
    esk_metrics_add(shard->metrics, ESK_METRIC_JOURNAL_FLUSHES_TOTAL, NULL,
                    &metrics->journal.flushes);
    esk_metrics_add_histogram(shard->metrics, ESK_METRIC_JOURNAL_FLUSH_DURATION_SECONDS, NULL,
                              &metrics->journal.flush_duration_ns);
    esk_metrics_add_histogram(shard->metrics, ESK_METRIC_JOURNAL_COMMIT_RECORDS, NULL,
                              &metrics->journal.commit_records);
    esk_metrics_add(shard->metrics, ESK_METRIC_CLEANUP_PASSES_TOTAL, policy,
                    &metrics->cleanup_passes);
    esk_metrics_add(shard->metrics, ESK_METRIC_CLEANUP_REMOVED_RECORDS_TOTAL, policy,
                    &metrics->cleanup_records);
    esk_metrics_add(shard->metrics, ESK_METRIC_CLEANUP_REMOVED_BYTES_TOTAL, policy,
                    &metrics->cleanup_bytes);
    esk_metrics_add(shard->metrics, ESK_METRIC_CLEANUP_PASSES_TOTAL, compact,
                    &metrics->compaction_passes);
    esk_metrics_add(shard->metrics, ESK_METRIC_CLEANUP_REMOVED_RECORDS_TOTAL, compact,
                    &metrics->compaction_records);
    esk_metrics_add(shard->metrics, ESK_METRIC_CLEANUP_REMOVED_BYTES_TOTAL, compact,
                    &metrics->compaction_bytes);
}
