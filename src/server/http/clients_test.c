/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that pipeline, dawdle, send too much, or go. */
#include "server/http/door_world_testing.h"

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

/* Twenty answers of a megabyte each, to a client that takes them through a small window. */
static void long_answers_may_be_pipelined(void **state) {
    (void)state;
    start(0);
    int fd = dial();
    int small = 16384;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    for (int i = 1; i <= 20; i++) {
        send_text(fd, i < 20 ? "GET /topics/orders HTTP/1.1\r\nHost: a\r\n\r\n"
                             : "GET /topics/orders HTTP/1.1\r\nHost: a\r\n"
                               "Connection: close\r\n\r\n");
    }
    char *got = read_all(fd);
    int ends = 0;
    for (char *at = got; (at = strstr(at, "\"partitioner\":\"fnv1a\"}}\r\n0\r\n\r\n")); at++) {
        ends++;
    }
    assert_int_equal(ends, 20);
    free(got);
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
    int short_body = dial();
    send_text(short_body, "POST /topics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{");
    shutdown(short_body, SHUT_WR);
    char *got = read_all(short_body);
    assert_non_null(strstr(got, "HTTP/1.1 400 "));
    free(got);
    got = read_all(idle);
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
        cmocka_unit_test(requests_may_be_pipelined_and_cut_anywhere),
        cmocka_unit_test(long_answers_may_be_pipelined),
        cmocka_unit_test(bodies_over_the_limit_are_refused),
        cmocka_unit_test(slow_clients_are_dropped),
        cmocka_unit_test(a_hang_up_ends_a_long_poll),
        cmocka_unit_test(a_record_outlives_its_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
