/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share.
 *
 * A *client* is a connection. Most of its frames need no state of their own: a small produce joins
 * the *merge* of its topic, one write of all that came to the shard in this turn, whoever sent it.
 * Everything else is a *request*: a consume, a frame that is collected piece by piece, a produce
 * that is large, compressed large, has a producer, or waits for one before it; also an answer that
 * is not written yet.
 *
 * All of it belongs to the connection's loop; a request that is with the helper is the helper's
 * until it comes back by mail. */
#ifndef ESK_SERVER_ES01_PRIVATE_H
#define ESK_SERVER_ES01_PRIVATE_H

#include "server/es01/state_private.h"

/* --- request.c --- */

/* A request counts as in flight until it is destroyed. */
struct eski_es01_request *eski_es01_request_create(struct eski_es01_client *client, uint32_t id,
                                                   uint8_t opcode);
void eski_es01_request_destroy(struct eski_es01_request *request);
/* Takes more of the budget for it; false: over the budget. Any thread. */
bool eski_es01_request_charge(struct eski_es01_request *request, uint64_t bytes);
enum esk_err eski_es01_out_of_memory(struct esk_error *error);
/* To the helper, where `run` runs, and from there back, where `back` runs. */
void eski_es01_request_to_helper(struct eski_es01_request *request,
                                 void (*run)(struct esk_mail *mail));
void eski_es01_request_back(struct eski_es01_request *request, void (*back)(struct esk_mail *mail));
static inline struct esk_slice eski_es01_topic(const struct eski_es01_request *request) {
    return esk_slice(request->topic, request->topic_bytes);
}
enum esk_err eski_es01_set_topic(struct eski_es01_request *request, struct esk_slice topic,
                                 struct esk_error *error);

/* --- door.c --- */

/* The client has one request less; frees a closed one with its last. */
void eski_es01_client_done(struct eski_es01_client *client);
/* Something of it changed, perhaps outside of `serve`. */
void eski_es01_client_wake(struct eski_es01_client *client);
/* Whether the client may do this now: its key may have been revoked. ESK_ERR_FORBIDDEN,
 * _UNAUTHENTICATED. */
enum esk_err eski_es01_authorise(const struct eski_es01_client *client, uint8_t opcode,
                                 struct esk_slice topic, struct esk_error *error);

/* --- frames.c --- */

/* Whether the next frame, or the rest of one, may be taken. */
bool eski_es01_frames_may_take(const struct eski_es01_client *client);
/* Takes frames from the input, as many as may run. */
void eski_es01_frames_take(struct eski_es01_client *client);
/* Ends the frame that is collected, and passes over what is to come of it. */
void eski_es01_frames_refuse(struct eski_es01_client *client, enum esk_err err, const char *text);
/* Answers with an error after which nothing can be read any more. */
void eski_es01_frames_end(struct eski_es01_client *client, uint32_t id, enum esk_err err,
                          const char *text);

/* --- inflate.c --- */

enum eski_es01_inflated {
    ESKI_ES01_INFLATED,      /* all of it is in shard->inflated */
    ESKI_ES01_INFLATED_PART, /* more than the loop does itself: the helper goes on */
    ESKI_ES01_INFLATED_REFUSED,
};
/* Inflates a whole payload: the topic first, which is authorised, then the rest; a ping, which has
 * no topic, is authorised and all of it is the rest. *payload keeps what is not inflated yet.
 * Refused: *error says why, *is_malformed whether the connection ends. */
enum eski_es01_inflated eski_es01_inflate(struct eski_es01_client *client, uint8_t opcode,
                                          struct esk_slice *payload, bool *is_malformed,
                                          struct esk_error *error);
/* With ESKI_ES01_INFLATED_PART: the stream goes along with the request, with its state and what
 * came out of it so far. */
void eski_es01_inflate_lend(struct eski_es01_request *request);
/* From there on, up to the limit of bodies: request->packed to request->plain. For the helper.
 * ESK_ERR_TOO_LARGE, _INVALID (request->is_malformed), _UNAVAILABLE: no memory. */
enum esk_err eski_es01_inflate_rest(struct eski_es01_request *request, struct esk_error *error);
/* The topic that the beginning of a payload shows; it borrows from there, or from shard->inflated.
 * ESK_ERR_AGAIN: not yet; ESK_ERR_INVALID: not gzip. */
