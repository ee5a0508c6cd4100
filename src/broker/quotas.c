/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/quotas.h"

#include "security/usage.h"

#include <inttypes.h>

#define SECOND_NS UINT64_C(1000000000)

static struct esk_usage *usage_of(const struct esk_caller *caller) {
    return caller != NULL && caller->key != NULL ? caller->key->usage : NULL;
}

static void count(atomic_uint_fast64_t *counter, uint64_t more) {
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static enum esk_err throttle(struct esk_usage *usage, const char *field, uint64_t rate,
                             uint64_t wait_ns, uint32_t *retry_after_s, struct esk_error *error) {
    uint64_t seconds = (wait_ns + SECOND_NS - 1) / SECOND_NS;
    *retry_after_s = seconds > 1 ? (uint32_t)seconds : 1;
    count(&usage->throttled, 1);
    return esk_fail(error, ESK_ERR_THROTTLED,
                    "over the key's quota, %s of %" PRIu64 "; try again in %" PRIu32 " s", field,
                    rate, *retry_after_s);
}

enum esk_err esk_quota_take_produce(const struct esk_caller *caller, uint64_t bytes,
                                    uint64_t now_ns, uint32_t *retry_after_s,
                                    struct esk_error *error) {
    struct esk_usage *usage = usage_of(caller);
    if (usage == NULL) {
        return ESK_OK;
    }
    uint64_t rate = usage->produce_rate;
    uint64_t wait_ns;
    if (rate != 0 && bytes > rate) {
        return esk_fail(error, ESK_ERR_TOO_LARGE,
                        "the request's records have %" PRIu64
                        " bytes; the key's quota, produce_bytes_per_sec, holds %" PRIu64,
                        bytes, rate);
    }
    if (rate != 0 && !esk_budget_take(&usage->produce, rate, bytes, now_ns, &wait_ns)) {
        return throttle(usage, "produce_bytes_per_sec", rate, wait_ns, retry_after_s, error);
    }
    return ESK_OK;
}

void esk_quota_settle_produce(const struct esk_caller *caller, uint64_t taken, uint64_t written) {
    struct esk_usage *usage = usage_of(caller);
    if (usage == NULL) {
        return;
    }
    if (usage->produce_rate != 0 && written < taken) {
        esk_budget_return(&usage->produce, usage->produce_rate, taken - written);
    }
    count(&usage->produced_bytes, written);
}

enum esk_err esk_quota_check_consume(const struct esk_caller *caller, uint64_t now_ns,
                                     uint32_t *retry_after_s, struct esk_error *error) {
    struct esk_usage *usage = usage_of(caller);
    uint64_t wait_ns;
    if (usage == NULL || usage->consume_rate == 0 ||
        esk_budget_has(&usage->consume, now_ns, &wait_ns)) {
        return ESK_OK;
    }
    return throttle(usage, "consume_bytes_per_sec", usage->consume_rate, wait_ns, retry_after_s,
                    error);
}

void esk_quota_charge_consume(const struct esk_caller *caller, uint64_t bytes, uint64_t now_ns) {
    struct esk_usage *usage = usage_of(caller);
    if (usage == NULL || bytes == 0) {
        return;
    }
    if (usage->consume_rate != 0) {
        esk_budget_charge(&usage->consume, usage->consume_rate, bytes, now_ns);
    }
    count(&usage->consumed_bytes, bytes);
}
