/* SPDX-License-Identifier: Apache-2.0 */
/* The ES01 door: produce and consume in binary frames over a long-lived connection;
 * docs/protocol-es01.md is what it promises.
 *
 * Life cycle: create, hand the door to esk_server_listen, esk_server_stop, destroy. Main thread. */
#ifndef ESK_SERVER_ES01_ES01_H
#define ESK_SERVER_ES01_ES01_H

#include "broker/broker.h"
#include "observe/exposition.h"
#include "server/connection/connection.h"

struct esk_es01_options {
    struct esk_platform *platform;
    struct esk_broker *broker; /* started */
    uint32_t shard_count;      /* as the server's */
    const struct esk_log *log;
    uint64_t body_bytes_max; /* of a request's payload, inflated */
    uint32_t connections_per_address_max;
    uint32_t idle_ms;  /* without a request */
    uint32_t hello_ms; /* from the connection to the end of its handshake */
    uint32_t frame_ms; /* for a frame, besides a second for each 16 KiB that came */
};
void esk_es01_options_init(struct esk_es01_options *options);

struct esk_es01;
struct esk_es01 *esk_es01_create(const struct esk_es01_options *options);
void esk_es01_destroy(struct esk_es01 *es01);
struct esk_door *esk_es01_door(struct esk_es01 *es01);
/* The door's own series of one shard; borrowed. */
const struct esk_metrics *esk_es01_metrics(const struct esk_es01 *es01, uint32_t shard);

#endif
