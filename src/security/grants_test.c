/* SPDX-License-Identifier: Apache-2.0 */
/* The prefix rule, by the examples of the specification and against a naive model of it; grants
 * that include each other; what is no grant. */
#include "security/grants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static bool covers(const char *prefix, const char *topic) {
    return esk_prefix_covers(esk_slice_text(prefix), esk_slice_text(topic));
}

static void a_prefix_covers_the_topic_and_those_below_it(void **state) {
    (void)state;
    assert_true(covers("orders", "orders"));
    assert_true(covers("orders", "orders.eu"));
    assert_true(covers("orders", "orders-archive"));
    assert_true(covers("orders", "orders_old"));
    assert_false(covers("orders", "ordersecret"));
    assert_false(covers("orders", "order"));
    assert_true(covers("orders.", "orders.eu"));
    assert_true(covers("orders.", "orders."));
    assert_true(covers("orders.", "orders.eucalyptus"));
    assert_false(covers("orders.", "orders"));
    assert_false(covers("orders.", "orders-eu"));
    assert_true(covers("*", "anything"));
    assert_false(covers("", "anything"));
}

/* The rule as the specification says it, by making the beginnings that a topic may have. */
static bool model(const char *prefix, const char *topic) {
    char beginning[32];
    if (strcmp(prefix, "*") == 0 || strcmp(prefix, topic) == 0) {
        return true;
    }
    size_t size = strlen(prefix);
    if (size > 0 && strchr(".-_", prefix[size - 1]) && strncmp(topic, prefix, size) == 0) {
        return true;
    }
    for (const char *separator = ".-_"; *separator && size > 0; separator++) {
        (void)snprintf(beginning, sizeof beginning, "%s%c", prefix, *separator);
        if (strncmp(topic, beginning, strlen(beginning)) == 0) {
            return true;
        }
    }
    return false;
}

static void random_name(char name[8], const char *letters, size_t size_max) {
    size_t size = (size_t)rand() % (size_max + 1);
    for (size_t i = 0; i < size; i++) {
        name[i] = letters[(size_t)rand() % strlen(letters)];
    }
    name[size] = '\0';
}

static void the_rule_is_the_model_s(void **state) {
    (void)state;
    unsigned covered = 0;
    srand(7);
    for (unsigned i = 0; i < 300000; i++) {
        char prefix[8];
        char topic[8];
        random_name(prefix, "ab.-_", 4);
        random_name(topic, "ab.-_", 6);
        if (i % 50 == 0) {
            strcpy(prefix, "*");
        }
        if (*topic == '\0') { /* there is no such topic */
            strcpy(topic, "a");
        }
        covered += covers(prefix, topic);
        if (covers(prefix, topic) != model(prefix, topic)) {
            fail_msg("prefix '%s', topic '%s'", prefix, topic);
        }
    }
    assert_in_range(covered, 10000, 290000); /* both answers are met */
}

static void read_is_part_of_write_and_both_of_admin(void **state) {
    (void)state;
    const struct esk_slice topic = esk_slice_text("orders.eu");
    for (enum esk_action has = ESK_ACTION_READ; has <= ESK_ACTION_ADMIN; has++) {
        const struct esk_grant grants[] = {
            {ESK_ACTION_READ, esk_slice_text("other")},
            {has, has == ESK_ACTION_ADMIN ? esk_slice_text("*") : esk_slice_text("orders")},
        };
        for (enum esk_action asked = ESK_ACTION_READ; asked <= ESK_ACTION_ADMIN; asked++) {
            assert_int_equal(esk_grants_allow(grants, 2, asked, topic), asked <= has);
        }
    }
    assert_false(esk_grants_allow(NULL, 0, ESK_ACTION_READ, topic));
}

static void what_is_no_grant_is_refused_by_name(void **state) {
    (void)state;
    char long_prefix[ESK_GRANT_PREFIX_BYTES_MAX + 2];
    memset(long_prefix, 'a', sizeof long_prefix - 1);
    long_prefix[sizeof long_prefix - 1] = '\0';
    const struct {
        enum esk_action action;
        const char *prefix;
        bool valid;
    } examples[] = {
        {ESK_ACTION_READ, "orders", true},
        {ESK_ACTION_WRITE, "orders.", true},
        {ESK_ACTION_ADMIN, "*", true},
        {ESK_ACTION_READ, "*", true},
        {ESK_ACTION_READ, long_prefix + 1, true},
        {ESK_ACTION_READ, long_prefix, false},
        {ESK_ACTION_READ, "", false},
        {ESK_ACTION_ADMIN, "orders", false},
        {ESK_ACTION_READ, "orders*", false},
        {ESK_ACTION_READ, "a b", false},
        {ESK_ACTION_READ, "\xc3\xa9", false},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct esk_grant grant = {examples[i].action, esk_slice_text(examples[i].prefix)};
        struct esk_error error = {0};
        enum esk_err err = esk_grant_check(&grant, &error);
        assert_int_equal(err, examples[i].valid ? ESK_OK : ESK_ERR_INVALID);
        assert_int_equal(strncmp(error.text, "topic_prefix", 12) == 0, !examples[i].valid);
    }
    const struct esk_grant nul = {ESK_ACTION_READ, esk_slice("a\0b", 3)};
    assert_int_equal(esk_grant_check(&nul, NULL), ESK_ERR_INVALID);
}

static void actions_have_names(void **state) {
    (void)state;
    enum esk_action action;
    for (enum esk_action i = ESK_ACTION_READ; i <= ESK_ACTION_ADMIN; i++) {
        assert_true(esk_action_parse(esk_slice_text(esk_action_name(i)), &action));
        assert_int_equal(action, i);
    }
    assert_false(esk_action_parse(esk_slice_text("Read"), &action));
    assert_false(esk_action_parse(esk_slice_text(""), &action));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prefix_covers_the_topic_and_those_below_it),
        cmocka_unit_test(the_rule_is_the_model_s),
        cmocka_unit_test(read_is_part_of_write_and_both_of_admin),
        cmocka_unit_test(what_is_no_grant_is_refused_by_name),
        cmocka_unit_test(actions_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
