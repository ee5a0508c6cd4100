/* SPDX-License-Identifier: Apache-2.0 */
/* Producers in the catalogue: ids from blocks, each once; owners; order of use; and that a snapshot
 * makes the same state anew. */
#include "cluster/producers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static enum esk_err apply(struct esk_producers *producers, struct esk_catalogue_change change) {
    struct esk_error error;
    return esk_producers_apply(producers, &change, &error);
}

static enum esk_err block(struct esk_producers *producers, uint64_t first, uint8_t names) {
    return apply(producers, (struct esk_catalogue_change){
                                .kind = ESK_CATALOGUE_PRODUCER_BLOCK,
                                .producer_block = {first, ESK_PRODUCER_BLOCK, names}});
}

static enum esk_err create(struct esk_producers *producers, uint64_t id, uint64_t owner,
                           const char *name) {
    return apply(producers, (struct esk_catalogue_change){
                                .kind = ESK_CATALOGUE_PRODUCER_CREATED,
                                .producer_created = {id, owner, 5, esk_slice_text(name)}});
}

static enum esk_err forget(struct esk_producers *producers, uint64_t id) {
    uint8_t bytes[8];
    esk_store_u64(bytes, id);
    return apply(producers,
                 (struct esk_catalogue_change){.kind = ESK_CATALOGUE_PRODUCERS_FORGOTTEN,
                                               .producers_forgotten = {esk_slice(bytes, 8)}});
}

static enum esk_err use(struct esk_producers *producers, uint64_t id, int64_t now_ms) {
    uint8_t bytes[8];
    esk_store_u64(bytes, id);
    return apply(producers,
                 (struct esk_catalogue_change){.kind = ESK_CATALOGUE_PRODUCERS_USED,
                                               .producers_used = {now_ms, esk_slice(bytes, 8)}});
}

static struct esk_producer *find(const struct esk_producers *producers, const char *name) {
    return esk_producer_find(producers, esk_slice_text(name));
}

static void append(void *context, struct esk_slice payload) {
    struct esk_buffer *buffer = context;
    esk_buffer_u32(buffer, (uint32_t)payload.size);
    esk_buffer_append(buffer, payload.data, payload.size);
}

static void copy(void *context, struct esk_slice payload) {
    struct esk_catalogue_change change;
    assert_int_equal(esk_catalogue_decode(payload, &change, NULL), ESK_OK);
    assert_int_equal(esk_producers_apply(context, &change, NULL), ESK_OK);
}

/* The state, made anew from its snapshot, has the same snapshot. */
static void check_snapshot(const struct esk_producers *producers) {
    struct esk_producers again;
    struct esk_buffer first, second;
    esk_buffer_init(&first);
    esk_buffer_init(&second);
    esk_producers_init(&again);
    esk_producers_snapshot(producers, append, &first);
    esk_producers_snapshot(producers, copy, &again);
    esk_producers_snapshot(&again, append, &second);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.data, second.data, first.size);
    assert_true(again.next_block == producers->next_block && again.next_id == producers->next_id);
    assert_int_equal(esk_producers_owned(&again, 7), esk_producers_owned(producers, 7));
    esk_producers_fini(&again);
    esk_buffer_fini(&first);
    esk_buffer_fini(&second);
}

static void ids_come_from_blocks_and_never_twice(void **state) {
    struct esk_producers producers;
    (void)state;
    esk_producers_init(&producers);
    assert_int_equal(create(&producers, 1000, 0, "early"), ESK_ERR_CORRUPT); /* no block yet */
    assert_int_equal(block(&producers, 1000, 1), ESK_OK);
    assert_int_equal(block(&producers, 1000, 0), ESK_ERR_CORRUPT);
    assert_int_equal(block(&producers, 2000, 0), ESK_OK); /* a client's */
    assert_int_equal(create(&producers, 1000, 0, "a"), ESK_OK);
    assert_int_equal(create(&producers, 1000, 0, "b"), ESK_ERR_CORRUPT);
    assert_int_equal(create(&producers, 1002, 0, "b"), ESK_ERR_CORRUPT);
    assert_int_equal(create(&producers, 1001, 0, "a"), ESK_ERR_CORRUPT);
    assert_int_equal(create(&producers, 1001, 0, "b"), ESK_OK);
    assert_int_equal(forget(&producers, 1001), ESK_OK);
    assert_int_equal(forget(&producers, 1001), ESK_ERR_CORRUPT);
    check_snapshot(&producers);
    assert_int_equal(create(&producers, 1002, 0, "b"), ESK_OK); /* another id */
    for (uint64_t id = 1003; id < 2000; id++) {
        char name[16];
        snprintf(name, sizeof(name), "p%llu", (unsigned long long)id);
        assert_int_equal(create(&producers, id, 0, name), ESK_OK);
    }
    assert_int_equal(create(&producers, 2000, 0, "z"), ESK_ERR_CORRUPT); /* that is the client's */
    assert_int_equal(block(&producers, 3000, 1), ESK_OK);
    assert_int_equal(create(&producers, 3000, 0, "z"), ESK_OK);
    check_snapshot(&producers);
    esk_producers_fini(&producers);
}

static void owners_are_counted(void **state) {
    struct esk_producers producers;
    (void)state;
    esk_producers_init(&producers);
    assert_int_equal(block(&producers, 1000, 1), ESK_OK);
    assert_int_equal(create(&producers, 1000, 0, "a"), ESK_OK);
    assert_int_equal(create(&producers, 1001, 7, "b"), ESK_OK);
    assert_int_equal(esk_producers_owned(&producers, 7), 1);
    assert_int_equal(
        apply(&producers, (struct esk_catalogue_change){.kind = ESK_CATALOGUE_PRODUCER_OWNED,
                                                        .producer_owned = {1000, 7}}),
        ESK_OK);
    assert_int_equal(esk_producers_owned(&producers, 7), 2);
    assert_int_equal(esk_producers_owned(&producers, 0), 0);
    assert_int_equal(find(&producers, "a")->owner, 7);
    check_snapshot(&producers);
    assert_int_equal(forget(&producers, 1000), ESK_OK);
    assert_int_equal(esk_producers_owned(&producers, 7), 1);
    assert_null(find(&producers, "a"));
    assert_null(esk_producer_by_id(&producers, 1000));
    esk_producers_fini(&producers);
}

static void the_longest_unused_comes_first(void **state) {
    struct esk_producers producers;
    (void)state;
    esk_producers_init(&producers);
    assert_int_equal(block(&producers, 1000, 1), ESK_OK);
    assert_int_equal(create(&producers, 1000, 7, "a"), ESK_OK);
    assert_int_equal(create(&producers, 1001, 7, "b"), ESK_OK);
    assert_int_equal(create(&producers, 1002, 7, "c"), ESK_OK);
    assert_int_equal(use(&producers, 1000, 100), ESK_OK);
    assert_int_equal(use(&producers, 1003, 100), ESK_ERR_CORRUPT);
    assert_int_equal(find(&producers, "a")->used_ms, 100);
    const char *const order[] = {"b", "c", "a"};
    size_t i = 0;
    for (const struct esk_link *link = producers.recent.next; link != &producers.recent;
         link = link->next) {
        assert_string_equal(ESK_CONTAINER(link, struct esk_producer, recent)->name, order[i++]);
    }
    assert_int_equal(i, 3);
    check_snapshot(&producers);
    esk_producers_fini(&producers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_come_from_blocks_and_never_twice),
        cmocka_unit_test(owners_are_counted),
        cmocka_unit_test(the_longest_unused_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
