/* SPDX-License-Identifier: Apache-2.0 */
/* The public face of a pipeline: options, submits, and the calls that drive it. */
#include "base/assert.h"
#include "client/pipeline_private.h"
#include "wire/es01/consume.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NS_OF_MS(ms) ((uint64_t)(ms)*1000000)

void esk_client_options_init(struct esk_client_options *options) {
    *options = (struct esk_client_options){
        .connect_timeout_ms = 10000,
        .request_timeout_ms = 30000,
        .reconnects = true,
        .backoff_ms_min = 50,
        .backoff_ms_max = 5000,
        .in_flight_max = ESK_CONNECTION_REQUESTS_MAX,
        .answer_bytes_max = 80 * ESK_MIB,
    };
}

static enum esk_client_code check_options(const struct esk_client_options *options,
                                          struct esk_client_error *error) {
    const char *problem = NULL;
    if (options->key && strlen(options->key) > ESK_TOKEN_BYTES_MAX) {
        problem = "key is longer than 1,024 bytes";
    } else if (options->in_flight_max == 0 || options->in_flight_max > ESKI_SLOTS_MAX) {
        problem = "in_flight_max: allowed is 1 to 65,536";
    } else if (options->answer_bytes_max < 1024) {
        problem = "answer_bytes_max: allowed is 1,024 and more";
    } else if (options->connect_timeout_ms == 0 || options->request_timeout_ms == 0) {
        problem = "a time-out of 0 ms leaves no time";
    } else if (options->backoff_ms_min == 0 || options->backoff_ms_max < options->backoff_ms_min) {
        problem = "backoff_ms_min: allowed is 1 to backoff_ms_max";
    } else if (options->idempotent && options->producer_id) {
        problem = "idempotent makes a producer id itself: producer_id must be NULL";
    } else if (options->producer_id && (options->producer_id[0] == '\0' ||
                                        strlen(options->producer_id) > ESK_ID_BYTES_MAX)) {
        problem = "producer_id: allowed are 1 to 200 bytes";
    }
    return problem ? eski_client_fail(error, ESK_CLIENT_INVALID, "%s", problem) : ESK_CLIENT_OK;
}

static void set_options(struct esk_pipeline *pipeline, const struct esk_client_options *options) {
    pipeline->key = options->key ? esk_text_copy(options->key) : NULL;
    pipeline->producer_id = options->producer_id ? esk_text_copy(options->producer_id) : NULL;
    pipeline->wants_gzip = options->gzip;
    pipeline->reconnects = options->reconnects;
    pipeline->connect_timeout_ns = NS_OF_MS(options->connect_timeout_ms);
    pipeline->request_timeout_ns = NS_OF_MS(options->request_timeout_ms);
    pipeline->backoff_ns_min = NS_OF_MS(options->backoff_ms_min);
    pipeline->backoff_ns_max = NS_OF_MS(options->backoff_ms_max);
    pipeline->answer_bytes_max = options->answer_bytes_max;
    pipeline->slots_max = options->in_flight_max;
    pipeline->is_idempotent = options->idempotent;
    eski_numbering_init(&pipeline->numbering);
    struct esk_es01_hello hello = {
        .features = options->gzip ? ESK_ES01_FEATURE_GZIP : 0,
        .token = pipeline->key ? esk_slice_text(pipeline->key) : esk_slice(NULL, 0),
    };
    pipeline->hello_size = esk_es01_hello_write(&hello, pipeline->hello);
}

static enum esk_client_code open_descriptors(struct esk_pipeline *pipeline,
                                             struct esk_client_error *error) {
    pipeline->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    pipeline->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (pipeline->epoll_fd < 0 || pipeline->timer_fd < 0 ||
        epoll_ctl(pipeline->epoll_fd, EPOLL_CTL_ADD, pipeline->timer_fd, &event) != 0) {
        return eski_client_fail(error, ESK_CLIENT_CONNECT, "no descriptors are left to open");
    }
    return ESK_CLIENT_OK;
}

enum esk_client_code eski_pipeline_create(const struct esk_client_options *options,
                                          struct esk_pipeline **result,
                                          struct esk_client_error *error) {
    struct esk_client_options defaults;
    *result = NULL;
    if (!options) {
        esk_client_options_init(&defaults);
        options = &defaults;
    }
    enum esk_client_code code = check_options(options, error);
    if (code != ESK_CLIENT_OK) {
        return code;
    }
    struct esk_pipeline *pipeline = esk_alloc_zeroed(1, sizeof(*pipeline));
    pipeline->epoll_fd = pipeline->timer_fd = -1;
    pipeline->now_ns = eski_clock_ns();
    pipeline->random = pipeline->now_ns ^ (uint64_t)(uintptr_t)pipeline;
    eski_channel_init(&pipeline->channel);
    esk_list_init(&pipeline->free);
    esk_list_init(&pipeline->requests);
    esk_buffer_init(&pipeline->input);
    esk_buffer_init(&pipeline->plain);
    set_options(pipeline, options);
    code = eski_target_init(&pipeline->target, options, error);
    if (code == ESK_CLIENT_OK) {
        code = open_descriptors(pipeline, error);
    }
    if (code != ESK_CLIENT_OK) {
        esk_pipeline_close(pipeline);
        return code;
    }
    *result = pipeline;
    return ESK_CLIENT_OK;
}

