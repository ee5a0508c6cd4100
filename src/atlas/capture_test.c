/* SPDX-License-Identifier: Apache-2.0 */
/* Captured traffic is put together from TCP segments that come late, twice or cut anywhere, and
 * responses find their requests. */
#include "atlas/capture.h"
#include "atlas/smallest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SYN 2
#define ACK 16

struct seen {
    char text[2048];
    unsigned problems;
};

static void on_message(void *context, const struct esk_atlas_input *input) {
    struct seen *seen = context;
    char title[80];
    struct esk_atlas_problem problem;
    assert_true(esk_atlas_walk(input, NULL, &problem));
    esk_atlas_input_title(input, title, sizeof(title));
    strcat(strcat(seen->text, title), "; ");
}

static void on_note(void *context, const char *text, bool problem) {
    struct seen *seen = context;
    seen->problems += problem;
    if (problem)
        strcat(strcat(seen->text, text), "; ");
}

static void put_packet(struct esk_buffer *file, bool from_client, uint32_t sequence, uint8_t flags,
                       struct esk_slice payload) {
    uint8_t head[16 + 14 + 20 + 20] = {0};
    uint8_t *ethernet = head + 16;
    uint8_t *ip = ethernet + 14;
    uint8_t *tcp = ip + 20;
    uint32_t size = (uint32_t)(54 + payload.size);
    esk_store_u32(head + 8, size); /* a big-endian capture */
    esk_store_u32(head + 12, size);
    esk_store_u16(ethernet + 12, 0x0800);
    ip[0] = 0x45;
    esk_store_u16(ip + 2, (uint16_t)(40 + payload.size));
    ip[9] = 6;
    esk_store_u32(ip + (from_client ? 12 : 16), 0x0a000001);
    esk_store_u32(ip + (from_client ? 16 : 12), 0x0a000002);
    esk_store_u16(tcp + (from_client ? 0 : 2), 40000);
    esk_store_u16(tcp + (from_client ? 2 : 0), 9092);
    esk_store_u32(tcp + 4, sequence);
    tcp[12] = 5 << 4;
    tcp[13] = flags;
    esk_buffer_append(file, head, sizeof(head));
    esk_buffer_append(file, payload.data, payload.size);
}

static void put_file_head(struct esk_buffer *file) {
    uint8_t head[24] = {0xa1, 0xb2, 0xc3, 0xd4, 0, 2, 0, 4};
    head[23] = 1; /* Ethernet */
    esk_buffer_append(file, head, sizeof(head));
}

/* Two requests and their responses, answered in the other order. */
static void make_streams(struct esk_buffer *client, struct esk_buffer *server) {
    const struct esk_kafka_message *messages[] = {
        esk_kafka_api_find("ApiVersions", ESK_KAFKA_REQUEST, false),
        esk_kafka_api_find("Fetch", ESK_KAFKA_REQUEST, false),
        esk_kafka_api_find("Fetch", ESK_KAFKA_RESPONSE, false),
        esk_kafka_api_find("ApiVersions", ESK_KAFKA_RESPONSE, false)};
    for (unsigned i = 0; i < 4; i++) {
        struct esk_buffer *stream = i < 2 ? client : server;
        size_t start = stream->size;
        bool fetch = i == 1 || i == 2;
        esk_atlas_smallest(messages[i], fetch ? 16 : 4, stream);
        esk_store_u32(stream->data + start + (i < 2 ? 8 : 4), fetch ? 8 : 7);
    }
}

static struct seen walk(const struct esk_buffer *file) {
    struct seen seen = {.problems = 0};
    struct esk_capture_visitor visitor = {&seen, on_message, on_note};
    assert_true(esk_capture_is(esk_buffer_slice(file)));
    esk_capture_walk(esk_buffer_slice(file), &visitor);
    return seen;
}

static const char expected[] = "ApiVersions request v4; ApiVersions response v4; "
                               "Fetch request v16; Fetch response v16; ";

static void segments_are_put_in_order_and_responses_find_their_requests(void **state) {
    (void)state;
    struct esk_buffer client;
    struct esk_buffer server;
    struct esk_buffer file;
    esk_buffer_init(&client);
    esk_buffer_init(&server);
    esk_buffer_init(&file);
    make_streams(&client, &server);
    uint32_t a = 0xfffffff0; /* sequence numbers that wrap */
    for (unsigned with_syn = 0; with_syn < 2; with_syn++) {
        for (size_t cut = 1; cut < client.size; cut += 3) {
            file.size = 0;
            put_file_head(&file);
            if (with_syn)
                put_packet(&file, true, a - 1, SYN, esk_slice(NULL, 0));
            else
                put_packet(&file, true, a, ACK, esk_slice(client.data, 1));
            put_packet(&file, false, 77, ACK, esk_slice(server.data, 9));
            put_packet(&file, true, a + (uint32_t)cut, ACK,
                       esk_slice(client.data + cut, client.size - cut)); /* early */
            put_packet(&file, true, a, ACK, esk_slice(client.data, cut));
            put_packet(&file, true, a, ACK, esk_slice(client.data, cut)); /* again */
            put_packet(&file, false, 77 + 5, ACK,
                       esk_slice(server.data + 5, server.size - 5)); /* overlapping */
            struct seen seen = walk(&file);
            assert_string_equal(seen.text, expected);
            assert_int_equal(seen.problems, 0);
        }
    }
    esk_buffer_fini(&client);
    esk_buffer_fini(&server);
    esk_buffer_fini(&file);
}

static void what_is_missing_is_said(void **state) {
    (void)state;
    struct esk_buffer client;
    struct esk_buffer server;
    struct esk_buffer file;
    esk_buffer_init(&client);
    esk_buffer_init(&server);
    esk_buffer_init(&file);
    make_streams(&client, &server);
    put_file_head(&file);
    put_packet(&file, true, 99, SYN, esk_slice(NULL, 0));
    put_packet(&file, true, 100, ACK, esk_slice(client.data, 40));
    put_packet(&file, true, 150, ACK, esk_slice(client.data + 50, client.size - 50));
    put_packet(&file, false, 500, ACK, esk_buffer_slice(&server));
    struct seen seen = walk(&file);
    assert_true(seen.problems > 0);
    assert_non_null(strstr(seen.text, "ApiVersions request v4; "));
    assert_non_null(strstr(seen.text, "a response with correlation id 8 to no captured request"));
    esk_buffer_append(&file, "\0\0\0", 3);
    seen = walk(&file);
    assert_non_null(strstr(seen.text, "the capture ends inside a packet's head"));
    esk_buffer_fini(&client);
    esk_buffer_fini(&server);
    esk_buffer_fini(&file);
}

static void requests_in_a_row_are_told_apart(void **state) {
    (void)state;
    struct esk_buffer client;
    struct esk_buffer server;
    struct seen seen = {.problems = 0};
    struct esk_capture_visitor visitor = {&seen, on_message, on_note};
    esk_buffer_init(&client);
    esk_buffer_init(&server);
    make_streams(&client, &server);
    esk_capture_requests(esk_buffer_slice(&client), &visitor);
    assert_string_equal(seen.text, "ApiVersions request v4; Fetch request v16; ");
    esk_buffer_fini(&client);
    esk_buffer_fini(&server);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_put_in_order_and_responses_find_their_requests),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(requests_in_a_row_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
