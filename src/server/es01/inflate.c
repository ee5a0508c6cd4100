/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed payloads. The topic comes out first and is authorised (a ping has none); then as much
 * as the loop does itself. A stream that is larger goes to a request, with its state, and the shard
 * gets a new one; the helper inflates the rest. */
#include "server/es01/es01_private.h"

#include <inttypes.h>

#define CUT_SHORT "the payload is not gzip, or damaged: it is cut short"

static struct esk_es01_inflater *inflater_of(struct eski_es01_shard *shard) {
    if (!shard->inflater) {
        shard->inflater = esk_es01_inflater_create();
    }
    esk_es01_inflater_begin(shard->inflater);
    shard->inflated.size = 0;
    return shard->inflater;
}

/* Inflates until `size` bytes are there in all. ESK_ERR_AGAIN: the input ends before; ESK_OK: they
 * are there, or the stream ends with fewer. */
static enum esk_err inflate_up_to(struct eski_es01_shard *shard, struct esk_slice *input,
                                  size_t size, bool *ended, struct esk_error *error) {
    size_t room = size - shard->inflated.size;
    enum esk_err err = room
                           ? esk_es01_inflate(shard->inflater, input, room, &shard->inflated, error)
                           : ESK_ERR_AGAIN;
    *ended = err == ESK_OK;
    if (err == ESK_ERR_AGAIN && shard->inflated.size == size) {
        return ESK_OK;
    }
    return err;
}

/* The topic that the stream begins with. */
static enum esk_err inflate_topic(struct eski_es01_shard *shard, struct esk_slice *input,
                                  struct esk_slice *topic, bool *ended, struct esk_error *error) {
    enum esk_err err = inflate_up_to(shard, input, 2, ended, error);
    if (err == ESK_OK && !*ended) {
        err = inflate_up_to(shard, input, 2 + (size_t)esk_load_u16(shard->inflated.data), ended,
                            error);
    }
    if (err != ESK_OK) {
        return err;
    }
    if (esk_es01_topic_parse(esk_buffer_slice(&shard->inflated), topic) != ESK_OK) {
        return esk_fail(error, ESK_ERR_INVALID, "topic_len goes beyond the payload");
    }
    return ESK_OK;
}

enum esk_err eski_es01_peek_topic(struct eski_es01_client *client, struct esk_slice beginning,
                                  struct esk_slice *topic, struct esk_error *error) {
    if (!client->gzip) {
        return esk_es01_topic_parse(beginning, topic);
    }
    bool ended;
    (void)inflater_of(client->shard);
    return inflate_topic(client->shard, &beginning, topic, &ended, error);
}

enum eski_es01_inflated eski_es01_inflate(struct eski_es01_client *client, uint8_t opcode,
                                          struct esk_slice *payload, bool *is_malformed,
                                          struct esk_error *error) {
    struct eski_es01_shard *shard = client->shard;
    struct esk_slice topic;
    bool ended;
    (void)inflater_of(shard);
    enum esk_err err = ESK_OK;
    if (opcode == ESK_ES01_PING) {
        topic = esk_slice(NULL, 0);
        ended = false;
    } else {
        err = inflate_topic(shard, payload, &topic, &ended, error);
    }
    *is_malformed = err != ESK_OK;
    if (err == ESK_ERR_AGAIN) {
        esk_fail(error, ESK_ERR_INVALID, CUT_SHORT);
    }
    if (err == ESK_OK) {
        err = eski_es01_authorise(client, opcode, topic, error);
    }
    if (err != ESK_OK) {
        return ESKI_ES01_INFLATED_REFUSED;
    }
    if (ended) {
        return ESKI_ES01_INFLATED;
    }
    /* The limits hold here too: what fits the loop may still be more than a body may have. */
    uint64_t limit = shard->es01->options.body_bytes_max;
    size_t here = ESKI_ES01_INFLATE_BYTES_MAX < limit ? ESKI_ES01_INFLATE_BYTES_MAX : (size_t)limit;
    size_t room = here > shard->inflated.size ? here - shard->inflated.size : 0;
    err = esk_es01_inflate(shard->inflater, payload, room, &shard->inflated, error);
    if (err == ESK_OK) {
        return ESKI_ES01_INFLATED;
    }
    *is_malformed = true;
    if (err != ESK_ERR_AGAIN) {
        return ESKI_ES01_INFLATED_REFUSED;
    }
    if (payload->size == 0 && shard->inflated.size < here) {
        esk_fail(error, ESK_ERR_INVALID, CUT_SHORT);
        return ESKI_ES01_INFLATED_REFUSED;
    }
    if (opcode == ESK_ES01_CONSUME) {
        esk_fail(error, ESK_ERR_INVALID, "topic_len does not fit the payload of a consume");
        return ESKI_ES01_INFLATED_REFUSED;
    }
    *is_malformed = false;
    return ESKI_ES01_INFLATED_PART;
}

void eski_es01_inflate_lend(struct eski_es01_request *request) {
    struct eski_es01_shard *shard = request->shard;
    request->inflater = shard->inflater;
    shard->inflater = NULL;
    struct esk_buffer empty = request->plain;
    request->plain = shard->inflated;
    shard->inflated = empty;
    shard->inflated.size = 0;
}

enum esk_err eski_es01_inflate_rest(struct eski_es01_request *request, struct esk_error *error) {
    uint64_t limit = request->shard->es01->options.body_bytes_max;
    struct esk_buffer *plain = &request->plain;
    enum esk_err err = ESK_ERR_AGAIN;
    while (err == ESK_ERR_AGAIN) {
        size_t before = plain->capacity;
        size_t room = plain->size < limit ? (size_t)limit - plain->size : 0;
        room = room < plain->size ? room : plain->size; /* at most doubled */
        size_t size = plain->size;
        err = esk_es01_inflate(request->inflater, &request->packed, room, plain, error);
        if (!eski_es01_request_charge(request, plain->capacity - before)) {
            return eski_es01_out_of_memory(error);
        }
        if (err == ESK_ERR_AGAIN && plain->size == size) {
            if (room == 0) {
                return esk_fail(error, ESK_ERR_TOO_LARGE,
                                "the body is over %" PRIu64 " bytes, --max-request-body-bytes",
                                limit);
            }
            request->is_malformed = true;
            return esk_fail(error, ESK_ERR_INVALID, CUT_SHORT);
        }
    }
    request->is_malformed = err != ESK_OK;
    return err;
}
