/* SPDX-License-Identifier: Apache-2.0 */
/* Administration of idempotent producers. Operations as in broker.h. */
#ifndef ESK_BROKER_PRODUCERS_H
#define ESK_BROKER_PRODUCERS_H

#include "base/bytes.h"
#include "base/error.h"

struct esk_broker_shard;

struct esk_producer_partition {
    const char *topic;
    uint32_t partition;
    uint64_t last_sequence;
};
struct esk_producer_entry {
    const char *producer_id; /* with a NUL */
    uint64_t numeric_id;
    uint64_t owner;       /* the first key of those that replaced each other; 0: nobody's */
    int64_t last_used_ms; /* since 1970 */
    const struct esk_producer_partition *partitions; /* by topic, then partition */
    size_t partition_count;
};
/* All producers, by name. */
struct esk_producer_list {
    void (*done)(struct esk_producer_list *list, enum esk_err err);
    struct esk_producer_entry *producers; /* out; freed by esk_producer_list_fini */
    size_t count;
    size_t partition; /* the caller's, 0 at first: up to where this producer's were passed on */
    struct esk_error error;
    void *internal;
};
void esk_broker_producer_list(struct esk_broker_shard *shard, struct esk_producer_list *list);
void esk_producer_list_fini(struct esk_producer_list *list); /* only after done */

/* Forgets one, with its sequences everywhere: its next use is that of a new one. ESK_ERR_NOT_FOUND.
 */
struct esk_producer_removal {
    struct esk_slice producer_id;
    void (*done)(struct esk_producer_removal *removal, enum esk_err err);
    struct esk_error error;
    void *internal;
};
void esk_broker_producer_remove(struct esk_broker_shard *shard,
                                struct esk_producer_removal *removal);

#endif
