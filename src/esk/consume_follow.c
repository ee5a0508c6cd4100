/* SPDX-License-Identifier: Apache-2.0 */
/* Following: long polls on a few connections, each of which reads its share of the partitions in
 * turn. With at most CONNECTIONS_MAX partitions each has a connection of its own and a record is
 * printed as soon as it is there; with more, within about a second. When the broker goes away, all
 * connections are made anew, with growing pauses, and reading goes on where it was. */
#include "esk/consume_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64
#define WAIT_MS 10000 /* of a connection with one partition */
#define ROUND_MS 1000 /* through all partitions of a connection with several */
#define WAIT_MS_MIN 10
#define PAUSE_MS_MIN 100 /* before the broker is looked for again; doubled each time */
#define PAUSE_MS_MAX 5000

struct follower {
    struct esk_http_client client;
    size_t reading; /* index of the one that is asked for now */
    uint32_t wait_ms;
    bool is_done; /* all its partitions are stopped */
};

struct following {
    struct eski_consuming *consuming;
    struct follower *followers;
    size_t count;
    bool is_lost; /* the broker went away; error says how */
    struct esk_error error;
};

static int lose(struct following *following) {
    following->is_lost = true;
    return ESK_EXIT_FAILED;
}

static int ask(struct following *following, struct follower *follower) {
    struct eski_consuming *consuming = following->consuming;
    char *path =
        eski_consume_path(consuming, &consuming->readings[follower->reading], follower->wait_ms);
    enum esk_err err =
        esk_http_client_send(&follower->client, "GET", path, esk_slice(NULL, 0), &following->error);
    free(path);
    return err == ESK_OK ? ESK_EXIT_DONE : lose(following);
}

/* The next partition of the follower's share that is not stopped. */
static void advance(struct following *following, struct follower *follower) {
    const struct eski_consuming *consuming = following->consuming;
    size_t first = (size_t)(follower - following->followers);
    size_t before = follower->reading;
    do {
        follower->reading += following->count;
        if (follower->reading >= consuming->reading_count) {
            follower->reading = first;
        }
    } while (follower->reading != before && consuming->readings[follower->reading].is_stopped);
    follower->is_done = consuming->readings[follower->reading].is_stopped;
}

static int take(struct following *following, struct follower *follower) {
    struct eski_consuming *consuming = following->consuming;
    const struct esk_http_answer *answer = &follower->client.answer;
    if (esk_http_client_receive(&follower->client, follower->wait_ms, &following->error) !=
        ESK_OK) {
        return lose(following);
    }
    if (answer->status == 503) {
        esk_fail(&following->error, ESK_ERR_UNAVAILABLE, "the broker is not ready");
        return lose(following);
    }
    int code = eski_consume_take(consuming, &consuming->readings[follower->reading], answer);
    if (code != ESK_EXIT_DONE && consuming->session->is_unreachable) { /* for the commit */
        esk_fail(&following->error, ESK_ERR_UNAVAILABLE, "what was printed is not committed yet");
        return lose(following);
    }
    advance(following, follower);
    return code == ESK_EXIT_DONE && consuming->left && !follower->is_done ? ask(following, follower)
                                                                          : code;
}

/* Waits for answers and takes each. Ends when nobody reads what is printed any more. */
static int turn(struct following *following) {
    struct pollfd pollers[CONNECTIONS_MAX + 1];
    size_t count = following->count;
    for (size_t i = 0; i < count; i++) {
        const struct follower *follower = &following->followers[i];
        pollers[i] = (struct pollfd){.fd = follower->is_done ? -1 : follower->client.stream.fd,
                                     .events = POLLIN};
    }
    pollers[count] = (struct pollfd){.fd = STDOUT_FILENO};
    int timeout_ms = (int)following->consuming->session->client.timeout_ms + WAIT_MS;
    int ready = poll(pollers, (nfds_t)count + 1, timeout_ms);
    if (ready == 0) {
        esk_fail(&following->error, ESK_ERR_TIMEOUT, "no answer within %d ms", timeout_ms);
        return lose(following);
    }
    if (ready < 0) {
        return errno == EINTR ? ESK_EXIT_DONE
                              : esk_complain(ESK_EXIT_FAILED, "poll: %s", strerror(errno));
    }
    if (pollers[count].revents) {
        return ESK_EXIT_FAILED;
    }
    int code = ESK_EXIT_DONE;
    for (size_t i = 0; i < count && code == ESK_EXIT_DONE && following->consuming->left; i++) {
        if (pollers[i].revents && esk_http_client_is_ready(&following->followers[i].client)) {
            code = take(following, &following->followers[i]);
        }
    }
    return code;
}

