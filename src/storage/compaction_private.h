/* SPDX-License-Identifier: Apache-2.0 */
/* Reading segments batch by batch, for the two halves of compaction. */
#ifndef ESK_STORAGE_COMPACTION_PRIVATE_H
#define ESK_STORAGE_COMPACTION_PRIVATE_H

#include "storage/compaction.h"

#define ESKI_BATCH_BYTES_MAX                                                                       \
    (16u << 20) /* a batch is one journal entry, which has at most so much */

/* A segment being read from its first batch to its last. */
struct eski_scan {
    const struct esk_compaction_input *input;
    struct esk_segment *segment;
    struct esk_compaction_pace *pace;
    uint8_t *buffer;
    size_t capacity;
    size_t held;          /* bytes in buffer, */
    size_t at;            /* and how many of them were given out */
    uint64_t position;    /* of the buffer's first byte */
    uint64_t next_offset; /* the least that the next batch may begin with */
    uint64_t unpaced;     /* bytes since the last pause */
};

/* Opens the segment, and keeps the buffer of a scan before (all zero the first time). */
enum esk_err eski_scan_begin(struct eski_scan *scan, const struct esk_storage *storage,
                             uint64_t group_id, const struct esk_compaction_input *input,
                             struct esk_compaction_pace *pace, struct esk_error *error);
/* The next batch, checked (place in the segment, CRC), until the next call; size 0: there is none.
 * Pauses as the pace says. ESK_ERR_UNAVAILABLE: to be stopped. */
enum esk_err eski_scan_next(struct eski_scan *scan, struct esk_slice *batch,
                            struct esk_batch_header *header, struct esk_error *error);
void eski_scan_end(struct eski_scan *scan); /* closes the segment */
void eski_scan_fini(struct eski_scan *scan);

/* The hashes of a batch's keys, made some records ahead of their use. */
#define ESKI_AHEAD 16 /* about as many cache misses as a core has under way */
struct eski_ahead {
    const struct esk_key_map *map;
    struct esk_record_iterator iterator;
    struct esk_hash128 hashes[ESKI_AHEAD]; /* zero for records without a key */
    uint32_t made, used;
};
static inline struct eski_ahead eski_ahead(const struct esk_key_map *map, struct esk_slice records,
                                           int32_t count) {
    return (struct eski_ahead){.map = map, .iterator = esk_record_iterator(records, count)};
}
/* That of the next record; there is one. */
static inline struct esk_hash128 eski_ahead_next(struct eski_ahead *ahead) {
    struct esk_record record;
    while (ahead->made - ahead->used < ESKI_AHEAD && esk_record_next(&ahead->iterator, &record)) {
        struct esk_hash128 *hash = &ahead->hashes[ahead->made++ % ESKI_AHEAD];
        *hash = (struct esk_hash128){0, 0};
        if (record.key.data != NULL) {
            *hash = esk_key_map_hash(ahead->map, record.key);
        }
    }
    return ahead->hashes[ahead->used++ % ESKI_AHEAD];
}

/* Pauses when enough was done since the last time. */
enum esk_err eski_compaction_pace(const struct esk_storage *storage,
                                  struct esk_compaction_pace *pace, uint64_t *unpaced,
                                  uint64_t bytes, struct esk_error *error);

#endif
