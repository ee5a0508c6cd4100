/* SPDX-License-Identifier: Apache-2.0 */
/* What a program without a broker reaches on this machine with ES01's frames: the ceiling that the
 * ES01 door is measured against.
 *
 *   bench_es01_bare direct|sync|twice|fetch|copy ADDR:PORT FOLDER [THREADS]
 *
 * direct  appends the frames that arrive to a pre-written file, O_DIRECT|O_DSYNC, two writes in
 *         flight a thread, and answers each after its write
 * sync    the same with buffered writes and fdatasync, one at a time
 * twice   sync, and behind it every byte once more into growing files that are written back and
 *         deleted, as segments are
 * fetch   answers each consume frame with max_bytes of records from a file, by sendfile; one frame
 *         at a time on a connection. The file has 16 partitions of 25,000 records of 1 KiB, and as
 *         from a log each frame gets what lies at its offset
 * copy    the same, but reads the records into memory and sends them from there, as a program must
 *         that looks at what it sends
 *
 * Prints "listening ADDR:PORT". Nothing is parsed beyond lengths, request ids and counts, nothing
 * is checked, no record gets a real offset. Ends with SIGTERM; FOLDER is the caller's to remove. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#define JOURNAL_BYTES (64u << 20)
#define GATHER_BYTES (8u << 20)
#define INPUT_BYTES (1u << 20)
#define SEGMENT_BYTES (64u << 20)
#define BEHIND_BYTES (64u << 20) /* written to the journal and not to a segment yet */
#define SEGMENTS_KEPT 4
#define BLOCK 4096
#define RECORD_BYTES 1024
#define STORED_BYTES (28 + RECORD_BYTES) /* as ES01 has a record in an answer */
#define PARTITIONS 16
#define PARTITION_RECORDS 25000
#define COPY_BYTES (256u << 10) /* at once: they stay in the cache */
#define SLOTS 2

enum mode { DIRECT, SYNC, TWICE, FETCH, COPY };

static enum mode mode;
static const char *folder;

struct connection {
    int fd;
    bool greeted;
    bool dirty;   /* in the thread's list of those with output */
    bool blocked; /* and of those whose next frame found no room */
    struct connection *next;
    uint8_t *input;
    size_t input_size, input_capacity;
    uint8_t *output;
    size_t output_size, output_sent, output_capacity;
    off_t file_at;    /* fetch, copy: in the file, */
    size_t file_left; /* and bytes from there behind `output` */
};

struct answer {
    struct connection *connection;
    uint32_t request;
    uint32_t count;
};

struct slot {
    struct thread *thread;
    pthread_t flusher;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool busy;
    uint8_t *bytes;
    size_t size;
    uint64_t position;
    struct answer *answers;
    size_t answer_count, answer_capacity;
    uint64_t sequence;
    atomic_bool written;
    int fd;
};

struct thread {
    pthread_t self;
    int number;
    int epoll_fd;
    int wake_fd;
    uint64_t position; /* in the journal */
    uint64_t started, finished;
    struct slot slots[SLOTS];
    struct slot gather; /* what arrived and is in no write yet */
    struct connection *dirty;
    struct connection **blocked;
    size_t blocked_count, blocked_capacity;
    /* twice: bytes on their way to segments */
    pthread_t writer;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint8_t *behind;
    size_t behind_size;
};

static void die(const char *what) {
    fprintf(stderr, "bench_es01_bare: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void *allocate(size_t size) {
    void *bytes = NULL;
    if (posix_memalign(&bytes, BLOCK, size) != 0) {
        die("memory");
    }
    return bytes;
}

static uint32_t load_u32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store_u32(uint8_t *at, uint32_t value) {
    value = htonl(value);
    memcpy(at, &value, 4);
}

static void store_u64(uint8_t *at, uint64_t value) {
    store_u32(at, (uint32_t)(value >> 32));
    store_u32(at + 4, (uint32_t)value);
}

/* --- the disk --- */

static void path_of(char *path, size_t size, const char *name, int thread, uint64_t number) {
    snprintf(path, size, "%s/%s-%d-%llu", folder, name, thread, (unsigned long long)number);
}

static int open_journal(int thread, bool create) {
    char path[4096];
    path_of(path, sizeof(path), "journal", thread, 0);
    int flags = O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0);
    int fd = open(path, mode == DIRECT ? flags | O_DIRECT | O_DSYNC : flags, 0600);
    if (fd < 0) {
        die(path);
    }
    return fd;
}

