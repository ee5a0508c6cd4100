/* SPDX-License-Identifier: Apache-2.0 */
/* How many connections each address has, for doors that bound it. One table for all shards, behind
 * a lock that is held for a look-up: connections come and go, requests never get here. */
#ifndef ESK_SERVER_CONNECTION_ADDRESSES_H
#define ESK_SERVER_CONNECTION_ADDRESSES_H

#include "server/connection/connection.h"

struct esk_addresses;
struct esk_addresses *esk_addresses_create(uint32_t connections_max); /* of one address */
void esk_addresses_destroy(struct esk_addresses *addresses);          /* all have left */

/* One more connection; false: it would be one too many. Any thread, as the next. */
bool esk_addresses_enter(struct esk_addresses *addresses, const struct esk_peer *peer);
/* One that entered has gone. */
void esk_addresses_leave(struct esk_addresses *addresses, const struct esk_peer *peer);

#endif
