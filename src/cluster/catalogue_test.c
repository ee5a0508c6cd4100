/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue as a state machine: what each change does, what does not fit, and that a snapshot
 * makes the same state anew. */
#include "cluster/catalogue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FIRST 17

static enum esk_err apply(struct esk_catalogue *catalogue,
                          const struct esk_catalogue_change *change) {
    struct esk_block *payload = esk_catalogue_payload(change);
    const struct esk_entry entry = {.kind = ESK_ENTRY_CATALOGUE,
                                    .payload = esk_slice(payload->data, payload->size)};
    struct esk_error error;
    enum esk_err err = catalogue->machine.ops->apply(&catalogue->machine, &entry, &error);
    esk_block_release(payload);
    return err;
}

static struct esk_catalogue_change created(uint64_t id, uint32_t partitions, const char *name) {
    struct esk_topic_config config;
    esk_topic_config_init(&config);
    return (struct esk_catalogue_change){
        .kind = ESK_CATALOGUE_TOPIC_CREATED,
        .topic_created = {id, partitions, esk_slice_text(name), config.retention_ms,
                          config.retention_bytes, config.cleanup_policy, config.segment_bytes,
                          config.tombstone_retention_ms, ESK_PARTITIONER_MURMUR2}};
}

static enum esk_err create(struct esk_catalogue *catalogue, uint64_t id, uint32_t partitions,
                           const char *name) {
    const struct esk_catalogue_change change = created(id, partitions, name);
    return apply(catalogue, &change);
}

static enum esk_err change_by_id(struct esk_catalogue *catalogue, enum esk_catalogue_kind kind,
                                 uint64_t id) {
    struct esk_catalogue_change change = {.kind = kind};
    if (kind == ESK_CATALOGUE_TOPIC_DELETED) {
        change.topic_deleted.first_group = id;
    } else if (kind == ESK_CATALOGUE_TOPIC_GONE) {
        change.topic_gone.first_group = id;
    } else {
        change.next_group.next_group = id;
    }
    return apply(catalogue, &change);
}

static void collect(void *context, struct esk_slice payload) {
    struct esk_buffer *buffer = context;
    esk_buffer_u32(buffer, (uint32_t)payload.size);
    esk_buffer_append(buffer, payload.data, payload.size);
}

static void snapshot(struct esk_catalogue *catalogue, struct esk_buffer *buffer) {
    esk_buffer_init(buffer);
    catalogue->machine.ops->snapshot(&catalogue->machine, collect, buffer);
}

static int setup(void **state) {
    struct esk_catalogue *catalogue = esk_alloc_zeroed(1, sizeof(*catalogue));
    esk_catalogue_init(catalogue, FIRST);
    *state = catalogue;
    return 0;
}

static int teardown(void **state) {
    esk_catalogue_fini(*state);
    free(*state);
    return 0;
}

static void a_name_is_free_again_once_its_topic_is_deleted(void **state) {
    struct esk_catalogue *catalogue = *state;
    struct esk_slice name = esk_slice_text("orders");
    assert_int_equal(create(catalogue, FIRST, 3, "orders"), ESK_OK);
    assert_int_equal(esk_catalogue_find(catalogue, name)->first_group, FIRST);
    assert_int_equal(create(catalogue, FIRST + 3, 1, "orders"), ESK_ERR_CORRUPT);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_DELETED, FIRST), ESK_OK);
    assert_null(esk_catalogue_find(catalogue, name));
    assert_int_equal(create(catalogue, FIRST + 3, 1, "orders"), ESK_OK);
    assert_int_equal(esk_catalogue_find(catalogue, name)->first_group, FIRST + 3);
    assert_true(esk_catalogue_topic(catalogue, FIRST)->deleted);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_GONE, FIRST), ESK_OK);
    assert_null(esk_catalogue_topic(catalogue, FIRST));
    assert_int_equal(esk_catalogue_find(catalogue, name)->first_group, FIRST + 3);
}

