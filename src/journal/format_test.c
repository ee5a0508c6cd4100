/* SPDX-License-Identifier: Apache-2.0 */
/* The format against a golden file that another program wrote, and every bit of its headers. */
#include "journal/fixture.inc"

#define GOLDEN "tests/golden/journal-v1.bin"
#define GOLDEN_BYTES 16384
#define FIRST ESKI_BLOCK_BYTES
#define SECOND (2 * ESKI_BLOCK_BYTES)

static uint8_t golden[GOLDEN_BYTES];

static const struct eski_file_header file_header = {0x1f, 5, 0x1d, 0x1d, 0x7000, 0x123};
static const struct esk_group_state catalogue = {
    .group_id = 0,
    .term = 6,
    .voted_for = 1,
    .configuration = {1, {1}},
    .checkpoint = {.applied_index = 40,
                   .applied_term = 5,
                   .segment_timestamp_ms = -1,
                   .snapshot_index = 40},
};
static const struct esk_group_state partition = {
    .group_id = 7,
    .term = 6,
    .voted_for = 1,
    .configuration = {3, {1, 2, 3}},
    .checkpoint = {100, 5, 5000, 1000, 4000, 65536, 67108864, 1700000000123, 99},
};

static int load(void **unused) {
    (void)unused;
    FILE *file = fopen(GOLDEN, "rb");
    assert_non_null(file);
    assert_int_equal(fread(golden, 1, sizeof(golden), file), sizeof(golden));
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
    return 0;
}

static void seal(uint8_t *frame, const uint8_t *end, struct eski_frame_header header) {
    header.used = (uint32_t)(end - frame);
    eski_frame_header_encode(&header, frame);
    eski_frame_seal(frame, header.size);
}

static void encoding_gives_the_golden_bytes(void **unused) {
    (void)unused;
    static uint8_t bytes[GOLDEN_BYTES];
    eski_file_header_encode(&file_header, bytes);
    uint8_t *at = bytes + FIRST + ESKI_FRAME_HEADER_BYTES;
    at = eski_forget_encode(at, 9);
    at = eski_state_encode(at, &catalogue);
    at = eski_state_encode(at, &partition);
    seal(bytes + FIRST, at,
         (struct eski_frame_header){ESKI_BLOCK_BYTES, 0, 0, 3, 0x1f, FIRST, 5, 0x124, 0x123, 0x1f});
    char payload[6301] = "";
    for (size_t i = 0; i < 300; i++) {
        memcpy(payload + 21 * i, "a batch would be here", 21);
    }
    const struct esk_entry term = {41, 6, ESK_ENTRY_TERM, {NULL, 0}};
    const struct esk_entry other_term = {101, 6, ESK_ENTRY_TERM, {NULL, 0}};
    const struct esk_entry batch = {102, 6, ESK_ENTRY_BATCH, esk_slice(payload, 6300)};
    at = bytes + SECOND + ESKI_FRAME_HEADER_BYTES;
    at = eski_entry_encode(at, 0, &term);
    at = eski_entry_encode(at, 7, &other_term);
    at = eski_entry_encode(at, 7, &batch);
    memcpy(at, payload, 6300);
    seal(bytes + SECOND, at + 6300,
         (struct eski_frame_header){2 * ESKI_BLOCK_BYTES, 0, 0, 3, 0x1f, SECOND, 5, 0x125, 0x124,
                                    0x1f});
    assert_memory_equal(bytes, golden, sizeof(bytes));
}

static void the_golden_file_is_recovered(void **unused) {
    (void)unused;
    struct fixture f;
    struct esk_file *file;
    fixture_init(&f);
    struct esk_slice bytes = esk_slice(golden, sizeof(golden));
    char *path = eski_path(FOLDER, 0x1f, "journal");
    enum esk_err err =
        esk_file_open(&f.fake.platform, path, ESK_FILE_WRITE | ESK_FILE_CREATE, &file, &f.error);
    assert_int_equal(err, ESK_OK);
    assert_int_equal(esk_file_write(file, &bytes, 1, 0, &f.error), ESK_OK);
    assert_int_equal(esk_file_sync(file, &f.error), ESK_OK);
    esk_file_close(file);
    free(path);
    fixture_recover(&f);
    assert_entries(&f, "0/41: 7/101: 7/102:a batch would be herea batch would be he ");
    assert_int_equal(esk_journal_recovery_count(f.recovery), 2);
    const struct esk_group_state *state = esk_journal_recovery_state(f.recovery, 1);
    assert_memory_equal(&state->checkpoint, &partition.checkpoint, sizeof(state->checkpoint));
    assert_int_equal(state->configuration.count, 3);
    assert_int_equal(state->configuration.nodes[2], 3);
    assert_int_equal(f.recovery->generation, 5);
    assert_int_equal(f.recovery->sequence, 0x125);
    fixture_fini(&f);
}

static void every_flipped_bit_of_a_file_header_is_noticed(void **unused) {
    (void)unused;
    for (size_t bit = 0; bit < 8 * ESKI_BLOCK_BYTES; bit++) {
        struct eski_file_header header;
        golden[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(eski_file_header_decode(golden, &header, NULL), ESK_ERR_CORRUPT);
        golden[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void every_flipped_bit_of_a_frame_is_noticed(void **unused) {
    (void)unused;
    for (size_t bit = 0; bit < 8 * 2 * ESKI_BLOCK_BYTES; bit += bit < 8 * 512 ? 1 : 11) {
        struct eski_frame_header header;
        golden[SECOND + bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(eski_frame_header_decode(golden + SECOND, &header) &&
                     header.size <= 2 * ESKI_BLOCK_BYTES &&
                     eski_frame_intact(golden + SECOND, &header));
        golden[SECOND + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void names_are_sixteen_digits(void **unused) {
    (void)unused;
    char *path = eski_path("f", 0x1f, "journal");
    assert_string_equal(path, "f/000000000000001f.journal");
    assert_int_equal(eski_number_of_name(path + 2, "journal"), 0x1f);
    assert_int_equal(eski_number_of_name(path + 2, "spare"), 0);
    assert_int_equal(eski_number_of_name("1f.journal", "journal"), 0);
    assert_int_equal(eski_number_of_name("000000000000001F.journal", "journal"), 0);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_gives_the_golden_bytes),
        cmocka_unit_test(the_golden_file_is_recovered),
        cmocka_unit_test(every_flipped_bit_of_a_file_header_is_noticed),
        cmocka_unit_test(every_flipped_bit_of_a_frame_is_noticed),
        cmocka_unit_test(names_are_sixteen_digits),
    };
    return cmocka_run_group_tests_name("format", tests, load, NULL);
}
