/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as part of the catalogue: what the entries do, what does not fit, and that a snapshot makes
 * the same keys anew. */
#include "cluster/catalogue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define FIRST 17

static const struct esk_grant reads = {ESK_ACTION_READ, {(const uint8_t *)"orders.", 7}};
static const struct esk_grant administers = {ESK_ACTION_ADMIN, {(const uint8_t *)"*", 1}};

static struct esk_key_description described(uint64_t id, const struct esk_grant *grant) {
    struct esk_key_description key = {
        .id = id,
        .owner = id,
        .created_ms = 1763500000000,
        .produce_bytes_per_sec = 1000,
        .name = esk_slice_text("a key"),
        .grants = grant,
        .grant_count = 1,
    };
    memset(key.hash, (int)id, sizeof key.hash);
    return key;
}

static enum esk_err apply(struct esk_catalogue *catalogue,
                          const struct esk_catalogue_change *change) {
    struct esk_block *payload = esk_catalogue_payload(change);
    const struct esk_entry entry = {.kind = ESK_ENTRY_CATALOGUE,
                                    .payload = esk_slice(payload->data, payload->size)};
    enum esk_err err = catalogue->machine.ops->apply(&catalogue->machine, &entry, NULL);
    esk_block_release(payload);
    return err;
}

static enum esk_err create(struct esk_catalogue *catalogue, const struct esk_key_description *key) {
    struct esk_buffer grants;
    esk_buffer_init(&grants);
    const struct esk_catalogue_change change = esk_keys_creation(key, &grants);
    enum esk_err err = apply(catalogue, &change);
    esk_buffer_fini(&grants);
    return err;
}

static enum esk_err revoke(struct esk_catalogue *catalogue, uint64_t id) {
    const struct esk_catalogue_change change = {.kind = ESK_CATALOGUE_KEY_REVOKED,
                                                .key_revoked = {id}};
    return apply(catalogue, &change);
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

static void a_key_is_found_by_its_hash_until_it_is_revoked(void **state) {
    struct esk_catalogue *catalogue = *state;
    const struct esk_key_description one = described(1, &administers);
    const struct esk_key_description two = described(2, &reads);
    assert_int_equal(create(catalogue, &one), ESK_OK);
    assert_int_equal(create(catalogue, &two), ESK_OK);
    assert_int_equal(catalogue->keys.admins, 1);
    struct esk_key *key = esk_keys_find_hash(&catalogue->keys, two.hash);
    assert_non_null(key);
    assert_int_equal(key->about.id, 2);
    assert_int_equal(key->about.grant_count, 1);
    assert_false(key->admin);
    uint8_t near[ESK_SECRET_HASH_BYTES]; /* the same beginning is not enough */
    memcpy(near, two.hash, sizeof near);
    near[ESK_SECRET_HASH_BYTES - 1] ^= 1;
    assert_null(esk_keys_find_hash(&catalogue->keys, near));
    assert_true(esk_keys_hash_taken(&catalogue->keys, near));

    esk_key_hold(key); /* a request in flight */
    assert_int_equal(catalogue->keys.generation, 0);
    assert_int_equal(revoke(catalogue, 2), ESK_OK);
    assert_int_equal(catalogue->keys.generation, 1);
    assert_true(key->revoked);
    assert_null(esk_keys_find_hash(&catalogue->keys, two.hash));
    esk_key_release(key);
    assert_int_equal(revoke(catalogue, 1), ESK_OK);
    assert_int_equal(catalogue->keys.admins, 0);
}

static void what_does_not_fit_is_damage(void **state) {
    struct esk_catalogue *catalogue = *state;
    struct esk_key_description key = described(1, &reads);
    assert_int_equal(create(catalogue, &key), ESK_OK);
    assert_int_equal(create(catalogue, &key), ESK_ERR_CORRUPT); /* the id is taken */
    key.id = 2;
    assert_int_equal(create(catalogue, &key), ESK_ERR_CORRUPT); /* the hash is */
    key = described(2, &reads);
    key.grant_count = 0;
    assert_int_equal(create(catalogue, &key), ESK_ERR_CORRUPT);
    key = described(2, &reads);
    key.name = esk_slice_text("a\nb");
    assert_int_equal(create(catalogue, &key), ESK_ERR_CORRUPT);
    const struct esk_grant wrong[] = {{ESK_ACTION_ADMIN, esk_slice_text("orders")},
                                      {(enum esk_action)3, esk_slice_text("*")},
                                      {ESK_ACTION_READ, esk_slice_text("")}};
    for (size_t i = 0; i < 3; i++) {
        key = described(2, &wrong[i]);
        assert_int_equal(create(catalogue, &key), ESK_ERR_CORRUPT);
    }
    assert_int_equal(revoke(catalogue, 2), ESK_ERR_CORRUPT);
    assert_int_equal(catalogue->keys.by_id.count, 1);
}

static void collect(void *context, struct esk_slice payload) {
    struct esk_buffer *buffer = context;
    esk_buffer_u32(buffer, (uint32_t)payload.size);
    esk_buffer_append(buffer, payload.data, payload.size);
}

static void replay(struct esk_catalogue *catalogue, struct esk_slice payloads) {
    struct esk_reader reader = esk_reader(payloads);
    while (esk_reader_left(&reader) > 0) {
        struct esk_slice payload = esk_read_bytes(&reader, esk_read_u32(&reader));
        assert_int_equal(esk_catalogue_apply(catalogue, payload, NULL, NULL), ESK_OK);
    }
    assert_false(reader.failed);
}

static void a_snapshot_makes_the_same_keys(void **state) {
    struct esk_catalogue *catalogue = *state;
    for (uint64_t id = 9; id > 0; id--) {
        struct esk_key_description key = described(id, id % 2 ? &reads : &administers);
        key.owner = id > 4 ? 4 : id;
        key.replaces = id > 4 ? 4 : 0;
        assert_int_equal(create(catalogue, &key), ESK_OK);
    }
    assert_int_equal(revoke(catalogue, 3), ESK_OK);
    struct esk_buffer first;
    struct esk_buffer second;
    esk_buffer_init(&first);
    esk_buffer_init(&second);
    catalogue->machine.ops->snapshot(&catalogue->machine, collect, &first);
    struct esk_catalogue copy;
    esk_catalogue_init(&copy, FIRST);
    replay(&copy, esk_buffer_slice(&first));
    copy.machine.ops->snapshot(&copy.machine, collect, &second);
    assert_true(esk_slice_equal(esk_buffer_slice(&first), esk_buffer_slice(&second)));
    assert_int_equal(copy.keys.by_id.count, 8);
    assert_int_equal(copy.keys.admins, catalogue->keys.admins);
    assert_int_equal(esk_keys_find(&copy.keys, 9)->about.owner, 4);
    assert_int_equal(esk_keys_find(&copy.keys, 9)->about.produce_bytes_per_sec, 1000);
    esk_catalogue_fini(&copy);
    esk_buffer_fini(&first);
    esk_buffer_fini(&second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_key_is_found_by_its_hash_until_it_is_revoked, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(a_snapshot_makes_the_same_keys, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
