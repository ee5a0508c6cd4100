/* SPDX-License-Identifier: Apache-2.0 */
/* PEM files into GnuTLS credentials, step by step, so that an error says which file is wrong and
 * why. Protocols and ciphers are set here, too: TLS 1.3 and 1.2 with forward secrecy, AES-GCM
 * first, which processors have instructions for.
 *
 * Sessions are resumed by tickets under a key that each load makes anew. With client certificates
 * there are no tickets: a resumed session would not ask whether the client is still welcome. */
#include "security/certificates.h"

#include "base/memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define PRIORITIES                                                                                 \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:"                  \
    "-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:-MAC-ALL:+AEAD:"                     \
    "-GROUP-ALL:+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:%SERVER_PRECEDENCE"

struct esk_certificates {
    atomic_uint references;
    bool ask_clients;
    int64_t from_ms;
    int64_t until_ms;
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priorities;
    gnutls_datum_t ticket_key;
};

/* --- files --- */

static enum esk_err read_file(const char *option, const char *path, struct esk_buffer *text,
                              struct esk_error *error) {
    FILE *file = fopen(path, "re");
    if (!file) {
        return esk_fail_errno(error, ESK_ERR_IO, errno, "%s: open %s", option, path);
    }
    uint8_t *at = esk_buffer_grow(text, FILE_BYTES_MAX + 1);
    text->size = fread(at, 1, FILE_BYTES_MAX + 1, file);
    int failed = ferror(file) ? errno : 0; /* such as a folder */
    fclose(file);
    if (failed) {
        return esk_fail_errno(error, ESK_ERR_IO, failed, "%s: read %s", option, path);
    }
    if (text->size > FILE_BYTES_MAX) {
        return esk_fail(error, ESK_ERR_INVALID, "%s: %s is over 1 MiB: it is no PEM file", option,
                        path);
    }
    return ESK_OK;
}

static gnutls_datum_t datum_of(const struct esk_buffer *text) {
    return (gnutls_datum_t){text->data, (unsigned)text->size};
}

struct chain {
    gnutls_x509_crt_t *certificates;
    unsigned count;
};

static void free_chain(struct chain *chain) {
    for (unsigned i = 0; i < chain->count; i++) {
        gnutls_x509_crt_deinit(chain->certificates[i]);
    }
    gnutls_free(chain->certificates);
}

static enum esk_err read_chain(const char *option, const char *path, unsigned flags,
                               struct chain *chain, struct esk_error *error) {
    struct esk_buffer text;
    esk_buffer_init(&text);
    enum esk_err err = read_file(option, path, &text, error);
    if (err == ESK_OK) {
        gnutls_datum_t datum = datum_of(&text);
        int result = gnutls_x509_crt_list_import2(&chain->certificates, &chain->count, &datum,
                                                  GNUTLS_X509_FMT_PEM, flags);
        if (result < 0) {
            chain->count = 0;
            chain->certificates = NULL;
            err = esk_fail(error, ESK_ERR_INVALID, "%s: %s holds no valid certificate in PEM: %s",
                           option, path, gnutls_strerror(result));
        }
    }
    esk_buffer_fini(&text);
    return err;
}

static enum esk_err read_key(const char *path, gnutls_x509_privkey_t key, struct esk_error *error) {
    struct esk_buffer text;
    esk_buffer_init(&text);
    enum esk_err err = read_file("--tls-key", path, &text, error);
    if (err == ESK_OK) {
        gnutls_datum_t datum = datum_of(&text);
        int result = gnutls_x509_privkey_import2(key, &datum, GNUTLS_X509_FMT_PEM, NULL, 0);
        if (result == GNUTLS_E_DECRYPTION_FAILED) {
            err = esk_fail(error, ESK_ERR_INVALID,
                           "--tls-key: %s is encrypted: it must be without a password", path);
        } else if (result < 0) {
            err = esk_fail(error, ESK_ERR_INVALID, "--tls-key: %s holds no valid key in PEM: %s",
                           path, gnutls_strerror(result));
        }
    }
    if (text.data) {
        explicit_bzero(text.data, text.size);
    }
    esk_buffer_fini(&text);
    return err;
}

/* --- loading --- */

