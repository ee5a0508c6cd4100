/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP door: JSON over HTTP/1.1 on the connection layer; docs/http-api.md is what it promises.
 *
 * Life cycle: create, hand the door to esk_server_listen, esk_server_stop, destroy. Main thread. */
#ifndef ESK_SERVER_HTTP_HTTP_H
#define ESK_SERVER_HTTP_HTTP_H

#include "broker/broker.h"
#include "server/connection/connection.h"

struct esk_http_options {
    struct esk_platform *platform;
    struct esk_broker *broker; /* started */
    uint32_t shard_count;      /* as the server's */
    const struct esk_log *log;
    uint64_t body_bytes_max;
    uint32_t head_ms; /* from a request's first byte to the end of its head */
    uint32_t body_ms; /* for a body, besides a second for each 16 KiB that came */
    uint32_t idle_ms; /* between requests */
    const struct esk_metrics *const *other_metrics; /* of other doors, shown with its own */
    uint32_t other_metrics_count;
    /* Origins whose pages may call this door, such as https://ui.example; at most
     * ESK_HTTP_ORIGIN_BYTES_MAX each; borrowed. */
    const char *const *cors_origins;
    size_t cors_origin_count;
#ifdef ESK_TEST_HOOKS
    const char
        *failing_operation; /* is answered with an internal error; "all": every one; or NULL */
#endif
};
void esk_http_options_init(struct esk_http_options *options);

struct esk_http;
struct esk_http *esk_http_create(const struct esk_http_options *options);
void esk_http_destroy(struct esk_http *http);
struct esk_door *esk_http_door(struct esk_http *http);

#endif