enum esk_err eski_es01_peek_topic(struct eski_es01_client *client, struct esk_slice beginning,
                                  struct esk_slice *topic, struct esk_error *error);

/* --- produce.c --- */

/* A whole and authorised frame. The payload lies in request->body, or anywhere until this returns;
 * a request (or NULL) is taken. */
void eski_es01_produce(struct eski_es01_client *client, uint32_t id, struct esk_slice payload,
                       struct eski_es01_request *request);
/* The same, of which shard->inflated has only the beginning; request->packed is the rest. */
void eski_es01_produce_packed(struct eski_es01_request *request);
/* esk_produce_put of a record as it was sent, whose sequence is none or not negative. Inline, so
 * that what was read of it stays in registers. */
static inline enum esk_err eski_es01_put(struct esk_produce *produce,
                                         const struct esk_es01_record *sent) {
    const struct esk_produce_record record = {
        .key = sent->key,
        .value = sent->value,
        .partition = sent->partition,
        .sequence = sent->sequence == ESK_ES01_SEQUENCE_NONE ? ESK_SEQUENCE_NONE : sent->sequence,
    };
    return esk_produce_put(produce, &record);
}

/* --- ping.c --- */

/* Answers with request->body. */
void eski_es01_ping_echo(struct eski_es01_request *request);
/* The same, once the helper has looked through request->packed, which is the rest of it. */
void eski_es01_ping_packed(struct eski_es01_request *request);

/* --- merge.c --- */

/* Puts the records of a frame into the merge of its topic. false: they can't be merged, or are
 * wrong in a way that others tell better. */
bool eski_es01_merge_add(struct eski_es01_client *client, uint32_t id, struct esk_slice topic,
                         uint32_t record_count, struct esk_slice records);
/* Hands the open merges of the topic to the broker, so that what comes next is behind them. */
void eski_es01_merge_flush(struct eski_es01_shard *shard, struct esk_slice topic);
void eski_es01_merge_init(struct eski_es01_shard *shard);
void eski_es01_merge_fini(struct eski_es01_shard *shard);

/* --- consume.c --- */

/* A whole and authorised frame. */
void eski_es01_consume(struct eski_es01_client *client, uint32_t id, struct esk_slice payload);
/* Starts those that waited and have room now. */
void eski_es01_consume_waiting(struct eski_es01_client *client);

/* --- answer.c --- */

/* For frames without a request; in_flight is the caller's to settle. Opcodes are the frame's.
 * is_packed: the payload goes out as it is, also to a client that talks gzip. */
void eski_es01_answer(struct eski_es01_client *client, uint32_t id, uint8_t opcode,
                      struct esk_slice payload, bool is_packed, uint64_t started_ns);
void eski_es01_answer_error(struct eski_es01_client *client, uint32_t id, uint8_t opcode,
                            enum esk_err err, const char *text);
/* The answer of a request: kind and answer_bytes are set. It is gone, sooner or later. */
void eski_es01_respond(struct eski_es01_request *request);
/* As eski_es01_respond, of a consume that was not measured, since its batches are compressed. */
void eski_es01_respond_measured(struct eski_es01_request *request);
/* The same with the bytes of request->text. */
void eski_es01_respond_text(struct eski_es01_request *request, bool is_packed);
void eski_es01_fail(struct eski_es01_request *request, enum esk_err err, const char *text);
/* Writes what there is room for. */
void eski_es01_answers_write(struct eski_es01_client *client);
/* Counts an answer in the metrics. */
void eski_es01_count(struct eski_es01_shard *shard, uint8_t opcode, bool is_error,
                     uint64_t started_ns);

/* --- encode.c --- */

/* Writes the next bytes of the answer's payload from `at` on, up to `end`; returns how far it came.
 * At least ESK_ES01_RESULT_BYTES of room. */
uint8_t *eski_es01_encode(struct eski_es01_request *request, uint8_t *at, uint8_t *end);
/* The next records of an answer into the connection's output: from the block's size on what is
 * small, while large keys and values are lent. For ESKI_ES01_ANSWER_RECORDS that are not
 * compressed; nothing but this has written of its records before. */
void eski_es01_lend_records(struct eski_es01_request *request, struct esk_block *block);
/* Looks at all records of the consume for head and size of its answer. */
enum esk_err eski_es01_measure(struct eski_es01_request *request, struct esk_error *error);

#endif
