/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: a TLS client on a blocking socket, and the files of its server. */
#ifndef ESK_SERVER_CONNECTION_TLS_CLIENT_TESTING_H
#define ESK_SERVER_CONNECTION_TLS_CLIENT_TESTING_H

#include "security/certificates.h"
#include "security/certificates_testing.h"
#include "server/connection/echo_world_testing.h"

#include <errno.h>
#include <fcntl.h>

struct client {
    int fd;
    bool dribbles; /* sends one byte at a time */
    gnutls_session_t session;
    gnutls_certificate_credentials_t credentials;
};

static inline ssize_t client_pull(gnutls_transport_ptr_t context, void *bytes, size_t size) {
    return recv(((struct client *)context)->fd, bytes, size, 0);
}

static inline ssize_t client_push(gnutls_transport_ptr_t context, const void *bytes, size_t size) {
    struct client *client = context;
    return send(client->fd, bytes, client->dribbles ? 1 : size, MSG_NOSIGNAL);
}

/* priorities NULL: the usual ones. own NULL: shows no certificate. */
static inline void client_init(struct client *client, const char *priorities,
                               const struct test_certificate *own) {
    memset(client, 0, sizeof *client);
    client->fd = dial();
    /* Shows its certificate whatever authorities the server names. */
    check_gnutls(gnutls_init(&client->session, GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT));
    check_gnutls(
        gnutls_priority_set_direct(client->session, priorities ? priorities : "NORMAL", NULL));
    check_gnutls(gnutls_certificate_allocate_credentials(&client->credentials));
    if (own) {
        gnutls_x509_crt_t certificate = own->certificate;
        check_gnutls(
            gnutls_certificate_set_x509_key(client->credentials, &certificate, 1, own->key));
    }
    check_gnutls(
        gnutls_credentials_set(client->session, GNUTLS_CRD_CERTIFICATE, client->credentials));
    gnutls_handshake_set_timeout(client->session, GNUTLS_INDEFINITE_TIMEOUT);
    gnutls_transport_set_ptr(client->session, client);
    gnutls_transport_set_pull_function(client->session, client_pull);
    gnutls_transport_set_push_function(client->session, client_push);
}

static inline int client_handshake(struct client *client) {
    int result;
    do {
        result = gnutls_handshake(client->session);
    } while (result < 0 && !gnutls_error_is_fatal(result));
    return result;
}

static inline void client_open(struct client *client) {
    client_init(client, NULL, NULL);
    check_gnutls(client_handshake(client));
}

static inline void client_close(struct client *client) {
    gnutls_deinit(client->session);
    gnutls_certificate_free_credentials(client->credentials);
    close(client->fd);
}

static inline ssize_t client_receive(struct client *client, void *bytes, size_t size) {
    ssize_t count;
    do {
        count = gnutls_record_recv(client->session, bytes, size);
    } while (count == GNUTLS_E_AGAIN || count == GNUTLS_E_INTERRUPTED);
    return count;
}

/* Sends a few bytes and wants them back; false: the connection has ended instead. */
static inline bool client_echoes(struct client *client) {
    char got[6] = "";
    size_t have = 0;
    if (gnutls_record_send(client->session, "hello", 5) != 5) {
        return false;
    }
    while (have < 5) {
        ssize_t count = client_receive(client, got + have, 5 - have);
        if (count <= 0) {
            return false;
        }
        have += (size_t)count;
    }
    assert_string_equal(got, "hello");
    return true;
}

/* Both ways at once through small sockets: neither side may wait for the other. */
static inline void client_exchange(struct client *client, size_t size) {
    uint8_t *sent = esk_alloc(size);
    uint8_t *got = esk_alloc(size);
    for (size_t i = 0; i < size; i++) {
        sent[i] = (uint8_t)(i * 2654435761u >> 13);
    }
    assert_int_equal(fcntl(client->fd, F_SETFL, O_NONBLOCK), 0);
    size_t out = 0;
    size_t in = 0;
    size_t step = 1; /* records of all sizes */
    while (in < size) {
        ssize_t more_out = 0;
        ssize_t more_in = gnutls_record_recv(client->session, got + in, size - in);
        if (out < size) {
            size_t left = size - out;
            more_out = gnutls_record_send(client->session, sent + out, step < left ? step : left);
            if (more_out > 0) {
                out += (size_t)more_out;
                step = step * 5 % 40009;
            }
        }
        assert_true(more_in > 0 || more_in == GNUTLS_E_AGAIN);
        assert_true(more_out >= 0 || more_out == GNUTLS_E_AGAIN);
        in += more_in > 0 ? (size_t)more_in : 0;
        if (more_in < 0 && more_out <= 0) {
            struct pollfd waiting = {client->fd, (short)(out < size ? POLLIN | POLLOUT : POLLIN),
                                     0};
            assert_int_equal(poll(&waiting, 1, -1), 1);
        }
    }
    assert_memory_equal(sent, got, size);
    assert_int_equal(fcntl(client->fd, F_SETFL, 0), 0);
    free(sent);
    free(got);
}

#endif
