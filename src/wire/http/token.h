/* SPDX-License-Identifier: Apache-2.0 */
/* The key of a request: "Authorization: Bearer KEY" or "X-Es-Key: KEY". Pure; any thread. */
#ifndef ESK_WIRE_HTTP_TOKEN_H
#define ESK_WIRE_HTTP_TOKEN_H

#include "wire/http/head.h"

/* The key that the head carries, in one of these headers or in several that agree; size 0: none.
 * An Authorization of another scheme counts as none (a proxy's, perhaps). It borrows from the head.
 * ESK_ERR_UNAUTHENTICATED: two different keys. */
enum esk_err esk_http_token_find(const struct esk_http_head *head, struct esk_slice *token,
                                 struct esk_error *error);

#endif
