/* SPDX-License-Identifier: Apache-2.0 */
/* An error with the context that was wrapped around it on the way up. Codes are generated from
 * definitions/errors.toml into base/errors.h (enum esk_err, ESK_OK == 0). */
#ifndef ESK_BASE_ERROR_H
#define ESK_BASE_ERROR_H

#include "base/errors.h"

#define ESK_ERROR_TEXT_BYTES 512 /* longest text kept, with its NUL; longer ones are cut */

struct esk_error {
    enum esk_err code;
    char text[ESK_ERROR_TEXT_BYTES];
};

/* Sets code and text and returns code. error may be NULL. Any thread. */
enum esk_err esk_fail(struct esk_error *error, enum esk_err code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As esk_fail, and appends ": " and the text of errno. */
enum esk_err esk_fail_errno(struct esk_error *error, enum esk_err code, int number,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Puts "format: " before the text that is there; returns the code that is there. error may be NULL
 * only if the caller has the code itself. */
void esk_wrap(struct esk_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The code for an errno value of a file operation (ENOSPC, EDQUOT and EFBIG are ESK_ERR_NO_SPACE,
 * ENOENT is ESK_ERR_NOT_FOUND, EIO and unknown ones are ESK_ERR_IO). */
enum esk_err esk_err_from_errno(int number);

#endif
