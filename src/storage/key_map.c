/* SPDX-License-Identifier: Apache-2.0 */
/* Linear probing at a load of at most 3/4: a look-up costs one cache miss, rarely two. A place is
 * found by multiplying the hash with the capacity, so that any capacity does, not only powers of
 * two: the memory that was allowed is used. */
#include "storage/key_map.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>

#define ENTRIES_MIN 16

_Static_assert(sizeof(struct esk_key_map_entry) == ESK_KEY_MAP_ENTRY_BYTES, "no padding");

void esk_key_map_init(struct esk_key_map *map, uint64_t bytes_max, uint64_t keys_max,
                      uint64_t seed) {
    uint64_t capacity = bytes_max / ESK_KEY_MAP_ENTRY_BYTES;
    uint64_t needed = keys_max < UINT64_MAX / 4 ? keys_max / 3 * 4 + 8 : UINT64_MAX;
    capacity = capacity > needed ? needed : capacity;
    capacity = capacity < ENTRIES_MIN ? ENTRIES_MIN : capacity;
    *map = (struct esk_key_map){
        .entries = esk_alloc_zeroed((size_t)capacity, sizeof(struct esk_key_map_entry)),
        .capacity = (size_t)capacity,
        .count_max = (size_t)(capacity / 4 * 3),
        .seed = seed,
    };
}

void esk_key_map_fini(struct esk_key_map *map) {
    free(map->entries);
    *map = (struct esk_key_map){0};
}

static inline size_t place_of(const struct esk_key_map *map, struct esk_hash128 hash) {
    return (size_t)(((unsigned __int128)hash.high * map->capacity) >> 64);
}

struct esk_hash128 esk_key_map_hash(const struct esk_key_map *map, struct esk_slice key) {
    struct esk_hash128 hash = esk_hash128(key.data, key.size, map->seed);
    __builtin_prefetch(&map->entries[place_of(map, hash)]);
    return hash;
}

/* The key's place, or the free one where it would be. */
static struct esk_key_map_entry *find(const struct esk_key_map *map, struct esk_hash128 hash) {
    size_t place = place_of(map, hash);
    for (;;) {
        struct esk_key_map_entry *entry = &map->entries[place];
        if (entry->offset == 0 || (entry->hash.low == hash.low && entry->hash.high == hash.high)) {
            return entry;
        }
        place = place + 1 == map->capacity ? 0 : place + 1;
    }
}

bool esk_key_map_put(struct esk_key_map *map, struct esk_hash128 hash, uint64_t offset) {
    ESK_ASSERT(offset < UINT64_MAX);
    struct esk_key_map_entry *entry = find(map, hash);
    if (entry->offset == 0) {
        if (map->count == map->count_max) {
            return false;
        }
        map->count++;
        entry->hash = hash;
    }
    entry->offset = offset + 1;
    return true;
}

bool esk_key_map_has_newer(const struct esk_key_map *map, struct esk_hash128 hash,
                           uint64_t offset) {
    return map->count > 0 && find(map, hash)->offset > offset + 1;
}
