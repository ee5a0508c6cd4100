/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a partition: whole batches, from the memory tail by reference, from segment files through
 * the page cache in the loop, or by a helper where the cache is cold.
 *
 * Every batch that comes from a file is checked (place in the log, CRC) before it is given out: a
 * stale or damaged one ends the read with ESK_ERR_CORRUPT naming the segment, and what lies before
 * it is still served. A read at the end of the log waits in the partition's list. */
#include "partition/fetch_private.h"

#include <stdlib.h>

#define STEPS_PER_TURN 16         /* segments that one read looks at in a turn */
#define BYTES_PER_TURN (1u << 20) /* and bytes, of all reads: 0.2 ms of copying */

static void read_on(struct esk_read *read);

void esk_read_release(struct esk_read *read) {
    for (uint32_t i = 0; i < read->part_count; i++) {
        esk_block_release(read->parts[i].block);
    }
    free(read->parts);
    read->parts = NULL;
    read->part_count = read->part_capacity = 0;
}

static void finish(struct esk_read *read, enum esk_err err) {
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

static void add_part(struct esk_read *read, struct esk_block *block, uint64_t position,
                     uint64_t size, uint64_t records, uint64_t next_offset) {
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
    read->next_offset = next_offset;
}

/* Key and value bytes that are surely in what was found. */
static uint64_t content_bytes(const struct esk_read *read) {
    uint64_t overhead = read->records * ESK_READ_OVERHEAD_BYTES;
    return read->bytes > overhead ? read->bytes - overhead : 0;
}

static bool satisfied(const struct esk_read *read) {
    return read->part_count == ESK_READ_PARTS_MAX ||
           (read->part_count > 0 &&
            (content_bytes(read) >= read->bytes_max || read->records >= read->records_max));
}

/* --- from the tail --- */

static void read_tail(struct esk_read *read) {
    const struct esk_tail *tail = &read->partition->tail;
    for (size_t i = esk_tail_find(tail, read->next_offset); i < tail->count && !satisfied(read);
         i++) {
        const struct esk_tail_batch *batch = esk_tail_at(tail, i);
        add_part(read, batch->block, 0, batch->block->size, batch->end_offset - read->next_offset,
                 batch->end_offset);
    }
}

/* --- from a file --- */

/* Keeps what the helper opened and loaded, when the segment is still there. */
static void keep(struct eski_fetch *fetch) {
    struct esk_partition *partition = fetch->read->partition;
    if (partition->removed) {
        return;
    }
    struct eski_segment *segment = eski_segment_at(partition, fetch->base_offset);
    if (segment->base_offset != fetch->base_offset || segment->revision != fetch->revision) {
        return; /* retention dropped it meanwhile, or compaction wrote it anew */
    }
    if (fetch->opened) {
        eski_segment_keep_file(partition->shard, segment, esk_segment_retain(fetch->file));
    }
    /* The index of an open segment is complete only if nothing was written since. */
    if (fetch->indexed && !segment->index_ready && segment->written == fetch->bytes_end &&
        !partition->moving) {
        esk_index_fini(&segment->index);
        segment->index = fetch->index;
        esk_index_init(&fetch->index);
        segment->index_ready = true;
        segment->indexed = fetch->bytes_end;
    }
}

static bool is_gone(const struct eski_fetch *fetch) {
    const struct esk_partition *partition = fetch->read->partition;
    if (partition->removed) {
        return true;
    }
    const struct eski_segment *segment = eski_segment_at(partition, fetch->base_offset);
    return segment->base_offset != fetch->base_offset || segment->revision != fetch->revision;
}

/* Takes over what was found. True: the read goes on. */
static bool fetched(struct eski_fetch *fetch) {
    struct esk_read *read = fetch->read;
    enum esk_err err = fetch->err;
    bool gone = is_gone(fetch);
    keep(fetch);
    if (err == ESK_OK && fetch->to == fetch->from) {
        read->next_offset = fetch->next_offset; /* a gap up to the segment's end */
    } else if (err == ESK_OK) {
        uint64_t size = fetch->to - fetch->from;
        add_part(read, fetch->block, fetch->from, size, fetch->records, fetch->next_offset);
    } else if (!gone) {
        read->error = fetch->error;
    }
    eski_fetch_destroy(fetch);
    if (err != ESK_OK && !gone) {
        finish(read, err);
        return false;
    }
    if (read->partition->removed) {
        finish(read, ESK_ERR_NOT_FOUND);
        return false;
    }
    return true;
}

static void fetch_done(struct esk_mail *mail) {
    struct eski_fetch *fetch = ESK_CONTAINER(mail, struct eski_fetch, mail);
    struct esk_read *read = fetch->read;
    if (fetched(fetch)) {
        read_on(read);
    }
}

static void fetch_run(struct esk_mail *mail) {
    struct eski_fetch *fetch = ESK_CONTAINER(mail, struct eski_fetch, mail);
    fetch->err = eski_fetch_cold(fetch);
    mail->run = fetch_done;
    esk_post(&fetch->shard->loop->executor, mail);
}

static struct eski_fetch *fetch_create(struct esk_read *read, struct eski_segment *segment) {
    struct esk_partition *partition = read->partition;
    struct eski_fetch *fetch = esk_alloc_zeroed(1, sizeof(*fetch));
    uint64_t found = content_bytes(read);
    uint64_t size = read->bytes_max > found ? read->bytes_max - found : 0;
    fetch->read = read;
    fetch->shard = partition->shard;
    fetch->storage = partition->shard->options.storage;
    fetch->group_id = partition->group_id;
    fetch->base_offset = segment->base_offset;
    fetch->end_offset = segment->end_offset;
    fetch->revision = segment->revision;
    fetch->file = segment->file == NULL ? NULL : esk_segment_retain(segment->file);
    fetch->sealed = segment->stored;
    fetch->load_index = !segment->index_ready;
    esk_index_init(&fetch->index);
    fetch->offset = read->next_offset;
    fetch->bytes_end = segment->written;
    fetch->size = size < ESKI_FETCH_BYTES_MIN   ? ESKI_FETCH_BYTES_MIN
                  : size > ESKI_FETCH_BYTES_MAX ? ESKI_FETCH_BYTES_MAX
                                                : size;
    if (segment->index_ready) {
        fetch->position = esk_index_find(&segment->index, read->next_offset - segment->base_offset);
    }
    return fetch;
}

/* From the segment that holds the offset. True: the read goes on now; false: when a helper is done,
 * or it is finished. */
static bool read_segment(struct esk_read *read) {
    struct esk_shard *shard = read->partition->shard;
    struct eski_segment *segment = eski_segment_at(read->partition, read->next_offset);
    struct eski_fetch *fetch = fetch_create(read, segment);
    if (fetch->file != NULL && !fetch->load_index) {
        esk_list_remove(&segment->recent);
        esk_list_append(&shard->recent, &segment->recent);
        fetch->err = eski_fetch_bytes(fetch, ESK_READ_NOWAIT);
        shard->read_bytes += fetch->to - fetch->from;
        if (fetch->err != ESK_ERR_AGAIN) {
            return fetched(fetch);
        }
        fetch->from = fetch->to = fetch->records = 0;
    }
    fetch->mail.run = fetch_run;
    esk_post(shard->options.helpers, &fetch->mail);
    return false;
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
    finish(read, ESK_OK);
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
    if (satisfied(read)) {
        finish(read, ESK_OK);
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
            finish(read, ESK_OK);
        }
        return false;
    }
    const struct esk_tail *tail = &partition->tail;
    if (tail->count > 0 && read->next_offset >= esk_tail_at(tail, 0)->base_offset) {
        read_tail(read);
        finish(read, ESK_OK);
        return false;
    }
    return read_segment(read);
}

