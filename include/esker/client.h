/* SPDX-License-Identifier: Apache-2.0 */
/* libesker: records to and from an Esker broker over its binary protocol, ES01.
 *
 * Two clients share this header's types and options. struct esk_client (here) is blocking: one
 * call, one answer. struct esk_pipeline (esker/pipeline.h, included below) keeps many requests in
 * flight.
 *
 * Threads: an object is used by one thread at a time; different objects may be used by different
 * threads at the same time. The library has no global state, starts no threads, and installs no
 * signal handlers (writing to a lost connection raises no SIGPIPE).
 * Memory: it ends the process with a message when there is none left. What it keeps of a request
 * is bounded by in_flight_max and by the sizes of the requests, answers by answer_bytes_max.
 * Texts are UTF-8 that ends in NUL; keys, values and payloads are any bytes. */
#ifndef ESKER_CLIENT_H
#define ESKER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a call or request. The texts say more; programs decide by these. */
enum esk_client_code {
    ESK_CLIENT_OK = 0,
    /* The broker refused it, and nothing was written. */
    ESK_CLIENT_INVALID,          /* a field or option is wrong */
    ESK_CLIENT_UNAUTHENTICATED,  /* no key, or an unknown or revoked one */
    ESK_CLIENT_FORBIDDEN,        /* the key may not do this */
    ESK_CLIENT_NOT_FOUND,        /* no such topic or partition */
    ESK_CLIENT_TOO_LARGE,        /* a record or frame is over the broker's limit */
    ESK_CLIENT_THROTTLED,        /* over the key's quota; later it may succeed */
    ESK_CLIENT_SEQUENCE_GAP,     /* a record's sequence skips ahead */
    ESK_CLIENT_SEQUENCE_TOO_LOW, /* it is older than the last 128 */
    /* The broker could not do it. */
    ESK_CLIENT_UNAVAILABLE, /* starting, stopping, or out of memory for requests; try later */
    ESK_CLIENT_NO_SPACE,    /* its disk is full; try later */
    ESK_CLIENT_BROKER,      /* another error; its text says which */
    /* There is no answer. */
    ESK_CLIENT_CONNECT,  /* no connection: refused, unknown name, or too slow */
    ESK_CLIENT_TLS,      /* the TLS handshake failed, such as for a certificate not trusted */
    ESK_CLIENT_PROTOCOL, /* what answers is no ES01 broker, or breaks the protocol */
    ESK_CLIENT_TIMEOUT,  /* no answer in time; a produce may have been written or not */
    ESK_CLIENT_LOST,     /* the connection ended first; a produce may have been written or not */
    /* From the library. */
    ESK_CLIENT_FULL,   /* in_flight_max requests are out; wait for an answer, then submit again */
    ESK_CLIENT_CLOSED, /* the pipeline was closed before the answer came */
};

/* "ok", "not found", ...: static; any number may be given. */
const char *esk_client_code_text(enum esk_client_code code);
/* Whether the same call may succeed later without a change to it. */
bool esk_client_code_retriable(enum esk_client_code code);

struct esk_client_error {
    enum esk_client_code code;
    char text[512]; /* for people; the broker's own where it answered */
};

/* How to reach a broker. Set defaults with esk_client_options_init first: later versions add
 * fields. Texts are borrowed during the call that takes the options. */
struct esk_client_options {
    const char *address; /* "HOST:PORT" or "[::1]:PORT"; default "127.0.0.1:9001" */
    const char *key;     /* an API key's secret, at most 1,024 bytes; default NULL: none */

    bool tls;                    /* default false */
    const char *tls_ca_file;     /* PEM; default NULL: the system's authorities */
    const char *tls_server_name; /* what the certificate must name; default NULL: the host */
    bool tls_insecure;           /* take any certificate; for tests only */
    const char *tls_cert_file;   /* PEM, for mutual TLS; default NULL: none */
    const char *tls_key_file;    /* PEM, of that certificate */

    bool gzip; /* compress payloads both ways, where the broker agrees; default false */

    uint32_t connect_timeout_ms; /* for connection and handshakes; default 10,000 */
    uint32_t
        request_timeout_ms;  /* from submitting to the answer, retries included; default 30,000 */
    bool reconnects;         /* make a lost connection anew; default true */
    uint32_t backoff_ms_min; /* pause before the second attempt, then doubled; default 50 */
    uint32_t backoff_ms_max; /* default 5,000 */

