/* SPDX-License-Identifier: Apache-2.0 */
/* struct esk_pipeline: one connection with many requests in flight, answered through callbacks.
 *
 * It is driven by its one user, from any loop: submit requests, then call esk_pipeline_wait, or
 * wait for esk_pipeline_fd to be readable and call esk_pipeline_process. Requests that were
 * submitted before leave together in one write; answers are read many at a time. Callbacks run
 * inside esk_pipeline_process, _wait, _flush and _close, never inside a submit; they may submit,
 * but not process, wait, flush or close.
 *
 * Order: requests leave in the order of their submission, and produces to one topic are written in
 * that order. Callbacks run as answers come; those of produces to one topic in their order.
 * Back-pressure: with in_flight_max requests out a submit gives ESK_CLIENT_FULL and keeps nothing.
 * A lost connection is made anew with growing pauses. Requests not sent yet, consumes, pings and
 * produces with sequences are sent then; other produces end as ESK_CLIENT_LOST. Nothing is sent
 * again beyond request_timeout_ms, and every submitted request gets exactly one callback. */
#ifndef ESKER_PIPELINE_H
#define ESKER_PIPELINE_H

#include <esker/client.h>

#ifdef __cplusplus
extern "C" {
#endif

struct esk_pipeline;

/* The answer of one request; all of it is valid during the callback only. */
struct esk_pipeline_answer {
    enum esk_client_code code;
    const char *text;                         /* what went wrong; "" when all is well */
    const struct esk_client_written *written; /* of a produce, one for each record, in order */
    size_t written_count;                     /* 0 of other requests, and unless all is well */
    struct esk_client_batch batch;            /* of a consume; empty unless all is well */
    const void *echo;                         /* of a ping: its payload */
    size_t echo_size;
};
typedef void esk_pipeline_callback(void *context, const struct esk_pipeline_answer *answer);

/* Connects; blocks up to connect_timeout_ms, so that a wrong address or key shows at once.
 * options NULL: defaults. On success *pipeline is owned by the caller, to be closed. `error` may be
 * NULL here and below. */
enum esk_client_code esk_pipeline_open(const struct esk_client_options *options,
                                       struct esk_pipeline **pipeline,
                                       struct esk_client_error *error);
/* Ends what is out with ESK_CLIENT_CLOSED, then frees. NULL does nothing. */
void esk_pipeline_close(struct esk_pipeline *pipeline);

/* Each submits a request and copies what it needs; none blocks. ESK_CLIENT_OK: the callback will
 * come. ESK_CLIENT_FULL: too many are out. ESK_CLIENT_INVALID: what was given can be no request.
 * The parameters are those of the blocking client's calls. */
enum esk_client_code esk_pipeline_produce(struct esk_pipeline *pipeline, const char *topic,
                                          const struct esk_client_record *records, size_t count,
                                          esk_pipeline_callback *callback, void *context,
                                          struct esk_client_error *error);
enum esk_client_code esk_pipeline_consume(struct esk_pipeline *pipeline, const char *topic,
                                          uint32_t partition, uint64_t offset, uint32_t max_records,
                                          uint32_t max_bytes, esk_pipeline_callback *callback,
                                          void *context, struct esk_client_error *error);
/* Up to 64 KiB come back in the answer. */
enum esk_client_code esk_pipeline_ping(struct esk_pipeline *pipeline, const void *payload,
                                       size_t payload_size, esk_pipeline_callback *callback,
                                       void *context, struct esk_client_error *error);

/* A descriptor that is readable whenever esk_pipeline_process has something to do: an answer, room
 * to write, a time-out, a step of a new connection. The same one for the pipeline's whole life; do
 * not read, write or close it. After a submit from outside a callback, call process once. */
int esk_pipeline_fd(const struct esk_pipeline *pipeline);

/* Sends and receives what it can without blocking (but a resolver may, when a connection is made
 * anew to a host name), and runs callbacks. The number of callbacks that ran. */
size_t esk_pipeline_process(struct esk_pipeline *pipeline);

/* As process, and when it ran no callback it waits up to timeout_ms for one. Returns at once when
 * nothing is out. The number of callbacks that ran. */
size_t esk_pipeline_wait(struct esk_pipeline *pipeline, uint32_t timeout_ms);

/* Waits until every request has its answer, or timeout_ms have passed. ESK_CLIENT_OK: all have;
 * whether they went well the callbacks were told. ESK_CLIENT_TIMEOUT: some are still out. */
enum esk_client_code esk_pipeline_flush(struct esk_pipeline *pipeline, uint32_t timeout_ms);

/* Requests without an answer. */
size_t esk_pipeline_in_flight(const struct esk_pipeline *pipeline);

#ifdef __cplusplus
}
#endif

#endif
