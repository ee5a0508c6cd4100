/* SPDX-License-Identifier: Apache-2.0 */
/* What the disk under a folder can do, by the broker's way of writing its journal: durable writes
 * of aligned blocks (O_DIRECT|O_DSYNC) into a file that was written before, with one and two in
 * flight. Where direct writes are refused: buffered, each followed by fdatasync, with a descriptor
 * per thread.
 *
 *   bench_disk_limits FOLDER [SECONDS] [BLOCK_BYTES] [RATE]
 *
 * prints {"direct":true,"block_bytes":4096,"in_flight":[{"count":1,"writes_per_second":...,
 * "megabytes_per_second":...,"p50_ms":...,"p99_ms":...,"p99_9_ms":...},{"count":2,...}]} and leaves
 * nothing behind. With RATE there is also "open_loop": as many records fall due each second, at
 * even distances and whatever the disk does; a write carries all that are due by then, two writes
 * may be out, and a record's latency counts from when it was due. What stalls the disk for some
 * milliseconds then counts for all that wait, as it does for a broker's clients. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES (64 * 1024 * 1024) /* as a journal file */
#define SAMPLES_MAX 2000000           /* of a thread */
#define IN_FLIGHT_MAX 2

static char path[4096];
static bool is_direct = true;
static size_t block_bytes = 4096;
static atomic_size_t next_block;
static uint64_t end_ns;
static uint64_t rate; /* 0: closed loop */
static uint64_t start_ns;
static pthread_mutex_t due_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t taken; /* records that some write carries */

struct writer {
    pthread_t thread;
    uint64_t *samples;
    size_t count;
};

static void die(const char *what) {
    fprintf(stderr, "bench_disk_limits: %s: %s\n", what, strerror(errno));
    unlink(path);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *make_block(void) {
    void *block;
    if (posix_memalign(&block, 4096, block_bytes) != 0) {
        die("memory");
    }
    memset(block, 0x5a, block_bytes);
    return block;
}

/* Writes the whole file once, so that its blocks exist. */
static void prepare(void) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EINVAL) {
        is_direct = false;
        fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    }
    if (fd < 0) {
        die(path);
    }
    char *block = make_block();
    for (size_t at = 0; at + block_bytes <= FILE_BYTES; at += block_bytes) {
        if (pwrite(fd, block, block_bytes, (off_t)at) != (ssize_t)block_bytes) {
            die("write");
        }
    }
    if (fsync(fd) != 0 || close(fd) != 0) {
        die("sync");
    }
    free(block);
}

static void write_block(int fd, const char *block) {
    size_t blocks = FILE_BYTES / block_bytes;
    off_t at = (off_t)(atomic_fetch_add(&next_block, 1) % blocks * block_bytes);
    if (pwrite(fd, block, block_bytes, at) != (ssize_t)block_bytes ||
        (!is_direct && fdatasync(fd) != 0)) {
        die("write");
    }
}

static void run_closed(struct writer *writer, int fd, const char *block) {
    uint64_t began = now_ns();
    while (began < end_ns && writer->count < SAMPLES_MAX) {
        write_block(fd, block);
        uint64_t ended = now_ns();
        writer->samples[writer->count++] = ended - began;
        began = ended;
    }
}

static uint64_t due_ns(uint64_t record) {
    return start_ns + record * 1000000000 / rate;
}

/* The records of the next write: from *first up to the one returned. Waits until one is due. */
static uint64_t take_due(uint64_t *first) {
    pthread_mutex_lock(&due_lock);
    *first = taken;
    uint64_t due = due_ns(taken);
    struct timespec when = {(time_t)(due / 1000000000), (long)(due % 1000000000)};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
    taken = (now_ns() - start_ns) * rate / 1000000000 + 1;
    uint64_t end = taken;
    pthread_mutex_unlock(&due_lock);
    return end;
}

static void run_open(struct writer *writer, int fd, const char *block) {
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    for (;;) {
        uint64_t first;
        uint64_t end = take_due(&first);
        if (due_ns(first) >= end_ns || writer->count + (end - first) > SAMPLES_MAX) {
            return;
        }
        write_block(fd, block);
        uint64_t ended = now_ns();
        for (uint64_t record = first; record < end; record++) {
            writer->samples[writer->count++] = ended - due_ns(record);
        }
    }
}

