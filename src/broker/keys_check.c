/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/keys.h"

#include "model/names.h"

#include <inttypes.h>

enum esk_err esk_key_creation_check(const struct esk_key_creation *creation,
                                    struct esk_error *error) {
    enum esk_err err = esk_id_check(creation->name, "name", error);
    if (err != ESK_OK) {
        return err;
    }
    if (creation->grant_count < 1 || creation->grant_count > ESK_KEY_GRANTS_MAX) {
        return esk_fail(error, ESK_ERR_INVALID, "acls must have 1 to %d rules", ESK_KEY_GRANTS_MAX);
    }
    for (uint32_t i = 0; i < creation->grant_count; i++) {
        err = esk_grant_check(&creation->grants[i], error);
        if (err != ESK_OK) {
            struct esk_error reason = *error;
            return esk_fail(error, err, "acls[%" PRIu32 "].%s", i, reason.text);
        }
    }
    return ESK_OK;
}
