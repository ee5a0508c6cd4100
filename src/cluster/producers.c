/* SPDX-License-Identifier: Apache-2.0 */
/* Changes are checked whole, whether they come from the journal, a snapshot or another shard: that
 * costs a look-up or two. A snapshot lists producers from the longest unused on, which is the order
 * that it has to make anew. */
#include "cluster/producers.h"

#include "model/names.h"

#include <stdlib.h>
#include <string.h>

void esk_producers_init(struct esk_producers *producers) {
    *producers = (struct esk_producers){.next_block = ESK_PRODUCER_FIRST_ID};
    esk_map_init(&producers->by_name);
    esk_u64_map_init(&producers->by_id);
    esk_u64_map_init(&producers->owned);
    esk_list_init(&producers->recent);
    esk_list_init(&producers->touched);
}

void esk_producers_fini(struct esk_producers *producers) {
    struct esk_link *link;
    while ((link = esk_list_first(&producers->recent)) != NULL) {
        esk_list_remove(link);
        free(ESK_CONTAINER(link, struct esk_producer, recent));
    }
    esk_map_fini(&producers->by_name);
    esk_u64_map_fini(&producers->by_id);
    esk_u64_map_fini(&producers->owned);
}

struct esk_producer *esk_producer_find(const struct esk_producers *producers,
                                       struct esk_slice name) {
    return esk_map_get(&producers->by_name, name);
}

struct esk_producer *esk_producer_by_id(const struct esk_producers *producers, uint64_t id) {
    return esk_u64_map_get(&producers->by_id, id);
}

size_t esk_producers_owned(const struct esk_producers *producers, uint64_t owner) {
    return (size_t)(uintptr_t)esk_u64_map_get(&producers->owned, owner);
}

static enum esk_err misfit(struct esk_error *error, const char *what, uint64_t id) {
    return esk_fail(error, ESK_ERR_CORRUPT,
                    "the catalogue's entry does not fit: %s (producer id %llu)", what,
                    (unsigned long long)id);
}

static void count_owned(struct esk_producers *producers, uint64_t owner, bool more) {
    size_t count = esk_producers_owned(producers, owner);
    count = more ? count + 1 : count - 1;
    if (count == 0) {
        esk_u64_map_remove(&producers->owned, owner);
    } else { /* never NULL, and never followed */
        esk_u64_map_put(&producers->owned, owner, (void *)(uintptr_t)count);
    }
}

static enum esk_err apply_block(struct esk_producers *producers,
                                const struct esk_catalogue_producer_block *block,
                                struct esk_error *error) {
    if (block->first != producers->next_block || block->count == 0 ||
        block->count > INT64_MAX - block->first) {
        return misfit(error, "a block out of order", block->first);
    }
    producers->next_block = block->first + block->count;
    if (block->names != 0) {
        producers->next_id = block->first;
        producers->end_id = producers->next_block;
    }
    return ESK_OK;
}

static enum esk_err apply_ids(struct esk_producers *producers,
                              const struct esk_catalogue_producer_ids *ids,
                              struct esk_error *error) {
    if (ids->next_block < producers->next_block || ids->next_block > INT64_MAX ||
        ids->next_id > ids->end_id || ids->end_id > ids->next_block) {
        return misfit(error, "ids would be used again", ids->next_block);
    }
    producers->next_block = ids->next_block;
    producers->next_id = ids->next_id;
    producers->end_id = ids->end_id;
    return ESK_OK;
}

static enum esk_err apply_created(struct esk_producers *producers,
                                  const struct esk_catalogue_producer_created *created,
                                  struct esk_error *error) {
    uint64_t id = created->producer_id;
    if (esk_id_check(created->name, "producer_id", NULL) != ESK_OK) {
        return misfit(error, "not a producer's name", id);
    }
    if (esk_producer_find(producers, created->name) != NULL ||
        esk_producer_by_id(producers, id) != NULL) {
        return misfit(error, "the producer exists", id);
    }
    if (id > producers->next_id || id >= producers->end_id) {
        return misfit(error, "an id of no block", id);
    }
    producers->next_id += id == producers->next_id; /* else from a snapshot */
    struct esk_producer *producer = esk_alloc_zeroed(1, sizeof(*producer) + created->name.size + 1);
    producer->id = id;
    producer->owner = created->owner;
    producer->used_ms = created->used_ms;
    producer->name_size = created->name.size;
    memcpy(producer->name, created->name.data, created->name.size);
    esk_list_append(&producers->recent, &producer->recent);
    esk_list_init(&producer->touched);
    esk_map_put(&producers->by_name, esk_slice(producer->name, producer->name_size), producer);
    esk_u64_map_put(&producers->by_id, id, producer);
    count_owned(producers, producer->owner, true);
    return ESK_OK;
}

