/* SPDX-License-Identifier: Apache-2.0 */
/* A broker of a few lines for tests: a thread that takes one connection after the other and hands
 * each to a function of the test. */
#ifndef ESK_CLIENT_CLIENT_TESTING_H
#define ESK_CLIENT_CLIENT_TESTING_H

#include "base/memory.h"
#include "wire/es01/consume.h"
#include <esker/client.h>

#include <pthread.h>

struct fake_broker;
/* Serves the connection of that number, from 0; it is closed afterwards. Runs on the thread. */
typedef void fake_serve(struct fake_broker *broker, int fd, unsigned number);

struct fake_broker {
    int listener;
    pthread_t thread;
    fake_serve *serve;
    void *context;
    char address[32]; /* for options.address */
};

/* serve NULL: nobody takes the connections that the system accepts. */
void fake_broker_start(struct fake_broker *broker, fake_serve *serve, void *context);
void fake_broker_stop(struct fake_broker *broker);

/* Read or write all of it; false: the connection has ended. */
bool fake_read(int fd, void *memory, size_t size);
bool fake_write(int fd, const void *bytes, size_t size);

/* Takes the hello and accepts it with these features. */
bool fake_welcome(int fd, uint32_t features);

/* The next frame: its head and payload, in `frame` as it came. */
bool fake_frame(int fd, struct esk_es01_frame *head, struct esk_buffer *frame);
static inline struct esk_slice fake_payload(const struct esk_buffer *frame) {
    return esk_slice(frame->data + ESK_ES01_FRAME_HEAD_BYTES,
                     frame->size - ESK_ES01_FRAME_HEAD_BYTES);
}

bool fake_answer(int fd, uint32_t request_id, uint8_t opcode, struct esk_slice payload);
bool fake_error(int fd, uint32_t request_id, const char *text);

/* Answers a frame well: records of a produce get the offsets 0, 1, ... of partition 0; a consume
 * gets one record "k", "value" at the offset that was asked for; a ping its echo. */
bool fake_answer_well(int fd, const struct esk_es01_frame *head, const struct esk_buffer *frame);

/* Welcomes, and hands each frame to `take` until that is false or the connection ends. */
typedef bool fake_take(struct fake_broker *broker, int fd, const struct esk_es01_frame *head,
                       const struct esk_buffer *frame);
void fake_serve_each(struct fake_broker *broker, int fd, fake_take *take);
fake_serve fake_serve_well; /* with fake_answer_well */

/* Options for a quick test of that broker. */
struct esk_client_options fake_options(const struct fake_broker *broker);

#endif
