/* SPDX-License-Identifier: Apache-2.0 */
/* Large bodies that find no room: they wait, are let in or refused, and nobody is reset. */
#include "server/http/door_world_testing.h"

#define VALUE_BYTES 200000 /* over what is parsed in the loop, and sockets hold it */

static void send_large(int fd, size_t size) {
    char *value = esk_alloc(size + 1);
    memset(value, 'v', size);
    value[size] = '\0';
    char *body = esk_text_format("{\"records\":[{\"value\":\"%s\",\"partition\":0}]}", value);
    char *head = esk_text_format("POST /topics/orders/produce HTTP/1.1\r\nHost: a\r\n"
                                 "Connection: close\r\nContent-Length: %zu\r\n\r\n",
                                 strlen(body));
    send_text(fd, head);
    send_text(fd, body);
    free(value);
    free(body);
    free(head);
}

static void wait_for_claim(bool is_there) {
    pthread_mutex_lock(&fake.mutex);
    while (!fake.claim == is_there) {
        pthread_cond_wait(&fake.changed, &fake.mutex);
    }
    pthread_mutex_unlock(&fake.mutex);
}

static void hold_back(int kind, bool holds) {
    pthread_mutex_lock(&fake.mutex);
    fake.holds_back[kind] = holds;
    pthread_mutex_unlock(&fake.mutex);
}

/* In the loop. */
static void run_grant(struct esk_mail *mail) {
    pthread_mutex_lock(&fake.mutex);
    struct esk_memory_claim *claim = fake.claim;
    struct esk_broker_shard *shard = fake.claimed_at;
    fake.claim = NULL;
    pthread_mutex_unlock(&fake.mutex);
    claim->is_granted = esk_broker_memory_take(shard, claim->bytes);
    claim->granted(claim);
    free(mail);
}

static void grant(void) {
    struct esk_mail *mail = esk_alloc_zeroed(1, sizeof *mail);
    mail->run = run_grant;
    esk_post(&fake.claimed_at->loop->executor, mail);
}

static void expect_answer(int fd, const char *part) {
    char *got = read_all(fd);
    if (!strstr(got, part)) {
        print_error("wanted %s\ngot %s\n", part, got);
        fail();
    }
    free(got);
}

static void a_body_and_its_parser_wait_for_room(void **state) {
    (void)state;
    start(0);
    for (int kind = 0; kind < ESK_MEMORY_KINDS; kind++) {
        hold_back(kind, true);
        int fd = dial();
        send_large(fd, VALUE_BYTES);
        wait_for_claim(true);
        expect("GET", "/healthz", "", 200, NULL); /* others do not wait */
        hold_back(kind, false);
        grant();
        expect_answer(fd, "HTTP/1.1 200 ");
    }
    stop();
}

static void nobody_waits_for_ever(void **state) {
    (void)state;
    start(300);
    for (int kind = 0; kind < ESK_MEMORY_KINDS; kind++) {
        hold_back(kind, true);
        int fd = dial();
        send_large(fd, 20 * VALUE_BYTES); /* the rest is read and dropped: no reset */
        char *got = read_all(fd);
        assert_non_null(strstr(got, "HTTP/1.1 503 "));
        assert_non_null(strstr(got, "Retry-After: 1\r\n"));
        free(got);
        hold_back(kind, false);
    }
    stop();
}

/* At least; others are served meanwhile. */
static void pass_ms(uint64_t ms) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t end_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 + ms;
    do {
        expect("GET", "/healthz", "", 200, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 < end_ms);
}

/* In chunks, so that a part of it has come before it needs a claim. */
static void the_time_in_line_is_not_the_body_s(void **state) {
    (void)state;
    enum { FIRST = 12000, SECOND = 5000, LINE_MS = 6000 };
    start(LINE_MS);
    hold_back(ESK_MEMORY_BODY, true);
    int fd = dial();
    char *value = esk_alloc(FIRST + 1);
    memset(value, 'v', FIRST);
    value[FIRST] = '\0';
    char *first = esk_text_format("POST /topics/orders/produce HTTP/1.1\r\nHost: a\r\n"
                                  "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "1d\r\n{\"records\":[{\"partition\":0,\"v\r\n"
                                  "7\r\nalue\":\"\r\n%x\r\n%s\r\n",
                                  (unsigned)FIRST, value);
    send_text(fd, first);
    expect("GET", "/healthz", "", 200, NULL);
    char *second = esk_text_format("%x\r\n%.*s\r\n", (unsigned)SECOND, (int)SECOND, value);
    send_text(fd, second);
    wait_for_claim(true);
    pass_ms(LINE_MS / 3 + (FIRST + SECOND) / 16 + 300); /* as much as a holder would have */
    hold_back(ESK_MEMORY_BODY, false);
    grant();
    pass_ms(400); /* a deadline is at most 250 ms late */
    send_text(fd, "4\r\n\"}]}\r\n0\r\n\r\n");
    expect_answer(fd, "HTTP/1.1 200 ");
    free(value);
    free(first);
    free(second);
    stop();
}

static void who_goes_leaves_the_line(void **state) {
    (void)state;
    start(0);
    for (int kind = 0; kind < ESK_MEMORY_KINDS; kind++) {
        hold_back(kind, true);
        int fd = dial();
        send_large(fd, VALUE_BYTES);
        wait_for_claim(true);
        struct linger reset = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        close(fd);
        wait_for_claim(false);
        hold_back(kind, false);
    }
    stop();
}

static void a_stop_answers_who_waits(void **state) {
    (void)state;
    start(0);
    hold_back(ESK_MEMORY_BODY, true);
    int fd = dial();
    send_large(fd, VALUE_BYTES);
    wait_for_claim(true);
    stop();
    assert_null(fake.claim);
    char *got = read_all(fd); /* if the end of the server did not reset it */
    assert_true(*got == '\0' || strstr(got, "HTTP/1.1 503 "));
    free(got);
}

static void input_that_cannot_be_kept_is_answered(void **state) {
    (void)state;
    start(0);
    int fd = dial();
    __atomic_store_n(&fake.refuses_memory, true, __ATOMIC_SEQ_CST);
    send_text(fd, "GET /healthz HTTP/1.1\r\nHo"); /* half a head */
    expect_answer(fd, "HTTP/1.1 503 ");
    __atomic_store_n(&fake.refuses_memory, false, __ATOMIC_SEQ_CST);
    expect("GET", "/healthz", "", 200, NULL);
    stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_and_its_parser_wait_for_room),
        cmocka_unit_test(nobody_waits_for_ever),
        cmocka_unit_test(the_time_in_line_is_not_the_body_s),
        cmocka_unit_test(who_goes_leaves_the_line),
        cmocka_unit_test(a_stop_answers_who_waits),
        cmocka_unit_test(input_that_cannot_be_kept_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
