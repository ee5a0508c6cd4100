/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from a strange broker, read by libesker in one piece and byte by byte: the callbacks must
 * see the same, each request just once, and nothing beyond what was asked for. The bits of the
 * first byte: 1 begins with the handshake, 2 has gzip, 4 numbers the produces. */
#include "base/assert.h"
#include "base/hash.h"
#include "client/pipeline_private.h"
#include "fuzz.h"

#define MAX_RECORDS 5

struct seen {
    unsigned count;
    struct esk_buffer text; /* all that the callbacks saw */
};

static void see(void *context, const struct esk_pipeline_answer *answer) {
    struct seen *seen = context;
    seen->count++;
    esk_buffer_u8(&seen->text, (uint8_t)answer->code);
    esk_buffer_append_text(&seen->text, answer->text);
    ESK_ASSERT(answer->code == ESK_CLIENT_OK || (!answer->written_count && !answer->batch.count));
    for (size_t i = 0; i < answer->written_count; i++) {
        esk_buffer_u64(&seen->text, answer->written[i].offset);
        esk_buffer_u32(&seen->text, answer->written[i].partition);
        esk_buffer_u8(&seen->text, answer->written[i].duplicate);
    }
    ESK_ASSERT(answer->batch.count <= MAX_RECORDS);
    for (size_t i = 0; i < answer->batch.count; i++) {
        const struct esk_client_message *message = &answer->batch.messages[i];
        ESK_ASSERT(message->value && (message->key || message->key_size == 0));
        esk_buffer_u64(&seen->text, message->offset);
        esk_buffer_u64(&seen->text, message->key ? esk_hash64(message->key, message->key_size) : 0);
        esk_buffer_u64(&seen->text, esk_hash64(message->value, message->value_size));
    }
    esk_buffer_u64(&seen->text, answer->batch.next_offset);
    ESK_ASSERT(!answer->echo_size || answer->echo_size == 4);
}

static struct esk_pipeline *make(uint8_t flags, struct seen *seen) {
    struct esk_client_options options;
    struct esk_pipeline *pipeline;
    esk_client_options_init(&options);
    options.answer_bytes_max = 1 << 20;
    options.gzip = (flags & 2) != 0;
    options.idempotent = (flags & 4) != 0;
    enum esk_client_code code = eski_pipeline_create(&options, &pipeline, NULL);
    ESK_ASSERT(code == ESK_CLIENT_OK);
    pipeline->state = flags & 1 ? ESKI_PIPELINE_HELLO : ESKI_PIPELINE_UP;
    pipeline->has_gzip = (flags & 3) == 2;
    struct esk_client_record records[2] = {
        {.key = "k",
         .key_size = 1,
         .value = "v",
         .value_size = 1,
         .sequence = ESK_CLIENT_SEQUENCE_NONE},
        {.value = "w", .value_size = 1, .partition = 1, .sequence = ESK_CLIENT_SEQUENCE_NONE},
    };
    code = esk_pipeline_produce(pipeline, "t", records, 2, see, seen, NULL);
    ESK_ASSERT(code == ESK_CLIENT_OK);
    code = esk_pipeline_consume(pipeline, "t", 0, 0, MAX_RECORDS, 100, see, seen, NULL);
    ESK_ASSERT(code == ESK_CLIENT_OK);
    code = esk_pipeline_ping(pipeline, "ping", 4, see, seen, NULL);
    ESK_ASSERT(code == ESK_CLIENT_OK);
    for (uint32_t i = 0; i < pipeline->slot_count; i++) {
        pipeline->slots[i]->is_sent = true;
        pipeline->sent++;
    }
    pipeline->unsent = NULL;
    return pipeline;
}

/* What the callbacks saw, with the error that ended it; owned. */
static struct esk_buffer run(const uint8_t *data, size_t size, uint8_t flags, size_t piece) {
    struct seen seen = {0};
    esk_buffer_init(&seen.text);
    struct esk_pipeline *pipeline = make(flags, &seen);
    bool goes_on = true;
    for (size_t at = 0; at < size && goes_on; at += piece) {
        esk_buffer_append(&pipeline->input, data + at, size - at < piece ? size - at : piece);
        goes_on = eski_pipeline_take(pipeline);
    }
    if (!goes_on) {
        esk_buffer_append_text(&seen.text, pipeline->error.text);
    }
    esk_buffer_u8(&seen.text, (uint8_t)pipeline->state);
    esk_pipeline_close(pipeline);
    ESK_ASSERT(seen.count == 3);
    return seen.text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    struct esk_buffer whole = run(data + 1, size - 1, data[0], size);
    struct esk_buffer bytewise = run(data + 1, size - 1, data[0], 1);
    ESK_ASSERT(esk_slice_equal(esk_buffer_slice(&whole), esk_buffer_slice(&bytewise)));
    esk_buffer_fini(&whole);
    esk_buffer_fini(&bytewise);
    return 0;
}
