/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed assertion does: state may be wrong, so the process says where and ends. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void esk_assert_fail(const char *file, int line, const char *condition) {
    fprintf(stderr, "esker: assertion failed: %s (%s:%d)\n", condition, file, line);
    fflush(stderr);
    abort();
}
