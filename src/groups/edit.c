/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts of members come first: each points to where its topics are listed, in the old membership
 * or in an edit. Then the topics of all drafts become the table, owners are carried over, and the
 * assignment is made anew. */
#include "groups/edit.h"

#include "groups/assign.h"
#include "model/limits.h"

#include <stdlib.h>

struct draft {
    uint64_t id;
    uint64_t owner;
    uint32_t old_position; /* UINT32_MAX: it was no member */
    bool gone;
    const struct esk_group_edit *edit; /* whose topics it reads; NULL: the old ones */
};

struct drafts {
    const struct esk_membership *old;
    struct draft *items; /* the old members in their order, then new ones */
    uint32_t count;
    uint32_t staying;
};

static uint32_t topic_count_of(const struct drafts *drafts, const struct draft *draft) {
    return draft->edit != NULL ? draft->edit->topic_count
                               : drafts->old->members[draft->old_position].topic_count;
}

/* The draft's topic number i, in order of ids. */
static const struct esk_group_topic *topic_of(const struct drafts *drafts,
                                              const struct draft *draft, uint32_t i) {
    return draft->edit != NULL
               ? &draft->edit->topics[i]
               : &drafts->old->topics[drafts->old->members[draft->old_position].topics[i]];
}

static struct draft *find(const struct drafts *drafts, uint64_t id) {
    uint32_t at = esk_membership_find(drafts->old, id);
    if (at == drafts->old->member_count) {
        while (at < drafts->count && drafts->items[at].id != id) {
            at++;
        }
    }
    return at < drafts->count && !drafts->items[at].gone ? &drafts->items[at] : NULL;
}

static void join(struct drafts *drafts, struct esk_group_edit *edit) {
    struct draft *draft = edit->member_id == 0 ? NULL : find(drafts, edit->member_id);
    if (draft != NULL && !esk_group_member_fits(draft->owner, edit->owner)) {
        edit->err = ESK_ERR_FORBIDDEN;
        return;
    }
    if (draft == NULL) {
        if (drafts->staying >= ESK_GROUP_MEMBERS_MAX) {
            edit->err = ESK_ERR_FORBIDDEN;
            return;
        }
        uint64_t id = edit->fresh_id;
        while (id == 0 || find(drafts, id) != NULL ||
               esk_membership_find(drafts->old, id) < drafts->old->member_count) {
            id++;
        }
        draft = &drafts->items[drafts->count++];
        *draft = (struct draft){.id = id, .owner = edit->owner, .old_position = UINT32_MAX};
        drafts->staying++;
    }
    edit->member_id = draft->id;
    draft->edit = edit;
}

static void leave(struct drafts *drafts, struct esk_group_edit *edit) {
    struct draft *draft = find(drafts, edit->member_id);
    if (draft == NULL) {
        edit->err = ESK_ERR_NOT_FOUND;
    } else if (!edit->forced && !esk_group_member_fits(draft->owner, edit->owner)) {
        edit->err = ESK_ERR_FORBIDDEN;
    } else {
        draft->gone = true;
        drafts->staying--;
    }
}

