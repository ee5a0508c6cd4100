/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets and GnuTLS behind one pair of calls. */
#include "esk/http_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static enum esk_err refuse(struct esk_error *error, const char *option, const char *file,
                           int result) {
    return esk_fail(error, ESK_ERR_INVALID, "%s %s: %s", option, file, gnutls_strerror(result));
}

enum esk_err esk_http_tls_init(struct esk_http_tls *tls, const char *ca, const char *cert,
                               const char *cert_key, bool is_insecure, struct esk_error *error) {
    tls->is_insecure = is_insecure;
    int result = gnutls_certificate_allocate_credentials(&tls->credentials);
    if (result < 0) {
        tls->credentials = NULL;
        return refuse(error, "TLS", "set-up", result);
    }
    if (ca) {
        result = gnutls_certificate_set_x509_trust_file(tls->credentials, ca, GNUTLS_X509_FMT_PEM);
        if (result <= 0) {
            return refuse(error, "--ca", ca, result ? result : GNUTLS_E_NO_CERTIFICATE_FOUND);
        }
    } else if (!is_insecure) {
        /* Without any, the handshake tells that nothing is trusted. */
        (void)gnutls_certificate_set_x509_system_trust(tls->credentials);
    }
    if (cert) {
        result = gnutls_certificate_set_x509_key_file(tls->credentials, cert, cert_key,
                                                      GNUTLS_X509_FMT_PEM);
        if (result < 0) {
            return refuse(error, "--cert", cert, result);
        }
    }
    return ESK_OK;
}

void esk_http_tls_fini(struct esk_http_tls *tls) {
    if (tls->credentials) {
        gnutls_certificate_free_credentials(tls->credentials);
        tls->credentials = NULL;
    }
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static enum esk_err begin(struct esk_http_stream *stream, const struct esk_http_tls *tls,
                          const char *host, struct esk_error *error) {
    struct in6_addr number;
    bool is_numeric =
        inet_pton(AF_INET, host, &number) == 1 || inet_pton(AF_INET6, host, &number) == 1;
    int result = gnutls_init(&stream->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
                                                   GNUTLS_NO_TICKETS);
    if (result >= 0) {
        result = gnutls_set_default_priority(stream->session);
    }
    if (result >= 0) {
        result = gnutls_credentials_set(stream->session, GNUTLS_CRD_CERTIFICATE, tls->credentials);
    }
    if (result >= 0 && !is_numeric) {
        result = gnutls_server_name_set(stream->session, GNUTLS_NAME_DNS, host, strlen(host));
    }
    if (result < 0) {
        return esk_fail(error, ESK_ERR_UNAVAILABLE, "TLS: %s", gnutls_strerror(result));
    }
    if (!tls->is_insecure) {
        gnutls_session_set_verify_cert(stream->session, host, 0);
    }
    gnutls_transport_set_int(stream->session, stream->fd);
    return ESK_OK;
}

/* Whether an alert is about our certificate, or that there is none. */
static bool is_about_certificate(gnutls_alert_description_t alert) {
    return alert == GNUTLS_A_CERTIFICATE_REQUIRED ||
           (alert >= GNUTLS_A_BAD_CERTIFICATE && alert <= GNUTLS_A_CERTIFICATE_UNKNOWN) ||
           alert == GNUTLS_A_UNKNOWN_CA || alert == GNUTLS_A_ACCESS_DENIED;
}

/* What a failure means and what helps, to stream->problem. */
static void explain(struct esk_http_stream *stream, int result) {
    gnutls_datum_t reason = {0};
    const char *before = "";
    const char *text = gnutls_strerror(result);
    const char *hint = "";
    if (result == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
        unsigned status = gnutls_session_get_verify_cert_status(stream->session);
        (void)gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &reason, 0);
        text = reason.data ? (const char *)reason.data : text;
        if (status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNER_NOT_CA)) {
            hint = "; --ca names the authority that signed it";
        }
    } else if (result == GNUTLS_E_FATAL_ALERT_RECEIVED) {
        gnutls_alert_description_t alert = gnutls_alert_get(stream->session);
        const char *name = gnutls_alert_get_name(alert);
        before = "the server refuses: ";
        text = name ? name : text;
        if (is_about_certificate(alert)) {
            hint = "; it takes clients with a certificate that it trusts: --cert and --cert-key";
        }
    }
    size_t size = strlen(text);
    while (size && (text[size - 1] == '.' || text[size - 1] == ' ')) {
        size--;
    }
    (void)snprintf(stream->problem, sizeof(stream->problem), "%s%.*s%s", before,
                   size < 150 ? (int)size : 150, text, hint);
    gnutls_free(reason.data);
}

