/* SPDX-License-Identifier: Apache-2.0 */
/* Records over the socket. GnuTLS asks for a record's head, then for its body: both come out of one
 * read of the socket into the shard's window. What GnuTLS did not take, because the reader had no
 * more room, is kept with the connection until its next turn.
 *
 * A write hands over whole records of up to 16 KiB, small pieces of the queue put together. A
 * record that the socket does not take whole stays with GnuTLS, and its bytes in the queue, until
 * the socket has room. */
#include "server/connection/tls_private.h"

#include "base/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>

#define RECORD_BYTES_MAX 16384
#define SMALL_BYTES 4096 /* pieces up to it are copied together */

/* --- between GnuTLS and the socket --- */

static ssize_t fail_with(struct eski_tls *tls, int number) {
    tls->socket_errno = number;
    gnutls_transport_set_errno(tls->session, number);
    return -1;
}

static ssize_t receive(struct eski_tls *tls, void *bytes, size_t size) {
    ssize_t count = recv(tls->connection->fd, bytes, size, 0);
    return count < 0 ? fail_with(tls, errno) : count;
}

static ssize_t pull(gnutls_transport_ptr_t context, void *bytes, size_t size) {
    struct eski_tls *tls = context;
    if (!tls->reads_ahead) {
        return receive(tls, bytes, size);
    }
    if (tls->ahead_bytes == 0) {
        if (tls->is_drained || tls->allowance == 0) {
            return fail_with(tls, EAGAIN);
        }
        size_t most =
            tls->allowance < ESKI_TLS_WINDOW_BYTES ? tls->allowance : ESKI_TLS_WINDOW_BYTES;
        uint8_t *window = tls->connection->shard->tls_window;
        ssize_t count = receive(tls, window, most);
        if (count <= 0) {
            tls->is_drained = count < 0 && tls->socket_errno == EAGAIN;
            return count;
        }
        /* A short read has emptied the socket, but its end may follow without an event. */
        tls->is_drained = (size_t)count < most && !tls->connection->peer_finished;
        tls->allowance -= (size_t)count;
        tls->ahead = window;
        tls->ahead_bytes = (size_t)count;
    }
    size_t count = size < tls->ahead_bytes ? size : tls->ahead_bytes;
    memcpy(bytes, tls->ahead, count);
    tls->ahead += count;
    tls->ahead_bytes -= count;
    return (ssize_t)count;
}

static ssize_t push(gnutls_transport_ptr_t context, const giovec_t *pieces, int count) {
    struct eski_tls *tls = context;
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces,
                             .msg_iovlen = (size_t)count};
    ssize_t sent = sendmsg(tls->connection->fd, &message, MSG_NOSIGNAL);
    return sent < 0 ? fail_with(tls, errno) : sent;
}

void eski_tls_set_transport(struct eski_tls *tls) {
    gnutls_transport_set_ptr(tls->session, tls);
    gnutls_transport_set_pull_function(tls->session, pull);
    gnutls_transport_set_vec_push_function(tls->session, push);
}

/* --- reading --- */

/* What is left of the window goes with the connection: the window is the shard's. */
static void keep_ahead(struct eski_tls *tls) {
    uint8_t *old = tls->ahead_kept;
    if (tls->ahead_bytes == 0) {
        tls->ahead = tls->ahead_kept = NULL;
    } else if (old && tls->ahead >= old && tls->ahead < old + ESKI_TLS_WINDOW_BYTES) {
        return;
    } else {
        tls->ahead_kept = esk_alloc(ESKI_TLS_WINDOW_BYTES);
        memcpy(tls->ahead_kept, tls->ahead, tls->ahead_bytes);
        tls->ahead = tls->ahead_kept;
    }
    free(old);
}

/* Notes the end of input, however it shows. True: read on. */
static bool note_result(struct eski_tls *tls, ssize_t result) {
    switch (result) {
    case 0:                              /* close_notify */
    case GNUTLS_E_PREMATURE_TERMINATION: /* the connection's end, as without TLS */
        tls->has_ended = true;
        return false;
    case GNUTLS_E_AGAIN:
        return false;
    case GNUTLS_E_INTERRUPTED:
    case GNUTLS_E_WARNING_ALERT_RECEIVED:
        return true; /* the allowance bounds how often */
    default:
        if (tls->socket_errno == 0 || tls->socket_errno == EAGAIN) {
            (void)gnutls_alert_send_appropriate(tls->session, (int)result);
        }
        tls->has_failed = true;
        return false;
    }
}