static void group_ids_are_never_used_again(void **state) {
    struct esk_catalogue *catalogue = *state;
    assert_int_equal(create(catalogue, FIRST, 10000, "a"), ESK_OK);
    assert_int_equal(catalogue->next_group, FIRST + 10000);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_DELETED, FIRST), ESK_OK);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_GONE, FIRST), ESK_OK);
    assert_int_equal(catalogue->next_group, FIRST + 10000);
    assert_int_equal(create(catalogue, FIRST, 1, "b"), ESK_ERR_CORRUPT);
    assert_int_equal(create(catalogue, FIRST + 9999, 1, "b"), ESK_ERR_CORRUPT);
    assert_int_equal(create(catalogue, 0, 1, "b"), ESK_ERR_CORRUPT);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_NEXT_GROUP, FIRST), ESK_ERR_CORRUPT);
    assert_int_equal(create(catalogue, FIRST + 10000, 1, "b"), ESK_OK);
}

static void a_snapshot_makes_the_same_state(void **state) {
    struct esk_catalogue *catalogue = *state;
    assert_int_equal(create(catalogue, FIRST, 1, "gone"), ESK_OK);
    assert_int_equal(create(catalogue, FIRST + 1, 2, "orders"), ESK_OK);
    assert_int_equal(create(catalogue, FIRST + 3, 4, "kept"), ESK_OK);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_DELETED, FIRST), ESK_OK);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_GONE, FIRST), ESK_OK);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_DELETED, FIRST + 1), ESK_OK);
    assert_int_equal(create(catalogue, FIRST + 7, 2, "orders"), ESK_OK); /* beside its tombstone */
    const struct esk_topic_config config = {-1, 1000000, 1, 4096, 5, ESK_PARTITIONER_FNV1A};
    const struct esk_catalogue_change configured = esk_catalogue_configuration(FIRST + 3, &config);
    assert_int_equal(apply(catalogue, &configured), ESK_OK);
    assert_int_equal(create(catalogue, FIRST + 9, 5, "last"), ESK_OK);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_DELETED, FIRST + 9), ESK_OK);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_GONE, FIRST + 9), ESK_OK);

    struct esk_buffer first, second;
    struct esk_catalogue again;
    snapshot(catalogue, &first);
    esk_catalogue_init(&again, FIRST);
    struct esk_reader reader = esk_reader(esk_buffer_slice(&first));
    while (esk_reader_left(&reader) > 0) {
        const struct esk_entry entry = {.payload = esk_read_bytes(&reader, esk_read_u32(&reader))};
        assert_int_equal(again.machine.ops->apply(&again.machine, &entry, NULL), ESK_OK);
    }
    assert_int_equal(again.next_group, FIRST + 14);
    assert_true(esk_catalogue_topic(&again, FIRST + 1)->deleted);
    const struct esk_topic *kept = esk_catalogue_find(&again, esk_slice_text("kept"));
    assert_int_equal(kept->partition_count, 4);
    assert_int_equal(kept->config.retention_ms, -1);
    assert_int_equal(kept->config.retention_bytes, 1000000);
    assert_int_equal(kept->config.segment_bytes, 4096);
    assert_int_equal(kept->config.tombstone_retention_ms, 5);
    assert_int_equal(kept->config.partitioner, ESK_PARTITIONER_MURMUR2); /* fixed at creation */
    snapshot(&again, &second);
    assert_true(esk_slice_equal(esk_buffer_slice(&first), esk_buffer_slice(&second)));
    esk_buffer_fini(&first);
    esk_buffer_fini(&second);
    esk_catalogue_fini(&again);
}

static void what_does_not_fit_is_refused_and_changes_nothing(void **state) {
    struct esk_catalogue *catalogue = *state;
    assert_int_equal(create(catalogue, FIRST, 1, "a"), ESK_OK);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_DELETED, FIRST + 1),
                     ESK_ERR_CORRUPT);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_GONE, FIRST), ESK_ERR_CORRUPT);
    struct esk_topic_config config;
    esk_topic_config_init(&config);
    struct esk_catalogue_change configured = esk_catalogue_configuration(FIRST + 1, &config);
    assert_int_equal(apply(catalogue, &configured), ESK_ERR_CORRUPT);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_DELETED, FIRST), ESK_OK);
    assert_int_equal(change_by_id(catalogue, ESK_CATALOGUE_TOPIC_DELETED, FIRST), ESK_ERR_CORRUPT);
    assert_int_equal(catalogue->by_id.count, 1);
    assert_int_equal(catalogue->next_group, FIRST + 1);
}

