/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets and GnuTLS. TLS copies what it sends into `sealed` first, so that many small frames share
 * a record; plain bytes go to the socket from where they are. */
#include "client/channel.h"

#include "base/assert.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEALED_BYTES_MAX (64 * 1024)
#define READ_CALL_BYTES_MAX (1024 * 1024 * 1024)

void eski_channel_init(struct eski_channel *channel) {
    memset(channel, 0, sizeof(*channel));
    channel->fd = -1;
    esk_buffer_init(&channel->sealed);
}

void eski_channel_fini(struct eski_channel *channel) {
    eski_channel_close(channel);
    esk_buffer_fini(&channel->sealed);
}

void eski_channel_close(struct eski_channel *channel) {
    if (channel->session) {
        if (channel->state == ESKI_CHANNEL_READY) {
            (void)gnutls_bye(channel->session, GNUTLS_SHUT_WR);
        }
        gnutls_deinit(channel->session);
        channel->session = NULL;
    }
    if (channel->fd >= 0) {
        close(channel->fd);
    }
    channel->fd = -1;
    channel->state = ESKI_CHANNEL_CLOSED;
    channel->sealed.size = channel->sealed_sent = 0;
    channel->is_sealing = channel->wants_write = false;
}

static bool fail(struct eski_channel *channel, enum esk_client_code code, const char *text) {
    eski_client_fail(&channel->error, code, "%s", text);
    if (channel->session && channel->state == ESKI_CHANNEL_READY) {
        channel->state = ESKI_CHANNEL_TLS; /* no farewell on a connection that failed */
    }
    eski_channel_close(channel);
    return false;
}

static bool fail_to_connect(struct eski_channel *channel, int number) {
    char text[256];
    snprintf(text, sizeof(text), "connect to %s port %s: %s", channel->target->host,
             channel->target->port, strerror(number));
    return fail(channel, ESK_CLIENT_CONNECT, text);
}

/* --- connecting --- */

static bool begin_tls(struct eski_channel *channel) {
    const struct eski_target *target = channel->target;
    int result = gnutls_init(&channel->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (result >= 0) {
        result = gnutls_set_default_priority(channel->session);
    }
    if (result >= 0) {
        result =
            gnutls_credentials_set(channel->session, GNUTLS_CRD_CERTIFICATE, target->credentials);
    }
    if (result >= 0 && !target->is_name_numeric) {
        result = gnutls_server_name_set(channel->session, GNUTLS_NAME_DNS, target->server_name,
                                        strlen(target->server_name));
    }
    if (result < 0) {
        return fail(channel, ESK_CLIENT_TLS, gnutls_strerror(result));
    }
    if (!target->tls_insecure) {
        gnutls_session_set_verify_cert(channel->session, target->server_name, 0);
    }
    gnutls_transport_set_int(channel->session, channel->fd);
    channel->state = ESKI_CHANNEL_TLS;
    return true;
}

static bool fail_handshake(struct eski_channel *channel, int result) {
    char text[512];
    gnutls_datum_t reason = {0};
    if (result == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
        unsigned status = gnutls_session_get_verify_cert_status(channel->session);
        (void)gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &reason, 0);
    }
    snprintf(text, sizeof(text), "TLS with %s port %s: %s", channel->target->host,
             channel->target->port, reason.data ? (char *)reason.data : gnutls_strerror(result));
    gnutls_free(reason.data);
    return fail(channel, ESK_CLIENT_TLS, text);
}

static bool step_tls(struct eski_channel *channel) {
    int result;
    do {
        result = gnutls_handshake(channel->session);
    } while (result == GNUTLS_E_INTERRUPTED || result == GNUTLS_E_WARNING_ALERT_RECEIVED);
    channel->wants_write = false;
    if (result == GNUTLS_E_SUCCESS) {
        channel->state = ESKI_CHANNEL_READY;
        return true;
    }
    if (result == GNUTLS_E_AGAIN) {
        channel->wants_write = gnutls_record_get_direction(channel->session) == 1;
        return true;
    }
    return fail_handshake(channel, result);
}

