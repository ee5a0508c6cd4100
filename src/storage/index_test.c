/* SPDX-License-Identifier: Apache-2.0 */
/* The index in memory: how sparse it is, what it finds, and that building it from a segment gives
 * the same one, stops at the end it is told, and refuses bytes that are no batches. */
#include "storage/fake_disk.inc"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define GROUP 7
#define BASE 1000
#define DATA_BYTES (400 * 1024)

/* Batches of many sizes from offset BASE on; what an index must say of them. */
static size_t make_batches(uint8_t *data, uint64_t offsets[], uint64_t positions[], size_t *count,
                           struct esk_index *index) {
    size_t size = 0;
    uint64_t offset = BASE;
    uint32_t random = 3;
    *count = 0;
    while (size < DATA_BYTES - 80 * 1024) {
        random = random * 1664525 + 1013904223;
        size_t fill = (random >> 28) == 0 ? 70 * 1024 : (random >> 20) & 1023;
        uint32_t records = 1 + ((random >> 12) & 15);
        offset += (random >> 8) % 5 == 0 ? 3 : 0;
        int64_t timestamp = 5000 + (int64_t)((random >> 4) & 1023);
        offsets[*count] = offset;
        positions[(*count)++] = size;
        esk_index_add(index, offset - BASE, size, timestamp);
        size += fake_batch(data + size, offset, records, fill, timestamp);
        offset += records;
    }
    return size;
}

struct world {
    struct fixture *fixture;
    struct esk_segment *segment;
    struct esk_index index; /* as told of each batch */
    uint8_t *data;
    uint64_t offsets[4096];
    uint64_t positions[4096];
    size_t count;
    size_t size;
};

static int start(void **state) {
    struct world *world = esk_alloc_zeroed(1, sizeof(*world));
    world->fixture = fixture_create(0);
    world->data = esk_alloc(DATA_BYTES);
    esk_index_init(&world->index);
    world->size =
        make_batches(world->data, world->offsets, world->positions, &world->count, &world->index);
    assert_int_equal(esk_segment_create(&world->fixture->storage, GROUP, BASE, &world->segment,
                                        &world->fixture->error),
                     ESK_OK);
    struct esk_slice slice = esk_slice(world->data, world->size);
    assert_int_equal(esk_segment_append(world->segment, 0, &slice, 1, 0, NULL), ESK_OK);
    *state = world;
    return 0;
}

static int stop(void **state) {
    struct world *world = *state;
    esk_index_fini(&world->index);
    esk_segment_release(world->segment);
    fixture_destroy(world->fixture);
    free(world->data);
    free(world);
    return 0;
}

static void an_index_has_an_entry_per_interval(void **state) {
    struct world *world = *state;
    assert_true(world->index.count > 10);
    assert_true(world->index.count < world->count);
    for (size_t i = 1; i < world->index.count; i++) {
        assert_true(world->index.entries[i].position - world->index.entries[i - 1].position >=
                    ESK_INDEX_INTERVAL_BYTES);
    }
}

static void every_offset_is_found_at_or_before_its_batch(void **state) {
    struct world *world = *state;
    for (size_t i = 0; i < world->count; i++) {
        uint64_t found = esk_index_find(&world->index, world->offsets[i] - BASE);
        assert_true(found <= world->positions[i]);
        assert_true(world->positions[i] - found < ESK_INDEX_INTERVAL_BYTES + 1024 + 61 ||
                    i + 1 == world->count);
    }
    assert_int_equal(esk_index_find(&world->index, UINT64_MAX),
                     world->index.entries[world->index.count - 1].position);
    struct esk_index empty;
    esk_index_init(&empty);
    assert_int_equal(esk_index_find(&empty, 5), 0);
}

static void an_entry_has_the_newest_timestamp_so_far(void **state) {
    (void)state;
    struct esk_index index;
    esk_index_init(&index);
    esk_index_add(&index, 0, 0, 40);
    esk_index_add(&index, 1, 100, 90);
    esk_index_add(&index, 2, 5000, 70);
    assert_int_equal(index.count, 2);
    assert_int_equal(index.entries[0].timestamp_ms, 40);
    assert_int_equal(index.entries[1].timestamp_ms, 90);
    assert_int_equal(index.timestamp_ms, 90);
    esk_index_fini(&index);
}

static void what_an_entry_cannot_hold_is_found_from_the_last_one(void **state) {
    (void)state;
    struct esk_index index;
    esk_index_init(&index);
    esk_index_add(&index, 0, 0, 1);
    esk_index_add(&index, UINT32_MAX, 8192, 1);
    esk_index_add(&index, (uint64_t)UINT32_MAX + 1, 90000, 1);
    esk_index_add(&index, (uint64_t)UINT32_MAX + 9, (uint64_t)UINT32_MAX + 1, 7);
    assert_int_equal(index.count, 2);
    assert_int_equal(esk_index_find(&index, UINT64_MAX), 8192);
    assert_int_equal(index.timestamp_ms, 7);
    esk_index_fini(&index);
}

