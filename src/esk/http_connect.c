/* SPDX-License-Identifier: Apache-2.0 */
/* Where a server is, and the way there: every address that its name has is tried in turn. */
#include "esk/http_client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_PORT "9000"

static enum esk_err refuse(struct esk_error *error, const char *url) {
    return esk_fail(error, ESK_ERR_INVALID,
                    "'%s' is no server; allowed is http://HOST:PORT or https://HOST:PORT, such as "
                    "http://127.0.0.1:9000 or https://[::1]:9000",
                    url);
}

static bool is_port(const char *text, size_t size) {
    unsigned port = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return size > 0 && size <= 5 && port > 0 && port <= 65535;
}

enum esk_err esk_http_server_parse(struct esk_http_server *server, const char *url,
                                   struct esk_error *error) {
    bool is_secure = strncmp(url, "https://", 8) == 0;
    const char *at = is_secure ? url + 8 : strncmp(url, "http://", 7) == 0 ? url + 7 : url;
    if (strstr(at, "://")) {
        return refuse(error, url);
    }
    bool is_bracketed = *at == '[';
    const char *host = at + is_bracketed;
    size_t host_size = strcspn(host, is_bracketed ? "]" : ":/");
    at = host + host_size;
    if (is_bracketed && *at++ != ']') {
        return refuse(error, url);
    }
    const char *port = DEFAULT_PORT;
    size_t port_size = strlen(port);
    if (*at == ':') {
        port = at + 1;
        port_size = strcspn(port, "/");
        at = port + port_size;
    }
    bool has_more = *at != '\0' && strcmp(at, "/") != 0;
    bool is_odd = host_size == 0 || host_size >= sizeof(server->host) || has_more;
    for (size_t i = 0; i < host_size && !is_odd; i++) {
        is_odd = host[i] <= ' ' || host[i] >= 0x7f || host[i] == '@' || host[i] == '?';
    }
    if (is_odd || !is_port(port, port_size)) {
        return refuse(error, url);
    }
    memset(server, 0, sizeof(*server));
    server->is_secure = is_secure;
    snprintf(server->host, sizeof(server->host), "%.*s", (int)host_size, host);
    snprintf(server->port, sizeof(server->port), "%.*s", (int)port_size, port);
    snprintf(server->authority, sizeof(server->authority), is_bracketed ? "[%s]:%s" : "%s:%s",
             server->host, server->port);
    return ESK_OK;
}

/* Connects to one address; the number of what went wrong, or 0. */
static int connect_to(const struct addrinfo *address, uint32_t timeout_ms, int *fd) {
    *fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0) {
        return errno;
    }
    int number = 0;
    if (connect(*fd, address->ai_addr, address->ai_addrlen) != 0) {
        number = errno;
    }
    if (number == EINPROGRESS) {
        struct pollfd poller = {.fd = *fd, .events = POLLOUT};
        socklen_t size = sizeof(number);
        int ready;
        do {
            ready = poll(&poller, 1, (int)timeout_ms);
        } while (ready < 0 && errno == EINTR);
        if (ready == 0) {
            number = ETIMEDOUT;
        } else if (getsockopt(*fd, SOL_SOCKET, SO_ERROR, &number, &size) != 0) {
            number = errno;
        }
    }
    int on = 1;
    if (number == 0 && setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) {
        number = errno;
    }
    if (number != 0) {
        close(*fd);
        *fd = -1;
    }
    return number;
}

/* A plain socket to the first address that answers. */
static enum esk_err connect_plain(const struct esk_http_server *server, uint32_t timeout_ms,
                                  int *fd, struct esk_error *error) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses = NULL;
    *fd = -1;
    int found = getaddrinfo(server->host, server->port, &hints, &addresses);
    if (found != 0) {
        return esk_fail(error, ESK_ERR_UNAVAILABLE, "%s: %s", server->host, gai_strerror(found));
    }
    int number = EADDRNOTAVAIL;
    for (const struct addrinfo *at = addresses; at && *fd < 0; at = at->ai_next) {
        number = connect_to(at, timeout_ms, fd);
    }
    freeaddrinfo(addresses);
    return *fd >= 0 ? ESK_OK
                    : esk_fail_errno(error, ESK_ERR_UNAVAILABLE, number, "connect to %s",
                                     server->authority);
}

enum esk_err esk_http_connect(const struct esk_http_server *server, uint32_t timeout_ms,
                              struct esk_http_stream *stream, struct esk_error *error) {
    *stream = ESK_HTTP_STREAM_NONE;
    enum esk_err err = connect_plain(server, timeout_ms, &stream->fd, error);
    if (err == ESK_OK && server->is_secure) {
        err = esk_http_stream_secure(stream, server->tls, server->host, timeout_ms, error);
        if (err != ESK_OK) {
            esk_wrap(error, "connect to %s", server->authority);
            esk_http_stream_close(stream);
        }
    }
    return err;
}
