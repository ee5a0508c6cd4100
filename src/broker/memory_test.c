/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets memory, and in which order; the loop is a list of mails. */
#include "broker/broker_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define SHARE 1000
#define CLAIMS 6

static struct esk_mail *posted;
static struct esk_broker broker;
static struct esk_broker_shard shard;
static struct esk_memory_claim claims[CLAIMS];
static char order[CLAIMS + 1]; /* of grants that had to wait */

static void post(struct esk_executor *to, struct esk_mail *mail) {
    (void)to;
    assert_null(posted); /* there is one only, and it is not posted twice */
    posted = mail;
}
static bool is_current(const struct esk_executor *executor) {
    (void)executor;
    return true;
}
static const struct esk_executor_ops executor_ops = {post, is_current};
static struct esk_loop loop = {.executor = {&executor_ops}};

static void run_mails(void) {
    struct esk_mail *mail = posted;
    posted = NULL;
    if (mail) {
        mail->run(mail);
    }
}

static int begin(void **state) {
    (void)state;
    memset(&broker, 0, sizeof broker);
    memset(&shard, 0, sizeof shard);
    memset(claims, 0, sizeof claims);
    memset(order, 0, sizeof order);
    posted = NULL;
    broker.memory_share = SHARE;
    shard.broker = &broker;
    shard.loop = &loop;
    eski_memory_start(&shard);
    return 0;
}

static void granted(struct esk_memory_claim *claim) {
    order[strlen(order)] = (char)('0' + (claim - claims));
}

static bool claim(int index, enum esk_memory_kind kind, uint64_t bytes) {
    claims[index] = (struct esk_memory_claim){.kind = kind, .bytes = bytes, .granted = granted};
    return esk_broker_memory_claim(&shard, &claims[index]);
}

static void settle(int index) {
    esk_broker_memory_settle(&shard, &claims[index]);
    run_mails();
}

static uint64_t used(void) {
    return atomic_load(&shard.memory_used);
}

static void bodies_get_room_in_the_order_of_their_asking(void **state) {
    (void)state;
    assert_true(claim(0, ESK_MEMORY_BODY, 300));
    assert_false(claim(1, ESK_MEMORY_BODY, 300));
    assert_false(claim(2, ESK_MEMORY_BODY, 100)); /* would fit, but others were first */
    assert_false(claim(3, ESK_MEMORY_BODY, 400));
    assert_int_equal(used(), 300);
    settle(0);
    assert_string_equal(order, "12");
    assert_int_equal(used(), 400);
    settle(1);
    assert_string_equal(order, "123");
    settle(2);
    settle(3);
    assert_int_equal(used(), 0);
}

static void one_that_is_too_large_goes_alone(void **state) {
    (void)state;
    assert_true(claim(0, ESK_MEMORY_BODY, 5000));
    assert_int_equal(used(), SHARE / 2); /* and leaves room for small ones */
    assert_true(esk_broker_memory_take(&shard, 400));
    assert_false(esk_broker_memory_take(&shard, 200));
    assert_false(claim(1, ESK_MEMORY_BODY, 5000));
    settle(0);
    assert_string_equal(order, "1");
    assert_int_equal(used(), 400 + SHARE / 2);
    settle(1);
    esk_broker_memory_give(&shard, 400);
    assert_int_equal(used(), 0);
}

/* Bodies that hold all that bodies may, and more that small requests hold, do not keep one parser
 * from working, which is what ends them. */
static void some_parser_always_works(void **state) {
    (void)state;
    assert_true(claim(0, ESK_MEMORY_BODY, 500));
    assert_true(esk_broker_memory_take(&shard, 500));
    assert_true(claim(1, ESK_MEMORY_PARSER, 7000));
    assert_false(claim(2, ESK_MEMORY_PARSER, 10));
    assert_true(esk_broker_memory_take_more(&shard, &claims[1], 900)); /* it is the only one */
    esk_broker_memory_give(&shard, 900);
    settle(1);
    assert_string_equal(order, "2");
    settle(2);
    settle(0);
    esk_broker_memory_give(&shard, 500);
    assert_int_equal(used(), 0);
}

static void who_leaves_the_line_is_not_granted(void **state) {
    (void)state;
    assert_true(claim(0, ESK_MEMORY_BODY, 500));
    assert_false(claim(1, ESK_MEMORY_BODY, 500));
    assert_false(claim(2, ESK_MEMORY_BODY, 500));
    settle(1);
    settle(1); /* twice is harmless */
    settle(0);
    assert_string_equal(order, "2");
    settle(2);
    assert_int_equal(used(), 0);
    esk_broker_memory_settle(&shard, &claims[5]); /* one that never was */
    assert_null(posted);
}

/* What small requests give back counts, too; nobody is posted to while nobody waits. */
static void small_pieces_given_back_wake_the_line(void **state) {
    (void)state;
    assert_true(esk_broker_memory_take(&shard, 450));
    assert_true(claim(0, ESK_MEMORY_BODY, 100)); /* the first one always */
    assert_false(claim(1, ESK_MEMORY_BODY, 100));
    esk_broker_memory_give(&shard, 450);
    assert_string_equal(order, ""); /* not from inside */
    run_mails();
    assert_string_equal(order, "1");
    settle(0);
    settle(1);
    assert_true(esk_broker_memory_take(&shard, 450));
    esk_broker_memory_give(&shard, 450);
    assert_null(posted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bodies_get_room_in_the_order_of_their_asking, begin),
        cmocka_unit_test_setup(one_that_is_too_large_goes_alone, begin),
        cmocka_unit_test_setup(some_parser_always_works, begin),
        cmocka_unit_test_setup(who_leaves_the_line_is_not_granted, begin),
        cmocka_unit_test_setup(small_pieces_given_back_wake_the_line, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
