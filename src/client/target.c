/* SPDX-License-Identifier: Apache-2.0 */
/* Where a broker is: the address taken apart, resolved, and the certificates for TLS loaded. */
#include "client/channel.h"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_ADDRESS "127.0.0.1:9001"

enum esk_client_code eski_client_fail(struct esk_client_error *error, enum esk_client_code code,
                                      const char *format, ...) {
    if (error) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(error->text, sizeof(error->text), format, arguments);
        va_end(arguments);
        error->code = code;
    }
    return code;
}

static bool is_port(const char *text) {
    unsigned port = 0;
    size_t size = strlen(text);
    for (size_t i = 0; i < size && size <= 5; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return size <= 5 && port > 0 && port <= 65535;
}

static enum esk_client_code parse_address(struct eski_target *target, const char *address,
                                          struct esk_client_error *error) {
    bool is_bracketed = address[0] == '[';
    const char *host = address + is_bracketed;
    size_t size = strcspn(host, is_bracketed ? "]" : ":");
    const char *rest = host + size + (is_bracketed && host[size] == ']');
    bool is_odd = size == 0 || (is_bracketed && host[size] != ']');
    for (size_t i = 0; i < size && !is_odd; i++) {
        is_odd = host[i] <= ' ' || host[i] == '/' || host[i] == '@' || host[i] == 0x7f;
    }
    if (is_odd || rest[0] != ':' || !is_port(rest + 1)) {
        return eski_client_fail(error, ESK_CLIENT_INVALID,
                                "address '%s': allowed is HOST:PORT, such as %s or [::1]:9001",
                                address, DEFAULT_ADDRESS);
    }
    target->host = esk_text_format("%.*s", (int)size, host);
    target->port = esk_text_copy(rest + 1);
    return ESK_CLIENT_OK;
}

static bool is_numeric(const char *host) {
    struct in6_addr number;
    return inet_pton(AF_INET, host, &number) == 1 || inet_pton(AF_INET6, host, &number) == 1;
}

static enum esk_client_code refuse(struct esk_client_error *error, const char *what,
                                   const char *file, int result) {
    return eski_client_fail(error, ESK_CLIENT_INVALID, "%s %s: %s", what, file,
                            gnutls_strerror(result));
}

static enum esk_client_code load_certificates(struct eski_target *target,
                                              const struct esk_client_options *options,
                                              struct esk_client_error *error) {
    int result = gnutls_certificate_allocate_credentials(&target->credentials);
    if (result < 0) {
        return refuse(error, "TLS", "set-up", result);
    }
    if (options->tls_ca_file) {
        result = gnutls_certificate_set_x509_trust_file(target->credentials, options->tls_ca_file,
                                                        GNUTLS_X509_FMT_PEM);
        if (result <= 0) {
            return refuse(error, "tls_ca_file", options->tls_ca_file,
                          result ? result : GNUTLS_E_NO_CERTIFICATE_FOUND);
        }
    } else if (!options->tls_insecure) {
        /* Without any, the handshake tells that nothing is trusted. */
        (void)gnutls_certificate_set_x509_system_trust(target->credentials);
    }
    if (options->tls_cert_file) {
        result = gnutls_certificate_set_x509_key_file(target->credentials, options->tls_cert_file,
                                                      options->tls_key_file, GNUTLS_X509_FMT_PEM);
        if (result < 0) {
            return refuse(error, "tls_cert_file, tls_key_file", options->tls_cert_file, result);
        }
    }
    return ESK_CLIENT_OK;
}

enum esk_client_code eski_target_init(struct eski_target *target,
                                      const struct esk_client_options *options,
                                      struct esk_client_error *error) {
    memset(target, 0, sizeof(*target));
    const char *address = options->address ? options->address : DEFAULT_ADDRESS;
    enum esk_client_code code = parse_address(target, address, error);
    if (code != ESK_CLIENT_OK) {
        return code;
    }
    if (!options->tls_cert_file != !options->tls_key_file) {
        return eski_client_fail(error, ESK_CLIENT_INVALID,
                                "tls_cert_file and tls_key_file go together");
    }
    target->tls = options->tls;
    target->tls_insecure = options->tls_insecure;
    target->server_name =
        esk_text_copy(options->tls_server_name ? options->tls_server_name : target->host);
    target->is_name_numeric = is_numeric(target->server_name);
    return target->tls ? load_certificates(target, options, error) : ESK_CLIENT_OK;
}

void eski_target_fini(struct eski_target *target) {
    if (target->addresses) {
        freeaddrinfo(target->addresses);
    }
    if (target->credentials) {
        gnutls_certificate_free_credentials(target->credentials);
    }
    free(target->host);
    free(target->port);
    free(target->server_name);
    memset(target, 0, sizeof(*target));
}

enum esk_client_code eski_target_resolve(struct eski_target *target,
                                         struct esk_client_error *error) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int result = getaddrinfo(target->host, target->port, &hints, &found);
    if (result != 0) {
        return eski_client_fail(error, ESK_CLIENT_CONNECT, "%s: %s", target->host,
                                gai_strerror(result));
    }
    if (target->addresses) {
        freeaddrinfo(target->addresses);
    }
    target->addresses = found;
    return ESK_CLIENT_OK;
}
