/* SPDX-License-Identifier: Apache-2.0 */
/* From a producer's name to its numeric id, and how long it was not used. */
#ifndef ESK_BROKER_PRODUCERS_PRIVATE_H
#define ESK_BROKER_PRODUCERS_PRIVATE_H

#include "broker/broker_private.h"
#include "broker/changes.h"
#include "partition/sequences.h"

/* A use of a name that needs an entry of the catalogue first. */
struct eski_producer_use {
    struct esk_change change;
    struct esk_broker_shard *shard;
    struct esk_slice name; /* borrowed until done */
    uint64_t owner;
    void (*done)(struct eski_producer_use *use, enum esk_err err); /* error: in change.error */
    uint64_t id;                                                   /* out */
    int64_t now_ms;
    bool block; /* the entry is a block of ids: the name's own comes behind it */
};

/* ESK_OK: *id is the name's, and it counts as used at now_ms, the time. ESK_ERR_AGAIN:
 * eski_producer_use_start has to see to it. ESK_ERR_FORBIDDEN: it is another's. */
enum esk_err eski_producer_resolve(struct esk_broker_shard *shard, struct esk_slice name,
                                   uint64_t owner, int64_t now_ms, uint64_t *id,
                                   struct esk_error *error);
void eski_producer_use_start(struct eski_producer_use *use);

/* producers_idle.c: starts the timer that forgets; in shard 0's loop. */
void eski_producers_start(struct esk_broker_shard *zero);
/* A use is told to the catalogue when the last one told is this much older. */
int64_t eski_producer_tell_ms(const struct esk_broker *broker);

/* producers_forget.c: the windows of ids that the copies of the catalogue do not have go, in every
 * shard, a bounded number a turn; then done, in `home`. */
struct eski_forgetting {
    struct esk_broker_shard *home;
    void (*done)(struct eski_forgetting *forgetting);
    uint64_t *ids; /* owned by the caller, until done */
    size_t count;
    struct eski_forgetting_share *shares;
    uint32_t waiting;
};
void eski_forget_windows(struct eski_forgetting *forgetting);
/* The windows of ids that the catalogue does not have go. Before the loops run. */
void eski_producers_purge(struct esk_broker_shard *shard);

#endif
