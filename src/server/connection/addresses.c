/* SPDX-License-Identifier: Apache-2.0 */
/* A map from addresses to counts; an address without connections has no entry. */
#include "server/connection/addresses.h"

#include "base/assert.h"
#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>

struct count {
    uint32_t connections;
};

struct esk_addresses {
    pthread_mutex_t mutex;
    struct esk_map counts; /* of struct count */
    uint32_t connections_max;
};

struct esk_addresses *esk_addresses_create(uint32_t connections_max) {
    struct esk_addresses *addresses = esk_alloc_zeroed(1, sizeof *addresses);
    addresses->connections_max = connections_max;
    esk_map_init(&addresses->counts);
    pthread_mutex_init(&addresses->mutex, NULL);
    return addresses;
}

void esk_addresses_destroy(struct esk_addresses *addresses) {
    ESK_ASSERT(addresses->counts.count == 0);
    esk_map_fini(&addresses->counts);
    pthread_mutex_destroy(&addresses->mutex);
    free(addresses);
}

bool esk_addresses_enter(struct esk_addresses *addresses, const struct esk_peer *peer) {
    struct esk_slice key = esk_slice(peer->bytes, sizeof peer->bytes);
    pthread_mutex_lock(&addresses->mutex);
    struct count *count = esk_map_get(&addresses->counts, key);
    bool fits = (count ? count->connections : 0) < addresses->connections_max;
    if (fits && !count) {
        count = esk_alloc_zeroed(1, sizeof *count);
        (void)esk_map_put(&addresses->counts, key, count);
    }
    if (fits) {
        count->connections++;
    }
    pthread_mutex_unlock(&addresses->mutex);
    return fits;
}

void esk_addresses_leave(struct esk_addresses *addresses, const struct esk_peer *peer) {
    struct esk_slice key = esk_slice(peer->bytes, sizeof peer->bytes);
    pthread_mutex_lock(&addresses->mutex);
    struct count *count = esk_map_get(&addresses->counts, key);
    ESK_ASSERT(count && count->connections > 0);
    if (--count->connections == 0) {
        (void)esk_map_remove(&addresses->counts, key);
        free(count);
    }
    pthread_mutex_unlock(&addresses->mutex);
}
