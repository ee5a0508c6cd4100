/* SPDX-License-Identifier: Apache-2.0 */
/* What TLS needs of files: a certificate with its chain, its private key and, to ask clients for
 * certificates of theirs, the authorities that sign those. Loaded as one, checked, and never
 * changed afterwards: a reload loads anew, and connections keep what they began with. */
#ifndef ESK_SECURITY_CERTIFICATES_H
#define ESK_SECURITY_CERTIFICATES_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct esk_certificate_files {
    const char *certificate;        /* PEM: the server's own, then those that signed it */
    const char *key;                /* PEM, not encrypted */
    const char *client_authorities; /* PEM; NULL: clients are not asked */
};

struct esk_certificates;

/* Blocks, any thread. Returns owned. The text of an error begins with the option that the file came
 * from (--tls-cert, --tls-key, --tls-client-ca). ESK_ERR_IO: cannot be read; ESK_ERR_INVALID: is
 * not what it should be, or certificate and key do not belong together. Dates are not checked. */
enum esk_err esk_certificates_load(const struct esk_certificate_files *files,
                                   struct esk_certificates **certificates, struct esk_error *error);

/* References; any thread. */
struct esk_certificates *esk_certificates_retain(struct esk_certificates *certificates);
void esk_certificates_release(struct esk_certificates *certificates); /* NULL does nothing */

/* When the server's own certificate is valid, milliseconds since 1970. */
int64_t esk_certificates_from_ms(const struct esk_certificates *certificates);
int64_t esk_certificates_until_ms(const struct esk_certificates *certificates);
bool esk_certificates_ask_clients(const struct esk_certificates *certificates);

/* Makes a GnuTLS session of a server use them; it must not outlive them. Any thread. False: no
 * memory. */
struct gnutls_session_int;
bool esk_certificates_apply(const struct esk_certificates *certificates,
                            struct gnutls_session_int *session);
/* Flags for gnutls_init of such a session. */
unsigned esk_certificates_session_flags(const struct esk_certificates *certificates);

#endif
