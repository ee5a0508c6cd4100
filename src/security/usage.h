/* SPDX-License-Identifier: Apache-2.0 */
/* What all shards and doors count together for one key: its two budgets and its traffic. The copies
 * of a key in the shards share one of these, which lasts as long as any of them; a registry finds
 * it by the key's id. Any thread; a lock is held for a few instructions when a copy comes or goes,
 * never by traffic. */
#ifndef ESK_SECURITY_USAGE_H
#define ESK_SECURITY_USAGE_H

#include "security/budget.h"

struct esk_usage_registry;

struct esk_usage {
    uint64_t key_id;
    uint64_t produce_rate; /* bytes a second; 0: no quota */
    uint64_t consume_rate;
    struct esk_budget produce;
    struct esk_budget consume;
    atomic_uint_fast64_t produced_bytes; /* relaxed, as the next two */
    atomic_uint_fast64_t consumed_bytes;
    atomic_uint_fast64_t throttled; /* requests refused for a quota */
    unsigned references;            /* under the registry's lock */
    struct esk_usage_registry *registry;
};

struct esk_usage_registry *esk_usage_registry_create(void);
/* NULL does nothing. No usage may be left. */
void esk_usage_registry_destroy(struct esk_usage_registry *registry);

/* A reference to the key's usage, which is made by the first one who asks. */
struct esk_usage *esk_usage_find(struct esk_usage_registry *registry, uint64_t key_id,
                                 uint64_t produce_rate, uint64_t consume_rate);
void esk_usage_release(struct esk_usage *usage);

#endif
