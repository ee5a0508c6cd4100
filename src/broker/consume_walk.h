/* SPDX-License-Identifier: Apache-2.0 */
/* The records of a consume that ended well, one after the other, within its limits: what every door
 * encodes its answer from. One owner; any thread, while the consume's parts stay. */
#ifndef ESK_BROKER_CONSUME_WALK_H
#define ESK_BROKER_CONSUME_WALK_H

#include "broker/broker.h"
#include "model/record_batch.h"

struct esk_consume_walk {
    const struct esk_consume *consume; /* borrowed */
    uint64_t offset;                   /* the first wanted */
    /* Where the next read goes on, when no record is taken beyond the present one's predecessor. */
    uint64_t next_offset;

    /* The present record; it borrows from the parts, or from `inflated`. */
    struct esk_batch_header batch;
    struct esk_record record;
    uint64_t record_offset;

    /* The walk's own. */
    uint64_t bytes_left; /* of bytes_max */
    uint32_t records_left;
    uint32_t part;          /* the one to go on with, */
    uint32_t part_position; /* at its next batch */
    struct esk_record_iterator iterator;
    struct esk_buffer inflated;
    bool has_record;
    bool is_first;
};

/* From the first record at or after the effective offset. */
void esk_consume_walk_begin(struct esk_consume_walk *walk, const struct esk_consume *consume);
void esk_consume_walk_end(struct esk_consume_walk *walk);

/* Goes to the next record that the limits allow, and makes the one before it count; *found false:
 * there is none, next_offset is final. Inflates a compressed batch in one go, at most 64 MiB.
 * ESK_ERR_CORRUPT and others: a batch is not what it claims. */
enum esk_err esk_consume_walk_next(struct esk_consume_walk *walk, bool *found,
                                   struct esk_error *error);

/* Whether any batch of it is compressed, so that walking it takes long. */
bool esk_consume_is_compressed(const struct esk_consume *consume);

#endif
