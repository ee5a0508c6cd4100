/* SPDX-License-Identifier: Apache-2.0 */
/* Published vectors, and every way to a CRC against the bitwise definition. */
#include "base/hash.h"
#include "base/hash_private.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint32_t bitwise_crc32c(const uint8_t *bytes, size_t size) {
    uint32_t state = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        state ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            state = (state >> 1) ^ (0x82f63b78u & (0 - (state & 1)));
        }
    }
    return ~state;
}

static void crc32c_has_the_published_values(void **state) {
    (void)state;
    assert_int_equal(esk_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(esk_crc32c(0, NULL, 0), 0);
    uint8_t zeros[32] = {0}; /* RFC 3720, B.4 */
    assert_int_equal(esk_crc32c(0, zeros, sizeof(zeros)), 0x8a9136aa);
}

static void crc32c_is_the_same_at_every_size_and_split(void **state) {
    (void)state;
    uint8_t bytes[1400];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 131 + (i >> 3));
    }
    for (size_t size = 0; size <= sizeof(bytes) - 1; size += size < 80 ? 1 : 37) {
        uint32_t expected = bitwise_crc32c(bytes + 1, size);
        assert_int_equal(esk_crc32c(0, bytes + 1, size), expected);
        assert_int_equal(~eski_crc32c_portable(UINT32_MAX, bytes + 1, size), expected);
        size_t half = size / 2;
        uint32_t first = esk_crc32c(0, bytes + 1, half);
        assert_int_equal(esk_crc32c(first, bytes + 1 + half, size - half), expected);
    }
}

/* From the tests of Kafka's Java client. */
static void murmur2_agrees_with_java(void **state) {
    (void)state;
    const struct {
        const char *key;
        int32_t hash;
    } vectors[] = {
        {"21", -973932308},
        {"foobar", -790332482},
        {"a-little-bit-long-string", -985981536},
        {"a-little-bit-longer-string", -1486304829},
        {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
        {"abc", 479470107},
    };
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        struct esk_slice key = esk_slice_text(vectors[i].key);
        assert_int_equal((int32_t)esk_murmur2(key.data, key.size), vectors[i].hash);
    }
}

static void fnv1a_and_xxh3_have_the_published_values(void **state) {
    (void)state;
    assert_int_equal(esk_fnv1a32("", 0), 0x811c9dc5);
    assert_int_equal(esk_fnv1a32("a", 1), 0xe40c292c);
    assert_int_equal(esk_fnv1a32("foobar", 6), 0xbf9cf968);
    assert_true(esk_hash64("", 0) == 0x2d06800538d394c2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_has_the_published_values),
        cmocka_unit_test(crc32c_is_the_same_at_every_size_and_split),
        cmocka_unit_test(murmur2_agrees_with_java),
        cmocka_unit_test(fnv1a_and_xxh3_have_the_published_values),
    };
    return cmocka_run_group_tests_name("base.hash", tests, NULL, NULL);
}
