/* SPDX-License-Identifier: Apache-2.0 */
/* The door over real loops and sockets, with a broker in memory that does what each test needs. */
#include "server/http/http_private.h"

#include "model/limits.h"
#include "runtime/loop.h"
#include "runtime/platform.h"
#include "server/connection/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARDS 2

/* --- a broker of one topic, "orders", with two partitions ----------------------------------------
 */

struct esk_broker_shard {
    struct esk_loop *loop;
};
struct later {
    struct esk_mail mail;
    void (*run)(void *operation, enum esk_err err);
    void *operation;
    enum esk_err err;
};

static struct {
    struct esk_broker_shard shards[SHARDS];
    struct esk_broker_options options;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct esk_block *batches[2][16];
    uint32_t batch_count[2];
    uint64_t next_offset[2];
    enum esk_err failure; /* of the next produce */
    uint64_t taken;
    struct esk_consume *waiting; /* a long poll */
    struct esk_broker_shard *waiting_at;
    bool cancelled;
    uint32_t produced;
} fake;

static void run_later(struct esk_mail *mail) {
    struct later *later = ESK_CONTAINER(mail, struct later, mail);
    later->run(later->operation, later->err);
    free(later);
}

static void answer_later(struct esk_broker_shard *shard, void *operation, enum esk_err err,
                         void (*run)(void *operation, enum esk_err err)) {
    struct later *later = esk_alloc(sizeof *later);
    *later = (struct later){{NULL, run_later}, run, operation, err};
    esk_post(&shard->loop->executor, &later->mail);
}

static bool is_orders(struct esk_slice name) {
    return esk_slice_equal(name, esk_slice_text("orders"));
}

struct esk_broker_shard *esk_broker_shard(struct esk_broker *broker, uint32_t shard) {
    (void)broker;
    return &fake.shards[shard];
}
struct esk_loop *esk_broker_shard_loop(const struct esk_broker_shard *shard) {
    return shard->loop;
}
const struct esk_broker_options *esk_broker_shard_options(const struct esk_broker_shard *shard) {
    (void)shard;
    return &fake.options;
}
bool esk_broker_ready(const struct esk_broker *broker) {
    (void)broker;
    return true;
}
bool esk_broker_memory_take(struct esk_broker_shard *shard, uint64_t bytes) {
    (void)shard;
    __atomic_add_fetch(&fake.taken, bytes, __ATOMIC_RELAXED);
    return true;
}
void esk_broker_memory_give(struct esk_broker_shard *shard, uint64_t bytes) {
    (void)shard;
    __atomic_sub_fetch(&fake.taken, bytes, __ATOMIC_RELAXED);
}
size_t esk_broker_topic_count(const struct esk_broker_shard *shard) {
    (void)shard;
    return 1;
}
bool esk_broker_topic_find(const struct esk_broker_shard *shard, struct esk_slice name,
                           struct esk_topic_view *view) {
    (void)shard;
    *view = (struct esk_topic_view){.name = name, .partition_count = 2};
    esk_topic_config_init(&view->config);
    return is_orders(name);
}
void esk_broker_topic_each(const struct esk_broker_shard *shard,
                           void (*visit)(void *context, const struct esk_topic_view *view),
                           void *context) {
    struct esk_topic_view view;
    if (esk_broker_topic_find(shard, esk_slice_text("orders"), &view)) {
        visit(context, &view);
    }
}

static void topic_done(void *context, enum esk_err err) {
    struct esk_topic_operation *operation = context;
    operation->done(operation, err);
}
static void topic_operation(struct esk_broker_shard *shard, struct esk_topic_operation *operation,
                            bool creating) {
    enum esk_err err = ESK_OK;
    if (creating == is_orders(operation->name)) {
        err = creating ? esk_fail(&operation->error, ESK_ERR_CONFLICT, "topic exists")
                       : esk_fail(&operation->error, ESK_ERR_NOT_FOUND, "unknown topic");
    }
    esk_topic_config_init(&operation->resolved);
    if (err == ESK_OK && operation->config) {
        err = esk_topic_config_apply(&operation->resolved, operation->config, creating,
                                     &operation->error);
    }
    answer_later(shard, operation, err, topic_done);
}
void esk_broker_topic_create(struct esk_broker_shard *shard,
                             struct esk_topic_operation *operation) {
    topic_operation(shard, operation, true);
}
void esk_broker_topic_configure(struct esk_broker_shard *shard,
                                struct esk_topic_operation *operation) {
    topic_operation(shard, operation, false);
}
void esk_broker_topic_delete(struct esk_broker_shard *shard,
                             struct esk_topic_operation *operation) {
    topic_operation(shard, operation, false);
}

