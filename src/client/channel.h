/* SPDX-License-Identifier: Apache-2.0 */
/* A way to a broker: a non-blocking TCP connection, with TLS where it is asked for. It knows
 * nothing of ES01. One owner; nothing here blocks but the resolver of eski_target_resolve.
 *
 * Life: closed, then eski_channel_begin for each address of a target, eski_channel_step until it is
 * ready or failed, then reads and writes, then eski_channel_close. Trouble closes it and leaves a
 * code and text in `error`. */
#ifndef ESK_CLIENT_CHANNEL_H
#define ESK_CLIENT_CHANNEL_H

#include "base/memory.h"
#include <esker/client.h>

#include <netdb.h>
#include <stdarg.h>
#include <sys/uio.h>

struct gnutls_session_int;
struct gnutls_certificate_credentials_st;

/* Formats into error, which may be NULL; returns code. */
enum esk_client_code eski_client_fail(struct esk_client_error *error, enum esk_client_code code,
                                      const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Where to connect to, and as whom. */
struct eski_target {
    char *host; /* without brackets; this and the following texts are owned */
    char *port;
    char *server_name; /* for TLS; never NULL */
    bool is_name_numeric;
    bool tls;
    bool tls_insecure;
    struct gnutls_certificate_credentials_st *credentials; /* owned; NULL without TLS */
    struct addrinfo *addresses;                            /* owned; NULL: not resolved yet */
};

/* Copies what the options say and loads the certificates. To be freed in either case. */
enum esk_client_code eski_target_init(struct eski_target *target,
                                      const struct esk_client_options *options,
                                      struct esk_client_error *error);
void eski_target_fini(struct eski_target *target);
/* Finds the host's addresses anew; blocks when the host is a name. */
enum esk_client_code eski_target_resolve(struct eski_target *target,
                                         struct esk_client_error *error);

enum eski_channel_state {
    ESKI_CHANNEL_CLOSED,
    ESKI_CHANNEL_CONNECTING,
    ESKI_CHANNEL_TLS, /* its handshake */
    ESKI_CHANNEL_READY,
};

struct eski_channel {
    enum eski_channel_state state;
    int fd; /* -1: none */
    const struct eski_target *target;
    struct gnutls_session_int *session; /* NULL: plain */
    struct esk_buffer sealed;           /* TLS: accepted by eski_channel_write, not sent yet */
    size_t sealed_sent;
    bool is_sealing;  /* TLS holds a record that must be gone on with */
    bool wants_write; /* it waits for room to write */
    struct esk_client_error error;
};

void eski_channel_init(struct eski_channel *channel);
void eski_channel_fini(struct eski_channel *channel);
void eski_channel_close(struct eski_channel *channel);

/* Begins to connect to one address of the target, which is borrowed until the channel is closed.
 * false: it failed at once, channel->error says how. */
bool eski_channel_begin(struct eski_channel *channel, const struct eski_target *target,
                        const struct addrinfo *address);
/* Goes on after the socket became ready. false: it failed and is closed. */
bool eski_channel_step(struct eski_channel *channel);

/* Bytes read; 0: none for now; -1: it ended or failed, and is closed. */
ssize_t eski_channel_read(struct eski_channel *channel, void *memory, size_t size);
/* Whether bytes are left inside of TLS, for which the socket does not become ready. */
bool eski_channel_has_more(const struct eski_channel *channel);
/* Bytes taken, from the parts' front; may be 0; -1: it failed and is closed. wants_write tells
 * whether it waits for room. */
ssize_t eski_channel_write(struct eski_channel *channel, const struct iovec *parts, int count);
/* Sends on what eski_channel_write took. false: it failed and is closed. */
bool eski_channel_flush(struct eski_channel *channel);

#endif
