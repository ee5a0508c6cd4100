/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotent producers through the broker, on two shards and a disk in memory: requests over
 * several partitions as a whole, owners, ids through restarts, listing, forgetting, and the week
 * after which unused ones go. */
#include "broker/scene_fixture.inc"

#include "broker/broker_private.h"
#include "broker/producers.h"
#include "partition/sequences.h"

#define RECORDS_MAX 8
#define DAY_NS (UINT64_C(86400) * 1000000000)

static int64_t wall_ms(struct esk_platform *platform) {
    (void)platform;
    return (int64_t)(the_world->now_ns / 1000000) + 1700000000000;
}

static void restart(struct scene *scene) {
    stop(scene);
    start(scene);
}

static void topic_changed(struct esk_topic_operation *operation, enum esk_err err) {
    assert_int_equal(err, ESK_OK);
    operation->internal = operation;
}

static void create_topic(struct scene *scene) {
    struct esk_topic_operation operation = {
        .name = esk_slice_text("orders"), .partition_count = 4, .done = topic_changed};
    esk_broker_topic_create(shard(scene, 1), &operation);
    run_all(scene->world);
    assert_ptr_equal(operation.internal, &operation);
}

static int setup(void **state) {
    struct scene *scene = scene_create();
    scene->ops.wall_ms = wall_ms;
    scene->options.memory_bytes = 128u << 20;
    scene->options.retention_interval_ms = 100000000;
    *state = scene;
    start(scene);
    create_topic(scene);
    return 0;
}

/* --- operations --- */

struct request {
    struct esk_produce produce;
    struct esk_produce_record records[RECORDS_MAX];
    unsigned done;
    enum esk_err err;
};

static void produced(struct esk_produce *produce, enum esk_err err) {
    struct request *request = ESK_CONTAINER(produce, struct request, produce);
    request->done++;
    request->err = err;
}

static void add(struct request *request, int32_t partition, int64_t sequence) {
    struct esk_produce_record *record = &request->records[request->produce.record_count++];
    *record = (struct esk_produce_record){.value = esk_slice("value", 5),
                                          .partition = partition,
                                          .sequence = sequence,
                                          .written_offset = 99};
}

static void prepare(struct request *request, const char *producer, uint64_t owner) {
    *request = (struct request){.produce = {.topic = esk_slice_text("orders"),
                                            .producer_id = esk_slice_text(producer),
                                            .owner = owner,
                                            .done = produced}};
    request->produce.records = request->records;
}

static void begin(struct scene *scene, struct request *request, uint32_t from) {
    esk_broker_produce(shard(scene, from), &request->produce);
}

static enum esk_err end(struct scene *scene, struct request *request) {
    run_all(scene->world);
    assert_int_equal(request->done, 1);
    return request->err;
}

/* One record; whether it is a duplicate, or -1 with an error. */
static int one(struct scene *scene, const char *producer, uint64_t owner, int32_t partition,
               int64_t sequence, uint64_t *offset) {
    struct request request;
    prepare(&request, producer, owner);
    add(&request, partition, sequence);
    begin(scene, &request, (uint32_t)sequence);
    enum esk_err err = end(scene, &request);
    *offset = request.records[0].written_offset;
    scene->error = request.produce.error;
    scene->error.code = err;
    return err == ESK_OK ? request.records[0].duplicate : -1;
}

static void expect(struct scene *scene, const char *producer, int32_t partition, int64_t sequence,
                   bool duplicate, uint64_t at) {
    uint64_t offset;
    assert_int_equal(one(scene, producer, 0, partition, sequence, &offset), duplicate);
    assert_int_equal(offset, at);
}

static void expect_error(struct scene *scene, const char *producer, uint64_t owner,
                         int32_t partition, int64_t sequence, enum esk_err err, const char *text) {
    uint64_t offset;
    assert_int_equal(one(scene, producer, owner, partition, sequence, &offset), -1);
    assert_int_equal(scene->error.code, err);
    assert_non_null(strstr(scene->error.text, text));
}

