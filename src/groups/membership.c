/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes: uvarint count of topics, then for each its id as u64 and its uvarint count of
 * partitions; uvarint count of members, then for each its id and owner as u64, the uvarint count of
 * its topics and their positions; last, topic by topic, the owner of each partition as uvarint, 0
 * for nobody, else the member's position + 1. */
#include "groups/membership.h"

#include "model/limits.h"

#include <stdlib.h>

#define TOPIC_BYTES_MIN 9   /* of a topic's head: id, count */
#define MEMBER_BYTES_MIN 17 /* id, owner, count */

void esk_membership_fini(struct esk_membership *membership) {
    for (uint32_t i = 0; i < membership->member_count; i++) {
        free(membership->members[i].topics);
    }
    for (uint32_t i = 0; i < membership->topic_count; i++) {
        free(membership->topics[i].owners);
    }
    free(membership->members);
    free(membership->topics);
    *membership = (struct esk_membership){0};
}

uint32_t esk_membership_find(const struct esk_membership *membership, uint64_t member_id) {
    uint32_t low = 0;
    uint32_t high = membership->member_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (membership->members[middle].id < member_id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < membership->member_count && membership->members[low].id == member_id
               ? low
               : membership->member_count;
}

uint32_t esk_membership_topic(const struct esk_membership *membership, uint64_t topic) {
    uint32_t low = 0;
    uint32_t high = membership->topic_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (membership->topics[middle].id < topic) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < membership->topic_count && membership->topics[low].id == topic
               ? low
               : membership->topic_count;
}

bool esk_membership_drop_topic(struct esk_membership *membership, uint64_t topic) {
    uint32_t at = esk_membership_topic(membership, topic);
    if (at == membership->topic_count) {
        return false;
    }
    free(membership->topics[at].owners);
    membership->topic_count--;
    memmove(&membership->topics[at], &membership->topics[at + 1],
            (membership->topic_count - at) * sizeof(membership->topics[0]));
    for (uint32_t i = 0; i < membership->member_count; i++) {
        struct esk_group_member *member = &membership->members[i];
        uint32_t kept = 0;
        for (uint32_t t = 0; t < member->topic_count; t++) {
            uint16_t position = member->topics[t];
            if (position != at) {
                member->topics[kept++] = (uint16_t)(position - (position > at));
            }
        }
        member->topic_count = kept;
    }
    return true;
}

/* --- bytes --- */

void esk_membership_encode(const struct esk_membership *membership, struct esk_buffer *out) {
    esk_buffer_uvarint(out, membership->topic_count);
    for (uint32_t i = 0; i < membership->topic_count; i++) {
        esk_buffer_u64(out, membership->topics[i].id);
        esk_buffer_uvarint(out, membership->topics[i].partition_count);
    }
    esk_buffer_uvarint(out, membership->member_count);
    for (uint32_t i = 0; i < membership->member_count; i++) {
        const struct esk_group_member *member = &membership->members[i];
        esk_buffer_u64(out, member->id);
        esk_buffer_u64(out, member->owner);
        esk_buffer_uvarint(out, member->topic_count);
        for (uint32_t t = 0; t < member->topic_count; t++) {
            esk_buffer_uvarint(out, member->topics[t]);
        }
    }
    for (uint32_t i = 0; i < membership->topic_count; i++) {
        const struct esk_group_topic *topic = &membership->topics[i];
        uint8_t *start = esk_buffer_grow(out, (size_t)topic->partition_count * 3);
        uint8_t *at = start;
        for (uint32_t p = 0; p < topic->partition_count; p++) {
            uint16_t owner = topic->owners[p];
            at = esk_store_uvarint(at, owner == ESK_NOBODY ? 0 : owner + 1u);
        }
        out->size += (size_t)(at - start);
    }
}

static enum esk_err refused(struct esk_error *error, const char *what) {
    return esk_fail(error, ESK_ERR_CORRUPT, "a group's membership: %s", what);
}

static enum esk_err read_topics(struct esk_reader *reader, struct esk_membership *membership,
                                struct esk_error *error) {
    uint32_t count = esk_read_uvarint32(reader);
    if (count > esk_reader_left(reader) / TOPIC_BYTES_MIN || count >= UINT16_MAX) {
        return refused(error, "more topics than bytes");
    }
    membership->topics = esk_alloc_zeroed(count + 1, sizeof(membership->topics[0]));
    for (uint32_t i = 0; i < count; i++) {
        struct esk_group_topic *topic = &membership->topics[i];
        topic->id = esk_read_u64(reader);
        topic->partition_count = esk_read_uvarint32(reader);
        membership->topic_count++;
        if (reader->failed || topic->partition_count == 0 ||
            topic->partition_count > ESK_TOPIC_PARTITIONS_MAX ||
            (i > 0 && topic->id <= membership->topics[i - 1].id)) {
            return refused(error, "a topic that cannot be");
        }
    }
    return ESK_OK;
}

static enum esk_err read_member(struct esk_reader *reader, uint32_t topic_count,
                                struct esk_group_member *member, struct esk_error *error) {
    member->id = esk_read_u64(reader);
    member->owner = esk_read_u64(reader);
    uint32_t count = esk_read_uvarint32(reader);
    if (reader->failed || count > esk_reader_left(reader) || count > topic_count) {
        return refused(error, "a member with more topics than there are");
    }
    member->topics = esk_alloc((count + 1) * sizeof(member->topics[0]));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t topic = esk_read_uvarint32(reader);
        if (reader->failed || topic >= topic_count || (i > 0 && topic <= member->topics[i - 1])) {
            return refused(error, "a member with topics that cannot be");
        }
        member->topics[member->topic_count++] = (uint16_t)topic;
    }
    return ESK_OK;
}

