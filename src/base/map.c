/* SPDX-License-Identifier: Apache-2.0 */
/* Hash maps with linear probing. A slot with a value is taken, one without a value but with the
 * removed mark keeps probes going; `used` counts both and stays below 3/4 of the capacity. Growing
 * and clearing out removed slots are the same rehash. */
#include "base/map.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define FIRST_CAPACITY 8

struct esk_map_slot {
    uint64_t hash;
    void *value;  /* NULL: empty or removed */
    uint8_t *key; /* owned while there is a value */
    size_t key_size;
    bool removed;
};

struct esk_u64_map_slot {
    uint64_t key;
    void *value;
    bool removed;
};

static bool is_full(size_t used, size_t capacity) {
    return (used + 1) * 4 > capacity * 3;
}

/* Capacity after a rehash: at most half full, so that the next one is far away. */
static size_t capacity_for(size_t count) {
    size_t capacity = FIRST_CAPACITY;
    while ((count + 1) * 2 > capacity) {
        capacity *= 2;
    }
    return capacity;
}

void esk_map_init(struct esk_map *map) {
    *map = (struct esk_map){NULL, 0, 0, 0};
}

void esk_map_fini(struct esk_map *map) {
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value) {
            free(map->slots[i].key);
        }
    }
    free(map->slots);
    esk_map_init(map);
}

/* The slot that has the key, or NULL. */
static struct esk_map_slot *find(const struct esk_map *map, struct esk_slice key, uint64_t hash) {
    if (!map->capacity) {
        return NULL;
    }
    size_t mask = map->capacity - 1;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        struct esk_map_slot *slot = &map->slots[i];
        if (!slot->value) {
            if (!slot->removed) {
                return NULL;
            }
        } else if (slot->hash == hash && slot->key_size == key.size &&
                   (key.size == 0 || memcmp(slot->key, key.data, key.size) == 0)) {
            return slot;
        }
    }
}

static struct esk_map_slot *free_slot(struct esk_map_slot *slots, size_t capacity, uint64_t hash) {
    size_t i = hash & (capacity - 1);
    while (slots[i].value) {
        i = (i + 1) & (capacity - 1);
    }
    return &slots[i];
}

static void rehash(struct esk_map *map) {
    size_t capacity = capacity_for(map->count);
    struct esk_map_slot *slots = esk_alloc_zeroed(capacity, sizeof(*slots));
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value) {
            *free_slot(slots, capacity, map->slots[i].hash) = map->slots[i];
        }
    }
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    map->used = map->count;
}

void *esk_map_get(const struct esk_map *map, struct esk_slice key) {
    const struct esk_map_slot *slot = find(map, key, XXH3_64bits(key.data, key.size));
    return slot ? slot->value : NULL;
}

void *esk_map_put(struct esk_map *map, struct esk_slice key, void *value) {
    ESK_ASSERT(value != NULL);
    uint64_t hash = XXH3_64bits(key.data, key.size);
    struct esk_map_slot *slot = find(map, key, hash);
    if (slot) {
        void *replaced = slot->value;
        slot->value = value;
        return replaced;
    }
    if (is_full(map->used, map->capacity)) {
        rehash(map);
    }
    slot = free_slot(map->slots, map->capacity, hash);
    map->used += !slot->removed;
    map->count++;
    uint8_t *copy = esk_alloc(key.size);
    if (key.size) {
        memcpy(copy, key.data, key.size);
    }
    *slot = (struct esk_map_slot){hash, value, copy, key.size, false};
    return NULL;
}

void *esk_map_remove(struct esk_map *map, struct esk_slice key) {
    struct esk_map_slot *slot = find(map, key, XXH3_64bits(key.data, key.size));
    if (!slot) {
        return NULL;
    }
    void *value = slot->value;
    free(slot->key);
    *slot = (struct esk_map_slot){.removed = true};
    map->count--;
    return value;
}

bool esk_map_next(const struct esk_map *map, size_t *position, struct esk_slice *key,
                  void **value) {
    while (*position < map->capacity) {
        const struct esk_map_slot *slot = &map->slots[(*position)++];
        if (slot->value) {
            if (key) {
                *key = esk_slice(slot->key, slot->key_size);
            }
            *value = slot->value;
            return true;
        }
    }
    return false;
}

void esk_u64_map_init(struct esk_u64_map *map) {
    *map = (struct esk_u64_map){NULL, 0, 0, 0};
}

void esk_u64_map_fini(struct esk_u64_map *map) {
    free(map->slots);
    esk_u64_map_init(map);
}

static size_t home(uint64_t key, size_t capacity) {
    return (size_t)XXH3_64bits(&key, sizeof(key)) & (capacity - 1);
}

static struct esk_u64_map_slot *find_u64(const struct esk_u64_map *map, uint64_t key) {
    if (!map->capacity) {
        return NULL;
    }
    size_t mask = map->capacity - 1;
    for (size_t i = home(key, map->capacity);; i = (i + 1) & mask) {
        struct esk_u64_map_slot *slot = &map->slots[i];
        if (!slot->value) {
            if (!slot->removed) {
                return NULL;
            }
        } else if (slot->key == key) {
            return slot;
        }
    }
}

static struct esk_u64_map_slot *free_u64_slot(struct esk_u64_map_slot *slots, size_t capacity,
                                              uint64_t key) {
    size_t i = home(key, capacity);
    while (slots[i].value) {
        i = (i + 1) & (capacity - 1);
    }
    return &slots[i];
}

static void rehash_u64(struct esk_u64_map *map) {
    size_t capacity = capacity_for(map->count);
    struct esk_u64_map_slot *slots = esk_alloc_zeroed(capacity, sizeof(*slots));
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value) {
            *free_u64_slot(slots, capacity, map->slots[i].key) = map->slots[i];
        }
    }
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    map->used = map->count;
}

void *esk_u64_map_get(const struct esk_u64_map *map, uint64_t key) {
    const struct esk_u64_map_slot *slot = find_u64(map, key);
    return slot ? slot->value : NULL;
}

void *esk_u64_map_put(struct esk_u64_map *map, uint64_t key, void *value) {
    ESK_ASSERT(value != NULL);
    struct esk_u64_map_slot *slot = find_u64(map, key);
    if (slot) {
        void *replaced = slot->value;
        slot->value = value;
        return replaced;
    }
    if (is_full(map->used, map->capacity)) {
        rehash_u64(map);
    }
    slot = free_u64_slot(map->slots, map->capacity, key);
    map->used += !slot->removed;
    map->count++;
    *slot = (struct esk_u64_map_slot){key, value, false};
    return NULL;
}

void *esk_u64_map_remove(struct esk_u64_map *map, uint64_t key) {
    struct esk_u64_map_slot *slot = find_u64(map, key);
    if (!slot) {
        return NULL;
    }
    void *value = slot->value;
    *slot = (struct esk_u64_map_slot){.removed = true};
    map->count--;
    return value;
}

bool esk_u64_map_next(const struct esk_u64_map *map, size_t *position, uint64_t *key,
                      void **value) {
    while (*position < map->capacity) {
        const struct esk_u64_map_slot *slot = &map->slots[(*position)++];
        if (slot->value) {
            if (key) {
                *key = slot->key;
            }
            *value = slot->value;
            return true;
        }
    }
    return false;
}
