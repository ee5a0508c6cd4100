/* SPDX-License-Identifier: Apache-2.0 */
/* The newest offset of each key in bounded memory, for compaction: an open-addressing table of
 * 128-bit hashes, 24 bytes an entry. When it is full it says so, and the caller goes as far as it
 * got. Keys are told apart by their hash alone: with a random seed two of 10^8 keys collide with a
 * chance below 10^-22. One owner. */
#ifndef ESK_STORAGE_KEY_MAP_H
#define ESK_STORAGE_KEY_MAP_H

#include "base/bytes.h"
#include "base/hash.h"

#include <stdbool.h>

#define ESK_KEY_MAP_ENTRY_BYTES 24

struct esk_key_map_entry {
    struct esk_hash128 hash;
    uint64_t offset; /* plus 1; 0: a free place */
};

struct esk_key_map {
    struct esk_key_map_entry *entries; /* pages of it that are not used cost nothing */
    size_t capacity;
    size_t count;
    size_t count_max;
    uint64_t seed;
};

/* At most bytes_max (at least 16 entries' worth is taken), and no more than keys_max keys need. */
void esk_key_map_init(struct esk_key_map *map, uint64_t bytes_max, uint64_t keys_max,
                      uint64_t seed);
void esk_key_map_fini(struct esk_key_map *map);

/* A key's hash. Its place in the map is on its way to the cache then: hash some keys ahead of their
 * use. */
struct esk_hash128 esk_key_map_hash(const struct esk_key_map *map, struct esk_slice key);
/* Notes that the key of that hash is at offset, which is above all offsets before. False: the map
 * is full, and nothing was noted. */
bool esk_key_map_put(struct esk_key_map *map, struct esk_hash128 hash, uint64_t offset);
/* Whether a record of that key is known at a higher offset. */
bool esk_key_map_has_newer(const struct esk_key_map *map, struct esk_hash128 hash, uint64_t offset);

#endif
