/* SPDX-License-Identifier: Apache-2.0 */
/* Cursors: round trips, the edges of varints, and that a failed cursor stays failed. */
#include "base/bytes.h"
#include "base/checked.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void integers_are_big_endian_and_round_trip(void **state) {
    (void)state;
    uint8_t memory[15];
    struct esk_writer w = esk_writer(memory, sizeof(memory));
    esk_write_u8(&w, 0x01);
    esk_write_u16(&w, 0x0203);
    esk_write_u32(&w, 0x04050607);
    esk_write_u64(&w, 0x08090a0b0c0d0e0f);
    assert_false(w.failed);
    assert_int_equal(esk_writer_size(&w), 15);
    for (uint8_t i = 0; i < 15; i++) {
        assert_int_equal(memory[i], i + 1);
    }
    struct esk_reader r = esk_reader(esk_slice(memory, sizeof(memory)));
    assert_int_equal(esk_read_u8(&r), 0x01);
    assert_int_equal(esk_read_u16(&r), 0x0203);
    assert_int_equal(esk_read_u32(&r), 0x04050607);
    assert_true(esk_read_u64(&r) == 0x08090a0b0c0d0e0f);
    assert_int_equal(esk_reader_left(&r), 0);
    assert_false(r.failed);
}

static void varints_round_trip_at_every_length(void **state) {
    (void)state;
    for (unsigned bits = 0; bits < 64; bits++) {
        for (uint64_t delta = 0; delta < 3; delta++) {
            uint64_t value = ((uint64_t)1 << bits) + delta - 1;
            uint8_t memory[10];
            struct esk_writer w = esk_writer(memory, sizeof(memory));
            esk_write_uvarint(&w, value);
            assert_int_equal(esk_writer_size(&w), esk_uvarint_size(value));
            struct esk_reader r = esk_reader(esk_slice(memory, esk_writer_size(&w)));
            assert_true(esk_read_uvarint(&r) == value);
            assert_false(r.failed || esk_reader_left(&r));
            r = esk_reader(esk_slice(memory, esk_writer_size(&w)));
            uint32_t narrow = esk_read_uvarint32(&r);
            assert_int_equal(r.failed, value > UINT32_MAX);
            assert_int_equal(narrow, value > UINT32_MAX ? 0 : value);

            int64_t signs[2] = {(int64_t)value, -(int64_t)(value & INT64_MAX)};
            for (int i = 0; i < 2; i++) {
                w = esk_writer(memory, sizeof(memory));
                esk_write_varint(&w, signs[i]);
                assert_int_equal(esk_writer_size(&w), esk_varint_size(signs[i]));
                r = esk_reader(esk_slice(memory, esk_writer_size(&w)));
                assert_true(esk_read_varint(&r) == signs[i]);
            }
        }
    }
}

static void overlong_varints_fail(void **state) {
    (void)state;
    uint8_t endless[11];
    memset(endless, 0xff, sizeof(endless));
    struct esk_reader r = esk_reader(esk_slice(endless, sizeof(endless)));
    assert_true(esk_read_uvarint(&r) == 0 && r.failed);
    endless[9] = 0x02; /* bit 64 */
    r = esk_reader(esk_slice(endless, sizeof(endless)));
    assert_true(esk_read_uvarint(&r) == 0 && r.failed);
    endless[4] = 0x10; /* bit 32 */
    r = esk_reader(esk_slice(endless, sizeof(endless)));
    assert_true(esk_read_uvarint32(&r) == 0 && r.failed);
}

static void an_overrun_fails_and_stays_failed(void **state) {
    (void)state;
    uint8_t memory[4] = {1, 2, 3, 4};
    struct esk_reader r = esk_reader(esk_slice(memory, sizeof(memory)));
    assert_int_equal(esk_read_u64(&r), 0);
    assert_true(r.failed);
    assert_int_equal(esk_read_u8(&r), 0);
    assert_int_equal(esk_reader_left(&r), 0);
    r = esk_reader(esk_slice(memory, sizeof(memory)));
    struct esk_slice huge = esk_read_bytes(&r, UINT64_MAX);
    assert_true(r.failed && huge.size == 0);

    struct esk_writer w = esk_writer(memory, 3);
    esk_write_u32(&w, 0xffffffff);
    esk_write_u8(&w, 0xff);
    assert_true(w.failed);
    assert_int_equal(esk_writer_size(&w), 0);
    assert_int_equal(memory[0], 1);

    r = esk_reader(esk_slice(NULL, 0));
    assert_int_equal(esk_read_bytes(&r, 0).size, 0);
    assert_false(r.failed);
}

static void slices_compare_by_bytes_then_length(void **state) {
    (void)state;
    struct esk_slice ab = esk_slice_text("ab");
    struct esk_slice abc = esk_slice_text("abc");
    struct esk_slice high = esk_slice_text("\xff");
    struct esk_slice none = esk_slice(NULL, 0);
    assert_true(esk_slice_equal(ab, esk_slice("abx", 2)));
    assert_false(esk_slice_equal(ab, abc));
    assert_true(esk_slice_equal(none, esk_slice_text("")));
    assert_true(esk_slice_compare(ab, abc) < 0 && esk_slice_compare(abc, ab) > 0);
    assert_true(esk_slice_compare(high, abc) > 0);
    assert_true(esk_slice_compare(none, ab) < 0 && esk_slice_compare(ab, ab) == 0);
}

static void checked_arithmetic_reports_overflow(void **state) {
    (void)state;
    uint32_t sum;
    size_t product;
    assert_true(ESK_ADD_OVERFLOWS(UINT32_MAX, 1u, &sum));
    assert_false(ESK_ADD_OVERFLOWS(UINT32_MAX - 1, 1u, &sum));
    assert_int_equal(sum, UINT32_MAX);
    assert_true(ESK_MULTIPLY_OVERFLOWS(SIZE_MAX / 2, (size_t)3, &product));
    assert_int_equal(ESK_ALIGN_UP(4097, 4096), 8192);
    assert_int_equal(ESK_ALIGN_UP(4096, 4096), 4096);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_big_endian_and_round_trip),
        cmocka_unit_test(varints_round_trip_at_every_length),
        cmocka_unit_test(overlong_varints_fail),
        cmocka_unit_test(an_overrun_fails_and_stays_failed),
        cmocka_unit_test(slices_compare_by_bytes_then_length),
        cmocka_unit_test(checked_arithmetic_reports_overflow),
    };
    return cmocka_run_group_tests_name("base.bytes", tests, NULL, NULL);
}