static void prepare_journal(int thread) {
    int fd = open_journal(thread, true);
    uint8_t *block = allocate(1 << 20);
    memset(block, 0, 1 << 20);
    for (size_t at = 0; at < JOURNAL_BYTES; at += 1 << 20) {
        if (pwrite(fd, block, 1 << 20, (off_t)at) != 1 << 20) {
            die("journal");
        }
    }
    if (fsync(fd) != 0 || close(fd) != 0) {
        die("journal");
    }
    free(block);
}

static void write_all(int fd, const uint8_t *bytes, size_t size, off_t at) {
    while (size > 0) {
        ssize_t written = at < 0 ? write(fd, bytes, size) : pwrite(fd, bytes, size, at);
        if (written <= 0) {
            die("write");
        }
        bytes += written;
        size -= (size_t)written;
        at = at < 0 ? at : at + written;
    }
}

/* Hands the bytes to the segment writer; waits while that is too far behind. */
static void pass_on(struct thread *thread, const uint8_t *bytes, size_t size) {
    pthread_mutex_lock(&thread->mutex);
    while (thread->behind_size + size > BEHIND_BYTES) {
        pthread_cond_wait(&thread->changed, &thread->mutex);
    }
    memcpy(thread->behind + thread->behind_size, bytes, size);
    thread->behind_size += size;
    pthread_cond_broadcast(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
}

static void *run_flusher(void *context) {
    struct slot *slot = context;
    for (;;) {
        pthread_mutex_lock(&slot->mutex);
        while (!slot->busy) {
            pthread_cond_wait(&slot->changed, &slot->mutex);
        }
        pthread_mutex_unlock(&slot->mutex);
        size_t size = mode == DIRECT ? (slot->size + BLOCK - 1) / BLOCK * BLOCK : slot->size;
        write_all(slot->fd, slot->bytes, size, (off_t)slot->position);
        if (mode != DIRECT && fdatasync(slot->fd) != 0) {
            die("fdatasync");
        }
        if (mode == TWICE) {
            pass_on(slot->thread, slot->bytes, slot->size);
        }
        slot->busy = false;
        atomic_store(&slot->written, true);
        (void)eventfd_write(slot->thread->wake_fd, 1);
    }
    return NULL;
}

/* Growing files in slices, each written back before the next but one; old files are deleted. */
static void *run_writer(void *context) {
    struct thread *thread = context;
    uint8_t *bytes = allocate(BEHIND_BYTES);
    char path[4096];
    int fd = -1;
    uint64_t number = 0;
    size_t at = 0;
    for (;;) {
        pthread_mutex_lock(&thread->mutex);
        while (thread->behind_size == 0) {
            pthread_cond_wait(&thread->changed, &thread->mutex);
        }
        size_t size = thread->behind_size;
        uint8_t *taken = thread->behind;
        thread->behind = bytes;
        thread->behind_size = 0;
        bytes = taken;
        pthread_cond_broadcast(&thread->changed);
        pthread_mutex_unlock(&thread->mutex);
        for (size_t done = 0; done < size;) {
            if (fd < 0) {
                path_of(path, sizeof(path), "segment", thread->number, number++);
                fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                at = 0;
            }
            size_t slice = size - done < 128 << 10 ? size - done : 128 << 10;
            write_all(fd, bytes + done, slice, -1);
            (void)sync_file_range(fd, (off_t)at, (off_t)slice, SYNC_FILE_RANGE_WRITE);
            done += slice;
            at += slice;
            if (at >= SEGMENT_BYTES) {
                if (fdatasync(fd) != 0) {
                    die("fdatasync");
                }
                close(fd);
                fd = -1;
                if (number > SEGMENTS_KEPT) {
                    path_of(path, sizeof(path), "segment", thread->number,
                            number - 1 - SEGMENTS_KEPT);
                    (void)unlink(path);
                }
            }
        }
    }
    return NULL;
}

/* --- output --- */

static uint8_t *reserve(struct connection *connection, size_t size) {
    if (connection->output_size + size > connection->output_capacity) {
        connection->output_capacity = (connection->output_size + size) * 2;
        connection->output = realloc(connection->output, connection->output_capacity);
    }
    uint8_t *at = connection->output + connection->output_size;
    connection->output_size += size;
    return at;
}

static void mark(struct thread *thread, struct connection *connection) {
    if (!connection->dirty) {
        connection->dirty = true;
        connection->next = thread->dirty;
        thread->dirty = connection;
    }
}

static int records_fd = -1;

static ssize_t send_records(int fd, off_t from, size_t left) {
    if (mode == FETCH) {
        return sendfile(fd, records_fd, &from, left);
    }
    static _Thread_local uint8_t bytes[COPY_BYTES];
    ssize_t got = pread(records_fd, bytes, left < COPY_BYTES ? left : COPY_BYTES, from);
    return got <= 0 ? got : send(fd, bytes, (size_t)got, MSG_NOSIGNAL);
}

/* false: the client is gone. */
static bool flush(struct connection *connection) {
    while (connection->output_sent < connection->output_size) {
        ssize_t sent = send(connection->fd, connection->output + connection->output_sent,
                            connection->output_size - connection->output_sent,
                            MSG_NOSIGNAL | (connection->file_left > 0 ? MSG_MORE : 0));
        if (sent < 0) {
            return errno == EAGAIN;
        }
        connection->output_sent += (size_t)sent;
    }
    connection->output_size = connection->output_sent = 0;
    while (connection->file_left > 0) {
        ssize_t sent = send_records(connection->fd, connection->file_at, connection->file_left);
        if (sent <= 0) {
            return sent < 0 && errno == EAGAIN;
        }
        connection->file_at += sent;
        connection->file_left -= (size_t)sent;
    }
    return true;
}

static void flush_dirty(struct thread *thread) {
    struct connection *connection;
    while ((connection = thread->dirty) != NULL) {
        thread->dirty = connection->next;
        connection->dirty = false;
        (void)flush(connection);
    }
}

/* --- frames --- */

static void produce(struct thread *thread, struct connection *connection, const uint8_t *frame,
                    size_t size) {
    struct slot *gather = &thread->gather;
    const uint8_t *at = frame + 9;
    at += 2 + ((size_t)at[0] << 8 | at[1]);
    uint32_t producer = load_u32(at);
    at += 4 + (producer == UINT32_MAX ? 0 : producer);
    if (gather->answer_count == gather->answer_capacity) {
        gather->answer_capacity = gather->answer_capacity * 2 + 64;
        gather->answers = realloc(gather->answers, gather->answer_capacity * sizeof(struct answer));
    }
    gather->answers[gather->answer_count++] =
        (struct answer){connection, load_u32(frame + 4), load_u32(at)};
    memcpy(gather->bytes + gather->size, frame, size);
    gather->size += size;
}

static void consume(struct thread *thread, struct connection *connection, const uint8_t *frame) {
    const uint8_t *at = frame + 9;
    at += 2 + ((size_t)at[0] << 8 | at[1]);
    uint32_t partition = load_u32(at) % PARTITIONS;
    at += 4;
    uint64_t offset = (uint64_t)load_u32(at) << 32 | load_u32(at + 4);
    size_t count = load_u32(at + 12) / RECORD_BYTES;
    count = count > PARTITION_RECORDS ? PARTITION_RECORDS : count;
    uint64_t first = offset % (PARTITION_RECORDS - count + 1); /* from its end to its start */
    uint8_t *out = reserve(connection, 29);
    store_u32(out, (uint32_t)(25 + count * STORED_BYTES));
    memcpy(out + 4, frame + 4, 4);
    out[8] = 0x82;
    store_u64(out + 9, offset + count);
    store_u64(out + 17, UINT64_MAX >> 1);
    store_u32(out + 25, (uint32_t)count);
    connection->file_at = (off_t)((partition * (uint64_t)PARTITION_RECORDS + first) * STORED_BYTES);
    connection->file_left = count * STORED_BYTES;
    mark(thread, connection);
}

static void ping(struct thread *thread, struct connection *connection, const uint8_t *frame,
                 size_t size) {
    uint8_t *out = reserve(connection, size);
    memcpy(out, frame, size);
    out[8] = 0x83;
    mark(thread, connection);
}

static void greet(struct thread *thread, struct connection *connection) {
    uint8_t *out = reserve(connection, 13);
    memset(out, 0, 13);
    memcpy(out, "ES01", 4);
    mark(thread, connection);
}

/* Takes whole frames; what is left stays. false: there is no room for the next one now. */
static bool take_frames(struct thread *thread, struct connection *connection) {
    size_t at = 0;
    bool goes_on = true;
    while (goes_on) {
        const uint8_t *input = connection->input + at;
        size_t left = connection->input_size - at;
        size_t size = left < 12             ? SIZE_MAX
                      : connection->greeted ? 4 + (size_t)load_u32(input)
                                            : 12 + (size_t)load_u32(input + 8);
        if (left < 4 || (connection->greeted && left < 4 + (size_t)load_u32(input)) ||
            (!connection->greeted && left < size)) {
            break;
        }
        if (!connection->greeted) {
            greet(thread, connection);
            connection->greeted = true;
        } else {
            size = 4 + (size_t)load_u32(input);
            if (input[8] == 1 && thread->gather.size + size > GATHER_BYTES) {
                goes_on = false;
                break;
            }
            if (input[8] == 1) {
                produce(thread, connection, input, size);
            } else if (input[8] == 2) {
                consume(thread, connection, input);
            } else {
                ping(thread, connection, input, size);
            }
        }
        at += size;
    }
    memmove(connection->input, connection->input + at, connection->input_size - at);
    connection->input_size -= at;
    return goes_on;
}

static void block(struct thread *thread, struct connection *connection) {
    if (!connection->blocked) {
        connection->blocked = true;
        if (thread->blocked_count == thread->blocked_capacity) {
            thread->blocked_capacity = thread->blocked_capacity * 2 + 64;
            thread->blocked =
                realloc(thread->blocked, thread->blocked_capacity * sizeof(struct connection *));
        }
        thread->blocked[thread->blocked_count++] = connection;
    }
}

static void end_connection(struct connection *connection) {
    shutdown(connection->fd, SHUT_RDWR); /* the struct may still be waited for: it stays */
}

static void receive(struct thread *thread, struct connection *connection) {
    for (;;) {
        size_t needed = connection->greeted && connection->input_size >= 4
                            ? 4 + (size_t)load_u32(connection->input)
                            : 0;
        size_t capacity = needed > INPUT_BYTES ? needed : INPUT_BYTES;
        if (connection->input_capacity < capacity) {
            connection->input = realloc(connection->input, capacity);
            connection->input_capacity = capacity;
        }
        if (connection->input_size == connection->input_capacity) {
            block(thread, connection);
            return;
        }
        ssize_t received = recv(connection->fd, connection->input + connection->input_size,
                                connection->input_capacity - connection->input_size, 0);
        if (received <= 0) {
            if (received == 0 || errno != EAGAIN) {
                end_connection(connection);
            }
            return;
        }
        connection->input_size += (size_t)received;
        if (!take_frames(thread, connection)) {
            block(thread, connection);
            return;
        }
    }
}

/* Those that found no room, once there is some; sockets are edge-triggered. */
static void resume(struct thread *thread) {
    size_t count = thread->blocked_count;
    thread->blocked_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct connection *connection = thread->blocked[i];
        connection->blocked = false;
        if (take_frames(thread, connection)) {
            receive(thread, connection);
        } else {
            block(thread, connection);
        }
    }
}

