/* SPDX-License-Identifier: Apache-2.0 */
/* What a broker sends, taken apart. Its bytes are not trusted: lengths and counts are compared with
 * what is there and with what was asked for, and anything odd gives up the connection. */
#include "client/pipeline_private.h"
#include "wire/es01/consume.h"

#include <stdio.h>

static bool refuse(struct esk_pipeline *pipeline, const char *text) {
    eski_client_fail(&pipeline->error, ESK_CLIENT_PROTOCOL, "the broker's answer: %s", text);
    return false;
}

struct esk_client_written *eski_written_grow(struct esk_pipeline *pipeline, size_t count) {
    if (count > pipeline->written_capacity) {
        pipeline->written_capacity = count;
        pipeline->written = esk_realloc(pipeline->written, count * sizeof(*pipeline->written));
    }
    return pipeline->written;
}

static struct esk_client_message *grow_messages(struct esk_pipeline *pipeline, size_t count) {
    if (count > pipeline->messages_capacity) {
        pipeline->messages_capacity = count;
        pipeline->messages = esk_realloc(pipeline->messages, count * sizeof(*pipeline->messages));
    }
    return pipeline->messages;
}

static bool acknowledge(struct esk_pipeline *pipeline, struct eski_slot *slot, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (!eski_topic_acknowledge(slot->topic, pipeline->written[i].partition)) {
            return refuse(pipeline, "a partition that the request did not name");
        }
    }
    pipeline->holds = 0;
    return true;
}

static bool take_produced(struct esk_pipeline *pipeline, struct eski_slot *slot,
                          struct esk_slice payload) {
    uint32_t count;
    struct esk_reader r;
    struct esk_error error;
    if (esk_es01_results_parse(payload, &count, &r, &error) != ESK_OK) {
        return refuse(pipeline, error.text);
    }
    if (count != slot->record_count) {
        return refuse(pipeline, "not one result for each record");
    }
    struct esk_client_written *written = eski_written_grow(pipeline, count);
    for (uint32_t i = 0; i < count; i++) {
        struct esk_es01_result result;
        esk_es01_result_read(&r, &result);
        written[i] = (struct esk_client_written){result.offset, result.partition, result.duplicate};
    }
    if (slot->topic && !acknowledge(pipeline, slot, count)) {
        return false;
    }
    struct esk_pipeline_answer answer = {.text = "", .written = written, .written_count = count};
    eski_request_end(pipeline, slot, &answer);
    return true;
}

static bool take_consumed(struct esk_pipeline *pipeline, struct eski_slot *slot,
                          struct esk_slice payload) {
    struct esk_es01_fetched fetched;
    struct esk_reader r;
    struct esk_error error;
    if (esk_es01_fetched_parse(payload, &fetched, &r, &error) != ESK_OK) {
        return refuse(pipeline, error.text);
    }
    if (fetched.record_count > slot->record_count) {
        return refuse(pipeline, "more records than were asked for");
    }
    struct esk_client_message *messages = grow_messages(pipeline, fetched.record_count);
    for (uint32_t i = 0; i < fetched.record_count; i++) {
        struct esk_es01_fetched_record record;
        const uint8_t *start = r.at;
        esk_es01_fetched_record_read(&r, &record);
        esk_prefetch_heads(start, r.at);
        messages[i] = (struct esk_client_message){
            .offset = record.offset,
            .timestamp_ms = record.timestamp_ms,
            .key = record.key.data,
            .key_size = record.key.size,
            .value = record.value.data,
            .value_size = record.value.size,
            .partition = record.partition,
        };
    }
    if (r.failed || esk_reader_left(&r)) {
        return refuse(pipeline, "the records of a consume do not fit its length");
    }
    struct esk_pipeline_answer answer = {
        .text = "",
        .batch = {messages, fetched.record_count, fetched.next_offset, fetched.high_watermark},
    };
    eski_request_end(pipeline, slot, &answer);
    return true;
}

static bool take_pong(struct esk_pipeline *pipeline, struct eski_slot *slot,
                      struct esk_slice payload) {
    struct esk_slice asked = esk_slice(slot->frame.data + ESK_ES01_FRAME_HEAD_BYTES,
                                       slot->frame.size - ESK_ES01_FRAME_HEAD_BYTES);
    if (!esk_slice_equal(asked, payload)) {
        return refuse(pipeline, "a ping's echo is another");
    }
    struct esk_pipeline_answer answer = {
        .text = "",
        .echo = payload.data,
        .echo_size = payload.size,
    };
    eski_request_end(pipeline, slot, &answer);
    return true;
}

static void take_error(struct esk_pipeline *pipeline, struct eski_slot *slot,
                       struct esk_slice payload) {
    struct esk_client_error error;
    enum esk_client_code code = eski_code_of_error(payload);
    eski_client_fail(&error, code, "%.*s", (int)(payload.size < 500 ? payload.size : 500),
                     payload.size ? (const char *)payload.data : "");
    if (slot) {
        eski_request_refused(pipeline, slot, code, error.text);
    } else {
        pipeline->told = error; /* it closes the connection now */
    }
}

