/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers over one connection; every wait is a poll with what is left of its time. */
#include "esk/http_client.h"

#include "wire/json/document.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#define READ_BYTES (64 * 1024)

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void esk_http_append_encoded(struct esk_buffer *out, const char *text) {
    static const char plain[] = "-._~";
    for (const uint8_t *at = (const uint8_t *)text; *at; at++) {
        bool is_plain = (*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z') ||
                        (*at >= 'a' && *at <= 'z') || strchr(plain, *at);
        if (is_plain) {
            esk_buffer_u8(out, *at);
        } else {
            esk_buffer_format(out, "%%%02X", *at);
        }
    }
}

void esk_http_request(struct esk_buffer *out, const struct esk_http_server *server,
                      const char *method, const char *path, struct esk_slice body) {
    esk_buffer_format(out, "%s ", method);
    esk_buffer_append_text(out, path); /* of any length */
    esk_buffer_format(out, " HTTP/1.1\r\nHost: %s\r\n", server->authority);
    if (server->key) {
        esk_buffer_append_text(out, "Authorization: Bearer ");
        esk_buffer_append_text(out, server->key); /* of any length */
        esk_buffer_append_text(out, "\r\n");
    }
    if (body.data) {
        esk_buffer_format(out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                          body.size);
    }
    esk_buffer_append_text(out, "\r\n");
    if (body.data) {
        esk_buffer_append(out, body.data, body.size);
    }
}

void esk_http_client_init(struct esk_http_client *client, const struct esk_http_server *server,
                          uint32_t timeout_ms) {
    memset(client, 0, sizeof(*client));
    client->server = server;
    client->timeout_ms = timeout_ms;
    client->stream = ESK_HTTP_STREAM_NONE;
    esk_buffer_init(&client->request);
    esk_buffer_init(&client->input);
    esk_http_answer_init(&client->answer, true);
}

static void disconnect(struct esk_http_client *client) {
    esk_http_stream_close(&client->stream);
    client->input.size = client->parsed = 0;
}

void esk_http_client_fini(struct esk_http_client *client) {
    disconnect(client);
    esk_buffer_fini(&client->request);
    esk_buffer_fini(&client->input);
    esk_http_answer_fini(&client->answer);
}

/* Waits until the socket is ready or the time is over. */
static enum esk_err wait_ready(struct esk_http_client *client, short events, uint64_t deadline_ms,
                               struct esk_error *error) {
    for (;;) {
        uint64_t now = now_ms();
        int left = now < deadline_ms ? (int)(deadline_ms - now) : 0;
        struct pollfd poller = {.fd = client->stream.fd, .events = events};
        int ready = poll(&poller, 1, left);
        if (ready > 0) {
            return ESK_OK;
        }
        if (ready == 0 && left == 0) {
            return esk_fail(error, ESK_ERR_TIMEOUT, "no answer within %u ms", client->timeout_ms);
        }
        if (ready < 0 && errno != EINTR) {
            return esk_fail_errno(error, ESK_ERR_IO, errno, "poll");
        }
    }
}

/* The stream failed, as errno says. */
static enum esk_err fail_stream(const struct esk_http_client *client, const char *what,
                                struct esk_error *error) {
    if (errno == EPROTO && client->stream.problem[0]) {
        return esk_fail(error, ESK_ERR_UNAUTHENTICATED, "TLS: %s", client->stream.problem);
    }
    return esk_fail_errno(error, ESK_ERR_UNAVAILABLE, errno, "%s", what);
}

static enum esk_err send_all(struct esk_http_client *client, struct esk_error *error) {
    uint64_t deadline = now_ms() + client->timeout_ms;
    size_t sent = 0;
    while (sent < client->request.size) {
        ssize_t count = esk_http_stream_send(&client->stream, client->request.data + sent,
                                             client->request.size - sent);
        if (count >= 0) {
            sent += (size_t)count;
        } else if (errno == EAGAIN) {
            /* An answer that comes before the request is out, such as 413, ends the sending. */
            enum esk_err err = wait_ready(client, POLLOUT | POLLIN, deadline, error);
            struct pollfd poller = {.fd = client->stream.fd, .events = POLLIN};
            if (err != ESK_OK || poll(&poller, 1, 0) > 0) {
                return err;
            }
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return ESK_OK; /* there may be an answer to read yet */
        } else if (errno != EINTR) {
            return fail_stream(client, "send", error);
        }
    }
    return ESK_OK;
}

enum esk_err esk_http_client_send(struct esk_http_client *client, const char *method,
                                  const char *path, struct esk_slice body,
                                  struct esk_error *error) {
    struct pollfd poller = {.fd = client->stream.fd, .events = POLLIN};
    bool is_open = client->stream.fd >= 0;
    if (is_open && poll(&poller, 1, 0) != 0 && esk_http_client_is_ready(client)) {
        disconnect(client); /* closed while it was idle */
    }
    if (client->stream.fd < 0) {
        enum esk_err err =
            esk_http_connect(client->server, client->timeout_ms, &client->stream, error);
        if (err != ESK_OK) {
            return err;
        }
    }
    client->request.size = 0;
    esk_http_request(&client->request, client->server, method, path, body);
    esk_http_answer_begin(&client->answer);
    enum esk_err err = send_all(client, error);
    if (err != ESK_OK) {
        disconnect(client);
    }
    return err;
}

bool esk_http_client_is_ready(struct esk_http_client *client) {
    if (!client->stream.session || client->parsed < client->input.size) {
        return true;
    }
    client->input.size = client->parsed = 0;
    uint8_t *room = esk_buffer_grow(&client->input, READ_BYTES);
    ssize_t count = esk_http_stream_receive(&client->stream, room, READ_BYTES);
    client->input.size = count > 0 ? (size_t)count : 0;
    return count >= 0 || (errno != EAGAIN && errno != EINTR);
}

/* Reads once; *ended: the connection has no more. */
static enum esk_err read_some(struct esk_http_client *client, uint64_t deadline, bool *ended,
                              struct esk_error *error) {
    client->input.size = client->parsed = 0;
    uint8_t *room = esk_buffer_grow(&client->input, READ_BYTES);
    for (;;) {
        ssize_t count = esk_http_stream_receive(&client->stream, room, READ_BYTES);
        if (count >= 0) {
            client->input.size = (size_t)count;
            *ended = count == 0;
            return ESK_OK;
        }
        if (errno == ECONNRESET) {
            return esk_fail(error, ESK_ERR_UNAVAILABLE, "the server closed the connection");
        }
        if (errno != EAGAIN && errno != EINTR) {
            return fail_stream(client, "recv", error);
        }
        if (errno == EINTR) {
            continue;
        }
        enum esk_err err = wait_ready(client, POLLIN, deadline, error);
        if (err != ESK_OK) {
            return err;
        }
    }
}

/* Feeds what was read, after reading once when there is nothing left of it. */
static enum esk_err pull(struct esk_http_client *client, uint64_t deadline,
                         struct esk_error *error) {
    struct esk_http_answer *answer = &client->answer;
    bool ended = false;
    if (client->parsed == client->input.size) {
        enum esk_err err = read_some(client, deadline, &ended, error);
        if (err != ESK_OK) {
            return err;
        }
    }
    if (ended) {
        return esk_http_answer_end(answer, error);
    }
    size_t consumed;
    struct esk_slice input =
        esk_slice(client->input.data + client->parsed, client->input.size - client->parsed);
    enum esk_err err = esk_http_answer_feed(answer, input, &consumed, error);
    client->parsed += consumed;
    return err;
}

enum esk_err esk_http_client_pull(struct esk_http_client *client, uint32_t timeout_ms,
                                  struct esk_error *error) {
    enum esk_err err = pull(client, now_ms() + timeout_ms, error);
    if ((err != ESK_OK && err != ESK_ERR_AGAIN) || (err == ESK_OK && !client->answer.keeps_alive)) {
        disconnect(client);
    }
    return err;
}

enum esk_err esk_http_client_receive(struct esk_http_client *client, uint32_t extra_ms,
                                     struct esk_error *error) {
    uint64_t deadline = now_ms() + client->timeout_ms + extra_ms;
    struct esk_http_answer *answer = &client->answer;
    enum esk_err err = ESK_ERR_AGAIN;
    while (err == ESK_ERR_AGAIN) {
        err = pull(client, deadline, error);
    }
    if (err != ESK_OK || !answer->keeps_alive) {
        disconnect(client);
    }
    memset(esk_buffer_grow(&answer->body, ESK_JSON_PADDING), 0, ESK_JSON_PADDING);
    return err;
}