static void describe_done(void *context, enum esk_err err) {
    struct esk_topic_description *description = context;
    description->done(description, err);
}
void esk_broker_topic_describe(struct esk_broker_shard *shard,
                               struct esk_topic_description *description) {
    /* As many partitions as a topic may have: the answer does not fit into one piece. */
    description->partition_count = ESK_TOPIC_PARTITIONS_MAX;
    description->partitions =
        esk_alloc_zeroed(ESK_TOPIC_PARTITIONS_MAX, sizeof *description->partitions);
    for (uint32_t i = 0; i < ESK_TOPIC_PARTITIONS_MAX; i++) {
        description->partitions[i].partition = i;
    }
    esk_topic_config_init(&description->config);
    answer_later(shard, description, ESK_OK, describe_done);
}

static void produce_done(void *context, enum esk_err err) {
    struct esk_produce *produce = context;
    produce->done(produce, err);
}
static void append(uint32_t partition, struct esk_produce *produce) {
    struct esk_batch_builder builder;
    esk_batch_builder_begin(&builder, 1763500000000, 100);
    for (uint32_t i = 0; i < produce->record_count; i++) {
        struct esk_produce_record *record = &produce->records[i];
        if (record->written_partition != partition) {
            continue;
        }
        struct esk_record_header headers[8];
        for (uint32_t j = 0; j < record->header_count; j++) {
            headers[j] =
                (struct esk_record_header){record->headers[j].name, record->headers[j].value};
        }
        enum esk_err err = esk_batch_builder_add(&builder, record->key, record->value, headers,
                                                 (int32_t)record->header_count);
        assert_int_equal(err, ESK_OK);
        record->written_offset = fake.next_offset[partition] + (uint32_t)builder.record_count - 1;
    }
    uint32_t count = (uint32_t)builder.record_count;
    if (count == 0) {
        esk_batch_builder_abandon(&builder);
        return;
    }
    struct esk_block *block = esk_batch_builder_finish(&builder);
    esk_batch_patch(block->data, (int64_t)fake.next_offset[partition], 1);
    fake.batches[partition][fake.batch_count[partition]++] = block;
    fake.next_offset[partition] += count;
}
void esk_broker_produce(struct esk_broker_shard *shard, struct esk_produce *produce) {
    pthread_mutex_lock(&fake.mutex);
    enum esk_err err = fake.failure;
    fake.failure = ESK_OK;
    if (err) {
        (void)esk_fail(&produce->error, err, "write segment 3: secret path");
    } else if (!is_orders(produce->topic)) {
        err = esk_fail(&produce->error, ESK_ERR_NOT_FOUND, "unknown topic 'x'");
    } else {
        for (uint32_t i = 0; i < produce->record_count; i++) {
            struct esk_produce_record *record = &produce->records[i];
            record->written_partition =
                record->partition != ESK_PARTITION_ANY
                    ? (uint32_t)record->partition
                    : (uint32_t)esk_partition_for_key(ESK_PARTITIONER_FNV1A, record->key, 2);
        }
        append(0, produce);
        append(1, produce);
        fake.produced++;
        pthread_cond_broadcast(&fake.changed);
    }
    pthread_mutex_unlock(&fake.mutex);
    answer_later(shard, produce, err, produce_done);
}

static void consume_done(void *context, enum esk_err err) {
    struct esk_consume *consume = context;
    consume->done(consume, err);
}
void esk_broker_consume(struct esk_broker_shard *shard, struct esk_consume *consume) {
    pthread_mutex_lock(&fake.mutex);
    uint32_t partition = consume->partition;
    enum esk_err err = ESK_OK;
    if (partition > 1 || !is_orders(consume->topic)) {
        err = esk_fail(&consume->error, ESK_ERR_NOT_FOUND, "unknown partition");
    } else if (consume->wait_ms && consume->offset >= fake.next_offset[partition]) {
        fake.waiting = consume;
        fake.waiting_at = shard;
        pthread_cond_broadcast(&fake.changed);
        pthread_mutex_unlock(&fake.mutex);
        return;
    } else {
        consume->parts = esk_alloc_zeroed(fake.batch_count[partition], sizeof *consume->parts);
        for (uint32_t i = 0; i < fake.batch_count[partition]; i++) {
            struct esk_block *block = esk_block_retain(fake.batches[partition][i]);
            consume->parts[consume->part_count++] =
                (struct esk_consume_part){block, 0, block->size};
        }
        consume->high_watermark = fake.next_offset[partition];
    }
    pthread_mutex_unlock(&fake.mutex);
    answer_later(shard, consume, err, consume_done);
}
void esk_broker_consume_cancel(struct esk_broker_shard *shard, struct esk_consume *consume) {
    pthread_mutex_lock(&fake.mutex);
    assert_ptr_equal(fake.waiting, consume);
    fake.waiting = NULL;
    fake.cancelled = true;
    pthread_cond_broadcast(&fake.changed);
    pthread_mutex_unlock(&fake.mutex);
    answer_later(shard, consume, ESK_OK, consume_done);
}
void esk_consume_fini(struct esk_consume *consume) {
    for (uint32_t i = 0; i < consume->part_count; i++) {
        esk_block_release(consume->parts[i].block);
    }
    free(consume->parts);
    consume->parts = NULL;
    consume->part_count = 0;
}

