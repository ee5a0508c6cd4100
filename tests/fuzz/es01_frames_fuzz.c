/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of ES01 frames, as broker and client read it: every payload that is accepted is written
 * to the same bytes, and nothing is read beyond it. */
#include "fuzz.h"

#include "base/assert.h"
#include "base/memory.h"
#include "wire/es01/consume.h"
#include "wire/es01/produce.h"

#include <stdlib.h>

#define LENGTH_MAX (1 << 20)

/* The payload in memory of its own size, for the address sanitizer. */
static uint8_t *copy_of(struct esk_slice bytes) {
    uint8_t *copy = esk_alloc(bytes.size);
    if (bytes.size) {
        memcpy(copy, bytes.data, bytes.size);
    }
    return copy;
}

static void check_same(struct esk_slice payload, const uint8_t *out, const uint8_t *end) {
    ESK_ASSERT((size_t)(end - out) == payload.size);
    ESK_ASSERT(memcmp(out, payload.data, payload.size) == 0);
}

static void check_produce(struct esk_slice payload, uint8_t *out) {
    struct esk_es01_produce produce;
    struct esk_reader r;
    struct esk_error error;
    struct esk_slice topic;
    if (esk_es01_produce_parse(payload, &produce, &r, &error) != ESK_OK) {
        return;
    }
    ESK_ASSERT(esk_es01_topic_parse(payload, &topic) == ESK_OK);
    ESK_ASSERT(esk_slice_equal(topic, produce.topic));
    uint8_t *at = esk_es01_produce_write(out, &produce);
    for (uint32_t i = 0; i < produce.record_count; i++) {
        struct esk_es01_record record;
        esk_es01_record_read(&r, &record);
        if (r.failed) {
            return;
        }
        at = esk_es01_record_write(at, &record);
    }
    if (esk_reader_left(&r) == 0) {
        check_same(payload, out, at);
    }
}

static void check_consume(struct esk_slice payload, uint8_t *out) {
    struct esk_es01_consume consume;
    struct esk_error error;
    if (esk_es01_consume_parse(payload, &consume, &error) == ESK_OK) {
        check_same(payload, out, esk_es01_consume_write(out, &consume));
    }
}

static void check_results(struct esk_slice payload) {
    struct esk_reader r;
    struct esk_error error;
    struct esk_es01_result result;
    uint32_t count;
    if (esk_es01_results_parse(payload, &count, &r, &error) == ESK_OK) {
        for (uint32_t i = 0; i < count; i++) {
            esk_es01_result_read(&r, &result);
        }
        ESK_ASSERT(!r.failed && esk_reader_left(&r) == 0);
    }
}

static void check_fetched(struct esk_slice payload, uint8_t *out) {
    struct esk_es01_fetched fetched;
    struct esk_reader r;
    struct esk_error error;
    if (esk_es01_fetched_parse(payload, &fetched, &r, &error) != ESK_OK) {
        return;
    }
    esk_es01_fetched_write(out, &fetched);
    uint8_t *at = out + ESK_ES01_FETCHED_BYTES;
    for (uint32_t i = 0; i < fetched.record_count; i++) {
        struct esk_es01_fetched_record record;
        esk_es01_fetched_record_read(&r, &record);
        if (r.failed) {
            return;
        }
        at = esk_es01_fetched_record_write(at, &record);
    }
    if (esk_reader_left(&r) == 0) {
        check_same(payload, out, at);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct esk_slice stream = esk_slice(data, size);
    struct esk_es01_frame frame;
    struct esk_error error;
    while (esk_es01_frame_parse(stream, LENGTH_MAX, &frame, &error) == ESK_OK) {
        ESK_ASSERT(frame.length >= ESK_ES01_LENGTH_MIN && frame.length <= LENGTH_MAX);
        size_t there = stream.size - ESK_ES01_FRAME_HEAD_BYTES;
        size_t payload_bytes = esk_es01_payload_bytes(&frame);
        payload_bytes = payload_bytes < there ? payload_bytes : there; /* a cut one is one, too */
        struct esk_slice payload =
            esk_slice(stream.data + ESK_ES01_FRAME_HEAD_BYTES, payload_bytes);
        uint8_t *copy = copy_of(payload);
        uint8_t *out = esk_alloc(payload.size);
        payload.data = copy;
        check_produce(payload, out);
        check_consume(payload, out);
        check_results(payload);
        check_fetched(payload, out);
        free(copy);
        free(out);
        size_t used = ESK_ES01_FRAME_HEAD_BYTES + payload_bytes;
        stream = esk_slice(stream.data + used, stream.size - used);
    }
    return 0;
}
