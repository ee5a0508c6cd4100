/* SPDX-License-Identifier: Apache-2.0 */
/* The state of this door, by owner: shards, clients, requests, merges; es01_private.h says what
 * they are for. */
#ifndef ESK_SERVER_ES01_STATE_PRIVATE_H
#define ESK_SERVER_ES01_STATE_PRIVATE_H

#include "base/list.h"
#include "broker/caller.h"
#include "broker/consume_walk.h"
#include "broker/memory.h"
#include "broker/produce.h"
#include "server/connection/addresses.h"
#include "server/es01/es01.h"
#include "wire/es01/consume.h"
#include "wire/es01/gzip.h"

/* A frame up to this size is left in the connection's input until it is whole; larger ones are
 * collected. */
#define ESKI_ES01_SMALL_BYTES 4096
/* Memory for a larger frame is claimed before it is read; who claims waits in line. */
#define ESKI_ES01_UNCLAIMED_BYTES_MAX (64 * 1024)
/* Larger produces are written on their own: merging them would gain nothing. */
#define ESKI_ES01_MERGED_FRAME_BYTES_MAX (16 * 1024)
#define ESKI_ES01_MERGE_BYTES_MAX (256 * 1024)
#define ESKI_ES01_MERGE_RECORDS_MAX 2048 /* answered in one turn: about 0.2 ms */
#define ESKI_ES01_MERGES_MAX 8           /* open at once in a shard */
/* What the loop inflates or deflates itself; more goes to the helper (about 0.1 ms each). */
#define ESKI_ES01_INFLATE_BYTES_MAX (32 * 1024)
#define ESKI_ES01_DEFLATE_BYTES_MAX (4 * 1024)
#define ESKI_ES01_LOOP_RECORDS_MAX 4096 /* of a produce that the loop takes apart itself */
#define ESKI_ES01_FRAMES_PER_TURN 64    /* of one connection */

enum eski_es01_operation {
    ESKI_ES01_OPERATION_PRODUCE,
    ESKI_ES01_OPERATION_CONSUME,
    ESKI_ES01_OPERATION_PING,
    ESKI_ES01_OPERATION_NONE, /* an unknown opcode, or no frame at all */
    ESKI_ES01_OPERATION_COUNT,
};

enum eski_es01_state {
    ESKI_ES01_COLLECTING, /* its frame is not whole */
    ESKI_ES01_CLAIMING,   /* nor is there memory for it yet */
    ESKI_ES01_PREPARING,  /* with the helper: inflated, or taken apart */
    ESKI_ES01_WAITING,    /* for an earlier produce to the same topic, or for memory */
    ESKI_ES01_RUNNING,    /* with the broker */
    ESKI_ES01_ENCODING,   /* with the helper: its answer is compressed */
    ESKI_ES01_ANSWERING,
};

enum eski_es01_answer {
    ESKI_ES01_ANSWER_BYTES,   /* `body` */
    ESKI_ES01_ANSWER_RESULTS, /* of the produce */
    ESKI_ES01_ANSWER_RECORDS, /* of the consume */
};

struct eski_es01_request {
    struct eski_es01_request *next; /* in the shard's pool */
    struct esk_link link;           /* in one of the client's lists */
    struct eski_es01_shard *shard;
    struct eski_es01_client *client;
    struct esk_mail mail;
    uint32_t id;
    uint8_t opcode;
    enum eski_es01_state state;
    bool is_held;       /* in client->produces */
    bool is_authorised; /* by its beginning */
    uint64_t started_ns;
    struct esk_memory_claim claim; /* for `body` */
    uint64_t charged_bytes;        /* taken from the broker's budget besides */
    uint8_t topic[ESK_TOPIC_NAME_BYTES_MAX];
    uint32_t topic_bytes;

    /* The frame. */
    uint32_t payload_bytes; /* as sent */
    struct esk_buffer body; /* the payload, as far as it came */
    struct esk_buffer
        plain; /* what is inflated of it; the payload itself without gzip stays there */
    struct esk_slice packed; /* of body: not inflated yet */
    struct esk_es01_inflater *inflater;
    enum esk_err result; /* of the helper's work, or before it: of opening the produce */
    bool is_malformed;   /* the error ends the connection */
    struct esk_error error;

