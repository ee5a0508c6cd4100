/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas: bytes a second of a key, over all shards and doors, counted as record sizes (decoded key,
 * value and headers). A budget holds one second of traffic. Any thread, while the caller is kept;
 * a caller without a key (auth off), or NULL, has no quota and is not counted. */
#ifndef ESK_BROKER_QUOTAS_H
#define ESK_BROKER_QUOTAS_H

#include "broker/caller.h"

/* Before anything is written: draws on the produce budget. ESK_ERR_THROTTLED: *retry_after_s says
 * in how many seconds (1 or more) there will be enough. ESK_ERR_TOO_LARGE: there never will. */
enum esk_err esk_quota_take_produce(const struct esk_caller *caller, uint64_t bytes,
                                    uint64_t now_ns, uint32_t *retry_after_s,
                                    struct esk_error *error);

/* After it: `written` of the bytes that were taken count as produced, the others go back. */
void esk_quota_settle_produce(const struct esk_caller *caller, uint64_t taken, uint64_t written);

/* Before a read: ESK_ERR_THROTTLED while the consume budget is empty or in debt. */
enum esk_err esk_quota_check_consume(const struct esk_caller *caller, uint64_t now_ns,
                                     uint32_t *retry_after_s, struct esk_error *error);
/* After it, for the records that go to the client. */
void esk_quota_charge_consume(const struct esk_caller *caller, uint64_t bytes, uint64_t now_ns);

#endif
