/* SPDX-License-Identifier: Apache-2.0 */
/* TLS on one connection. The session is GnuTLS's; between accept and the end of the handshake it
 * belongs, step by step, to a helper, since a signature takes up to some milliseconds; afterwards
 * to the connection's loop. */
#ifndef ESK_SERVER_CONNECTION_TLS_PRIVATE_H
#define ESK_SERVER_CONNECTION_TLS_PRIVATE_H

#include "server/connection/connection_private.h"

struct gnutls_session_int;

enum eski_tls_state {
    ESKI_TLS_WAITING,  /* for the client's bytes, or for room for ours */
    ESKI_TLS_STEPPING, /* the session is with the helper */
    ESKI_TLS_ESTABLISHED,
    ESKI_TLS_BROKEN, /* the handshake failed: only the socket is left */
};

struct eski_tls {
    enum eski_tls_state state;
    struct esk_connection *connection;
    struct esk_certificates *certificates; /* retained: what the session was begun with */
    struct gnutls_session_int *session;    /* NULL: the client has not said anything yet */
    struct esk_mail mail;                  /* to the helper and back */
    int result;                            /* of the step */
    int socket_errno;                      /* of the last failed call of the socket */

    /* Reading, in the loop: bytes of the socket are read ahead into the shard's window for TLS. */
    uint8_t *ahead; /* what GnuTLS has not taken of them */
    size_t ahead_bytes;
    uint8_t *ahead_kept; /* owned; where `ahead` lies from one turn to the next */
    size_t allowance;    /* bytes that may still be read in this turn */
    bool reads_ahead;    /* not while the helper has the session */
    bool is_drained;     /* the socket is empty: an event will say when there is more */
    bool has_ended;      /* as the socket's end of input, behind what was read before */
    bool has_failed;     /* likewise */
    bool has_record;     /* GnuTLS has a record of ours that the socket has not taken whole */
};

#define ESKI_TLS_WINDOW_BYTES (64 * 1024)

/* tls.c, in the loop. */
struct eski_tls *eski_tls_create(struct esk_connection *connection);
void eski_tls_destroy(struct eski_tls *tls); /* NULL does nothing; not while it steps */
/* Not established yet: goes on with the handshake as far as can be without waiting. The connection
 * may be aborted or finishing afterwards, without TLS, or its session with the helper. */
void eski_tls_handshake(struct esk_connection *connection);

/* tls_record.c, established: as those of socket.c. */
void eski_tls_set_transport(struct eski_tls *tls);
ssize_t eski_tls_read(struct esk_connection *connection, void *bytes, size_t size);
ssize_t eski_tls_write(struct esk_connection *connection, const struct iovec *pieces, int count);
/* Tells the client that no more follows. 0, or -1 with EAGAIN. */
int eski_tls_goodbye(struct esk_connection *connection);

#endif
