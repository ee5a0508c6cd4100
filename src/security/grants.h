/* SPDX-License-Identifier: Apache-2.0 */
/* What a key may do: rules of an action and a prefix of topics. Pure; any thread. */
#ifndef ESK_SECURITY_GRANTS_H
#define ESK_SECURITY_GRANTS_H

#include "base/bytes.h"
#include "base/error.h"

/* Each includes those above it. */
enum esk_action {
    ESK_ACTION_READ,
    ESK_ACTION_WRITE,
    ESK_ACTION_ADMIN, /* of everything: its prefix is "*" */
};

#define ESK_GRANT_PREFIX_BYTES_MAX 255 /* as long as a schema's subject may be */
#define ESK_KEY_GRANTS_MAX 100         /* of one key: each request may look at all of them */

struct esk_grant {
    enum esk_action action;
    struct esk_slice prefix; /* of topics, or "*" for all */
};

/* "read", "write" or "admin". */
const char *esk_action_name(enum esk_action action);
bool esk_action_parse(struct esk_slice text, enum esk_action *action);

/* Whether it can be a grant: ESK_ERR_INVALID with a text that begins with the field's name. */
enum esk_err esk_grant_check(const struct esk_grant *grant, struct esk_error *error);

/* The topic of that name and those below it, which go on with ".", "-" or "_"; a prefix that ends
 * in one of these: all names that begin with it; "*": all. */
bool esk_prefix_covers(struct esk_slice prefix, struct esk_slice topic);

bool esk_grants_allow(const struct esk_grant *grants, uint32_t count, enum esk_action action,
                      struct esk_slice topic);

#endif
