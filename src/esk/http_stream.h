/* SPDX-License-Identifier: Apache-2.0 */
/* The connection below HTTP: a non-blocking socket, with TLS for https. Sends and receives answer
 * as those of sockets do, errno EAGAIN included. One owner. */
#ifndef ESK_ESK_HTTP_STREAM_H
#define ESK_ESK_HTTP_STREAM_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gnutls_session_int;
struct gnutls_certificate_credentials_st;

/* What TLS is done with; shared by all connections of a command. */
struct esk_http_tls {
    struct gnutls_certificate_credentials_st *credentials;
    bool is_insecure;
};

/* Files in PEM; each may be NULL. ca NULL: the system's authorities. ESK_ERR_INVALID names the
 * file. To be freed in either case. */
enum esk_err esk_http_tls_init(struct esk_http_tls *tls, const char *ca, const char *cert,
                               const char *cert_key, bool is_insecure, struct esk_error *error);
void esk_http_tls_fini(struct esk_http_tls *tls);

struct esk_http_stream {
    int fd;                             /* -1: not connected */
    struct gnutls_session_int *session; /* NULL: plain */
    bool is_sending;                    /* TLS holds a record that must be gone on with */
    char problem[256];                  /* what TLS says of the last failure; empty: nothing */
};
#define ESK_HTTP_STREAM_NONE ((struct esk_http_stream){.fd = -1})

/* The handshake on a connected socket; blocks up to timeout_ms. ESK_ERR_UNAUTHENTICATED: TLS says
 * no; ESK_ERR_TIMEOUT, _UNAVAILABLE; the stream stays to be closed. */
enum esk_err esk_http_stream_secure(struct esk_http_stream *stream, const struct esk_http_tls *tls,
                                    const char *host, uint32_t timeout_ms, struct esk_error *error);
void esk_http_stream_close(struct esk_http_stream *stream);

ssize_t esk_http_stream_send(struct esk_http_stream *stream, const void *bytes, size_t size);
ssize_t esk_http_stream_receive(struct esk_http_stream *stream, void *memory, size_t size);
/* Whether bytes are left inside of TLS, for which the socket does not become readable. */
bool esk_http_stream_has_more(const struct esk_http_stream *stream);

#endif
