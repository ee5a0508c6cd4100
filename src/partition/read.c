/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a partition: whole batches, from the memory tail by reference, from segment files by
 * read_file.c. A read at the end of the log waits in the partition's list. */
#include "partition/fetch_private.h"

#include "model/record_batch.h"

#include <stdlib.h>

#define STEPS_PER_TURN 16         /* segments that one read looks at in a turn */
#define BYTES_PER_TURN (1u << 20) /* and bytes, of all reads: 0.2 ms of copying */
#define BYTES_BEYOND (256u << 10) /* and this, of one that has begun */

void esk_read_release(struct esk_read *read) {
    for (uint32_t i = 0; i < read->part_count; i++) {
        esk_block_release(read->parts[i].block);
    }
    free(read->parts);
    read->parts = NULL;
    read->part_count = read->part_capacity = 0;
}

void eski_read_finish(struct esk_read *read, enum esk_err err) {
    struct esk_partition *partition = read->partition;
    if (err != ESK_OK && read->part_count > 0) {
        err = ESK_OK; /* what lies before the trouble is good; the next read meets it first */
    }
    read->start_offset = partition->log_start;
    read->high_watermark = partition->next_offset;
    partition->records_out += read->records;
    partition->bytes_out += read->bytes;
    read->done(read, err);
    eski_partition_let_go(partition);
}

void eski_read_add(struct esk_read *read, struct esk_block *block, uint64_t position, uint64_t size,
                   uint64_t records, uint64_t content, uint64_t next_offset) {
    if (read->part_count == read->part_capacity) {
        read->part_capacity = read->part_capacity == 0 ? 4 : 2 * read->part_capacity;
        read->parts = esk_realloc(read->parts, read->part_capacity * sizeof(*read->parts));
    }
    struct esk_read_part *part = &read->parts[read->part_count++];
    part->block = esk_block_retain(block);
    part->position = (uint32_t)position;
    part->size = (uint32_t)size;
    read->bytes += size;
    read->records += records;
    read->content += content;
    read->next_offset = next_offset;
}

uint64_t eski_read_content(uint64_t size, uint64_t count, uint64_t wanted) {
    uint64_t overhead = ESK_BATCH_HEADER_BYTES + count * ESK_READ_OVERHEAD_BYTES;
    return size > overhead && count > 0 ? (size - overhead) * wanted / count : 0;
}

bool eski_read_satisfied(const struct esk_read *read) {
    return read->part_count == ESK_READ_PARTS_MAX ||
           (read->part_count > 0 &&
            (read->content >= read->bytes_max || read->records >= read->records_max));
}

/* --- from the tail --- */

static void read_tail(struct esk_read *read) {
    const struct esk_tail *tail = &read->partition->tail;
    for (size_t i = esk_tail_find(tail, read->next_offset);
         i < tail->count && !eski_read_satisfied(read); i++) {
        const struct esk_tail_batch *batch = esk_tail_at(tail, i);
        uint64_t size = batch->block->size;
        uint64_t records = batch->end_offset - read->next_offset;
        uint64_t content = eski_read_content(size, batch->end_offset - batch->base_offset, records);
        eski_read_add(read, batch->block, 0, size, records, content, batch->end_offset);
    }
}

/* --- the read --- */

static void stop_waiting(struct esk_read *read) {
    if (read->waiting) {
        read->waiting = false;
        esk_list_remove(&read->link);
        esk_timer_stop(read->partition->shard->loop, &read->timer);
    }
}

static void wait_over(struct esk_timer *timer) {
    struct esk_read *read = ESK_CONTAINER(timer, struct esk_read, timer);
    stop_waiting(read);
    eski_read_finish(read, ESK_OK);
}

static void wait_for_records(struct esk_read *read) {
    struct esk_partition *partition = read->partition;
    struct esk_loop *loop = partition->shard->loop;
    read->waiting = true;
    esk_list_append(&partition->reads, &read->link);
    read->timer.run = wait_over;
    esk_timer_start(loop, &read->timer,
                    esk_loop_now_ns(loop) + (uint64_t)read->wait_ms * UINT64_C(1000000));
}