static void commit_done(void *context, enum esk_err err) {
    struct esk_offset_commit *commit = context;
    commit->done(commit, err);
}
void esk_broker_offset_commit(struct esk_broker_shard *shard, struct esk_offset_commit *commit) {
    enum esk_err err = is_orders(commit->topic)
                           ? ESK_OK
                           : esk_fail(&commit->error, ESK_ERR_NOT_FOUND, "unknown topic");
    answer_later(shard, commit, err, commit_done);
}

static void fetch_done(void *context, enum esk_err err) {
    struct esk_offset_fetch *fetch = context;
    fetch->done(fetch, err);
}
/* The group "analytics" has committed twice. */
void esk_broker_offset_fetch(struct esk_broker_shard *shard, struct esk_offset_fetch *fetch) {
    if (esk_slice_equal(fetch->group, esk_slice_text("analytics"))) {
        fetch->count = fetch->topic.size ? 1 : 2;
        fetch->offsets = esk_alloc_zeroed(2, sizeof *fetch->offsets);
        fetch->offsets[0] = (struct esk_offset_view){"orders", 0, 1};
        fetch->offsets[1] = (struct esk_offset_view){"orders", 1, 0};
    }
    answer_later(shard, fetch, ESK_OK, fetch_done);
}
void esk_offset_fetch_fini(struct esk_offset_fetch *fetch) {
    free(fetch->offsets);
    fetch->offsets = NULL;
    fetch->count = 0;
}

static void scrape_done(void *context, enum esk_err err) {
    (void)err;
    struct esk_metrics_scrape *scrape = context;
    scrape->done(scrape);
}
void esk_broker_metrics(struct esk_broker_shard *shard, struct esk_metrics_scrape *scrape) {
    esk_buffer_append_text(&scrape->text, "esker_topics 1\n");
    answer_later(shard, scrape, ESK_OK, scrape_done);
}

/* --- the server under test, and a client ---------------------------------------------------------
 */

static struct {
    struct esk_platform *platform;
    struct esk_loop *loops[SHARDS];
    struct esk_server *server;
    struct esk_http *http;
    char address[ESK_SERVER_ADDRESS_BYTES];
} world;

static char logged[4096]; /* the last line */

static int64_t log_wall_ms(void *context) {
    (void)context;
    return 0;
}
static void log_write(void *context, const char *line, size_t size) {
    (void)context;
    (void)snprintf(logged, sizeof logged, "%.*s", (int)size, line);
}
static const struct esk_log test_log = {ESK_LOG_INFO, true, log_wall_ms, log_write, NULL};

static void start(uint32_t deadline_ms) {
    memset(&fake, 0, sizeof fake);
    pthread_mutex_init(&fake.mutex, NULL);
    pthread_cond_init(&fake.changed, NULL);
    fake.options.fetch_records_max = ESK_FETCH_RECORDS_MAX_DEFAULT;
    fake.options.fetch_bytes_max = ESK_FETCH_BYTES_MAX_DEFAULT;
    world.platform = esk_runtime_platform_create();
    for (uint32_t i = 0; i < SHARDS; i++) {
        world.loops[i] = esk_loop_create("loop");
        fake.shards[i].loop = world.loops[i];
        esk_loop_start(world.loops[i]);
    }
    struct esk_broker *broker = (struct esk_broker *)&fake;
    struct esk_server_options options;
    esk_server_options_init(&options);
    options.platform = world.platform;
    options.loops = world.loops;
    options.shard_count = SHARDS;
    options.broker = broker;
    options.log = &test_log;
    struct esk_http_options http;
    esk_http_options_init(&http);
    http.platform = world.platform;
    http.broker = broker;
    http.shard_count = SHARDS;
    http.log = &test_log;
    if (deadline_ms) {
        http.head_ms = http.body_ms = http.idle_ms = deadline_ms;
    }
    struct esk_error error;
    assert_int_equal(esk_server_create(&options, &world.server, &error), ESK_OK);
    world.http = esk_http_create(&http);
    assert_int_equal(esk_server_listen(world.server, esk_http_door(world.http), "127.0.0.1:0",
                                       world.address, &error),
                     ESK_OK);
}

static void stop(void) {
    esk_server_stop(world.server);
    esk_http_destroy(world.http);
    for (uint32_t i = 0; i < SHARDS; i++) {
        esk_loop_stop(world.loops[i]);
        esk_loop_join(world.loops[i]);
        esk_loop_destroy(world.loops[i]);
    }
    esk_runtime_platform_destroy(world.platform);
    for (int p = 0; p < 2; p++) {
        for (uint32_t i = 0; i < fake.batch_count[p]; i++) {
            esk_block_release(fake.batches[p][i]);
        }
    }
    assert_int_equal(fake.taken, 0); /* all of the budget came back */
}

