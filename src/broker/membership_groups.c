/* SPDX-License-Identifier: Apache-2.0 */
/* Groups as a whole: their list, gathered from all shards one offset partition a turn, and their
 * deletion. A deletion is two entries, the group's and its owner's row; commits wait in between, so
 * that none is written that belongs to nobody. */
#include "broker/membership_private.h"

#include <stdlib.h>
#include <string.h>

/* --- deletion --- */

struct deletion {
    struct eski_group *group;
    struct eski_member_job *job;
    struct esk_submit submit;
    struct esk_change change;
};

static void deletion_end(struct deletion *deletion, enum esk_err err) {
    struct eski_group *group = deletion->group;
    struct eski_member_job *job = deletion->job;
    struct esk_mail *waiting = group->waiting;
    struct esk_mail *in_order = NULL;
    free(deletion);
    group->deleting = false;
    group->waiting = NULL;
    while (waiting != NULL) {
        struct esk_mail *next = waiting->next;
        waiting->next = in_order;
        in_order = waiting;
        waiting = next;
    }
    while (in_order != NULL) {
        struct esk_mail *next = in_order->next;
        esk_post(&group->coordinator->shard->loop->executor, in_order);
        in_order = next;
    }
    eski_group_sync(group);
    eski_member_answer(job, err);
    eski_group_next(group);
}

static void released(struct esk_change *change, enum esk_err err) {
    struct deletion *deletion = ESK_CONTAINER(change, struct deletion, change);
    deletion->job->error = change->error;
    deletion_end(deletion, err);
}

static enum esk_err decide_release(struct esk_change *change, const struct esk_catalogue *catalogue,
                                   struct esk_catalogue_change *entry, struct esk_error *error) {
    (void)error;
    struct esk_slice name = eski_group_name(ESK_CONTAINER(change, struct deletion, change)->group);
    if (esk_owners_find(&catalogue->owners, name) != 0) {
        entry->kind = ESK_CATALOGUE_GROUP_RELEASED;
        entry->group_released = (struct esk_catalogue_group_released){name};
    }
    return ESK_OK;
}

static void release(struct deletion *deletion) {
    struct esk_broker_shard *shard = deletion->group->coordinator->shard;
    if (esk_owners_find(&shard->catalogue.owners, eski_group_name(deletion->group)) == 0) {
        deletion_end(deletion, ESK_OK);
        return;
    }
    deletion->change =
        (struct esk_change){.decide = decide_release, .done = released, .frees_room = true};
    esk_change_submit(shard, &deletion->change);
}

static void deleted(struct esk_submit *submit, enum esk_err err) {
    struct deletion *deletion = ESK_CONTAINER(submit, struct deletion, submit);
    if (err != ESK_OK) {
        deletion_end(deletion, err);
        return;
    }
    release(deletion);
}

static enum esk_err check_deletion(const struct eski_group *group, struct eski_member_job *job) {
    const struct esk_broker_shard *shard = group->coordinator->shard;
    const struct esk_consumer_group *state = eski_group_state(group);
    if (eski_group_ownership(shard, job->group, job->owner, job->admin) == ESKI_FOREIGN) {
        return eski_foreign_group(job->group, &job->error);
    }
    if (state != NULL && state->membership.member_count > 0) {
        return esk_fail(&job->error, ESK_ERR_CONFLICT, "the group has %u members",
                        state->membership.member_count);
    }
    if (state == NULL && esk_owners_find(&shard->catalogue.owners, job->group) == 0) {
        return esk_fail(&job->error, ESK_ERR_NOT_FOUND, "group '%.*s' does not exist",
                        (int)job->group.size, (const char *)job->group.data);
    }
    return ESK_OK;
}

void eski_group_delete_start(struct eski_group *group) {
    struct esk_link *link = esk_list_first(&group->line);
    struct eski_member_job *job = ESK_CONTAINER(link, struct eski_member_job, link);
    esk_list_remove(link);
    enum esk_err err = check_deletion(group, job);
    if (err != ESK_OK) {
        eski_member_answer(job, err);
        eski_group_next(group);
        return;
    }
    struct deletion *deletion = esk_alloc_zeroed(1, sizeof(*deletion));
    deletion->group = group;
    deletion->job = job;
    group->deleting = true;
    if (eski_group_state(group) == NULL) {
        release(deletion);
        return;
    }
    deletion->submit = (struct esk_submit){
        .kind = ESK_ENTRY_OFFSETS,
        .strict = true,
        .frees_room = true,
        .block = esk_offsets_delete_payload(eski_group_name(group)),
        .done = deleted,
    };
    esk_partition_submit(
        esk_shard_find(group->coordinator->shard->log, ESK_FIRST_OFFSET_GROUP + group->partition),
        &deletion->submit);
}

/* --- the list --- */

struct found {
    struct esk_group_view view;
    uint64_t *topics; /* by id */
};

struct listing_job {
    struct esk_mail mail;
    struct esk_broker_shard *home;
    struct esk_group_listing *listing;
    uint64_t owner;
    bool admin;
    uint32_t partition; /* the next to be looked at */
    struct esk_broker_shard *shard;
    struct found *found;
    size_t count, capacity;
};

