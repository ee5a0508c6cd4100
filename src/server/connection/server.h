/* SPDX-License-Identifier: Apache-2.0 */
/* The connection layer under every door: it listens, accepts, and spreads connections over the
 * shards' loops. A door says what to do with the bytes (connection.h).
 *
 * Life cycle: create, listen once per door, stop. All of it in the main thread, while the loops
 * run; all of it may block. */
#ifndef ESK_SERVER_CONNECTION_SERVER_H
#define ESK_SERVER_CONNECTION_SERVER_H

#include "broker/broker.h"

struct esk_server;
struct esk_door;
struct esk_certificates;

struct esk_server_options {
    struct esk_platform *platform;
    struct esk_loop **loops; /* of src/runtime, one per shard, running */
    uint32_t shard_count;
    struct esk_broker *broker; /* whose memory budget counts; NULL: none does */
    const struct esk_log *log;
    /* TLS on every listener; borrowed during create. NULL: plain connections. */
    struct esk_certificates *certificates;
    uint32_t handshake_ms;    /* of TLS, from accept to its end */
    uint32_t connections_max; /* 0: three quarters of the descriptors that the process may have */
    uint32_t stall_ms;        /* a client that takes none of its answer for so long is dropped */
    uint32_t linger_ms;       /* from a client's last bytes on, after its last answer */
    uint32_t stop_ms;         /* what requests get to end in when the server stops */
};
void esk_server_options_init(struct esk_server_options *options);

/* Raises the process's limit of descriptors as far as it may. ESK_ERR_IO: no descriptors left. */
enum esk_err esk_server_create(const struct esk_server_options *options, struct esk_server **server,
                               struct esk_error *error);

/* Listens at "ADDR:PORT", "[ADDR]:PORT" or "NAME:PORT"; port 0 picks one. `address` (may be NULL)
 * gets where it really listens, as text. The door is borrowed until stop has returned.
 * ESK_ERR_INVALID: no such address; ESK_ERR_CONFLICT: in use; ESK_ERR_PERMISSION; ESK_ERR_IO. */
#define ESK_SERVER_ADDRESS_BYTES 80
enum esk_err esk_server_listen(struct esk_server *server, struct esk_door *door, const char *where,
                               char address[ESK_SERVER_ADDRESS_BYTES], struct esk_error *error);

/* For connections to come; those that are open keep theirs. Borrowed during the call. The server
 * has had some from its start. */
void esk_server_set_certificates(struct esk_server *server, struct esk_certificates *certificates);

/* Accepts nothing more, lets requests in flight be answered for stop_ms, closes all connections and
 * frees the server. Requests that the broker still has are waited for without bound, so it must not
 * have stopped. */
void esk_server_stop(struct esk_server *server);

#endif
