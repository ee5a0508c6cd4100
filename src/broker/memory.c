/* SPDX-License-Identifier: Apache-2.0 */
/* A shard's share of the request memory: one counter that any thread may change, and, for its loop,
 * a line of waiting claims of each kind. Who gives something back while others wait posts a mail to
 * the loop, which looks along the lines. */
#include "broker/memory.h"

#include "base/assert.h"
#include "broker/broker_private.h"

bool esk_broker_memory_take(struct esk_broker_shard *shard, uint64_t bytes) {
    uint64_t used =
        atomic_fetch_add_explicit(&shard->memory_used, bytes, memory_order_relaxed) + bytes;
    if (used > shard->broker->memory_share && used != bytes) { /* one request always fits */
        esk_broker_memory_give(shard, bytes);
        return false;
    }
    return true;
}

/* In this order, and a claim gets into the line before it looks at the counter: one of both sees
 * the other. */
void esk_broker_memory_give(struct esk_broker_shard *shard, uint64_t bytes) {
    atomic_fetch_sub(&shard->memory_used, bytes);
    if (atomic_load(&shard->memory_awaited) && !atomic_exchange(&shard->memory_posted, true)) {
        esk_post(&shard->loop->executor, &shard->memory_mail);
    }
}

static bool grant(struct esk_broker_shard *shard, struct esk_memory_claim *claim) {
    uint64_t share = shard->broker->memory_share;
    bool is_body = claim->kind == ESK_MEMORY_BODY;
    uint64_t limit = is_body ? share / 2 : share / 4 * 3;
    uint64_t most = is_body ? share / 2 : share / 4;
    uint64_t bytes = claim->bytes < most ? claim->bytes : most;
    uint64_t used = atomic_fetch_add(&shard->memory_used, bytes) + bytes;
    if (used > limit && atomic_load(&shard->memory_held[claim->kind]) > 0) {
        atomic_fetch_sub(&shard->memory_used, bytes);
        return false;
    }
    claim->bytes = bytes;
    claim->is_granted = true;
    atomic_fetch_add(&shard->memory_held[claim->kind], 1);
    return true;
}

static void note_lines(struct esk_broker_shard *shard) {
    bool awaited = false;
    for (size_t i = 0; i < ESK_MEMORY_KINDS; i++) {
        awaited |= !esk_list_empty(&shard->memory_lines[i]);
    }
    atomic_store(&shard->memory_awaited, awaited);
}

static void on_given(struct esk_mail *mail) {
    struct esk_broker_shard *shard = ESK_CONTAINER(mail, struct esk_broker_shard, memory_mail);
    atomic_store(&shard->memory_posted, false);
    for (size_t i = ESK_MEMORY_KINDS; i-- > 0;) { /* those that end others first */
        struct esk_link *first;
        while ((first = esk_list_first(&shard->memory_lines[i]))) {
            struct esk_memory_claim *claim = ESK_CONTAINER(first, struct esk_memory_claim, link);
            if (!grant(shard, claim)) {
                break;
            }
            esk_list_remove(&claim->link);
            claim->granted(claim);
        }
    }
    note_lines(shard);
}

void eski_memory_start(struct esk_broker_shard *shard) {
    for (size_t i = 0; i < ESK_MEMORY_KINDS; i++) {
        esk_list_init(&shard->memory_lines[i]);
    }
    shard->memory_mail.run = on_given;
}

bool esk_broker_memory_claim(struct esk_broker_shard *shard, struct esk_memory_claim *claim) {
    ESK_ASSERT(esk_executor_is_current(&shard->loop->executor));
    struct esk_link *line = &shard->memory_lines[claim->kind];
    bool is_first = esk_list_empty(line);
    claim->is_granted = false;
    esk_list_init(&claim->link);
    esk_list_append(line, &claim->link);
    atomic_store(&shard->memory_awaited, true);
    if (!is_first || !grant(shard, claim)) {
        return false;
    }
    esk_list_remove(&claim->link);
    note_lines(shard);
    return true;
}

bool esk_broker_memory_take_more(struct esk_broker_shard *shard,
                                 const struct esk_memory_claim *claim, uint64_t bytes) {
    uint64_t used = atomic_fetch_add(&shard->memory_used, bytes) + bytes;
    if (used > shard->broker->memory_share && atomic_load(&shard->memory_held[claim->kind]) > 1) {
        esk_broker_memory_give(shard, bytes);
        return false;
    }
    return true;
}

void esk_broker_memory_settle(struct esk_broker_shard *shard, struct esk_memory_claim *claim) {
    if (claim->is_granted) {
        claim->is_granted = false;
        atomic_fetch_sub(&shard->memory_held[claim->kind], 1);
        esk_broker_memory_give(shard, claim->bytes);
    } else if (claim->link.next) {
        esk_list_remove(&claim->link);
        note_lines(shard);
    }
}
