/* SPDX-License-Identifier: Apache-2.0 */
/* The list of producers: names from this shard's copy of the catalogue, last sequences and uses
 * from all shards, gathered in turns; sorted on a helper. */
#include "broker/producers.h"
#include "broker/producers_private.h"

#include <stdlib.h>
#include <string.h>

#define WINDOWS_PER_TURN 2000 /* about 0.1 us each */
#define VIEWS 64

struct window {
    size_t producer; /* which of the names */
    struct esk_producer_view view;
};

struct share {
    struct esk_mail mail;
    struct gathering *gathering;
    struct esk_broker_shard *shard;
    size_t at;   /* of the names */
    size_t from; /* of that one's windows */
    struct window *windows;
    size_t count, capacity;
    int64_t *seen_ms; /* by name */
};

struct name {
    uint64_t id;
    uint64_t owner;
    int64_t used_ms;
    char *text; /* owned, then the list's */
};

struct topic {
    uint64_t first_group;
    uint32_t partition_count;
    char *name;
};

struct gathering {
    struct esk_mail mail;
    struct esk_broker_shard *home;
    struct esk_producer_list *list;
    struct name *names;
    size_t name_count;
    struct topic *topics; /* by id */
    size_t topic_count;
    uint32_t waiting;
    struct share shares[];
};

/* What the list keeps until its end. */
struct kept {
    struct topic *topics;
    size_t topic_count;
    struct esk_producer_partition *partitions; /* of all producers */
};

/* --- on a helper --- */

static int compare_entries(const void *a, const void *b) {
    return strcmp(((const struct esk_producer_entry *)a)->producer_id,
                  ((const struct esk_producer_entry *)b)->producer_id);
}

static int compare_partitions(const void *a, const void *b) {
    const struct esk_producer_partition *left = a;
    const struct esk_producer_partition *right = b;
    int order = strcmp(left->topic, right->topic);
    if (order != 0) {
        return order;
    }
    return left->partition < right->partition ? -1 : left->partition > right->partition;
}

static int compare_topics(const void *a, const void *b) {
    const struct topic *left = a;
    const struct topic *right = b;
    return left->first_group < right->first_group ? -1 : left->first_group > right->first_group;
}

