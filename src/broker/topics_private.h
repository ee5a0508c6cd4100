/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of topics: catalogue changes whose entry is followed by work on the partitions. */
#ifndef ESK_BROKER_TOPICS_PRIVATE_H
#define ESK_BROKER_TOPICS_PRIVATE_H

#include "broker/changes_private.h"

enum eski_change_kind { ESKI_CREATE, ESKI_CONFIGURE, ESKI_DELETE, ESKI_FORGET };

struct eski_topic_job {
    struct eski_change change;             /* first */
    struct esk_topic_operation *operation; /* the client's; not touched in shard 0 */
    enum eski_change_kind kind;
    struct esk_slice name;                        /* borrowed from the operation */
    uint32_t partition_count;                     /* create */
    const struct esk_topic_config_change *config; /* borrowed likewise */
    struct esk_topic_config resolved;
    uint64_t first_group;
};

extern const struct eski_change_ops eski_topic_ops;

/* The entry is applied: what follows for this kind. In shard 0; they own the job. */
void eski_topic_create_applied(struct eski_topic_job *job);
void eski_topic_delete_applied(struct eski_topic_job *job);

#endif
