/* SPDX-License-Identifier: Apache-2.0 */
#include "broker_clients.h"

#include "base/list.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>

#define TOPICS_MAX 2

struct act {
    struct esk_member_operation operation;
    struct bc_client *client;
    struct be_member *member;
    struct esk_slice topics[TOPICS_MAX];
    struct bm_topic *models[TOPICS_MAX];
    uint64_t sent_ns;
    uint64_t least; /* generation answered before */
    bool is_join, is_leave;
};

static const char *const group_names[BM_GROUPS] = {"analytics", "billing"};

/* The coordinator counts from the beginning of the turn in which it hears of a member, and a loop
 * may be held up within a turn. */
#define TURN_NS (8 * SIM_MS)

static uint64_t timeout_ns(const struct bs *bs) {
    return bs->options.member_timeout_ms * SIM_MS - TURN_NS;
}

static uint32_t name_index(const struct bs *bs, const char *topic) {
    for (uint32_t i = 0; i < BM_NAMES; i++) {
        if (bs->model.names[i] && strcmp(bs->model.names[i]->name, topic) == 0) {
            return i;
        }
    }
    return BM_NAMES;
}

/* No other member had, or has, one of these partitions in this generation. */
static void check_partitions(struct bs *bs, const struct act *act) {
    const struct esk_member_operation *operation = &act->operation;
    for (size_t i = 0; i < operation->partition_count; i++) {
        const struct esk_member_partition *partition = &operation->partitions[i];
        uint64_t topic = name_index(bs, partition->topic);
        uint64_t key = operation->generation << 16 | (uint64_t)act->member->group << 12 |
                       topic << 8 | partition->partition;
        uint64_t id = strtoull(operation->member + 2, NULL, 16);
        void *before = esk_u64_map_put(&bs->members.holders, key, (void *)(uintptr_t)id);
        if (topic == BM_NAMES || partition->partition >= BM_PARTITIONS) {
            sim_run_fail(bs->run, "a member has %s/%u", partition->topic, partition->partition);
        } else if (before && before != (void *)(uintptr_t)id) {
            sim_run_fail(bs->run, "%s/%u has two members in generation %" PRIu64, partition->topic,
                         partition->partition, operation->generation);
        }
    }
}

static void note_generation(struct bs *bs, const struct act *act) {
    uint64_t generation = act->operation.generation;
    uint64_t *newest = &bs->members.generations[act->member->group];
    if (generation < act->least) {
        sim_run_fail(bs->run, "group %s is in generation %" PRIu64 ", was in %" PRIu64,
                     group_names[act->member->group], generation, act->least);
    }
    *newest = generation > *newest ? generation : *newest;
}

/* The member is none any more: that must have a reason. */
static void gone(struct bs *bs, const struct act *act) {
    struct be_member *member = act->member;
    bool silent = bs->run->world.now_ns - member->sign_ns >= timeout_ns(bs);
    if (!member->uncertain && !silent) {
        sim_run_fail(bs->run, "member %s of %s is gone, %" PRIu64 " us after its last sign of life",
                     member->id, group_names[member->group],
                     (bs->run->world.now_ns - member->sign_ns) / SIM_US);
    }
    member->id[0] = '\0';
}

static bool tolerates(const struct bs *bs, const struct act *act, enum esk_err err) {
    bool tolerated = bs_tolerates(bs, err, NULL);
    for (size_t i = 0; i < TOPICS_MAX; i++) {
        tolerated |= act->models[i] && bs_tolerates(bs, err, act->models[i]);
    }
    return tolerated;
}

static void failed(struct bs *bs, const struct act *act, enum esk_err err) {
    sim_trace(&bs->run->world, "refused", "member", err, act->client->id);
    if (err == ESK_ERR_NOT_FOUND && !act->is_join) {
        gone(bs, act);
    } else if (!tolerates(bs, act, err)) {
        sim_run_fail(bs->run, "member of %s: error %d: %s", group_names[act->member->group],
                     (int)err, act->operation.error.text);
    } else if (act->is_leave) {
        act->member->id[0] = '\0'; /* it may be one or not */
    }
}

