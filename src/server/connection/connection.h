/* SPDX-License-Identifier: Apache-2.0 */
/* One client's connection as a door sees it: a window of input, a queue of output, one deadline.
 * Everything here runs in the loop of the connection's shard.
 *
 * The layer calls `serve` whenever something may have changed: input came or ended, output drained,
 * the server is stopping, or the door asked for it with esk_connection_wake. The door looks at what
 * there is, and does what it can. Bytes written are sent when `serve` returns. `serve` is never
 * called from inside another function of this header.
 *
 * `closed` is the end: nothing can be sent any more. A door with work in flight holds the
 * connection (esk_connection_hold), so that the struct stays until the last release. */
#ifndef ESK_SERVER_CONNECTION_CONNECTION_H
#define ESK_SERVER_CONNECTION_CONNECTION_H

#include "base/list.h"
#include "base/memory.h"

#include <stdatomic.h>

struct esk_connection;

/* One read brings at most this much; a door that needs more at once collects it itself. */
#define ESK_CONNECTION_WINDOW_BYTES (64 * 1024)
/* Bytes behind the window that may be read (not used): parsers that look ahead need them. */
#define ESK_CONNECTION_PADDING_BYTES 64
/* A door should produce nothing more while so much waits to be sent; `serve` is called when it has
 * become less. */
#define ESK_CONNECTION_OUTPUT_BYTES_MAX (64 * 1024)
/* What esk_connection_block_take gives. */
#define ESK_CONNECTION_BLOCK_BYTES (128 * 1024)
/* What esk_connection_reserve can give at once. */
#define ESK_CONNECTION_RESERVE_BYTES_MAX 3968

struct esk_door_ops {
    void (*opened)(struct esk_connection *connection);
    void (*serve)(struct esk_connection *connection);
    void (*expired)(struct esk_connection *connection); /* the deadline passed; it is off now */
    void (*closed)(struct esk_connection *connection);
};
struct esk_door {
    const struct esk_door_ops *ops;
    void *context; /* the door's own */
    /* May be NULL, and the client is dropped then: there is no memory to keep what `serve` left of
     * the input, and it is lost. To answer what can be answered, and finish. */
    void (*overloaded)(struct esk_connection *connection);
    /* With TLS; each may be NULL. */
    void (*handshake_ended)(struct esk_connection *connection, bool succeeded);
    const char *alpn;               /* the protocol's name, RFC 7301 */
    const char *answer_without_tls; /* sent as it is to a client that does not speak TLS */
    atomic_uint connections;        /* open now, all shards */
};

/* The door's own data for this connection; NULL at first. */
void *esk_connection_data(const struct esk_connection *connection);
void esk_connection_set_data(struct esk_connection *connection, void *data);
struct esk_door *esk_connection_door(const struct esk_connection *connection);
uint32_t esk_connection_shard(const struct esk_connection *connection);

/* The client's address, without its port, in network order: IPv6, or IPv4 as IPv6 has it
 * (::ffff:a.b.c.d), so one client has one address on either kind of listener. Zeros: unknown. */
#define ESK_PEER_BYTES 16
struct esk_peer {
    uint8_t bytes[ESK_PEER_BYTES];
};
struct esk_peer esk_connection_peer(const struct esk_connection *connection);

/* --- input --- */

/* What came and was not consumed. The bytes stay until `serve` returns; what is left of them then
 * is kept and shown again. */
struct esk_slice esk_connection_input(const struct esk_connection *connection);
void esk_connection_consume(struct esk_connection *connection, size_t size);
/* What is read next goes to `room`, which stays until it is full or this is called again, instead
 * of into the window; size 0: into the window again. To be called when all that is shown was
 * consumed; what is shown later came behind it. */
void esk_connection_read_into(struct esk_connection *connection, uint8_t *room, size_t size);
/* How many bytes have come there since the last call. */
size_t esk_connection_read_count(struct esk_connection *connection);
/* Whether to read on; true at first. While it is false the client is not read from, which holds it
 * back in the end. */
void esk_connection_want_input(struct esk_connection *connection, bool wanted);
/* The client will send nothing more: it is gone, or has closed its sending side and waits. Shows
 * also while no input is wanted; there may be unread input before the end. */
bool esk_connection_input_ending(const struct esk_connection *connection);
/* All input has been shown, nothing follows. */
bool esk_connection_input_ended(const struct esk_connection *connection);

/* --- output --- */

/* Room for `size` bytes at the end of the output; then commit what was used of it. */
uint8_t *esk_connection_reserve(struct esk_connection *connection, size_t size);
void esk_connection_commit(struct esk_connection *connection, size_t size);
void esk_connection_write(struct esk_connection *connection, const void *bytes, size_t size);
/* Takes one reference of the block. */
void esk_connection_write_block(struct esk_connection *connection, struct esk_block **block,
                                uint32_t position, uint32_t size);
/* The bytes are the door's: they stay as they are until all output is sent (output_bytes is 0), or
 * `closed`. A door that lends wakes the connection; it is served again then until all is sent. */
void esk_connection_lend(struct esk_connection *connection, struct esk_slice bytes);
/* Sends now what the socket takes, within the bound of a turn; from inside `serve`, or outside. */
void esk_connection_flush(struct esk_connection *connection);
/* An empty block of ESK_CONNECTION_BLOCK_BYTES from the shard's pool, owned; write it or give it
 * back. */
struct esk_block *esk_connection_block_take(struct esk_connection *connection);
void esk_connection_block_give(struct esk_connection *connection, struct esk_block **block);
size_t esk_connection_output_bytes(const struct esk_connection *connection); /* not sent yet */
/* A client that reads so slowly that more than this waits to be sent is dropped; 0, as at first:
 * only one that reads nothing for the server's stall_ms is. To be above the largest answer that the
 * door queues at once. */
void esk_connection_set_output_bound(struct esk_connection *connection, size_t bytes);

/* --- life --- */

/* `serve` will be called soon; harmless after `closed`. */
void esk_connection_wake(struct esk_connection *connection);
/* Calls `expired` in delay_ms, if it is not set anew before; 0: never. Coarse: up to 250 ms late.
 */
void esk_connection_set_deadline(struct esk_connection *connection, uint32_t delay_ms);
/* The time left, at least 1 ms, for a frame or body of which a part has come: base_ms from its
 * beginning, a third of that while it holds memory that others may wait for, and a second more for
 * each 16 KiB that came. */
uint32_t esk_connection_receive_ms(uint64_t passed_ns, uint32_t base_ms, bool holds_memory,
                                   uint64_t received_bytes);
/* Sends what is queued, then ends: the client's remaining input is read and dropped for a while,
 * so that it sees the answer instead of a reset. `serve` is not called any more. */
void esk_connection_finish(struct esk_connection *connection);
/* Ends at once; `closed` comes soon, not from inside. */
void esk_connection_abort(struct esk_connection *connection);
bool esk_connection_is_open(const struct esk_connection *connection); /* `closed` not called yet */
/* The server stops: end when no request is in flight. */
bool esk_connection_stopping(const struct esk_connection *connection);

void esk_connection_hold(struct esk_connection *connection);
void esk_connection_release(struct esk_connection *connection);

#endif
