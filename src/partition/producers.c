/* SPDX-License-Identifier: Apache-2.0 */
/* Windows in memory, bounded and counted in shard->producer_bytes: a shard has no more unknown
 * producers when its share is used up. They are found by numeric id, in the partition and in the
 * shard (to be listed and forgotten): nothing here looks through all of them but what says so. */
#include "partition/producers_private.h"

#include "base/assert.h"
#include "base/mutation.h"

#include <stdlib.h>

#define PRODUCER_BYTES (sizeof(struct eski_producer) + 96) /* with its places in two maps */
#define REAPED_PER_TURN 500 /* of a removed partition; there may be many of these in a turn */

/* One id's windows in a shard. */
struct ring {
    struct esk_link producers;
};

static void count_bytes(struct esk_shard *shard, uint64_t more, uint64_t less) {
    shard->producer_bytes = shard->producer_bytes + more - less;
    esk_counter_set(&shard->metrics.producer_bytes, shard->producer_bytes);
}

void eski_producers_init(struct esk_partition *partition) {
    esk_u64_map_init(&partition->producers);
    esk_list_init(&partition->producer_list);
    esk_list_init(&partition->awaits);
}

struct eski_producer *eski_producer_find(const struct esk_partition *partition, uint64_t id) {
    return esk_u64_map_get(&partition->producers, id);
}

static void join_siblings(struct esk_shard *shard, struct eski_producer *producer) {
    struct ring *ring = esk_u64_map_get(&shard->producers, producer->id);
    if (ring == NULL) {
        ring = esk_alloc(sizeof(*ring));
        esk_list_init(&ring->producers);
        esk_u64_map_put(&shard->producers, producer->id, ring);
    }
    esk_list_append(&ring->producers, &producer->sibling);
}

static void leave_siblings(struct esk_shard *shard, struct eski_producer *producer) {
    if (esk_list_empty(&producer->sibling)) {
        return; /* it left before */
    }
    struct ring *ring = esk_u64_map_get(&shard->producers, producer->id);
    esk_list_remove(&producer->sibling);
    if (esk_list_empty(&ring->producers)) {
        esk_u64_map_remove(&shard->producers, producer->id);
        free(ring);
    }
}

struct eski_producer *eski_producer_obtain(struct esk_partition *partition, uint64_t id) {
    struct eski_producer *producer = eski_producer_find(partition, id);
    if (producer != NULL) {
        return producer;
    }
    producer = esk_alloc_zeroed(1, sizeof(*producer));
    producer->partition = partition;
    producer->id = id;
    esk_list_init(&producer->line);
    esk_u64_map_put(&partition->producers, id, producer);
    esk_list_append(&partition->producer_list, &producer->link);
    join_siblings(partition->shard, producer);
    count_bytes(partition->shard, PRODUCER_BYTES, 0);
    return producer;
}

static void destroy(struct eski_producer *producer) {
    struct esk_partition *partition = producer->partition;
    if (partition->producer_cursor == &producer->link) {
        partition->producer_cursor = producer->link.next;
    }
    leave_siblings(partition->shard, producer);
    esk_list_remove(&producer->link);
    esk_u64_map_remove(&partition->producers, producer->id);
    count_bytes(partition->shard, 0,
                PRODUCER_BYTES + producer->capacity * sizeof(struct eski_stretch));
    free(producer->stretches);
    free(producer);
}

/* false: there are more. */
static bool destroy_some(struct esk_partition *partition, size_t most) {
    struct esk_link *link;
    while ((link = esk_list_first(&partition->producer_list)) != NULL && most-- > 0) {
        destroy(ESK_CONTAINER(link, struct eski_producer, link));
    }
    return link == NULL;
}

void eski_producers_fini(struct esk_partition *partition) {
    destroy_some(partition, SIZE_MAX);
    esk_u64_map_fini(&partition->producers);
}

static void reap_run(struct esk_mail *mail) {
    struct esk_partition *partition = ESK_CONTAINER(mail, struct esk_partition, reap_mail);
    struct esk_shard *shard = partition->shard;
    shard->removing--;
    eski_partition_let_go(partition);
    eski_shard_step_stop(shard);
}

bool eski_producers_reap(struct esk_partition *partition) {
    if (destroy_some(partition, REAPED_PER_TURN)) {
        return true;
    }
    eski_partition_hold(partition);
    partition->shard->removing++;
    partition->reap_mail.run = reap_run;
    esk_post(&partition->shard->loop->executor, &partition->reap_mail);
    return false;
}

void eski_producer_release(struct eski_producer *producer) {
    bool held = producer->holder != NULL || !esk_list_empty(&producer->line) ||
                producer->next != producer->applied_next;
    if (!held && (producer->forgotten || !producer->known)) {
        destroy(producer);
    }
}

/* --- the window --- */

static struct eski_stretch *stretch_add(struct eski_producer *producer) {
    if (producer->head + producer->count == producer->capacity) {
        if (producer->head > producer->capacity / 2) {
            memmove(producer->stretches, producer->stretches + producer->head,
                    producer->count * sizeof(struct eski_stretch));
            producer->head = 0;
        } else {
            uint32_t capacity = producer->capacity == 0 ? 2 : 2 * producer->capacity;
            producer->stretches =
                esk_realloc(producer->stretches, capacity * sizeof(struct eski_stretch));
            count_bytes(producer->partition->shard,
                        (capacity - producer->capacity) * sizeof(struct eski_stretch), 0);
            producer->capacity = capacity;
        }
    }
    return &producer->stretches[producer->head + producer->count++];
}

