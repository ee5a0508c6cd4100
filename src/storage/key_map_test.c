/* SPDX-License-Identifier: Apache-2.0 */
/* The key map against an array: what is newest, and what happens when it is full. */
#include "storage/key_map.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define KEYS 5000
#define HASH(key) esk_key_map_hash(&map, key)

static struct esk_slice key_of(uint64_t number, uint8_t *space) {
    size_t size = number % 20; /* the empty key is one */
    for (size_t i = 0; i < size; i++) {
        space[i] = (uint8_t)(number >> (i % 3 * 4));
    }
    if (size >= 8) {
        esk_store_u64(space, number);
    }
    return esk_slice(space, size);
}

static void it_knows_the_newest_offset_of_each_key(void **state) {
    (void)state;
    struct esk_key_map map;
    uint8_t space[20];
    uint64_t *newest = esk_alloc_zeroed(KEYS, sizeof(*newest));
    uint32_t random = 7;
    esk_key_map_init(&map, 1u << 20, UINT64_MAX, 42);
    for (uint64_t offset = 0; offset < 20000; offset++) {
        random = random * 1664525 + 1013904223;
        uint64_t number = 8 + (random >> 12) % (KEYS / 20) * 20; /* eight bytes and more */
        assert_true(esk_key_map_put(&map, HASH(key_of(number, space)), offset));
        newest[number % KEYS] = offset + 1;
    }
    for (uint64_t number = 8; number < KEYS; number += 20) {
        struct esk_slice key = key_of(number, space);
        uint64_t at = newest[number];
        if (at == 0) {
            assert_false(esk_key_map_has_newer(&map, HASH(key), 0));
            continue;
        }
        assert_false(esk_key_map_has_newer(&map, HASH(key), at - 1));
        assert_false(esk_key_map_has_newer(&map, HASH(key), at));
        assert_true(at < 2 || esk_key_map_has_newer(&map, HASH(key), at - 2));
    }
    assert_true(esk_key_map_put(&map, HASH(esk_slice("", 0)), 30000));
    assert_true(esk_key_map_has_newer(&map, HASH(esk_slice("", 0)), 29999));
    esk_key_map_fini(&map);
    free(newest);
}

static void a_full_one_refuses_new_keys_and_keeps_the_old(void **state) {
    (void)state;
    struct esk_key_map map;
    uint64_t limit = 0;
    esk_key_map_init(&map, 1000 * ESK_KEY_MAP_ENTRY_BYTES, UINT64_MAX, 1);
    assert_int_equal(map.capacity, 1000);
    for (;; limit++) {
        if (!esk_key_map_put(&map, HASH(esk_slice(&limit, sizeof(limit))), limit)) {
            break;
        }
    }
    assert_int_equal(limit, 750);
    uint64_t known = 3;
    assert_true(esk_key_map_put(&map, HASH(esk_slice(&known, sizeof(known))), 2000));
    for (uint64_t number = 0; number < 1000; number++) {
        uint64_t at = number == known ? 2000 : number;
        bool there = number < limit && at > 0;
        assert_int_equal(esk_key_map_has_newer(&map, HASH(esk_slice(&number, sizeof(number))),
                                               at == 0 ? 0 : at - 1),
                         there);
    }
    esk_key_map_fini(&map);
}

static void it_takes_no_more_memory_than_its_keys_need(void **state) {
    (void)state;
    struct esk_key_map map;
    esk_key_map_init(&map, UINT64_C(1) << 40, 300, 1);
    assert_true(map.capacity < 500);
    for (uint64_t number = 0; number < 300; number++) {
        assert_true(esk_key_map_put(&map, HASH(esk_slice(&number, sizeof(number))), number));
    }
    esk_key_map_fini(&map);
    esk_key_map_init(&map, 0, 0, 1);
    assert_int_equal(map.capacity, 16);
    esk_key_map_fini(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_knows_the_newest_offset_of_each_key),
        cmocka_unit_test(a_full_one_refuses_new_keys_and_keeps_the_old),
        cmocka_unit_test(it_takes_no_more_memory_than_its_keys_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
