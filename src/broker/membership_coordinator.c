/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator of the groups in a shard's offset partitions: heartbeats and assignments are
 * answered from the state as it is; changes wait in the group's line. Deadlines are in memory:
 * after a start every member has the whole time-out again. One heap and one timer a shard, and a
 * heartbeat only moves its deadline later, so the timer fires once for the earliest, not for each.
 */
#include "broker/membership_private.h"

#include "base/assert.h"

#include <stdlib.h>

#define MS_NS UINT64_C(1000000)
#define EXPIRE_PER_TURN 1000 /* members; about 0.2 us each */

/* --- groups --- */

static struct eski_group *group_find(const struct esk_broker_shard *shard, struct esk_slice name) {
    return esk_map_get(&shard->coordinator->groups, name);
}

static struct eski_group *group_make(struct esk_broker_shard *shard, struct esk_slice name,
                                     uint32_t partition) {
    struct eski_group *group = group_find(shard, name);
    if (group == NULL) {
        group = esk_alloc_zeroed(1, sizeof(*group) + name.size);
        group->coordinator = shard->coordinator;
        group->partition = partition;
        group->name_size = name.size;
        memcpy(group->name, name.data, name.size);
        esk_u64_map_init(&group->watches);
        esk_list_init(&group->line);
        esk_map_put(&shard->coordinator->groups, name, group);
    }
    return group;
}

static void group_destroy(struct eski_group *group) {
    size_t position = 0;
    void *value;
    while (esk_u64_map_next(&group->watches, &position, NULL, &value)) {
        struct eski_watch *watch = value;
        esk_deadlines_remove(&group->coordinator->deadlines, &watch->deadline);
        free(watch);
    }
    esk_u64_map_fini(&group->watches);
    free(group);
}

/* --- deadlines --- */

static void arm(struct eski_coordinator *coordinator) {
    const struct esk_deadline *first = esk_deadlines_min(&coordinator->deadlines);
    struct esk_broker_shard *shard = coordinator->shard;
    if (first == NULL || shard->stopping ||
        (coordinator->timer_due_ns != 0 && coordinator->timer_due_ns <= first->due_ns)) {
        return;
    }
    coordinator->timer_due_ns = first->due_ns;
    esk_timer_start(shard->loop, &coordinator->timer, first->due_ns);
}

static void refresh(struct eski_watch *watch, uint64_t in_ms) {
    struct eski_coordinator *coordinator = watch->group->coordinator;
    uint64_t due_ns = esk_loop_now_ns(coordinator->shard->loop) + in_ms * MS_NS;
    watch->expired = false;
    esk_deadlines_push(&coordinator->deadlines, &watch->deadline, due_ns);
    arm(coordinator);
}

void eski_group_refresh(struct eski_group *group, uint64_t member_id, uint64_t in_ms) {
    struct eski_watch *watch = esk_u64_map_get(&group->watches, member_id);
    if (watch != NULL) {
        refresh(watch, in_ms);
    }
}

static uint64_t timeout_ms(const struct eski_group *group) {
    return group->coordinator->shard->broker->options.member_timeout_ms;
}

/* A change of the coordinator's own. */
static void queue_own(struct eski_group *group, enum eski_member_act act, uint64_t member_id) {
    struct eski_member_job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->act = act;
    job->home = job->coordinator = group->coordinator->shard;
    job->group = eski_group_name(group);
    job->partition = group->partition;
    job->member_id = member_id;
    eski_group_queue(group, job);
}

static void timer_run(struct esk_timer *timer) {
    struct eski_coordinator *coordinator = ESK_CONTAINER(timer, struct eski_coordinator, timer);
    uint64_t now = esk_loop_now_ns(coordinator->shard->loop);
    coordinator->timer_due_ns = 0;
    for (unsigned i = 0; i < EXPIRE_PER_TURN; i++) {
        struct esk_deadline *deadline = esk_deadlines_pop(&coordinator->deadlines, now);
        if (deadline == NULL) {
            break;
        }
        struct eski_watch *watch = ESK_CONTAINER(deadline, struct eski_watch, deadline);
        watch->expired = true;
        queue_own(watch->group, ESKI_EXPIRE, watch->member_id);
    }
    arm(coordinator);
}

