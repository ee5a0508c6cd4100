/* SPDX-License-Identifier: Apache-2.0 */
/* All partitions of a topic are alike to those who read it, so the work is done on counts: an edge
 * is a topic and a member that reads it, with how many it had and how many it has. First each keeps
 * what it has, then free partitions go to who has least, then the member with the most gives along
 * the shortest chain to who has least within reach, until that brings nothing more; a set of
 * members that is closed under reach and even is settled. At the end counts become partitions. */
#include "groups/assign.h"

#include <stdlib.h>

#define NO_EDGE UINT32_MAX

struct edge {
    uint16_t member;
    uint16_t topic;
    uint32_t before;
    uint32_t now;
};

struct plan {
    struct esk_membership *membership;
    struct edge *edges;     /* by topic, then member */
    uint32_t *topic_edges;  /* where those of a topic begin; one more at the end */
    uint32_t *member_edges; /* positions in edges, by member, then topic */
    uint32_t *member_first; /* where those of a member begin; one more at the end */
    uint32_t *loads;        /* by member */
    uint32_t *by_member;    /* scratch: the edge of a member in the topic at hand, or NO_EDGE */
    uint32_t *reached;      /* of the search: members in the order of reach, the source first */
    uint32_t reached_count;
    uint32_t *given, *taken; /* by member reached: the edges of the last step to it */
    bool *member_seen, *topic_seen, *settled;
    uint32_t settled_count;
};

static void plan_init(struct plan *plan, struct esk_membership *membership) {
    uint32_t members = membership->member_count;
    uint32_t topics = membership->topic_count;
    *plan = (struct plan){.membership = membership};
    plan->topic_edges = esk_alloc_zeroed(topics + 2, sizeof(uint32_t));
    plan->member_first = esk_alloc_zeroed(members + 1, sizeof(uint32_t));
    for (uint32_t m = 0; m < members; m++) {
        const struct esk_group_member *member = &membership->members[m];
        plan->member_first[m + 1] = plan->member_first[m] + member->topic_count;
        for (uint32_t i = 0; i < member->topic_count; i++) {
            plan->topic_edges[member->topics[i] + 2]++;
        }
    }
    for (uint32_t t = 0; t < topics; t++) {
        plan->topic_edges[t + 2] += plan->topic_edges[t + 1];
    }
    uint32_t count = plan->member_first[members];
    plan->edges = esk_alloc_zeroed(count + 1, sizeof(struct edge));
    plan->member_edges = esk_alloc((count + 1) * sizeof(uint32_t));
    for (uint32_t m = 0, next = 0; m < members; m++) { /* topic_edges[t + 1] moves to its end */
        const struct esk_group_member *member = &membership->members[m];
        for (uint32_t i = 0; i < member->topic_count; i++) {
            uint32_t at = plan->topic_edges[member->topics[i] + 1]++;
            plan->edges[at] = (struct edge){.member = (uint16_t)m, .topic = member->topics[i]};
            plan->member_edges[next++] = at;
        }
    }
    plan->loads = esk_alloc_zeroed(members + 1, sizeof(uint32_t));
    plan->by_member = esk_alloc((members + 1) * sizeof(uint32_t));
    plan->reached = esk_alloc((members + 1) * sizeof(uint32_t));
    plan->given = esk_alloc((members + 1) * sizeof(uint32_t));
    plan->taken = esk_alloc((members + 1) * sizeof(uint32_t));
    plan->member_seen = esk_alloc_zeroed(members + 1, sizeof(bool));
    plan->topic_seen = esk_alloc_zeroed(topics + 1, sizeof(bool));
    plan->settled = esk_alloc_zeroed(members + 1, sizeof(bool));
    for (uint32_t m = 0; m < members; m++) {
        plan->by_member[m] = NO_EDGE;
    }
}

static void plan_fini(struct plan *plan) {
    free(plan->edges);
    free(plan->topic_edges);
    free(plan->member_edges);
    free(plan->member_first);
    free(plan->loads);
    free(plan->by_member);
    free(plan->reached);
    free(plan->given);
    free(plan->taken);
    free(plan->member_seen);
    free(plan->topic_seen);
    free(plan->settled);
}

/* Fills by_member for one topic, or clears it. */
static void look_up(struct plan *plan, uint32_t topic, bool clear) {
    for (uint32_t e = plan->topic_edges[topic]; e < plan->topic_edges[topic + 1]; e++) {
        plan->by_member[plan->edges[e].member] = clear ? NO_EDGE : e;
    }
}

/* The edge of a partition's owner, or NO_EDGE. */
static uint32_t edge_of(const struct plan *plan, uint16_t owner) {
    return owner < plan->membership->member_count ? plan->by_member[owner] : NO_EDGE;
}

/* --- free partitions --- */

struct level {
    uint32_t edge;
    uint32_t load;
};

static int compare_levels(const void *a, const void *b) {
    const struct level *left = a;
    const struct level *right = b;
    if (left->load != right->load) {
        return left->load < right->load ? -1 : 1;
    }
    return left->edge < right->edge ? -1 : left->edge > right->edge;
}