static enum esk_err add_own(struct esk_certificates *made,
                            const struct esk_certificate_files *files, gnutls_x509_privkey_t key,
                            struct esk_error *error) {
    struct chain chain = {NULL, 0};
    enum esk_err err =
        read_chain("--tls-cert", files->certificate, GNUTLS_X509_CRT_LIST_SORT, &chain, error);
    if (err == ESK_OK) {
        err = read_key(files->key, key, error);
    }
    if (err == ESK_OK) {
        made->from_ms = (int64_t)gnutls_x509_crt_get_activation_time(chain.certificates[0]) * 1000;
        made->until_ms = (int64_t)gnutls_x509_crt_get_expiration_time(chain.certificates[0]) * 1000;
        int result = gnutls_certificate_set_x509_key(made->credentials, chain.certificates,
                                                     (int)chain.count, key);
        if (result == GNUTLS_E_CERTIFICATE_KEY_MISMATCH) {
            err = esk_fail(error, ESK_ERR_INVALID,
                           "--tls-key: %s is not the key of the certificate in --tls-cert %s",
                           files->key, files->certificate);
        } else if (result < 0) {
            err = esk_fail(error, ESK_ERR_INVALID, "--tls-cert: %s cannot be used: %s",
                           files->certificate, gnutls_strerror(result));
        }
    }
    free_chain(&chain);
    return err;
}

static enum esk_err add_authorities(struct esk_certificates *made, const char *path,
                                    struct esk_error *error) {
    struct chain chain = {NULL, 0};
    enum esk_err err = read_chain("--tls-client-ca", path, 0, &chain, error);
    if (err == ESK_OK) {
        int result = gnutls_certificate_set_x509_trust(made->credentials, chain.certificates,
                                                       (int)chain.count);
        if (result < 0) {
            err = esk_fail(error, ESK_ERR_INVALID, "--tls-client-ca: %s cannot be used: %s", path,
                           gnutls_strerror(result));
        }
    }
    free_chain(&chain);
    return err;
}

static enum esk_err fill(struct esk_certificates *made, const struct esk_certificate_files *files,
                         gnutls_x509_privkey_t key, struct esk_error *error) {
    int result = gnutls_certificate_allocate_credentials(&made->credentials);
    if (result == 0) {
        result = gnutls_priority_init2(&made->priorities, PRIORITIES, NULL, 0);
    }
    if (result == 0) {
        result = gnutls_session_ticket_key_generate(&made->ticket_key);
    }
    if (result < 0) {
        return esk_fail(error, ESK_ERR_IO, "start TLS: %s", gnutls_strerror(result));
    }
    enum esk_err err = add_own(made, files, key, error);
    if (err == ESK_OK && files->client_authorities) {
        made->ask_clients = true;
        err = add_authorities(made, files->client_authorities, error);
    }
    return err;
}

enum esk_err esk_certificates_load(const struct esk_certificate_files *files,
                                   struct esk_certificates **certificates,
                                   struct esk_error *error) {
    struct esk_certificates *made = esk_alloc_zeroed(1, sizeof *made);
    atomic_init(&made->references, 1);
    gnutls_x509_privkey_t key;
    if (gnutls_x509_privkey_init(&key) < 0) {
        free(made);
        return esk_fail(error, ESK_ERR_IO, "start TLS: no memory");
    }
    enum esk_err err = fill(made, files, key, error);
    gnutls_x509_privkey_deinit(key);
    if (err != ESK_OK) {
        esk_certificates_release(made);
        return err;
    }
    *certificates = made;
    return ESK_OK;
}

/* --- use --- */

struct esk_certificates *esk_certificates_retain(struct esk_certificates *certificates) {
    atomic_fetch_add_explicit(&certificates->references, 1, memory_order_relaxed);
    return certificates;
}

void esk_certificates_release(struct esk_certificates *certificates) {
    if (!certificates ||
        atomic_fetch_sub_explicit(&certificates->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (certificates->credentials) {
        gnutls_certificate_free_credentials(certificates->credentials);
    }
    if (certificates->priorities) {
        gnutls_priority_deinit(certificates->priorities);
    }
    if (certificates->ticket_key.data) {
        explicit_bzero(certificates->ticket_key.data, certificates->ticket_key.size);
        gnutls_free(certificates->ticket_key.data);
    }
    free(certificates);
}

int64_t esk_certificates_from_ms(const struct esk_certificates *certificates) {
    return certificates->from_ms;
}

int64_t esk_certificates_until_ms(const struct esk_certificates *certificates) {
    return certificates->until_ms;
}

bool esk_certificates_ask_clients(const struct esk_certificates *certificates) {
    return certificates->ask_clients;
}

unsigned esk_certificates_session_flags(const struct esk_certificates *certificates) {
    return GNUTLS_SERVER | GNUTLS_NONBLOCK | (certificates->ask_clients ? GNUTLS_NO_TICKETS : 0);
}

bool esk_certificates_apply(const struct esk_certificates *certificates,
                            struct gnutls_session_int *session) {
    if (gnutls_priority_set(session, certificates->priorities) < 0 ||
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, certificates->credentials) < 0) {
        return false;
    }
    if (!certificates->ask_clients) {
        return gnutls_session_ticket_enable_server(session, &certificates->ticket_key) == 0;
    }
    gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
    /* Borrowed by the session; it only reads them. */
    static gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                            .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
    gnutls_session_set_verify_cert2(session, &purpose, 1, 0);
    return true;
}
