/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of a load and its connections. */
#ifndef ESK_ESK_LOAD_PRIVATE_H
#define ESK_ESK_LOAD_PRIVATE_H

#include "esk/load.h"

struct eski_load_connection {
    int fd;
    uint32_t variant;       /* the request that is next */
    bool is_busy;           /* a request is out */
    struct esk_slice out;   /* what is left to send of it */
    uint64_t due_ns;        /* when it was sent, or should have been */
    uint64_t offset;        /* consume: where it reads */
    struct esk_buffer text; /* consume: its request */
    struct esk_http_answer answer;
};

struct eski_load_thread {
    struct esk_load *load;
    uint32_t index;
    uint64_t start_ns;   /* of the whole load: the first request is due */
    uint64_t measure_ns; /* measuring begins */
    uint64_t end_ns;     /* it ends, and no more requests are due */
    uint64_t last_ns;    /* the last answer that counts */
    uint64_t quota;      /* requests of this thread; UINT64_MAX: by time */
    uint64_t issued;
    uint32_t busy; /* connections with a request out */
    struct eski_load_connection *connections;
    uint32_t connection_count;
    uint32_t *idle; /* a ring of connections without a request */
    uint32_t idle_first;
    uint32_t idle_count;
    int epoll_fd;
    int timer_fd;
    uint64_t timer_ns; /* what it is set to; 0: nothing */
    uint8_t *input;    /* where answers are read to */
    enum esk_err err;
    struct esk_error error;
    struct esk_load_result result;
};

uint64_t eski_load_now_ns(void);
/* Opens the thread's connections; afterwards they are all idle. */
enum esk_err eski_load_open(struct eski_load_thread *thread);
void eski_load_close(struct eski_load_thread *thread);
/* Runs until all is answered or the time for that is over. */
void eski_load_loop(struct eski_load_thread *thread);
/* Prepares and sends the connection's next request. */
void eski_load_send(struct eski_load_thread *thread, struct eski_load_connection *connection,
                    uint64_t due_ns);
/* What the poll told. */
void eski_load_ready(struct eski_load_thread *thread, struct eski_load_connection *connection);

#endif
