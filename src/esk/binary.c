/* SPDX-License-Identifier: Apache-2.0 */
/* libesker's options from the tool's settings. */
#include "esk/binary.h"

#include <stdlib.h>

void esk_binary_init(struct esk_binary *binary, const struct esk_session *session) {
    const struct esk_settings *settings = &session->settings;
    struct esk_client_options *options = &binary->options;
    bool is_bracketed = strchr(session->server.host, ':') != NULL;
    binary->address = settings->binary_server
                          ? esk_text_copy(settings->binary_server)
                          : esk_text_format(is_bracketed ? "[%s]:%d" : "%s:%d",
                                            session->server.host, ESK_BINARY_PORT);
    esk_client_options_init(options);
    options->address = binary->address;
    options->key = settings->key;
    options->tls = session->server.is_secure;
    options->tls_ca_file = settings->ca;
    options->tls_insecure = settings->insecure;
    options->tls_cert_file = settings->cert;
    options->tls_key_file = settings->cert_key;
    options->gzip = esk_arguments_number(session->arguments, "gzip") != 0;
    options->connect_timeout_ms = (uint32_t)settings->timeout_ms;
    options->request_timeout_ms = (uint32_t)settings->timeout_ms;
}

void esk_binary_fini(struct esk_binary *binary) {
    free(binary->address);
}

int esk_binary_check(const struct esk_arguments *arguments) {
    bool is_alone =
        esk_arguments_number(arguments, "gzip") && !esk_arguments_number(arguments, "binary");
    return is_alone
               ? esk_complain(ESK_EXIT_USAGE, "--gzip is for the binary protocol: add --binary")
               : ESK_EXIT_DONE;
}

struct esk_client *esk_binary_open(const struct esk_session *session) {
    struct esk_binary binary;
    struct esk_client *client;
    struct esk_client_error error;
    esk_binary_init(&binary, session);
    if (esk_client_open(&binary.options, &client, &error) != ESK_CLIENT_OK) {
        bool is_nobody = error.code == ESK_CLIENT_CONNECT;
        (void)esk_complain(ESK_EXIT_FAILED, "%s%s", error.text,
                           is_nobody ? "; start the broker with --bind-binary, or name its address "
                                       "with --binary-server"
                           : error.code == ESK_CLIENT_UNAUTHENTICATED ? ESK_KEY_HINT
                                                                      : "");
    }
    esk_binary_fini(&binary);
    return client;
}

int esk_binary_complain(const struct esk_client_error *error) {
    bool is_broker = error->code <= ESK_CLIENT_BROKER;
    return esk_complain(ESK_EXIT_FAILED, "%s%s%s", is_broker ? "the broker answered: " : "",
                        error->text, error->code == ESK_CLIENT_UNAUTHENTICATED ? ESK_KEY_HINT : "");
}