/* Raises those with the least together, level by level. */
static void pour(struct plan *plan, uint32_t topic, uint32_t free_count) {
    uint32_t first = plan->topic_edges[topic];
    uint32_t count = plan->topic_edges[topic + 1] - first;
    struct level *levels = esk_alloc(count * sizeof(*levels));
    for (uint32_t i = 0; i < count; i++) {
        levels[i] = (struct level){first + i, plan->loads[plan->edges[first + i].member]};
    }
    qsort(levels, count, sizeof(*levels), compare_levels);
    uint32_t wide = 1;
    uint64_t left = free_count;
    while (wide < count && (uint64_t)wide * (levels[wide].load - levels[wide - 1].load) <= left) {
        left -= (uint64_t)wide * (levels[wide].load - levels[wide - 1].load);
        wide++;
    }
    uint32_t top = levels[wide - 1].load + (uint32_t)(left / wide);
    for (uint32_t i = 0; i < wide; i++) {
        uint32_t more = top - levels[i].load + (i < left % wide);
        plan->edges[levels[i].edge].now += more;
        plan->loads[plan->edges[levels[i].edge].member] += more;
    }
    free(levels);
}

struct order {
    uint32_t topic;
    uint32_t readers;
};

static int compare_orders(const void *a, const void *b) {
    const struct order *left = a;
    const struct order *right = b;
    if (left->readers != right->readers) {
        return left->readers < right->readers ? -1 : 1;
    }
    return left->topic < right->topic ? -1 : left->topic > right->topic;
}

/* Each keeps what it has; the rest goes to who has least, topics of few readers first. */
static void begin(struct plan *plan) {
    const struct esk_membership *membership = plan->membership;
    uint32_t *unowned = esk_alloc_zeroed(membership->topic_count + 1, sizeof(uint32_t));
    struct order *order = esk_alloc((membership->topic_count + 1) * sizeof(*order));
    for (uint32_t t = 0; t < membership->topic_count; t++) {
        const struct esk_group_topic *topic = &membership->topics[t];
        look_up(plan, t, false);
        for (uint32_t p = 0; p < topic->partition_count; p++) {
            uint32_t edge = edge_of(plan, topic->owners[p]);
            if (edge == NO_EDGE) {
                unowned[t]++;
            } else {
                plan->edges[edge].before++;
                plan->edges[edge].now++;
                plan->loads[topic->owners[p]]++;
            }
        }
        look_up(plan, t, true);
        order[t] = (struct order){t, plan->topic_edges[t + 1] - plan->topic_edges[t]};
    }
    qsort(order, membership->topic_count, sizeof(*order), compare_orders);
    for (uint32_t i = 0; i < membership->topic_count; i++) {
        if (order[i].readers > 0 && unowned[order[i].topic] > 0) {
            pour(plan, order[i].topic, unowned[order[i].topic]);
        }
    }
    free(unowned);
    free(order);
}

/* --- evening out --- */

/* One step of the search: everybody whom `from` can give a partition of the edge's topic. */
static void reach(struct plan *plan, uint32_t given) {
    uint32_t topic = plan->edges[given].topic;
    plan->topic_seen[topic] = true;
    for (uint32_t e = plan->topic_edges[topic]; e < plan->topic_edges[topic + 1]; e++) {
        uint32_t member = plan->edges[e].member;
        if (!plan->member_seen[member] && !plan->settled[member]) {
            plan->member_seen[member] = true;
            plan->given[member] = given;
            plan->taken[member] = e;
            plan->reached[plan->reached_count++] = member;
        }
    }
}

/* Whom the source can give to, directly or by a chain. What came anew is given on first: that move
 * is made anyway. */
static void search(struct plan *plan, uint32_t source) {
    memset(plan->member_seen, 0, plan->membership->member_count);
    memset(plan->topic_seen, 0, plan->membership->topic_count);
    plan->reached[0] = source;
    plan->reached_count = 1;
    plan->member_seen[source] = true;
    uint32_t all = plan->membership->member_count - plan->settled_count;
    for (uint32_t i = 0; i < plan->reached_count; i++) {
        uint32_t from = plan->reached[i];
        for (unsigned pass = 0; pass < 2; pass++) {
            for (uint32_t k = plan->member_first[from];
                 k < plan->member_first[from + 1] && plan->reached_count < all; k++) {
                uint32_t given = plan->member_edges[k];
                const struct edge *edge = &plan->edges[given];
                bool has = pass == 0 ? edge->now > edge->before : edge->now > 0;
                if (has && !plan->topic_seen[edge->topic]) {
                    reach(plan, given);
                }
            }
        }
    }
}

/* How many the chain from the source to this member lets through. */
static uint32_t chain_room(const struct plan *plan, uint32_t source, uint32_t member) {
    uint32_t room = UINT32_MAX;
    while (member != source) {
        const struct edge *given = &plan->edges[plan->given[member]];
        room = given->now < room ? given->now : room;
        member = given->member;
    }
    return room;
}

