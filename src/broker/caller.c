/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every caller, wherever it came from. */
#include "broker/caller.h"

struct esk_caller esk_caller_hold(const struct esk_caller *caller) {
    if (caller->key != NULL) {
        esk_key_hold(caller->key);
    }
    return *caller;
}

void esk_caller_release(struct esk_caller *caller) {
    esk_key_release(caller->key);
    *caller = (struct esk_caller){0};
}

enum esk_err esk_caller_revoked_error(struct esk_error *error) {
    return esk_fail(error, ESK_ERR_UNAUTHENTICATED, "the key is unknown or was revoked");
}

enum esk_err esk_caller_check(const struct esk_caller *caller, enum esk_action action,
                              struct esk_slice topic, struct esk_error *error) {
    if (esk_caller_may(caller, action, topic)) {
        return ESK_OK;
    }
    if (action == ESK_ACTION_ADMIN) {
        return esk_fail(error, ESK_ERR_FORBIDDEN, "the key needs admin on *");
    }
    return esk_fail(error, ESK_ERR_FORBIDDEN, "the key has no grant to %s this topic",
                    esk_action_name(action));
}
