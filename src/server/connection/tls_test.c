/* SPDX-License-Identifier: Apache-2.0 */
/* TLS as clients see it: who gets in, what comes back, and how it ends. */
#include "server/connection/tls_client_testing.h"

#define PLAIN_ANSWER "this port speaks TLS\n"

static struct test_certificate authority, server, renewed, guest, stranger;

static void make_pair(struct test_certificate *made, const char *name,
                      const struct test_certificate *issuer, bool is_client) {
    *made = test_certificate_make(
        &(struct test_certificate_options){.name = name, .issuer = issuer, .is_client = is_client});
}

static int set_up(void **state) {
    (void)state;
    test_folder_make();
    authority = test_certificate_make(
        &(struct test_certificate_options){.name = "authority", .is_authority = true});
    make_pair(&server, "localhost", &authority, false);
    make_pair(&renewed, "localhost", &authority, false);
    make_pair(&guest, "guest", &authority, true);
    make_pair(&stranger, "stranger", NULL, true);
    test_put_certificate("server.pem", &server);
    test_put_key("server.key", &server);
    test_put_certificate("renewed.pem", &renewed);
    test_put_key("renewed.key", &renewed);
    test_put_certificate("authority.pem", &authority);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    test_certificate_free(&authority);
    test_certificate_free(&server);
    test_certificate_free(&renewed);
    test_certificate_free(&guest);
    test_certificate_free(&stranger);
    test_folder_remove();
    return 0;
}

static struct esk_certificates *load(const char *name, const char *authorities) {
    char certificate[32];
    char key[32];
    (void)snprintf(certificate, sizeof certificate, "%s.pem", name);
    (void)snprintf(key, sizeof key, "%s.key", name);
    struct esk_certificate_files files = {
        .certificate = test_path(certificate),
        .key = test_path(key),
        .client_authorities = authorities ? test_path(authorities) : NULL,
    };
    struct esk_certificates *loaded;
    struct esk_error error;
    assert_int_equal(esk_certificates_load(&files, &loaded, &error), ESK_OK);
    return loaded;
}

static struct esk_door door;
static atomic_uint done_count;
static atomic_uint failed_count;

static void count_handshake(struct esk_connection *connection, bool succeeded) {
    (void)connection;
    atomic_fetch_add(succeeded ? &done_count : &failed_count, 1);
}

static void start_tls(const char *authorities, uint32_t handshake_ms) {
    memset(&door, 0, sizeof door);
    door.ops = &echo_ops;
    door.handshake_ended = count_handshake;
    atomic_store(&done_count, 0);
    atomic_store(&failed_count, 0);
    door.alpn = "echo/1";
    door.answer_without_tls = PLAIN_ANSWER;
    struct esk_server_options options;
    esk_server_options_init(&options);
    if (handshake_ms) {
        options.handshake_ms = handshake_ms;
    }
    options.certificates = load("server", authorities);
    start(&door, "127.0.0.1:0", &options);
    esk_certificates_release(options.certificates); /* the server has its own reference */
}

static unsigned count_failed(void) {
    return atomic_load(&failed_count);
}

/* --- bytes --- */

static const char *const kinds[] = {
    "NORMAL",
    "NORMAL:-VERS-ALL:+VERS-TLS1.2",
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305",
};

