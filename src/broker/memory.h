/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for request memory. esk_broker_memory_take (broker/broker.h) is for what is small and can
 * be refused at once; large pieces are claimed here, as a whole, before any of it is used, and
 * granted in the order in which they were asked for.
 *
 * Small pieces may fill a shard's share, bodies half of it, and bodies with their parsers three
 * quarters: so neither large bodies keep small requests out, nor bodies that are being received the
 * parsers that would end them. The first claim of each kind is always granted, however large, and
 * counts as no more than half a share, or a quarter: some body is always received and some body
 * always parsed, so that nobody waits for ever. */
#ifndef ESK_BROKER_MEMORY_H
#define ESK_BROKER_MEMORY_H

#include "base/list.h"
#include "broker/broker.h"

enum esk_memory_kind {
    ESK_MEMORY_BODY,   /* of a request, while it is received and after */
    ESK_MEMORY_PARSER, /* what its parser needs besides; holders may wait for nothing else */
};
#define ESK_MEMORY_KINDS 2

struct esk_memory_claim {
    enum esk_memory_kind kind;
    uint64_t bytes; /* asked for; once granted, as which it counts */
    void (*granted)(struct esk_memory_claim *claim);
    struct esk_link link; /* in the line, while it waits */
    bool is_granted;
};

/* In the shard's loop, as all of this. True: granted at once. False: `granted` is called later in
 * the loop, never from inside another function, unless it is settled before. */
bool esk_broker_memory_claim(struct esk_broker_shard *shard, struct esk_memory_claim *claim);
/* Any thread: counts `bytes` more for who holds the claim. False: over the share, while others hold
 * claims of the kind; one alone always gets what it needs. Given back by esk_broker_memory_give. */
bool esk_broker_memory_take_more(struct esk_broker_shard *shard,
                                 const struct esk_memory_claim *claim, uint64_t bytes);
/* Gives back, or leaves the line; also of a claim that is all zero. */
void esk_broker_memory_settle(struct esk_broker_shard *shard, struct esk_memory_claim *claim);

#endif
