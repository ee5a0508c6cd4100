/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. A shard has one epoll set for all its sockets, itself
 * watched by one uv_poll: sockets are registered once, edge-triggered, and a turn takes a bounded
 * number of events. What an event or a door changed puts the connection into the shard's ready
 * list, which is worked off until the turn is spent; the rest goes on by a mail to oneself. */
#ifndef ESK_SERVER_CONNECTION_PRIVATE_H
#define ESK_SERVER_CONNECTION_PRIVATE_H

#include "base/list.h"
#include "server/connection/connection.h"
#include "server/connection/server.h"

#include <pthread.h>
#include <uv.h>

#define ESKI_TICK_MS 250
#define ESKI_WHEEL_SLOTS                                                                           \
    256 /* a power of two; later deadlines wait in the last slot and go round */
#define ESKI_BLOCK_BYTES_SMALL 4032 /* with its header just under a page */
#define ESKI_POOL_SMALL_MAX 256
#define ESKI_POOL_LARGE_MAX 8
struct eski_tls;
struct esk_certificates;

#define ESKI_LISTENER_TAG 1 /* in the low bit of an epoll event's pointer */

struct eski_pool {
    struct esk_block *blocks[ESKI_POOL_SMALL_MAX];
    uint32_t count;
    uint32_t count_max;
    uint32_t low; /* fewest since the last trim: that many were not needed */
    uint32_t block_bytes;
};

struct eski_shard {
    struct esk_server *server;
    uint32_t number;
    struct esk_loop *loop;
    struct esk_broker_shard *broker; /* NULL: no budget */
    int epoll_fd;
    uv_poll_t poll;
    struct esk_mail turn;  /* posted while is_turn_posted */
    struct esk_mail order; /* start, stop, close: from the main thread, one at a time */
    bool is_turn_posted;
    bool is_stopping;
    struct esk_link connections; /* open ones */
    struct esk_link ready;
    struct esk_timer tick;
    bool is_ticking;
    uint64_t tick_number; /* slots up to it have been emptied */
    uint64_t trim_due_tick;
    struct esk_link wheel[ESKI_WHEEL_SLOTS];
    struct eski_pool small;
    struct eski_pool large;
    uint8_t *window; /* shared: connections that keep nothing read into it */

    /* TLS */
    struct esk_certificates *certificates; /* of connections to come; NULL: they are plain */
    uint8_t *tls_window;                   /* shared scratch: records as the socket has them */
    uint64_t failure_log_tick;             /* none is logged before */
    uint64_t failures_unlogged;
};

struct eski_listener {
    struct eski_listener *next;
    struct esk_server *server;
    struct esk_door *door;
    int fd;
    bool is_paused; /* out of the epoll set: no descriptors, or connections_max reached */
};

struct esk_server {
    struct esk_server_options options;
    uint32_t connections_max;
    struct esk_executor *tls_helper;       /* NULL without TLS */
    struct esk_certificates *certificates; /* the newest ones, borrowed during an order */
    struct eski_shard *shards;
    struct eski_listener *listeners; /* shard 0's, once they listen */
    uint32_t shard_next;             /* shard 0's: gets the next connection */
    struct esk_mail resume;          /* to shard 0, posted while is_resuming */
    atomic_bool is_resuming;
    atomic_bool is_paused;   /* some listener is */
    atomic_uint sockets;     /* of connections, open */
    atomic_uint connections; /* structs, closed ones that are held too */
    pthread_mutex_t mutex;   /* orders and their answers, main thread and loops */
    pthread_cond_t changed;
    uint32_t orders_pending;
    int order_error; /* errno of the first order that failed */
};

struct eski_slice {
    const uint8_t *data;
    size_t size;             /* may be 0, in the middle of the queue */
    struct esk_block *block; /* goes with the slice; NULL: the bytes are the door's */
};
#define ESKI_SLICES_INLINE 4

struct esk_connection {
    struct eski_shard *shard;
    struct esk_door *door;
    void *data;
    int fd; /* -1: closed */
    struct esk_peer peer;
    struct eski_tls *tls; /* NULL: plain */
    unsigned holds;
    struct esk_link link;       /* in shard->connections */
    struct esk_link ready_link; /* in shard->ready */
    struct esk_link wheel_link;
    uint64_t due_tick;       /* the door's deadline; 0: none */
    uint64_t stall_due_tick; /* the layer's own: handshake, output, lingering; 0: none */
    uint64_t linger_last_tick;
    struct esk_mail arrival; /* from the listener's shard */