/* --- writes --- */

static void start_writes(struct thread *thread) {
    for (int i = 0; i < (mode == DIRECT ? SLOTS : 1); i++) {
        struct slot *slot = &thread->slots[i];
        struct slot *gather = &thread->gather;
        if (gather->answer_count == 0 || slot->sequence != 0) {
            continue;
        }
        uint8_t *bytes = slot->bytes;
        struct answer *answers = slot->answers;
        size_t capacity = slot->answer_capacity;
        size_t size = (gather->size + BLOCK - 1) / BLOCK * BLOCK;
        if (thread->position + size > JOURNAL_BYTES) {
            thread->position = 0;
        }
        slot->bytes = gather->bytes;
        slot->size = gather->size;
        slot->answers = gather->answers;
        slot->answer_count = gather->answer_count;
        slot->answer_capacity = gather->answer_capacity;
        slot->position = thread->position;
        slot->sequence = ++thread->started;
        thread->position += size;
        *gather = (struct slot){.bytes = bytes, .answers = answers, .answer_capacity = capacity};
        pthread_mutex_lock(&slot->mutex);
        slot->busy = true;
        pthread_cond_signal(&slot->changed);
        pthread_mutex_unlock(&slot->mutex);
    }
}

static void answer_all(struct thread *thread, const struct slot *slot) {
    for (size_t i = 0; i < slot->answer_count; i++) {
        const struct answer *answer = &slot->answers[i];
        size_t size = 13 + (size_t)answer->count * 13;
        uint8_t *out = reserve(answer->connection, size);
        memset(out, 0, size);
        store_u32(out, (uint32_t)(size - 4));
        store_u32(out + 4, answer->request);
        out[8] = 0x81;
        store_u32(out + 9, answer->count);
        mark(thread, answer->connection);
    }
}

