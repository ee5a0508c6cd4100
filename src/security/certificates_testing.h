/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: keys and certificates made on the spot, in PEM files of a folder of the test's own. */
#ifndef ESK_SECURITY_CERTIFICATES_TESTING_H
#define ESK_SECURITY_CERTIFICATES_TESTING_H

#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#define DAY_S (24 * 60 * 60)

/* A certificate with its key; borrowed ones stay with whoever made them. */
struct test_certificate {
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t certificate;
};

struct test_certificate_options {
    const char *name; /* common name, and DNS name of one that is no authority */
    const struct test_certificate *issuer; /* NULL: itself */
    bool is_authority;
    bool is_client;
    int from_days; /* from now; both 0: yesterday to tomorrow */
    int until_days;
};

static inline void check_gnutls(int result) {
    if (result < 0) {
        print_error("gnutls: %s\n", gnutls_strerror(result));
    }
    assert_true(result >= 0);
}

static inline struct test_certificate
test_certificate_make(const struct test_certificate_options *options) {
    struct test_certificate made;
    check_gnutls(gnutls_x509_privkey_init(&made.key));
    check_gnutls(gnutls_x509_privkey_generate(made.key, GNUTLS_PK_ECDSA,
                                              GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    gnutls_x509_crt_t it;
    check_gnutls(gnutls_x509_crt_init(&it));
    time_t now = time(NULL);
    bool is_default = options->from_days == 0 && options->until_days == 0;
    static unsigned char serial = 1;
    check_gnutls(gnutls_x509_crt_set_version(it, 3));
    check_gnutls(gnutls_x509_crt_set_serial(it, &serial, 1));
    serial++;
    check_gnutls(gnutls_x509_crt_set_activation_time(
        it, now + (is_default ? -DAY_S : options->from_days * DAY_S)));
    check_gnutls(gnutls_x509_crt_set_expiration_time(
        it, now + (is_default ? DAY_S : options->until_days * DAY_S)));
    check_gnutls(gnutls_x509_crt_set_dn_by_oid(it, GNUTLS_OID_X520_COMMON_NAME, 0, options->name,
                                               (unsigned)strlen(options->name)));
    check_gnutls(gnutls_x509_crt_set_basic_constraints(it, options->is_authority, -1));
    if (options->is_authority) {
        check_gnutls(
            gnutls_x509_crt_set_key_usage(it, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN));
    } else {
        check_gnutls(gnutls_x509_crt_set_key_usage(it, GNUTLS_KEY_DIGITAL_SIGNATURE));
        check_gnutls(gnutls_x509_crt_set_key_purpose_oid(
            it, options->is_client ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER, 0));
        check_gnutls(gnutls_x509_crt_set_subject_alt_name(it, GNUTLS_SAN_DNSNAME, options->name,
                                                          (unsigned)strlen(options->name),
                                                          GNUTLS_FSAN_SET));
    }
    check_gnutls(gnutls_x509_crt_set_key(it, made.key));
    const struct test_certificate *issuer = options->issuer;
    check_gnutls(gnutls_x509_crt_sign2(it, issuer ? issuer->certificate : it,
                                       issuer ? issuer->key : made.key, GNUTLS_DIG_SHA256, 0));
    made.certificate = it;
    return made;
}

static inline void test_certificate_free(struct test_certificate *certificate) {
    gnutls_x509_crt_deinit(certificate->certificate);
    gnutls_x509_privkey_deinit(certificate->key);
}

/* --- files --- */

static char test_folder[64];

static inline void test_folder_make(void) {
    (void)snprintf(test_folder, sizeof test_folder, "/tmp/esker-certificates-XXXXXX");
    assert_non_null(mkdtemp(test_folder));
}

static inline void test_folder_remove(void) {
    char *command = esk_text_format("rm -r '%s'", test_folder);
    assert_int_equal(system(command), 0);
    free(command);
}

/* A path in the folder; one of a few that are valid at the same time. */
static inline const char *test_path(const char *name) {
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", test_folder, name);
    return path;
}

static inline void test_put(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(test_path(name), "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Certificates one after the other. */
static inline void test_put_chain(const char *name, const struct test_certificate *const *chain,
                                  size_t count) {
    struct esk_buffer text;
    esk_buffer_init(&text);
    for (size_t i = 0; i < count; i++) {
        gnutls_datum_t pem;
        check_gnutls(gnutls_x509_crt_export2(chain[i]->certificate, GNUTLS_X509_FMT_PEM, &pem));
        esk_buffer_append(&text, pem.data, pem.size);
        gnutls_free(pem.data);
    }
    test_put(name, text.data, text.size);
    esk_buffer_fini(&text);
}

static inline void test_put_certificate(const char *name,
                                        const struct test_certificate *certificate) {
    test_put_chain(name, &certificate, 1);
}

static inline void test_put_key(const char *name, const struct test_certificate *certificate) {
    gnutls_datum_t pem;
    check_gnutls(gnutls_x509_privkey_export2(certificate->key, GNUTLS_X509_FMT_PEM, &pem));
    test_put(name, pem.data, pem.size);
    gnutls_free(pem.data);
}

#endif
