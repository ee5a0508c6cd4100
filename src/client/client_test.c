/* SPDX-License-Identifier: Apache-2.0 */
/* The blocking client against a broker of a few lines. */
#include "client/client_testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct esk_client_record record_of(const char *key, const char *value) {
    return (struct esk_client_record){
        key,           key ? strlen(key) : 0,    value,
        strlen(value), ESK_CLIENT_PARTITION_ANY, ESK_CLIENT_SEQUENCE_NONE};
}

static struct esk_client *open_client(const struct esk_client_options *options) {
    struct esk_client *client;
    struct esk_client_error error;
    if (esk_client_open(options, &client, &error) != ESK_CLIENT_OK) {
        fail_msg("open: %s", error.text);
    }
    return client;
}

static void produce_consume_and_ping_are_answered(void **state) {
    (void)state;
    struct fake_broker broker;
    fake_broker_start(&broker, fake_serve_well, NULL);
    struct esk_client_options options = fake_options(&broker);
    struct esk_client *client = open_client(&options);
    struct esk_client_record records[] = {record_of("a", "1"), record_of(NULL, ""),
                                          record_of("", "3")};
    struct esk_client_written written[3];
    struct esk_client_error error;
    assert_int_equal(esk_client_produce(client, "orders", records, 3, written, &error),
                     ESK_CLIENT_OK);
    assert_int_equal(written[2].offset, 2);
    assert_false(written[2].duplicate);
    struct esk_client_batch batch;
    assert_int_equal(esk_client_consume(client, "orders", 3, 7, 10, 1000, &batch, &error),
                     ESK_CLIENT_OK);
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.next_offset, 8);
    assert_int_equal(batch.high_watermark, 16);
    assert_int_equal(batch.messages[0].partition, 3);
    assert_int_equal(batch.messages[0].offset, 7);
    assert_int_equal(batch.messages[0].timestamp_ms, 1700000000000);
    assert_int_equal(batch.messages[0].key_size, 1);
    assert_memory_equal(batch.messages[0].value, "value", 5);
    assert_int_equal(esk_client_ping(client, &error), ESK_CLIENT_OK);
    esk_client_close(client);
    fake_broker_stop(&broker);
}

/* Sends the answer in pieces of one byte, each in a segment of its own. */
static bool take_in_pieces(struct fake_broker *broker, int fd, const struct esk_es01_frame *head,
                           const struct esk_buffer *frame) {
    int pair[2];
    uint8_t byte;
    (void)broker;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    bool goes_on = fake_answer_well(pair[1], head, frame);
    close(pair[1]);
    while (goes_on && recv(pair[0], &byte, 1, 0) == 1) {
        goes_on = fake_write(fd, &byte, 1);
    }
    close(pair[0]);
    return goes_on;
}

static void serve_in_pieces(struct fake_broker *broker, int fd, unsigned number) {
    (void)number;
    fake_serve_each(broker, fd, take_in_pieces);
}

static void answers_may_come_in_pieces(void **state) {
    (void)state;
    struct fake_broker broker;
    fake_broker_start(&broker, serve_in_pieces, NULL);
    struct esk_client_options options = fake_options(&broker);
    struct esk_client *client = open_client(&options);
    struct esk_client_batch batch;
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(esk_client_consume(client, "t", 0, i, 10, 1000, &batch, NULL),
                         ESK_CLIENT_OK);
        assert_int_equal(batch.messages[0].offset, i);
        assert_memory_equal(batch.messages[0].value, "value", 5);
    }
    esk_client_close(client);
    fake_broker_stop(&broker);
}

static void serve_refusal(struct fake_broker *broker, int fd, unsigned number) {
    uint8_t hello[ESK_ES01_HELLO_HEAD_BYTES + 3];
    uint8_t out[64];
    struct esk_es01_welcome welcome = {.status = ESK_ES01_STATUS_AUTH_FAILED,
                                       .message = esk_slice_text("unknown key")};
    (void)broker;
    (void)number;
    if (fake_read(fd, hello, sizeof(hello))) {
        (void)fake_write(fd, out, esk_es01_welcome_write(&welcome, out));
    }
}

static void a_refused_key_is_told_at_once(void **state) {
    (void)state;
    struct fake_broker broker;
    fake_broker_start(&broker, serve_refusal, NULL);
    struct esk_client_options options = fake_options(&broker);
    options.key = "key";
    struct esk_client *client;
    struct esk_client_error error;
    assert_int_equal(esk_client_open(&options, &client, &error), ESK_CLIENT_UNAUTHENTICATED);
    assert_null(client);
    assert_non_null(strstr(error.text, "unknown key"));
    fake_broker_stop(&broker);
}

