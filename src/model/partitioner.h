/* SPDX-License-Identifier: Apache-2.0 */
/* Which partition a key goes to: the same through every door, and for ever, since the order of a
 * key's records hangs on it. The numbers are stored in a topic's configuration. */
#ifndef ESK_MODEL_PARTITIONER_H
#define ESK_MODEL_PARTITIONER_H

#include "base/bytes.h"

enum esk_partitioner {
    ESK_PARTITIONER_FNV1A = 0,   /* as Sarama's default: remainder as int32, its sign dropped */
    ESK_PARTITIONER_MURMUR2 = 1, /* as the Java client */
};

/* 0 to partition_count - 1, which is at least 1. An empty key has a hash like any other. */
int32_t esk_partition_for_key(enum esk_partitioner partitioner, struct esk_slice key,
                              int32_t partition_count);

/* The configuration's word for it ("fnv1a", "murmur2"), and back: false for an unknown word. */
const char *esk_partitioner_name(enum esk_partitioner partitioner);
bool esk_partitioner_from_name(struct esk_slice name, enum esk_partitioner *partitioner);

#endif
