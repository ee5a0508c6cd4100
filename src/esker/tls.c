/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate out of its dates is used: clients that check them refuse it by themselves, and a
 * broker that does not start serves nobody. It is warned of. */
#include "esker/tls.h"

#include <time.h>

static const char *text(const struct esk_options *options, enum esk_option option) {
    const char *value = options->values[option].text;
    return value && *value ? value : NULL;
}

static void format_day(int64_t ms, char day[32]) {
    time_t seconds = (time_t)(ms / 1000);
    struct tm parts;
    gmtime_r(&seconds, &parts);
    (void)strftime(day, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static void log_dates(const struct esk_options *options, const struct esk_log *log,
                      const struct esk_certificates *certificates) {
    const char *file = text(options, ESK_OPTION_TLS_CERT);
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    char from[32];
    char until[32];
    format_day(esk_certificates_from_ms(certificates), from);
    format_day(esk_certificates_until_ms(certificates), until);
    ESK_LOG(log, ESK_LOG_INFO, "certificate", "doors speak TLS", esk_field_text("file", file),
            esk_field_text("valid_until", until),
            esk_field_text("client_certificates",
                           esk_certificates_ask_clients(certificates) ? "required" : "not asked"));
    if (now_ms >= esk_certificates_until_ms(certificates)) {
        ESK_LOG(log, ESK_LOG_WARN, "certificate-expired",
                "the certificate has expired: clients will refuse it", esk_field_text("file", file),
                esk_field_text("valid_until", until));
    } else if (now_ms < esk_certificates_from_ms(certificates)) {
        ESK_LOG(log, ESK_LOG_WARN, "certificate-not-valid-yet",
                "the certificate is not valid yet: clients will refuse it",
                esk_field_text("file", file), esk_field_text("valid_from", from));
    }
}

enum esk_err esk_tls_check(const struct esk_options *options, struct esk_error *error) {
    bool has_certificate = text(options, ESK_OPTION_TLS_CERT);
    bool has_key = text(options, ESK_OPTION_TLS_KEY);
    if (has_certificate != has_key) {
        return esk_fail(error, ESK_ERR_INVALID, "%s is given without %s: they go together",
                        has_key ? "--tls-key" : "--tls-cert", has_key ? "--tls-cert" : "--tls-key");
    }
    if (!has_certificate && text(options, ESK_OPTION_TLS_CLIENT_CA)) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "--tls-client-ca is given without --tls-cert and --tls-key");
    }
    return ESK_OK;
}

enum esk_err esk_tls_load(const struct esk_options *options, const struct esk_log *log,
                          struct esk_certificates **certificates, struct esk_error *error) {
    struct esk_certificate_files files = {
        .certificate = text(options, ESK_OPTION_TLS_CERT),
        .key = text(options, ESK_OPTION_TLS_KEY),
        .client_authorities = text(options, ESK_OPTION_TLS_CLIENT_CA),
    };
    *certificates = NULL;
    if (!files.certificate) {
        return ESK_OK;
    }
    enum esk_err err = esk_certificates_load(&files, certificates, error);
    if (err == ESK_OK) {
        log_dates(options, log, *certificates);
    }
    return err;
}

void esk_tls_reload(const struct esk_options *options, const struct esk_log *log,
                    struct esk_server *server) {
    struct esk_certificates *certificates;
    struct esk_error error;
    if (esk_tls_load(options, log, &certificates, &error) != ESK_OK) {
        ESK_LOG(log, ESK_LOG_ERROR, "certificate-reload-failed",
                "the certificate in use stays in use", esk_field_text("error", error.text));
        return;
    }
    if (!certificates) {
        esk_log_line(log, ESK_LOG_INFO, "hangup", "no certificates to load again", NULL, 0);
        return;
    }
    esk_server_set_certificates(server, certificates);
    esk_certificates_release(certificates);
    esk_log_line(log, ESK_LOG_INFO, "certificate-reloaded", "new connections get it", NULL, 0);
}
