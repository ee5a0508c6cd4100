/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets, ids, and how long a key and its usage stay. */
#include "security/key.h"

#include "security/usage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_secret_is_its_bits_in_base64url(void **state) {
    (void)state;
    uint8_t bits[ESK_SECRET_RANDOM_BYTES] = {0};
    char secret[ESK_SECRET_BYTES];
    esk_secret_format(bits, secret);
    assert_string_equal(secret, "esk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    for (size_t i = 0; i < sizeof bits; i++) {
        bits[i] = (uint8_t)(i * 7 + 3);
    }
    esk_secret_format(bits, secret); /* as Python's base64.urlsafe_b64encode has it */
    assert_string_equal(secret, "esk_AwoRGB8mLTQ7QklQV15lbHN6gYiPlp2kq7K5wMfO1dw");
    memset(bits, 0xff, sizeof bits);
    esk_secret_format(bits, secret);
    assert_string_equal(secret, "esk___________________________________________8");
}

static void a_hash_is_sha_256(void **state) {
    (void)state;
    static const uint8_t expected[ESK_SECRET_HASH_BYTES] = {
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40,
        0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17,
        0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    uint8_t hash[ESK_SECRET_HASH_BYTES];
    esk_secret_hash(esk_slice_text("abc"), hash);
    assert_memory_equal(hash, expected, sizeof hash);
}

static void secrets_are_compared_to_the_last_bit(void **state) {
    (void)state;
    uint8_t a[47];
    uint8_t b[47];
    for (size_t size = 0; size <= sizeof a; size++) {
        for (size_t i = 0; i < size; i++) {
            memset(a, 'x', sizeof a);
            memset(b, 'x', sizeof b);
            assert_true(esk_secret_equal(a, b, size));
            b[i] ^= 1;
            assert_false(esk_secret_equal(a, b, size));
        }
    }
}

static void an_id_is_read_as_it_is_written(void **state) {
    (void)state;
    const uint64_t ids[] = {1, UINT64_MAX, UINT64_C(0x9f00000000000abc)};
    char text[ESK_KEY_ID_BYTES];
    uint64_t id;
    for (size_t i = 0; i < 3; i++) {
        esk_key_id_format(ids[i], text);
        assert_true(esk_key_id_parse(esk_slice_text(text), &id));
        assert_true(id == ids[i]);
    }
    assert_string_equal(text, "k_9f00000000000abc");
    const char *const wrong[] = {"",
                                 "k_",
                                 "k_0000000000000000",
                                 "k_9F00000000000abc",
                                 "k_9f00",
                                 "9f00000000000abc00",
                                 "k_9f00000000000abcd"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(esk_key_id_parse(esk_slice_text(wrong[i]), &id));
    }
    assert_false(esk_key_id_parse(esk_slice("k_\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 18), &id));
}

static void a_key_s_copies_share_its_usage(void **state) {
    (void)state;
    struct esk_usage_registry *registry = esk_usage_registry_create();
    const struct esk_grant grants[] = {{ESK_ACTION_READ, esk_slice_text("orders")},
                                       {ESK_ACTION_ADMIN, esk_slice_text("*")}};
    char name[] = "reader";
    const struct esk_key_description description = {
        .id = 5, .owner = 5, .name = esk_slice_text(name), .grants = grants, .grant_count = 2};
    struct esk_key *one = esk_key_create(&description, esk_usage_find(registry, 5, 10, 0));
    struct esk_key *two = esk_key_create(&description, esk_usage_find(registry, 5, 10, 0));
    memset(name, '?', sizeof name - 1); /* a key keeps what it was made of */
    assert_true(esk_slice_equal(one->about.name, esk_slice_text("reader")));
    assert_true(esk_slice_equal(one->about.grants[0].prefix, esk_slice_text("orders")));
    assert_true(one->admin);
    assert_ptr_equal(one->usage, two->usage);
    assert_int_equal(one->usage->produce_rate, 10);
    struct esk_usage *before = esk_usage_find(registry, 5, 0, 0);
    esk_key_release(esk_key_hold(one)); /* still in use */
    esk_key_release(one);
    esk_key_release(two);
    atomic_store(&before->throttled, 3);
    esk_usage_release(before);
    struct esk_usage *after = esk_usage_find(registry, 5, 20, 0); /* begins anew */
    assert_int_equal(after->produce_rate, 20);
    assert_int_equal(atomic_load(&after->throttled), 0);
    esk_usage_release(after);
    esk_usage_registry_destroy(registry);
}

static unsigned calls;

static void count_call(struct esk_key_watch *watch) {
    calls++;
    esk_key_watch_end(watch);
}

static void who_watches_a_key_hears_once_of_its_revocation(void **state) {
    (void)state;
    struct esk_usage_registry *registry = esk_usage_registry_create();
    const struct esk_grant grant = {ESK_ACTION_READ, esk_slice_text("orders")};
    const struct esk_key_description description = {
        .id = 5, .owner = 5, .name = esk_slice_text("a"), .grants = &grant, .grant_count = 1};
    struct esk_key *key = esk_key_create(&description, esk_usage_find(registry, 5, 0, 0));
    struct esk_key_watch watches[3] = {0};
    esk_key_watch_end(&watches[0]); /* it has not begun */
    for (size_t i = 0; i < 3; i++) {
        watches[i].revoked = count_call;
        esk_key_watch(key, &watches[i]);
    }
    esk_key_watch_end(&watches[1]);
    calls = 0;
    esk_key_revoke(key);
    assert_int_equal(calls, 2);
    esk_key_watch(key, &watches[1]); /* at once, now */
    assert_int_equal(calls, 3);
    for (size_t i = 0; i < 3; i++) {
        esk_key_watch_end(&watches[i]);
    }
    esk_key_release(key);
    esk_usage_registry_destroy(registry);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_its_bits_in_base64url),
        cmocka_unit_test(a_hash_is_sha_256),
        cmocka_unit_test(secrets_are_compared_to_the_last_bit),
        cmocka_unit_test(an_id_is_read_as_it_is_written),
        cmocka_unit_test(a_key_s_copies_share_its_usage),
        cmocka_unit_test(who_watches_a_key_hears_once_of_its_revocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
