/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines: order, bounds, what a connection's end does, and answers that are none. */
#include "client/client_testing.h"
#include "wire/es01/gzip.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 60000

static struct esk_pipeline *open_pipeline(const struct esk_client_options *options) {
    struct esk_pipeline *pipeline;
    struct esk_client_error error;
    if (esk_pipeline_open(options, &pipeline, &error) != ESK_CLIENT_OK) {
        fail_msg("open: %s", error.text);
    }
    return pipeline;
}

/* What callbacks saw. */
struct seen {
    size_t count;
    enum esk_client_code codes[256];
    uint64_t numbers[256]; /* of an echo, or an offset */
    char text[512];        /* the last one */
    struct esk_pipeline *pipeline;
    size_t more; /* pings to submit from callbacks */
};

static void see(void *context, const struct esk_pipeline_answer *answer) {
    struct seen *seen = context;
    size_t at = seen->count++ % 256;
    seen->codes[at] = answer->code;
    seen->numbers[at] = UINT64_MAX;
    strcpy(seen->text, answer->text);
    if (answer->echo_size == 8) {
        seen->numbers[at] = esk_load_u64(answer->echo);
    } else if (answer->written_count) {
        seen->numbers[at] = answer->written[0].offset;
    } else if (answer->batch.count) {
        seen->numbers[at] = answer->batch.messages[0].offset;
    }
    if (seen->more) {
        uint8_t payload[8];
        esk_store_u64(payload, 1000 + seen->more--);
        assert_int_equal(esk_pipeline_ping(seen->pipeline, payload, 8, see, seen, NULL),
                         ESK_CLIENT_OK);
    }
}

static void ping(struct esk_pipeline *pipeline, uint64_t number, struct seen *seen) {
    uint8_t payload[8];
    esk_store_u64(payload, number);
    assert_int_equal(esk_pipeline_ping(pipeline, payload, 8, see, seen, NULL), ESK_CLIENT_OK);
}

static enum esk_client_code produce_one(struct esk_pipeline *pipeline, int64_t sequence,
                                        struct seen *seen) {
    struct esk_client_record record = {
        .value = "v", .value_size = 1, .partition = 0, .sequence = sequence};
    return esk_pipeline_produce(pipeline, "t", &record, 1, see, seen, NULL);
}

static void answers_come_in_order_and_the_bound_holds(void **state) {
    (void)state;
    struct fake_broker broker;
    struct seen seen = {0};
    fake_broker_start(&broker, fake_serve_well, NULL);
    struct esk_client_options options = fake_options(&broker);
    options.in_flight_max = 100;
    struct esk_pipeline *pipeline = open_pipeline(&options);
    for (uint64_t i = 0; i < 100; i++) {
        ping(pipeline, i, &seen);
    }
    assert_int_equal(produce_one(pipeline, ESK_CLIENT_SEQUENCE_NONE, &seen), ESK_CLIENT_FULL);
    assert_int_equal(esk_pipeline_in_flight(pipeline), 100);
    assert_int_equal(esk_pipeline_flush(pipeline, WAIT_MS), ESK_CLIENT_OK);
    assert_int_equal(seen.count, 100);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(seen.codes[i], ESK_CLIENT_OK);
        assert_int_equal(seen.numbers[i], i);
    }
    assert_int_equal(esk_pipeline_wait(pipeline, WAIT_MS), 0); /* nothing is out */
    esk_pipeline_close(pipeline);
    fake_broker_stop(&broker);
}

static void callbacks_may_submit(void **state) {
    (void)state;
    struct fake_broker broker;
    fake_broker_start(&broker, fake_serve_well, NULL);
    struct esk_client_options options = fake_options(&broker);
    options.in_flight_max = 1;
    struct esk_pipeline *pipeline = open_pipeline(&options);
    struct seen seen = {.pipeline = pipeline, .more = 50};
    ping(pipeline, 7, &seen);
    assert_int_equal(esk_pipeline_flush(pipeline, WAIT_MS), ESK_CLIENT_OK);
    assert_int_equal(seen.count, 51);
    assert_int_equal(seen.numbers[50], 1001);
    esk_pipeline_close(pipeline);
    fake_broker_stop(&broker);
}

