/* SPDX-License-Identifier: Apache-2.0 */
/* Room in memory for large bodies and their parsers. */
#ifndef ESK_SERVER_HTTP_ROOM_PRIVATE_H
#define ESK_SERVER_HTTP_ROOM_PRIVATE_H

#include "server/http/http_private.h"

/* Whether a large body's room must be claimed before `input_bytes` of it are taken. */
bool eski_room_is_missing(const struct eski_request *request, size_t input_bytes);
/* True: it is there. False: the request waits for it. */
bool eski_room_claim(struct eski_request *request);
/* Claims the parser's, then reads on the helper. */
void eski_room_parse(struct eski_request *request, uint64_t bytes);
void eski_room_refuse(struct eski_request *request); /* answers with 503 */
void eski_room_settle(struct eski_request *request); /* gives back all of it */

/* request.c: a large body, which is in request->body, once there is room for its parser. */
void eski_request_read_on_helper(struct eski_request *request);

#endif