static void drop_watches(struct eski_group *group, const struct esk_membership *membership) {
    uint64_t *gone = esk_alloc((group->watches.count + 1) * sizeof(*gone));
    size_t count = 0;
    size_t position = 0;
    uint64_t id;
    void *value;
    while (esk_u64_map_next(&group->watches, &position, &id, &value)) {
        if (membership == NULL || esk_membership_find(membership, id) == membership->member_count) {
            gone[count++] = id;
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct eski_watch *watch = esk_u64_map_remove(&group->watches, gone[i]);
        esk_deadlines_remove(&group->coordinator->deadlines, &watch->deadline);
        free(watch);
    }
    free(gone);
}

void eski_group_sync(struct eski_group *group) {
    const struct esk_consumer_group *state = eski_group_state(group);
    drop_watches(group, state == NULL ? NULL : &state->membership);
    group->generation = state == NULL ? 0 : state->generation;
    for (uint32_t i = 0; state != NULL && i < state->membership.member_count; i++) {
        uint64_t id = state->membership.members[i].id;
        if (esk_u64_map_get(&group->watches, id) == NULL) {
            struct eski_watch *watch = esk_alloc_zeroed(1, sizeof(*watch));
            watch->group = group;
            watch->member_id = id;
            esk_u64_map_put(&group->watches, id, watch);
            refresh(watch, timeout_ms(group));
        }
    }
}

/* --- answers from the state --- */

static const struct esk_group_member *member_of(const struct esk_consumer_group *state,
                                                uint64_t member_id) {
    uint32_t at = state == NULL ? 0 : esk_membership_find(&state->membership, member_id);
    return state == NULL || at == state->membership.member_count ? NULL
                                                                 : &state->membership.members[at];
}

bool eski_group_collect(const struct eski_group *group, struct eski_member_job *job) {
    const struct esk_consumer_group *state = eski_group_state(group);
    const struct esk_group_member *member = member_of(state, job->member_id);
    if (member == NULL) {
        return false;
    }
    const struct esk_membership *membership = &state->membership;
    size_t room = 0;
    for (uint32_t i = 0; i < member->topic_count; i++) {
        room += membership->topics[member->topics[i]].partition_count;
    }
    free(job->held);
    job->held = esk_alloc((room + 1) * sizeof(*job->held));
    job->held_count = 0;
    job->generation = state->generation;
    uint16_t position = (uint16_t)(member - membership->members);
    for (uint32_t i = 0; i < member->topic_count; i++) {
        const struct esk_group_topic *topic = &membership->topics[member->topics[i]];
        for (uint32_t p = 0; p < topic->partition_count; p++) {
            if (topic->owners[p] == position) {
                job->held[job->held_count++] = (struct eski_held){topic->id, p};
            }
        }
    }
    return true;
}

void eski_group_hear(struct eski_group *group, const struct eski_member_job *job) {
    const struct esk_group_member *member = member_of(eski_group_state(group), job->member_id);
    if (member != NULL && esk_group_member_fits(member->owner, job->owner)) {
        eski_group_refresh(group, job->member_id, timeout_ms(group));
    }
}

static enum esk_err unknown_member(struct eski_member_job *job) {
    return esk_fail(&job->error, ESK_ERR_NOT_FOUND, "member_id: no such member of the group");
}

static enum esk_err foreign_member(struct eski_member_job *job) {
    return esk_fail(&job->error, ESK_ERR_FORBIDDEN, "member_id: the member is of another key");
}

static enum esk_err heartbeat(struct eski_group *group, struct eski_member_job *job) {
    const struct esk_consumer_group *state = group == NULL ? NULL : eski_group_state(group);
    const struct esk_group_member *member = member_of(state, job->member_id);
    if (member == NULL) {
        job->status = ESK_MEMBER_UNKNOWN;
        return ESK_OK;
    }
    if (!esk_group_member_fits(member->owner, job->owner)) {
        return foreign_member(job);
    }
    eski_group_refresh(group, job->member_id, timeout_ms(group));
    job->generation = state->generation;
    job->status = job->operation->known_generation == state->generation
                      ? ESK_MEMBER_OK
                      : ESK_MEMBER_REBALANCE_REQUIRED;
    return ESK_OK;
}

static enum esk_err assignment(const struct eski_group *group, struct eski_member_job *job) {
    const struct esk_consumer_group *state = group == NULL ? NULL : eski_group_state(group);
    const struct esk_group_member *member = member_of(state, job->member_id);
    if (member == NULL) {
        return unknown_member(job);
    }
    if (!esk_group_member_fits(member->owner, job->owner)) {
        return foreign_member(job);
    }
    eski_group_collect(group, job);
    return ESK_OK;
}

/* --- the line --- */

static void line_run(struct esk_mail *mail) {
    eski_group_next(ESK_CONTAINER(mail, struct eski_group, mail));
}

void eski_group_queue(struct eski_group *group, struct eski_member_job *job) {
    esk_list_append(&group->line, &job->link);
    if (!group->busy) {
        group->busy = true;
        eski_begin(group->coordinator->shard);
        eski_post(group->coordinator->shard, &group->mail, line_run);
    }
}

/* Nobody needs it any more: no members, and no count of rebalances to show. */
static void release_if_idle(struct eski_group *group) {
    const struct esk_consumer_group *state = eski_group_state(group);
    if (state == NULL || state->generation == 0) {
        ESK_ASSERT(group->watches.count == 0);
        esk_map_remove(&group->coordinator->groups, eski_group_name(group));
        group_destroy(group);
    }
}

void eski_group_next(struct eski_group *group) {
    struct esk_link *first = esk_list_first(&group->line);
    if (first == NULL) {
        group->busy = false;
        eski_end(group->coordinator->shard);
        release_if_idle(group);
    } else if (ESK_CONTAINER(first, struct eski_member_job, link)->act == ESKI_GROUP_DELETE) {
        eski_group_delete_start(group);
    } else {
        eski_rebalance_start(group);
    }
}

void eski_member_arrive(struct esk_mail *mail) {
    struct eski_member_job *job = ESK_CONTAINER(mail, struct eski_member_job, mail);
    struct esk_broker_shard *shard = job->coordinator;
    struct eski_group *group = group_find(shard, job->group);
    if (job->act == ESKI_HEARTBEAT) {
        eski_member_answer(job, heartbeat(group, job));
        return;
    }
    if (job->act == ESKI_ASSIGNMENT) {
        eski_member_answer(job, assignment(group, job));
        return;
    }
    eski_group_queue(group_make(shard, job->group, job->partition), job);
}

bool eski_membership_hold(struct esk_broker_shard *shard, struct esk_slice name,
                          struct esk_mail *mail) {
    struct eski_group *group = group_find(shard, name);
    if (group == NULL || !group->deleting) {
        return false;
    }
    mail->next = group->waiting;
    group->waiting = mail;
    return true;
}

/* --- life --- */

static void look_at(void *context, const struct esk_consumer_group *state) {
    struct esk_broker_shard *shard = context;
    if (state->membership.member_count > 0) {
        struct esk_slice name = esk_consumer_group_name(state);
        struct eski_group *group = group_make(
            shard, name, esk_offsets_partition(name, shard->broker->options.offset_partitions));
        eski_group_sync(group);
        queue_own(group, ESKI_TIDY, 0); /* a topic may have gone right before the last stop */
    }
}

void eski_membership_serve(struct esk_broker_shard *shard) {
    for (uint32_t i = 0; i < shard->broker->options.offset_partitions; i++) {
        if (shard->offsets[i] != NULL) {
            esk_offsets_each(shard->offsets[i], look_at, shard);
        }
    }
}

void eski_membership_topic_dropped(struct esk_broker_shard *shard, uint32_t partition) {
    size_t position = 0;
    void *value;
    while (esk_map_next(&shard->coordinator->groups, &position, NULL, &value)) {
        struct eski_group *group = value;
        const struct esk_consumer_group *state = eski_group_state(group);
        if (group->partition == partition && state != NULL && !group->deleting &&
            state->generation != group->generation) {
            group->generation = state->generation;
            group->rebalances++;
            queue_own(group, ESKI_TIDY, 0);
        }
    }
}

void eski_membership_each(const struct esk_broker_shard *shard,
                          void (*visit)(void *context, struct esk_slice group, uint64_t rebalances),
                          void *context) {
    size_t position = 0;
    void *value;
    while (esk_map_next(&shard->coordinator->groups, &position, NULL, &value)) {
        const struct eski_group *group = value;
        const struct esk_consumer_group *state = eski_group_state(group);
        if (state != NULL && state->generation > 0) {
            visit(context, eski_group_name(group), group->rebalances);
        }
    }
}

void eski_membership_init(struct esk_broker_shard *shard) {
    struct eski_coordinator *coordinator = esk_alloc_zeroed(1, sizeof(*coordinator));
    coordinator->shard = shard;
    coordinator->timer.run = timer_run;
    esk_map_init(&coordinator->groups);
    esk_deadlines_init(&coordinator->deadlines);
    shard->coordinator = coordinator;
}

void eski_membership_stop(struct esk_broker_shard *shard) {
    esk_timer_stop(shard->loop, &shard->coordinator->timer);
    shard->coordinator->timer_due_ns = 0;
}

void eski_membership_fini(struct esk_broker_shard *shard) {
    struct eski_coordinator *coordinator = shard->coordinator;
    if (coordinator == NULL) {
        return;
    }
    size_t position = 0;
    void *group;
    while (esk_map_next(&coordinator->groups, &position, NULL, &group)) {
        group_destroy(group);
    }
    esk_map_fini(&coordinator->groups);
    esk_deadlines_fini(&coordinator->deadlines);
    free(coordinator);
    shard->coordinator = NULL;
}
