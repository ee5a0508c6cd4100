/* SPDX-License-Identifier: Apache-2.0 */
/* What commands with --binary share: how libesker is told where the broker is. */
#ifndef ESK_ESK_BINARY_H
#define ESK_ESK_BINARY_H

#include "esk/session.h"

#include <esker/client.h>

#define ESK_BINARY_PORT 9001 /* as the API page has it */

struct esk_binary {
    struct esk_client_options options;
    char *address; /* owned, so that options.address stays */
};

/* By the settings: --binary-server, else the host of --server with port 9001; TLS when --server is
 * https. The session outlives it. */
void esk_binary_init(struct esk_binary *binary, const struct esk_session *session);
void esk_binary_fini(struct esk_binary *binary);

/* Whether what only the binary protocol has is asked for with it alone; else it complains. */
int esk_binary_check(const struct esk_arguments *arguments);

/* A client of that broker; NULL: it has complained. */
struct esk_client *esk_binary_open(const struct esk_session *session);

/* Complains of what a call ended with; ESK_EXIT_FAILED. */
int esk_binary_complain(const struct esk_client_error *error);

#endif
