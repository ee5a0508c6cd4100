/* SPDX-License-Identifier: Apache-2.0 */
/* Submits: what was given is checked and encoded into a slot, which then waits to be sent. */
#include "client/pipeline_private.h"
#include "wire/es01/consume.h"

/* A slot for a request, or NULL: *code says why not. It belongs to no list. */
static struct eski_slot *take_slot(struct esk_pipeline *pipeline, enum esk_client_code *code,
                                   struct esk_client_error *error) {
    if (pipeline->state == ESKI_PIPELINE_BROKEN) {
        *code = eski_client_fail(error, ESK_CLIENT_LOST, "%s", pipeline->error.text);
        return NULL;
    }
    struct esk_link *first = esk_list_first(&pipeline->free);
    if (first) {
        esk_list_remove(first);
        return eski_slot_at(first);
    }
    if (pipeline->slot_count == pipeline->slots_max) {
        *code =
            eski_client_fail(error, ESK_CLIENT_FULL, "%u requests are out", pipeline->in_flight);
        return NULL;
    }
    struct eski_slot *slot = esk_alloc_zeroed(1, sizeof(*slot));
    size_t size = (pipeline->slot_count + 1) * sizeof(*pipeline->slots);
    pipeline->slots = esk_realloc(pipeline->slots, size);
    slot->index = pipeline->slot_count;
    esk_buffer_init(&slot->frame);
    esk_buffer_init(&slot->packed);
    esk_list_init(&slot->link);
    pipeline->slots[pipeline->slot_count++] = slot;
    return slot;
}

/* Readies the slot for a request and returns the place of its payload. */
static uint8_t *begin_frame(struct eski_slot *slot, enum esk_es01_opcode opcode,
                            size_t payload_bytes) {
    slot->generation++;
    slot->opcode = (uint8_t)opcode;
    slot->is_sent = slot->is_sequenced = slot->is_uncertain = slot->is_retried = false;
    slot->is_one_partition = false;
    slot->refusals = slot->record_count = 0;
    slot->topic = NULL;
    slot->packed.size = slot->frame.size = 0;
    uint8_t *at = esk_buffer_grow(&slot->frame, ESK_ES01_FRAME_HEAD_BYTES + payload_bytes);
    slot->frame.size = ESK_ES01_FRAME_HEAD_BYTES + payload_bytes;
    uint32_t id = (uint32_t)slot->generation << 16 | slot->index;
    esk_es01_frame_write(at, payload_bytes, id, (uint8_t)opcode);
    return at + ESK_ES01_FRAME_HEAD_BYTES;
}

static enum esk_client_code submit(struct esk_pipeline *pipeline, struct eski_slot *slot,
                                   esk_pipeline_callback *callback, void *context) {
    if (!pipeline->in_callback) {
        pipeline->now_ns = eski_clock_ns();
    }
    slot->callback = callback;
    slot->context = context;
    slot->deadline_ns = pipeline->now_ns + pipeline->request_timeout_ns;
    esk_list_append(&pipeline->requests, &slot->link);
    pipeline->in_flight++;
    if (!pipeline->unsent) {
        pipeline->unsent = slot;
    }
    return ESK_CLIENT_OK;
}

static enum esk_client_code check_topic(const char *topic, struct esk_client_error *error) {
    size_t size = topic ? strlen(topic) : 0;
    if (size == 0 || size > UINT16_MAX) {
        return eski_client_fail(error, ESK_CLIENT_INVALID, "topic: it is %s",
                                size ? "too long" : "empty");
    }
    return ESK_CLIENT_OK;
}

static enum esk_client_code refuse_record(struct esk_client_error *error, size_t index,
                                          const char *problem) {
    return eski_client_fail(error, ESK_CLIENT_INVALID, "record %zu: %s", index, problem);
}

/* Checks the records; *size gets what they take in the frame. */
static enum esk_client_code check_records(const struct esk_pipeline *pipeline,
                                          const struct esk_client_record *records, size_t count,
                                          size_t *size, struct esk_client_error *error) {
    *size = 0;
    if (count == 0 || count > ESKI_FRAME_BYTES_MAX / ESK_ES01_RECORD_BYTES_MIN) {
        return eski_client_fail(error, ESK_CLIENT_INVALID, "count: %s records",
                                count ? "too many" : "there are no");
    }
    for (size_t i = 0; i < count; i++) {
        const struct esk_client_record *record = &records[i];
        if (record->key_size > ESKI_FRAME_BYTES_MAX || record->value_size > ESKI_FRAME_BYTES_MAX ||
            *size > ESKI_FRAME_BYTES_MAX) {
            return eski_client_fail(error, ESK_CLIENT_TOO_LARGE,
                                    "the records of a request may have 1 GiB");
        }
        *size +=
            ESK_ES01_RECORD_BYTES_MIN + (record->key ? record->key_size : 0) + record->value_size;
        if (pipeline->is_idempotent &&
            (record->partition < 0 || record->partition >= ESK_TOPIC_PARTITIONS_MAX)) {
            return refuse_record(error, i,
                                 "an idempotent record names its partition, 0 to 9,999; "
                                 "esk_client_partition tells which one a key goes to");
        }
        if (!pipeline->producer_id && record->sequence != ESK_CLIENT_SEQUENCE_NONE) {
            return refuse_record(error, i,
                                 "a sequence needs options.producer_id; else it is "
                                 "ESK_CLIENT_SEQUENCE_NONE");
        }
        if (pipeline->producer_id && record->sequence < 0) {
            return refuse_record(error, i, "with options.producer_id each has a sequence from 0");
        }
    }
    return ESK_CLIENT_OK;
}

