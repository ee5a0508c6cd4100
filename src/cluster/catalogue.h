/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue: which topics exist, with which partitions and configuration. It is the state
 * machine of group 0; entries and their codec come from definitions/entries.toml. Group 0's shard
 * applies what was committed, every other shard has a copy that it feeds with the same changes by
 * mail. One owner per copy; reads are plain look-ups. */
#ifndef ESK_CLUSTER_CATALOGUE_H
#define ESK_CLUSTER_CATALOGUE_H

#include "base/map.h"
#include "cluster/keys.h"
#include "cluster/owners.h"
#include "cluster/producers.h"
#include "cluster/schemas.h"
#include "model/entries.h"
#include "model/topic_config.h"
#include "partition/partition.h"

#include <stdatomic.h>

#define ESK_CATALOGUE_GROUP 0    /* group id of the catalogue */
#define ESK_FIRST_OFFSET_GROUP 1 /* the offset partitions' groups follow it */

/* Shared by the copies of one topic: the round-robin over its partitions, over all shards. */
struct esk_topic_cursor {
    atomic_uint references;
    atomic_uint next;
};

void esk_topic_cursor_retain(struct esk_topic_cursor *cursor);
void esk_topic_cursor_release(struct esk_topic_cursor *cursor);

struct esk_topic {
    uint64_t first_group; /* also the topic's id */
    uint32_t partition_count;
    bool serving; /* false while its partitions are being made: not to be seen yet */
    bool deleted; /* tombstone: files are still going */
    struct esk_topic_config config;
    struct esk_topic_cursor *cursor;
    size_t name_size;
    char name[]; /* with a NUL */
};

struct esk_catalogue {
    struct esk_machine machine; /* for group 0's shard */
    struct esk_map by_name;     /* live topics */
    struct esk_u64_map by_id;   /* all */
    uint64_t next_group;
    struct esk_owners owners;
    struct esk_producers producers;
    struct esk_keys keys;
    struct esk_schemas schemas;
};

void esk_catalogue_init(struct esk_catalogue *catalogue, uint64_t first_topic_group);
void esk_catalogue_fini(struct esk_catalogue *catalogue);

/* Applies one payload. cursor: shared with the copy that it came from (NULL: a new one).
 * ESK_ERR_VERSION, ESK_ERR_CORRUPT (also: it does not fit the state). */
enum esk_err esk_catalogue_apply(struct esk_catalogue *catalogue, struct esk_slice payload,
                                 struct esk_topic_cursor *cursor, struct esk_error *error);

/* NULL: no such live topic (serving or not). */
struct esk_topic *esk_catalogue_find(const struct esk_catalogue *catalogue, struct esk_slice name);
struct esk_topic *esk_catalogue_topic(const struct esk_catalogue *catalogue, uint64_t id);

/* The live topics that serve, sorted by name; owned, free(). */
const struct esk_topic **esk_catalogue_sorted(const struct esk_catalogue *catalogue, size_t *count);

/* The change that makes this topic as it is. */
struct esk_catalogue_change esk_catalogue_creation(const struct esk_topic *topic);
/* Changes made by the broker. */
struct esk_catalogue_change esk_catalogue_configuration(uint64_t first_group,
                                                        const struct esk_topic_config *config);

/* A change as the payload of an entry; owned by the caller. */
struct esk_block *esk_catalogue_payload(const struct esk_catalogue_change *change);

#endif