static void its_descriptor_tells_when_to_process(void **state) {
    (void)state;
    struct fake_broker broker;
    struct seen seen = {0};
    fake_broker_start(&broker, fake_serve_well, NULL);
    struct esk_client_options options = fake_options(&broker);
    struct esk_pipeline *pipeline = open_pipeline(&options);
    ping(pipeline, 3, &seen);
    size_t count = esk_pipeline_process(pipeline);
    while (count == 0) {
        struct pollfd poller = {.fd = esk_pipeline_fd(pipeline), .events = POLLIN};
        assert_int_equal(poll(&poller, 1, WAIT_MS), 1);
        count = esk_pipeline_process(pipeline);
    }
    assert_int_equal(seen.numbers[0], 3);
    esk_pipeline_close(pipeline);
    fake_broker_stop(&broker);
}

static void what_is_out_ends_with_the_pipeline(void **state) {
    (void)state;
    struct fake_broker broker;
    struct seen seen = {0};
    fake_broker_start(&broker, fake_serve_well, NULL);
    struct esk_client_options options = fake_options(&broker);
    struct esk_pipeline *pipeline = open_pipeline(&options);
    ping(pipeline, 1, &seen);
    ping(pipeline, 2, &seen);
    esk_pipeline_close(pipeline);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.codes[1], ESK_CLIENT_CLOSED);
    fake_broker_stop(&broker);
}

/* Answers the first of three frames. */
static bool take_one_of_three(struct fake_broker *broker, int fd, const struct esk_es01_frame *head,
                              const struct esk_buffer *frame) {
    struct esk_es01_frame more;
    struct esk_buffer rest;
    (void)broker;
    esk_buffer_init(&rest);
    if (fake_answer_well(fd, head, frame)) {
        (void)(fake_frame(fd, &more, &rest) && fake_frame(fd, &more, &rest));
    }
    esk_buffer_fini(&rest);
    return false;
}

/* The second connection answers all. */
static void serve_one_of_three(struct fake_broker *broker, int fd, unsigned number) {
    if (number > 0) {
        fake_serve_well(broker, fd, number);
    } else {
        fake_serve_each(broker, fd, take_one_of_three);
    }
}

static void a_lost_connection_ends_only_what_may_be_written(void **state) {
    (void)state;
    struct fake_broker broker;
    struct seen pings = {0};
    struct seen produces = {0};
    fake_broker_start(&broker, serve_one_of_three, NULL);
    struct esk_client_options options = fake_options(&broker);
    struct esk_pipeline *pipeline = open_pipeline(&options);
    ping(pipeline, 0, &pings);
    assert_int_equal(produce_one(pipeline, ESK_CLIENT_SEQUENCE_NONE, &produces), ESK_CLIENT_OK);
    ping(pipeline, 2, &pings);
    assert_int_equal(esk_pipeline_flush(pipeline, WAIT_MS), ESK_CLIENT_OK);
    assert_int_equal(pings.count, 2);
    assert_int_equal(pings.codes[1], ESK_CLIENT_OK);
    assert_int_equal(pings.numbers[1], 2);
    assert_int_equal(produces.count, 1);
    assert_int_equal(produces.codes[0], ESK_CLIENT_LOST);
    esk_pipeline_close(pipeline);
    fake_broker_stop(&broker);
}

/* The first connection ends as soon as it is made, as an idle one does. */
static void serve_later(struct fake_broker *broker, int fd, unsigned number) {
    if (number > 0) {
        fake_serve_well(broker, fd, number);
    } else {
        (void)fake_welcome(fd, 0);
    }
}

static void a_connection_that_ends_while_it_is_idle_is_no_loss(void **state) {
    (void)state;
    struct fake_broker broker;
    struct seen seen = {0};
    fake_broker_start(&broker, serve_later, NULL);
    struct esk_client_options options = fake_options(&broker);
    struct esk_pipeline *pipeline = open_pipeline(&options);
    struct pollfd poller = {.fd = esk_pipeline_fd(pipeline), .events = POLLIN};
    assert_int_equal(poll(&poller, 1, WAIT_MS), 1); /* the end has arrived */
    assert_int_equal(produce_one(pipeline, ESK_CLIENT_SEQUENCE_NONE, &seen), ESK_CLIENT_OK);
    assert_int_equal(esk_pipeline_flush(pipeline, WAIT_MS), ESK_CLIENT_OK);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.codes[0], ESK_CLIENT_OK);
    esk_pipeline_close(pipeline);
    fake_broker_stop(&broker);
}

