/* SPDX-License-Identifier: Apache-2.0 */
/* After a topic's entry: its partitions are made on their shards, a bounded number a turn, and the
 * topic is seen everywhere once all of them serve. */
#include "broker/topics_private.h"

#include "base/assert.h"

#include <stdlib.h>

#define PARTITIONS_PER_TURN 256 /* about 1 us each: a quarter of a millisecond */

struct creation;

struct share {
    struct esk_mail mail;
    struct creation *creation;
    struct esk_broker_shard *shard;
    struct esk_partition_spec *specs;
    size_t count;
    size_t made;
    struct esk_partition_creation turn;
};

struct creation {
    struct eski_topic_job *job;
    size_t waiting;
    struct share shares[];
};

static void share_back(struct esk_mail *mail) {
    struct share *share = ESK_CONTAINER(mail, struct share, mail);
    struct creation *creation = share->creation;
    struct eski_topic_job *job = creation->job;
    free(share->specs);
    if (--creation->waiting > 0) {
        return;
    }
    struct esk_topic *topic = esk_catalogue_topic(&job->change.zero->catalogue, job->first_group);
    topic->serving = true;
    eski_change_publish_and_reply(&job->change, topic->cursor);
    free(creation);
}

static void share_run(struct esk_mail *mail);

static void turn_done(struct esk_partition_creation *turn) {
    struct share *share = ESK_CONTAINER(turn, struct share, turn);
    share->made += turn->count;
    if (share->made < share->count) {
        eski_post(share->shard, &share->mail, share_run);
    } else {
        eski_post(share->creation->job->change.zero, &share->mail, share_back);
    }
}

static void share_run(struct esk_mail *mail) {
    struct share *share = ESK_CONTAINER(mail, struct share, mail);
    size_t left = share->count - share->made;
    share->turn = (struct esk_partition_creation){
        .specs = share->specs + share->made,
        .count = left < PARTITIONS_PER_TURN ? left : PARTITIONS_PER_TURN,
        .done = turn_done,
    };
    esk_shard_create_partitions(share->shard->log, &share->turn);
}

static void fill(struct share *share, const struct esk_topic *topic) {
    struct esk_broker *broker = share->shard->broker;
    share->specs = esk_alloc_zeroed(topic->partition_count / broker->shard_count + 1,
                                    sizeof(struct esk_partition_spec));
    for (uint32_t i = 0; i < topic->partition_count; i++) {
        if (eski_owner(broker, topic->first_group + i) == share->shard) {
            share->specs[share->count++] = (struct esk_partition_spec){
                .group_id = topic->first_group + i,
                .settings = eski_partition_settings(&topic->config),
            };
        }
    }
}

void eski_topic_create_applied(struct eski_topic_job *job) {
    struct esk_broker *broker = job->change.zero->broker;
    const struct esk_topic *topic =
        esk_catalogue_topic(&job->change.zero->catalogue, job->first_group);
    struct creation *creation =
        esk_alloc_zeroed(1, sizeof(*creation) + broker->shard_count * sizeof(struct share));
    creation->job = job;
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        struct share *share = &creation->shares[i];
        share->creation = creation;
        share->shard = &broker->shards[i];
        fill(share, topic);
        creation->waiting += share->count > 0;
    }
    for (uint32_t i = 0; i < broker->shard_count; i++) {
        struct share *share = &creation->shares[i];
        if (share->count > 0) {
            eski_post(share->shard, &share->mail, share_run);
        } else {
            free(share->specs);
        }
    }
}