enum esk_err esk_http_stream_secure(struct esk_http_stream *stream, const struct esk_http_tls *tls,
                                    const char *host, uint32_t timeout_ms,
                                    struct esk_error *error) {
    uint64_t deadline = now_ms() + timeout_ms;
    enum esk_err err = begin(stream, tls, host, error);
    while (err == ESK_OK) {
        int result = gnutls_handshake(stream->session);
        if (result == GNUTLS_E_SUCCESS) {
            return ESK_OK;
        }
        if (gnutls_error_is_fatal(result)) {
            explain(stream, result);
            return esk_fail(error, ESK_ERR_UNAUTHENTICATED, "TLS: %s", stream->problem);
        }
        bool writes = gnutls_record_get_direction(stream->session) == 1;
        struct pollfd poller = {.fd = stream->fd, .events = writes ? POLLOUT : POLLIN};
        uint64_t now = now_ms();
        int ready = now < deadline ? poll(&poller, 1, (int)(deadline - now)) : 0;
        if (ready == 0) {
            err = esk_fail(error, ESK_ERR_TIMEOUT, "TLS: no handshake within %u ms", timeout_ms);
        } else if (ready < 0 && errno != EINTR) {
            err = esk_fail_errno(error, ESK_ERR_UNAVAILABLE, errno, "poll");
        }
    }
    return err;
}

void esk_http_stream_close(struct esk_http_stream *stream) {
    if (stream->session) {
        (void)gnutls_bye(stream->session, GNUTLS_SHUT_WR);
        gnutls_deinit(stream->session);
    }
    if (stream->fd >= 0) {
        close(stream->fd);
    }
    *stream = ESK_HTTP_STREAM_NONE;
}

/* GnuTLS's result as a socket's. */
static ssize_t translate(struct esk_http_stream *stream, ssize_t result) {
    if (result >= 0) {
        return result;
    }
    if (result == GNUTLS_E_PREMATURE_TERMINATION) {
        return 0; /* an end without a farewell; an answer's length tells whether it is whole */
    }
    if (result == GNUTLS_E_INTERRUPTED || result == GNUTLS_E_AGAIN) {
        errno = result == GNUTLS_E_AGAIN ? EAGAIN : EINTR;
    } else if (!gnutls_error_is_fatal((int)result)) {
        errno = EINTR; /* a warning, or the broker wants to talk about keys: try again */
    } else {
        explain(stream, (int)result);
        errno = EPROTO;
    }
    return -1;
}

ssize_t esk_http_stream_send(struct esk_http_stream *stream, const void *bytes, size_t size) {
    if (!stream->session) {
        return send(stream->fd, bytes, size, MSG_NOSIGNAL);
    }
    ssize_t result = stream->is_sending ? gnutls_record_send(stream->session, NULL, 0)
                                        : gnutls_record_send(stream->session, bytes, size);
    stream->is_sending = result == GNUTLS_E_AGAIN || result == GNUTLS_E_INTERRUPTED;
    return translate(stream, result);
}

/* GnuTLS says AGAIN after a message of its own, such as a ticket, though more may be there: who
 * polls edge by edge would not hear of it. */
static bool is_readable(const struct esk_http_stream *stream) {
    struct pollfd poller = {.fd = stream->fd, .events = POLLIN};
    return poll(&poller, 1, 0) > 0;
}

ssize_t esk_http_stream_receive(struct esk_http_stream *stream, void *memory, size_t size) {
    if (!stream->session) {
        return recv(stream->fd, memory, size, 0);
    }
    ssize_t result;
    do {
        result = gnutls_record_recv(stream->session, memory, size);
    } while (result == GNUTLS_E_AGAIN && is_readable(stream));
    return translate(stream, result);
}

bool esk_http_stream_has_more(const struct esk_http_stream *stream) {
    return stream->session && gnutls_record_check_pending(stream->session) > 0;
}