static void give(struct plan *plan, uint32_t source, uint32_t member, uint32_t count) {
    plan->loads[source] -= count;
    plan->loads[member] += count;
    while (member != source) {
        plan->edges[plan->taken[member]].now += count;
        plan->edges[plan->given[member]].now -= count;
        member = plan->edges[plan->given[member]].member;
    }
}

/* Gives from the source to those within reach that have at least two less, the least first: as
 * many as bring neither past the mean, else one. false: there was nothing to give. */
static bool relieve(struct plan *plan, uint32_t source) {
    uint64_t sum = 0;
    uint32_t count = 0;
    struct level *levels = esk_alloc(plan->reached_count * sizeof(*levels));
    for (uint32_t i = 0; i < plan->reached_count; i++) {
        uint32_t load = plan->loads[plan->reached[i]];
        sum += load;
        if (load + 2 <= plan->loads[source]) {
            levels[count++] = (struct level){plan->reached[i], load};
        }
    }
    qsort(levels, count, sizeof(*levels), compare_levels);
    uint32_t low = (uint32_t)(sum / plan->reached_count);
    uint32_t high = low + (sum % plan->reached_count > 0);
    bool gave = false;
    for (uint32_t i = 0; i < count && plan->loads[source] >= levels[i].load + 2; i++) {
        uint32_t room = chain_room(plan, source, levels[i].edge);
        uint32_t more = plan->loads[source] > high ? plan->loads[source] - high : 0;
        uint32_t lack = levels[i].load < low ? low - levels[i].load : 0;
        uint32_t amount = more < lack ? more : lack;
        amount = amount < room ? amount : room;
        if (amount == 0 && room > 0 && !gave) {
            give(plan, source, levels[i].edge, 1);
            gave = true;
            break; /* another may have more now */
        }
        if (amount > 0) {
            give(plan, source, levels[i].edge, amount);
            gave = true;
        }
    }
    free(levels);
    return gave;
}

static uint32_t most_loaded(const struct plan *plan) {
    uint32_t count = plan->membership->member_count;
    uint32_t most = count;
    for (uint32_t m = 0; m < count; m++) {
        if (!plan->settled[m] && (most == count || plan->loads[m] > plan->loads[most])) {
            most = m;
        }
    }
    return most;
}

static void even_out(struct plan *plan) {
    uint32_t source;
    while ((source = most_loaded(plan)) < plan->membership->member_count) {
        search(plan, source);
        if (!relieve(plan, source)) {
            for (uint32_t i = 0; i < plan->reached_count; i++) {
                plan->settled[plan->reached[i]] = true;
            }
            plan->settled_count += plan->reached_count;
        }
    }
}

/* --- moves that were not needed --- */

/* Where one gained and one lost partitions of a topic, and the first has one more in all, the move
 * is taken back: the counts only change places. */
static bool take_back(struct plan *plan, uint32_t topic) {
    bool changed = false;
    uint32_t end = plan->topic_edges[topic + 1];
    for (uint32_t l = plan->topic_edges[topic]; l < end; l++) {
        struct edge *lost = &plan->edges[l];
        for (uint32_t g = plan->topic_edges[topic]; g < end && lost->now < lost->before; g++) {
            struct edge *gained = &plan->edges[g];
            if (gained->now > gained->before &&
                plan->loads[gained->member] == plan->loads[lost->member] + 1) {
                gained->now--;
                lost->now++;
                plan->loads[gained->member]--;
                plan->loads[lost->member]++;
                changed = true;
            }
        }
    }
    return changed;
}

static void take_moves_back(struct plan *plan) {
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t t = 0; t < plan->membership->topic_count; t++) {
            changed |= take_back(plan, t);
        }
    }
}

/* --- counts become partitions --- */

static void place(struct plan *plan, uint32_t position) {
    struct esk_group_topic *topic = &plan->membership->topics[position];
    look_up(plan, position, false);
    for (uint32_t p = 0; p < topic->partition_count; p++) {
        uint32_t edge = edge_of(plan, topic->owners[p]);
        if (edge != NO_EDGE && plan->edges[edge].now > 0) {
            plan->edges[edge].now--;
        } else {
            topic->owners[p] = ESK_NOBODY;
        }
    }
    uint32_t edge = plan->topic_edges[position];
    for (uint32_t p = 0; p < topic->partition_count; p++) {
        while (edge < plan->topic_edges[position + 1] && plan->edges[edge].now == 0) {
            edge++;
        }
        if (topic->owners[p] == ESK_NOBODY && edge < plan->topic_edges[position + 1]) {
            topic->owners[p] = plan->edges[edge].member;
            plan->edges[edge].now--;
        }
    }
    look_up(plan, position, true);
}

void esk_membership_assign(struct esk_membership *membership) {
    struct plan plan;
    plan_init(&plan, membership);
    begin(&plan);
    even_out(&plan);
    take_moves_back(&plan);
    for (uint32_t t = 0; t < membership->topic_count; t++) {
        place(&plan, t);
    }
    plan_fini(&plan);
}
