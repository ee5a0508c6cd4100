/* SPDX-License-Identifier: Apache-2.0 */
/* A budget of bytes that refills at a steady rate and holds one second of it. All shards draw on
 * the same one: a single word that is moved by compare and swap, so it is exact whoever draws. Any
 * thread. Times are of one monotonic clock; that of a loop's turn is good enough. */
#ifndef ESK_SECURITY_BUDGET_H
#define ESK_SECURITY_BUDGET_H

#include "base/bytes.h"

#include <stdatomic.h>

/* The time up to which traffic is paid for, in sixteenths of a nanosecond (a gigabyte a second is a
 * byte a nanosecond; each payment is rounded up by less than one of them). At now or before: the
 * budget is full. A second later than now: it is empty. Beyond: in debt. */
struct esk_budget {
    atomic_uint_fast64_t paid_until;
};

/* Draws bytes at this rate (bytes a second, not 0); false: there is not enough, nothing was drawn,
 * and *wait_ns until there is, unless others draw. More than a second's bytes never are. */
bool esk_budget_take(struct esk_budget *budget, uint64_t rate, uint64_t bytes, uint64_t now_ns,
                     uint64_t *wait_ns);
/* Gives back what was taken at this rate, or a part of it, at most once: as if it had not been
 * drawn, but for what has refilled meanwhile, which is lost. */
void esk_budget_return(struct esk_budget *budget, uint64_t rate, uint64_t bytes);
/* Draws in any case, into debt. */
void esk_budget_charge(struct esk_budget *budget, uint64_t rate, uint64_t bytes, uint64_t now_ns);
/* Whether anything is left; if not, *wait_ns until it is. */
bool esk_budget_has(const struct esk_budget *budget, uint64_t now_ns, uint64_t *wait_ns);

#endif
