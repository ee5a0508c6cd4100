/* SPDX-License-Identifier: Apache-2.0 */
/* The disk model by itself: each rule that the simulation stands on, seen over many seeds. */
#include "image.h"

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 200

static struct sim_inode *file_create(struct sim_image *image, const char *name) {
    struct sim_inode *file = sim_inode_create(image, false);
    sim_folder_change(image, image->root, &(struct sim_entry){(char *)(uintptr_t)name, file}, 1,
                      false);
    return file;
}

static void fill(struct sim_image *image, struct sim_inode *file, uint8_t value, size_t size) {
    uint8_t *bytes = esk_alloc(size);
    memset(bytes, value, size);
    sim_inode_write(image, file, bytes, 0, size);
    free(bytes);
}

static void sync(struct sim_inode *file) {
    for (size_t page = 0; page < file->page_count; page++) {
        sim_inode_write_back(file, page);
        sim_inode_flush(file, page);
    }
    sim_inode_flush_size(file);
}

static uint8_t byte_at(struct sim_inode *file, uint64_t position) {
    uint8_t byte;
    sim_inode_read(file, &byte, position, 1);
    return byte;
}

static void process_death_keeps_unsynced_bytes_in_the_cache(void **state) {
    (void)state;
    struct sim_image image;
    sim_image_init(&image, 1, 100);
    struct sim_inode *file = file_create(&image, "a");
    fill(&image, file, 7, 5000);
    sim_image_process_death(&image);
    assert_ptr_equal(sim_image_find(&image, "a", NULL, NULL), file);
    assert_int_equal(file->size, 5000);
    assert_int_equal(byte_at(file, 4999), 7);
}

static void power_loss_keeps_what_was_synced_and_tears_the_rest_at_sectors(void **state) {
    (void)state;
    unsigned old = 0, new = 0, torn = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_image image;
        sim_image_init(&image, seed, 100);
        struct sim_inode *file = file_create(&image, "a");
        fill(&image, file, 1, 2 * SIM_PAGE);
        sync(file);
        sim_folder_flush(&image, image.root);
        fill(&image, file, 2, SIM_PAGE);
        sim_image_power_loss(&image);
        assert_int_equal(file->size, 2 * SIM_PAGE);
        unsigned twos = 0;
        for (uint64_t at = 0; at < SIM_PAGE; at += SIM_SECTOR) {
            uint8_t first = byte_at(file, at);
            assert_true(first == 1 || first == 2);
            for (uint64_t i = 0; i < SIM_SECTOR; i++) {
                assert_int_equal(byte_at(file, at + i), first);
            }
            twos += first == 2;
        }
        assert_int_equal(byte_at(file, SIM_PAGE), 1);
        old += twos == 0;
        new += twos == 8;
        torn += twos > 0 && twos < 8;
    }
    assert_true(old > 10 && new > 10 && torn > 10);
}

static void a_size_that_was_not_synced_may_be_lost(void **state) {
    (void)state;
    unsigned lost = 0, kept = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_image image;
        sim_image_init(&image, seed, 100);
        struct sim_inode *file = file_create(&image, "a");
        sim_folder_flush(&image, image.root);
        fill(&image, file, 1, 1000);
        sync(file);
        fill(&image, file, 1, 3000);
        sim_image_power_loss(&image);
        assert_in_range(file->size, 1000, 3000);
        lost += file->size == 1000;
        kept += file->size == 3000;
    }
    assert_true(lost > 10 && kept > 10);
}

static void a_synced_truncation_holds_and_its_old_bytes_do_not_come_back(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_image image;
        sim_image_init(&image, seed, 100);
        struct sim_inode *file = file_create(&image, "a");
        sim_folder_flush(&image, image.root);
        fill(&image, file, 9, 3 * SIM_PAGE);
        sync(file);
        sim_inode_truncate(&image, file, 100);
        sync(file);
        assert_int_equal(image.pages_used, 1);
        sim_inode_allocate(&image, file, 0, 3 * SIM_PAGE);
        sim_image_power_loss(&image);
        for (uint64_t at = 0; at < file->size; at++) {
            assert_int_equal(byte_at(file, at), at < 100 ? 9 : 0);
        }
    }
}

static void a_failed_write_back_leaves_the_page_clean_and_the_device_old(void **state) {
    (void)state;
    struct sim_image image;
    sim_image_init(&image, 1, 100);
    struct sim_inode *file = file_create(&image, "a");
    fill(&image, file, 1, SIM_PAGE);
    sync(file);
    fill(&image, file, 2, SIM_PAGE);
    sim_inode_write_back_failed(file, 0, ESK_ERR_IO);
    assert_int_equal(byte_at(file, 0), 2);
    assert_int_equal(file->pages[0] & SIM_DIRTY, 0);
    sim_image_process_death(&image);
    assert_int_equal(byte_at(file, 0), 2);
    uint8_t page[SIM_PAGE];
    sim_inode_read_device(file, page, 0, SIM_PAGE);
    assert_int_equal(page[0], 1);
    sim_inode_drop(file);
    assert_int_equal(byte_at(file, 0), 1);
}

