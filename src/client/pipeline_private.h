/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a pipeline. Requests live in slots that are used again, so nothing is allocated for
 * a request once each slot has seen one of its size.
 *
 * The life of a slot: free; queued (in `requests`, in the order of submission); sent; and free
 * again when its callback runs. A lost connection, or an error that passes, makes a sent one queued
 * again at its old place, so `unsent` is always the first queued one of the list; behind it none
 * is sent, except while `is_settling`. */
#ifndef ESK_CLIENT_PIPELINE_PRIVATE_H
#define ESK_CLIENT_PIPELINE_PRIVATE_H

#include "base/list.h"
#include "client/channel.h"
#include "client/numbering.h"
#include "wire/es01/gzip.h"
#include "wire/es01/protocol.h"

#define ESKI_SLOTS_MAX 65536            /* a request id has 16 bits for its slot */
#define ESKI_FRAME_BYTES_MAX (1u << 30) /* of a request; brokers take about 10 MiB */
#define ESKI_PING_BYTES_MAX (64 * 1024)

enum eski_pipeline_state {
    ESKI_PIPELINE_DOWN,       /* no connection; the next attempt is at attempt_ns */
    ESKI_PIPELINE_CONNECTING, /* the channel is on its way */
    ESKI_PIPELINE_HELLO,      /* the handshake of ES01 */
    ESKI_PIPELINE_UP,
    ESKI_PIPELINE_BROKEN, /* lost, and not to be made anew */
};

struct eski_slot {
    struct esk_link link;
    uint32_t index;
    uint16_t generation; /* one more for each use, so that a late answer is recognised */
    uint8_t opcode;
    bool is_sent;
    bool is_sequenced;        /* a produce whose retry is recognised */
    bool is_uncertain;        /* was sent, and the connection was lost without an answer */
    bool is_retried;          /* sent again after that */
    bool is_one_partition;    /* all its records name the same */
    uint32_t refusals;        /* of a numbered request, for a gap */
    uint32_t record_count;    /* of a produce */
    struct eski_topic *topic; /* numbered: whose numbers it has */
    struct esk_buffer frame;  /* as it goes out, unless it is compressed */
    struct esk_buffer packed; /* with gzip: as it goes out */
    uint64_t deadline_ns;
    esk_pipeline_callback *callback;
    void *context;
};

struct esk_pipeline {
    enum eski_pipeline_state state;
    struct eski_target target;
    struct eski_channel channel;
    const struct addrinfo *address; /* being tried */

    /* Options. */
    char *key; /* owned; NULL: none */
    char *producer_id;
    bool wants_gzip;
    bool reconnects;
    bool is_single; /* process ends behind one callback: what it showed stays valid */
    uint64_t connect_timeout_ns;
    uint64_t request_timeout_ns;
    uint64_t backoff_ns_min;
    uint64_t backoff_ns_max;
    uint64_t answer_bytes_max;
    uint32_t slots_max;

    /* Waking. */
    int epoll_fd;
    int timer_fd;
    uint64_t timer_ns;   /* what it is set to; 0: nothing */
    uint32_t events;     /* what the channel's socket is watched for; 0: it is not */
    uint64_t now_ns;     /* of this call into the pipeline */
    uint64_t attempt_ns; /* DOWN: when to connect; else: when the attempt has failed */
    uint32_t attempts;   /* since the last connection */
    uint64_t hold_ns;    /* nothing is sent before; 0: no pause */
    uint32_t holds;      /* since the last answer that was none to pause for */
    uint64_t random;

    /* Requests. */
    struct eski_slot **slots; /* owned */
    uint32_t slot_count;
    struct esk_link free;
    struct esk_link requests;
    struct eski_slot *unsent; /* NULL: all are sent */
    size_t unsent_sent;       /* bytes of it that are out already */
    uint32_t in_flight;
    uint32_t sent;
    size_t callbacks; /* that ran in this call */
    bool in_callback;

