/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of requests: answered, failed, or sent again.
 *
 * Numbered produces (options.idempotent) must reach the broker in the order of their sequences. So
 * when one of them is refused, those sent behind it are refused for the gap: sending pauses
 * (`is_settling`) until everything sent is answered, then what is to be sent again gets new
 * numbers. Requests whose answer was lost keep theirs, so that the broker recognises them; numbers
 * are given anew only when there are none such. A request that was dropped with its outcome unknown
 * leaves the counts in doubt: then the next numbers are given under another producer id. */
#include "base/assert.h"
#include "client/pipeline_private.h"
#include "wire/es01/produce.h"

#include <stdio.h>

#define REFUSALS_MAX 8 /* of one request for a gap, each after numbers were given anew */

void eski_request_end(struct esk_pipeline *pipeline, struct eski_slot *slot,
                      const struct esk_pipeline_answer *answer) {
    esk_pipeline_callback *callback = slot->callback;
    void *context = slot->context;
    if (slot == pipeline->unsent) {
        struct esk_link *next = slot->link.next;
        pipeline->unsent = next == &pipeline->requests ? NULL : eski_slot_at(next);
        pipeline->unsent_sent = 0;
    }
    pipeline->sent -= slot->is_sent;
    pipeline->in_flight--;
    pipeline->callbacks++;
    slot->is_sent = false;
    esk_list_remove(&slot->link);
    esk_list_prepend(&pipeline->free, &slot->link);
    if (callback) {
        pipeline->in_callback = true;
        callback(context, answer);
        pipeline->in_callback = false;
    }
}

void eski_request_fail(struct esk_pipeline *pipeline, struct eski_slot *slot,
                       enum esk_client_code code, const char *text) {
    struct esk_pipeline_answer answer = {.code = code, .text = text};
    eski_request_end(pipeline, slot, &answer);
}

void eski_requests_fail_all(struct esk_pipeline *pipeline, enum esk_client_code code,
                            const char *text) {
    /* Those that callbacks submit meanwhile are not among them. */
    struct esk_link failed;
    struct esk_link *link;
    char kept[sizeof(pipeline->error.text)];
    snprintf(kept, sizeof(kept), "%s", text);
    esk_list_init(&failed);
    while ((link = esk_list_first(&pipeline->requests))) {
        esk_list_remove(link);
        esk_list_append(&failed, link);
    }
    pipeline->unsent = NULL;
    pipeline->unsent_sent = 0;
    while ((link = esk_list_first(&failed))) {
        struct eski_slot *slot = eski_slot_at(link);
        if (slot->topic) {
            pipeline->is_settling = true;
            pipeline->needs_new_id |= slot->is_sent || slot->is_uncertain;
        }
        eski_request_fail(pipeline, slot, code, kept);
    }
}

/* What is not sent begins with the first request. */
static void begin_anew(struct esk_pipeline *pipeline) {
    struct esk_link *first = esk_list_first(&pipeline->requests);
    pipeline->unsent = first ? eski_slot_at(first) : NULL;
    pipeline->unsent_sent = 0;
}

void eski_requests_lost(struct esk_pipeline *pipeline) {
    struct esk_link lost;
    esk_list_init(&lost);
    struct esk_link *next;
    for (struct esk_link *at = pipeline->requests.next; at != &pipeline->requests; at = next) {
        struct eski_slot *slot = eski_slot_at(at);
        next = at->next;
        if (!slot->is_sent) {
            continue;
        }
        if (slot->opcode == ESK_ES01_PRODUCE && !slot->is_sequenced) {
            esk_list_remove(at);
            esk_list_append(&lost, at);
            continue;
        }
        slot->is_sent = false;
        slot->is_uncertain = true;
        pipeline->sent--;
    }
    begin_anew(pipeline);
    struct esk_link *link;
    char text[sizeof(pipeline->error.text)];
    snprintf(text, sizeof(text), "%.460s; whether it was written is not known",
             pipeline->error.text);
    while ((link = esk_list_first(&lost))) {
        eski_request_fail(pipeline, eski_slot_at(link), ESK_CLIENT_LOST, text);
    }
}