    bool readable;
    bool writable;
    bool peer_finished; /* its FIN arrived, perhaps behind unread bytes */
    bool input_ended;
    bool wants_input;
    bool is_finishing; /* ends when the output is sent */
    bool is_lingering; /* output sent and shut down */
    bool is_aborted;
    bool is_closed;

    /* `input` is what is shown: it points into the shard's window while `serve` runs on something
     * new, else into `kept`, which is owned and of just the size that `serve` left. */
    struct esk_slice input;
    uint8_t *kept;
    size_t kept_bytes;
    uint8_t *direct;                   /* where the door has the next bytes read to */
    size_t direct_bytes, direct_count; /* wanted there; come, and not told of yet */

    struct eski_slice *slices; /* a queue: head .. head + count */
    uint32_t slice_head;
    uint32_t slice_count;
    uint32_t slice_capacity; /* a power of two */
    size_t output_bytes;
    size_t output_bytes_max; /* more of them, and the client is dropped; 0: no bound */
    struct eski_slice slices_inline[ESKI_SLICES_INLINE];
};

/* shard.c */
void eski_shard_init(struct eski_shard *shard, struct esk_server *server, uint32_t number);
void eski_shard_free(struct eski_shard *shard);
int eski_shard_open(struct eski_shard *shard); /* in its loop; 0 or an errno value */
void eski_shard_stop(struct eski_shard *shard);
void eski_shard_abort(struct eski_shard *shard); /* all its connections */
void eski_shard_close(struct eski_shard *shard, uv_close_cb closed);
void eski_shard_ready(struct eski_shard *shard, struct esk_connection *connection);

/* deadlines.c */
void eski_deadlines_init(struct eski_shard *shard);
void eski_deadlines_start(struct eski_shard *shard); /* ticks while there are connections */
void eski_deadlines_place(struct esk_connection *connection);
void eski_deadlines_remove(struct esk_connection *connection);
uint64_t eski_deadlines_tick(struct eski_shard *shard, uint32_t delay_ms); /* the tick then */

/* connection.c */
struct esk_connection *eski_connection_create(struct eski_shard *shard, struct esk_door *door,
                                              int fd, const struct esk_peer *peer);
void eski_connection_attend(struct esk_connection *connection);
void eski_connection_expire(struct esk_connection *connection);

/* input.c */
void eski_input_read(struct esk_connection *connection);
void eski_input_keep(struct esk_connection *connection); /* what the door left */
/* While lingering: reads and drops, so that no reset overtakes the answer. */
void eski_input_drop(struct esk_connection *connection);
void eski_input_forget(struct esk_connection *connection);

/* output.c */
void eski_output_init(struct esk_connection *connection);
void eski_output_drop(struct esk_connection *connection);
/* Sends what the socket takes now; false when the connection is broken. */
bool eski_output_flush(struct esk_connection *connection);
void eski_pools_init(struct eski_shard *shard);
void eski_pools_trim(struct eski_shard *shard); /* gives back what was not needed lately */
void eski_pools_fini(struct eski_shard *shard);

/* listener.c */
enum esk_err eski_listener_open(const char *where, char address[ESK_SERVER_ADDRESS_BYTES], int *fd,
                                struct esk_error *error);
/* In shard 0: */
int eski_listener_watch(struct eski_listener *listener); /* 0 or an errno value */
void eski_listener_accept(struct eski_listener *listener);
void eski_listener_resume_all(struct esk_server *server);
void eski_listener_close_all(struct esk_server *server);
/* Any loop: a descriptor has become free. */
void eski_listener_descriptor_freed(struct esk_server *server);

/* server.c; any loop: a connection's struct is gone. */
void eski_server_connection_freed(struct esk_server *server);

/* socket.c: the one place where bytes meet the socket, or TLS. A read sets whether more can be
 * read at once. */
ssize_t eski_socket_read(struct esk_connection *connection, void *bytes, size_t size);
ssize_t eski_socket_write(struct esk_connection *connection, const struct iovec *pieces, int count);
/* Ends our side. 0, or -1 with errno as above. */
int eski_socket_finish(struct esk_connection *connection);

#endif