/* A join that gives the member it asked for another id found it gone. */
static void joined(struct bs *bs, const struct act *act) {
    struct be_member *member = act->member;
    if (member->id[0] && strcmp(member->id, act->operation.member) != 0) {
        gone(bs, act);
    }
    memcpy(member->id, act->operation.member, sizeof(member->id));
    member->leaving = member->uncertain = false;
}

static void done(struct esk_member_operation *operation, enum esk_err err) {
    struct act *act = ESK_CONTAINER(operation, struct act, operation);
    struct bs *bs = act->client->bs;
    struct be_member *member = act->member;
    act->client->in_flight--;
    bs->in_flight--;
    member->busy = false;
    if (err != ESK_OK) {
        failed(bs, act, err);
    } else if (act->is_leave) {
        member->id[0] = '\0';
    } else if (operation->status == ESK_MEMBER_UNKNOWN) {
        gone(bs, act);
    } else {
        if (act->is_join) {
            joined(bs, act);
        }
        note_generation(bs, act);
        check_partitions(bs, act);
        if (act->is_join || operation->partitions == NULL) { /* an assignment is no sign of life */
            /* a removal that had begun before a late sign goes through, some time */
            member->uncertain |=
                !act->is_join && bs->run->world.now_ns - member->sign_ns >= timeout_ns(bs);
            member->sign_ns = act->sent_ns;
        }
        member->generation = operation->generation;
    }
    esk_member_operation_fini(operation);
    free(act);
}

static uint32_t draw_topics(struct bs *bs, struct act *act) {
    uint32_t count = 0;
    for (size_t i = 0; i < TOPICS_MAX; i++) {
        struct bm_topic *topic = bs->model.names[sim_below(&bs->run->random, BM_NAMES)];
        if (topic && topic->created && !topic->deleting) {
            act->models[count] = topic;
            act->topics[count++] = esk_slice_text(topic->name);
        }
    }
    return count;
}

static void send(struct act *act, void (*call)(struct esk_broker_shard *shard,
                                               struct esk_member_operation *operation)) {
    struct bs *bs = act->client->bs;
    struct be_member *member = act->member;
    member->busy = true;
    act->client->in_flight++;
    bs->in_flight++;
    act->sent_ns = bs->run->world.now_ns;
    act->least = bs->members.generations[member->group];
    act->operation.group = esk_slice_text(group_names[member->group]);
    act->operation.known_generation = member->generation;
    act->operation.done = done;
    if (member->id[0]) {
        act->operation.member_id = esk_slice_text(member->id);
    }
    const char *what = act->is_join                         ? "join"
                       : act->is_leave                      ? "leave"
                       : call == esk_broker_group_heartbeat ? "heartbeat"
                                                            : "assignment";
    sim_trace(&bs->run->world, what, group_names[member->group],
              (uint64_t)(member - bs->members.members), member->generation);
    call(act->client->shard, &act->operation);
}

void be_act(struct bc_client *client) {
    struct bs *bs = client->bs;
    struct sim_random *random = &bs->run->random;
    struct be_member *member = &bs->members.members[sim_below(random, BE_MEMBERS)];
    if (member->busy) {
        return;
    }
    struct act *act = esk_alloc_zeroed(1, sizeof(*act));
    act->client = client;
    act->member = member;
    if (!member->id[0] || sim_one_in(random, 8)) {
        member->group = member->id[0] ? member->group : (uint32_t)sim_below(random, BM_GROUPS);
        act->is_join = true;
        act->operation.topics = act->topics;
        act->operation.topic_count = draw_topics(bs, act);
        if (act->operation.topic_count == 0) {
            free(act);
            return;
        }
        send(act, esk_broker_group_join);
    } else if (sim_one_in(random, 10)) {
        act->is_leave = member->leaving = true;
        send(act, esk_broker_group_leave);
    } else if (sim_one_in(random, 3)) {
        send(act, esk_broker_group_assignment);
    } else {
        send(act, esk_broker_group_heartbeat);
    }
}

void be_over(struct bs *bs) {
    uint64_t now = bs->run->world.now_ns;
    for (size_t i = 0; i < BE_MEMBERS; i++) {
        struct be_member *member = &bs->members.members[i];
        member->busy = false;
        if (member->leaving) {
            member->id[0] = '\0';
            member->leaving = false;
        }
        member->uncertain |= now - member->sign_ns >= timeout_ns(bs);
        member->sign_ns = now; /* the next start gives it the whole time-out */
    }
}