static void listed(struct esk_producer_list *list, enum esk_err err) {
    assert_int_equal(err, ESK_OK);
    assert_non_null(list->internal);
}

static struct esk_producer_list list(struct scene *scene) {
    struct esk_producer_list list = {.done = listed};
    esk_broker_producer_list(shard(scene, 1), &list);
    run_all(scene->world);
    assert_non_null(list.internal);
    return list;
}

static void removed(struct esk_producer_removal *removal, enum esk_err err) {
    removal->error.code = err;
    removal->internal = removal;
}

static enum esk_err forget(struct scene *scene, const char *producer) {
    struct esk_producer_removal removal = {.producer_id = esk_slice_text(producer),
                                           .done = removed};
    esk_broker_producer_remove(shard(scene, 1), &removal);
    run_all(scene->world);
    assert_ptr_equal(removal.internal, &removal);
    return removal.error.code;
}

/* --- requests over several partitions --- */

static void a_request_over_shards_is_written_as_a_whole_or_not_at_all(void **state) {
    struct scene *scene = *state;
    struct request request;
    prepare(&request, "svc", 0);
    for (int32_t partition = 3; partition >= 0; partition--) {
        add(&request, partition, 10);
        add(&request, partition, 11);
    }
    begin(scene, &request, 0);
    assert_true(esk_broker_produce_waits(&request.produce));
    assert_int_equal(end(scene, &request), ESK_OK);
    for (uint32_t i = 0; i < RECORDS_MAX; i++) {
        assert_int_equal(request.records[i].written_offset, i % 2);
        assert_false(request.records[i].duplicate);
    }
    for (int32_t wrong = 0; wrong < 4; wrong++) { /* each of them may be the one */
        prepare(&request, "svc", 0);
        for (int32_t partition = 0; partition < 4; partition++) {
            add(&request, partition, partition == wrong ? 13 : 12);
        }
        begin(scene, &request, 1);
        assert_int_equal(end(scene, &request), ESK_ERR_SEQUENCE_GAP);
        assert_non_null(strstr(request.produce.error.text, "sequence gap: records["));
    }
    for (int32_t partition = 0; partition < 4; partition++) {
        expect(scene, "svc", partition, 12, false, 2);
        expect(scene, "svc", partition, 11, true, 1);
    }
    expect_error(scene, "svc", 0, 2, 9, ESK_ERR_SEQUENCE_TOO_LOW, "sequence too low: records[0]");
}

static void two_requests_that_cross_do_not_wait_for_each_other(void **state) {
    struct scene *scene = *state;
    struct request requests[6];
    uint64_t ignored;
    for (int32_t partition = 0; partition < 4; partition++) {
        assert_int_equal(one(scene, "svc", 0, partition, 0, &ignored), 0);
    }
    for (int i = 0; i < 6; i++) { /* the same sequences, in another order each time */
        prepare(&requests[i], "svc", 0);
        for (int32_t p = 0; p < 4; p++) {
            add(&requests[i], (p * (i % 2 ? 1 : 3) + i) % 4, 1);
        }
        begin(scene, &requests[i], (uint32_t)i);
    }
    run_all(scene->world);
    unsigned duplicates = 0;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(requests[i].done, 1);
        assert_int_equal(requests[i].err, ESK_OK);
        for (int r = 0; r < 4; r++) {
            assert_int_equal(requests[i].records[r].written_offset, 1);
            duplicates += requests[i].records[r].duplicate;
        }
    }
    assert_int_equal(duplicates, 20); /* of 24 */
}

