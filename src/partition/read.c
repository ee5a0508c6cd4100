/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a partition: whole batches, from the memory tail by reference, from segment files through
 * the page cache in the loop, or by a helper where the cache is cold.
 *
 * Every batch that comes from a file is checked (place in the log, CRC) before it is given out: a
 * stale or damaged one ends the read with ESK_ERR_CORRUPT naming the segment, and what lies before
 * it is still served. A read at the end of the log waits in the partition's list. */
#include "partition/partition_private.h"

#include "base/assert.h"
#include "base/mutation.h"
#include "model/record_batch.h"

#include <stdlib.h>

#define FETCH_BYTES_MIN (64u << 10) /* one read of a file: at least the read-ahead of a disk */
#define FETCH_BYTES_MAX (1u << 20)

/* One read of a segment file. In the loop, or in a helper while the loop leaves it alone. */
struct fetch {
    struct esk_mail mail;
    struct esk_read *read;
    const struct esk_storage *storage;
    struct esk_shard *shard;
    uint64_t group_id;
    uint64_t base_offset;     /* of the segment */
    struct esk_segment *file; /* a reference, or NULL: to be opened */
    bool opened;
    bool load_index; /* sealed: from its index file; open: built */
    bool sealed;
    bool indexed;
    struct esk_index index;
    uint64_t offset;
    uint64_t position;  /* where to begin to look */
    uint64_t bytes_end; /* of what is written */
    uint64_t size;      /* asked */
    struct esk_block *block;
    uint64_t from; /* what was found in block: whole batches, checked */
    uint64_t to;
    uint64_t next_offset;
    uint64_t records;
    enum esk_err err;
    struct esk_error error;
};

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

/* --- from the tail -----------------------------------------------------------------------------
 */

static void read_tail(struct esk_read *read) {
    const struct esk_tail *tail = &read->partition->tail;
    for (size_t i = esk_tail_find(tail, read->next_offset); i < tail->count && !satisfied(read);
         i++) {
        const struct esk_tail_batch *batch = esk_tail_at(tail, i);
        add_part(read, batch->block, 0, batch->block->size, batch->end_offset - read->next_offset,
                 batch->end_offset);
    }
}

/* --- from a file -------------------------------------------------------------------------------
 */

static enum esk_err damaged(struct fetch *fetch, uint64_t position, const char *what) {
    ESK_REACHED(SEGMENT_DAMAGE);
    return esk_fail(&fetch->error, ESK_ERR_CORRUPT,
                    "segment %llu of group %016llx: %s at batch byte %llu",
                    (unsigned long long)fetch->base_offset, (unsigned long long)fetch->group_id,
                    what, (unsigned long long)position);
}

/* Takes one batch at `at` of the block if it is whole and right. *size 0: it goes on behind `got`;
 * fetch->size is then what is needed. */
static enum esk_err take_batch(struct fetch *fetch, uint64_t at, uint64_t got, uint64_t *size) {
    const uint8_t *data = fetch->block->data + at;
    struct esk_batch_header header;
    *size = 0;
    if (got - at < ESK_BATCH_HEADER_BYTES) {
        fetch->size = FETCH_BYTES_MIN;
        return ESK_OK;
    }
    uint64_t whole = (uint64_t)esk_load_u32(data + ESK_BATCH_AT_LENGTH) + ESK_BATCH_LENGTH_BYTES;
    uint64_t left = fetch->bytes_end - fetch->position - at;
    if (whole < ESK_BATCH_HEADER_BYTES || whole > left) {
        return damaged(fetch, fetch->position + at, "a batch of wrong length");
    }
    if (whole > got - at) {
        fetch->size = whole;
        return ESK_OK;
    }
    if (esk_batch_parse(esk_slice(data, whole), &header, NULL) != ESK_OK) {
        return damaged(fetch, fetch->position + at, "a malformed batch");
    }
    uint64_t end = (uint64_t)header.base_offset + (uint64_t)header.last_offset_delta + 1;
    if (header.base_offset < (int64_t)fetch->base_offset || header.last_offset_delta < 0 ||
        (fetch->to > fetch->from && (uint64_t)header.base_offset < fetch->next_offset)) {
        return damaged(fetch, fetch->position + at, "a batch out of place");
    }
    if (end > fetch->offset) {
        if (!ESK_MUTATED(NO_CRC_CHECK) && !esk_batch_crc_valid(data, &header)) {
            return damaged(fetch, fetch->position + at, "a batch whose checksum is wrong");
        }
        if (fetch->to == fetch->from) {
            fetch->from = fetch->to = at;
        }
        fetch->to = at + whole;
        fetch->next_offset = end;
        fetch->records += (uint64_t)header.record_count;
    }
    *size = whole;
    return ESK_OK;
}

