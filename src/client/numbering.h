/* SPDX-License-Identifier: Apache-2.0 */
/* The sequences of idempotent produces: one count for each topic and partition, under one producer
 * id that is made up at random. Pure but for the random number; one owner.
 *
 * A broker takes whatever sequence comes first from a producer that a partition does not know. So
 * until a partition's sequence 0 is acknowledged nothing may be sent behind it: if that request
 * were refused, a later one would be taken before it. */
#ifndef ESK_CLIENT_NUMBERING_H
#define ESK_CLIENT_NUMBERING_H

#include "base/bytes.h"

#define ESKI_PRODUCER_ID_BYTES 34 /* "c-" and 32 hexadecimal digits */

struct eski_counter {
    uint64_t next;         /* the next record's sequence */
    uint64_t acknowledged; /* all below it are written */
    uint32_t opener;       /* the id of the request that has sequence 0 */
};

struct eski_topic {
    struct eski_topic *following;
    char *name;                    /* owned */
    struct eski_counter *counters; /* by partition; owned */
    uint32_t count;
    uint32_t opening; /* counters of which 0 is given out and not acknowledged */
};

struct eski_numbering {
    char id[ESKI_PRODUCER_ID_BYTES + 1];
    struct eski_topic *topics; /* the last one used is first */
};

void eski_numbering_init(struct eski_numbering *numbering); /* with an id of its own */
void eski_numbering_fini(struct eski_numbering *numbering);
/* Another id; all counts begin at 0 again. */
void eski_numbering_renew(struct eski_numbering *numbering);
/* All counts go back to what is acknowledged. */
void eski_numbering_rewind(struct eski_numbering *numbering);

struct eski_topic *eski_numbering_topic(struct eski_numbering *numbering, struct esk_slice name);
/* partition is below ESK_TOPIC_PARTITIONS_MAX. */
struct eski_counter *eski_topic_counter(struct eski_topic *topic, uint32_t partition);

/* One more record of the partition is written. false: none was out. */
bool eski_topic_acknowledge(struct eski_topic *topic, uint32_t partition);
/* Whether the produce of this frame may be sent: it waits for no partition's sequence 0. */
bool eski_topic_may_send(const struct eski_topic *topic, const uint8_t *frame, size_t frame_size);

/* Writes this id and the next sequences into the frame of a produce (head and all, not compressed,
 * with an id of that length in it). */
void eski_numbering_number(struct eski_numbering *numbering, struct eski_topic *topic,
                           uint8_t *frame, size_t frame_size);

#endif