/* NULL: deleted meanwhile. */
static const struct topic *topic_of(const struct gathering *gathering, uint64_t group_id) {
    size_t low = 0;
    size_t high = gathering->topic_count;
    while (low < high) { /* the first one behind it */
        size_t middle = low + (high - low) / 2;
        if (gathering->topics[middle].first_group <= group_id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct topic *topic = low == 0 ? NULL : &gathering->topics[low - 1];
    return topic != NULL && group_id - topic->first_group < topic->partition_count ? topic : NULL;
}

/* Gives each name its part of the partitions, by the counts of what the shares have. */
static void lay_out(struct gathering *gathering, struct esk_producer_partition *partitions) {
    struct esk_producer_list *list = gathering->list;
    size_t *counts = esk_alloc_zeroed(list->count + 1, sizeof(*counts));
    for (uint32_t s = 0; s < gathering->home->broker->shard_count; s++) {
        for (size_t w = 0; w < gathering->shares[s].count; w++) {
            counts[gathering->shares[s].windows[w].producer]++;
        }
    }
    for (size_t i = 0; i < list->count; i++) {
        list->producers[i].partitions = partitions;
        partitions += counts[i];
    }
    free(counts);
}

static void add_windows(struct gathering *gathering, const struct share *share) {
    for (size_t w = 0; w < share->count; w++) {
        const struct window *window = &share->windows[w];
        struct esk_producer_entry *entry = &gathering->list->producers[window->producer];
        const struct topic *topic = topic_of(gathering, window->view.group_id);
        if (topic != NULL) {
            ((struct esk_producer_partition *)entry->partitions)[entry->partition_count++] =
                (struct esk_producer_partition){
                    topic->name, (uint32_t)(window->view.group_id - topic->first_group),
                    window->view.last_sequence};
        }
    }
}

static void back(struct esk_mail *mail) {
    struct gathering *gathering = ESK_CONTAINER(mail, struct gathering, mail);
    struct esk_producer_list *list = gathering->list;
    eski_end(gathering->home);
    free(gathering);
    list->done(list, ESK_OK);
}

static void merge(struct esk_mail *mail) {
    struct gathering *gathering = ESK_CONTAINER(mail, struct gathering, mail);
    struct esk_producer_list *list = gathering->list;
    uint32_t shard_count = gathering->home->broker->shard_count;
    size_t windows = 0;
    qsort(gathering->topics, gathering->topic_count, sizeof(struct topic), compare_topics);
    list->count = gathering->name_count;
    list->producers = esk_alloc_zeroed(list->count + 1, sizeof(*list->producers));
    for (size_t i = 0; i < list->count; i++) {
        const struct name *name = &gathering->names[i];
        list->producers[i] = (struct esk_producer_entry){.producer_id = name->text,
                                                         .numeric_id = name->id,
                                                         .owner = name->owner,
                                                         .last_used_ms = name->used_ms};
        for (uint32_t s = 0; s < shard_count; s++) {
            int64_t seen_ms = gathering->shares[s].seen_ms[i];
            if (seen_ms > list->producers[i].last_used_ms) {
                list->producers[i].last_used_ms = seen_ms;
            }
        }
    }
    for (uint32_t s = 0; s < shard_count; s++) {
        windows += gathering->shares[s].count;
    }
    struct kept *kept = esk_alloc(sizeof(*kept));
    *kept = (struct kept){gathering->topics, gathering->topic_count,
                          esk_alloc((windows + 1) * sizeof(struct esk_producer_partition))};
    list->internal = kept;
    lay_out(gathering, kept->partitions);
    for (uint32_t s = 0; s < shard_count; s++) {
        add_windows(gathering, &gathering->shares[s]);
        free(gathering->shares[s].windows);
        free(gathering->shares[s].seen_ms);
    }
    for (size_t i = 0; i < list->count; i++) {
        qsort((void *)list->producers[i].partitions, list->producers[i].partition_count,
              sizeof(struct esk_producer_partition), compare_partitions);
    }
    qsort(list->producers, list->count, sizeof(*list->producers), compare_entries);
    free(gathering->names);
    eski_post(gathering->home, mail, back);
}

/* --- in the shards --- */

static void share_back(struct esk_mail *mail) {
    struct gathering *gathering = ESK_CONTAINER(mail, struct share, mail)->gathering;
    if (--gathering->waiting == 0) {
        gathering->mail.run = merge;
        esk_post(gathering->home->broker->helpers, &gathering->mail);
    }
}

static void add_views(struct share *share, const struct esk_producer_view *views, size_t count) {
    if (share->count + count > share->capacity) {
        share->capacity = share->capacity * 2 + VIEWS;
        share->windows = esk_realloc(share->windows, share->capacity * sizeof(*share->windows));
    }
    for (size_t i = 0; i < count; i++) {
        share->windows[share->count++] = (struct window){share->at, views[i]};
    }
}

static void share_run(struct esk_mail *mail) {
    struct share *share = ESK_CONTAINER(mail, struct share, mail);
    struct gathering *gathering = share->gathering;
    size_t looked = 0;
    while (share->at < gathering->name_count && looked < WINDOWS_PER_TURN) {
        struct esk_producer_view views[VIEWS];
        uint64_t id = gathering->names[share->at].id;
        size_t count = esk_shard_producer_views(share->shard->log, id, share->from, views, VIEWS);
        add_views(share, views, count);
        looked += count + 1;
        share->from += count;
        if (count < VIEWS) {
            const struct esk_producer *producer =
                esk_producer_by_id(&share->shard->catalogue.producers, id);
            share->seen_ms[share->at++] = producer == NULL ? 0 : producer->seen_ms;
            share->from = 0;
        }
    }
    bool done = share->at == gathering->name_count;
    eski_post(done ? gathering->home : share->shard, mail, done ? share_back : share_run);
}

/* --- start --- */

static void copy_names(struct gathering *gathering) {
    const struct esk_producers *producers = &gathering->home->catalogue.producers;
    const struct esk_link *head = &producers->recent;
    gathering->names = esk_alloc((producers->by_id.count + 1) * sizeof(struct name));
    for (const struct esk_link *link = head->next; link != head; link = link->next) {
        const struct esk_producer *producer = ESK_CONTAINER(link, struct esk_producer, recent);
        gathering->names[gathering->name_count++] = (struct name){
            producer->id, producer->owner, producer->used_ms, esk_text_copy(producer->name)};
    }
}

static void copy_topics(struct gathering *gathering) {
    const struct esk_map *topics = &gathering->home->catalogue.by_name;
    size_t position = 0;
    void *value;
    gathering->topics = esk_alloc((topics->count + 1) * sizeof(struct topic));
    while (esk_map_next(topics, &position, NULL, &value)) {
        const struct esk_topic *topic = value;
        gathering->topics[gathering->topic_count++] =
            (struct topic){topic->first_group, topic->partition_count, esk_text_copy(topic->name)};
    }
}

void esk_broker_producer_list(struct esk_broker_shard *shard, struct esk_producer_list *list) {
    struct esk_broker *broker = shard->broker;
    struct gathering *gathering =
        esk_alloc_zeroed(1, sizeof(*gathering) + broker->shard_count * sizeof(struct share));
    eski_begin(shard);
    gathering->home = shard;
    gathering->list = list;
    gathering->waiting = broker->shard_count;
    copy_names(gathering);
    copy_topics(gathering);
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        struct share *share = &gathering->shares[i];
        share->gathering = gathering;
        share->shard = &broker->shards[i];
        share->seen_ms = esk_alloc_zeroed(gathering->name_count + 1, sizeof(int64_t));
        eski_post(share->shard, &share->mail, share_run);
    }
}

void esk_producer_list_fini(struct esk_producer_list *list) {
    struct kept *kept = list->internal;
    for (size_t i = 0; i < list->count; i++) {
        free((char *)list->producers[i].producer_id);
    }
    for (size_t i = 0; i < kept->topic_count; i++) {
        free(kept->topics[i].name);
    }
    free(kept->topics);
    free(kept->partitions);
    free(kept);
    free(list->producers);
}