static void sequences_of_the_program_are_sent_again(void **state) {
    (void)state;
    struct fake_broker broker;
    struct seen seen = {0};
    fake_broker_start(&broker, serve_one_of_three, NULL);
    struct esk_client_options options = fake_options(&broker);
    options.producer_id = "checkout-1";
    struct esk_pipeline *pipeline = open_pipeline(&options);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(produce_one(pipeline, 40 + i, &seen), ESK_CLIENT_OK);
    }
    assert_int_equal(produce_one(pipeline, ESK_CLIENT_SEQUENCE_NONE, &seen), ESK_CLIENT_INVALID);
    assert_int_equal(esk_pipeline_flush(pipeline, WAIT_MS), ESK_CLIENT_OK);
    assert_int_equal(seen.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(seen.codes[i], ESK_CLIENT_OK);
    }
    esk_pipeline_close(pipeline);
    fake_broker_stop(&broker);
}

/* --- answers that are none --- */

struct odd {
    uint8_t opcode;  /* of the answer */
    uint32_t id_xor; /* into its request id */
    const void *payload;
    size_t size;
};

static bool take_odd(struct fake_broker *broker, int fd, const struct esk_es01_frame *head,
                     const struct esk_buffer *frame) {
    const struct odd *odd = broker->context;
    (void)frame;
    return fake_answer(fd, head->request_id ^ odd->id_xor, odd->opcode,
                       esk_slice(odd->payload, odd->size));
}

static void serve_odd(struct fake_broker *broker, int fd, unsigned number) {
    (void)number;
    fake_serve_each(broker, fd, take_odd);
}

