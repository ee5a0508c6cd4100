/* SPDX-License-Identifier: Apache-2.0 */
#include "server/connection/addresses.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void each_address_has_a_bound_of_its_own(void **state) {
    (void)state;
    struct esk_addresses *addresses = esk_addresses_create(2);
    struct esk_peer one = {{1}};
    struct esk_peer other = {{2}};
    assert_true(esk_addresses_enter(addresses, &one));
    assert_true(esk_addresses_enter(addresses, &one));
    assert_false(esk_addresses_enter(addresses, &one));
    assert_true(esk_addresses_enter(addresses, &other));
    esk_addresses_leave(addresses, &one);
    assert_true(esk_addresses_enter(addresses, &one));
    assert_false(esk_addresses_enter(addresses, &one));
    esk_addresses_leave(addresses, &one);
    esk_addresses_leave(addresses, &one);
    esk_addresses_leave(addresses, &other);
    esk_addresses_destroy(addresses); /* which insists that all have left */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_address_has_a_bound_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
