/* SPDX-License-Identifier: Apache-2.0 */
/* What is loaded, and what the errors of the rest say. */
#include "security/certificates.h"

#include "security/certificates_testing.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct test_certificate authority, server, other;

static int set_up(void **state) {
    (void)state;
    test_folder_make();
    authority = test_certificate_make(
        &(struct test_certificate_options){.name = "authority", .is_authority = true});
    server = test_certificate_make(
        &(struct test_certificate_options){.name = "localhost", .issuer = &authority});
    other = test_certificate_make(&(struct test_certificate_options){.name = "other"});
    test_put_certificate("server.pem", &server);
    test_put_key("server.key", &server);
    test_put_key("other.key", &other);
    test_put_certificate("authority.pem", &authority);
    test_put("empty.pem", "", 0);
    test_put("text.pem", "not a certificate\n", 18);
    test_put("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", 59);
    char *large = esk_alloc_zeroed(1, (1 << 20) + 1);
    test_put("large.pem", large, (1 << 20) + 1);
    free(large);
    gnutls_datum_t pem;
    size_t size = 4096;
    pem.data = esk_alloc(size);
    check_gnutls(gnutls_x509_privkey_export_pkcs8(server.key, GNUTLS_X509_FMT_PEM, "password",
                                                  GNUTLS_PKCS_PBES2_AES_128, pem.data, &size));
    test_put("encrypted.key", pem.data, size);
    free(pem.data);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    test_certificate_free(&authority);
    test_certificate_free(&server);
    test_certificate_free(&other);
    test_folder_remove();
    return 0;
}

static const struct {
    const char *certificate, *key, *authorities;
    enum esk_err err;
    const char *said;  /* part of the text */
    const char *named; /* the file that it names */
} wrong[] = {
    {"none.pem", "server.key", NULL, ESK_ERR_IO, "--tls-cert: open", "none.pem"},
    {"server.pem", "none.key", NULL, ESK_ERR_IO, "--tls-key: open", "none.key"},
    {"server.pem", "server.key", "none.pem", ESK_ERR_IO, "--tls-client-ca: open", "none.pem"},
    {".", "server.key", NULL, ESK_ERR_IO, "--tls-cert: ", "directory"},
    {"empty.pem", "server.key", NULL, ESK_ERR_INVALID, "no valid certificate", "empty.pem"},
    {"text.pem", "server.key", NULL, ESK_ERR_INVALID, "no valid certificate", "text.pem"},
    {"broken.pem", "server.key", NULL, ESK_ERR_INVALID, "no valid certificate", "broken.pem"},
    {"large.pem", "server.key", NULL, ESK_ERR_INVALID, "over 1 MiB", "large.pem"},
    {"server.key", "server.key", NULL, ESK_ERR_INVALID, "no valid certificate", "server.key"},
    {"server.pem", "server.pem", NULL, ESK_ERR_INVALID, "--tls-key: ", "no valid key"},
    {"server.pem", "text.pem", NULL, ESK_ERR_INVALID, "no valid key", "text.pem"},
    {"server.pem", "encrypted.key", NULL, ESK_ERR_INVALID, "is encrypted", "encrypted.key"},
    {"server.pem", "other.key", NULL, ESK_ERR_INVALID, "is not the key of", "other.key"},
    {"server.pem", "server.key", "text.pem", ESK_ERR_INVALID, "--tls-client-ca: ", "text.pem"},
};

static enum esk_err load(const char *certificate, const char *key, const char *authorities,
                         struct esk_certificates **loaded, struct esk_error *error) {
    struct esk_certificate_files files = {
        .certificate = test_path(certificate),
        .key = test_path(key),
        .client_authorities = authorities ? test_path(authorities) : NULL,
    };
    return esk_certificates_load(&files, loaded, error);
}

static void what_is_wrong_is_said(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct esk_certificates *loaded = NULL;
        struct esk_error error = {0};
        enum esk_err err =
            load(wrong[i].certificate, wrong[i].key, wrong[i].authorities, &loaded, &error);
        if (err != wrong[i].err || !strstr(error.text, wrong[i].said) ||
            !strstr(error.text, wrong[i].named)) {
            print_error("case %zu: %d '%s'\n", i, (int)err, error.text);
            fail();
        }
        assert_null(loaded);
    }
}

static void a_file_without_permission_is_said(void **state) {
    (void)state;
    if (geteuid() == 0) {
        skip(); /* may read everything */
    }
    test_put_key("secret.key", &server);
    assert_int_equal(chmod(test_path("secret.key"), 0), 0);
    struct esk_certificates *loaded = NULL;
    struct esk_error error = {0};
    assert_int_equal(load("server.pem", "secret.key", NULL, &loaded, &error), ESK_ERR_IO);
    assert_non_null(strstr(error.text, "Permission denied"));
}

static void dates_are_told_and_not_judged(void **state) {
    (void)state;
    struct test_certificate old = test_certificate_make(&(struct test_certificate_options){
        .name = "old", .issuer = &authority, .from_days = -30, .until_days = -10});
    test_put_certificate("old.pem", &old);
    test_put_key("old.key", &old);
    struct esk_certificates *loaded;
    struct esk_error error;
    assert_int_equal(load("old.pem", "old.key", NULL, &loaded, &error), ESK_OK);
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    int64_t days = (now_ms - esk_certificates_until_ms(loaded)) / (DAY_S * INT64_C(1000));
    assert_in_range(days, 9, 10);
    days = (now_ms - esk_certificates_from_ms(loaded)) / (DAY_S * INT64_C(1000));
    assert_in_range(days, 29, 30);
    assert_false(esk_certificates_ask_clients(loaded));
    esk_certificates_release(loaded);
    test_certificate_free(&old);
}

/* Tools write the chain in any order. */
static void a_chain_is_put_in_order(void **state) {
    (void)state;
    struct test_certificate between = test_certificate_make(&(struct test_certificate_options){
        .name = "between", .issuer = &authority, .is_authority = true});
    struct test_certificate leaf = test_certificate_make(
        &(struct test_certificate_options){.name = "leaf", .issuer = &between});
    const struct test_certificate *chain[] = {&leaf, &authority, &between};
    test_put_chain("chain.pem", chain, 3);
    test_put_key("leaf.key", &leaf);
    struct esk_certificates *loaded;
    struct esk_error error;
    assert_int_equal(load("chain.pem", "leaf.key", "authority.pem", &loaded, &error), ESK_OK);
    assert_true(esk_certificates_ask_clients(loaded));
    esk_certificates_release(esk_certificates_retain(loaded));
    esk_certificates_release(loaded);
    test_certificate_free(&between);
    test_certificate_free(&leaf);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(a_file_without_permission_is_said),
        cmocka_unit_test(dates_are_told_and_not_judged),
        cmocka_unit_test(a_chain_is_put_in_order),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