/* One that waits for its turn at its first partition is not overtaken at its second. */
static void requests_of_a_producer_keep_their_order_in_every_partition(void **state) {
    struct scene *scene = *state;
    struct request first, second;
    for (int32_t partition = 0; partition < 4; partition += 2) { /* of one shard */
        expect(scene, "svc", partition, 0, false, 0);
    }
    struct esk_broker_shard *owner = shard(scene, 0);
    const struct esk_topic *topic = eski_serving_topic(owner, esk_slice_text("orders"));
    owner = eski_owner(scene->broker, topic->first_group);
    struct esk_sequences holder = {
        .producer_id = esk_producer_find(&owner->catalogue.producers, esk_slice_text("svc"))->id};
    assert_true(esk_sequences_take(esk_shard_find(owner->log, topic->first_group), &holder));
    prepare(&first, "svc", 0);
    add(&first, 0, 1);
    add(&first, 2, 1);
    begin(scene, &first, 1);
    prepare(&second, "svc", 0);
    add(&second, 2, 2);
    begin(scene, &second, 1);
    run_all(scene->world);
    assert_int_equal(first.done + second.done, 0);
    esk_sequences_release(&holder);
    assert_int_equal(end(scene, &first), ESK_OK);
    assert_int_equal(end(scene, &second), ESK_OK);
    assert_int_equal(second.records[0].written_offset, 2);
}

static void retries_and_new_records_mix(void **state) {
    struct scene *scene = *state;
    struct request request;
    static uint8_t large[150000];
    const struct esk_produce_header headers[] = {{esk_slice_text("h"), esk_slice_text("v")},
                                                 {esk_slice_text("n"), {NULL, 0}}};
    expect(scene, "svc", 1, 5, false, 0);
    for (int round = 0; round < 2; round++) { /* small, then what a helper filters */
        prepare(&request, "svc", 0);
        const int64_t first = 5 + 2 * round;
        const int64_t sequences[] = {first, first + 1, first, first + 2};
        for (int i = 0; i < 4; i++) {
            add(&request, 1, sequences[i]);
            request.records[i].headers = headers;
            request.records[i].header_count = 2;
            if (round > 0) {
                request.records[i].value = esk_slice(large, sizeof(large));
            }
        }
        begin(scene, &request, 0);
        assert_int_equal(end(scene, &request), ESK_OK);
        const uint64_t offsets[] = {0, 1, 0, 2};
        const bool duplicates[] = {true, false, true, false};
        for (int i = 0; i < 4; i++) {
            assert_int_equal(request.records[i].written_offset, offsets[i] + 2 * (uint64_t)round);
            assert_int_equal(request.records[i].duplicate, duplicates[i]);
        }
    }
    restart(scene);
    expect(scene, "svc", 1, 9, true, 4);
    expect(scene, "svc", 1, 10, false, 5);
}

static void fields_go_together(void **state) {
    struct scene *scene = *state;
    struct request request;
    expect_error(scene, "svc", 0, 0, -1, ESK_ERR_INVALID, "records[0].sequence is required");
    expect_error(scene, "svc", 0, ESK_PARTITION_ANY, 1, ESK_ERR_INVALID, "partition or a key");
    expect_error(scene, "", 0, 0, 1, ESK_ERR_INVALID, "producer_id");
    expect_error(scene, "svc", 0, 9, 1, ESK_ERR_NOT_FOUND, "has no partition 9");
    prepare(&request, "", 0);
    request.produce.producer_id = (struct esk_slice){NULL, 0};
    add(&request, 0, 4);
    begin(scene, &request, 0);
    assert_int_equal(end(scene, &request), ESK_ERR_INVALID);
    assert_non_null(strstr(request.produce.error.text, "needs a producer_id"));
    struct esk_producer_list producers = list(scene);
    assert_int_equal(producers.count, 0); /* none of these made one */
    esk_producer_list_fini(&producers);
}

/* --- names --- */