ssize_t eski_tls_read(struct esk_connection *connection, void *bytes, size_t size) {
    struct eski_tls *tls = connection->tls;
    size_t have = 0;
    tls->is_drained = false;
    tls->allowance = ESKI_TLS_WINDOW_BYTES;
    bool goes_on = !tls->has_ended && !tls->has_failed;
    while (goes_on && have < size) {
        ssize_t count = gnutls_record_recv(tls->session, (uint8_t *)bytes + have, size - have);
        if (count > 0) {
            have += (size_t)count;
        } else {
            goes_on = note_result(tls, count);
        }
    }
    keep_ahead(tls);
    if (have > 0 || (!tls->has_ended && !tls->has_failed)) {
        /* There is more at once: behind full room, behind the allowance, or the end itself. */
        connection->readable = goes_on || !tls->is_drained || tls->has_ended || tls->has_failed;
        errno = EAGAIN;
        return have > 0 ? (ssize_t)have : -1;
    }
    connection->readable = false;
    errno = EPROTO;
    return tls->has_failed ? -1 : 0;
}

/* --- writing --- */

/* Where a write stands in the pieces of the queue. */
struct cursor {
    const struct iovec *pieces;
    int count;
    size_t position; /* in the first piece */
};

static void skip(struct cursor *cursor, size_t size) {
    cursor->position += size;
    while (cursor->count > 0 && cursor->position >= cursor->pieces[0].iov_len) {
        cursor->position -= cursor->pieces[0].iov_len;
        cursor->pieces++;
        cursor->count--;
    }
}

/* The bytes of the next record: of one large piece, or of several copied together. */
static struct esk_slice next_record(const struct cursor *cursor, uint8_t *scratch) {
    const uint8_t *first = (const uint8_t *)cursor->pieces[0].iov_base + cursor->position;
    size_t size = cursor->pieces[0].iov_len - cursor->position;
    if (size > SMALL_BYTES || cursor->count == 1) {
        return esk_slice(first, size < RECORD_BYTES_MAX ? size : RECORD_BYTES_MAX);
    }
    size_t have = 0;
    size_t position = cursor->position;
    for (int i = 0; i < cursor->count && have < RECORD_BYTES_MAX; i++) {
        size_t room = RECORD_BYTES_MAX - have;
        size_t piece = cursor->pieces[i].iov_len - position;
        size_t taken = piece < room ? piece : room;
        memcpy(scratch + have, (const uint8_t *)cursor->pieces[i].iov_base + position, taken);
        have += taken;
        position = 0;
    }
    return esk_slice(scratch, have);
}

ssize_t eski_tls_write(struct esk_connection *connection, const struct iovec *pieces, int count) {
    struct eski_tls *tls = connection->tls;
    struct cursor cursor = {pieces, count, 0};
    size_t sent = 0;
    skip(&cursor, 0); /* over empty pieces */
    while (cursor.count > 0) {
        ssize_t result;
        if (tls->has_record) { /* the socket's remainder; the bytes are GnuTLS's own */
            result = gnutls_record_send(tls->session, NULL, 0);
        } else {
            struct esk_slice record = next_record(&cursor, connection->shard->tls_window);
            result = gnutls_record_send(tls->session, record.data, record.size);
        }
        if (result == GNUTLS_E_INTERRUPTED || result == GNUTLS_E_AGAIN) {
            tls->has_record = true;
            if (result == GNUTLS_E_INTERRUPTED) {
                continue;
            }
            errno = EAGAIN;
            return sent ? (ssize_t)sent : -1;
        }
        tls->has_record = false;
        if (result < 0) {
            errno = EPROTO;
            return -1;
        }
        skip(&cursor, (size_t)result);
        sent += (size_t)result;
    }
    return (ssize_t)sent;
}

int eski_tls_goodbye(struct esk_connection *connection) {
    struct eski_tls *tls = connection->tls;
    int result;
    do {
        result = gnutls_bye(tls->session, GNUTLS_SHUT_WR);
    } while (result == GNUTLS_E_INTERRUPTED);
    if (result == GNUTLS_E_AGAIN) {
        errno = EAGAIN;
        return -1;
    }
    return 0;
}