static bool step_connected(struct eski_channel *channel) {
    int on = 1;
    channel->wants_write = false;
    (void)setsockopt(channel->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (channel->target->tls) {
        return begin_tls(channel) && step_tls(channel);
    }
    channel->state = ESKI_CHANNEL_READY;
    return true;
}

bool eski_channel_begin(struct eski_channel *channel, const struct eski_target *target,
                        const struct addrinfo *address) {
    ESK_ASSERT(channel->state == ESKI_CHANNEL_CLOSED);
    channel->target = target;
    channel->fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (channel->fd < 0) {
        return fail_to_connect(channel, errno);
    }
    channel->state = ESKI_CHANNEL_CONNECTING;
    if (connect(channel->fd, address->ai_addr, address->ai_addrlen) == 0) {
        return step_connected(channel);
    }
    if (errno != EINPROGRESS) {
        return fail_to_connect(channel, errno);
    }
    channel->wants_write = true;
    return true;
}

bool eski_channel_step(struct eski_channel *channel) {
    int number = 0;
    socklen_t size = sizeof(number);
    struct sockaddr_storage peer;
    socklen_t peer_size = sizeof(peer);
    switch (channel->state) {
    case ESKI_CHANNEL_CONNECTING:
        if (getsockopt(channel->fd, SOL_SOCKET, SO_ERROR, &number, &size) != 0) {
            number = errno;
        }
        if (number != 0) {
            return fail_to_connect(channel, number);
        }
        if (getpeername(channel->fd, (struct sockaddr *)&peer, &peer_size) != 0) {
            return errno == ENOTCONN || fail_to_connect(channel, errno); /* not yet */
        }
        return step_connected(channel);
    case ESKI_CHANNEL_TLS:
        return step_tls(channel);
    case ESKI_CHANNEL_CLOSED:
    case ESKI_CHANNEL_READY:
        break;
    }
    return true;
}

/* --- reading --- */

static ssize_t read_tls(struct eski_channel *channel, void *memory, size_t size) {
    for (;;) {
        ssize_t count = gnutls_record_recv(channel->session, memory, size);
        if (count > 0) {
            return count;
        }
        if (count == 0) {
            (void)fail(channel, ESK_CLIENT_LOST, "the broker closed the connection");
            return -1;
        }
        if (count == GNUTLS_E_AGAIN) {
            return 0;
        }
        if (gnutls_error_is_fatal((int)count)) {
            (void)fail(channel, ESK_CLIENT_LOST, gnutls_strerror((int)count));
            return -1;
        }
    }
}

ssize_t eski_channel_read(struct eski_channel *channel, void *memory, size_t size) {
    size = size < READ_CALL_BYTES_MAX ? size : READ_CALL_BYTES_MAX;
    if (channel->session) {
        return read_tls(channel, memory, size);
    }
    for (;;) {
        ssize_t count = recv(channel->fd, memory, size, 0);
        if (count > 0) {
            return count;
        }
        if (count == 0) {
            (void)fail(channel, ESK_CLIENT_LOST, "the broker closed the connection");
            return -1;
        }
        if (errno == EAGAIN) {
            return 0;
        }
        if (errno != EINTR) {
            (void)fail(channel, ESK_CLIENT_LOST, strerror(errno));
            return -1;
        }
    }
}

bool eski_channel_has_more(const struct eski_channel *channel) {
    return channel->session && channel->state == ESKI_CHANNEL_READY &&
           gnutls_record_check_pending(channel->session) > 0;
}

/* --- writing --- */

bool eski_channel_flush(struct eski_channel *channel) {
    channel->wants_write = false;
    while (channel->session && channel->sealed_sent < channel->sealed.size) {
        const uint8_t *data = channel->sealed.data + channel->sealed_sent;
        size_t size = channel->sealed.size - channel->sealed_sent;
        ssize_t count = channel->is_sealing ? gnutls_record_send(channel->session, NULL, 0)
                                            : gnutls_record_send(channel->session, data, size);
        channel->is_sealing = count == GNUTLS_E_AGAIN || count == GNUTLS_E_INTERRUPTED;
        if (count == GNUTLS_E_AGAIN) {
            channel->wants_write = true;
            return true;
        }
        if (count < 0 && gnutls_error_is_fatal((int)count)) {
            return fail(channel, ESK_CLIENT_LOST, gnutls_strerror((int)count));
        }
        channel->sealed_sent += count > 0 ? (size_t)count : 0;
    }
    channel->sealed.size = channel->sealed_sent = 0;
    return true;
}

static ssize_t write_tls(struct eski_channel *channel, const struct iovec *parts, int count) {
    size_t taken = 0;
    if (channel->sealed.size) {
        return 0;
    }
    for (int i = 0; i < count && channel->sealed.size < SEALED_BYTES_MAX; i++) {
        size_t room = SEALED_BYTES_MAX - channel->sealed.size;
        size_t size = parts[i].iov_len < room ? parts[i].iov_len : room;
        esk_buffer_append(&channel->sealed, parts[i].iov_base, size);
        taken += size;
    }
    return eski_channel_flush(channel) ? (ssize_t)taken : -1;
}

ssize_t eski_channel_write(struct eski_channel *channel, const struct iovec *parts, int count) {
    if (channel->session) {
        return write_tls(channel, parts, count);
    }
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                             .msg_iovlen = (size_t)count};
    channel->wants_write = false;
    for (;;) {
        ssize_t sent = sendmsg(channel->fd, &message, MSG_NOSIGNAL);
        if (sent >= 0) {
            return sent;
        }
        if (errno == EAGAIN) {
            channel->wants_write = true;
            return 0;
        }
        if (errno == EPIPE || errno == ECONNRESET) {
            /* What the broker said before it closed may still be there to read. */
            return 0;
        }
        if (errno != EINTR) {
            (void)fail(channel, ESK_CLIENT_LOST, strerror(errno));
            return -1;
        }
    }
}
