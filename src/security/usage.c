/* SPDX-License-Identifier: Apache-2.0 */
#include "security/usage.h"

#include "base/assert.h"
#include "base/map.h"
#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>

struct esk_usage_registry {
    pthread_mutex_t lock;
    struct esk_u64_map by_key;
};

struct esk_usage_registry *esk_usage_registry_create(void) {
    struct esk_usage_registry *registry = esk_alloc_zeroed(1, sizeof(*registry));
    pthread_mutex_init(&registry->lock, NULL);
    esk_u64_map_init(&registry->by_key);
    return registry;
}

void esk_usage_registry_destroy(struct esk_usage_registry *registry) {
    if (registry == NULL) {
        return;
    }
    ESK_ASSERT(registry->by_key.count == 0);
    esk_u64_map_fini(&registry->by_key);
    pthread_mutex_destroy(&registry->lock);
    free(registry);
}

struct esk_usage *esk_usage_find(struct esk_usage_registry *registry, uint64_t key_id,
                                 uint64_t produce_rate, uint64_t consume_rate) {
    pthread_mutex_lock(&registry->lock);
    struct esk_usage *usage = esk_u64_map_get(&registry->by_key, key_id);
    if (usage == NULL) {
        usage = esk_alloc_zeroed(1, sizeof(*usage));
        usage->key_id = key_id;
        usage->produce_rate = produce_rate;
        usage->consume_rate = consume_rate;
        usage->registry = registry;
        esk_u64_map_put(&registry->by_key, key_id, usage);
    }
    usage->references++;
    pthread_mutex_unlock(&registry->lock);
    return usage;
}

void esk_usage_release(struct esk_usage *usage) {
    struct esk_usage_registry *registry = usage->registry;
    pthread_mutex_lock(&registry->lock);
    bool last = --usage->references == 0;
    if (last) {
        esk_u64_map_remove(&registry->by_key, usage->key_id);
    }
    pthread_mutex_unlock(&registry->lock);
    if (last) {
        free(usage);
    }
}
