/* SPDX-License-Identifier: Apache-2.0 */
#include "security/budget.h"

#define UNITS_PER_NS 16 /* a monotonic clock runs for 36 years before 64 bits of them are full */
#define SECOND (UINT64_C(1000000000) * UNITS_PER_NS)
#define DEBT_MAX (3600 * SECOND) /* an hour: no read is so large that a higher one were meant */

/* What the bytes take at this rate, rounded up. */
static uint64_t cost(uint64_t rate, uint64_t bytes) {
    if (bytes < UINT64_C(1) << 30) { /* 64 bits hold it: a few instructions */
        uint64_t product = bytes * SECOND;
        uint64_t units = product / rate + (product % rate != 0);
        return units < DEBT_MAX ? units : DEBT_MAX;
    }
    unsigned __int128 units = ((unsigned __int128)bytes * SECOND + rate - 1) / rate;
    return units < DEBT_MAX ? (uint64_t)units : DEBT_MAX;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t in_ns(uint64_t units) {
    return (units + UNITS_PER_NS - 1) / UNITS_PER_NS;
}

bool esk_budget_take(struct esk_budget *budget, uint64_t rate, uint64_t bytes, uint64_t now_ns,
                     uint64_t *wait_ns) {
    uint64_t now = now_ns * UNITS_PER_NS;
    uint64_t price = cost(rate, bytes);
    uint64_t paid = atomic_load_explicit(&budget->paid_until, memory_order_relaxed);
    uint64_t end;
    do {
        end = later(paid, now) + price;
        if (end > now + SECOND) {
            *wait_ns = in_ns(end - now - SECOND);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&budget->paid_until, &paid, end,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Never below zero: a draw moves the time on by at least its own cost, a part's is no higher. */
void esk_budget_return(struct esk_budget *budget, uint64_t rate, uint64_t bytes) {
    atomic_fetch_sub_explicit(&budget->paid_until, cost(rate, bytes), memory_order_relaxed);
}

void esk_budget_charge(struct esk_budget *budget, uint64_t rate, uint64_t bytes, uint64_t now_ns) {
    uint64_t now = now_ns * UNITS_PER_NS;
    uint64_t price = cost(rate, bytes);
    uint64_t paid = atomic_load_explicit(&budget->paid_until, memory_order_relaxed);
    uint64_t end;
    do {
        end = later(paid, now) + price;
        end = end < now + DEBT_MAX ? end : later(paid, now + DEBT_MAX);
    } while (!atomic_compare_exchange_weak_explicit(&budget->paid_until, &paid, end,
                                                    memory_order_relaxed, memory_order_relaxed));
}

bool esk_budget_has(const struct esk_budget *budget, uint64_t now_ns, uint64_t *wait_ns) {
    uint64_t empty = (now_ns * UNITS_PER_NS) + SECOND;
    uint64_t paid = atomic_load_explicit(&budget->paid_until, memory_order_relaxed);
    if (paid < empty) {
        return true;
    }
    *wait_ns = in_ns(paid - empty + 1);
    return false;
}
