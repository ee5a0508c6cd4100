/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery against what disks do to files: torn tails are cut, damage is refused, and nothing of an
 * old generation joins a new one. */
#include "journal/fixture.inc"

static struct fixture f;

static int setup(void **unused) {
    (void)unused;
    fixture_open(&f, NULL, 0);
    run_all(&f.fake);
    return 0;
}

static int teardown(void **unused) {
    (void)unused;
    fixture_fini(&f);
    return 0;
}

static void append_durable(uint64_t index) {
    append_index(&f, 7, index);
    run_all(&f.fake);
}

static void assert_refused(enum esk_err err, const char *file, size_t position) {
    char at[64];
    snprintf(at, sizeof(at), "%s at %zu", file, position);
    fake_forget_caches(&f.fake);
    assert_int_equal(try_recover(&f), err);
    if (!strstr(f.error.text, at)) {
        fail_msg("%s: not named in: %s", at, f.error.text);
    }
}

static void a_tail_torn_at_any_sector_is_cut(void **unused) {
    (void)unused;
    append_durable(1);
    uint8_t payload[9000];
    memset(payload, 'x', sizeof(payload));
    append_bytes(&f, 7, 2, esk_slice(payload, sizeof(payload)));
    run_all(&f.fake);
    fixture_crash(&f);
    struct disk_file *file = newest_file(&f);
    size_t at = last_frame_with_records(file);
    uint8_t intact[3 * ESKI_BLOCK_BYTES];
    memcpy(intact, file->device.data + at, sizeof(intact));
    for (size_t kept = 0; kept < sizeof(intact); kept += 512) {
        memcpy(file->device.data + at, intact, kept);
        memset(file->device.data + at + kept, kept % 1024 ? 0 : 0xa5, sizeof(intact) - kept);
        fake_forget_caches(&f.fake);
        fixture_recover(&f);
        bool whole = kept >= ESKI_FRAME_HEADER_BYTES + 32 + sizeof(payload) && kept % 1024;
        assert_entries(&f,
                       whole ? "7/1:1 7/2:xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx " : "7/1:1 ");
    }
    fixture_reopen(&f);
    append_durable(2);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:1 7/2:2 ");
}

static void a_flipped_bit_below_a_later_frame_is_damage_anywhere(void **unused) {
    (void)unused;
    append_durable(1);
    append_durable(2);
    append_durable(3);
    append_durable(4);
    fixture_crash(&f);
    struct disk_file *file = newest_file(&f);
    for (size_t block = 0; block < 3; block++) {
        for (size_t at = 0; at < ESKI_BLOCK_BYTES; at += at < 256 ? 1 : 61) {
            size_t position = block * ESKI_BLOCK_BYTES + at;
            flip(file, position);
            assert_refused(ESK_ERR_CORRUPT, file->path, block * ESKI_BLOCK_BYTES);
            flip(file, position);
        }
    }
    fixture_recover(&f);
    assert_entries(&f, "7/1:1 7/2:2 7/3:3 7/4:4 ");
}

static void a_flipped_bit_in_the_last_frame_is_a_torn_tail(void **unused) {
    (void)unused;
    append_durable(1);
    append_durable(2);
    append_durable(3);
    fixture_crash(&f);
    struct disk_file *file = newest_file(&f);
    size_t at = last_frame_with_records(file);
    for (size_t i = 0; i < ESKI_BLOCK_BYTES; i += 7) {
        flip(file, at + i);
        fixture_recover(&f);
        assert_entries(&f, "7/1:1 7/2:2 ");
        flip(file, at + i);
    }
}