static void reads_go_on(struct esk_mail *mail) {
    struct esk_shard *shard = ESK_CONTAINER(mail, struct esk_shard, reads_mail);
    struct esk_link *link;
    shard->reads_posted = false;
    shard->read_bytes = 0;
    while (!shard->reads_posted && (link = esk_list_first(&shard->reads))) {
        struct esk_read *read = ESK_CONTAINER(link, struct esk_read, link);
        esk_list_remove(link);
        if (read->partition->removed) {
            finish(read, ESK_ERR_NOT_FOUND);
        } else {
            read_on(read);
        }
    }
}

/* One that has begun gets a little more, so that one of 1 MiB need not wait for its end. */
static uint64_t most_bytes(const struct esk_read *read) {
    return BYTES_PER_TURN + (read->bytes == 0 ? 0 : ESKI_FETCH_BYTES_MAX);
}

/* As far as a turn allows; the rest follows in a mail, behind other reads. What a read brought is
 * then encoded and sent before the next one drives it out of the processor's cache. */
static void read_on(struct esk_read *read) {
    struct esk_shard *shard = read->partition->shard;
    for (int i = 0; i < STEPS_PER_TURN && shard->read_bytes < most_bytes(read); i++) {
        if (!step(read)) {
            return;
        }
    }
    esk_list_append(&shard->reads, &read->link);
    if (!shard->reads_posted) {
        shard->reads_posted = true;
        shard->reads_mail.run = reads_go_on;
        esk_post(&shard->loop->executor, &shard->reads_mail);
    }
}

void esk_partition_read(struct esk_partition *partition, struct esk_read *read) {
    read->partition = partition;
    read->parts = NULL;
    read->part_count = read->part_capacity = 0;
    read->bytes = 0;
    read->records = 0;
    read->waiting = false;
    read->next_offset = read->offset;
    esk_list_init(&read->link);
    eski_partition_hold(partition);
    if (!partition->serving || partition->machine != NULL) {
        finish(read, ESK_ERR_UNAVAILABLE);
        return;
    }
    read_on(read);
}

void esk_partition_read_cancel(struct esk_read *read) {
    if (read->waiting) {
        stop_waiting(read);
        finish(read, ESK_OK);
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
            read_on(read);
        }
    }
}

void eski_reads_end(struct esk_partition *partition, enum esk_err err) {
    struct esk_link *link;
    while ((link = esk_list_first(&partition->reads)) != NULL) {
        struct esk_read *read = ESK_CONTAINER(link, struct esk_read, link);
        stop_waiting(read);
        finish(read, err);
    }
}