static void assert_same(const struct esk_index *a, const struct esk_index *b) {
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->entries[i].offset_delta, b->entries[i].offset_delta);
        assert_int_equal(a->entries[i].position, b->entries[i].position);
        assert_int_equal(a->entries[i].timestamp_ms, b->entries[i].timestamp_ms);
    }
    assert_int_equal(a->timestamp_ms, b->timestamp_ms);
}

static void building_gives_the_index_that_appending_gave(void **state) {
    struct world *world = *state;
    struct esk_index built;
    esk_index_init(&built);
    assert_int_equal(esk_index_build(world->segment, BASE, world->size, &built, NULL), ESK_OK);
    assert_same(&built, &world->index);
    assert_int_equal(esk_index_build(world->segment, BASE, 0, &built, NULL), ESK_OK);
    assert_int_equal(built.count, 0);
    esk_index_fini(&built);
}

static void building_stops_at_the_end_it_is_told(void **state) {
    struct world *world = *state;
    struct esk_index built;
    struct esk_index expected;
    esk_index_init(&built);
    esk_index_init(&expected);
    size_t half = world->count / 2;
    for (size_t i = 0; i < half; i++) {
        esk_index_add(
            &expected, world->offsets[i] - BASE, world->positions[i],
            (int64_t)esk_load_u64(world->data + world->positions[i] + ESK_BATCH_AT_MAX_TIMESTAMP));
    }
    /* Behind the end lies what looks like a batch: it is nobody's. */
    assert_int_equal(esk_index_build(world->segment, BASE, world->positions[half], &built, NULL),
                     ESK_OK);
    assert_same(&built, &expected);
    esk_index_fini(&built);
    esk_index_fini(&expected);
}

static enum esk_err build_changed(struct world *world, uint64_t position, const void *bytes,
                                  size_t size, uint64_t bytes_end) {
    struct esk_index built;
    esk_index_init(&built);
    struct esk_slice changed = esk_slice(bytes, size);
    uint64_t at = ESK_SEGMENT_HEADER_BYTES + position;
    uint8_t old[16];
    assert_int_equal(esk_file_read_exactly(world->segment->file, old, size, at, NULL), ESK_OK);
    assert_int_equal(esk_file_write(world->segment->file, &changed, 1, at, NULL), ESK_OK);
    struct esk_error error = {0};
    enum esk_err err = esk_index_build(world->segment, BASE, bytes_end, &built, &error);
    if (err != ESK_OK) {
        assert_non_null(strstr(error.text, "/00000000000000001000.segment"));
        assert_int_equal(built.count, 0);
    }
    struct esk_slice restored = esk_slice(old, size);
    assert_int_equal(esk_file_write(world->segment->file, &restored, 1, at, NULL), ESK_OK);
    esk_index_fini(&built);
    return err;
}

static void building_refuses_what_is_no_batch(void **state) {
    struct world *world = *state;
    uint64_t at = world->positions[3];
    const uint8_t zeros[8] = {0};
    const uint8_t ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};
    const uint8_t short_length[4] = {0, 0, 0, 48};
    const uint8_t magic[1] = {1};
    const struct {
        uint64_t position;
        const uint8_t *bytes;
        size_t size;
    } changes[] = {
        {at + ESK_BATCH_AT_LENGTH, zeros, 4},      {at + ESK_BATCH_AT_LENGTH, short_length, 4},
        {at + ESK_BATCH_AT_LENGTH, ones, 4},       {at + ESK_BATCH_AT_MAGIC, magic, 1},
        {at + ESK_BATCH_AT_BASE_OFFSET, zeros, 8}, {at + ESK_BATCH_AT_BASE_OFFSET, ones, 8},
        {at + ESK_BATCH_AT_LAST_DELTA, ones, 4},
    };
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        assert_int_equal(build_changed(world, changes[i].position, changes[i].bytes,
                                       changes[i].size, world->size),
                         ESK_ERR_CORRUPT);
    }
    /* An end within a header or a batch, and one behind the file. */
    assert_int_equal(build_changed(world, 0, "", 0, at + 20), ESK_ERR_CORRUPT);
    assert_int_equal(build_changed(world, 0, "", 0, world->positions[4] - 1), ESK_ERR_CORRUPT);
    assert_int_equal(build_changed(world, 0, "", 0, world->size + 100), ESK_ERR_CORRUPT);
    assert_int_equal(build_changed(world, 0, "", 0, world->size), ESK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_index_has_an_entry_per_interval, start, stop),
        cmocka_unit_test_setup_teardown(every_offset_is_found_at_or_before_its_batch, start, stop),
        cmocka_unit_test(an_entry_has_the_newest_timestamp_so_far),
        cmocka_unit_test(what_an_entry_cannot_hold_is_found_from_the_last_one),
        cmocka_unit_test_setup_teardown(building_gives_the_index_that_appending_gave, start, stop),
        cmocka_unit_test_setup_teardown(building_stops_at_the_end_it_is_told, start, stop),
        cmocka_unit_test_setup_teardown(building_refuses_what_is_no_batch, start, stop),
    };
    return cmocka_run_group_tests_name("storage.index", tests, NULL, NULL);
}
