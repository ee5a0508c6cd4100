/* SPDX-License-Identifier: Apache-2.0 */
/* The data folder's identity file: its bytes, what is refused, and which journals a start removes.
 */
#include "storage/fake_disk.inc"

#include "base/hash.h"
#include "broker/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define META "/data/esker.meta"
#define META_BYTES 32

static const struct eski_layout layout = {0x0102030405060708, 3, 16, 1};

static int setup(void **state) {
    struct fake_disk *disk = esk_alloc_zeroed(1, sizeof(*disk));
    fake_disk_init(disk);
    *state = disk;
    return 0;
}

static int teardown(void **state) {
    fake_disk_fini(*state);
    free(*state);
    return 0;
}

static enum esk_err load(struct fake_disk *disk, struct eski_layout *found) {
    struct esk_error error;
    enum esk_err err = eski_layout_load(&disk->platform, "/data", found, &error);
    if (err == ESK_ERR_CORRUPT || err == ESK_ERR_VERSION) {
        assert_non_null(strstr(error.text, "esker.meta"));
    }
    return err;
}

static void store(struct fake_disk *disk) {
    struct esk_error error;
    assert_int_equal(eski_layout_store(&disk->platform, "/data", &layout, &error), ESK_OK);
    assert_false(fake_disk_dirty(disk, "/data"));
}

static void an_identity_comes_back_and_has_its_golden_bytes(void **state) {
    struct fake_disk *disk = *state;
    static const uint8_t golden[META_BYTES - 4] = {'E', 'S', 'K', 'M', 0, 0, 0, 1, 1, 2,
                                                   3,   4,   5,   6,   7, 8, 0, 0, 0, 3,
                                                   0,   0,   0,   16,  0, 0, 0, 1};
    struct eski_layout found;
    store(disk);
    assert_int_equal(load(disk, &found), ESK_OK);
    assert_true(found.layout == layout.layout);
    assert_int_equal(found.shard_count, layout.shard_count);
    assert_int_equal(found.offset_partitions, layout.offset_partitions);
    assert_int_equal(found.node, layout.node);
    const struct fake_node *node = fake_find(disk, META);
    assert_int_equal(node->size, META_BYTES);
    assert_memory_equal(node->bytes, golden, sizeof(golden));
    assert_int_equal(esk_load_u32(node->bytes + 28), esk_crc32c(0, golden, sizeof(golden)));
}

static void every_flipped_bit_and_every_other_length_is_refused(void **state) {
    struct fake_disk *disk = *state;
    struct eski_layout found;
    store(disk);
    struct fake_node *node = fake_find(disk, META);
    for (unsigned bit = 0; bit < 8 * META_BYTES; bit++) {
        node->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        bool version = bit / 8 >= 4 && bit / 8 < 8;
        assert_int_equal(load(disk, &found), version ? ESK_ERR_VERSION : ESK_ERR_CORRUPT);
        node->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    fake_resize(disk, node, META_BYTES + 1);
    assert_int_equal(load(disk, &found), ESK_ERR_CORRUPT);
    for (uint64_t size = META_BYTES; size-- > 1;) {
        fake_resize(disk, node, size);
        assert_int_equal(load(disk, &found), ESK_ERR_CORRUPT);
    }
}

static void numbers_that_would_divide_by_zero_are_refused(void **state) {
    struct fake_disk *disk = *state;
    struct eski_layout found;
    store(disk);
    struct fake_node *node = fake_find(disk, META);
    for (unsigned at = 16; at <= 20; at += 4) {
        uint32_t before = esk_load_u32(node->bytes + at);
        esk_store_u32(node->bytes + at, 0);
        esk_store_u32(node->bytes + 28, esk_crc32c(0, node->bytes, 28));
        assert_int_equal(load(disk, &found), ESK_ERR_CORRUPT);
        esk_store_u32(node->bytes + at, before);
    }
}

static void a_folder_without_identity_is_new_only_when_it_is_empty(void **state) {
    struct fake_disk *disk = *state;
    struct eski_layout found;
    assert_int_equal(load(disk, &found), ESK_ERR_NOT_FOUND);
    assert_int_equal(esk_folder_make(&disk->platform, "/data/groups/0000000000000011", NULL),
                     ESK_OK);
    assert_int_equal(load(disk, &found), ESK_ERR_CORRUPT);
}

static void make_journal(struct fake_disk *disk, const char *folder) {
    struct esk_file *file;
    char path[100];
    assert_int_equal(esk_folder_make(&disk->platform, folder, NULL), ESK_OK);
    snprintf(path, sizeof(path), "%s/0000000000000001.journal", folder);
    assert_int_equal(
        esk_file_open(&disk->platform, path, ESK_FILE_WRITE | ESK_FILE_CREATE, &file, NULL),
        ESK_OK);
    esk_file_close(file);
}

static void journals_of_other_layouts_go_and_nothing_else(void **state) {
    struct fake_disk *disk = *state;
    struct esk_error error;
    assert_int_equal(esk_folder_make(&disk->platform, "/data/journal", NULL), ESK_OK);
    make_journal(disk, "/data/journal/2-0");
    make_journal(disk, "/data/journal/2-1");
    make_journal(disk, "/data/journal/1-0");
    make_journal(disk, "/data/journal/3-7");
    make_journal(disk, "/data/journal/mine");
    assert_int_equal(eski_layout_clean(&disk->platform, "/data", 2, &error), ESK_OK);
    assert_true(fake_disk_has(disk, "/data/journal/2-0/0000000000000001.journal"));
    assert_true(fake_disk_has(disk, "/data/journal/2-1/0000000000000001.journal"));
    assert_true(fake_disk_has(disk, "/data/journal/mine/0000000000000001.journal"));
    assert_false(fake_disk_has(disk, "/data/journal/1-0"));
    assert_false(fake_disk_has(disk, "/data/journal/3-7"));
    char *path = eski_layout_journal("/data", 2, 1);
    assert_string_equal(path, "/data/journal/2-1");
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_identity_comes_back_and_has_its_golden_bytes),
        TEST(every_flipped_bit_and_every_other_length_is_refused),
        TEST(numbers_that_would_divide_by_zero_are_refused),
        TEST(a_folder_without_identity_is_new_only_when_it_is_empty),
        TEST(journals_of_other_layouts_go_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