/* Connects all followers anew and asks for what each was reading. */
static int begin(struct following *following) {
    struct esk_session *session = following->consuming->session;
    int code = ESK_EXIT_DONE;
    for (size_t i = 0; i < following->count && code == ESK_EXIT_DONE; i++) {
        struct follower *follower = &following->followers[i];
        esk_http_client_fini(&follower->client);
        esk_http_client_init(&follower->client, &session->server, session->client.timeout_ms);
        code = follower->is_done ? code : ask(following, follower);
    }
    return code;
}

/* Commits what the outage left uncommitted. */
static int catch_up(struct following *following) {
    struct eski_consuming *consuming = following->consuming;
    int code = ESK_EXIT_DONE;
    for (size_t i = 0; i < consuming->reading_count && code == ESK_EXIT_DONE; i++) {
        code = eski_consume_commit(consuming, &consuming->readings[i]);
    }
    if (code != ESK_EXIT_DONE && consuming->session->is_unreachable) {
        return lose(following);
    }
    return code;
}

/* Tries until the broker is there again, or nobody reads the output. */
static int come_back(struct following *following) {
    int pause_ms = PAUSE_MS_MIN;
    int code = ESK_EXIT_FAILED;
    (void)esk_complain(0, "%s; trying again until the broker is back", following->error.text);
    while (following->is_lost) {
        struct pollfd poller = {.fd = STDOUT_FILENO};
        following->is_lost = false;
        if (poll(&poller, 1, pause_ms) > 0) {
            return ESK_EXIT_FAILED;
        }
        pause_ms = pause_ms * 2 < PAUSE_MS_MAX ? pause_ms * 2 : PAUSE_MS_MAX;
        code = begin(following);
        if (code == ESK_EXIT_DONE) {
            code = catch_up(following);
        }
    }
    if (code == ESK_EXIT_DONE) {
        (void)esk_complain(0, "the broker is back");
    }
    return code;
}

static bool is_any_left(const struct following *following) {
    bool is_any = false;
    for (size_t i = 0; i < following->count; i++) {
        is_any = is_any || !following->followers[i].is_done;
    }
    return is_any && following->consuming->left;
}

int eski_consume_follow(struct eski_consuming *consuming) {
    size_t count =
        consuming->reading_count < CONNECTIONS_MAX ? consuming->reading_count : CONNECTIONS_MAX;
    struct following following = {.consuming = consuming, .count = count};
    following.followers = esk_alloc_zeroed(count + 1, sizeof(*following.followers));
    for (size_t i = 0; i < count; i++) {
        struct follower *follower = &following.followers[i];
        size_t share = (consuming->reading_count - i + count - 1) / count;
        uint32_t wait_ms = ROUND_MS / (uint32_t)share;
        follower->reading = i;
        follower->wait_ms = share == 1 ? WAIT_MS : wait_ms < WAIT_MS_MIN ? WAIT_MS_MIN : wait_ms;
        esk_http_client_init(&follower->client, &consuming->session->server,
                             consuming->session->client.timeout_ms);
    }
    int code = begin(&following);
    while (following.is_lost || (code == ESK_EXIT_DONE && is_any_left(&following))) {
        code = following.is_lost ? come_back(&following) : turn(&following);
    }
    for (size_t i = 0; i < count; i++) {
        esk_http_client_fini(&following.followers[i].client);
    }
    free(following.followers);
    return code;
}
