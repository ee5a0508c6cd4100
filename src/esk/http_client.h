/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking HTTP client on one kept-alive connection, which opens by itself and anew where the
 * server has closed it between two requests. One owner. */
#ifndef ESK_ESK_HTTP_CLIENT_H
#define ESK_ESK_HTTP_CLIENT_H

#include "esk/http_answer.h"

#define ESK_HTTP_HOST_BYTES_MAX 256

/* Where a server is. */
struct esk_http_server {
    char host[ESK_HTTP_HOST_BYTES_MAX]; /* without brackets */
    char port[6];
    char authority[ESK_HTTP_HOST_BYTES_MAX + 10]; /* of the Host header */
};

/* Reads "http://host[:port][/]"; the scheme may be left out. ESK_ERR_INVALID says why not. */
enum esk_err esk_http_server_parse(struct esk_http_server *server, const char *url,
                                   struct esk_error *error);

/* A connected, non-blocking socket; blocks up to timeout_ms. ESK_ERR_UNAVAILABLE: nobody listens.
 */
enum esk_err esk_http_connect(const struct esk_http_server *server, uint32_t timeout_ms, int *fd,
                              struct esk_error *error);

/* Appends a request with a body (data NULL: none). */
void esk_http_request(struct esk_buffer *out, const struct esk_http_server *server,
                      const char *method, const char *path, struct esk_slice body);
/* Appends text, percent-encoded as a segment of a path or a query's value. */
void esk_http_append_encoded(struct esk_buffer *out, const char *text);

struct esk_http_client {
    const struct esk_http_server *server; /* borrowed */
    uint32_t timeout_ms;                  /* for each of: connect, request and answer */
    int fd;                               /* -1: not connected */
    struct esk_buffer request;
    struct esk_buffer input; /* read but not yet parsed: begins at `parsed` */
    size_t parsed;
    struct esk_http_answer answer; /* of the last call */
};

void esk_http_client_init(struct esk_http_client *client, const struct esk_http_server *server,
                          uint32_t timeout_ms);
void esk_http_client_fini(struct esk_http_client *client);

/* Sends a request. ESK_ERR_UNAVAILABLE: no connection; ESK_ERR_TIMEOUT. */
enum esk_err esk_http_client_send(struct esk_http_client *client, const char *method,
                                  const char *path, struct esk_slice body, struct esk_error *error);
/* Receives its answer, which may take extra_ms longer than usual. Behind the body there are at
 * least ESK_JSON_PADDING readable bytes. */
enum esk_err esk_http_client_receive(struct esk_http_client *client, uint32_t extra_ms,
                                     struct esk_error *error);

#endif
