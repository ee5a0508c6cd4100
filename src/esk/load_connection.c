/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a load: sends a request, reads its answer, counts it. */
#include "esk/load_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define INPUT_BYTES (256 * 1024) /* as the thread has */

void eski_load_count_error(struct eski_load_thread *thread, const char *text, int size) {
    thread->result.errors++;
    char *first = thread->result.first_error;
    if (!first[0]) {
        snprintf(first, sizeof(thread->result.first_error), "%.*s", size, text);
    }
}

static void note_error(struct eski_load_thread *thread, struct eski_load_connection *connection,
                       const char *text, int size) {
    eski_load_count_error(thread, text, size);
    connection->is_busy = false;
}

static void drop(struct eski_load_connection *connection) {
    esk_http_stream_close(&connection->stream);
}

static void lose(struct eski_load_thread *thread, struct eski_load_connection *connection,
                 const char *text) {
    drop(connection);
    note_error(thread, connection, text, (int)strlen(text));
}

/* --- sending --- */

static void send_rest(struct eski_load_thread *thread, struct eski_load_connection *connection) {
    while (connection->out.size) {
        ssize_t count =
            esk_http_stream_send(&connection->stream, connection->out.data, connection->out.size);
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (errno == EAGAIN) {
                return;
            }
        } else if (count < 0) {
            lose(thread, connection, strerror(errno));
            return;
        } else {
            connection->out.data += count;
            connection->out.size -= (size_t)count;
        }
    }
}

static struct esk_slice make_consume(const struct esk_load *load,
                                     struct eski_load_connection *connection) {
    char path[1024];
    snprintf(path, sizeof(path), "%s%" PRIu32 "&offset=%" PRIu64 "%s", load->consume_path,
             connection->variant % load->partitions, connection->offset, load->consume_more);
    connection->text.size = 0;
    esk_http_request(&connection->text, load->server, "GET", path, esk_slice(NULL, 0));
    return esk_buffer_slice(&connection->text);
}

void eski_load_send(struct eski_load_thread *thread, struct eski_load_connection *connection,
                    uint64_t due_ns) {
    const struct esk_load *load = thread->load;
    if (load->variant_count) {
        /* Each connection goes through all of them, from a place of its own. */
        connection->out = load->variants[connection->variant++ % load->variant_count];
    } else {
        connection->out = make_consume(load, connection);
    }
    connection->due_ns = due_ns;
    connection->is_busy = true;
    esk_http_answer_begin(&connection->answer);
    send_rest(thread, connection);
}

/* --- answers --- */

static bool find_number(const struct esk_http_answer *answer, const char *name, uint64_t *number) {
    const uint8_t *at = memmem(answer->tail, answer->tail_size, name, strlen(name));
    const uint8_t *end = answer->tail + answer->tail_size;
    *number = 0;
    if (!at) {
        return false;
    }
    for (at += strlen(name); at < end && *at >= '0' && *at <= '9'; at++) {
        *number = *number * 10 + (uint64_t)(*at - '0');
    }
    return true;
}

/* How many records an answer has, from the offsets at its end; false: none, or no such answer. */
static bool take_consumed(struct eski_load_connection *connection, uint64_t *records) {
    uint64_t next;
    uint64_t end;
    if (!find_number(&connection->answer, "\"next_offset\":", &next) ||
        !find_number(&connection->answer, "\"high_watermark\":", &end)) {
        return false;
    }
    *records = next > connection->offset ? next - connection->offset : 0;
    bool is_any = next > connection->offset;
    connection->offset = next >= end ? 0 : next;
    return is_any;
}

void eski_load_count(struct eski_load_thread *thread, uint64_t due_ns, uint64_t now_ns,
                     uint64_t records, uint64_t bytes) {
    /* What was due while measuring counts in an open loop, what was answered in a closed one. */
    uint64_t when = thread->load->rate ? due_ns : now_ns;
    if (when < thread->measure_ns || when >= thread->end_ns) {
        return;
    }
    thread->last_ns = now_ns;
    thread->result.requests++;
    thread->result.records += records;
    thread->result.bytes += bytes;
    esk_latency_record(&thread->result.latency, now_ns - due_ns);
}

static void count_answer(struct eski_load_thread *thread, struct eski_load_connection *connection) {
    const struct esk_load *load = thread->load;
    const struct esk_http_answer *answer = &connection->answer;
    uint64_t now = eski_load_now_ns();
    uint64_t records = load->records_per_request;
    uint64_t bytes = load->bytes_per_request;
    connection->is_busy = false;
    atomic_fetch_add_explicit(&thread->load->answered, 1, memory_order_relaxed);
    if (answer->status / 100 != 2) {
        char text[200];
        int size = snprintf(text, sizeof(text), "%d %.*s", answer->status, (int)answer->tail_size,
                            (const char *)answer->tail);
        note_error(thread, connection, text, size < (int)sizeof(text) ? size : 199);
        return;
    }
    if (load->variant_count == 0) {
        bytes = answer->body_bytes;
        if (!take_consumed(connection, &records)) {
            note_error(thread, connection, "an answer without records", 25);
            return;
        }
    }
    eski_load_count(thread, connection->due_ns, now, records, bytes);
}

/* false: the connection has no more for now, or is gone. */
static bool read_once(struct eski_load_thread *thread, struct eski_load_connection *connection) {
    ssize_t count = esk_http_stream_receive(&connection->stream, thread->input, INPUT_BYTES);
    if (count < 0 && errno == EINTR) {
        return true;
    }
    if (count < 0 && errno == EAGAIN) {
        return false;
    }
    if (count <= 0) {
        if (connection->is_busy) {
            lose(thread, connection, count ? strerror(errno) : "the server closed a connection");
        } else {
            drop(connection);
        }
        return false;
    }
    size_t consumed = 0;
    enum esk_err err = ESK_ERR_CORRUPT;
    if (connection->is_busy) {
        err = esk_http_answer_feed(&connection->answer, esk_slice(thread->input, (size_t)count),
                                   &consumed, NULL);
    }
    if (err == ESK_OK && consumed == (size_t)count) {
        count_answer(thread, connection);
        if (!connection->answer.keeps_alive) {
            drop(connection);
        }
        return false;
    }
    if (err != ESK_ERR_AGAIN) {
        lose(thread, connection, "an answer that is no HTTP");
        return false;
    }
    return connection->stream.session || count == INPUT_BYTES; /* TLS gives it in records */
}

void eski_load_ready(struct eski_load_thread *thread, struct eski_load_connection *connection) {
    if (connection->is_busy && connection->out.size) {
        send_rest(thread, connection);
    }
    while (connection->stream.fd >= 0 && read_once(thread, connection)) {
    }
}
