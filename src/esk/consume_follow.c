/* SPDX-License-Identifier: Apache-2.0 */
/* Following: long polls on a few connections, each of which reads its share of the partitions in
 * turn. With at most CONNECTIONS_MAX partitions each has a connection of its own and a record is
 * printed as soon as it is there; with more, within about a second. */
#include "esk/consume_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#define CONNECTIONS_MAX 64
#define WAIT_MS 10000 /* of a connection with one partition */
#define ROUND_MS 1000 /* through all partitions of a connection with several */
#define WAIT_MS_MIN 10

struct follower {
    struct esk_http_client client;
    size_t reading; /* index of the one that is asked for now */
    uint32_t wait_ms;
};

static int ask(struct eski_consuming *consuming, struct follower *follower) {
    struct esk_error error;
    char *path =
        eski_consume_path(consuming, &consuming->readings[follower->reading], follower->wait_ms);
    enum esk_err err =
        esk_http_client_send(&follower->client, "GET", path, esk_slice(NULL, 0), &error);
    free(path);
    return err == ESK_OK ? ESK_EXIT_DONE : esk_complain(ESK_EXIT_FAILED, "%s", error.text);
}

static int take(struct eski_consuming *consuming, struct follower *follower) {
    struct esk_error error;
    struct esk_json_value root;
    if (esk_http_client_receive(&follower->client, follower->wait_ms, &error) != ESK_OK) {
        return esk_complain(ESK_EXIT_FAILED, "%s", error.text);
    }
    int code = esk_session_read(consuming->session, &follower->client.answer, &root);
    return code == ESK_EXIT_DONE
               ? eski_consume_take(consuming, &consuming->readings[follower->reading], &root)
               : code;
}

/* Waits for answers and takes each; those that are taken ask for their next partition. */
static int turn(struct eski_consuming *consuming, struct follower *followers, size_t count) {
    struct pollfd pollers[CONNECTIONS_MAX];
    for (size_t i = 0; i < count; i++) {
        pollers[i] = (struct pollfd){.fd = followers[i].client.fd, .events = POLLIN};
    }
    int timeout_ms = (int)consuming->session->client.timeout_ms + WAIT_MS;
    int ready = poll(pollers, (nfds_t)count, timeout_ms);
    if (ready == 0) {
        return esk_complain(ESK_EXIT_FAILED, "no answer within %d ms", timeout_ms);
    }
    if (ready < 0 && errno != EINTR) {
        return esk_complain(ESK_EXIT_FAILED, "poll: %s", strerror(errno));
    }
    int code = ESK_EXIT_DONE;
    for (size_t i = 0; ready > 0 && i < count && code == ESK_EXIT_DONE && consuming->left; i++) {
        if (pollers[i].revents) {
            code = take(consuming, &followers[i]);
            followers[i].reading += count;
            if (followers[i].reading >= consuming->reading_count) {
                followers[i].reading = i;
            }
            if (code == ESK_EXIT_DONE && consuming->left) {
                code = ask(consuming, &followers[i]);
            }
        }
    }
    return code;
}

int eski_consume_follow(struct eski_consuming *consuming) {
    size_t count =
        consuming->reading_count < CONNECTIONS_MAX ? consuming->reading_count : CONNECTIONS_MAX;
    struct follower *followers = esk_alloc_zeroed(count + 1, sizeof(*followers));
    int code = ESK_EXIT_DONE;
    for (size_t i = 0; i < count; i++) {
        size_t share = (consuming->reading_count - i + count - 1) / count;
        uint32_t wait_ms = ROUND_MS / (uint32_t)share;
        followers[i].reading = i;
        followers[i].wait_ms = share == 1 ? WAIT_MS : wait_ms < WAIT_MS_MIN ? WAIT_MS_MIN : wait_ms;
        esk_http_client_init(&followers[i].client, &consuming->session->server,
                             consuming->session->client.timeout_ms);
    }
    for (size_t i = 0; i < count && code == ESK_EXIT_DONE; i++) {
        code = ask(consuming, &followers[i]);
    }
    while (code == ESK_EXIT_DONE && consuming->left) {
        code = turn(consuming, followers, count);
    }
    for (size_t i = 0; i < count; i++) {
        esk_http_client_fini(&followers[i].client);
    }
    free(followers);
    return code;
}