static int compare_drafts(const void *a, const void *b) {
    const struct draft *left = a;
    const struct draft *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* Who stays, by id. */
static void draft_members(struct drafts *drafts, const struct esk_membership *old,
                          struct esk_group_edit *edits, size_t count) {
    *drafts = (struct drafts){.old = old, .count = old->member_count, .staying = old->member_count};
    drafts->items = esk_alloc((old->member_count + count + 1) * sizeof(struct draft));
    for (uint32_t i = 0; i < old->member_count; i++) {
        drafts->items[i] = (struct draft){
            .id = old->members[i].id, .owner = old->members[i].owner, .old_position = i};
    }
    for (size_t i = 0; i < count; i++) {
        if (edits[i].err == ESK_OK && edits[i].join) {
            join(drafts, &edits[i]);
        } else if (edits[i].err == ESK_OK) {
            leave(drafts, &edits[i]);
        }
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < drafts->count; i++) {
        if (!drafts->items[i].gone) {
            drafts->items[kept++] = drafts->items[i];
        }
    }
    drafts->count = kept;
    qsort(drafts->items, kept, sizeof(struct draft), compare_drafts);
}

static int compare_topics(const void *a, const void *b) {
    const struct esk_group_topic *left = a;
    const struct esk_group_topic *right = b;
    return left->id < right->id ? -1 : left->id > right->id;
}

/* Topics that are new to the group, as often as joins name them, behind those in the table. */
static void add_new_topics(const struct drafts *drafts, bool *used, struct esk_membership *made) {
    for (uint32_t m = 0; m < drafts->count; m++) {
        const struct draft *draft = &drafts->items[m];
        uint32_t count = topic_count_of(drafts, draft);
        for (uint32_t i = 0; i < count; i++) {
            const struct esk_group_topic *topic = topic_of(drafts, draft, i);
            uint32_t old = draft->edit == NULL ? drafts->old->members[draft->old_position].topics[i]
                                               : esk_membership_topic(drafts->old, topic->id);
            if (old < drafts->old->topic_count) {
                used[old] = true;
            } else {
                made->topics[made->topic_count++] =
                    (struct esk_group_topic){topic->id, topic->partition_count, NULL};
            }
        }
    }
}

/* The table of all topics that somebody reads; owners are to be filled in. Answers how many
 * partitions they have. */
static uint64_t list_topics(const struct drafts *drafts, struct esk_membership *made) {
    const struct esk_membership *old = drafts->old;
    size_t most = old->topic_count;
    for (uint32_t m = 0; m < drafts->count; m++) {
        most += drafts->items[m].edit != NULL ? drafts->items[m].edit->topic_count : 0;
    }
    bool *used = esk_alloc_zeroed(old->topic_count + 1, sizeof(*used));
    made->topics = esk_alloc((most + 1) * sizeof(made->topics[0]));
    add_new_topics(drafts, used, made);
    for (uint32_t i = 0; i < old->topic_count; i++) {
        if (used[i]) {
            made->topics[made->topic_count++] =
                (struct esk_group_topic){old->topics[i].id, old->topics[i].partition_count, NULL};
        }
    }
    free(used);
    uint32_t listed = made->topic_count;
    uint64_t partitions = 0;
    qsort(made->topics, listed, sizeof(made->topics[0]), compare_topics);
    made->topic_count = 0;
    for (uint32_t i = 0; i < listed; i++) {
        if (made->topic_count == 0 ||
            made->topics[made->topic_count - 1].id != made->topics[i].id) {
            made->topics[made->topic_count++] = made->topics[i];
            partitions += made->topics[i].partition_count;
        }
    }
    return made->topic_count < UINT16_MAX ? partitions : UINT64_MAX;
}

static void list_members(const struct drafts *drafts, struct esk_membership *made) {
    const struct esk_membership *old = drafts->old;
    uint16_t *positions = esk_alloc((old->topic_count + 1) * sizeof(*positions));
    for (uint32_t i = 0; i < old->topic_count; i++) {
        positions[i] = (uint16_t)esk_membership_topic(made, old->topics[i].id);
    }
    made->members = esk_alloc_zeroed(drafts->count + 1, sizeof(made->members[0]));
    made->member_count = drafts->count;
    for (uint32_t m = 0; m < drafts->count; m++) {
        const struct draft *draft = &drafts->items[m];
        struct esk_group_member *member = &made->members[m];
        member->id = draft->id;
        member->owner = draft->owner;
        member->topic_count = topic_count_of(drafts, draft);
        member->topics = esk_alloc((member->topic_count + 1) * sizeof(member->topics[0]));
        for (uint32_t i = 0; i < member->topic_count; i++) {
            member->topics[i] =
                draft->edit == NULL
                    ? positions[old->members[draft->old_position].topics[i]]
                    : (uint16_t)esk_membership_topic(made, draft->edit->topics[i].id);
        }
    }
    free(positions);
}

/* Each partition with whom it is now, as far as that one stays. */
static void carry_owners(const struct drafts *drafts, struct esk_membership *made) {
    const struct esk_membership *old = drafts->old;
    uint16_t *positions = esk_alloc((old->member_count + 1) * sizeof(*positions));
    for (uint32_t m = 0; m < old->member_count; m++) {
        positions[m] = ESK_NOBODY;
    }
    for (uint32_t m = 0; m < drafts->count; m++) {
        if (drafts->items[m].old_position != UINT32_MAX) {
            positions[drafts->items[m].old_position] = (uint16_t)m;
        }
    }
    for (uint32_t t = 0; t < made->topic_count; t++) {
        struct esk_group_topic *topic = &made->topics[t];
        uint32_t before = esk_membership_topic(old, topic->id);
        bool known = before < old->topic_count &&
                     old->topics[before].partition_count == topic->partition_count;
        topic->owners = esk_alloc(topic->partition_count * sizeof(topic->owners[0]));
        for (uint32_t p = 0; p < topic->partition_count; p++) {
            uint16_t owner = known ? old->topics[before].owners[p] : ESK_NOBODY;
            topic->owners[p] = owner == ESK_NOBODY ? ESK_NOBODY : positions[owner];
        }
    }
    free(positions);
}

static bool same_members(const struct esk_membership *a, const struct esk_membership *b) {
    bool same = a->member_count == b->member_count;
    for (uint32_t m = 0; m < a->member_count && same; m++) {
        const struct esk_group_member *left = &a->members[m];
        const struct esk_group_member *right = &b->members[m];
        same = left->id == right->id && left->owner == right->owner &&
               left->topic_count == right->topic_count &&
               memcmp(left->topics, right->topics, left->topic_count * sizeof(uint16_t)) == 0;
    }
    return same;
}

static bool same_assignment(const struct esk_membership *a, const struct esk_membership *b) {
    bool same = a->topic_count == b->topic_count;
    for (uint32_t t = 0; t < a->topic_count && same; t++) {
        const struct esk_group_topic *left = &a->topics[t];
        const struct esk_group_topic *right = &b->topics[t];
        same = left->id == right->id && left->partition_count == right->partition_count &&
               memcmp(left->owners, right->owners, left->partition_count * sizeof(uint16_t)) == 0;
    }
    return same;
}

bool esk_membership_edit(const struct esk_membership *old, struct esk_group_edit *edits,
                         size_t count, struct esk_membership *made) {
    struct drafts drafts;
    *made = (struct esk_membership){0};
    draft_members(&drafts, old, edits, count);
    bool joins = false;
    if (list_topics(&drafts, made) > ESK_GROUP_PARTITIONS_MAX) {
        for (size_t i = 0; i < count; i++) {
            if (edits[i].join && edits[i].err == ESK_OK) {
                edits[i].err = ESK_ERR_FORBIDDEN;
                joins = true;
            }
        }
    }
    if (joins) { /* once more, without them */
        free(drafts.items);
        esk_membership_fini(made);
        return esk_membership_edit(old, edits, count, made);
    }
    list_members(&drafts, made);
    carry_owners(&drafts, made);
    free(drafts.items);
    esk_membership_assign(made);
    if (same_members(old, made) && same_assignment(old, made)) {
        esk_membership_fini(made);
        return false;
    }
    return true;
}

struct esk_membership esk_membership_copy(const struct esk_membership *membership) {
    struct esk_membership copy = *membership;
    copy.members = esk_alloc((copy.member_count + 1) * sizeof(copy.members[0]));
    copy.topics = esk_alloc((copy.topic_count + 1) * sizeof(copy.topics[0]));
    for (uint32_t i = 0; i < copy.member_count; i++) {
        copy.members[i] = membership->members[i];
        size_t size = copy.members[i].topic_count * sizeof(copy.members[i].topics[0]);
        copy.members[i].topics = esk_alloc(size + 1);
        memcpy(copy.members[i].topics, membership->members[i].topics, size);
    }
    for (uint32_t i = 0; i < copy.topic_count; i++) {
        copy.topics[i] = membership->topics[i];
        size_t size = copy.topics[i].partition_count * sizeof(copy.topics[i].owners[0]);
        copy.topics[i].owners = esk_alloc(size);
        memcpy(copy.topics[i].owners, membership->topics[i].owners, size);
    }
    return copy;
}
