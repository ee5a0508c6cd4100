/* SPDX-License-Identifier: Apache-2.0 */
/* The groups' states: rows for all groups that the catalogue knows, which each shard in turn fills
 * in for its own. */
#include "broker/raft.h"

#include "broker/broker_private.h"

#include <stdlib.h>

#define GROUPS_PER_TURN 1000 /* about 0.1 us each, and 10 ns for those of other shards */

static void visit(struct esk_mail *mail);

static void back(struct esk_mail *mail) {
    struct esk_raft_listing *listing = ESK_CONTAINER(mail, struct esk_raft_listing, mail);
    eski_end(listing->home);
    listing->done(listing);
}

static void fill(struct esk_broker_shard *shard, struct esk_raft_group *group) {
    struct esk_partition *partition = esk_shard_find(shard->log, group->group_id);
    if (partition == NULL) {
        return;
    }
    struct esk_partition_figures figures;
    esk_partition_figures(partition, &figures);
    group->is_there = true;
    group->role = figures.role;
    group->term = figures.term;
    group->last_index = figures.last_index;
    group->commit_index = figures.commit_index;
    group->applied_index = figures.applied_index;
}

static void visit(struct esk_mail *mail) {
    struct esk_raft_listing *listing = ESK_CONTAINER(mail, struct esk_raft_listing, mail);
    struct esk_broker *broker = listing->home->broker;
    struct esk_broker_shard *shard = &broker->shards[listing->shard];
    size_t end = listing->next + GROUPS_PER_TURN;
    for (; listing->next < listing->count && listing->next < end; listing->next++) {
        struct esk_raft_group *group = &listing->groups[listing->next];
        if (eski_owner(broker, group->group_id) == shard) {
            fill(shard, group);
        }
    }
    if (listing->next < listing->count) {
        eski_post(shard, mail, visit);
        return;
    }
    listing->next = 0;
    listing->shard++;
    if (listing->shard < broker->shard_count) {
        eski_post(&broker->shards[listing->shard], mail, visit);
    } else {
        eski_post(listing->home, mail, back);
    }
}

static void list_groups(struct esk_raft_listing *listing) {
    struct esk_broker_shard *home = listing->home;
    uint32_t offset_partitions = home->broker->options.offset_partitions;
    size_t topic_count;
    const struct esk_topic **topics = esk_catalogue_sorted(&home->catalogue, &topic_count);
    size_t count = 1 + offset_partitions;
    for (size_t i = 0; i < topic_count; i++) {
        count += topics[i]->partition_count;
    }
    listing->groups = esk_alloc_zeroed(count, sizeof *listing->groups);
    listing->names = esk_alloc((topic_count + 1) * sizeof(char *));
    listing->groups[listing->count++].group_id = ESK_CATALOGUE_GROUP;
    for (uint32_t p = 0; p < offset_partitions; p++) {
        listing->groups[listing->count++] = (struct esk_raft_group){
            .group_id = ESK_FIRST_OFFSET_GROUP + p, .topic = ESK_OFFSETS_TOPIC, .partition = p};
    }
    for (size_t i = 0; i < topic_count; i++) {
        char *name = esk_text_copy(topics[i]->name);
        listing->names[listing->name_count++] = name;
        for (uint32_t p = 0; p < topics[i]->partition_count; p++) {
            listing->groups[listing->count++] = (struct esk_raft_group){
                .group_id = topics[i]->first_group + p, .topic = name, .partition = p};
        }
    }
    free(topics);
}

void esk_broker_raft(struct esk_broker_shard *shard, struct esk_raft_listing *listing) {
    listing->home = shard;
    listing->node = ESKI_NODE;
    listing->count = 0;
    listing->name_count = 0;
    listing->shard = 0;
    listing->next = 0;
    eski_begin(shard);
    list_groups(listing);
    eski_post(&shard->broker->shards[0], &listing->mail, visit);
}

void esk_raft_listing_fini(struct esk_raft_listing *listing) {
    for (size_t i = 0; i < listing->name_count; i++) {
        free(listing->names[i]);
    }
    free(listing->names);
    free(listing->groups);
}
