/* SPDX-License-Identifier: Apache-2.0 */
/* Names of producers. A known one is a look-up in this shard's copy of the catalogue; the first use
 * of a name, and the first by a key of what was nobody's, is a change of the catalogue. */
#include "broker/producers_private.h"

#include <stdlib.h>

static enum esk_err not_yours(struct esk_slice name, struct esk_error *error) {
    return esk_fail(error, ESK_ERR_FORBIDDEN, "producer_id '%.*s' belongs to another key",
                    (int)name.size, (const char *)name.data);
}

/* Notes the use for the next round of producers_idle.c. */
static void touch(struct esk_broker_shard *shard, struct esk_producer *producer, int64_t now_ms) {
    producer->seen_ms = now_ms;
    if (now_ms - producer->used_ms >= eski_producer_tell_ms(shard->broker) &&
        esk_list_empty(&producer->touched)) {
        esk_list_append(&shard->catalogue.producers.touched, &producer->touched);
    }
}

enum esk_err eski_producer_resolve(struct esk_broker_shard *shard, struct esk_slice name,
                                   uint64_t owner, int64_t now_ms, uint64_t *id,
                                   struct esk_error *error) {
    struct esk_producer *producer = esk_producer_find(&shard->catalogue.producers, name);
    if (producer == NULL || (producer->owner == 0 && owner != 0)) {
        return ESK_ERR_AGAIN;
    }
    if (producer->owner != owner) {
        return not_yours(name, error);
    }
    touch(shard, producer, now_ms);
    *id = producer->id;
    return ESK_OK;
}

static enum esk_err check_count(const struct esk_producers *producers, uint64_t owner,
                                struct esk_error *error) {
    return esk_producers_owned(producers, owner) < ESK_PRODUCERS_PER_OWNER
               ? ESK_OK
               : esk_fail(error, ESK_ERR_FORBIDDEN,
                          "this key has %d producer ids; unused ones are forgotten after 7 days",
                          ESK_PRODUCERS_PER_OWNER);
}

static enum esk_err decide(struct esk_change *change, const struct esk_catalogue *catalogue,
                           struct esk_catalogue_change *entry, struct esk_error *error) {
    struct eski_producer_use *use = ESK_CONTAINER(change, struct eski_producer_use, change);
    const struct esk_producers *producers = &catalogue->producers;
    const struct esk_producer *producer = esk_producer_find(producers, use->name);
    use->block = false;
    if (producer != NULL && producer->owner == use->owner) {
        use->id = producer->id;
        return ESK_OK; /* another request was faster */
    }
    if (producer != NULL && producer->owner != 0) {
        return not_yours(use->name, error);
    }
    enum esk_err err = check_count(producers, use->owner, error);
    if (err != ESK_OK) {
        return err;
    }
    if (producer != NULL) {
        use->id = producer->id;
        entry->kind = ESK_CATALOGUE_PRODUCER_OWNED;
        entry->producer_owned = (struct esk_catalogue_producer_owned){producer->id, use->owner};
    } else if (producers->next_id == producers->end_id) {
        use->block = true;
        entry->kind = ESK_CATALOGUE_PRODUCER_BLOCK;
        entry->producer_block =
            (struct esk_catalogue_producer_block){producers->next_block, ESK_PRODUCER_BLOCK, 1};
    } else {
        use->id = producers->next_id;
        entry->kind = ESK_CATALOGUE_PRODUCER_CREATED;
        entry->producer_created = (struct esk_catalogue_producer_created){
            producers->next_id, use->owner, use->now_ms, use->name};
    }
    return ESK_OK;
}

static void changed(struct esk_change *change, enum esk_err err) {
    struct eski_producer_use *use = ESK_CONTAINER(change, struct eski_producer_use, change);
    if (err == ESK_OK && use->block) {
        esk_change_submit(use->shard, change);
        return;
    }
    use->done(use, err);
}

void eski_producer_use_start(struct eski_producer_use *use) {
    use->change.decide = decide;
    use->change.done = changed;
    use->now_ms = esk_wall_ms(use->shard->broker->options.platform);
    esk_change_submit(use->shard, &use->change);
}
