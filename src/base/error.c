/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts: formatted where the error is found, wrapped on the way up. Texts that do not fit are
 * cut at their end, so the outermost context always stays readable. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum esk_err esk_fail(struct esk_error *error, enum esk_err code, const char *format, ...) {
    if (!error) {
        return code;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    error->code = code;
    return code;
}

enum esk_err esk_fail_errno(struct esk_error *error, enum esk_err code, int number,
                            const char *format, ...) {
    if (!error) {
        return code;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    char memory[128];
    const char *reason = strerror_r(number, memory, sizeof(memory));
    size_t length = strlen(error->text);
    snprintf(error->text + length, sizeof(error->text) - length, ": %s", reason);
    error->code = code;
    return code;
}

void esk_wrap(struct esk_error *error, const char *format, ...) {
    if (!error) {
        return;
    }
    char inner[ESK_ERROR_TEXT_BYTES];
    memcpy(inner, error->text, sizeof(inner));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof(error->text), format, arguments);
    va_end(arguments);
    size_t length = strlen(error->text);
    size_t room = sizeof(error->text) - length;
    if (room > 2) {
        memcpy(error->text + length, ": ", 3);
        size_t copied = strnlen(inner, room - 3);
        memcpy(error->text + length + 2, inner, copied);
        error->text[length + 2 + copied] = '\0';
    }
}

enum esk_err esk_err_from_errno(int number) {
    switch (number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ESK_ERR_NO_SPACE;
    case ENOENT:
        return ESK_ERR_NOT_FOUND;
    case EEXIST:
        return ESK_ERR_CONFLICT;
    case EACCES:
    case EPERM:
    case EROFS:
        return ESK_ERR_PERMISSION;
    case EAGAIN:
        return ESK_ERR_AGAIN;
    case EOPNOTSUPP:
    case ENOSYS:
        return ESK_ERR_UNSUPPORTED;
    default:
        return ESK_ERR_IO;
    }
}