/* Answers what is written, in the order in which the writes began. */
static void finish_writes(struct thread *thread) {
    for (bool found = true; found;) {
        found = false;
        for (int i = 0; i < SLOTS; i++) {
            struct slot *slot = &thread->slots[i];
            if (slot->sequence == thread->finished + 1 && atomic_load(&slot->written)) {
                answer_all(thread, slot);
                atomic_store(&slot->written, false);
                slot->sequence = 0;
                thread->finished++;
                found = true;
            }
        }
    }
}

static void *run_thread(void *context) {
    struct thread *thread = context;
    struct epoll_event events[256];
    for (;;) {
        int count = epoll_wait(thread->epoll_fd, events, 256, -1);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (connection == NULL) {
                eventfd_t ignored;
                (void)eventfd_read(thread->wake_fd, &ignored);
                finish_writes(thread);
            } else if ((events[i].events & EPOLLOUT && !flush(connection)) ||
                       events[i].events & (EPOLLERR | EPOLLHUP)) {
                epoll_ctl(thread->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
            } else if (events[i].events & EPOLLIN) {
                receive(thread, connection);
            }
        }
        start_writes(thread);
        resume(thread);
        flush_dirty(thread);
    }
    return NULL;
}

static void start_thread(struct thread *thread, int number) {
    thread->number = number;
    thread->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    thread->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, thread->wake_fd, &event);
    thread->gather.bytes = allocate(GATHER_BYTES + BLOCK);
    pthread_mutex_init(&thread->mutex, NULL);
    pthread_cond_init(&thread->changed, NULL);
    if (mode < FETCH) {
        prepare_journal(number);
        for (int i = 0; i < SLOTS; i++) {
            struct slot *slot = &thread->slots[i];
            slot->thread = thread;
            slot->bytes = allocate(GATHER_BYTES + BLOCK);
            slot->fd = open_journal(number, false);
            pthread_mutex_init(&slot->mutex, NULL);
            pthread_cond_init(&slot->changed, NULL);
            pthread_create(&slot->flusher, NULL, run_flusher, slot);
        }
    }
    if (mode == TWICE) {
        thread->behind = allocate(BEHIND_BYTES);
        pthread_create(&thread->writer, NULL, run_writer, thread);
    }
    pthread_create(&thread->self, NULL, run_thread, thread);
}