static void nobody_there_and_nobody_answering_are_told_apart(void **state) {
    (void)state;
    struct fake_broker broker;
    fake_broker_start(&broker, NULL, NULL); /* the kernel takes connections, nobody else */
    struct esk_client_options options = fake_options(&broker);
    options.connect_timeout_ms = 30;
    struct esk_client *client;
    struct esk_client_error error;
    assert_int_equal(esk_client_open(&options, &client, &error), ESK_CLIENT_CONNECT);
    assert_non_null(strstr(error.text, "no handshake within 30 ms"));
    fake_broker_stop(&broker);
    assert_int_equal(esk_client_open(&options, &client, &error), ESK_CLIENT_CONNECT);
    assert_non_null(strstr(error.text, "refused"));
}

/* Answers pings, and nothing else. */
static bool take_pings(struct fake_broker *broker, int fd, const struct esk_es01_frame *head,
                       const struct esk_buffer *frame) {
    (void)broker;
    return head->opcode != ESK_ES01_PING || fake_answer_well(fd, head, frame);
}

static void serve_pings(struct fake_broker *broker, int fd, unsigned number) {
    (void)number;
    fake_serve_each(broker, fd, take_pings);
}

static void a_time_out_ends_the_call_and_not_the_client(void **state) {
    (void)state;
    struct fake_broker broker;
    fake_broker_start(&broker, serve_pings, NULL);
    struct esk_client_options options = fake_options(&broker);
    options.request_timeout_ms = 40;
    struct esk_client *client = open_client(&options);
    struct esk_client_record record = record_of(NULL, "v");
    struct esk_client_error error;
    assert_int_equal(esk_client_produce(client, "t", &record, 1, NULL, &error), ESK_CLIENT_TIMEOUT);
    assert_string_equal(error.text, "no answer within 40 ms");
    options.request_timeout_ms = 30000;
    esk_client_close(client);
    client = open_client(&options);
    assert_int_equal(esk_client_ping(client, &error), ESK_CLIENT_OK);
    esk_client_close(client);
    fake_broker_stop(&broker);
}

/* The first connection ends in the middle of an answer, later ones go well. */
static void serve_after_one_loss(struct fake_broker *broker, int fd, unsigned number) {
    struct esk_es01_frame head;
    struct esk_buffer frame;
    if (number > 0) {
        fake_serve_well(broker, fd, number);
        return;
    }
    esk_buffer_init(&frame);
    if (fake_welcome(fd, 0) && fake_frame(fd, &head, &frame)) {
        (void)fake_write(fd, "\0\0\0", 3);
    }
    esk_buffer_fini(&frame);
}

static void a_lost_consume_is_asked_again(void **state) {
    (void)state;
    struct fake_broker broker;
    fake_broker_start(&broker, serve_after_one_loss, NULL);
    struct esk_client_options options = fake_options(&broker);
    struct esk_client *client = open_client(&options);
    struct esk_client_batch batch;
    assert_int_equal(esk_client_consume(client, "t", 0, 5, 10, 1000, &batch, NULL), ESK_CLIENT_OK);
    assert_int_equal(batch.next_offset, 6);
    esk_client_close(client);
    fake_broker_stop(&broker);
}

static void a_lost_produce_is_not_sent_again(void **state) {
    (void)state;
    struct fake_broker broker;
    fake_broker_start(&broker, serve_after_one_loss, NULL);
    struct esk_client_options options = fake_options(&broker);
    struct esk_client *client = open_client(&options);
    struct esk_client_record record = record_of(NULL, "v");
    struct esk_client_error error;
    assert_int_equal(esk_client_produce(client, "t", &record, 1, NULL, &error), ESK_CLIENT_LOST);
    assert_non_null(strstr(error.text, "whether it was written is not known"));
    assert_int_equal(esk_client_produce(client, "t", &record, 1, NULL, &error), ESK_CLIENT_OK);
    esk_client_close(client);

    fake_broker_stop(&broker);
    fake_broker_start(&broker, serve_after_one_loss, NULL);
    options.address = broker.address;
    options.reconnects = false;
    client = open_client(&options);
    assert_int_equal(esk_client_ping(client, &error), ESK_CLIENT_LOST);
    assert_int_equal(esk_client_ping(client, &error), ESK_CLIENT_LOST);
    esk_client_close(client);
    fake_broker_stop(&broker);
}