static int dial(void) {
    const char *port = strrchr(world.address, ':') + 1;
    struct sockaddr_in where = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)atoi(port)),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof where), 0);
    return fd;
}

static void send_all(int fd, const void *bytes, size_t size) {
    const char *at = bytes;
    while (size) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        assert_true(sent > 0);
        at += sent;
        size -= (size_t)sent;
    }
}

static void send_text(int fd, const char *text) {
    send_all(fd, text, strlen(text));
}

/* All bytes until the end. */
static char *read_all(int fd) {
    struct esk_buffer got;
    esk_buffer_init(&got);
    for (;;) {
        ssize_t count = recv(fd, esk_buffer_grow(&got, 65536), 65536, 0);
        if (count <= 0) {
            break;
        }
        got.size += (size_t)count;
    }
    esk_buffer_u8(&got, 0);
    close(fd);
    return (char *)got.data;
}

/* One request on a connection of its own; the whole answer. */
static char *ask(const char *method, const char *path, const char *body) {
    int fd = dial();
    char *request = esk_text_format("%s %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                                    "Content-Length: %zu\r\n\r\n%s",
                                    method, path, strlen(body), body);
    send_text(fd, request);
    free(request);
    return read_all(fd);
}

static void expect(const char *method, const char *path, const char *body, int status,
                   const char *answer) {
    char *got = ask(method, path, body);
    char *found = strstr(got, "\r\n\r\n");
    if (!found || atoi(got + 9) != status || (answer && strcmp(found + 4, answer) != 0)) {
        print_error("%s %s %s\nwanted %d %s\ngot %s\n", method, path, body, status,
                    answer ? answer : "", got);
        fail();
    }
    free(got);
}

/* --- tests ---------------------------------------------------------------------------------------
 */

static void records_come_back_as_sent(void **state) {
    (void)state;
    start(0);
    expect("POST", "/topics/orders/produce",
           "{\"records\":[{\"key\":\"user-1\",\"value\":\"checkout\"},"
           "{\"key\":\"user-2\",\"value\":\"signup\"}]}",
           200, "{\"results\":[{\"partition\":0,\"offset\":0},{\"partition\":1,\"offset\":0}]}");
    expect("GET", "/topics/orders/consume?partition=0&offset=0", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":0,\"timestamp_ms\":1763500000000,"
           "\"key\":\"user-1\",\"value\":\"checkout\"}],\"next_offset\":1,\"high_watermark\":1}");
    expect("POST", "/topics/orders/produce",
           "{\"records\":[{\"value\":null,\"partition\":0,\"headers\":{\"a\":\"1\",\"b\":[\"1\","
           "\"2\"],\"c\":null}},{\"value\":\"\\u0000\\n\\\"\\\\\\u00e9\",\"key\":null,"
           "\"partition\":0}]}",
           200, "{\"results\":[{\"partition\":0,\"offset\":1},{\"partition\":0,\"offset\":2}]}");
    expect("GET", "/topics/orders/consume?partition=0&offset=1", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":1,\"timestamp_ms\":1763500000000,"
           "\"key\":null,\"value\":null,\"headers\":{\"a\":\"1\",\"b\":[\"1\",\"2\"],\"c\":null}},"
           "{\"partition\":0,\"offset\":2,\"timestamp_ms\":1763500000000,\"key\":null,"
           "\"value\":\"\\u0000\\n\\\"\\\\\xc3\xa9\"}],\"next_offset\":3,\"high_watermark\":3}");
    expect("GET", "/topics/orders/consume?partition=0&offset=0&max_records=1", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":0,\"timestamp_ms\":1763500000000,"
           "\"key\":\"user-1\",\"value\":\"checkout\"}],\"next_offset\":1,\"high_watermark\":3}");
    expect("GET", "/topics/orders/consume?partition=0&offset=9", "", 200,
           "{\"records\":[],\"next_offset\":3,\"high_watermark\":3}");
    expect("POST", "/topics/orders/produce", "{\"records\":[]}", 200, "{\"results\":[]}");
    expect("GET", "/groups/analytics/consume?topic=orders&partition=0&max_bytes=1", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":1,\"timestamp_ms\":1763500000000,"
           "\"key\":null,\"value\":null,\"headers\":{\"a\":\"1\",\"b\":[\"1\",\"2\"],\"c\":null}}],"
           "\"next_offset\":2,\"high_watermark\":3}");
    stop();
}