    /* Idempotence. */
    bool is_idempotent;
    struct eski_numbering numbering;
    bool is_settling;  /* nothing is sent until all that is sent is answered; then numbers are
                          given anew */
    bool needs_new_id; /* when they are: under another producer id */

    /* Bytes. */
    uint8_t hello[ESK_ES01_HELLO_BYTES_MAX];
    size_t hello_size;
    size_t hello_sent;
    bool has_gzip;
    struct esk_es01_deflater *deflater;
    struct esk_es01_inflater *inflater;
    struct esk_buffer input;
    size_t input_begin;      /* of what is not parsed yet */
    struct esk_buffer plain; /* an inflated payload */
    struct esk_client_written *written;
    size_t written_capacity;
    struct esk_client_message *messages;
    size_t messages_capacity;

    struct esk_client_error error; /* of the last attempt or loss */
    struct esk_client_error told;  /* a broker's word that belongs to no request */
};

static inline struct eski_slot *eski_slot_at(struct esk_link *link) {
    return ESK_CONTAINER(link, struct eski_slot, link);
}

/* pipeline.c */
/* All but the connection; state DOWN. */
enum esk_client_code eski_pipeline_create(const struct esk_client_options *options,
                                          struct esk_pipeline **pipeline,
                                          struct esk_client_error *error);

/* pipeline_requests.c: what becomes of slots. */
/* Frees the slot, then runs its callback. */
void eski_request_end(struct esk_pipeline *pipeline, struct eski_slot *slot,
                      const struct esk_pipeline_answer *answer);
void eski_request_fail(struct esk_pipeline *pipeline, struct eski_slot *slot,
                       enum esk_client_code code, const char *text);
void eski_requests_fail_all(struct esk_pipeline *pipeline, enum esk_client_code code,
                            const char *text);
/* The connection is gone: those that may not be sent again end. */
void eski_requests_lost(struct esk_pipeline *pipeline);
void eski_requests_expire(struct esk_pipeline *pipeline);
/* A broker's error for a request: it ends, or is sent again later. */
void eski_request_refused(struct esk_pipeline *pipeline, struct eski_slot *slot,
                          enum esk_client_code code, const char *text);
/* Ends settling when nothing is out any more. */
void eski_requests_settle(struct esk_pipeline *pipeline);
/* Fills slot->packed when the connection compresses. */
void eski_request_pack(struct esk_pipeline *pipeline, struct eski_slot *slot);

/* pipeline_answers.c: parses what is in `input`. false: the connection is to be given up, and
 * pipeline->error says why. */
bool eski_pipeline_take(struct esk_pipeline *pipeline);
struct esk_client_written *eski_written_grow(struct esk_pipeline *pipeline, size_t count);

/* pipeline_connect.c: the connection. */
void eski_pipeline_start(struct esk_pipeline *pipeline);
void eski_pipeline_connect(struct esk_pipeline *pipeline);       /* goes on with an attempt */
void eski_pipeline_greet(struct esk_pipeline *pipeline);         /* sends the hello, or its rest */
void eski_pipeline_check_attempt(struct esk_pipeline *pipeline); /* ends one that takes too long */
/* Gives up the connection, or the attempt at one. `error` may be pipeline->error itself. */
void eski_pipeline_lose(struct esk_pipeline *pipeline, const struct esk_client_error *error);
/* How long to pause before the try of that number, from 0; with some chance in it. */
uint64_t eski_pipeline_pause_ns(struct esk_pipeline *pipeline, uint32_t number);

/* pipeline_run.c: reading, writing, waking. */
uint64_t eski_clock_ns(void);
void eski_pipeline_step(struct esk_pipeline *pipeline);
/* Waits until there is something to do, at most up to until_ns. */
void eski_pipeline_sleep(struct esk_pipeline *pipeline, uint64_t until_ns);

/* answer.c: pure. The code that a broker's error text stands for. */
enum esk_client_code eski_code_of_error(struct esk_slice text);

#endif
