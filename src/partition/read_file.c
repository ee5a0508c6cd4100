/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a read that comes from segment files: copied from the page cache in the reader's
 * loop, or by a helper where the cache is cold or a file is not open.
 *
 * A read whose reader is not the partition's shard goes away to that loop, if it is worth a mail.
 * The partition's does not touch it until it comes back; one that found enough is done there, and
 * only its fetch comes back.
 *
 * Every batch is checked (place in the log, CRC) before it is given out: a stale or damaged one
 * ends the read with ESK_ERR_CORRUPT naming the segment, and what lies before it is still served.
 */
#include "partition/fetch_private.h"

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

/* What was found goes to the read. */
static void give(const struct eski_fetch *fetch) {
    eski_read_add(fetch->read, fetch->block, fetch->from, fetch->to - fetch->from, fetch->records,
                  fetch->content, fetch->next_offset);
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
        give(fetch);
    } else if (!gone) {
        read->error = fetch->error;
    }
    eski_fetch_destroy(fetch);
    if (err != ESK_OK && !gone) {
        eski_read_finish(read, err);
        return false;
    }
    if (read->partition->removed) {
        eski_read_finish(read, ESK_ERR_NOT_FOUND);
        return false;
    }
    return true;
}

static void fetch_done(struct esk_mail *mail) {
    struct eski_fetch *fetch = ESK_CONTAINER(mail, struct eski_fetch, mail);
    struct esk_read *read = fetch->read;
    if (fetched(fetch)) {
        eski_read_on(read);
    }
}

static void fetch_run(struct esk_mail *mail) {
    struct eski_fetch *fetch = ESK_CONTAINER(mail, struct eski_fetch, mail);
    fetch->err = eski_fetch_cold(fetch);
    mail->run = fetch_done;
    esk_post(&fetch->shard->loop->executor, mail);
}

static void to_helper(struct eski_fetch *fetch) {
    fetch->from = fetch->to = fetch->records = fetch->content = 0;
    fetch->mail.run = fetch_run;
    esk_post(fetch->shard->options.helpers, &fetch->mail);
}

/* About as much as is missing, or `least`. */
static void set_size(struct eski_fetch *fetch, uint64_t least) {
    const struct esk_read *read = fetch->read;
    uint64_t size = read->bytes_max > read->content ? read->bytes_max - read->content : 0;
    uint64_t records = read->records_max > read->records ? read->records_max - read->records : 0;
    size = size < records * fetch->record_bytes ? size : records * fetch->record_bytes;
    size = size < ESKI_FETCH_BYTES_MAX ? size : ESKI_FETCH_BYTES_MAX;
    fetch->size = size > least ? size : least;
}

static struct eski_fetch *fetch_create(struct esk_read *read, struct eski_segment *segment) {
    struct esk_partition *partition = read->partition;
    struct eski_fetch *fetch = esk_alloc_zeroed(1, sizeof(*fetch));
    fetch->read = read;
    fetch->partition = partition;
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
    fetch->record_bytes = segment->bytes / (segment->end_offset - segment->base_offset + 1) + 1;
    set_size(fetch, ESKI_FETCH_BYTES_MIN);
    if (segment->index_ready) {
        fetch->position = esk_index_find(&segment->index, read->next_offset - segment->base_offset);
    }
    return fetch;
}

/* --- through the page cache --- */

static void away_done(struct esk_mail *mail) {
    struct eski_fetch *fetch = ESK_CONTAINER(mail, struct eski_fetch, mail);
    struct esk_partition *partition = fetch->partition;
    struct esk_shard *shard = fetch->shard;
    partition->records_out += fetch->records;
    partition->bytes_out += fetch->to;
    eski_fetch_destroy(fetch);
    eski_partition_let_go(partition);
    shard->reads_away--;
    eski_shard_step_stop(shard);
}

static void away_back(struct esk_mail *mail) {
    struct eski_fetch *fetch = ESK_CONTAINER(mail, struct eski_fetch, mail);
    struct esk_read *read = fetch->read;
    struct esk_shard *shard = fetch->shard;
    read->away = false;
    if (fetch->err == ESK_ERR_AGAIN) {
        to_helper(fetch);
    } else if (fetched(fetch)) {
        eski_read_on(read);
    }
    shard->reads_away--;
    eski_shard_step_stop(shard);
}

/* The fetch has no more, or the read needs no more. True: the read goes on now. */
static bool copied(struct esk_read *read, struct eski_fetch *fetch) {
    read->fetch = NULL;
    if (!read->away) {
        if (fetch->err != ESK_ERR_AGAIN) {
            return fetched(fetch);
        }
        to_helper(fetch);
        return false;
    }
    if (eski_read_satisfied(read)) {
        fetch->records = read->records;
        fetch->to = read->bytes;
        fetch->mail.run = away_done;
        read->done(read, ESK_OK); /* it is gone */
    } else {
        fetch->mail.run = away_back;
    }
    esk_post(&fetch->shard->loop->executor, &fetch->mail);
    return false;
}

bool eski_read_copy(struct esk_read *read) {
    struct esk_shard *shard = read->away ? read->reader : read->partition->shard;
    struct eski_fetch *fetch = read->fetch;
    while (shard->read_bytes == 0 ||
           shard->read_bytes + fetch->size <= eski_read_bytes_per_turn(read)) {
        uint64_t asked = fetch->size;
        fetch->err = eski_fetch_bytes(fetch, ESK_READ_NOWAIT);
        if (fetch->err != ESK_OK || fetch->to == fetch->from) {
            return copied(read, fetch);
        }
        shard->read_bytes += fetch->to - fetch->from;
        give(fetch);
        if (!eski_fetch_pass(fetch) || eski_read_satisfied(read)) {
            return copied(read, fetch);
        }
        /* It tells the size of a batch whose beginning it saw. */
        set_size(fetch, fetch->size == asked ? ESKI_FETCH_BYTES_MIN : fetch->size);
    }
    eski_read_later(shard, read);
    return false;
}

static void copy_away(struct esk_mail *mail) {
    struct eski_fetch *fetch = ESK_CONTAINER(mail, struct eski_fetch, mail);
    (void)eski_read_copy(fetch->read);
}

static void send_away(struct esk_read *read) {
    struct esk_partition *partition = read->partition;
    read->start_offset = partition->log_start;
    read->high_watermark = partition->next_offset;
    read->away = true;
    partition->shard->reads_away++;
    read->fetch->mail.run = copy_away;
    esk_post(&read->reader->loop->executor, &read->fetch->mail);
}

bool eski_read_segment(struct esk_read *read) {
    struct esk_shard *shard = read->partition->shard;
    struct eski_segment *segment = eski_segment_at(read->partition, read->next_offset);
    struct eski_fetch *fetch = fetch_create(read, segment);
    if (fetch->file == NULL || fetch->load_index) {
        to_helper(fetch);
        return false;
    }
    esk_list_remove(&segment->recent);
    esk_list_append(&shard->recent, &segment->recent);
    read->fetch = fetch;
    if (read->reader == NULL || read->reader == shard || fetch->size <= ESKI_FETCH_BYTES_MIN) {
        return eski_read_copy(read);
    }
    send_away(read);
    return false;
}