/* The one that is out under this id, or NULL. */
static struct eski_slot *find_slot(const struct esk_pipeline *pipeline, uint32_t request_id) {
    uint32_t index = request_id & 0xffff;
    struct eski_slot *slot = index < pipeline->slot_count ? pipeline->slots[index] : NULL;
    return slot && slot->is_sent && slot->generation == request_id >> 16 ? slot : NULL;
}

static bool inflate_payload(struct esk_pipeline *pipeline, struct esk_slice *payload) {
    struct esk_error error;
    if (!pipeline->inflater) {
        pipeline->inflater = esk_es01_inflater_create();
    }
    esk_es01_inflater_begin(pipeline->inflater);
    pipeline->plain.size = 0;
    enum esk_err err = esk_es01_inflate(pipeline->inflater, payload, pipeline->answer_bytes_max,
                                        &pipeline->plain, &error);
    if (err == ESK_ERR_AGAIN) {
        return refuse(pipeline, payload->size ? "it inflates to more than answer_bytes_max"
                                              : "its gzip is cut short");
    }
    *payload = esk_buffer_slice(&pipeline->plain);
    return err == ESK_OK || refuse(pipeline, error.text);
}

static bool take_frame(struct esk_pipeline *pipeline, const struct esk_es01_frame *frame,
                       struct esk_slice payload) {
    struct eski_slot *slot = find_slot(pipeline, frame->request_id);
    if (!slot && frame->opcode != ESK_ES01_ERROR) {
        return refuse(pipeline, "no request has its id");
    }
    if (pipeline->has_gzip && payload.size && !inflate_payload(pipeline, &payload)) {
        return false;
    }
    if (frame->opcode == ESK_ES01_ERROR) {
        take_error(pipeline, slot, payload);
        return true;
    }
    if (frame->opcode != (slot->opcode | 0x80)) {
        return refuse(pipeline, "its opcode is not that of its request");
    }
    pipeline->attempts = 0;
    switch (slot->opcode) {
    case ESK_ES01_PRODUCE:
        return take_produced(pipeline, slot, payload);
    case ESK_ES01_CONSUME:
        return take_consumed(pipeline, slot, payload);
    default:
        return take_pong(pipeline, slot, payload);
    }
}

static bool take_welcome(struct esk_pipeline *pipeline, struct esk_slice bytes) {
    struct esk_es01_welcome welcome;
    struct esk_error error;
    size_t size;
    enum esk_err err = esk_es01_welcome_parse(bytes, &welcome, &size, &error);
    if (err == ESK_ERR_AGAIN) {
        return true;
    }
    if (err != ESK_OK) {
        return refuse(pipeline, error.text);
    }
    if (welcome.status != ESK_ES01_STATUS_OK) {
        bool is_key = welcome.status == ESK_ES01_STATUS_AUTH_FAILED ||
                      welcome.status == ESK_ES01_STATUS_AUTH_REQUIRED;
        eski_client_fail(&pipeline->error,
                         is_key ? ESK_CLIENT_UNAUTHENTICATED : ESK_CLIENT_PROTOCOL,
                         "the broker refused the handshake (status %u)%s%.*s", welcome.status,
                         welcome.message.size ? ": " : "",
                         (int)(welcome.message.size < 400 ? welcome.message.size : 400),
                         welcome.message.size ? (const char *)welcome.message.data : "");
        return false;
    }
    uint32_t wanted = pipeline->wants_gzip ? ESK_ES01_FEATURE_GZIP : 0;
    if (welcome.features & ~wanted) {
        return refuse(pipeline, "it accepts features that were not asked for");
    }
    pipeline->has_gzip = (welcome.features & ESK_ES01_FEATURE_GZIP) != 0;
    pipeline->input_begin += size;
    pipeline->state = ESKI_PIPELINE_UP;
    return true;
}

/* What is read and not parsed yet. */
static struct esk_slice unparsed(const struct esk_pipeline *pipeline) {
    const struct esk_buffer *input = &pipeline->input;
    size_t begin = pipeline->input_begin;
    return begin < input->size ? esk_slice(input->data + begin, input->size - begin)
                               : esk_slice(NULL, 0);
}

bool eski_pipeline_take(struct esk_pipeline *pipeline) {
    struct esk_error error;
    if (pipeline->state == ESKI_PIPELINE_HELLO && !take_welcome(pipeline, unparsed(pipeline))) {
        return false;
    }
    while (pipeline->state == ESKI_PIPELINE_UP && !(pipeline->is_single && pipeline->callbacks)) {
        struct esk_slice bytes = unparsed(pipeline);
        struct esk_es01_frame frame;
        enum esk_err err = esk_es01_frame_parse(bytes, pipeline->answer_bytes_max, &frame, &error);
        if (err != ESK_OK && err != ESK_ERR_AGAIN) {
            return refuse(pipeline, err == ESK_ERR_TOO_LARGE ? "it is over answer_bytes_max"
                                                             : "its length is too short");
        }
        size_t size = err == ESK_OK ? ESK_ES01_LENGTH_BYTES + (size_t)frame.length : SIZE_MAX;
        if (bytes.size < size) {
            break;
        }
        pipeline->input_begin += size;
        struct esk_slice payload =
            esk_slice(bytes.data + ESK_ES01_FRAME_HEAD_BYTES, esk_es01_payload_bytes(&frame));
        if (!take_frame(pipeline, &frame, payload)) {
            return false;
        }
    }
    return true;
}
