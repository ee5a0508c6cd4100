/* SPDX-License-Identifier: Apache-2.0 */
/* --tls-cert, --tls-key and --tls-client-ca: loaded at the start, which they can fail, and again
 * when asked, which changes nothing if it fails. Main thread. */
#ifndef ESK_ESKER_TLS_H
#define ESK_ESKER_TLS_H

#include "esker/options.h"
#include "observe/log.h"
#include "security/certificates.h"
#include "server/connection/server.h"

/* Whether the options are given as they must be. ESK_ERR_INVALID: one without the other. */
enum esk_err esk_tls_check(const struct esk_options *options, struct esk_error *error);

/* Of options that are checked. *certificates is owned, or NULL: no TLS. ESK_ERR_INVALID: a file is
 * not what it should be; ESK_ERR_IO: cannot be read. */
enum esk_err esk_tls_load(const struct esk_options *options, const struct esk_log *log,
                          struct esk_certificates **certificates, struct esk_error *error);

/* Loads again for connections to come. What fails is logged. */
void esk_tls_reload(const struct esk_options *options, const struct esk_log *log,
                    struct esk_server *server);

#endif
