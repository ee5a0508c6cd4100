/* SPDX-License-Identifier: Apache-2.0 */
/* What each NAME_fuzz.c defines. It returns 0 and aborts (ESK_ASSERT) when an input makes the code
 * under test break a promise, such as a decoded value that does not encode to the same bytes. */
#ifndef ESK_TESTS_FUZZ_H
#define ESK_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