static void what_is_not_text_needs_base64(void **state) {
    (void)state;
    start(0);
    expect("POST", "/topics/orders/produce",
           "{\"encoding\":\"base64\",\"records\":[{\"value\":\"aGk=\",\"partition\":0},"
           "{\"value\":\"//8=\",\"key\":\"\",\"partition\":0,\"headers\":{\"h\":\"/w==\"}}]}",
           200, "{\"results\":[{\"partition\":0,\"offset\":0},{\"partition\":0,\"offset\":1}]}");
    expect("GET", "/topics/orders/consume?partition=0&offset=0", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":0,\"timestamp_ms\":1763500000000,"
           "\"key\":null,\"value\":\"hi\"}],\"next_offset\":1,\"high_watermark\":2}");
    expect("GET", "/topics/orders/consume?partition=0&offset=1", "", 422,
           "{\"error\":\"the record at offset 1 is not UTF-8; read it with encoding=base64\"}");
    expect("GET", "/topics/orders/consume?partition=0&offset=1&encoding=base64", "", 200,
           "{\"records\":[{\"partition\":0,\"offset\":1,\"timestamp_ms\":1763500000000,"
           "\"key\":\"\",\"value\":\"//8=\",\"headers\":{\"h\":\"/w==\"}}],\"next_offset\":2,"
           "\"high_watermark\":2}");
    stop();
}

static void wrong_requests_are_refused(void **state) {
    (void)state;
    start(0);
    static const struct {
        const char *method, *path, *body;
        int status;
        const char *answer;
    } examples[] = {
        {"GET", "/nothing", "", 404, "{\"error\":\"no such path\"}"},
        {"GET", "/topics/a/b/c/d/e", "", 404, NULL},
        {"GET", "/topics/orders/", "", 404, NULL},
        {"PATCH", "/topics", "", 405,
         "{\"error\":\"method not allowed; allowed: GET, HEAD, POST\"}"},
        {"PUT", "/topics/orders/produce", "", 405, NULL},
        {"GET", "/topics//config", "", 400, NULL},
        {"GET", "/topics/../config", "", 400, NULL},
        {"GET", "/topics/%2e%2e/config", "", 400, NULL},
        {"GET", "/topics/a%2Fb/config", "", 400, NULL},
        {"GET", "/topics/%zz/config", "", 400, "{\"error\":\"bad percent-encoding in the path\"}"},
        {"GET", "/topics/nope/config", "", 404, "{\"error\":\"unknown topic 'nope'\"}"},
        {"GET", "/groups/%00/offsets", "", 400, NULL},
        {"POST", "/topics", "", 400, NULL},
        {"POST", "/topics", "[]", 400, "{\"error\":\"the body must be an object, not array\"}"},
        {"POST", "/topics", "{\"partitions\":1}", 400, "{\"error\":\"name is required\"}"},
        {"POST", "/topics", "{\"name\":1}", 400,
         "{\"error\":\"name must be a string, not integer\"}"},
        {"POST", "/topics", "{\"name\":\"a\",\"partitions\":0}", 400,
         "{\"error\":\"partitions must be an integer from 1 to 10000\"}"},
        {"POST", "/topics", "{\"name\":\"a\",\"partitions\":4294967296}", 400, NULL},
        {"POST", "/topics", "{\"name\":\"a\",\"partitions\":1.0}", 400, NULL},
        {"POST", "/topics", "{\"name\":\"a\",\"config\":{\"segment_bytes\":4095}}", 400, NULL},
        {"POST", "/topics", "{\"name\":\"a\",\"config\":{\"cleanup_policy\":\"never\"}}", 400,
         NULL},
        {"POST", "/topics", "{\"name\":\"orders\"}", 409, NULL},
        {"POST", "/topics/nope/produce", "{\"records\":[{\"value\":\"v\"}]}", 404, NULL},
        {"POST", "/topics/nope/produce", "{\"records\":[]}", 404, NULL},
        {"POST", "/topics/nope/produce", "{\"records\":[{}]}", 400,
         "{\"error\":\"records[0].value is required\"}"},
        {"POST", "/topics/orders/produce", "{\"records\":[{\"value\":1}]}", 400,
         "{\"error\":\"records[0].value must be a string or null, not integer\"}"},
        {"POST", "/topics/orders/produce",
         "{\"records\":[{\"value\":\"\"},{\"value\":\"\","
         "\"partition\":-1}]}",
         400, "{\"error\":\"records[1].partition must be an integer from 0 to 2147483647\"}"},
        {"POST", "/topics/orders/produce", "{\"records\":{}}", 400, NULL},
        {"POST", "/topics/orders/produce", "{\"records\":[{\"value\":\"\",\"headers\":[]}]}", 400,
         NULL},
        {"POST", "/topics/orders/produce",
         "{\"records\":[{\"value\":\"\",\"headers\":{\"a\":[1]}}]}", 400, NULL},
        {"POST", "/topics/orders/produce",
         "{\"encoding\":\"base64\",\"records\":[{\"value\":\"a\"}]}", 400,
         "{\"error\":\"records[0].value is not base64\"}"},
        {"POST", "/topics/orders/produce", "{\"encoding\":\"utf16\",\"records\":[]}", 400, NULL},
        {"POST", "/topics/orders/produce", "{\"producer_id\":\"p\",\"records\":[]}", 400,
         "{\"error\":\"producer_id is not supported yet by this broker\"}"},
        {"POST", "/topics/orders/produce", "{\"records\":[{\"value\":\"\",\"sequence\":1}]}", 400,
         "{\"error\":\"sequence is not supported yet by this broker\"}"},
        {"GET", "/topics/orders/consume?offset=0", "", 400,
         "{\"error\":\"partition is required\"}"},
        {"GET", "/topics/orders/consume?partition=0", "", 400,
         "{\"error\":\"offset is required\"}"},
        {"GET", "/topics/orders/consume?partition=0&offset=-1", "", 400, NULL},
        {"GET", "/topics/orders/consume?partition=0&offset=9223372036854775808", "", 400,
         "{\"error\":\"offset must be an integer from 0 to 9223372036854775807\"}"},
        {"GET", "/topics/orders/consume?partition=0&offset=1e3", "", 400, NULL},
        {"GET", "/topics/orders/consume?partition=0&offset=", "", 400, NULL},
        {"GET", "/topics/orders/consume?partition=0&partition=0&offset=0", "", 400,
         "{\"error\":\"partition is given twice\"}"},
        {"GET", "/topics/orders/consume?partition=-1&offset=0", "", 400, NULL},
        {"GET", "/topics/orders/consume?partition=2&offset=0", "", 404, NULL},
        {"GET", "/topics/orders/consume?partition=0&offset=0&max_records=0", "", 400, NULL},
        {"GET", "/topics/orders/consume?partition=0&offset=0&max_bytes=0", "", 400, NULL},
        {"GET", "/topics/orders/consume?partition=0&offset=0&wait_ms=30001", "", 400, NULL},
        {"GET", "/topics/orders/consume?partition=0&offset=0&encoding=x", "", 400,
         "{\"error\":\"encoding must be utf8 or base64\"}"},
        {"GET", "/groups/g/consume?partition=0", "", 400, "{\"error\":\"topic is required\"}"},
        {"POST", "/groups/g/commit", "{\"topic\":\"orders\",\"partition\":0}", 400,
         "{\"error\":\"offset is required\"}"},
        {"POST", "/groups/g/commit", "{\"topic\":\"nope\",\"partition\":0,\"offset\":0}", 404,
         NULL},
    };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        expect(examples[i].method, examples[i].path, examples[i].body, examples[i].status,
               examples[i].answer);
    }
    assert_int_equal(fake.produced, 0);
    stop();
}