/* One step. True: there is another one to do now. */
static bool step(struct esk_read *read) {
    struct esk_partition *partition = read->partition;
    if (eski_read_satisfied(read)) {
        eski_read_finish(read, ESK_OK);
        return false;
    }
    if (read->next_offset < partition->log_start) {
        read->next_offset = partition->log_start;
    }
    if (read->next_offset >= partition->next_offset) {
        if (read->part_count == 0 && read->wait_ms > 0 && !partition->shard->no_waits) {
            wait_for_records(read);
        } else {
            read->next_offset = partition->next_offset;
            eski_read_finish(read, ESK_OK);
        }
        return false;
    }
    const struct esk_tail *tail = &partition->tail;
    if (tail->count > 0 && read->next_offset >= esk_tail_at(tail, 0)->base_offset) {
        read_tail(read);
        eski_read_finish(read, ESK_OK);
        return false;
    }
    return eski_read_segment(read);
}

static void reads_go_on(struct esk_mail *mail) {
    struct esk_shard *shard = ESK_CONTAINER(mail, struct esk_shard, reads_mail);
    struct esk_link *link;
    shard->reads_posted = false;
    shard->read_bytes = 0;
    while (!shard->reads_posted && (link = esk_list_first(&shard->reads))) {
        struct esk_read *read = ESK_CONTAINER(link, struct esk_read, link);
        esk_list_remove(link);
        if (read->fetch == NULL && read->partition->removed) {
            eski_read_finish(read, ESK_ERR_NOT_FOUND);
        } else if (read->fetch == NULL || eski_read_copy(read)) {
            eski_read_on(read);
        }
    }
}

/* What a read brought is encoded and sent before the next one drives it out of the processor's
 * cache. */
void eski_read_later(struct esk_shard *shard, struct esk_read *read) {
    esk_list_append(&shard->reads, &read->link);
    if (!shard->reads_posted) {
        shard->reads_posted = true;
        shard->reads_mail.run = reads_go_on;
        esk_post(&shard->loop->executor, &shard->reads_mail);
    }
}

/* So that one of 1 MiB need not wait for its end. */
uint64_t eski_read_bytes_per_turn(const struct esk_read *read) {
    return BYTES_PER_TURN + (read->bytes == 0 ? 0 : BYTES_BEYOND);
}

void eski_read_on(struct esk_read *read) {
    struct esk_shard *shard = read->partition->shard;
    for (int i = 0; i < STEPS_PER_TURN && shard->read_bytes < eski_read_bytes_per_turn(read); i++) {
        if (!step(read)) {
            return;
        }
    }
    eski_read_later(shard, read);
}

void esk_partition_read(struct esk_partition *partition, struct esk_read *read) {
    read->partition = partition;
    read->parts = NULL;
    read->part_count = read->part_capacity = 0;
    read->bytes = 0;
    read->records = read->content = 0;
    read->waiting = read->away = false;
    read->fetch = NULL;
    read->next_offset = read->offset;
    esk_list_init(&read->link);
    eski_partition_hold(partition);
    if (!partition->serving || partition->machine != NULL) {
        eski_read_finish(read, ESK_ERR_UNAVAILABLE);
        return;
    }
    eski_read_on(read);
}

void esk_partition_read_cancel(struct esk_read *read) {
    if (read->waiting) {
        stop_waiting(read);
        eski_read_finish(read, ESK_OK);
    } else {
        read->wait_ms = 0;
    }
}

void eski_reads_wake(struct esk_partition *partition) {
    struct esk_link *link = partition->reads.next;
    while (link != &partition->reads) {
        struct esk_read *read = ESK_CONTAINER(link, struct esk_read, link);
        link = link->next;
        if (read->next_offset < partition->next_offset) {
            stop_waiting(read);
            eski_read_on(read);
        }
    }
}

void eski_reads_end(struct esk_partition *partition, enum esk_err err) {
    struct esk_link *link;
    while ((link = esk_list_first(&partition->reads)) != NULL) {
        struct esk_read *read = ESK_CONTAINER(link, struct esk_read, link);
        stop_waiting(read);
        eski_read_finish(read, err);
    }
}
