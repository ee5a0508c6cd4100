/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a target: percent-encoded pieces and query parameters. Pure. */
#ifndef ESK_WIRE_HTTP_TARGET_H
#define ESK_WIRE_HTTP_TARGET_H

#include "base/memory.h"

/* Decodes %XX. Without an escape the result is the input itself; else a copy in the arena. false:
 * a % without two hex digits, or the arena is at its limit. */
bool esk_http_percent_decode(struct esk_slice encoded, struct esk_arena *arena,
                             struct esk_slice *decoded);

/* The next "name=value" of a query, taken off its front; false at the end. Both are still encoded;
 * a parameter without "=" has an empty value. Empty pieces are passed over. */
bool esk_http_query_next(struct esk_slice *query, struct esk_slice *name, struct esk_slice *value);

/* As esk_http_percent_decode, and "+" is a space. */
bool esk_http_query_decode(struct esk_slice encoded, struct esk_arena *arena,
                           struct esk_slice *decoded);

#endif