static void right_requests_are_answered(void **state) {
    (void)state;
    start(0);
    static const char config[] =
        "{\"retention_ms\":604800000,\"retention_bytes\":null,\"cleanup_policy\":\"delete\","
        "\"segment_bytes\":67108864,\"tombstone_retention_ms\":86400000,\"partitioner\":\"fnv1a\"}";
    char *created = esk_text_format("{\"name\":\"new\",\"partitions\":3,\"config\":%s}", config);
    expect("POST", "/topics", "{\"name\":\"new\",\"partitions\":3}", 201, created);
    free(created);
    expect("GET", "/topics", "", 200, "{\"topics\":[{\"name\":\"orders\",\"partitions\":2}]}");
    expect("GET", "/topics/orders/config", "", 200, config);
    expect("PUT", "/topics/orders/config",
           "{\"retention_ms\":-1,\"retention_bytes\":5,"
           "\"cleanup_policy\":\"delete,compact\"}",
           200,
           "{\"retention_ms\":null,\"retention_bytes\":5,\"cleanup_policy\":\"compact,delete\","
           "\"segment_bytes\":67108864,\"tombstone_retention_ms\":86400000,"
           "\"partitioner\":\"fnv1a\"}");
    expect("DELETE", "/topics/orders", "", 200, "{}");
    expect("POST", "/groups/a%20b/commit", "{\"topic\":\"orders\",\"partition\":0,\"offset\":1}",
           200, "{}");
    expect("GET", "/groups/analytics/offsets", "", 200,
           "{\"offsets\":{\"orders\":{\"0\":1,\"1\":0}}}");
    expect("GET", "/groups/other/offsets", "", 200, "{\"offsets\":{}}");
    expect("GET", "/healthz", "", 200, "{\"status\":\"ok\",\"topics\":1}");
    expect("GET", "/readyz", "", 200, "{\"status\":\"ready\"}");
    char *metrics = ask("GET", "/metrics", "");
    assert_non_null(strstr(metrics, "text/plain; version=0.0.4"));
    assert_non_null(strstr(metrics, "esker_topics 1\n"));
    assert_non_null(
        strstr(metrics, "esker_requests_total{door=\"http\",operation=\"readyz\"} 1\n"));
    free(metrics);
    char *description = ask("GET", "/topics/orders", ""); /* longer than one piece */
    assert_non_null(strstr(description, "Transfer-Encoding: chunked"));
    assert_non_null(strstr(description, "{\"partition\":9999,\"start_offset\":0,"
                                        "\"high_watermark\":0,\"size_bytes\":0,\"segments\":0}],"));
    free(description);
    stop();
}