    /* The answer. */
    enum eski_es01_answer answer;
    uint8_t answer_opcode;
    bool is_packed;     /* answer_bytes are gzip already, or stay as they are */
    bool is_to_measure; /* by the helper */
    bool is_head_sent;
    bool is_lent;               /* the output has bytes of the consume's parts */
    uint64_t answer_bytes;      /* of its payload */
    uint64_t written_bytes;     /* of these */
    struct esk_produce_run run; /* ANSWER_RESULTS: what is left of it is next */
    struct esk_buffer text;     /* ANSWER_BYTES */
    struct esk_es01_fetched fetched;
    uint64_t record_bytes; /* of these, as quotas count them */
    struct esk_consume_walk walk;
    bool has_record;        /* the walk's record is partly written, */
    size_t record_position; /* up to here */
    uint64_t read_bytes;    /* of client->read_bytes */

    union {
        struct esk_produce produce;
        struct esk_consume consume;
    };
};

/* One produce made of many frames of callers with one key; in the order of their arrival. */
struct eski_es01_merge {
    struct eski_es01_merge *next; /* in the pool */
    struct esk_link link;         /* in shard->merges while it is open */
    struct eski_es01_shard *shard;
    struct esk_produce produce;
    struct esk_caller caller; /* held while the merge is in use */
    uint8_t topic[ESK_TOPIC_NAME_BYTES_MAX];
    uint32_t partition_count;
    uint64_t charged_bytes; /* taken from the broker's budget, */
    uint64_t used_bytes;    /* and what of it there was a need for */
    uint32_t frame_count;
    uint32_t frame_capacity;
    struct eski_es01_merged {
        struct eski_es01_client *client; /* NULL: it is answered */
        uint32_t id;
        uint32_t record_count;
        uint64_t started_ns;
    } * frames;
    uint32_t record_count;
    uint32_t data_bytes; /* of the payloads, from their records on */
};

struct eski_es01_client {
    struct eski_es01_shard *shard;
    struct esk_connection *connection;
    struct esk_peer peer;
    bool is_counted; /* in the table of addresses */
    bool is_welcome; /* the handshake is done */
    bool gzip;
    bool is_ending; /* nothing more is read; ends when all is answered */
    bool is_closed;
    bool is_serving;                    /* answers need not wake the connection */
    uint32_t in_flight;                 /* requests without a queued answer */
    uint64_t read_bytes;                /* of what its consumes hold, or may come to hold */
    uint64_t skip_bytes;                /* of a frame that is answered already */
    uint64_t partial_since_ns;          /* a frame has begun and is not whole; 0: none */
    uint64_t partial_bytes;             /* that frame's */
    struct eski_es01_request *incoming; /* being collected */
    struct esk_link produces;           /* that others wait for, or that wait; in order */
    struct esk_link consumes;           /* that wait for memory */
    struct esk_link answers;            /* to be written, in order; the first perhaps in part */
    struct esk_caller caller;           /* once it is welcome */
};

struct eski_es01_shard {
    struct esk_es01 *es01;
    struct esk_broker_shard *broker;
    struct esk_loop *loop;
    uint32_t number;
    uint64_t record_bytes_max;
    struct eski_es01_request *pool;
    uint32_t pool_count;
    struct esk_link merges; /* open ones, by age */
    uint32_t merge_count;
    struct eski_es01_merge *merge_pool;
    uint32_t merge_pool_count;
    uint32_t merged_bytes; /* what the payloads of merges have lately */
    struct esk_mail flush; /* to oneself, posted while there are open merges */
    bool is_flush_posted;
    struct esk_es01_inflater *inflater; /* NULL: lent to a request */
    struct esk_es01_deflater *deflater;
    struct esk_buffer inflated; /* scratch */
    struct esk_buffer encoded;  /* scratch */
    struct esk_buffer deflated; /* scratch */
    struct esk_metrics *metrics;
    struct esk_counter requests[ESKI_ES01_OPERATION_COUNT];
    struct esk_counter errors[ESKI_ES01_OPERATION_COUNT];
    struct esk_histogram durations[ESKI_ES01_OPERATION_COUNT];
    struct esk_counter connections;
    struct esk_counter handshakes_done;
    struct esk_counter handshakes_failed;
    uint64_t refusal_told_ns; /* when the log last heard of an address with too many */
};

struct esk_es01 {
    struct esk_es01_options options;
    struct esk_door door;
    struct esk_addresses *addresses;
    struct esk_executor *helper;
    struct esk_es01_deflater *helper_deflater; /* the helper's */
    struct eski_es01_shard *shards;
};

#endif
