/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue's part about idempotent producers: their names, numeric ids and owners. Numeric ids
 * come from blocks, each of which is an entry of its own before one of its ids is used; none is
 * ever given twice. A part of one copy of the catalogue: one owner, as that. */
#ifndef ESK_CLUSTER_PRODUCERS_H
#define ESK_CLUSTER_PRODUCERS_H

#include "base/list.h"
#include "base/map.h"
#include "model/entries.h"

#define ESK_PRODUCER_BLOCK 1000    /* ids, as Kafka's controllers hand them out */
#define ESK_PRODUCER_FIRST_ID 1000 /* of the first block */
#define ESK_PRODUCERS_PER_OWNER 10000

struct esk_producer {
    uint64_t id;
    uint64_t owner;          /* 0: the anonymous one */
    int64_t used_ms;         /* as the catalogue has it, up to an hour late */
    int64_t seen_ms;         /* newest use in this copy's shard since the start; 0: none */
    struct esk_link recent;  /* in order of used_ms */
    struct esk_link touched; /* seen_ms is to be told to the catalogue */
    size_t name_size;
    char name[]; /* with a NUL */
};

struct esk_producers {
    struct esk_map by_name;
    struct esk_u64_map by_id;
    struct esk_u64_map owned; /* by owner: how many, as a pointer */
    struct esk_link recent;   /* the longest unused first */
    struct esk_link touched;  /* this shard's */
    uint64_t next_block;      /* the first id of the next block */
    uint64_t next_id, end_id; /* what is left of the block that names take theirs from */
};

void esk_producers_init(struct esk_producers *producers);
void esk_producers_fini(struct esk_producers *producers);

/* ESK_ERR_CORRUPT: it does not fit the state. */
enum esk_err esk_producers_apply(struct esk_producers *producers,
                                 const struct esk_catalogue_change *change,
                                 struct esk_error *error);
void esk_producers_snapshot(const struct esk_producers *producers,
                            void (*emit)(void *context, struct esk_slice payload), void *context);

/* NULL: unknown. */
struct esk_producer *esk_producer_find(const struct esk_producers *producers,
                                       struct esk_slice name);
struct esk_producer *esk_producer_by_id(const struct esk_producers *producers, uint64_t id);
size_t esk_producers_owned(const struct esk_producers *producers, uint64_t owner);

#endif
