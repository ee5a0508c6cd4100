/* SPDX-License-Identifier: Apache-2.0 */
/* Hash maps, open addressing with xxh3: from byte strings and from 64-bit integers to pointers.
 * Keys of string maps are copied; values are borrowed, never NULL. One owner, no threads.
 * Iteration order is unspecified but depends only on the operations done (seed 0). */
#ifndef ESK_BASE_MAP_H
#define ESK_BASE_MAP_H

#include "base/bytes.h"

struct esk_map_slot;
struct esk_map {
    struct esk_map_slot *slots;
    size_t count;
    size_t capacity; /* slots: 0 or a power of two */
    size_t used;     /* slots taken, removed ones too */
};
void esk_map_init(struct esk_map *map);
void esk_map_fini(struct esk_map *map);
void *esk_map_get(const struct esk_map *map, struct esk_slice key);        /* NULL: not there */
void *esk_map_put(struct esk_map *map, struct esk_slice key, void *value); /* the value replaced */
void *esk_map_remove(struct esk_map *map, struct esk_slice key); /* the value removed, or NULL */
/* *position starts at 0; false at the end. key may be NULL. The map must not change meanwhile. */
bool esk_map_next(const struct esk_map *map, size_t *position, struct esk_slice *key, void **value);

struct esk_u64_map_slot;
struct esk_u64_map {
    struct esk_u64_map_slot *slots;
    size_t count;
    size_t capacity;
    size_t used;
};
void esk_u64_map_init(struct esk_u64_map *map);
void esk_u64_map_fini(struct esk_u64_map *map);
void *esk_u64_map_get(const struct esk_u64_map *map, uint64_t key);
void *esk_u64_map_put(struct esk_u64_map *map, uint64_t key, void *value);
void *esk_u64_map_remove(struct esk_u64_map *map, uint64_t key);
bool esk_u64_map_next(const struct esk_u64_map *map, size_t *position, uint64_t *key, void **value);

#endif
