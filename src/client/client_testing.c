/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking sockets on a thread of their own; it ends when the listener is shut down. */
#include "client/client_testing.h"

#include "base/assert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static void *run(void *context) {
    struct fake_broker *broker = context;
    for (unsigned number = 0;; number++) {
        int fd = accept(broker->listener, NULL, NULL);
        if (fd < 0) {
            return NULL;
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        broker->serve(broker, fd, number);
        close(fd);
    }
}

void fake_broker_start(struct fake_broker *broker, fake_serve *serve, void *context) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    broker->serve = serve;
    broker->context = context;
    broker->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ESK_ASSERT(broker->listener >= 0);
    int result = bind(broker->listener, (struct sockaddr *)&address, sizeof(address));
    ESK_ASSERT(result == 0 && listen(broker->listener, 16) == 0);
    result = getsockname(broker->listener, (struct sockaddr *)&address, &size);
    ESK_ASSERT(result == 0);
    snprintf(broker->address, sizeof(broker->address), "127.0.0.1:%u", ntohs(address.sin_port));
    result = broker->serve ? pthread_create(&broker->thread, NULL, run, broker) : 0;
    ESK_ASSERT(result == 0);
}

void fake_broker_stop(struct fake_broker *broker) {
    shutdown(broker->listener, SHUT_RDWR);
    if (broker->serve) {
        pthread_join(broker->thread, NULL);
    }
    close(broker->listener);
}

bool fake_read(int fd, void *memory, size_t size) {
    uint8_t *at = memory;
    while (size) {
        ssize_t count = recv(fd, at, size, 0);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        at += count;
        size -= (size_t)count;
    }
    return true;
}

bool fake_write(int fd, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    while (size) {
        ssize_t count = send(fd, at, size, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return false;
        }
        at += count;
        size -= (size_t)count;
    }
    return true;
}

bool fake_welcome(int fd, uint32_t features) {
    uint8_t head[ESK_ES01_HELLO_BYTES_MAX];
    uint8_t out[ESK_ES01_WELCOME_HEAD_BYTES];
    struct esk_es01_welcome welcome = {.features = features};
    if (!fake_read(fd, head, ESK_ES01_HELLO_HEAD_BYTES)) {
        return false;
    }
    uint32_t token = esk_load_u32(head + 8);
    return token <= ESK_TOKEN_BYTES_MAX && fake_read(fd, head + ESK_ES01_HELLO_HEAD_BYTES, token) &&
           fake_write(fd, out, esk_es01_welcome_write(&welcome, out));
}

bool fake_frame(int fd, struct esk_es01_frame *head, struct esk_buffer *frame) {
    frame->size = 0;
    uint8_t *at = esk_buffer_grow(frame, ESK_ES01_FRAME_HEAD_BYTES);
    if (!fake_read(fd, at, ESK_ES01_FRAME_HEAD_BYTES)) {
        return false;
    }
    frame->size = ESK_ES01_FRAME_HEAD_BYTES;
    enum esk_err err = esk_es01_frame_parse(esk_buffer_slice(frame), 1 << 30, head, NULL);
    ESK_ASSERT(err == ESK_OK);
    size_t size = esk_es01_payload_bytes(head);
    at = esk_buffer_grow(frame, size + 1);
    frame->size += size;
    return fake_read(fd, at, size);
}

bool fake_answer(int fd, uint32_t request_id, uint8_t opcode, struct esk_slice payload) {
    struct esk_buffer out;
    esk_buffer_init(&out);
    uint8_t *at = esk_buffer_grow(&out, ESK_ES01_FRAME_HEAD_BYTES + payload.size);
    esk_es01_frame_write(at, payload.size, request_id, opcode);
    if (payload.size) {
        memcpy(at + ESK_ES01_FRAME_HEAD_BYTES, payload.data, payload.size);
    }
    bool is_sent = fake_write(fd, at, ESK_ES01_FRAME_HEAD_BYTES + payload.size);
    esk_buffer_fini(&out);
    return is_sent;
}

bool fake_error(int fd, uint32_t request_id, const char *text) {
    return fake_answer(fd, request_id, ESK_ES01_ERROR, esk_slice_text(text));
}

static void answer_produce(struct esk_slice payload, struct esk_buffer *out) {
    struct esk_es01_produce produce;
    struct esk_reader r;
    enum esk_err err = esk_es01_produce_parse(payload, &produce, &r, NULL);
    ESK_ASSERT(err == ESK_OK);
    esk_buffer_u32(out, produce.record_count);
    for (uint32_t i = 0; i < produce.record_count; i++) {
        esk_buffer_u32(out, 0);
        esk_buffer_u64(out, i);
        esk_buffer_u8(out, 0);
    }
}

static void answer_consume(struct esk_slice payload, struct esk_buffer *out) {
    struct esk_es01_consume consume;
    enum esk_err err = esk_es01_consume_parse(payload, &consume, NULL);
    ESK_ASSERT(err == ESK_OK);
    struct esk_es01_fetched fetched = {consume.offset + 1, consume.offset + 9, 1};
    struct esk_es01_fetched_record record = {
        .partition = consume.partition,
        .offset = consume.offset,
        .timestamp_ms = 1700000000000,
        .key = esk_slice_text("k"),
        .value = esk_slice_text("value"),
    };
    uint8_t *at =
        esk_buffer_grow(out, ESK_ES01_FETCHED_BYTES + esk_es01_fetched_record_bytes(&record));
    esk_es01_fetched_write(at, &fetched);
    uint8_t *end = esk_es01_fetched_record_write(at + ESK_ES01_FETCHED_BYTES, &record);
    out->size = (size_t)(end - out->data);
}

bool fake_answer_well(int fd, const struct esk_es01_frame *head, const struct esk_buffer *frame) {
    struct esk_buffer out;
    struct esk_slice payload = fake_payload(frame);
    esk_buffer_init(&out);
    if (head->opcode == ESK_ES01_PRODUCE) {
        answer_produce(payload, &out);
    } else if (head->opcode == ESK_ES01_CONSUME) {
        answer_consume(payload, &out);
    } else if (payload.size) {
        esk_buffer_append(&out, payload.data, payload.size);
    }
    bool is_sent = fake_answer(fd, head->request_id, head->opcode | 0x80, esk_buffer_slice(&out));
    esk_buffer_fini(&out);
    return is_sent;
}

void fake_serve_each(struct fake_broker *broker, int fd, fake_take *take) {
    struct esk_es01_frame head;
    struct esk_buffer frame;
    esk_buffer_init(&frame);
    bool goes_on = fake_welcome(fd, 0);
    while (goes_on && fake_frame(fd, &head, &frame)) {
        goes_on = take(broker, fd, &head, &frame);
    }
    esk_buffer_fini(&frame);
}

static bool take_well(struct fake_broker *broker, int fd, const struct esk_es01_frame *head,
                      const struct esk_buffer *frame) {
    (void)broker;
    return fake_answer_well(fd, head, frame);
}

void fake_serve_well(struct fake_broker *broker, int fd, unsigned number) {
    (void)number;
    fake_serve_each(broker, fd, take_well);
}

struct esk_client_options fake_options(const struct fake_broker *broker) {
    struct esk_client_options options;
    esk_client_options_init(&options);
    options.address = broker->address;
    options.backoff_ms_min = 1;
    options.backoff_ms_max = 4;
    return options;
}