static void answers_that_are_none_end_the_connection(void **state) {
    (void)state;
    static const uint8_t two[30] = {0, 0, 0, 2};
    static const uint8_t many[20] = {[16] = 0xff, 0xff, 0xff, 0xff};
    static const uint8_t cut[50] = {[19] = 1, [40] = 1};
    static const struct odd cases[] = {
        {ESK_ES01_PRODUCED, 0, two, 30},   {ESK_ES01_PRODUCED, 0, two, 3},
        {ESK_ES01_PRODUCED, 0, NULL, 0},   {ESK_ES01_CONSUMED, 0, many, 20},
        {ESK_ES01_CONSUMED, 0, cut, 50},   {ESK_ES01_CONSUMED, 0, many, 19},
        {ESK_ES01_PONG, 0, "12345678", 8}, {ESK_ES01_PRODUCED, 1, two, 30},
        {ESK_ES01_PONG, 1u << 16, "", 0},  {0x77, 0, "", 0},
        {ESK_ES01_PING, 0, "", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fake_broker broker;
        struct seen seen = {0};
        struct odd odd = cases[i];
        fake_broker_start(&broker, serve_odd, &odd);
        struct esk_client_options options = fake_options(&broker);
        struct esk_pipeline *pipeline = open_pipeline(&options);
        if (odd.opcode == ESK_ES01_CONSUMED) {
            assert_int_equal(esk_pipeline_consume(pipeline, "t", 0, 0, 100, 100, see, &seen, NULL),
                             ESK_CLIENT_OK);
        } else if (odd.opcode == ESK_ES01_PRODUCED) {
            assert_int_equal(produce_one(pipeline, ESK_CLIENT_SEQUENCE_NONE, &seen), ESK_CLIENT_OK);
        } else {
            ping(pipeline, 5, &seen);
        }
        assert_int_equal(esk_pipeline_flush(pipeline, WAIT_MS), ESK_CLIENT_OK);
        assert_int_equal(seen.count, 1);
        bool is_produce = odd.opcode == ESK_ES01_PRODUCED;
        assert_int_equal(seen.codes[0], is_produce ? ESK_CLIENT_LOST : ESK_CLIENT_PROTOCOL);
        assert_non_null(strstr(seen.text, "the broker's answer: "));
        esk_pipeline_close(pipeline);
        fake_broker_stop(&broker);
    }
}

static void serve_long(struct fake_broker *broker, int fd, unsigned number) {
    static const uint8_t head[9] = {0x7f, 0xff, 0xff, 0xff, 0, 1, 0, 0, ESK_ES01_CONSUMED};
    uint8_t byte;
    (void)broker;
    (void)number;
    if (fake_welcome(fd, 0) && fake_read(fd, &byte, 1) && fake_write(fd, head, sizeof(head))) {
        while (fake_read(fd, &byte, 1)) {
        }
    }
}

static void an_answer_over_the_limit_is_not_waited_for(void **state) {
    (void)state;
    struct fake_broker broker;
    struct seen seen = {0};
    fake_broker_start(&broker, serve_long, NULL);
    struct esk_client_options options = fake_options(&broker);
    struct esk_pipeline *pipeline = open_pipeline(&options);
    assert_int_equal(esk_pipeline_consume(pipeline, "t", 0, 0, 1, 1, see, &seen, NULL),
                     ESK_CLIENT_OK);
    assert_int_equal(esk_pipeline_flush(pipeline, WAIT_MS), ESK_CLIENT_OK);
    assert_int_equal(seen.codes[0], ESK_CLIENT_PROTOCOL);
    assert_non_null(strstr(seen.text, "answer_bytes_max"));
    esk_pipeline_close(pipeline);
    fake_broker_stop(&broker);
}

/* --- gzip --- */

static bool unpack(struct esk_buffer *frame) {
    struct esk_es01_inflater *inflater = esk_es01_inflater_create();
    struct esk_slice payload = fake_payload(frame);
    struct esk_buffer plain;
    esk_buffer_init(&plain);
    esk_buffer_append(&plain, frame->data, ESK_ES01_FRAME_HEAD_BYTES);
    esk_es01_inflater_begin(inflater);
    bool is_good = esk_es01_inflate(inflater, &payload, 1 << 20, &plain, NULL) == ESK_OK;
    esk_es01_inflater_destroy(inflater);
    esk_buffer_fini(frame);
    *frame = plain;
    return is_good;
}

/* Inflates what comes, and deflates what fake_answer_well says to it. */
static void serve_gzip(struct fake_broker *broker, int fd, unsigned number) {
    struct esk_es01_frame head;
    struct esk_buffer frame;
    struct esk_buffer packed;
    struct esk_es01_deflater *deflater = esk_es01_deflater_create();
    (void)broker;
    (void)number;
    esk_buffer_init(&frame);
    esk_buffer_init(&packed);
    bool goes_on = fake_welcome(fd, ESK_ES01_FEATURE_GZIP);
    while (goes_on && fake_frame(fd, &head, &frame)) {
        int pair[2];
        goes_on = unpack(&frame) && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
        if (goes_on) {
            struct esk_es01_frame inner;
            goes_on =
                fake_answer_well(pair[0], &head, &frame) && fake_frame(pair[1], &inner, &frame);
            packed.size = 0;
            esk_es01_deflate(deflater, fake_payload(&frame), &packed);
            goes_on = goes_on &&
                      fake_answer(fd, inner.request_id, inner.opcode, esk_buffer_slice(&packed));
            close(pair[0]);
            close(pair[1]);
        }
    }
    esk_es01_deflater_destroy(deflater);
    esk_buffer_fini(&frame);
    esk_buffer_fini(&packed);
}

static void gzip_goes_both_ways(void **state) {
    (void)state;
    struct fake_broker broker;
    struct seen seen = {0};
    fake_broker_start(&broker, serve_gzip, NULL);
    struct esk_client_options options = fake_options(&broker);
    options.gzip = true;
    struct esk_pipeline *pipeline = open_pipeline(&options);
    ping(pipeline, 77, &seen);
    assert_int_equal(produce_one(pipeline, ESK_CLIENT_SEQUENCE_NONE, &seen), ESK_CLIENT_OK);
    assert_int_equal(esk_pipeline_consume(pipeline, "t", 0, 9, 10, 100, see, &seen, NULL),
                     ESK_CLIENT_OK);
    assert_int_equal(esk_pipeline_flush(pipeline, WAIT_MS), ESK_CLIENT_OK);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.numbers[0], 77);
    assert_int_equal(seen.numbers[1], 0);
    assert_int_equal(seen.numbers[2], 9);
    esk_pipeline_close(pipeline);
    fake_broker_stop(&broker);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_in_order_and_the_bound_holds),
        cmocka_unit_test(callbacks_may_submit),
        cmocka_unit_test(its_descriptor_tells_when_to_process),
        cmocka_unit_test(what_is_out_ends_with_the_pipeline),
        cmocka_unit_test(a_lost_connection_ends_only_what_may_be_written),
        cmocka_unit_test(a_connection_that_ends_while_it_is_idle_is_no_loss),
        cmocka_unit_test(sequences_of_the_program_are_sent_again),
        cmocka_unit_test(answers_that_are_none_end_the_connection),
        cmocka_unit_test(an_answer_over_the_limit_is_not_waited_for),
        cmocka_unit_test(gzip_goes_both_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
