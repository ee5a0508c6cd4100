/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the catalogue, and the figures of a topic's partitions from the shards that own them. */
#include "broker/broker_private.h"

#include <stdlib.h>

struct description;

struct share {
    struct esk_mail mail;
    struct description *description;
    struct esk_broker_shard *shard;
};

struct description {
    struct esk_topic_description *request;
    struct esk_broker_shard *home;
    uint64_t first_group;
    uint32_t waiting;
    struct share shares[];
};

size_t esk_broker_topic_count(const struct esk_broker_shard *shard) {
    size_t count = 0;
    size_t position = 0;
    void *topic;
    while (esk_map_next(&shard->catalogue.by_name, &position, NULL, &topic)) {
        count += ((struct esk_topic *)topic)->serving;
    }
    return count;
}

static void view_topic(const struct esk_topic *topic, struct esk_topic_view *view) {
    *view = (struct esk_topic_view){
        .name = esk_slice(topic->name, topic->name_size),
        .partition_count = topic->partition_count,
        .config = topic->config,
    };
}

bool esk_broker_topic_find(const struct esk_broker_shard *shard, struct esk_slice name,
                           struct esk_topic_view *view) {
    const struct esk_topic *topic = eski_serving_topic(shard, name);
    if (topic != NULL) {
        view_topic(topic, view);
    }
    return topic != NULL;
}

void esk_broker_topic_each(const struct esk_broker_shard *shard,
                           void (*visit)(void *context, const struct esk_topic_view *view),
                           void *context) {
    size_t count;
    const struct esk_topic **topics = esk_catalogue_sorted(&shard->catalogue, &count);
    for (size_t i = 0; i < count; i++) {
        struct esk_topic_view view;
        view_topic(topics[i], &view);
        visit(context, &view);
    }
    free(topics);
}

static void share_back(struct esk_mail *mail) {
    struct description *description = ESK_CONTAINER(mail, struct share, mail)->description;
    if (--description->waiting > 0) {
        return;
    }
    struct esk_topic_description *request = description->request;
    eski_end(description->home);
    free(description);
    for (uint32_t i = 0; i < request->partition_count; i++) {
        if (request->partitions[i].segments == 0) { /* the topic was deleted meanwhile */
            free(request->partitions);
            request->partitions = NULL;
            request->done(request, eski_unknown_topic(request->name, &request->error));
            return;
        }
    }
    request->done(request, ESK_OK);
}

/* Writes the figures of this shard's partitions; each slot has one writer. */
static void share_run(struct esk_mail *mail) {
    struct share *share = ESK_CONTAINER(mail, struct share, mail);
    struct description *description = share->description;
    struct esk_topic_description *request = description->request;
    for (uint32_t i = 0; i < request->partition_count; i++) {
        uint64_t group_id = description->first_group + i;
        if (eski_owner(share->shard->broker, group_id) != share->shard) {
            continue;
        }
        struct esk_partition *partition = esk_shard_find(share->shard->log, group_id);
        if (partition == NULL) {
            continue;
        }
        struct esk_partition_figures figures;
        esk_partition_figures(partition, &figures);
        request->partitions[i] = (struct esk_partition_view){
            .partition = i,
            .start_offset = figures.start_offset,
            .high_watermark = figures.high_watermark,
            .size_bytes = figures.size_bytes,
            .segments = figures.segments,
        };
    }
    eski_post(description->home, mail, share_back);
}

static void not_found(struct esk_mail *mail) {
    struct description *description = ESK_CONTAINER(mail, struct share, mail)->description;
    struct esk_topic_description *request = description->request;
    eski_end(description->home);
    free(description);
    request->done(request, request->error.code);
}

void esk_broker_topic_describe(struct esk_broker_shard *shard,
                               struct esk_topic_description *request) {
    struct esk_broker *broker = shard->broker;
    struct description *description =
        esk_alloc_zeroed(1, sizeof(*description) + broker->shard_count * sizeof(struct share));
    description->request = request;
    description->home = shard;
    eski_begin(shard);
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        description->shares[i].description = description;
        description->shares[i].shard = &broker->shards[i];
    }
    request->partitions = NULL;
    const struct esk_topic *topic = eski_serving_topic(shard, request->name);
    if (topic == NULL) {
        eski_unknown_topic(request->name, &request->error);
        eski_post(shard, &description->shares[0].mail, not_found);
        return;
    }
    request->partition_count = topic->partition_count;
    request->config = topic->config;
    request->partitions =
        esk_alloc_zeroed(topic->partition_count, sizeof(struct esk_partition_view));
    description->first_group = topic->first_group;
    description->waiting = broker->shard_count;
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        eski_post(description->shares[i].shard, &description->shares[i].mail, share_run);
    }
}
