/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a group belongs to. The row is made by the first join or commit of a key; the coordinator
 * looks again before it writes, so that nothing is written to a group that was deleted, and is
 * somebody else's, meanwhile. */
#include "broker/membership_private.h"

#include "base/list.h"
#include "model/limits.h"

enum eski_ownership eski_group_ownership(const struct esk_broker_shard *shard,
                                         struct esk_slice group, uint64_t owner, bool admin) {
    uint64_t row = esk_owners_find(&shard->catalogue.owners, group);
    if (row == owner) {
        return ESKI_OWNED;
    }
    if (row == 0) {
        return ESKI_UNOWNED;
    }
    return admin ? ESKI_OWNED : ESKI_FOREIGN;
}

enum esk_err eski_foreign_group(struct esk_slice group, struct esk_error *error) {
    return esk_fail(error, ESK_ERR_FORBIDDEN, "group '%.*s' belongs to another key",
                    group.size > ESK_ID_BYTES_MAX ? ESK_ID_BYTES_MAX : (int)group.size,
                    (const char *)group.data);
}

static enum esk_err decide(struct esk_change *change, const struct esk_catalogue *catalogue,
                           struct esk_catalogue_change *entry, struct esk_error *error) {
    const struct eski_claim *claim = ESK_CONTAINER(change, struct eski_claim, change);
    uint64_t row = esk_owners_find(&catalogue->owners, claim->group);
    if (row == 0) {
        entry->kind = ESK_CATALOGUE_GROUP_OWNED;
        entry->group_owned = (struct esk_catalogue_group_owned){claim->owner, claim->group};
        return ESK_OK;
    }
    return row == claim->owner || claim->admin ? ESK_OK : eski_foreign_group(claim->group, error);
}

static void done(struct esk_change *change, enum esk_err err) {
    struct eski_claim *claim = ESK_CONTAINER(change, struct eski_claim, change);
    claim->done(claim, err);
}

void eski_claim_start(struct esk_broker_shard *home, struct eski_claim *claim) {
    claim->change = (struct esk_change){.decide = decide, .done = done};
    esk_change_submit(home, &claim->change);
}