static enum esk_err read_members(struct esk_reader *reader, struct esk_membership *membership,
                                 struct esk_error *error) {
    uint32_t count = esk_read_uvarint32(reader);
    if (count > esk_reader_left(reader) / MEMBER_BYTES_MIN || count >= ESK_NOBODY) {
        return refused(error, "more members than bytes");
    }
    membership->members = esk_alloc_zeroed(count + 1, sizeof(membership->members[0]));
    for (uint32_t i = 0; i < count; i++) {
        struct esk_group_member *member = &membership->members[i];
        membership->member_count++;
        enum esk_err err = read_member(reader, membership->topic_count, member, error);
        if (err != ESK_OK) {
            return err;
        }
        if (member->id == 0 || (i > 0 && member->id <= membership->members[i - 1].id)) {
            return refused(error, "members out of order");
        }
    }
    return ESK_OK;
}

/* reads[m]: whether member m reads the topic at hand. */
static enum esk_err read_owners(struct esk_reader *reader, struct esk_membership *membership,
                                uint32_t at, const bool *reads, struct esk_error *error) {
    struct esk_group_topic *topic = &membership->topics[at];
    if (topic->partition_count > esk_reader_left(reader)) {
        return refused(error, "more partitions than bytes");
    }
    topic->owners = esk_alloc(topic->partition_count * sizeof(topic->owners[0]));
    for (uint32_t p = 0; p < topic->partition_count; p++) {
        uint32_t owner = esk_read_uvarint32(reader);
        if (reader->failed || owner > membership->member_count ||
            (owner > 0 && !reads[owner - 1])) {
            return refused(error, "an owner that cannot be");
        }
        topic->owners[p] = owner == 0 ? ESK_NOBODY : (uint16_t)(owner - 1);
    }
    return ESK_OK;
}

static enum esk_err read_assignment(struct esk_reader *reader, struct esk_membership *membership,
                                    struct esk_error *error) {
    uint32_t count = membership->member_count;
    uint32_t *next = esk_alloc_zeroed(count + 1, sizeof(*next)); /* topic of each member */
    bool *reads = esk_alloc(count + 1);
    enum esk_err err = ESK_OK;
    for (uint32_t i = 0; i < membership->topic_count && err == ESK_OK; i++) {
        for (uint32_t m = 0; m < count; m++) {
            const struct esk_group_member *member = &membership->members[m];
            reads[m] = next[m] < member->topic_count && member->topics[next[m]] == i;
            next[m] += reads[m];
        }
        err = read_owners(reader, membership, i, reads, error);
    }
    free(next);
    free(reads);
    return err;
}

enum esk_err esk_membership_decode(struct esk_slice bytes, struct esk_membership *membership,
                                   struct esk_error *error) {
    struct esk_membership read = {0};
    struct esk_reader reader = esk_reader(bytes);
    enum esk_err err = read_topics(&reader, &read, error);
    if (err == ESK_OK) {
        err = read_members(&reader, &read, error);
    }
    if (err == ESK_OK) {
        err = read_assignment(&reader, &read, error);
    }
    if (err == ESK_OK && (reader.failed || esk_reader_left(&reader) > 0)) {
        err = refused(error, "it does not end where its bytes end");
    }
    if (err != ESK_OK) {
        esk_membership_fini(&read);
        return err;
    }
    *membership = read;
    return ESK_OK;
}