static enum esk_err apply_owned(struct esk_producers *producers,
                                const struct esk_catalogue_producer_owned *owned,
                                struct esk_error *error) {
    struct esk_producer *producer = esk_producer_by_id(producers, owned->producer_id);
    if (producer == NULL) {
        return misfit(error, "no such producer to own", owned->producer_id);
    }
    count_owned(producers, producer->owner, false);
    producer->owner = owned->owner;
    count_owned(producers, producer->owner, true);
    return ESK_OK;
}

static void forget(struct esk_producers *producers, struct esk_producer *producer) {
    esk_map_remove(&producers->by_name, esk_slice(producer->name, producer->name_size));
    esk_u64_map_remove(&producers->by_id, producer->id);
    count_owned(producers, producer->owner, false);
    esk_list_remove(&producer->recent);
    esk_list_remove(&producer->touched);
    free(producer);
}

/* used_ms NULL: they are forgotten. */
static enum esk_err apply_each(struct esk_producers *producers, struct esk_slice ids,
                               const int64_t *used_ms, struct esk_error *error) {
    if (ids.size % 8 != 0) {
        return misfit(error, "half an id", 0);
    }
    for (size_t at = 0; at < ids.size; at += 8) {
        struct esk_producer *producer = esk_producer_by_id(producers, esk_load_u64(ids.data + at));
        if (producer == NULL) {
            return misfit(error, "no such producer", esk_load_u64(ids.data + at));
        }
        if (used_ms == NULL) {
            forget(producers, producer);
        } else {
            producer->used_ms = *used_ms;
            esk_list_remove(&producer->recent);
            esk_list_append(&producers->recent, &producer->recent);
        }
    }
    return ESK_OK;
}

enum esk_err esk_producers_apply(struct esk_producers *producers,
                                 const struct esk_catalogue_change *change,
                                 struct esk_error *error) {
    switch (change->kind) {
    case ESK_CATALOGUE_PRODUCER_BLOCK:
        return apply_block(producers, &change->producer_block, error);
    case ESK_CATALOGUE_PRODUCER_IDS:
        return apply_ids(producers, &change->producer_ids, error);
    case ESK_CATALOGUE_PRODUCER_CREATED:
        return apply_created(producers, &change->producer_created, error);
    case ESK_CATALOGUE_PRODUCER_OWNED:
        return apply_owned(producers, &change->producer_owned, error);
    case ESK_CATALOGUE_PRODUCERS_USED:
        return apply_each(producers, change->producers_used.ids, &change->producers_used.used_ms,
                          error);
    case ESK_CATALOGUE_PRODUCERS_FORGOTTEN:
        return apply_each(producers, change->producers_forgotten.ids, NULL, error);
    default:
        return misfit(error, "not about producers", 0);
    }
}

static void emit_change(struct esk_buffer *payload, const struct esk_catalogue_change *change,
                        void (*emit)(void *context, struct esk_slice payload), void *context) {
    payload->size = 0;
    esk_catalogue_encode(payload, change);
    emit(context, esk_buffer_slice(payload));
}

void esk_producers_snapshot(const struct esk_producers *producers,
                            void (*emit)(void *context, struct esk_slice payload), void *context) {
    struct esk_buffer payload;
    if (producers->next_block == ESK_PRODUCER_FIRST_ID) {
        return; /* nothing was ever given out */
    }
    esk_buffer_init(&payload);
    struct esk_catalogue_change change = {
        .kind = ESK_CATALOGUE_PRODUCER_IDS,
        .producer_ids = {producers->next_block, producers->next_id, producers->end_id},
    };
    emit_change(&payload, &change, emit, context);
    for (const struct esk_link *link = producers->recent.next; link != &producers->recent;
         link = link->next) {
        const struct esk_producer *producer = ESK_CONTAINER(link, struct esk_producer, recent);
        change = (struct esk_catalogue_change){
            .kind = ESK_CATALOGUE_PRODUCER_CREATED,
            .producer_created = {producer->id, producer->owner, producer->used_ms,
                                 esk_slice(producer->name, producer->name_size)},
        };
        emit_change(&payload, &change, emit, context);
    }
    esk_buffer_fini(&payload);
}
