/* SPDX-License-Identifier: Apache-2.0 */
/* The three formats against golden files that another program wrote, and every flipped bit and
 * every shorter length of them. */
#include "storage/segment_private.h"

#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define GROUP 0x1122334455667788
#define GOLDEN_BYTES_MAX 8192

struct golden {
    uint8_t bytes[GOLDEN_BYTES_MAX];
    size_t size;
};

static void load(struct golden *golden, const char *name) {
    char path[256];
    snprintf(path, sizeof(path), "tests/golden/%s", name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    golden->size = fread(golden->bytes, 1, sizeof(golden->bytes), file);
    fclose(file);
}

static const struct esk_segment_summary summary = {1234567,       1234999,          65536,
                                                   1700000000123, ESK_HORIZON_NONE, 0};

static struct esk_index_entry entries[] = {
    {0, 0, 1700000000001}, {40, 4100, 1700000000100}, {431, 60000, 1700000000123}};

static const struct eski_segment_header segment_header = {3, GROUP, 1234567, ESKI_USE_SEGMENT, 0};
/* Of a segment that was written anew. */
static const struct esk_segment_summary summary_2 = {1234567,       1234999,       65536,
                                                     1700000000123, 1700000000999, 0x1234};
static const struct eski_segment_header segment_header_2 = {3, GROUP, 1234567, ESKI_USE_SEGMENT,
                                                            0x1234};
static const struct eski_snapshot_header snapshot_header = {GROUP, 77, 5};

static enum esk_err parse_segment(struct esk_slice bytes, struct esk_error *error) {
    struct eski_segment_header header;
    return bytes.size < ESK_SEGMENT_HEADER_BYTES /* the read before fails then */
               ? ESK_ERR_CORRUPT
               : eski_segment_header_parse(bytes.data, "file", &header, error);
}

static enum esk_err parse_index(struct esk_slice bytes, struct esk_error *error) {
    uint64_t group;
    struct esk_segment_summary found;
    struct esk_index index;
    esk_index_init(&index);
    enum esk_err err = eski_index_parse(bytes, "file", &group, &found, &index, error);
    assert_true(err == ESK_OK || index.entries == NULL);
    esk_index_fini(&index);
    return err;
}

static enum esk_err parse_snapshot(struct esk_slice bytes, struct esk_error *error) {
    struct eski_snapshot_header header;
    struct esk_slice payload;
    return eski_snapshot_parse(bytes, "file", &header, &payload, error);
}

static const struct {
    const char *name;
    enum esk_err (*parse)(struct esk_slice bytes, struct esk_error *error);
} formats[] = {
    {"segment-header-v1.bin", parse_segment},
    {"segment-header-v2.bin", parse_segment},
    {"index-v1.bin", parse_index},
    {"index-v2.bin", parse_index},
    {"snapshot-v1.bin", parse_snapshot},
};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static void encoding_gives_the_golden_bytes(void **state) {
    (void)state;
    struct golden golden;
    uint8_t bytes[ESK_SEGMENT_HEADER_BYTES];
    load(&golden, "segment-header-v1.bin");
    eski_segment_header_encode(bytes, &segment_header);
    assert_int_equal(golden.size, sizeof(bytes));
    assert_memory_equal(bytes, golden.bytes, sizeof(bytes));

    load(&golden, "index-v1.bin");
    const struct esk_index index = {entries, 3, 3, summary.timestamp_ms};
    struct esk_buffer buffer;
    esk_buffer_init(&buffer);
    eski_index_encode(&buffer, GROUP, &summary, &index);
    assert_int_equal(buffer.size, golden.size);
    assert_memory_equal(buffer.data, golden.bytes, golden.size);
    esk_buffer_fini(&buffer);

    load(&golden, "snapshot-v1.bin");
    struct esk_slice payload = esk_slice_text("the state of a group");
    eski_snapshot_encode(bytes, &snapshot_header, payload);
    assert_int_equal(golden.size, ESKI_SNAPSHOT_HEADER_BYTES + payload.size);
    assert_memory_equal(bytes, golden.bytes, ESKI_SNAPSHOT_HEADER_BYTES);
}

static void expect_summary(const struct esk_segment_summary *found,
                           const struct esk_segment_summary *expected) {
    assert_int_equal(found->base_offset, expected->base_offset);
    assert_int_equal(found->end_offset, expected->end_offset);
    assert_int_equal(found->bytes, expected->bytes);
    assert_int_equal(found->timestamp_ms, expected->timestamp_ms);
    assert_int_equal(found->horizon_ms, expected->horizon_ms);
    assert_int_equal(found->revision, expected->revision);
}

static void revisions_have_a_version_of_their_own(void **state) {
    (void)state;
    struct golden golden;
    uint8_t bytes[ESK_SEGMENT_HEADER_BYTES];
    struct eski_segment_header header;
    load(&golden, "segment-header-v2.bin");
    eski_segment_header_encode(bytes, &segment_header_2);
    assert_memory_equal(bytes, golden.bytes, sizeof(bytes));
    assert_int_equal(eski_segment_header_parse(golden.bytes, "file", &header, NULL), ESK_OK);
    assert_memory_equal(&header, &segment_header_2, sizeof(header));

    load(&golden, "index-v2.bin");
    struct esk_index index = {entries, 3, 3, summary_2.timestamp_ms};
    struct esk_buffer buffer;
    esk_buffer_init(&buffer);
    eski_index_encode(&buffer, GROUP, &summary_2, &index);
    assert_int_equal(buffer.size, golden.size);
    assert_memory_equal(buffer.data, golden.bytes, golden.size);
    uint64_t group = 0;
    struct esk_segment_summary found;
    esk_index_init(&index);
    assert_int_equal(
        eski_index_parse(esk_buffer_slice(&buffer), "file", &group, &found, &index, NULL), ESK_OK);
    expect_summary(&found, &summary_2);
    assert_memory_equal(index.entries, entries, sizeof(entries));
    esk_index_fini(&index);
    esk_buffer_fini(&buffer);
}

static void golden_files_are_read(void **state) {
    (void)state;
    struct golden golden;
    load(&golden, "segment-header-v1.bin");
    struct eski_segment_header header;
    assert_int_equal(eski_segment_header_parse(golden.bytes, "file", &header, NULL), ESK_OK);
    assert_memory_equal(&header, &segment_header, sizeof(header));

    load(&golden, "index-v1.bin");
    uint64_t group = 0;
    struct esk_segment_summary found;
    struct esk_index index;
    esk_index_init(&index);
    assert_int_equal(eski_index_parse(esk_slice(golden.bytes, golden.size), "file", &group, &found,
                                      &index, NULL),
                     ESK_OK);
    assert_true(group == GROUP);
    expect_summary(&found, &summary);
    assert_int_equal(index.count, 3);
    assert_memory_equal(index.entries, entries, sizeof(entries));
    esk_index_fini(&index);

    load(&golden, "snapshot-v1.bin");
    struct eski_snapshot_header snapshot;
    struct esk_slice payload;
    assert_int_equal(eski_snapshot_parse(esk_slice(golden.bytes, golden.size), "file", &snapshot,
                                         &payload, NULL),
                     ESK_OK);
    assert_memory_equal(&snapshot, &snapshot_header, sizeof(snapshot));
    assert_true(esk_slice_equal(payload, esk_slice_text("the state of a group")));
}

static void every_flipped_bit_is_noticed(void **state) {
    (void)state;
    for (size_t f = 0; f < FORMATS; f++) {
        struct golden golden;
        load(&golden, formats[f].name);
        struct esk_slice slice = esk_slice(golden.bytes, golden.size);
        for (size_t bit = 0; bit < golden.size * 8; bit++) {
            struct esk_error error = {0};
            golden.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            bool version = bit / 8 >= 8 && bit / 8 < 12;
            assert_int_equal(formats[f].parse(slice, &error),
                             version ? ESK_ERR_VERSION : ESK_ERR_CORRUPT);
            assert_non_null(strstr(error.text, "file: "));
            golden.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        assert_int_equal(formats[f].parse(slice, NULL), ESK_OK);
    }
}

static void every_shorter_and_longer_file_is_noticed(void **state) {
    (void)state;
    for (size_t f = 2; f < FORMATS; f++) { /* but segments, which are longer */
        struct golden golden;
        load(&golden, formats[f].name);
        for (size_t size = 0; size < golden.size; size++) {
            uint8_t *exact = esk_alloc(size); /* a read past it is seen by the sanitizer */
            memcpy(exact, golden.bytes, size);
            assert_int_equal(formats[f].parse(esk_slice(exact, size), NULL), ESK_ERR_CORRUPT);
            free(exact);
        }
        golden.bytes[golden.size] = 0;
        assert_int_equal(formats[f].parse(esk_slice(golden.bytes, golden.size + 1), NULL),
                         ESK_ERR_CORRUPT);
    }
}

static void an_unknown_version_is_named_with_the_known_one(void **state) {
    (void)state;
    for (size_t f = 0; f < FORMATS; f++) {
        struct golden golden;
        struct esk_error error = {0};
        load(&golden, formats[f].name);
        golden.bytes[11] = 9;
        assert_int_equal(formats[f].parse(esk_slice(golden.bytes, golden.size), &error),
                         ESK_ERR_VERSION);
        assert_non_null(strstr(error.text, "file: "));
        assert_non_null(strstr(error.text, "of version 9; this program knows versions up to "));
    }
}

/* With a right checksum: what the fields say must fit as well. */
static void an_index_with_impossible_fields_is_corrupt(void **state) {
    (void)state;
    const struct {
        size_t at;
        uint32_t value;
    } changes[] = {
        {36, 0},            /* end offset below the base */
        {40, 0x80000000},   /* bytes */
        {56, 2},            /* count */
        {56, 0xffffffff},   /* count */
        {60 + 32, 432},     /* offset behind the end */
        {60 + 16, 0},       /* offset not ascending */
        {60 + 36, 65536},   /* position behind the end */
        {60 + 20, 0},       /* position not ascending */
        {60 + 8, 0x100000}, /* timestamp above the newest */
        {60 + 24, 0},       /* timestamp going back */
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct golden golden;
        load(&golden, "index-v1.bin");
        esk_store_u32(golden.bytes + changes[i].at, changes[i].value);
        esk_store_u32(golden.bytes + 12, esk_crc32c(0, golden.bytes + 16, golden.size - 16));
        struct esk_error error = {0};
        assert_int_equal(parse_index(esk_slice(golden.bytes, golden.size), &error),
                         ESK_ERR_CORRUPT);
        assert_null(strstr(error.text, "checksum"));
    }
}

static void a_revision_of_the_other_version_is_corrupt(void **state) {
    (void)state;
    const struct {
        size_t format;
        size_t at;
        uint32_t revision;
    } changes[] = {{0, 44, 1}, {1, 44, 0}, {3, 60, 0}};
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct golden golden;
        struct esk_error error = {0};
        load(&golden, formats[changes[i].format].name);
        esk_store_u32(golden.bytes + changes[i].at, changes[i].revision);
        esk_store_u32(golden.bytes + 12, esk_crc32c(0, golden.bytes + 16, golden.size - 16));
        struct esk_slice bytes = esk_slice(golden.bytes, golden.size);
        assert_int_equal(formats[changes[i].format].parse(bytes, &error), ESK_ERR_CORRUPT);
        assert_non_null(strstr(error.text, " does not have revision "));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_gives_the_golden_bytes),
        cmocka_unit_test(golden_files_are_read),
        cmocka_unit_test(revisions_have_a_version_of_their_own),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(every_shorter_and_longer_file_is_noticed),
        cmocka_unit_test(an_unknown_version_is_named_with_the_known_one),
        cmocka_unit_test(an_index_with_impossible_fields_is_corrupt),
        cmocka_unit_test(a_revision_of_the_other_version_is_corrupt),
    };
    return cmocka_run_group_tests_name("storage.format", tests, NULL, NULL);
}