static void the_first_use_waits_and_later_ones_do_not(void **state) {
    struct scene *scene = *state;
    struct request first, second, third;
    prepare(&first, "svc", 0);
    add(&first, 0, 0);
    prepare(&second, "svc", 0);
    add(&second, 0, 0);
    prepare(&third, "svc", 0);
    add(&third, 0, 1);
    begin(scene, &first, 0);
    begin(scene, &second, 1);
    assert_true(esk_broker_produce_waits(&first.produce));
    assert_int_equal(end(scene, &first), ESK_OK);
    assert_int_equal(end(scene, &second), ESK_OK);
    assert_int_equal(first.records[0].duplicate + second.records[0].duplicate, 1);
    begin(scene, &third, 1);
    assert_false(esk_broker_produce_waits(&third.produce));
    assert_int_equal(end(scene, &third), ESK_OK);
    assert_int_equal(third.records[0].written_offset, 1);
}

static void an_id_belongs_to_the_key_that_used_it_first(void **state) {
    struct scene *scene = *state;
    uint64_t offset;
    assert_int_equal(one(scene, "mine", 7, 0, 0, &offset), 0);
    expect_error(scene, "mine", 8, 0, 1, ESK_ERR_FORBIDDEN, "belongs to another key");
    expect_error(scene, "mine", 0, 0, 1, ESK_ERR_FORBIDDEN, "belongs to another key");
    assert_int_equal(one(scene, "mine", 7, 0, 1, &offset), 0);
    assert_int_equal(one(scene, "nobodys", 0, 0, 0, &offset), 0);
    assert_int_equal(one(scene, "nobodys", 7, 0, 0, &offset), 1); /* passes to the first key */
    expect_error(scene, "nobodys", 0, 0, 1, ESK_ERR_FORBIDDEN, "belongs to another key");
    restart(scene);
    expect_error(scene, "nobodys", 8, 0, 1, ESK_ERR_FORBIDDEN, "belongs to another key");
    assert_int_equal(one(scene, "nobodys", 7, 0, 1, &offset), 0);
}

static void the_10001st_id_of_a_key_is_refused(void **state) {
    struct scene *scene = *state;
    static struct request requests[100];
    char names[100][16];
    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 100; i++) {
            snprintf(names[i], sizeof(names[i]), "svc-%d", round * 100 + i);
            prepare(&requests[i], names[i], 7);
            add(&requests[i], 0, 0);
            begin(scene, &requests[i], (uint32_t)i);
        }
        for (int i = 0; i < 100; i++) {
            assert_int_equal(end(scene, &requests[i]), ESK_OK);
        }
    }
    uint64_t offset;
    expect_error(scene, "one-more", 7, 0, 0, ESK_ERR_FORBIDDEN, "10000 producer ids");
    assert_int_equal(one(scene, "one-more", 8, 0, 0, &offset), 0);
    assert_int_equal(one(scene, "svc-17", 7, 0, 1, &offset), 0);
    expect(scene, "anonymous", 0, 0, false, 10002);
    expect_error(scene, "anonymous", 7, 0, 1, ESK_ERR_FORBIDDEN, "10000 producer ids");
    restart(scene);
    struct esk_producer_list producers = list(scene);
    assert_int_equal(producers.count, 10002);
    for (size_t i = 1; i < producers.count; i++) {
        assert_true(
            strcmp(producers.producers[i - 1].producer_id, producers.producers[i].producer_id) < 0);
        assert_int_equal(producers.producers[i].partition_count, 1);
    }
    esk_producer_list_fini(&producers);
    assert_int_equal(forget(scene, "svc-9999"), ESK_OK);
    assert_int_equal(one(scene, "another", 7, 0, 0, &offset), 0);
}

