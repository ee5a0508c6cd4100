/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ESK_BROKER_KEYS_PRIVATE_H
#define ESK_BROKER_KEYS_PRIVATE_H

#include "broker/broker_private.h"
#include "broker/keys.h"

/* keys.c: makes id, secret and hash; what follows is esk_change_submit. */
void eski_key_creation_prepare(struct esk_broker_shard *shard, struct esk_key_creation *creation);

#endif