/* Walks what was read. ESK_ERR_AGAIN: nothing of use in it, but position (and size) moved on. */
static enum esk_err take_batches(struct fetch *fetch, uint64_t got) {
    uint64_t at = 0;
    while (at < got) {
        uint64_t size;
        enum esk_err err = take_batch(fetch, at, got, &size);
        if (err != ESK_OK) {
            return fetch->to > fetch->from ? ESK_OK : err;
        }
        if (size == 0) {
            break;
        }
        at += size;
    }
    if (fetch->to > fetch->from) {
        return ESK_OK;
    }
    fetch->position += at;
    return ESK_ERR_AGAIN;
}

/* Reads until at least one batch is found. flags: ESK_READ_NOWAIT in the loop. */
static enum esk_err fetch_bytes(struct fetch *fetch, unsigned flags) {
    for (;;) {
        uint64_t left = fetch->bytes_end - fetch->position;
        uint64_t size = fetch->size < left ? fetch->size : left;
        size_t got;
        if (left == 0) {
            return damaged(fetch, fetch->position, "no batch holds the offset");
        }
        if (fetch->block == NULL || fetch->block->capacity < size) {
            esk_block_release(fetch->block);
            fetch->block = esk_block_create((uint32_t)size);
        }
        enum esk_err err = esk_segment_read(fetch->file, fetch->block->data, size, fetch->position,
                                            fetch->bytes_end, flags, &got, &fetch->error);
        if (err != ESK_OK) {
            return err;
        }
        uint64_t before = fetch->position;
        uint64_t asked = fetch->size;
        fetch->block->size = (uint32_t)got;
        err = take_batches(fetch, got);
        if (err != ESK_ERR_AGAIN) {
            return err;
        }
        if (fetch->position == before && fetch->size <= asked) {
            if ((flags & ESK_READ_NOWAIT) != 0) {
                return ESK_ERR_AGAIN; /* the cache ends within a batch */
            }
            return damaged(fetch, before, "the file ends within a batch");
        }
    }
}

static enum esk_err fetch_cold(struct fetch *fetch) {
    enum esk_err err = ESK_OK;
    if (fetch->file == NULL) {
        err = esk_segment_open(fetch->storage, fetch->group_id, fetch->base_offset, &fetch->file,
                               &fetch->error);
        fetch->opened = err == ESK_OK;
    }
    if (err == ESK_OK && fetch->load_index) {
        struct esk_segment_summary summary;
        err = fetch->sealed ? esk_segment_load(fetch->storage, fetch->group_id, fetch->base_offset,
                                               &summary, &fetch->index, &fetch->error)
                            : esk_index_build(fetch->file, fetch->base_offset, fetch->bytes_end,
                                              &fetch->index, &fetch->error);
        fetch->indexed = err == ESK_OK;
        fetch->position =
            err == ESK_OK ? esk_index_find(&fetch->index, fetch->offset - fetch->base_offset) : 0;
    }
    return err == ESK_OK ? fetch_bytes(fetch, 0) : err;
}

static void fetch_destroy(struct fetch *fetch) {
    esk_segment_release(fetch->file);
    esk_index_fini(&fetch->index);
    esk_block_release(fetch->block);
    free(fetch);
}