static void forgetting_takes_sequences_everywhere(void **state) {
    struct scene *scene = *state;
    for (int32_t partition = 0; partition < 4; partition++) {
        expect(scene, "svc", partition, 5, false, 0);
    }
    expect(scene, "other", 0, 1, false, 1);
    struct esk_producer_list producers = list(scene);
    assert_int_equal(producers.count, 2);
    const struct esk_producer_entry *entry = &producers.producers[1];
    assert_string_equal(entry->producer_id, "svc");
    assert_int_equal(entry->owner, 0);
    assert_true(entry->numeric_id >= 1000 && entry->numeric_id < 2000);
    assert_int_equal(entry->partition_count, 4);
    for (uint32_t partition = 0; partition < 4; partition++) {
        assert_string_equal(entry->partitions[partition].topic, "orders");
        assert_int_equal(entry->partitions[partition].partition, partition);
        assert_int_equal(entry->partitions[partition].last_sequence, 5);
    }
    uint64_t numeric_id = entry->numeric_id;
    esk_producer_list_fini(&producers);
    assert_int_equal(forget(scene, "unknown"), ESK_ERR_NOT_FOUND);
    assert_int_equal(forget(scene, "svc"), ESK_OK);
    assert_int_equal(forget(scene, "svc"), ESK_ERR_NOT_FOUND);
    producers = list(scene);
    assert_int_equal(producers.count, 1);
    esk_producer_list_fini(&producers);
    expect(scene, "svc", 2, 3, false, 1); /* a new one */
    restart(scene);
    producers = list(scene);
    assert_true(producers.producers[1].numeric_id > numeric_id);
    assert_int_equal(producers.producers[1].partition_count, 1);
    esk_producer_list_fini(&producers);
    expect(scene, "svc", 2, 3, true, 1);
    expect(scene, "other", 0, 1, true, 1);
}

static void a_deleted_topic_takes_sequences_along(void **state) {
    struct scene *scene = *state;
    expect(scene, "svc", 2, 7, false, 0);
    struct esk_topic_operation operation = {.name = esk_slice_text("orders"),
                                            .done = topic_changed};
    esk_broker_topic_delete(shard(scene, 0), &operation);
    run_all(scene->world);
    struct esk_producer_list producers = list(scene);
    assert_int_equal(producers.count, 1);
    assert_int_equal(producers.producers[0].partition_count, 0);
    esk_producer_list_fini(&producers);
    create_topic(scene);
    expect(scene, "svc", 2, 3, false, 0);
}

static void what_is_not_used_for_a_week_is_forgotten(void **state) {
    struct scene *scene = *state;
    expect(scene, "idle", 0, 5, false, 0);
    expect(scene, "busy", 0, 5, false, 1);
    int64_t sequence = 6;
    for (int day = 0; day < 6; day++) {
        advance(scene->world, DAY_NS);
        expect(scene, "busy", 0, sequence, false, (uint64_t)sequence - 4);
        sequence++;
    }
    expect(scene, "idle", 0, 5, true, 0); /* still known, and used */
    for (int day = 0; day < 8; day++) {
        if (day == 3) {
            restart(scene); /* what is known of uses survives it */
        }
        advance(scene->world, DAY_NS);
        expect(scene, "busy", 0, sequence, false, (uint64_t)sequence - 4);
        sequence++;
    }
    struct esk_producer_list producers = list(scene);
    assert_int_equal(producers.count, 1);
    assert_string_equal(producers.producers[0].producer_id, "busy");
    assert_int_equal(producers.producers[0].last_used_ms, wall_ms(NULL));
    esk_producer_list_fini(&producers);
    expect(scene, "busy", 0, sequence - 1, true, (uint64_t)sequence - 5);
    expect(scene, "idle", 0, 0, false, (uint64_t)sequence - 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_request_over_shards_is_written_as_a_whole_or_not_at_all,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(two_requests_that_cross_do_not_wait_for_each_other, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(requests_of_a_producer_keep_their_order_in_every_partition,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(retries_and_new_records_mix, setup, teardown),
        cmocka_unit_test_setup_teardown(fields_go_together, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_use_waits_and_later_ones_do_not, setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_belongs_to_the_key_that_used_it_first, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_10001st_id_of_a_key_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(forgetting_takes_sequences_everywhere, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deleted_topic_takes_sequences_along, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_not_used_for_a_week_is_forgotten, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
