/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the catalogue: a change waits in line in shard 0, where it is decided against the state
 * that it will meet, becomes one entry of group 0, and is carried to every shard's copy. */
#ifndef ESK_BROKER_CHANGES_H
#define ESK_BROKER_CHANGES_H

#include "broker/broker.h"
#include "cluster/catalogue.h"

/* The caller's; must stay until `done`. Any shard may begin one. */
struct esk_change {
    /* In shard 0's loop, at this change's turn; must not touch what the caller's loop owns, but for
     * what it set before and does not change until `done`. Fills *entry, whose slices are borrowed
     * until the call has returned and the payload is built, or refuses. ESK_OK with entry->kind 0:
     * nothing is to be written. */
    enum esk_err (*decide)(struct esk_change *change, const struct esk_catalogue *catalogue,
                           struct esk_catalogue_change *entry, struct esk_error *error);
    /* In the caller's loop, once, never inside the starting call: the change is durable and in
     * every shard's copy, or it failed. ESK_ERR_AGAIN: the disk became full within the write; it
     * may be written once there is room. */
    void (*done)(struct esk_change *change, enum esk_err err);
    bool frees_room;        /* goes on when the disk is full */
    struct esk_error error; /* out */
};
void esk_change_submit(struct esk_broker_shard *shard, struct esk_change *change);

#endif
