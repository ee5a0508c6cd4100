/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of small messages over loopback TCP, one at a time, between two threads that sleep in
 * epoll between them, as a client and a broker do.
 *
 *   bench_loopback_echo [SECONDS]
 *
 * prints {"round_trips_per_second":...,"p50_ms":...,"p99_ms":...}. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES 150 /* a record of 100 B in its frame */
#define SAMPLES_MAX 1000000

static void die(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int watch(int fd) {
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    int on = 1;
    if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) {
        die("socket");
    }
    return epoll_fd;
}

/* Waits for a whole message; false: the other side is gone. */
static bool receive(int epoll_fd, int fd, char *message) {
    struct epoll_event event;
    ssize_t size = 0;
    while (size < MESSAGE_BYTES) {
        if (epoll_wait(epoll_fd, &event, 1, -1) < 0) {
            die("epoll_wait");
        }
        ssize_t more = recv(fd, message + size, (size_t)(MESSAGE_BYTES - size), 0);
        if (more <= 0) {
            return false;
        }
        size += more;
    }
    return true;
}

static void *serve(void *context) {
    int fd = accept(*(int *)context, NULL, NULL);
    int epoll_fd = watch(fd);
    char message[MESSAGE_BYTES];
    while (receive(epoll_fd, fd, message) && send(fd, message, sizeof(message), 0) > 0) {
    }
    close(epoll_fd);
    close(fd);
    return NULL;
}

static int compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 2;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    pthread_t server;
    uint64_t *samples = malloc(SAMPLES_MAX * sizeof(*samples));
    if (seconds <= 0 || !samples || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 1) != 0 || getsockname(listener, (struct sockaddr *)&address, &size) ||
        pthread_create(&server, NULL, serve, &listener) != 0 ||
        connect(fd, (struct sockaddr *)&address, size) != 0) {
        die("loopback");
    }
    int epoll_fd = watch(fd);
    char message[MESSAGE_BYTES] = {0};
    size_t taken = 0;
    uint64_t began = now_ns();
    uint64_t before = began;
    while (before - began < (uint64_t)(seconds * 1e9) && taken < SAMPLES_MAX) {
        if (send(fd, message, sizeof(message), 0) < 0 || !receive(epoll_fd, fd, message)) {
            die("echo");
        }
        uint64_t after = now_ns();
        samples[taken++] = after - before;
        before = after;
    }
    close(fd);
    pthread_join(server, NULL);
    qsort(samples, taken, sizeof(*samples), compare);
    printf("{\"round_trips_per_second\":%.0f,\"p50_ms\":%.4f,\"p99_ms\":%.4f}\n",
           (double)taken / ((double)(before - began) / 1e9), (double)samples[taken / 2] / 1e6,
           (double)samples[taken - taken / 100 - 1] / 1e6);
    return 0;
}
