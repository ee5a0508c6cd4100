/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking HTTP client on one kept-alive connection, which opens by itself and anew where the
 * server has closed it between two requests. One owner. */
#ifndef ESK_ESK_HTTP_CLIENT_H
#define ESK_ESK_HTTP_CLIENT_H

#include "esk/http_answer.h"
#include "esk/http_stream.h"

#define ESK_HTTP_HOST_BYTES_MAX 256

/* Where a server is. */
struct esk_http_server {
    char host[ESK_HTTP_HOST_BYTES_MAX]; /* without brackets */
    char port[6];
    char authority[ESK_HTTP_HOST_BYTES_MAX + 10]; /* of the Host header */
    bool is_secure;                               /* https */
    const struct esk_http_tls *tls;               /* borrowed; set when is_secure */
    const char *key;                              /* of the Authorization header; NULL: none */
};

/* Reads "http[s]://host[:port][/]"; the scheme may be left out. Sets neither tls nor key.
 * ESK_ERR_INVALID says why not. */
enum esk_err esk_http_server_parse(struct esk_http_server *server, const char *url,
                                   struct esk_error *error);

/* A connection, non-blocking from then on; blocks up to timeout_ms, and again for TLS.
 * ESK_ERR_UNAVAILABLE: nobody listens; ESK_ERR_UNAUTHENTICATED: TLS failed; the stream is closed
 * then. */
enum esk_err esk_http_connect(const struct esk_http_server *server, uint32_t timeout_ms,
                              struct esk_http_stream *stream, struct esk_error *error);

/* Appends a request with a body (data NULL: none). */
void esk_http_request(struct esk_buffer *out, const struct esk_http_server *server,
                      const char *method, const char *path, struct esk_slice body);
/* Appends text, percent-encoded as a segment of a path or a query's value. */
void esk_http_append_encoded(struct esk_buffer *out, const char *text);

struct esk_http_client {
    const struct esk_http_server *server; /* borrowed */
    uint32_t timeout_ms;                  /* for each of: connect, request and answer */
    struct esk_http_stream stream;
    struct esk_buffer request;
    struct esk_buffer input; /* read but not yet parsed: begins at `parsed` */
    size_t parsed;
    struct esk_http_answer answer; /* of the last call */
};

void esk_http_client_init(struct esk_http_client *client, const struct esk_http_server *server,
                          uint32_t timeout_ms);
void esk_http_client_fini(struct esk_http_client *client);

/* Sends a request. ESK_ERR_UNAVAILABLE: no connection; ESK_ERR_UNAUTHENTICATED: TLS
 * failed; ESK_ERR_TIMEOUT. */
enum esk_err esk_http_client_send(struct esk_http_client *client, const char *method,
                                  const char *path, struct esk_slice body, struct esk_error *error);
/* After the socket became readable: whether bytes of an answer are there (of TLS it may have been
 * something else), or the connection ended. Does not block. */
bool esk_http_client_is_ready(struct esk_http_client *client);
/* Receives its answer, which may take extra_ms longer than usual. Behind the body there are at
 * least ESK_JSON_PADDING readable bytes. */
enum esk_err esk_http_client_receive(struct esk_http_client *client, uint32_t extra_ms,
                                     struct esk_error *error);

/* As much of it as one read gives, in at most timeout_ms, for an answer that goes on and on: what
 * of the body was used may be taken out. ESK_ERR_AGAIN: more follows; ESK_OK: it is whole. */
enum esk_err esk_http_client_pull(struct esk_http_client *client, uint32_t timeout_ms,
                                  struct esk_error *error);

#endif
