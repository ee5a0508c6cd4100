/* SPDX-License-Identifier: Apache-2.0 */
/* The only source of chance in a simulated run: xoshiro256**, seeded through splitmix64 (both by
 * Blackman and Vigna, public domain algorithms). One stream for each use, so that one more draw in
 * one of them does not shift the others. */
#ifndef ESK_SIM_RANDOM_H
#define ESK_SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
    uint64_t state[4];
};

static inline uint64_t sim_mix(uint64_t value) {
    value += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static inline struct sim_random sim_random_seed(uint64_t seed, uint64_t stream) {
    struct sim_random random;
    uint64_t value = sim_mix(seed) ^ sim_mix(~stream);
    for (int i = 0; i < 4; i++) {
        value = sim_mix(value);
        random.state[i] = value;
    }
    return random;
}

static inline uint64_t sim_rotate(uint64_t value, int bits) {
    return (value << bits) | (value >> (64 - bits));
}

static inline uint64_t sim_random_u64(struct sim_random *random) {
    uint64_t *s = random->state;
    uint64_t result = sim_rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = sim_rotate(s[3], 45);
    return result;
}

/* 0 .. limit-1; limit 0 gives 0. */
static inline uint64_t sim_below(struct sim_random *random, uint64_t limit) {
    return limit ? sim_random_u64(random) % limit : 0;
}

/* first .. last, both possible. */
static inline uint64_t sim_between(struct sim_random *random, uint64_t first, uint64_t last) {
    return first + sim_below(random, last - first + 1);
}

/* True once in `count` draws; never for 0. */
static inline bool sim_one_in(struct sim_random *random, uint64_t count) {
    return count && sim_below(random, count) == 0;
}

/* 1 .. last, each power of two as likely as any other. */
static inline uint64_t sim_scaled(struct sim_random *random, uint64_t last) {
    uint64_t bits = sim_below(random, (uint64_t)(64 - __builtin_clzll(last | 1)));
    uint64_t value = ((uint64_t)1 << bits) + sim_below(random, (uint64_t)1 << bits);
    return value > last ? last : value;
}

#endif