/* Ends the first request, whose time is over. Whether its connection is of no more use. */
static bool expire(struct esk_pipeline *pipeline, struct eski_slot *slot) {
    char text[sizeof(pipeline->error.text)];
    bool is_up = pipeline->state == ESKI_PIPELINE_UP;
    bool is_begun = slot->is_sent || (slot == pipeline->unsent && pipeline->unsent_sent);
    bool was_out = slot->is_sent || slot->is_uncertain;
    unsigned long long ms = pipeline->request_timeout_ns / 1000000;
    enum esk_client_code code = ESK_CLIENT_TIMEOUT;
    if (was_out || is_up || !pipeline->error.text[0]) {
        snprintf(text, sizeof(text), "no answer within %llu ms", ms);
    } else {
        code = ESK_CLIENT_CONNECT;
        snprintf(text, sizeof(text), "no connection within %llu ms; the last attempt: %.440s", ms,
                 pipeline->error.text);
    }
    if (slot->topic) {
        pipeline->is_settling = true;
        pipeline->needs_new_id |= was_out;
    }
    eski_request_fail(pipeline, slot, code, text);
    return is_begun && is_up;
}

void eski_requests_expire(struct esk_pipeline *pipeline) {
    struct esk_link *first;
    bool is_stuck = false;
    while ((first = esk_list_first(&pipeline->requests)) &&
           eski_slot_at(first)->deadline_ns <= pipeline->now_ns) {
        is_stuck |= expire(pipeline, eski_slot_at(first));
    }
    if (is_stuck) {
        struct esk_client_error error;
        eski_client_fail(&error, ESK_CLIENT_TIMEOUT, "the broker did not answer within %llu ms",
                         (unsigned long long)(pipeline->request_timeout_ns / 1000000));
        eski_pipeline_lose(pipeline, &error);
    }
}

/* --- a broker's refusals --- */

/* is_unwritten: known for sure. Else, when its first answer was lost, it keeps its numbers. */
static void send_again(struct esk_pipeline *pipeline, struct eski_slot *slot, bool is_unwritten) {
    slot->is_uncertain = slot->is_retried && !is_unwritten;
    slot->is_sent = slot->is_retried = false;
    pipeline->sent--;
    pipeline->is_settling = true;
}

/* It was written before its answer was lost, and so much came behind it that the broker no longer
 * knows where: a batch of one partition is written whole or not at all. */
static void end_as_written(struct esk_pipeline *pipeline, struct eski_slot *slot) {
    struct esk_es01_produce produce;
    struct esk_es01_record record;
    struct esk_reader r;
    struct esk_slice frame = esk_buffer_slice(&slot->frame);
    enum esk_err err = esk_es01_produce_parse(
        esk_slice(frame.data + ESK_ES01_FRAME_HEAD_BYTES, frame.size - ESK_ES01_FRAME_HEAD_BYTES),
        &produce, &r, NULL);
    ESK_ASSERT(err == ESK_OK);
    esk_es01_record_read(&r, &record);
    uint32_t partition = (uint32_t)record.partition;
    struct esk_client_written *written = eski_written_grow(pipeline, slot->record_count);
    for (uint32_t i = 0; i < slot->record_count; i++) {
        (void)eski_topic_acknowledge(slot->topic, partition);
        written[i] = (struct esk_client_written){ESK_CLIENT_OFFSET_UNKNOWN, partition, true};
    }
    struct esk_pipeline_answer answer = {
        .text = "",
        .written = written,
        .written_count = slot->record_count,
    };
    eski_request_end(pipeline, slot, &answer);
}