/* Records as consume answers carry them, in the page cache and on the disk. */
static void make_records(void) {
    char path[4096];
    path_of(path, sizeof(path), "records", 0, 0);
    records_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_t size = (size_t)PARTITION_RECORDS * STORED_BYTES;
    uint8_t *bytes = allocate(size);
    memset(bytes, 'x', size);
    for (size_t i = 0; i < PARTITION_RECORDS; i++) {
        uint8_t *at = bytes + i * STORED_BYTES;
        memset(at, 0, 28);
        store_u64(at + 4, i);
        store_u32(at + 20, UINT32_MAX);
        store_u32(at + 24, RECORD_BYTES);
    }
    for (int i = 0; i < PARTITIONS; i++) {
        write_all(records_fd, bytes, size, (off_t)size * i);
    }
    if (fdatasync(records_fd) != 0) { /* so that nothing writes while it is measured */
        die("fdatasync");
    }
    free(bytes);
}

static int listen_at(const char *where) {
    char host[64] = {0};
    const char *colon = strrchr(where, ':');
    if (colon == NULL || (size_t)(colon - where) >= sizeof(host)) {
        errno = EINVAL;
        die(where);
    }
    memcpy(host, where, (size_t)(colon - where));
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)atoi(colon + 1))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof(address);
    if (fd < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        die(where);
    }
    printf("listening %s:%u\n", host, ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(int count, char **arguments) {
    static const char *const names[] = {"direct", "sync", "twice", "fetch", "copy"};
    int found = -1;
    for (int i = 0; count > 1 && i < 5; i++) {
        found = strcmp(arguments[1], names[i]) == 0 ? i : found;
    }
    int thread_count = count > 4 ? atoi(arguments[4]) : 2;
    if (count < 4 || found < 0 || thread_count < 1) {
        fputs("usage: bench_es01_bare direct|sync|twice|fetch|copy ADDR:PORT FOLDER [THREADS]\n",
              stderr);
        return 2;
    }
    mode = (enum mode)found;
    folder = arguments[3];
    if (mode >= FETCH) {
        make_records();
    }
    struct thread *threads = calloc((size_t)thread_count, sizeof(struct thread));
    for (int i = 0; i < thread_count; i++) {
        start_thread(&threads[i], i);
    }
    int listener = listen_at(arguments[2]);
    for (unsigned next = 0;; next++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            die("accept");
        }
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        struct connection *connection = calloc(1, sizeof(*connection));
        connection->fd = fd;
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = connection};
        epoll_ctl(threads[next % (unsigned)thread_count].epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
}