static void values_that_no_request_can_give_are_refused(void **state) {
    struct esk_catalogue *catalogue = *state;
    assert_int_equal(create(catalogue, FIRST, 0, "a"), ESK_ERR_CORRUPT);
    assert_int_equal(create(catalogue, FIRST, 10001, "a"), ESK_ERR_CORRUPT);
    assert_int_equal(create(catalogue, UINT64_MAX - 1, 2, "a"), ESK_ERR_CORRUPT);
    assert_int_equal(create(catalogue, FIRST, 1, ""), ESK_ERR_CORRUPT);
    assert_int_equal(create(catalogue, FIRST, 1, ".."), ESK_ERR_CORRUPT);
    assert_int_equal(create(catalogue, FIRST, 1, "a/b"), ESK_ERR_CORRUPT);
    struct esk_catalogue_change change = created(FIRST, 1, "a");
    change.topic_created.name = esk_slice("a\0b", 3);
    assert_int_equal(apply(catalogue, &change), ESK_ERR_CORRUPT);
    change = created(FIRST, 1, "a");
    change.topic_created.partitioner = 2;
    assert_int_equal(apply(catalogue, &change), ESK_ERR_CORRUPT);
    change = created(FIRST, 1, "a");
    change.topic_created.segment_bytes = 0;
    assert_int_equal(apply(catalogue, &change), ESK_ERR_CORRUPT);
    change = created(FIRST, 1, "a");
    change.topic_created.cleanup_policy = 4;
    assert_int_equal(apply(catalogue, &change), ESK_ERR_CORRUPT);
    change = created(FIRST, 1, "a");
    change.topic_created.retention_ms = INT64_MIN;
    assert_int_equal(apply(catalogue, &change), ESK_ERR_CORRUPT);
    assert_int_equal(catalogue->by_id.count, 0);
    assert_int_equal(create(catalogue, FIRST, 1, "a"), ESK_OK);
    const struct esk_topic_config config = {-2, 0, 1, 4096, 0, ESK_PARTITIONER_FNV1A};
    change = esk_catalogue_configuration(FIRST, &config);
    assert_int_equal(apply(catalogue, &change), ESK_ERR_CORRUPT);
}

static void copies_share_the_round_robin_and_outlive_each_other(void **state) {
    struct esk_catalogue *catalogue = *state;
    struct esk_catalogue copy;
    assert_int_equal(create(catalogue, FIRST, 3, "a"), ESK_OK);
    struct esk_topic *topic = esk_catalogue_topic(catalogue, FIRST);
    const struct esk_catalogue_change change = esk_catalogue_creation(topic);
    struct esk_block *payload = esk_catalogue_payload(&change);
    esk_catalogue_init(&copy, FIRST);
    assert_int_equal(
        esk_catalogue_apply(&copy, esk_slice(payload->data, payload->size), topic->cursor, NULL),
        ESK_OK);
    esk_block_release(payload);
    atomic_fetch_add(&topic->cursor->next, 5);
    change_by_id(catalogue, ESK_CATALOGUE_TOPIC_DELETED, FIRST);
    change_by_id(catalogue, ESK_CATALOGUE_TOPIC_GONE, FIRST); /* the first one lets go */
    assert_int_equal(atomic_load(&esk_catalogue_topic(&copy, FIRST)->cursor->next), 5);
    esk_catalogue_fini(&copy);
}

static void lists_come_sorted_by_name_without_what_does_not_serve(void **state) {
    struct esk_catalogue *catalogue = *state;
    const char *const names[] = {"zebra", "apple", "Zoo", "hidden", "deleted"};
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(create(catalogue, FIRST + i, 1, names[i]), ESK_OK);
        esk_catalogue_topic(catalogue, FIRST + i)->serving = i != 3;
    }
    change_by_id(catalogue, ESK_CATALOGUE_TOPIC_DELETED, FIRST + 4);
    size_t count;
    const struct esk_topic **topics = esk_catalogue_sorted(catalogue, &count);
    assert_int_equal(count, 3);
    assert_string_equal(topics[0]->name, "Zoo");
    assert_string_equal(topics[1]->name, "apple");
    assert_string_equal(topics[2]->name, "zebra");
    free(topics);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_name_is_free_again_once_its_topic_is_deleted),
        TEST(group_ids_are_never_used_again),
        TEST(a_snapshot_makes_the_same_state),
        TEST(what_does_not_fit_is_refused_and_changes_nothing),
        TEST(values_that_no_request_can_give_are_refused),
        TEST(copies_share_the_round_robin_and_outlive_each_other),
        TEST(lists_come_sorted_by_name_without_what_does_not_serve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
