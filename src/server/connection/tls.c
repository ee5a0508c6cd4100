/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake. It begins with a look at the client's first byte in the loop: a client that does
 * not speak TLS is told so and let go. From there on a helper makes the steps, each until GnuTLS
 * would wait; the loop waits for the event and posts the next one. While the helper has the session
 * the connection is left alone, its end too.
 *
 * A failed handshake is answered with an alert and ends as a finished connection does, so that the
 * client sees the alert. It is counted, and logged at debug level, once a second at most. */
#include "server/connection/tls_private.h"

#include "base/assert.h"
#include "security/certificates.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>

#define RECORD_OF_HANDSHAKE 0x16 /* RFC 8446, 5.1: the first byte of a client that speaks TLS */
#define WARNINGS_MAX 8           /* alerts that a step passes over */
#define LOG_EVERY_TICKS (1000 / ESKI_TICK_MS)

/* --- life --- */

struct eski_tls *eski_tls_create(struct esk_connection *connection) {
    struct eski_tls *tls = esk_alloc_zeroed(1, sizeof *tls);
    tls->connection = connection;
    tls->certificates = esk_certificates_retain(connection->shard->certificates);
    return tls;
}

static void free_session(struct eski_tls *tls) {
    if (tls->session) {
        gnutls_deinit(tls->session);
        tls->session = NULL;
    }
    free(tls->ahead_kept);
    tls->ahead_kept = NULL;
}

void eski_tls_destroy(struct eski_tls *tls) {
    if (tls) {
        ESK_ASSERT(tls->state != ESKI_TLS_STEPPING);
        free_session(tls);
        esk_certificates_release(tls->certificates);
        free(tls);
    }
}

/* --- failures --- */

static void tell_door(struct esk_connection *connection, bool succeeded) {
    if (connection->door->handshake_ended) {
        connection->door->handshake_ended(connection, succeeded);
    }
}

static void note_failure(struct esk_connection *connection, const char *reason) {
    struct eski_shard *shard = connection->shard;
    tell_door(connection, false);
    uint64_t tick = eski_deadlines_tick(shard, 0);
    if (tick < shard->failure_log_tick) {
        shard->failures_unlogged++;
        return;
    }
    char address[INET6_ADDRSTRLEN] = "?";
    (void)inet_ntop(AF_INET6, connection->peer.bytes, address, sizeof address);
    ESK_LOG(shard->server->options.log, ESK_LOG_DEBUG, "tls-handshake-failed", reason,
            esk_field_text("peer", address), esk_field_u64("unlogged", shard->failures_unlogged));
    shard->failures_unlogged = 0;
    shard->failure_log_tick = tick + LOG_EVERY_TICKS;
}

/* The alert is sent: what the door may have queued is not for this client. */
static void fail_handshake(struct esk_connection *connection, int result) {
    note_failure(connection, gnutls_strerror(result));
    free_session(connection->tls);
    connection->tls->state = ESKI_TLS_BROKEN;
    eski_output_drop(connection);
    connection->stall_due_tick = 0;
    connection->is_finishing = true;
}

/* A client that does not speak TLS; it gets the door's answer to that, as it is. */
static void refuse_plain(struct esk_connection *connection) {
    note_failure(connection, "the client does not speak TLS");
    eski_tls_destroy(connection->tls);
    connection->tls = NULL;
    eski_output_drop(connection);
    connection->stall_due_tick = 0;
    connection->is_finishing = true;
    const char *answer = connection->door->answer_without_tls;
    if (answer) {
        esk_connection_write(connection, answer, strlen(answer));
    }
}

/* --- steps --- */

/* With the client's first byte; false: it is not there yet, or there is no session to be. */
static bool begin(struct esk_connection *connection) {
    struct eski_tls *tls = connection->tls;
    uint8_t first;
    ssize_t count = recv(connection->fd, &first, 1, MSG_PEEK);
    if (count <= 0) { /* gone without a word: a look whether the port is open, say */
        connection->readable = false;
        connection->is_aborted |= count == 0 || (errno != EAGAIN && errno != EINTR);
        return false;
    }
    if (first != RECORD_OF_HANDSHAKE) {
        refuse_plain(connection);
        return false;
    }
    const char *protocol = connection->door->alpn;
    gnutls_datum_t name = {(unsigned char *)(uintptr_t)protocol,
                           protocol ? (unsigned)strlen(protocol) : 0};
    if (gnutls_init(&tls->session, esk_certificates_session_flags(tls->certificates)) < 0 ||
        !esk_certificates_apply(tls->certificates, tls->session) ||
        (protocol && gnutls_alpn_set_protocols(tls->session, &name, 1, 0) < 0)) {
        connection->is_aborted = true; /* no memory */
        return false;
    }
    gnutls_handshake_set_timeout(tls->session, GNUTLS_INDEFINITE_TIMEOUT); /* ours counts */
    eski_tls_set_transport(tls);
    return true;
}

static void on_stepped(struct esk_mail *mail) {
    struct eski_tls *tls = ESK_CONTAINER(mail, struct eski_tls, mail);
    struct esk_connection *connection = tls->connection;
    tls->state = ESKI_TLS_WAITING;
    if (tls->result == 0) {
        tls->state = ESKI_TLS_ESTABLISHED;
        tls->reads_ahead = true;
        connection->readable = true; /* more may have come with the last of the handshake */
        connection->writable = true;
        connection->stall_due_tick = 0;
        tell_door(connection, true);
    } else if (tls->result != GNUTLS_E_AGAIN && !connection->is_aborted) {
        fail_handshake(connection, tls->result);
    }
    eski_shard_ready(connection->shard, connection);
    esk_connection_release(connection);
}

/* We answer the last of the handshake with nothing, and without an acknowledgement the client's
 * first request may wait 40 ms for it (Nagle). */
static void acknowledge(int fd) {
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

/* In the helper, whose the session is until the mail returns. */
static void on_step(struct esk_mail *mail) {
    struct eski_tls *tls = ESK_CONTAINER(mail, struct eski_tls, mail);
    unsigned warnings = 0;
    do {
        tls->result = gnutls_handshake(tls->session);
    } while (tls->result == GNUTLS_E_INTERRUPTED ||
             (tls->result == GNUTLS_E_WARNING_ALERT_RECEIVED && ++warnings < WARNINGS_MAX));
    if (tls->result < 0 && tls->result != GNUTLS_E_AGAIN) {
        (void)gnutls_alert_send_appropriate(tls->session, tls->result);
    }
    if (tls->result == 0) {
        acknowledge(tls->connection->fd);
    }
    mail->run = on_stepped;
    esk_post(&tls->connection->shard->loop->executor, mail);
}

void eski_tls_handshake(struct esk_connection *connection) {
    struct eski_tls *tls = connection->tls;
    if (connection->shard->is_stopping) {
        connection->is_aborted = true;
        return;
    }
    if (!tls->session && !(connection->readable && begin(connection))) {
        return;
    }
    bool waits_for_room =
        tls->result == GNUTLS_E_AGAIN && gnutls_record_get_direction(tls->session) == 1;
    if (waits_for_room ? !connection->writable : !connection->readable) {
        return;
    }
    /* What comes while the helper looks at the socket is noted anew. */
    connection->readable = false;
    connection->writable = false;
    tls->state = ESKI_TLS_STEPPING;
    tls->mail.run = on_step;
    esk_connection_hold(connection);
    esk_post(connection->shard->server->tls_helper, &tls->mail);
}