static bool take_error(struct fake_broker *broker, int fd, const struct esk_es01_frame *head,
                       const struct esk_buffer *frame) {
    (void)frame;
    return fake_error(fd, head->request_id, broker->context);
}

static void serve_error(struct fake_broker *broker, int fd, unsigned number) {
    (void)number;
    fake_serve_each(broker, fd, take_error);
}

static void errors_are_told_apart_by_their_phrase(void **state) {
    (void)state;
    static const struct {
        const char *text;
        enum esk_client_code code;
    } cases[] = {
        {"not found: topic 'x'", ESK_CLIENT_NOT_FOUND},
        {"invalid request: records[0].value is missing", ESK_CLIENT_INVALID},
        {"sequence gap: 5 comes after 3", ESK_CLIENT_SEQUENCE_GAP},
        {"invalid request: sequence too low", ESK_CLIENT_SEQUENCE_TOO_LOW},
        {"throttled", ESK_CLIENT_THROTTLED},
        {"disk full: /data", ESK_CLIENT_NO_SPACE},
        {"unavailable: the broker is shutting down", ESK_CLIENT_UNAVAILABLE},
        {"something that nobody has heard of", ESK_CLIENT_BROKER},
        {"", ESK_CLIENT_BROKER},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fake_broker broker;
        char text[128];
        strcpy(text, cases[i].text);
        fake_broker_start(&broker, serve_error, text);
        struct esk_client_options options = fake_options(&broker);
        struct esk_client *client = open_client(&options);
        struct esk_client_error error;
        assert_int_equal(esk_client_ping(client, &error), cases[i].code);
        assert_int_equal(error.code, cases[i].code);
        assert_string_equal(error.text, cases[i].text);
        esk_client_close(client);
        fake_broker_stop(&broker);
    }
}

static void wrong_options_and_requests_are_refused_here(void **state) {
    (void)state;
    struct fake_broker broker;
    fake_broker_start(&broker, fake_serve_well, NULL);
    struct esk_client_options options = fake_options(&broker);
    struct esk_client *client;
    struct esk_client_error error;
    static const char *const addresses[] = {"",        "host",   "host:", ":9",   "h:0",
                                            "h:70000", "[::1:9", "a b:9", "h:9/x"};
    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++) {
        options.address = addresses[i];
        assert_int_equal(esk_client_open(&options, &client, &error), ESK_CLIENT_INVALID);
    }
    options = fake_options(&broker);
    options.in_flight_max = 0;
    assert_int_equal(esk_client_open(&options, &client, NULL), ESK_CLIENT_INVALID);
    options = fake_options(&broker);
    options.tls_cert_file = "x";
    assert_int_equal(esk_client_open(&options, &client, NULL), ESK_CLIENT_INVALID);
    options = fake_options(&broker);
    options.idempotent = true;
    client = open_client(&options);
    struct esk_client_record record = record_of("k", "v");
    assert_int_equal(esk_client_produce(client, "t", &record, 1, NULL, &error), ESK_CLIENT_INVALID);
    assert_non_null(strstr(error.text, "names its partition"));
    assert_int_equal(esk_client_produce(client, "", &record, 1, NULL, &error), ESK_CLIENT_INVALID);
    assert_int_equal(esk_client_produce(client, "t", &record, 0, NULL, &error), ESK_CLIENT_INVALID);
    record.partition = 0;
    record.sequence = 4;
    assert_int_equal(esk_client_produce(client, "t", &record, 1, NULL, &error), ESK_CLIENT_INVALID);
    esk_client_close(client);
    fake_broker_stop(&broker);
}

static void keys_go_where_the_broker_puts_them(void **state) {
    (void)state;
    /* The two keys of the API page's first session, over two partitions. */
    assert_int_equal(esk_client_partition("user-1", 6, 2, false), 0);
    assert_int_equal(esk_client_partition("user-2", 6, 2, false), 1);
    assert_int_equal(esk_client_partition(NULL, 0, 1, true), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(produce_consume_and_ping_are_answered),
        cmocka_unit_test(answers_may_come_in_pieces),
        cmocka_unit_test(a_refused_key_is_told_at_once),
        cmocka_unit_test(nobody_there_and_nobody_answering_are_told_apart),
        cmocka_unit_test(a_time_out_ends_the_call_and_not_the_client),
        cmocka_unit_test(a_lost_consume_is_asked_again),
        cmocka_unit_test(a_lost_produce_is_not_sent_again),
        cmocka_unit_test(errors_are_told_apart_by_their_phrase),
        cmocka_unit_test(wrong_options_and_requests_are_refused_here),
        cmocka_unit_test(keys_go_where_the_broker_puts_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