static void bytes_go_both_ways_at_once(void **state) {
    (void)state;
    start_tls(NULL, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct client client;
        client_init(&client, kinds[i], NULL);
        int small = 65536;
        (void)setsockopt(client.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        (void)setsockopt(client.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
        check_gnutls(client_handshake(&client));
        client_exchange(&client, 5000000);
        assert_true(client_echoes(&client));
        client_close(&client);
    }
    assert_int_equal(atomic_load(&done_count), 3);
    stop();
}

static void a_handshake_may_come_byte_by_byte(void **state) {
    (void)state;
    start_tls(NULL, 0);
    struct client client;
    client_init(&client, NULL, NULL);
    client.dribbles = true;
    check_gnutls(client_handshake(&client));
    client_exchange(&client, 3000);
    client_close(&client);
    stop();
}

/* Bytes that come together with the last of the handshake are not forgotten, nor those behind what
 * the door took in one turn. */
static void what_comes_at_once_is_seen_without_another_event(void **state) {
    (void)state;
    start_tls(NULL, 0);
    for (int i = 0; i < 20; i++) {
        struct client client;
        client_init(&client, NULL, NULL);
        check_gnutls(client_handshake(&client));
        gnutls_record_cork(client.session);
        char *text = esk_alloc_zeroed(1, 300000);
        for (size_t at = 0; at < 300000; at += 10000) {
            check_gnutls((int)gnutls_record_send(client.session, text + at, 10000));
        }
        check_gnutls(gnutls_record_uncork(client.session, GNUTLS_RECORD_WAIT));
        for (size_t have = 0; have < 300000;) {
            ssize_t count = client_receive(&client, text, 300000);
            assert_true(count > 0);
            have += (size_t)count;
        }
        free(text);
        client_close(&client);
    }
    stop();
}

static void the_protocol_is_agreed_on(void **state) {
    (void)state;
    start_tls(NULL, 0);
    struct client client;
    client_init(&client, NULL, NULL);
    gnutls_datum_t names[] = {{(unsigned char *)"h2", 2}, {(unsigned char *)"echo/1", 6}};
    check_gnutls(gnutls_alpn_set_protocols(client.session, names, 2, 0));
    check_gnutls(client_handshake(&client));
    gnutls_datum_t chosen;
    check_gnutls(gnutls_alpn_get_selected_protocol(client.session, &chosen));
    assert_int_equal(chosen.size, 6);
    assert_memory_equal(chosen.data, "echo/1", 6);
    assert_int_equal(gnutls_cipher_get(client.session), GNUTLS_CIPHER_AES_128_GCM);
    client_close(&client);
    stop();
}

/* --- the end --- */

static void the_end_is_said_both_ways(void **state) {
    (void)state;
    start_tls(NULL, 0);
    struct client client;
    client_open(&client);
    assert_true(client_echoes(&client));
    check_gnutls(gnutls_bye(client.session, GNUTLS_SHUT_WR));
    char byte;
    assert_int_equal(client_receive(&client, &byte, 1), 0); /* and not a premature end */
    client_close(&client);

    client_open(&client); /* one that just goes */
    assert_true(client_echoes(&client));
    client_close(&client);
    wait_for_closed(2);
    stop();
}

static void sessions_are_resumed(void **state) {
    (void)state;
    start_tls(NULL, 0);
    struct client client;
    client_open(&client);
    assert_true(client_echoes(&client)); /* the ticket comes before the answer */
    gnutls_datum_t ticket;
    check_gnutls(gnutls_session_get_data2(client.session, &ticket));
    client_close(&client);
    client_init(&client, NULL, NULL);
    check_gnutls(gnutls_session_set_data(client.session, ticket.data, ticket.size));
    check_gnutls(client_handshake(&client));
    assert_true(gnutls_session_is_resumed(client.session));
    assert_true(client_echoes(&client));
    client_close(&client);
    gnutls_free(ticket.data);
    stop();
}

/* --- clients that do not speak it, or not well --- */

static void a_plain_client_is_told_and_let_go(void **state) {
    (void)state;
    start_tls(NULL, 0);
    int fd = dial();
    send_all(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 26);
    char got[256];
    int result;
    size_t size = receive_all(fd, got, sizeof got, &result);
    assert_int_equal(result, 0);
    assert_int_equal(size, strlen(PLAIN_ANSWER));
    assert_memory_equal(got, PLAIN_ANSWER, size);
    close(fd);
    stop();
    assert_int_equal(count_failed(), 1);
}

static void nonsense_is_answered_with_an_alert(void **state) {
    (void)state;
    start_tls(NULL, 0);
    int fd = dial();
    static const uint8_t nonsense[4096] = {0x16, 3, 1, 8, 0, 99};
    send_all(fd, nonsense, sizeof nonsense);
    uint8_t got[256];
    int result;
    size_t size = receive_all(fd, got, sizeof got, &result);
    assert_int_equal(result, 0);
    assert_true(size >= 7);
    assert_int_equal(got[0], 21); /* alert */
    close(fd);

    struct client client; /* nothing in common */
    client_init(&client, "NORMAL:-VERS-ALL:+VERS-TLS1.1", NULL);
    assert_true(client_handshake(&client) < 0);
    client_close(&client);
    stop();
    assert_int_equal(count_failed(), 2);
}

static void a_client_that_does_not_finish_is_dropped(void **state) {
    (void)state;
    start_tls(NULL, 300);
    int silent = dial();
    int slow = dial();
    static const uint8_t beginning[] = {0x16, 3, 1, 2, 0, 1};
    send_all(slow, beginning, sizeof beginning);
    wait_for_closed(2);
    assert_int_equal(count_failed(), 0); /* they left, or were left: no handshake failed */
    close(silent);
    close(slow);

    struct client client; /* the time is over when the handshake is */
    client_open(&client);
    struct pollfd waiting = {client.fd, POLLIN, 0};
    char byte;
    int ready = poll(&waiting, 1, 1000);
    assert_true(ready == 0 || recv(client.fd, &byte, 1, MSG_PEEK) > 0); /* tickets at most */
    assert_true(client_echoes(&client));
    client_close(&client);
    stop();
}

static void a_stop_does_not_wait_for_handshakes(void **state) {
    (void)state;
    start_tls(NULL, 0);
    int fds[8];
    for (int i = 0; i < 8; i++) {
        fds[i] = dial();
        static const uint8_t beginning[] = {0x16, 3, 1, 2, 0, 1};
        send_all(fds[i], beginning, i % 2 ? sizeof beginning : 0);
    }
    struct client client;
    client_open(&client); /* idle */
    time_t began = time(NULL);
    stop();
    assert_true(time(NULL) - began < 8); /* handshakes have 10 s, a stop too */
    for (int i = 0; i < 8; i++) {
        close(fds[i]);
    }
    client_close(&client);
}

/* --- certificates --- */

static bool shows(struct client *client, const struct test_certificate *certificate) {
    unsigned count = 0;
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(client->session, &count);
    assert_non_null(shown);
    gnutls_datum_t wanted;
    check_gnutls(gnutls_x509_crt_export2(certificate->certificate, GNUTLS_X509_FMT_DER, &wanted));
    bool same = shown->size == wanted.size && memcmp(shown->data, wanted.data, wanted.size) == 0;
    gnutls_free(wanted.data);
    return same;
}

static void a_new_certificate_is_for_new_connections(void **state) {
    (void)state;
    start_tls(NULL, 0);
    struct client before;
    client_open(&before);
    assert_true(shows(&before, &server));
    struct esk_certificates *loaded = load("renewed", NULL);
    esk_server_set_certificates(world.server, loaded);
    esk_certificates_release(loaded);
    for (int i = 0; i < SHARDS; i++) {
        struct client after;
        client_open(&after);
        assert_true(shows(&after, &renewed));
        assert_true(client_echoes(&after));
        client_close(&after);
    }
    assert_true(client_echoes(&before));
    client_close(&before);
    stop();
}

static bool is_let_in(const char *priorities, const struct test_certificate *own) {
    struct client client;
    client_init(&client, priorities, own);
    /* With TLS 1.3 the client learns of a refusal at its first read only. */
    bool entered = client_handshake(&client) == 0 && client_echoes(&client);
    if (entered) {
        assert_false(gnutls_session_get_flags(client.session) & GNUTLS_SFLAGS_SESSION_TICKET);
    }
    client_close(&client);
    return entered;
}

static void clients_need_a_certificate_where_it_is_asked_for(void **state) {
    (void)state;
    start_tls("authority.pem", 0);
    for (size_t i = 0; i < 2; i++) {
        assert_true(is_let_in(kinds[i], &guest));
        assert_false(is_let_in(kinds[i], NULL));
        assert_false(is_let_in(kinds[i], &stranger));
        assert_false(is_let_in(kinds[i], &server)); /* signed, but not to be a client's */
    }
    stop();
    assert_int_equal(count_failed(), 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_go_both_ways_at_once),
        cmocka_unit_test(a_handshake_may_come_byte_by_byte),
        cmocka_unit_test(what_comes_at_once_is_seen_without_another_event),
        cmocka_unit_test(the_protocol_is_agreed_on),
        cmocka_unit_test(the_end_is_said_both_ways),
        cmocka_unit_test(sessions_are_resumed),
        cmocka_unit_test(a_plain_client_is_told_and_let_go),
        cmocka_unit_test(nonsense_is_answered_with_an_alert),
        cmocka_unit_test(a_client_that_does_not_finish_is_dropped),
        cmocka_unit_test(a_stop_does_not_wait_for_handshakes),
        cmocka_unit_test(a_new_certificate_is_for_new_connections),
        cmocka_unit_test(clients_need_a_certificate_where_it_is_asked_for),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