static void an_old_write_behind_the_cut_does_not_join_the_new_generation(void **unused) {
    (void)unused;
    append_durable(1);
    append_durable(2);
    append_durable(3);
    fixture_crash(&f);
    struct disk_file *file = newest_file(&f);
    size_t at = last_frame_with_records(file);
    uint8_t late[ESKI_BLOCK_BYTES];
    memcpy(late, file->device.data + at, sizeof(late));
    memset(file->device.data + at, 0, sizeof(late));
    fake_forget_caches(&f.fake);
    fixture_recover(&f);
    fixture_reopen(&f);
    memcpy(file->device.data + at, late, sizeof(late)); /* the disk did it after all */
    fake_forget_caches(&f.fake);
    append(&f, 7, 3, "new");
    run_all(&f.fake);
    fixture_crash(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:1 7/2:2 7/3:new ");
}

static void damage_below_the_recorded_cut_is_refused(void **unused) {
    (void)unused;
    append_durable(1);
    append_durable(2);
    fixture_crash(&f);
    struct disk_file *file = newest_file(&f);
    size_t at = last_frame_with_records(file); /* no frame of its generation vouches for it */
    fixture_recover(&f);
    fixture_reopen(&f);
    fixture_crash(&f);
    flip(file, at + 200);
    assert_refused(ESK_ERR_CORRUPT, file->path, at);
}

static void a_frame_at_another_place_is_not_taken(void **unused) {
    (void)unused;
    append_durable(1);
    append_durable(2);
    append_durable(3);
    append_durable(4);
    fixture_crash(&f);
    struct disk_file *file = newest_file(&f);
    uint8_t *blocks = file->device.data;
    memcpy(blocks + 2 * ESKI_BLOCK_BYTES, blocks + ESKI_BLOCK_BYTES, ESKI_BLOCK_BYTES);
    assert_refused(ESK_ERR_CORRUPT, file->path, 2 * ESKI_BLOCK_BYTES);
}

static void a_missing_file_is_named(void **unused) {
    (void)unused;
    for (uint64_t i = 1; i <= 40; i++) {
        append_durable(i);
    }
    fixture_crash(&f);
    uint64_t newest =
        f.fake.files ? strtoull(strrchr(newest_file(&f)->path, '/') + 1, NULL, 16) : 0;
    assert_true(newest >= 3);
    for (uint64_t number = 1; number < newest; number++) {
        struct disk_file *file = numbered_file(&f, number);
        char *name = esk_text_format("%016" PRIx64, number);
        file->path[strlen(file->path) - 1] ^= 1;
        assert_int_equal(try_recover(&f), ESK_ERR_CORRUPT);
        assert_non_null(strstr(f.error.text, name));
        assert_non_null(strstr(f.error.text, "is missing"));
        file->path[strlen(file->path) - 1] ^= 1;
        free(name);
    }
    fixture_recover(&f);
}

static void newer_formats_are_refused(void **unused) {
    (void)unused;
    append_durable(1);
    fixture_crash(&f);
    struct disk_file *file = newest_file(&f);
    uint8_t header[ESKI_BLOCK_BYTES];
    memcpy(header, file->device.data, sizeof(header));
    esk_store_u32(file->device.data + 8, 2);
    reseal_file_header(file->device.data);
    assert_refused(ESK_ERR_VERSION, file->path, 0);
    memcpy(file->device.data, header, sizeof(header));

    uint8_t *frame = file->device.data + last_frame_with_records(file);
    esk_store_u32(frame + 16, 1); /* flags */
    eski_frame_seal(frame, ESKI_BLOCK_BYTES);
    assert_refused(ESK_ERR_VERSION, file->path, (size_t)(frame - file->device.data));
    esk_store_u32(frame + 16, 0);
    frame[ESKI_FRAME_HEADER_BYTES + 4] = 99; /* the record's kind */
    eski_frame_seal(frame, ESKI_BLOCK_BYTES);
    assert_refused(ESK_ERR_VERSION, file->path, (size_t)(frame - file->device.data));
}

static void a_numbered_file_without_a_header_is_damage(void **unused) {
    (void)unused;
    for (uint64_t i = 1; i <= 12; i++) {
        append_durable(i); /* over half a file: the next one is prepared */
    }
    fixture_crash(&f);
    struct disk_file *file = numbered_file(&f, 3);
    memset(file->device.data, 0, ESKI_BLOCK_BYTES);
    assert_refused(ESK_ERR_CORRUPT, file->path, 0);
}

static void recovery_without_direct_access_reads_no_cache(void **unused) {
    (void)unused;
    append_durable(1);
    append_durable(2);
    fixture_kill(&f);
    f.fake.direct_refused = true;
    struct disk_file *file = newest_file(&f);
    size_t at = last_frame_with_records(file);
    memset(file->device.data + at, 0, ESKI_BLOCK_BYTES); /* the cache has it, the device does not */
    f.fake.sync_lies = true;
    fixture_recover(&f);
    assert_entries(&f, "7/1:1 ");
    f.fake.sync_lies = false;
}

static void recovery_syncs_what_it_accepts(void **unused) {
    (void)unused;
    append_durable(1);
    fixture_crash(&f);
    unsigned before = f.fake.syncs;
    fixture_recover(&f);
    assert_true(f.fake.syncs > before);
    f.fake.sync_result = ESK_ERR_IO;
    assert_int_equal(try_recover(&f), ESK_ERR_IO);
    f.fake.sync_result = ESK_OK;
}

static void recovery_changes_nothing_until_open(void **unused) {
    (void)unused;
    append_durable(1);
    fixture_crash(&f);
    unsigned writes = f.fake.writes;
    fixture_recover(&f);
    fixture_recover(&f);
    assert_entries(&f, "7/1:1 ");
    assert_int_equal(f.fake.writes, writes);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_tail_torn_at_any_sector_is_cut),
        TEST(a_flipped_bit_below_a_later_frame_is_damage_anywhere),
        TEST(a_flipped_bit_in_the_last_frame_is_a_torn_tail),
        TEST(an_old_write_behind_the_cut_does_not_join_the_new_generation),
        TEST(damage_below_the_recorded_cut_is_refused),
        TEST(a_frame_at_another_place_is_not_taken),
        TEST(a_missing_file_is_named),
        TEST(newer_formats_are_refused),
        TEST(a_numbered_file_without_a_header_is_damage),
        TEST(recovery_without_direct_access_reads_no_cache),
        TEST(recovery_syncs_what_it_accepts),
        TEST(recovery_changes_nothing_until_open),
    };
    return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