    /* Idempotent: the library takes a random producer id and numbers each partition's records, so
     * that a request is sent again after a lost connection or a passing error and yet written
     * once, in order. Every record then names a partition (esk_client_partition helps), and a
     * request had best be for one partition alone: one for several whose first answer was lost may
     * end as ESK_CLIENT_LOST. Offsets of records that were written before the connection was lost
     * are ESK_CLIENT_OFFSET_UNKNOWN once more than 128 came behind them. Default false. */
    bool idempotent;
    /* Or the program numbers records itself: its id, kept over restarts, and a sequence in each
     * record. Such requests are sent again after a lost connection. Not with `idempotent`. */
    const char *producer_id;

    uint32_t in_flight_max;    /* requests of a pipeline without an answer, 1 to 65,536; default 32,
                                  which is what a broker works on at once for one connection */
    uint32_t answer_bytes_max; /* a larger answer is an error; default 80 MiB */
};
void esk_client_options_init(struct esk_client_options *options);

#define ESK_CLIENT_PARTITION_ANY (-1)        /* by the key's hash, else in turn */
#define ESK_CLIENT_SEQUENCE_NONE INT64_MIN   /* the record has none */
#define ESK_CLIENT_OFFSET_UNKNOWN UINT64_MAX /* written, but it is no longer known where */

/* A record to produce; its bytes are borrowed during the call. */
struct esk_client_record {
    const void *key; /* NULL: no key; an empty key is one that is not NULL, of size 0 */
    size_t key_size;
    const void *value; /* may be NULL when its size is 0 */
    size_t value_size;
    int32_t partition; /* from 0, or ESK_CLIENT_PARTITION_ANY */
    int64_t sequence;  /* ESK_CLIENT_SEQUENCE_NONE unless options.producer_id is set */
};

/* Where a produced record is. */
struct esk_client_written {
    uint64_t offset;
    uint32_t partition;
    bool duplicate; /* a retry: it had been written before */
};

/* A record as it was consumed. */
struct esk_client_message {
    uint64_t offset;
    int64_t timestamp_ms; /* since 1970, when the broker received it */
    const void *key;      /* NULL: no key */
    size_t key_size;
    const void *value; /* never NULL */
    size_t value_size;
    uint32_t partition;
};

/* What a consume found; `messages` and all bytes belong to the library. */
struct esk_client_batch {
    const struct esk_client_message *messages;
    size_t count;            /* 0: nothing there yet */
    uint64_t next_offset;    /* to ask for next: offsets have gaps, never compute it */
    uint64_t high_watermark; /* the offset behind the last committed record */
};

/* The partition (0 to count - 1) that a key goes to when records name none: by FNV-1a as topics
 * have it by default, or by murmur2 for topics with "partitioner":"murmur2". count is at least 1.
 */
uint32_t esk_client_partition(const void *key, size_t key_size, uint32_t count, bool murmur2);

/* --- the blocking client --- */

struct esk_client;

/* Connects; blocks up to connect_timeout_ms (a resolver may add to that). options NULL: defaults.
 * On success *client is owned by the caller, to be closed. `error` may be NULL here and below. */
enum esk_client_code esk_client_open(const struct esk_client_options *options,
                                     struct esk_client **client, struct esk_client_error *error);
void esk_client_close(struct esk_client *client); /* NULL does nothing */

/* Appends `count` records (at least 1) as one request, durable when it returns ESK_CLIENT_OK.
 * `written`, when not NULL, has room for `count` results, in the records' order. The calls block up
 * to request_timeout_ms; when the connection is lost and `reconnects` is set they go on with a new
 * one, unless a produce without sequences may have been written already: ESK_CLIENT_LOST. */
enum esk_client_code esk_client_produce(struct esk_client *client, const char *topic,
                                        const struct esk_client_record *records, size_t count,
                                        struct esk_client_written *written,
                                        struct esk_client_error *error);

/* Reads a partition from an offset: up to max_records (at least 1) and about max_bytes, the
 * broker's limits permitting; one record comes even when it is larger. *batch is valid until the
 * client's next call. */
enum esk_client_code esk_client_consume(struct esk_client *client, const char *topic,
                                        uint32_t partition, uint64_t offset, uint32_t max_records,
                                        uint32_t max_bytes, struct esk_client_batch *batch,
                                        struct esk_client_error *error);

/* Sends a ping and waits for its echo. */
enum esk_client_code esk_client_ping(struct esk_client *client, struct esk_client_error *error);

#ifdef __cplusplus
}
#endif

#include <esker/pipeline.h>

#endif
