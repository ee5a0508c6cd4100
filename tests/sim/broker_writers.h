/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotent producers in the simulation. A writer has one topic at a time; it sends its records in
 * order, sends again what has no answer or a bad one, in later lives too, and now and then what was
 * answered. However that races kills: each record is in the log once, and every answer names the
 * same offset. Beside it, ids that are forgotten and used again. */
#ifndef ESK_SIM_BROKER_WRITERS_H
#define ESK_SIM_BROKER_WRITERS_H

#include "broker_model.h"

#define BW_WRITERS 2
#define BW_LINE 24    /* requests of a writer that may be sent again */
#define BW_PENDING 12 /* of them without an answer, at most; then it waits */

/* A request and its sequences; what of it is known is in the model. */
struct bw_request {
    struct bm_request *request;
    uint64_t sequences[BM_RECORDS];
    bool sent; /* in this life, and no error came */
    unsigned in_flight;
};

struct bw_writer {
    struct bm_topic *topic;
    unsigned number; /* of its name: another one for each topic */
    uint64_t next[BM_PARTITIONS];
    struct bw_request line[BW_LINE]; /* in order of sending */
    size_t count;
    bool begun[BM_PARTITIONS]; /* answered: from then on a gap is one */
    bool failed;    /* an error came: what is behind it may be refused, and is sent again */
    bool explained; /* and it was not about sequences; it may come behind those that are */
    char text[SIM_TEXT_BYTES]; /* of an error */
    unsigned in_flight;        /* produces */
    const void *held;          /* the one that goes before any other; NULL: none */
};

struct bs;
struct bc_client;

/* One action of a client; its number says which writer it is. */
void bw_act(struct bc_client *client, struct bw_writer *writer);
/* A life of the broker is over: nothing of it will be answered. */
void bw_over(struct bw_writer *writers);

#endif
