/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions for our own bugs, on in release builds too. Input is checked with errors, never here.
 */
#ifndef ESK_BASE_ASSERT_H
#define ESK_BASE_ASSERT_H

/* Prints the place and the condition to stderr and aborts. Any thread. */
void esk_assert_fail(const char *file, int line, const char *condition) __attribute__((noreturn));

#define ESK_ASSERT(condition)                                                                      \
    (__builtin_expect(!!(condition), 1) ? (void)0 : esk_assert_fail(__FILE__, __LINE__, #condition))

#endif