void eski_producer_accept(struct eski_producer *producer, uint64_t first, uint64_t count,
                          uint64_t offset) {
    const struct eski_stretch *last =
        producer->count == 0 ? NULL : &producer->stretches[producer->head + producer->count - 1];
    if (last == NULL || last->offset + (first - last->sequence) != offset ||
        first != producer->next) {
        *stretch_add(producer) = (struct eski_stretch){first, offset};
    }
    producer->known = true;
    producer->next = first + count;
}

bool eski_producer_offset(const struct eski_producer *producer, uint64_t sequence,
                          uint64_t *offset) {
    const struct eski_stretch *stretches = producer->stretches + producer->head;
    if (producer->count == 0 || sequence < stretches[0].sequence || sequence >= producer->next) {
        return false;
    }
    uint32_t low = 0;
    uint32_t high = producer->count - 1;
    while (low < high) { /* the last one that begins at or below it */
        uint32_t middle = (low + high + 1) / 2;
        if (stretches[middle].sequence <= sequence) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    *offset = stretches[low].offset + (sequence - stretches[low].sequence);
    return true;
}

/* Stretches that lie wholly below the window of what is applied go. */
static void trim(struct eski_producer *producer) {
    uint64_t low = producer->applied_next > ESK_SEQUENCE_WINDOW
                       ? producer->applied_next - ESK_SEQUENCE_WINDOW
                       : 0;
    while (producer->count > 1 && producer->stretches[producer->head + 1].sequence <= low) {
        producer->head++;
        producer->count--;
    }
}

enum esk_err eski_producer_apply(struct esk_partition *partition, const struct eski_entry *entry,
                                 struct esk_error *error) {
    struct eski_trailer trailer;
    size_t batch_bytes = entry->block->size;
    enum esk_err err =
        eski_trailer_read(entry->entry.payload, batch_bytes, entry->record_count, &trailer, error);
    if (err != ESK_OK) {
        return err;
    }
    struct eski_producer *producer = /* which is held by what is in flight */
        entry->producer != NULL ? entry->producer
                                : eski_producer_obtain(partition, trailer.producer_id);
    uint64_t end = trailer.first + entry->record_count;
    if (entry->entry.index <= producer->applied_index) {
        return ESK_OK; /* the snapshot was a little later than its checkpoint */
    }
    if (producer->applied && producer->applied_next != trailer.first &&
        !ESK_MUTATED(RETRY_WRITTEN_TWICE)) {
        return esk_fail(
            error, ESK_ERR_CORRUPT, "entry %llu has sequence %llu of producer %llu, not %llu",
            (unsigned long long)entry->entry.index, (unsigned long long)trailer.first,
            (unsigned long long)producer->id, (unsigned long long)producer->applied_next);
    }
    if (!producer->known || producer->next < end) { /* else it was submitted here */
        eski_producer_accept(producer, trailer.first, entry->record_count, entry->base_offset);
    }
    producer->applied = true;
    producer->applied_next = end;
    producer->applied_index = entry->entry.index;
    partition->producers_index = entry->entry.index;
    partition->producers_changed = true;
    trim(producer);
    if (!esk_list_empty(&partition->awaits)) {
        eski_awaits_wake(partition);
    }
    if (producer->forgotten) {
        eski_producer_release(producer);
    }
    return ESK_OK;
}

bool eski_producers_covered(const struct esk_partition *partition) {
    const struct esk_link *link = partition->producer_list.next;
    for (; link != &partition->producer_list; link = link->next) {
        if (ESK_CONTAINER(link, struct eski_producer, link)->applied_index >
            partition->applied_index) {
            return false;
        }
    }
    return true;
}

/* --- of a shard --- */

size_t esk_shard_producer_views(const struct esk_shard *shard, uint64_t producer_id, size_t from,
                                struct esk_producer_view *views, size_t most) {
    const struct ring *ring = esk_u64_map_get(&shard->producers, producer_id);
    size_t count = 0;
    size_t number = 0;
    if (ring == NULL) {
        return 0;
    }
    for (const struct esk_link *link = ring->producers.next;
         link != &ring->producers && count < most; link = link->next) {
        const struct eski_producer *producer = ESK_CONTAINER(link, struct eski_producer, sibling);
        if (producer->applied && number++ >= from) {
            views[count++] = (struct esk_producer_view){producer->partition->group_id,
                                                        producer->applied_next - 1};
        }
    }
    return count;
}

bool esk_shard_forget_producer(struct esk_shard *shard, uint64_t producer_id, size_t *budget) {
    const struct ring *ring;
    for (; *budget > 0 && (ring = esk_u64_map_get(&shard->producers, producer_id)) != NULL;
         (*budget)--) {
        struct eski_producer *producer =
            ESK_CONTAINER(esk_list_first(&ring->producers), struct eski_producer, sibling);
        leave_siblings(shard, producer);
        producer->forgotten = true;
        eski_producer_release(producer);
        ESK_REACHED(PRODUCER_FORGOTTEN);
    }
    return esk_u64_map_get(&shard->producers, producer_id) == NULL;
}

void esk_shard_forget_unknown_producers(struct esk_shard *shard,
                                        bool (*keeps)(void *context, uint64_t producer_id),
                                        void *context) {
    uint64_t *ids = esk_alloc((shard->producers.count + 1) * sizeof(*ids));
    size_t count = 0;
    size_t position = 0;
    void *ring;
    while (esk_u64_map_next(&shard->producers, &position, &ids[count], &ring)) {
        count += !keeps(context, ids[count]);
    }
    for (size_t i = 0; i < count; i++) {
        size_t budget = SIZE_MAX;
        (void)esk_shard_forget_producer(shard, ids[i], &budget);
    }
    free(ids);
}
