/* SPDX-License-Identifier: Apache-2.0 */
/* Reading batches from a segment file. Nothing is given out before it is checked: place in the log
 * and CRC; a length is bounded before memory is taken for it. */
#include "partition/fetch_private.h"

#include "base/assert.h"
#include "base/mutation.h"
#include "model/record_batch.h"

#include <stdlib.h>

#define BATCH_BYTES_MAX (16u << 20) /* a batch is one journal entry, which has at most so much */

static enum esk_err damaged(struct eski_fetch *fetch, uint64_t position, const char *what) {
    ESK_REACHED(SEGMENT_DAMAGE);
    return esk_fail(&fetch->error, ESK_ERR_CORRUPT,
                    "segment %llu of group %016llx: %s at batch byte %llu",
                    (unsigned long long)fetch->base_offset, (unsigned long long)fetch->group_id,
                    what, (unsigned long long)position);
}

/* How many of its records may lie at the offset or behind it. */
static uint64_t records_from(const struct esk_batch_header *header, uint64_t offset) {
    uint64_t count = (uint64_t)header->record_count;
    uint64_t end = (uint64_t)header->base_offset + (uint64_t)header->last_offset_delta + 1;
    return end - offset < count ? end - offset : count;
}

/* Takes one batch at `at` of the block if it is whole and right. *size 0: it goes on behind `got`;
 * fetch->size is then what is needed. */
static enum esk_err take_batch(struct eski_fetch *fetch, uint64_t at, uint64_t got,
                               uint64_t *size) {
    const uint8_t *data = fetch->block->data + at;
    struct esk_batch_header header;
    *size = 0;
    if (got - at < ESK_BATCH_HEADER_BYTES) {
        fetch->size = ESKI_FETCH_BYTES_MIN;
        return ESK_OK;
    }
    uint64_t whole = (uint64_t)esk_load_u32(data + ESK_BATCH_AT_LENGTH) + ESK_BATCH_LENGTH_BYTES;
    uint64_t left = fetch->bytes_end - fetch->position - at;
    if (whole < ESK_BATCH_HEADER_BYTES || whole > left || whole > BATCH_BYTES_MAX) {
        return damaged(fetch, fetch->position + at, "a batch of wrong length");
    }
    if (whole > got - at) {
        fetch->size = whole;
        return ESK_OK;
    }
    if (esk_batch_parse(esk_slice(data, whole), &header, NULL) != ESK_OK) {
        return damaged(fetch, fetch->position + at, "a malformed batch");
    }
    /* The checksum does not cover the base offset: the first batch holds the offset asked for, the
     * others follow without a gap, or behind one where compaction was. */
    uint64_t base = (uint64_t)header.base_offset;
    uint64_t end = base + (uint64_t)header.last_offset_delta + 1;
    bool wanted = end > fetch->offset;
    bool first = fetch->to == fetch->from;
    bool gap = first ? base > fetch->offset : base != fetch->next_offset;
    bool back = !first && base < fetch->next_offset;
    if (base < fetch->base_offset || header.base_offset < 0 || header.last_offset_delta < 0 ||
        (wanted && gap && (fetch->revision == 0 || back || end > fetch->end_offset))) {
        return damaged(fetch, fetch->position + at, "a batch out of place");
    }
    if (wanted) {
        if (!ESK_MUTATED(NO_CRC_CHECK) && !esk_batch_crc_valid(data, &header)) {
            return damaged(fetch, fetch->position + at, "a batch whose checksum is wrong");
        }
        if (first) {
            fetch->from = fetch->to = at;
        }
        fetch->to = at + whole;
        fetch->next_offset = end;
        uint64_t records = records_from(&header, fetch->offset);
        fetch->records += records;
        fetch->content += eski_read_content(whole, (uint64_t)header.record_count, records);
    }
    *size = whole;
    return ESK_OK;
}

/* Walks what was read. ESK_ERR_AGAIN: nothing of use in it, but position (and size) moved on. */
static enum esk_err take_batches(struct eski_fetch *fetch, uint64_t got) {
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

enum esk_err eski_fetch_bytes(struct eski_fetch *fetch, unsigned flags) {
    for (;;) {
        uint64_t left = fetch->bytes_end - fetch->position;
        uint64_t size = fetch->size < left ? fetch->size : left;
        size_t got;
        if (left == 0 && fetch->revision > 0) {
            fetch->next_offset = fetch->end_offset;
            return ESK_OK;
        }
        if (left == 0) {
            return damaged(fetch, fetch->position, "no batch holds the offset");
        }
        if ((flags & ESK_READ_NOWAIT) != 0 && size > ESKI_FETCH_BYTES_MAX) {
            return ESK_ERR_AGAIN; /* a large batch: copying it takes too long for a loop */
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

bool eski_fetch_pass(struct eski_fetch *fetch) {
    fetch->position += fetch->to;
    fetch->offset = fetch->next_offset;
    fetch->from = fetch->to = fetch->records = fetch->content = 0;
    esk_block_release(fetch->block);
    fetch->block = NULL;
    return fetch->position < fetch->bytes_end;
}

/* Built from the batches while the segment is open, or when compaction has just put the index of
 * its next revision there. */
static enum esk_err load_index(struct eski_fetch *fetch) {
    struct esk_segment_summary summary;
    if (fetch->sealed) {
        enum esk_err err = esk_segment_load(fetch->storage, fetch->group_id, fetch->base_offset,
                                            &summary, &fetch->index, &fetch->error);
        if (err != ESK_OK || summary.revision == fetch->revision) {
            return err;
        }
    }
    return esk_index_build(fetch->file, fetch->base_offset, fetch->bytes_end, &fetch->index,
                           &fetch->error);
}

enum esk_err eski_fetch_cold(struct eski_fetch *fetch) {
    enum esk_err err = ESK_OK;
    if (fetch->file == NULL) {
        err = esk_segment_open_revision(fetch->storage, fetch->group_id, fetch->base_offset,
                                        fetch->revision, &fetch->file, &fetch->error);
        fetch->opened = err == ESK_OK;
    }
    if (err == ESK_OK && fetch->load_index) {
        err = load_index(fetch);
        fetch->indexed = err == ESK_OK;
        fetch->position =
            err == ESK_OK ? esk_index_find(&fetch->index, fetch->offset - fetch->base_offset) : 0;
    }
    return err == ESK_OK ? eski_fetch_bytes(fetch, 0) : err;
}

void eski_fetch_destroy(struct eski_fetch *fetch) {
    esk_segment_release(fetch->file);
    esk_index_fini(&fetch->index);
    esk_block_release(fetch->block);
    free(fetch);
}
