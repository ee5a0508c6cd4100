/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/http/token.h"

#include <strings.h>

#define SCHEME "bearer"
#define SCHEME_BYTES (sizeof(SCHEME) - 1)
#define LOWER_CASE UINT64_C(0x2020202020202020) /* of letters and '-'; names are tokens */

/* Whether the bytes are the letters of `lower_case`, in either case; size is 8 to 16. Without a
 * call: every request asks this of a few headers. */
static inline bool is_like(const uint8_t *bytes, const char *lower_case, size_t size) {
    uint64_t first, last, wanted_first, wanted_last;
    memcpy(&first, bytes, 8);
    memcpy(&last, bytes + size - 8, 8);
    memcpy(&wanted_first, lower_case, 8);
    memcpy(&wanted_last, lower_case + size - 8, 8);
    return (((first | LOWER_CASE) ^ wanted_first) | ((last | LOWER_CASE) ^ wanted_last)) == 0;
}

/* What stands behind "Bearer" and white space; size 0: another scheme. */
static struct esk_slice bearer(struct esk_slice value) {
    if (value.size > 7 && memcmp(value.data, "Bearer ", 7) == 0 && value.data[7] > ' ') {
        return esk_slice(value.data + 7, value.size - 7); /* as nearly everybody writes it */
    }
    if (value.size <= SCHEME_BYTES ||
        strncasecmp((const char *)value.data, SCHEME, SCHEME_BYTES) != 0) {
        return esk_slice(NULL, 0);
    }
    size_t skip = SCHEME_BYTES;
    while (skip < value.size && (value.data[skip] == ' ' || value.data[skip] == '\t')) {
        skip++;
    }
    return skip == SCHEME_BYTES ? esk_slice(NULL, 0)
                                : esk_slice(value.data + skip, value.size - skip);
}

enum esk_err esk_http_token_find(const struct esk_http_head *head, struct esk_slice *token,
                                 struct esk_error *error) {
    *token = esk_slice(NULL, 0);
    for (uint32_t i = 0; i < head->header_count; i++) {
        const struct esk_http_header *header = &head->headers[i];
        struct esk_slice found;
        if (header->name.size == 13 && is_like(header->name.data, "authorization", 13)) {
            found = bearer(header->value);
        } else if (header->name.size == 8 && is_like(header->name.data, "x-es-key", 8)) {
            found = header->value;
        } else {
            continue;
        }
        if (found.size == 0) {
            continue;
        }
        if (token->size != 0 && !esk_slice_equal(*token, found)) {
            return esk_fail(error, ESK_ERR_UNAUTHENTICATED,
                            "Authorization and X-Es-Key hold different keys");
        }
        *token = found;
    }
    return ESK_OK;
}
