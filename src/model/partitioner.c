/* SPDX-License-Identifier: Apache-2.0 */
/* The two ways from a key to a partition. */
#include "model/partitioner.h"

#include "base/assert.h"
#include "base/hash.h"

int32_t esk_partition_for_key(enum esk_partitioner partitioner, struct esk_slice key,
                              int32_t partition_count) {
    ESK_ASSERT(partition_count >= 1);
    if (partitioner == ESK_PARTITIONER_MURMUR2) {
        return (int32_t)(esk_murmur2(key.data, key.size) & INT32_MAX) % partition_count;
    }
    /* The remainder first: the lowest int32 has no positive counterpart. */
    int32_t partition = (int32_t)esk_fnv1a32(key.data, key.size) % partition_count;
    return partition < 0 ? -partition : partition;
}

const char *esk_partitioner_name(enum esk_partitioner partitioner) {
    return partitioner == ESK_PARTITIONER_MURMUR2 ? "murmur2" : "fnv1a";
}

bool esk_partitioner_from_name(struct esk_slice name, enum esk_partitioner *partitioner) {
    for (int i = ESK_PARTITIONER_FNV1A; i <= ESK_PARTITIONER_MURMUR2; i++) {
        if (esk_slice_equal(name, esk_slice_text(esk_partitioner_name((enum esk_partitioner)i)))) {
            *partitioner = (enum esk_partitioner)i;
            return true;
        }
    }
    return false;
}