static void entries_without_a_sync_of_the_folder_are_lost_or_kept(void **state) {
    (void)state;
    unsigned kept = 0, lost = 0, back = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_image image;
        sim_image_init(&image, seed, 100);
        struct sim_inode *old = file_create(&image, "old");
        sim_folder_flush(&image, image.root);
        struct sim_inode *file = file_create(&image, "new");
        sim_folder_change(&image, image.root, &(struct sim_entry){(char *)"old", NULL}, 1, false);
        assert_null(sim_image_find(&image, "old", NULL, NULL));
        sim_image_power_loss(&image);
        struct sim_inode *now = sim_image_find(&image, "new", NULL, NULL);
        assert_true(now == file || !now);
        kept += now == file;
        lost += !now;
        back += sim_image_find(&image, "old", NULL, NULL) == old;
    }
    assert_true(kept > 10 && lost > 10 && back > 10);
}

static void a_rename_happens_wholly_or_not_at_all(void **state) {
    (void)state;
    unsigned renamed = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_image image;
        sim_image_init(&image, seed, 100);
        struct sim_inode *a = file_create(&image, "a"), *b = file_create(&image, "b");
        sim_folder_flush(&image, image.root);
        struct sim_entry set[] = {{(char *)"b", a}, {(char *)"a", NULL}};
        sim_folder_change(&image, image.root, set, 2, false);
        sim_image_power_loss(&image);
        struct sim_inode *now_a = sim_image_find(&image, "a", NULL, NULL);
        struct sim_inode *now_b = sim_image_find(&image, "b", NULL, NULL);
        assert_true((now_a == a && now_b == b) || (!now_a && now_b == a));
        renamed += !now_a;
    }
    assert_true(renamed > 10 && renamed < SEEDS - 10);
}

static void a_rename_from_folder_to_folder_is_one_change(void **state) {
    (void)state;
    unsigned kept = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_image image;
        sim_image_init(&image, seed, 100);
        struct sim_inode *file = file_create(&image, "a"), *folder = sim_inode_create(&image, true);
        sim_folder_change(&image, image.root, &(struct sim_entry){(char *)"d", folder}, 1, false);
        sim_folder_flush(&image, image.root);
        sim_folder_change(&image, folder, &(struct sim_entry){(char *)"b", file}, 1, false);
        sim_folder_change(&image, image.root, &(struct sim_entry){(char *)"a", NULL}, 1, true);
        if (seed % 2) {
            sim_folder_flush(&image, folder);
        }
        sim_image_power_loss(&image);
        bool moved = sim_image_find(&image, "d/b", NULL, NULL) != NULL;
        assert_true(moved == (sim_image_find(&image, "a", NULL, NULL) == NULL));
        assert_true(moved || seed % 2 == 0);
        kept += moved;
    }
    assert_true(kept > SEEDS / 2 + 10 && kept < SEEDS - 10);
}

static void a_direct_write_is_on_the_media_when_it_is_done_and_torn_before(void **state) {
    (void)state;
    uint8_t bytes[2 * SIM_PAGE];
    memset(bytes, 5, sizeof(bytes));
    unsigned torn = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_image image;
        sim_image_init(&image, seed, 100);
        struct sim_inode *file = file_create(&image, "a");
        sim_folder_flush(&image, image.root);
        fill(&image, file, 1, 4 * SIM_PAGE);
        sync(file);
        struct sim_flight *flight = sim_flight_begin(&image, file, bytes, 0, sizeof(bytes), true);
        sim_flight_begin(&image, file, bytes, 2 * SIM_PAGE, sizeof(bytes), true);
        sim_flight_end(&image, flight);
        assert_int_equal(byte_at(file, 0), 5);
        assert_int_equal(byte_at(file, 2 * SIM_PAGE), 1);
        sim_image_power_loss(&image);
        unsigned ones = 0;
        for (uint64_t at = 0; at < 4 * SIM_PAGE; at += SIM_SECTOR) {
            assert_true(byte_at(file, at) == 5 || at >= 2 * SIM_PAGE);
            ones += byte_at(file, at) == 1;
        }
        torn += ones > 0 && ones < 16;
    }
    assert_true(torn > 10);
}

static void a_direct_write_without_dsync_is_lost_with_the_power(void **state) {
    (void)state;
    uint8_t bytes[SIM_PAGE] = {5};
    unsigned lost = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct sim_image image;
        sim_image_init(&image, seed, 100);
        struct sim_inode *file = file_create(&image, "a");
        sim_folder_flush(&image, image.root);
        fill(&image, file, 1, SIM_PAGE);
        sync(file);
        sim_flight_end(&image, sim_flight_begin(&image, file, bytes, 0, sizeof(bytes), false));
        uint8_t page[SIM_PAGE];
        sim_inode_read_device(file, page, 0, SIM_PAGE);
        assert_int_equal(page[0], 5);
        sim_image_power_loss(&image);
        lost += byte_at(file, 0) == 1;
    }
    assert_true(lost > 10 && lost < SEEDS - 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_death_keeps_unsynced_bytes_in_the_cache),
        cmocka_unit_test(power_loss_keeps_what_was_synced_and_tears_the_rest_at_sectors),
        cmocka_unit_test(a_size_that_was_not_synced_may_be_lost),
        cmocka_unit_test(a_synced_truncation_holds_and_its_old_bytes_do_not_come_back),
        cmocka_unit_test(a_failed_write_back_leaves_the_page_clean_and_the_device_old),
        cmocka_unit_test(entries_without_a_sync_of_the_folder_are_lost_or_kept),
        cmocka_unit_test(a_rename_happens_wholly_or_not_at_all),
        cmocka_unit_test(a_rename_from_folder_to_folder_is_one_change),
        cmocka_unit_test(a_direct_write_is_on_the_media_when_it_is_done_and_torn_before),
        cmocka_unit_test(a_direct_write_without_dsync_is_lost_with_the_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
