/* SPDX-License-Identifier: Apache-2.0 */
/* Maps against a plain array, through growth, removal and re-use of removed slots. */
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define KEYS 500

static struct esk_slice key_of(size_t i, char text[16]) {
    int length = snprintf(text, 16, "k%zu", i);
    return esk_slice(text, (size_t)length);
}

static void string_map_agrees_with_an_array(void **state) {
    (void)state;
    struct esk_map map;
    esk_map_init(&map);
    int values[2];
    void *model[KEYS] = {NULL};
    uint32_t random = 1;
    size_t count = 0;
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525u + 1013904223u;
        size_t i = (random >> 8) % KEYS;
        char text[16];
        struct esk_slice key = key_of(i, text);
        if (random >> 31) {
            void *value = &values[step & 1];
            assert_ptr_equal(esk_map_put(&map, key, value), model[i]);
            count += model[i] == NULL;
            model[i] = value;
        } else {
            assert_ptr_equal(esk_map_remove(&map, key), model[i]);
            count -= model[i] != NULL;
            model[i] = NULL;
        }
        assert_int_equal(map.count, count);
    }
    assert_true(map.capacity <= 4096); /* removed slots are re-used or cleared out */
    size_t position = 0;
    size_t seen = 0;
    struct esk_slice key;
    void *value;
    while (esk_map_next(&map, &position, &key, &value)) {
        assert_ptr_equal(esk_map_get(&map, key), value);
        seen++;
    }
    assert_int_equal(seen, count);
    for (size_t i = 0; i < KEYS; i++) {
        char text[16];
        assert_ptr_equal(esk_map_get(&map, key_of(i, text)), model[i]);
    }
    esk_map_fini(&map);
}

static void string_map_keeps_its_own_keys_and_takes_empty_ones(void **state) {
    (void)state;
    struct esk_map map;
    esk_map_init(&map);
    int value;
    char key[] = "a";
    assert_null(esk_map_get(&map, esk_slice(NULL, 0)));
    esk_map_put(&map, esk_slice(key, 1), &value);
    key[0] = 'b';
    assert_null(esk_map_get(&map, esk_slice(key, 1)));
    assert_ptr_equal(esk_map_get(&map, esk_slice_text("a")), &value);
    assert_null(esk_map_put(&map, esk_slice(NULL, 0), &value));
    assert_ptr_equal(esk_map_get(&map, esk_slice_text("")), &value);
    esk_map_fini(&map);
}

static void u64_map_agrees_with_an_array(void **state) {
    (void)state;
    struct esk_u64_map map;
    esk_u64_map_init(&map);
    int values[2];
    void *model[KEYS] = {NULL};
    uint32_t random = 7;
    for (int step = 0; step < 20000; step++) {
        random = random * 1664525u + 1013904223u;
        size_t i = (random >> 8) % KEYS;
        uint64_t key = (uint64_t)i << 40; /* low bits all equal: the hash must spread them */
        if (random >> 31) {
            void *value = &values[step & 1];
            assert_ptr_equal(esk_u64_map_put(&map, key, value), model[i]);
            model[i] = value;
        } else {
            assert_ptr_equal(esk_u64_map_remove(&map, key), model[i]);
            model[i] = NULL;
        }
    }
    size_t position = 0;
    size_t seen = 0;
    uint64_t key;
    void *value;
    while (esk_u64_map_next(&map, &position, &key, &value)) {
        assert_ptr_equal(model[key >> 40], value);
        seen++;
    }
    assert_int_equal(seen, map.count);
    for (size_t i = 0; i < KEYS; i++) {
        assert_ptr_equal(esk_u64_map_get(&map, (uint64_t)i << 40), model[i]);
    }
    esk_u64_map_fini(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(string_map_agrees_with_an_array),
        cmocka_unit_test(string_map_keeps_its_own_keys_and_takes_empty_ones),
        cmocka_unit_test(u64_map_agrees_with_an_array),
    };
    return cmocka_run_group_tests_name("base.map", tests, NULL, NULL);
}