enum esk_client_code esk_pipeline_open(const struct esk_client_options *options,
                                       struct esk_pipeline **result,
                                       struct esk_client_error *error) {
    enum esk_client_code code = eski_pipeline_create(options, result, error);
    if (code != ESK_CLIENT_OK) {
        return code;
    }
    struct esk_pipeline *pipeline = *result;
    eski_pipeline_start(pipeline);
    while (pipeline->state == ESKI_PIPELINE_CONNECTING || pipeline->state == ESKI_PIPELINE_HELLO) {
        pipeline->now_ns = eski_clock_ns();
        eski_pipeline_step(pipeline);
        if (pipeline->state != ESKI_PIPELINE_UP && pipeline->state != ESKI_PIPELINE_DOWN) {
            eski_pipeline_sleep(pipeline, pipeline->attempt_ns);
        }
    }
    if (pipeline->state == ESKI_PIPELINE_UP) {
        return ESK_CLIENT_OK;
    }
    code = pipeline->error.code;
    if (error) {
        *error = pipeline->error;
    }
    esk_pipeline_close(pipeline);
    *result = NULL;
    return code;
}

void esk_pipeline_close(struct esk_pipeline *pipeline) {
    if (!pipeline) {
        return;
    }
    ESK_ASSERT(!pipeline->in_callback);
    eski_requests_fail_all(pipeline, ESK_CLIENT_CLOSED, "the pipeline was closed");
    eski_channel_fini(&pipeline->channel);
    eski_target_fini(&pipeline->target);
    eski_numbering_fini(&pipeline->numbering);
    esk_es01_deflater_destroy(pipeline->deflater);
    esk_es01_inflater_destroy(pipeline->inflater);
    for (uint32_t i = 0; i < pipeline->slot_count; i++) {
        esk_buffer_fini(&pipeline->slots[i]->frame);
        esk_buffer_fini(&pipeline->slots[i]->packed);
        free(pipeline->slots[i]);
    }
    free(pipeline->slots);
    esk_buffer_fini(&pipeline->input);
    esk_buffer_fini(&pipeline->plain);
    free(pipeline->written);
    free(pipeline->messages);
    if (pipeline->epoll_fd >= 0) {
        close(pipeline->epoll_fd);
    }
    if (pipeline->timer_fd >= 0) {
        close(pipeline->timer_fd);
    }
    free(pipeline->key);
    free(pipeline->producer_id);
    free(pipeline);
}

/* --- submits --- */

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

/* --- driving --- */

int esk_pipeline_fd(const struct esk_pipeline *pipeline) {
    return pipeline->epoll_fd;
}

size_t esk_pipeline_in_flight(const struct esk_pipeline *pipeline) {
    return pipeline->in_flight;
}

size_t esk_pipeline_process(struct esk_pipeline *pipeline) {
    ESK_ASSERT(!pipeline->in_callback);
    pipeline->now_ns = eski_clock_ns();
    pipeline->callbacks = 0;
    eski_pipeline_step(pipeline);
    return pipeline->callbacks;
}

size_t esk_pipeline_wait(struct esk_pipeline *pipeline, uint32_t timeout_ms) {
    size_t count = esk_pipeline_process(pipeline);
    uint64_t until_ns = pipeline->now_ns + NS_OF_MS(timeout_ms);
    while (count == 0 && pipeline->in_flight && pipeline->now_ns < until_ns) {
        eski_pipeline_sleep(pipeline, until_ns);
        count = esk_pipeline_process(pipeline);
    }
    return count;
}

enum esk_client_code esk_pipeline_flush(struct esk_pipeline *pipeline, uint32_t timeout_ms) {
    (void)esk_pipeline_process(pipeline);
    uint64_t until_ns = pipeline->now_ns + NS_OF_MS(timeout_ms);
    while (pipeline->in_flight && pipeline->now_ns < until_ns) {
        eski_pipeline_sleep(pipeline, until_ns);
        (void)esk_pipeline_process(pipeline);
    }
    return pipeline->in_flight ? ESK_CLIENT_TIMEOUT : ESK_CLIENT_OK;
}
