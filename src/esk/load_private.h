/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of a load and its connections. */
#ifndef ESK_ESK_LOAD_PRIVATE_H
#define ESK_ESK_LOAD_PRIVATE_H

#include "esk/load.h"

struct eski_load_connection {
    struct esk_http_stream stream;
    uint32_t variant;              /* the request that is next */
    bool is_busy;                  /* a request is out */
    struct esk_slice out;          /* what is left to send of it */
    uint64_t due_ns;               /* when it was sent, or should have been */
    uint64_t offset;               /* consume: where it reads */
    struct esk_buffer text;        /* consume: its request */
    struct esk_pipeline *pipeline; /* binary */
    bool has_news;                 /* binary: submitted since it was processed */
    struct esk_http_answer answer;
};

/* Binary: one of a connection's requests, which is used again and again. */
struct eski_load_request {
    struct eski_load_thread *thread;
    struct eski_load_connection *connection;
    uint32_t variant; /* as that of a connection */
    uint64_t due_ns;
    uint64_t offset;
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
    uint32_t *idle; /* a ring of connections without a request; binary: of requests */
    uint32_t idle_first;
    uint32_t idle_count;
    struct eski_load_request *requests; /* binary */
    uint32_t request_count;
    uint64_t now_ns; /* binary: when it began to process */
    bool is_over;    /* binary: what is answered now does not count */
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

/* When the thread's next request is due; 0: at once. The threads take turns. */
uint64_t eski_load_due_ns(const struct eski_load_thread *thread);
/* Whether a request that is due then is to be sent at all. */
static inline bool eski_load_has_more(const struct eski_load_thread *thread, uint64_t due_ns) {
    return thread->issued < thread->quota && due_ns < thread->end_ns && thread->err == ESK_OK;
}
enum esk_err eski_load_open_epoll(struct eski_load_thread *thread);
void eski_load_set_timer(struct eski_load_thread *thread, uint64_t at_ns);
/* What was not answered, or never sent, counts as errors. */
void eski_load_count_unanswered(struct eski_load_thread *thread);
bool eski_load_is_too_late(const struct eski_load_thread *thread);
void eski_load_count(struct eski_load_thread *thread, uint64_t due_ns, uint64_t now_ns,
                     uint64_t records, uint64_t bytes);
void eski_load_count_error(struct eski_load_thread *thread, const char *text, int size);

/* load_binary.c: the same over the binary protocol. */
enum esk_err eski_load_binary_open(struct eski_load_thread *thread);
void eski_load_binary_close(struct eski_load_thread *thread);
void eski_load_binary_loop(struct eski_load_thread *thread);

#endif
