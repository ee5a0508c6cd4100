/* SPDX-License-Identifier: Apache-2.0 */
/* Load on a server: many connections that send requests made beforehand and read just enough of the
 * answers. It blocks until it is over.
 *
 * Closed loop: a connection sends its next request when the last is answered; latency counts from
 * the sending. Open loop: requests are due at fixed times whatever the server does, wait for a free
 * connection, and latency counts from when they were due. */
#ifndef ESK_ESK_LOAD_H
#define ESK_ESK_LOAD_H

#include "esk/http_client.h"
#include "esk/latency.h"
#include <esker/client.h>

#include <stdatomic.h>

struct esk_load {
    const struct esk_http_server *server;
    uint32_t timeout_ms; /* for connecting, and for what is out at the end */
    uint32_t connections;
    uint32_t threads;
    uint64_t rate;     /* requests a second; 0: closed loop */
    uint64_t warmup_s; /* not measured */
    uint64_t measured_s;
    uint64_t requests; /* exactly so many, all measured; 0: by time */
    bool shows_progress;

    /* Produce: requests, taken in turn. */
    const struct esk_slice *variants;
    uint32_t variant_count; /* 0: consume */
    uint64_t records_per_request;
    uint64_t bytes_per_request; /* of record values */

    /* Consume: each connection reads one of the partitions. */
    const char *consume_path; /* up to and with "partition=" */
    const char *consume_more; /* what follows the offset */
    uint32_t partitions;

    /* Over the binary protocol instead; NULL: HTTP. A connection is a pipeline with in_flight
     * requests; variants are of records_per_request records each, one behind the other. */
    const struct esk_client_options *binary;
    const char *topic;
    const struct esk_client_record *records;
    uint32_t max_records; /* consume */
    uint32_t max_bytes;

    uint32_t in_flight; /* requests of a connection; 1 of HTTP */

    atomic_ullong answered; /* so far, for progress */
};

struct esk_load_result {
    uint64_t requests; /* answered well, and measured; so are the following */
    uint64_t records;
    uint64_t bytes; /* of record values produced, or of bodies consumed */
    uint64_t errors;
    uint64_t elapsed_ns;
    uint64_t client_cpu_ns; /* of this process, from start to end */
    struct esk_latency latency;
    char first_error[256]; /* empty: none */
};

/* ESK_ERR_UNAVAILABLE: a connection could not be made; the load ended there. */
enum esk_err esk_load_run(struct esk_load *load, struct esk_load_result *result,
                          struct esk_error *error);

#endif