static void *run(void *context) {
    struct writer *writer = context;
    int fd = open(path, O_WRONLY | O_CLOEXEC | (is_direct ? O_DIRECT | O_DSYNC : 0));
    if (fd < 0) {
        die(path);
    }
    char *block = make_block();
    if (rate) {
        run_open(writer, fd, block);
    } else {
        run_closed(writer, fd, block);
    }
    free(block);
    close(fd);
    return NULL;
}

static int compare(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static double quantile_ms(const uint64_t *sorted, size_t count, double share) {
    size_t at = (size_t)(share * (double)count);
    return (double)sorted[at < count ? at : count - 1] / 1e6;
}

static void measure(size_t in_flight, double seconds) {
    struct writer writers[IN_FLIGHT_MAX] = {0};
    uint64_t began = now_ns();
    start_ns = began;
    end_ns = began + (uint64_t)(seconds * 1e9);
    size_t count = 0;
    for (size_t i = 0; i < in_flight; i++) {
        writers[i].samples = malloc(SAMPLES_MAX * sizeof(uint64_t));
        if (!writers[i].samples ||
            pthread_create(&writers[i].thread, NULL, run, &writers[i]) != 0) {
            die("thread");
        }
    }
    for (size_t i = 0; i < in_flight; i++) {
        pthread_join(writers[i].thread, NULL);
        count += writers[i].count;
    }
    double elapsed = (double)(now_ns() - began) / 1e9;
    uint64_t *all = malloc((count + 1) * sizeof(uint64_t));
    if (!all || !count) {
        die("no sample");
    }
    size_t at = 0;
    for (size_t i = 0; i < in_flight; i++) {
        memcpy(all + at, writers[i].samples, writers[i].count * sizeof(uint64_t));
        at += writers[i].count;
        free(writers[i].samples);
    }
    qsort(all, count, sizeof(uint64_t), compare);
    if (rate) {
        printf("{\"records_per_second\":%.1f,", (double)count / elapsed);
    } else {
        printf("%s{\"count\":%zu,\"writes_per_second\":%.1f,\"megabytes_per_second\":%.2f,",
               in_flight > 1 ? "," : "", in_flight, (double)count / elapsed,
               (double)count * (double)block_bytes / 1e6 / elapsed);
    }
    printf("\"p50_ms\":%.4f,\"p99_ms\":%.4f,\"p99_9_ms\":%.4f}", quantile_ms(all, count, 0.5),
           quantile_ms(all, count, 0.99), quantile_ms(all, count, 0.999));
    free(all);
}

int main(int count, char **arguments) {
    double seconds = count > 2 ? atof(arguments[2]) : 2;
    block_bytes = count > 3 ? (size_t)atol(arguments[3]) : 4096;
    uint64_t asked_rate = count > 4 ? strtoull(arguments[4], NULL, 10) : 0;
    if (count < 2 || seconds <= 0 || asked_rate > 1000000 || block_bytes == 0 ||
        block_bytes % 4096 != 0 || block_bytes > FILE_BYTES / 4) {
        fputs("usage: bench_disk_limits FOLDER [SECONDS] [BLOCK_BYTES] [RATE]\n", stderr);
        return 2;
    }
    snprintf(path, sizeof(path), "%s/disk-limits-%d", arguments[1], (int)getpid());
    prepare();
    printf("{\"direct\":%s,\"block_bytes\":%zu,\"in_flight\":[", is_direct ? "true" : "false",
           block_bytes);
    for (size_t in_flight = 1; in_flight <= IN_FLIGHT_MAX; in_flight++) {
        measure(in_flight, seconds);
    }
    printf("]");
    if (asked_rate) {
        rate = asked_rate;
        printf(",\"open_loop\":");
        measure(IN_FLIGHT_MAX, seconds);
    }
    printf("}\n");
    return unlink(path) == 0 ? 0 : 1;
}