static int compare_ids(const void *a, const void *b) {
    const uint64_t *left = a;
    const uint64_t *right = b;
    return *left < *right ? -1 : *left > *right;
}

static uint64_t *topics_of(const struct esk_consumer_group *group, uint32_t *count) {
    size_t most = group->commit_count + group->membership.topic_count;
    uint64_t *ids = esk_alloc((most + 1) * sizeof(*ids));
    size_t all = 0;
    for (uint32_t i = 0; i < group->membership.topic_count; i++) {
        ids[all++] = group->membership.topics[i].id;
    }
    for (size_t i = 0; i < group->commit_count; i++) {
        if (i == 0 || group->commits[i].topic != group->commits[i - 1].topic) {
            ids[all++] = group->commits[i].topic;
        }
    }
    qsort(ids, all, sizeof(*ids), compare_ids);
    *count = 0;
    for (size_t i = 0; i < all; i++) {
        if (*count == 0 || ids[*count - 1] != ids[i]) {
            ids[(*count)++] = ids[i];
        }
    }
    return ids;
}

static void add_group(void *context, const struct esk_consumer_group *group) {
    struct listing_job *job = context;
    struct esk_slice name = esk_consumer_group_name(group);
    if (!job->admin && esk_owners_find(&job->shard->catalogue.owners, name) != job->owner) {
        return;
    }
    if (job->count == job->capacity) {
        job->capacity = job->capacity == 0 ? 16 : 2 * job->capacity;
        job->found = esk_realloc(job->found, job->capacity * sizeof(*job->found));
    }
    struct found *found = &job->found[job->count++];
    *found = (struct found){.view = {
                                .name = esk_alloc(name.size + 1),
                                .name_size = name.size,
                                .members = group->membership.member_count,
                                .generation = group->generation,
                            }};
    memcpy(found->view.name, name.data, name.size);
    found->view.name[name.size] = '\0';
    found->topics = topics_of(group, &found->view.topic_count);
}

static int compare_texts(const void *a, const void *b) {
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

static int compare_views(const void *a, const void *b) {
    const struct esk_group_view *left = a;
    const struct esk_group_view *right = b;
    return strcmp(left->name, right->name);
}

/* Ids become names; topics that are gone have none. */
static struct esk_group_view name_topics(const struct esk_broker_shard *shard,
                                         struct found *found) {
    struct esk_group_view view = found->view;
    uint32_t count = 0;
    view.topics = esk_alloc((view.topic_count + 1) * sizeof(char *));
    for (uint32_t i = 0; i < view.topic_count; i++) {
        const struct esk_topic *topic = esk_catalogue_topic(&shard->catalogue, found->topics[i]);
        if (topic != NULL && !topic->deleted && topic->serving) {
            view.topics[count++] = esk_text_copy(topic->name);
        }
    }
    view.topic_count = count;
    qsort(view.topics, count, sizeof(char *), compare_texts);
    free(found->topics);
    return view;
}

static void list_back(struct esk_mail *mail) {
    struct listing_job *job = ESK_CONTAINER(mail, struct listing_job, mail);
    struct esk_group_listing *listing = job->listing;
    listing->groups = esk_alloc((job->count + 1) * sizeof(*listing->groups));
    listing->count = job->count;
    for (size_t i = 0; i < job->count; i++) {
        listing->groups[i] = name_topics(job->home, &job->found[i]);
    }
    qsort(listing->groups, listing->count, sizeof(*listing->groups), compare_views);
    eski_end(job->home);
    free(job->found);
    free(job);
    listing->done(listing, ESK_OK);
}

static void list_run(struct esk_mail *mail) {
    struct listing_job *job = ESK_CONTAINER(mail, struct listing_job, mail);
    esk_offsets_each(job->shard->offsets[job->partition], add_group, job);
    job->partition++;
    if (job->partition < job->home->broker->options.offset_partitions) {
        job->shard = eski_owner(job->home->broker, ESK_FIRST_OFFSET_GROUP + job->partition);
        eski_post(job->shard, mail, list_run);
    } else {
        eski_post(job->home, mail, list_back);
    }
}

void esk_broker_group_list(struct esk_broker_shard *shard, struct esk_group_listing *listing) {
    struct listing_job *job = esk_alloc_zeroed(1, sizeof(*job));
    job->home = shard;
    job->listing = listing;
    job->owner = listing->owner;
    job->admin = listing->admin;
    job->shard = eski_owner(shard->broker, ESK_FIRST_OFFSET_GROUP);
    eski_begin(shard);
    eski_post(job->shard, &job->mail, list_run);
}

void esk_group_listing_fini(struct esk_group_listing *listing) {
    for (size_t i = 0; i < listing->count; i++) {
        for (uint32_t t = 0; t < listing->groups[i].topic_count; t++) {
            free(listing->groups[i].topics[t]);
        }
        free(listing->groups[i].topics);
        free(listing->groups[i].name);
    }
    free(listing->groups);
    listing->groups = NULL;
    listing->count = 0;
}
