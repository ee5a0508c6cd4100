/* SPDX-License-Identifier: Apache-2.0 */
/* Members of consumer groups in the simulation. What must hold over all lives: a partition has one
 * member in a generation; generations only grow; a member that was answered stays one, through
 * kills and losses of power, until it leaves or is silent for the time-out. */
#ifndef ESK_SIM_BROKER_MEMBERS_H
#define ESK_SIM_BROKER_MEMBERS_H

#include "base/map.h"
#include "broker/membership.h"

#define BE_MEMBERS 6

struct bs;
struct bc_client;

struct be_member {
    char id[ESK_MEMBER_ID_BYTES + 1]; /* empty: not a member */
    uint32_t group;
    bool busy;           /* with an operation of this life */
    bool leaving;        /* asked to */
    bool uncertain;      /* it may have been silent for too long */
    uint64_t sign_ns;    /* when its last answered sign of life was sent */
    uint64_t generation; /* that it knows */
};

struct be_model {
    struct be_member members[BE_MEMBERS];
    uint64_t generations[2];    /* the newest answered, by group */
    struct esk_u64_map holders; /* (group, generation, topic, partition) -> member */
};

/* One action of a client. */
void be_act(struct bc_client *client);
/* A life of the broker is over. */
void be_over(struct bs *bs);

#endif