/* It ends. Whether it was written is not known when it was sent before. */
static void end_as_refused(struct esk_pipeline *pipeline, struct eski_slot *slot,
                           enum esk_client_code code, const char *text) {
    char longer[sizeof(pipeline->error.text)];
    pipeline->is_settling = true;
    pipeline->needs_new_id |= slot->is_retried || code == ESK_CLIENT_BROKER ||
                              code == ESK_CLIENT_SEQUENCE_GAP ||
                              code == ESK_CLIENT_SEQUENCE_TOO_LOW;
    if (slot->is_retried) {
        snprintf(longer, sizeof(longer),
                 "the connection was lost, and a retry refused; whether it was written is not "
                 "known: %.380s",
                 text);
        code = ESK_CLIENT_LOST;
        text = longer;
    }
    eski_request_fail(pipeline, slot, code, text);
}

void eski_request_refused(struct esk_pipeline *pipeline, struct eski_slot *slot,
                          enum esk_client_code code, const char *text) {
    bool is_passing = code == ESK_CLIENT_THROTTLED || code == ESK_CLIENT_UNAVAILABLE ||
                      code == ESK_CLIENT_NO_SPACE;
    bool is_gap = code == ESK_CLIENT_SEQUENCE_GAP;
    if (!slot->topic) {
        eski_request_fail(pipeline, slot, code, text);
    } else if (is_passing) {
        pipeline->hold_ns = pipeline->now_ns + eski_pipeline_pause_ns(pipeline, pipeline->holds++);
        send_again(pipeline, slot, false);
    } else if (is_gap && (pipeline->holds || ++slot->refusals <= REFUSALS_MAX)) {
        send_again(pipeline, slot, true);
    } else if (code == ESK_CLIENT_SEQUENCE_TOO_LOW && slot->is_retried && slot->is_one_partition) {
        end_as_written(pipeline, slot);
    } else {
        end_as_refused(pipeline, slot, code, text);
    }
}

void eski_requests_settle(struct esk_pipeline *pipeline) {
    bool is_any_uncertain = false;
    if (pipeline->sent || pipeline->unsent_sent) {
        return;
    }
    for (struct esk_link *at = pipeline->requests.next; at != &pipeline->requests; at = at->next) {
        is_any_uncertain |= eski_slot_at(at)->topic && eski_slot_at(at)->is_uncertain;
    }
    begin_anew(pipeline);
    pipeline->is_settling = false;
    if (is_any_uncertain) {
        return; /* they go first, as they are; a refusal settles again */
    }
    if (pipeline->needs_new_id) {
        eski_numbering_renew(&pipeline->numbering);
    } else {
        eski_numbering_rewind(&pipeline->numbering);
    }
    pipeline->needs_new_id = false;
    for (struct esk_link *at = pipeline->requests.next; at != &pipeline->requests; at = at->next) {
        struct eski_slot *slot = eski_slot_at(at);
        if (slot->topic) {
            slot->packed.size = 0;
            eski_numbering_number(&pipeline->numbering, slot->topic, slot->frame.data,
                                  slot->frame.size);
        }
    }
}

void eski_request_pack(struct esk_pipeline *pipeline, struct eski_slot *slot) {
    if (slot->packed.size) {
        return;
    }
    struct esk_slice payload = esk_slice(slot->frame.data + ESK_ES01_FRAME_HEAD_BYTES,
                                         slot->frame.size - ESK_ES01_FRAME_HEAD_BYTES);
    if (!pipeline->deflater) {
        pipeline->deflater = esk_es01_deflater_create();
    }
    esk_buffer_append(&slot->packed, slot->frame.data, ESK_ES01_FRAME_HEAD_BYTES);
    if (payload.size) {
        esk_es01_deflate(pipeline->deflater, payload, &slot->packed);
    }
    esk_store_u32(slot->packed.data, (uint32_t)(slot->packed.size - ESK_ES01_LENGTH_BYTES));
}