/* Keeps what the helper opened and loaded, when the segment is still there. */
static void keep(struct fetch *fetch) {
    struct esk_partition *partition = fetch->read->partition;
    if (partition->removed) {
        return;
    }
    struct eski_segment *segment = eski_segment_at(partition, fetch->base_offset);
    if (segment->base_offset != fetch->base_offset) {
        return; /* retention dropped it meanwhile */
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

static void fetched(struct fetch *fetch) {
    struct esk_read *read = fetch->read;
    enum esk_err err = fetch->err;
    read->fetch = NULL;
    keep(fetch);
    if (err == ESK_OK) {
        uint64_t size = fetch->to - fetch->from;
        add_part(read, fetch->block, fetch->from, size, fetch->records, fetch->next_offset);
    }
    bool gone = read->partition->removed || fetch->base_offset < read->partition->log_start;
    if (err != ESK_OK && read->part_count == 0) {
        read->error = fetch->error;
    }
    fetch_destroy(fetch);
    if (err != ESK_OK && !(gone && err == ESK_ERR_NOT_FOUND)) {
        finish(read, err);
        return;
    }
    if (read->partition->removed) {
        finish(read, ESK_ERR_NOT_FOUND);
        return;
    }
    read_on(read);
}

static void fetch_done(struct esk_mail *mail) {
    fetched(ESK_CONTAINER(mail, struct fetch, mail));
}

static void fetch_run(struct esk_mail *mail) {
    struct fetch *fetch = ESK_CONTAINER(mail, struct fetch, mail);
    fetch->err = fetch_cold(fetch);
    mail->run = fetch_done;
    esk_post(&fetch->shard->loop->executor, mail);
}

static struct fetch *fetch_create(struct esk_read *read, struct eski_segment *segment) {
    struct esk_partition *partition = read->partition;
    struct fetch *fetch = esk_alloc_zeroed(1, sizeof(*fetch));
    uint64_t found = content_bytes(read);
    uint64_t size = read->bytes_max > found ? read->bytes_max - found : 0;
    fetch->read = read;
    fetch->shard = partition->shard;
    fetch->storage = partition->shard->options.storage;
    fetch->group_id = partition->group_id;
    fetch->base_offset = segment->base_offset;
    fetch->file = segment->file == NULL ? NULL : esk_segment_retain(segment->file);
    fetch->sealed = segment->stored;
    fetch->load_index = !segment->index_ready;
    esk_index_init(&fetch->index);
    fetch->offset = read->next_offset;
    fetch->bytes_end = segment->written;
    fetch->size = size < FETCH_BYTES_MIN   ? FETCH_BYTES_MIN
                  : size > FETCH_BYTES_MAX ? FETCH_BYTES_MAX
                                           : size;
    if (segment->index_ready) {
        fetch->position = esk_index_find(&segment->index, read->next_offset - segment->base_offset);
    }
    return fetch;
}

/* From the segment that holds the offset; the read goes on when it is done. */
static void read_segment(struct esk_read *read) {
    struct esk_shard *shard = read->partition->shard;
    struct eski_segment *segment = eski_segment_at(read->partition, read->next_offset);
    if (segment->sealed && read->next_offset >= segment->end_offset) {
        read->next_offset = segment->end_offset; /* a gap at its end */
    }
    struct fetch *fetch = fetch_create(read, segment);
    read->fetch = fetch;
    if (fetch->file != NULL && !fetch->load_index) {
        esk_list_remove(&segment->recent);
        esk_list_append(&shard->recent, &segment->recent);
        fetch->err = fetch_bytes(fetch, ESK_READ_NOWAIT);
        if (fetch->err != ESK_ERR_AGAIN) {
            fetched(fetch);
            return;
        }
        fetch->from = fetch->to = fetch->records = 0;
    }
    fetch->mail.run = fetch_run;
    esk_post(shard->options.helpers, &fetch->mail);
}

/* --- the read ----------------------------------------------------------------------------------
 */

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

static void read_on(struct esk_read *read) {
    struct esk_partition *partition = read->partition;
    if (satisfied(read)) {
        finish(read, ESK_OK);
        return;
    }
    if (read->next_offset < partition->log_start) {
        read->next_offset = partition->log_start;
    }
    if (read->next_offset >= partition->next_offset) {
        if (read->part_count == 0 && read->wait_ms > 0) {
            wait_for_records(read);
        } else {
            read->next_offset = partition->next_offset;
            finish(read, ESK_OK);
        }
        return;
    }
    const struct esk_tail *tail = &partition->tail;
    if (tail->count > 0 && read->next_offset >= esk_tail_at(tail, 0)->base_offset) {
        read_tail(read);
        finish(read, ESK_OK);
        return;
    }
    read_segment(read);
}

void esk_partition_read(struct esk_partition *partition, struct esk_read *read) {
    read->partition = partition;
    read->parts = NULL;
    read->part_count = read->part_capacity = 0;
    read->bytes = 0;
    read->records = 0;
    read->waiting = false;
    read->fetch = NULL;
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
