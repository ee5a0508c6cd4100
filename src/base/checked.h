/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic that reports overflow: true when the result is wrong. */
#ifndef ESK_BASE_CHECKED_H
#define ESK_BASE_CHECKED_H

#define ESK_ADD_OVERFLOWS(a, b, result) __builtin_add_overflow((a), (b), (result))
#define ESK_MULTIPLY_OVERFLOWS(a, b, result) __builtin_mul_overflow((a), (b), (result))
#define ESK_ALIGN_UP(value, alignment) (((value) + (alignment)-1) / (alignment) * (alignment))

#endif
