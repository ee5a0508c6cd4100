/* SPDX-License-Identifier: Apache-2.0 */
/* Room for large bodies. A body over ESK_JSON_LOOP_BYTES_MAX is claimed whole before it is read,
 * and until that is granted the client is not read from; its parser is claimed when the body has
 * come. Both wait in line, but not for ever: then the answer is 503, and what is left of the body
 * is read and dropped, so that the client sees it. A body in chunks, whose size nobody knows,
 * claims the largest that is allowed. */
#include "server/http/room_private.h"

#include "model/limits.h"

#define RETRY_AFTER_S 1
#define CHUNKED_BYTES_FREE 16384 /* of a body in chunks: so much may have come without a claim */

bool eski_room_is_missing(const struct eski_request *request, size_t input_bytes) {
    if (request->room.is_granted) {
        return false;
    }
    return request->chunks ? request->body.size + input_bytes > CHUNKED_BYTES_FREE
                           : request->content_length > ESK_JSON_LOOP_BYTES_MAX;
}

/* Who is refused waits no longer. */
static void leave_line(struct eski_request *request, struct esk_memory_claim *claim) {
    if (!claim->is_granted) {
        esk_broker_memory_settle(request->shard->broker, claim);
    }
}

void eski_room_refuse(struct eski_request *request) {
    leave_line(request, &request->room);
    leave_line(request, &request->parser);
    struct esk_error error;
    request->keep_alive = false;
    request->response.retry_after_s = RETRY_AFTER_S;
    eski_fail(request, eski_out_of_memory(&error), &error);
}

static void on_room(struct esk_memory_claim *claim) {
    struct eski_request *request = ESK_CONTAINER(claim, struct eski_request, room);
    request->state = ESKI_STATE_BODY;
    request->body_started_ns = 0; /* its time begins anew */
    esk_connection_set_deadline(request->connection, 0);
    esk_connection_wake(request->connection);
}

bool eski_room_claim(struct eski_request *request) {
    uint64_t bytes =
        request->chunks ? request->shard->http->options.body_bytes_max : request->content_length;
    request->room.kind = ESK_MEMORY_BODY;
    request->room.bytes = bytes + ESK_JSON_PADDING;
    request->room.granted = on_room;
    if (esk_broker_memory_claim(request->shard->broker, &request->room)) {
        return true;
    }
    request->state = ESKI_STATE_ROOM;
    esk_connection_want_input(request->connection, false);
    esk_connection_set_deadline(request->connection, request->shard->http->options.body_ms);
    return false;
}

static void on_parser(struct esk_memory_claim *claim) {
    struct eski_request *request = ESK_CONTAINER(claim, struct eski_request, parser);
    esk_connection_set_deadline(request->connection, 0);
    eski_request_read_on_helper(request);
}

void eski_room_parse(struct eski_request *request, uint64_t bytes) {
    request->parser.kind = ESK_MEMORY_PARSER;
    request->parser.bytes = bytes;
    request->parser.granted = on_parser;
    if (esk_broker_memory_claim(request->shard->broker, &request->parser)) {
        eski_request_read_on_helper(request);
        return;
    }
    request->state = ESKI_STATE_PARSER;
    esk_connection_set_deadline(request->connection, request->shard->http->options.body_ms);
}

void eski_room_settle(struct eski_request *request) {
    esk_broker_memory_settle(request->shard->broker, &request->parser);
    esk_broker_memory_settle(request->shard->broker, &request->room);
}
