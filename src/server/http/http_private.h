/* SPDX-License-Identifier: Apache-2.0 */
/* One request from its head to its answer, and what the handlers share.
 *
 * A route has two functions. `read` takes path, query and body apart into the request; it touches
 * nothing else, since a large body is read on a helper. `run` acts on the result in the
 * connection's loop: it answers at once, or starts an operation of the broker whose `done` answers
 * later.
 *
 * An answer is built in one piece by eski_respond*, or piece by piece by a `fill` function, so that
 * no turn encodes more than about ESKI_FILL_BYTES. */
#ifndef ESK_SERVER_HTTP_PRIVATE_H
#define ESK_SERVER_HTTP_PRIVATE_H

#include "broker/caller.h"
#include "broker/cleaning.h"
#include "broker/keys.h"
#include "broker/membership.h"
#include "broker/memory.h"
#include "broker/producers.h"
#include "broker/quotas.h"
#include "broker/raft.h"
#include "server/http/http.h"
#include "server/http/parts_private.h"
#include "server/http/route_table.h"
#include "wire/http/head.h"
#include "wire/http/response.h"
#include "wire/json/document.h"
#include "wire/json/writer.h"

#define ESKI_FILL_BYTES (ESK_CONNECTION_BLOCK_BYTES - 16)
#define ESKI_ARENA_BYTES_MAX ((size_t)1 << 30) /* a request's parts; its budget ends it before */

enum eski_state {
    ESKI_STATE_ROOM,    /* in line for memory to collect the body in */
    ESKI_STATE_BODY,    /* collecting the body */
    ESKI_STATE_PARSER,  /* in line for memory to parse it in */
    ESKI_STATE_READING, /* a helper takes the body apart */
    ESKI_STATE_RUNNING, /* the broker works */
    ESKI_STATE_ANSWERING,
};

/* Appends the next piece of the answer's body; true: that was the last one. A piece may be empty
 * when there is more to compute. May turn the answer into an error by eski_fail, as long as nothing
 * was sent. */
typedef bool (*eski_fill)(struct eski_request *request, struct esk_buffer *out);

struct eski_request {
    struct eski_request *next; /* in the shard's pool */
    struct eski_http_shard *shard;
    struct esk_connection *connection;
    const struct eski_route *route; /* NULL: none */
    enum eski_state state;
    bool keep_alive;
    bool is_head;
    bool is_http_1_0;
    bool expects_continue;
    bool is_chunked;
    bool is_gone;      /* the client is; `cancel` was called */
    bool is_waiting;   /* answering, but the broker works on the next piece: it must stay */
    bool strings_stay; /* the document stays until the end, strings need not be copied */
    struct esk_arena arena;
    struct esk_slice parameters[ESKI_ROUTE_PARAMETERS_MAX]; /* decoded */
    struct esk_slice path;
    struct esk_slice query;
    struct esk_slice last_event_id; /* the header, for a tail */
    struct esk_caller caller;
    struct esk_key_watch watch; /* of a read that waits: eski_watch_key */
    enum esk_err refusal;       /* the key may not: `error` is the answer once the body has come */
    struct esk_slice target;    /* what an administrative act is about; size 0: the path */
    uint64_t started_ns;
    uint64_t charged_bytes;         /* taken from the broker's budget */
    struct esk_memory_claim room;   /* of it, for a large body */
    struct esk_memory_claim parser; /* likewise */

    /* body */
    uint64_t content_length;
    struct esk_http_chunks *chunks;
    struct esk_buffer body; /* what was collected, with padding behind it */
    uint64_t body_started_ns;

    /* a large body on the helper */
    struct esk_mail mail;
    struct esk_json_document *document;
    enum esk_err read_result;
    struct esk_error error;

    /* the answer */
    struct esk_http_response response;
    bool is_head_sent;
    bool is_sent; /* all of it is queued */
    eski_fill fill;
    size_t position;        /* of the fill function */
    struct esk_buffer text; /* an answer made in one piece that is too large to send as one */
    void (*cancel)(struct eski_request *request);
    /* The key was revoked within the answer: true, `fill` says so and ends it; false, or NULL: the
     * connection is cut. */
    bool (*cut_off)(struct eski_request *request);
    void (*clean)(struct eski_request *request); /* before the request is forgotten */

    union {
        struct {
            struct esk_topic_operation operation;
            struct esk_topic_config_change change;
        } topic;
        struct esk_topic_description description;
        struct esk_produce produce;
        struct {
            struct esk_consume consume;
            struct esk_offset_fetch fetch; /* of a group */
            struct eski_consume_encoder encoder;
            bool is_base64;
        } read;
        struct esk_offset_commit commit;
        struct esk_offset_fetch fetch;
        struct esk_metrics_scrape scrape;
        struct esk_member_operation member;
        struct esk_group_listing listing;
        struct esk_offset_reset reset;
        struct esk_cleaning cleaning;
        struct eski_tail tail;
        struct eski_atlas atlas;
        struct esk_raft_listing raft;
        struct {
            uint32_t partition;
        } tiered;
        struct eski_schema schema;
        struct esk_producer_list producer_list;
        struct esk_producer_removal producer_removal;
        struct esk_key_creation key_creation;
        struct esk_key_revocation key_revocation;
        struct esk_key_list key_list;
    };
};

struct eski_http_shard {
    struct esk_http *http;
    struct esk_broker_shard *broker;
    uint32_t number;
    struct esk_http_head head; /* scratch: of the request that begins */
    struct esk_json_document *document;
    struct esk_buffer out;          /* scratch: of the answer that is made */
    struct esk_connection *serving; /* whose requests are looked at anyway */
    struct eski_request *pool;
    uint32_t pool_count;
    struct esk_metrics *metrics;
    struct esk_counter requests[ESKI_OPERATION_COUNT];
    struct esk_counter errors[ESKI_OPERATION_COUNT];
    struct esk_histogram durations[ESKI_OPERATION_COUNT];
    struct esk_counter connections; /* shard 0's; set by a scrape */
    struct esk_counter handshakes_done;
    struct esk_counter handshakes_failed;
};

struct esk_http {
    struct esk_http_options options;
    struct esk_door door;
    struct esk_executor *helper;
    struct eski_http_shard *shards;
};

/* request.c */
struct eski_request *eski_request_create(struct eski_http_shard *shard,
                                         struct esk_connection *connection);
void eski_request_destroy(struct eski_request *request);
/* Takes more of the budget for it; false: over the budget, it holds nothing then. Any thread. */
bool eski_request_take(struct eski_request *request, uint64_t bytes);
/* The same in the loop, and answers with 503 when there is none. */
bool eski_request_charge(struct eski_request *request, uint64_t bytes);
/* Begins with what the head says: route, parameters. Answers when that fails. */
void eski_request_route(struct eski_request *request, const struct esk_http_head *head);
/* The body is whole: read, then run. */
void eski_request_dispatch(struct eski_request *request, struct esk_slice body);

/* body.c: takes what has come of the body; false: more must come, or room must be waited for. */
bool eski_body_collect(struct eski_request *request);

/* router.c: the route, or NULL; *allow gets the methods of the path when only the method is wrong
 * (static or in the arena). Parameters are those of the path, still encoded. */
const struct eski_route *eski_router_find(enum esk_http_method method, struct esk_slice path,
                                          struct esk_slice parameters[ESKI_ROUTE_PARAMETERS_MAX],
                                          struct esk_arena *arena, const char **allow);

#include "server/http/answers_private.h"
#include "server/http/fields_private.h"

#endif