static void internal_errors_show_an_id_only(void **state) {
    (void)state;
    start(0);
    static const enum esk_err internal[] = {ESK_ERR_INTERNAL, ESK_ERR_IO, ESK_ERR_CORRUPT};
    for (size_t i = 0; i < sizeof internal / sizeof *internal; i++) {
        fake.failure = internal[i];
        char *got = ask("POST", "/topics/orders/produce", "{\"records\":[{\"value\":\"v\"}]}");
        assert_non_null(strstr(got, "HTTP/1.1 500 "));
        char *id = strstr(got, "{\"error\":\"internal error (id ");
        assert_non_null(id);
        assert_null(strstr(got, "secret"));
        id += strlen("{\"error\":\"internal error (id ");
        id[8] = '\0';
        assert_non_null(strstr(logged, id));
        assert_non_null(strstr(logged, "write segment 3: secret path"));
        free(got);
    }
    fake.failure = ESK_ERR_NO_SPACE;
    expect("POST", "/topics/orders/produce", "{\"records\":[{\"value\":\"v\"}]}", 507,
           "{\"error\":\"write segment 3: secret path\"}");
    stop();
}

static void requests_may_be_pipelined_and_cut_anywhere(void **state) {
    (void)state;
    start(0);
    struct esk_buffer text;
    esk_buffer_init(&text);
    for (int i = 0; i < 50; i++) {
        esk_buffer_append_text(&text,
                               "POST /topics HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n"
                               "[]GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
                               "PUT /nothing HTTP/1.1\r\nHost: a\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
    }
    esk_buffer_append_text(&text, "HEAD /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    for (size_t step = 7; step < 100000; step *= 40) {
        int fd = dial();
        for (size_t at = 0; at < text.size; at += step) {
            send_all(fd, text.data + at, text.size - at < step ? text.size - at : step);
        }
        char *got = read_all(fd);
        int found = 0;
        for (char *at = got; (at = strstr(at, "HTTP/1.1 ")); at++) {
            int expected = found == 150 ? 200 : (int[]){400, 200, 404}[found % 3];
            assert_int_equal(atoi(at + 9), expected);
            found++;
        }
        assert_int_equal(found, 151);
        assert_string_equal(got + strlen(got) - 4, "\r\n\r\n"); /* HEAD has no body */
        free(got);
    }
    esk_buffer_fini(&text);
    stop();
}

/* 3 MiB of JSON: read on the helper, written and read back in pieces. */
static void large_bodies_and_answers_pass(void **state) {
    (void)state;
    start(0);
    struct esk_buffer body;
    struct esk_buffer value;
    esk_buffer_init(&body);
    esk_buffer_init(&value);
    for (int i = 0; i < 400000; i++) {
        esk_buffer_append_text(&value, i % 2 ? "\\u0001" : "\xc3\xa9");
    }
    esk_buffer_u8(&value, 0);
    esk_buffer_format(&body,
                      "{\"records\":[{\"partition\":0,\"value\":\"%s\"},"
                      "{\"partition\":1,\"value\":\"\"}]}",
                      value.data);
    esk_buffer_u8(&body, 0);
    expect("POST", "/topics/orders/produce", (char *)body.data, 200,
           "{\"results\":[{\"partition\":0,\"offset\":0},{\"partition\":1,\"offset\":0}]}");

    int fd = dial(); /* by HTTP/1.0, so without chunks */
    send_text(fd, "GET /topics/orders/consume?partition=0&offset=0 HTTP/1.0\r\n\r\n");
    char *got = read_all(fd);
    char *found = strstr(got, "\r\n\r\n");
    assert_non_null(found);
    struct esk_buffer expected;
    esk_buffer_init(&expected);
    esk_buffer_format(&expected,
                      "{\"records\":[{\"partition\":0,\"offset\":0,\"timestamp_ms\":1763500000000,"
                      "\"key\":null,\"value\":\"%s\"}],\"next_offset\":1,\"high_watermark\":1}",
                      value.data);
    assert_int_equal(strlen(found + 4), expected.size);
    assert_memory_equal(found + 4, expected.data, expected.size);
    free(got);
    char *chunked = ask("GET", "/topics/orders/consume?partition=0&offset=0", "");
    assert_non_null(strstr(chunked, "Transfer-Encoding: chunked"));
    assert_true(strlen(chunked) > expected.size);
    free(chunked);

    /* The same with a mistake at its end. */
    memcpy(body.data + body.size - 4, "}}}", 3);
    expect("POST", "/topics/orders/produce", (char *)body.data, 400, NULL);
    esk_buffer_fini(&expected);
    esk_buffer_fini(&value);
    esk_buffer_fini(&body);
    stop();
}

static void bodies_over_the_limit_are_refused(void **state) {
    (void)state;
    start(0);
    int fd = dial();
    send_text(fd, "POST /topics HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                  "Content-Length: 10485761\r\n\r\n");
    char *got = read_all(fd);
    assert_non_null(strstr(got, "HTTP/1.1 413 "));
    free(got);

    fd = dial(); /* a client that sends all before it reads sees the answer, too */
    send_text(fd, "POST /topics HTTP/1.1\r\nHost: a\r\nContent-Length: 10485761\r\n\r\n");
    char *body = esk_alloc_zeroed(10485761, 1);
    send_all(fd, body, 10485761);
    got = read_all(fd);
    assert_non_null(strstr(got, "HTTP/1.1 413 "));
    assert_non_null(strstr(got, "Connection: close"));
    free(got);
    free(body);

    fd = dial();
    send_text(fd, "POST /topics HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                  "Content-Length: 2\r\nConnection: close\r\n\r\n");
    char answer[64] = "";
    assert_true(recv(fd, answer, 25, MSG_WAITALL) == 25);
    assert_string_equal(answer, "HTTP/1.1 100 Continue\r\n\r\n");
    send_text(fd, "{}");
    got = read_all(fd);
    assert_non_null(strstr(got, "HTTP/1.1 400 "));
    free(got);
    stop();
}

static void slow_clients_are_dropped(void **state) {
    (void)state;
    start(300);
    int idle = dial();
    int head = dial();
    send_text(head, "GET / HTTP/1.1\r\nHo");
    int body = dial();
    send_text(body, "POST /topics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{");
    char *got = read_all(idle);
    assert_string_equal(got, "");
    free(got);
    got = read_all(head);
    assert_non_null(strstr(got, "HTTP/1.1 408 "));
    free(got);
    got = read_all(body);
    assert_non_null(strstr(got, "HTTP/1.1 408 "));
    free(got);
    stop();
}

static void wait_until(const bool *what) {
    pthread_mutex_lock(&fake.mutex);
    while (!*what) {
        pthread_cond_wait(&fake.changed, &fake.mutex);
    }
    pthread_mutex_unlock(&fake.mutex);
}

static void wait_for_poll(void) {
    pthread_mutex_lock(&fake.mutex);
    while (!fake.waiting) {
        pthread_cond_wait(&fake.changed, &fake.mutex);
    }
    pthread_mutex_unlock(&fake.mutex);
}

static void a_hang_up_ends_a_long_poll(void **state) {
    (void)state;
    start(0);
    static const char poll[] =
        "GET /topics/orders/consume?partition=0&offset=0&wait_ms=30000 HTTP/1.1\r\nHost: a\r\n\r\n";
    int fd = dial();
    send_text(fd, poll);
    wait_for_poll();
    close(fd);
    wait_until(&fake.cancelled);

    fake.cancelled = false; /* one that only stops sending gets what there is */
    fd = dial();
    send_text(fd, poll);
    wait_for_poll();
    shutdown(fd, SHUT_WR);
    wait_until(&fake.cancelled);
    char *got = read_all(fd);
    assert_non_null(strstr(got, "{\"records\":[],\"next_offset\":0,\"high_watermark\":0}"));
    free(got);

    fake.cancelled = false; /* so does one that waits when the server stops */
    fd = dial();
    send_text(fd, poll);
    wait_for_poll();
    stop();
    assert_true(fake.cancelled);
    got = read_all(fd);
    assert_non_null(strstr(got, "Connection: close"));
    free(got);
}

/* The client resets right behind its request: its record is written, nothing else is left. */
static void a_record_outlives_its_client(void **state) {
    (void)state;
    start(0);
    for (uint32_t i = 0; i < 10; i++) {
        int fd = dial();
        send_text(fd,
                  "POST /topics/orders/produce HTTP/1.1\r\nHost: a\r\nContent-Length: 27\r\n\r\n"
                  "{\"records\":[{\"value\":\"v\"}]}");
        pthread_mutex_lock(&fake.mutex);
        while (fake.produced == i) {
            pthread_cond_wait(&fake.changed, &fake.mutex);
        }
        pthread_mutex_unlock(&fake.mutex);
        struct linger reset = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
    }
    expect("GET", "/healthz", "", 200, NULL);
    stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back_as_sent),
        cmocka_unit_test(what_is_not_text_needs_base64),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(right_requests_are_answered),
        cmocka_unit_test(internal_errors_show_an_id_only),
        cmocka_unit_test(requests_may_be_pipelined_and_cut_anywhere),
        cmocka_unit_test(large_bodies_and_answers_pass),
        cmocka_unit_test(bodies_over_the_limit_are_refused),
        cmocka_unit_test(slow_clients_are_dropped),
        cmocka_unit_test(a_hang_up_ends_a_long_poll),
        cmocka_unit_test(a_record_outlives_its_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