static void write_records(struct eski_slot *slot, uint8_t *at,
                          const struct esk_client_record *records, size_t count) {
    slot->is_one_partition = true;
    for (size_t i = 0; i < count; i++) {
        const struct esk_client_record *record = &records[i];
        struct esk_es01_record out = {
            .key = esk_slice(record->key, record->key ? record->key_size : 0),
            .value = esk_slice(record->value, record->value_size),
            .partition = record->partition,
            .sequence = record->sequence,
        };
        slot->is_one_partition &= record->partition == records[0].partition;
        at = esk_es01_record_write(at, &out);
    }
}

enum esk_client_code esk_pipeline_produce(struct esk_pipeline *pipeline, const char *topic,
                                          const struct esk_client_record *records, size_t count,
                                          esk_pipeline_callback *callback, void *context,
                                          struct esk_client_error *error) {
    size_t size;
    enum esk_client_code code = check_topic(topic, error);
    if (code == ESK_CLIENT_OK) {
        code = check_records(pipeline, records, count, &size, error);
    }
    struct eski_slot *slot = code == ESK_CLIENT_OK ? take_slot(pipeline, &code, error) : NULL;
    if (!slot) {
        return code;
    }
    struct esk_es01_produce produce = {
        .topic = esk_slice_text(topic),
        .record_count = (uint32_t)count,
    };
    if (pipeline->is_idempotent) {
        produce.producer_id = esk_slice(pipeline->numbering.id, ESKI_PRODUCER_ID_BYTES);
    } else if (pipeline->producer_id) {
        produce.producer_id = esk_slice_text(pipeline->producer_id);
    }
    uint8_t *at = begin_frame(slot, ESK_ES01_PRODUCE, esk_es01_produce_bytes(&produce) + size);
    slot->record_count = (uint32_t)count;
    slot->is_sequenced = produce.producer_id.data != NULL;
    write_records(slot, esk_es01_produce_write(at, &produce), records, count);
    if (pipeline->is_idempotent) {
        slot->topic = eski_numbering_topic(&pipeline->numbering, produce.topic);
        eski_numbering_number(&pipeline->numbering, slot->topic, slot->frame.data,
                              slot->frame.size);
    }
    return submit(pipeline, slot, callback, context);
}

enum esk_client_code esk_pipeline_consume(struct esk_pipeline *pipeline, const char *topic,
                                          uint32_t partition, uint64_t offset, uint32_t max_records,
                                          uint32_t max_bytes, esk_pipeline_callback *callback,
                                          void *context, struct esk_client_error *error) {
    enum esk_client_code code = check_topic(topic, error);
    struct eski_slot *slot = code == ESK_CLIENT_OK ? take_slot(pipeline, &code, error) : NULL;
    if (!slot) {
        return code;
    }
    struct esk_es01_consume consume = {
        .topic = esk_slice_text(topic),
        .partition = partition,
        .offset = offset,
        .max_records = max_records,
        .max_bytes = max_bytes,
    };
    uint8_t *at = begin_frame(slot, ESK_ES01_CONSUME, ESK_ES01_CONSUME_BYTES(consume.topic.size));
    (void)esk_es01_consume_write(at, &consume);
    slot->record_count = max_records;
    return submit(pipeline, slot, callback, context);
}

enum esk_client_code esk_pipeline_ping(struct esk_pipeline *pipeline, const void *payload,
                                       size_t payload_size, esk_pipeline_callback *callback,
                                       void *context, struct esk_client_error *error) {
    enum esk_client_code code = ESK_CLIENT_OK;
    if (payload_size > ESKI_PING_BYTES_MAX) {
        return eski_client_fail(error, ESK_CLIENT_INVALID, "payload: it is over 64 KiB");
    }
    struct eski_slot *slot = take_slot(pipeline, &code, error);
    if (!slot) {
        return code;
    }
    uint8_t *at = begin_frame(slot, ESK_ES01_PING, payload_size);
    if (payload_size) {
        memcpy(at, payload, payload_size);
    }
    return submit(pipeline, slot, callback, context);
}
