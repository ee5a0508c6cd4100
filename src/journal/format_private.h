/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a journal file: a header block, then frames of whole blocks, each holding records.
 * Pure functions, any thread; docs/format-journal.md has the layout byte by byte. */
#ifndef ESK_JOURNAL_FORMAT_PRIVATE_H
#define ESK_JOURNAL_FORMAT_PRIVATE_H

#include "base/bytes.h"
#include "base/error.h"
#include "model/entry.h"
#include "model/group_state.h"

#include <stdbool.h>

#define ESKI_BLOCK_BYTES 4096u /* unit of every write; what O_DIRECT asks for */
#define ESKI_FORMAT_VERSION 1u
#define ESKI_ENTRY_BYTES_MAX (16u << 20) /* payload of one entry */
#define ESKI_FRAME_BYTES_MAX (24u << 20) /* one largest entry and what is carried beside it */
#define ESKI_FRAME_HEADER_BYTES 72u
#define ESKI_RECORD_HEADER_BYTES 16u
#define ESKI_ENTRY_HEADER_BYTES 32u /* the record's header, index and term */
#define ESKI_STATE_BYTES_MAX (16u + 16u + 4u * ESK_VOTERS_MAX + 72u)

struct eski_file_header {
    uint64_t file;          /* the number in its name; frames repeat it */
    uint64_t generation;    /* one more at each open */
    uint64_t previous_file; /* the file before it, 0: none */
    uint64_t cut_file;      /* where the last generation ended: file (0: none), */
    uint64_t cut_position;  /* first byte that does not count any more, */
    uint64_t cut_sequence;  /* and its last frame that counts */
};

/* block has ESKI_BLOCK_BYTES. */
void eski_file_header_encode(const struct eski_file_header *header, uint8_t *block);
/* ESK_ERR_CORRUPT, ESK_ERR_VERSION (intact, but of another version). */
enum esk_err eski_file_header_decode(const uint8_t *block, struct eski_file_header *header,
                                     struct esk_error *error);

struct eski_frame_header {
    uint32_t size;    /* whole, in blocks */
    uint32_t used;    /* header and records; zeros follow */
    uint32_t flags;   /* none yet; others are of a newer version */
    uint32_t records; /* count */
    uint64_t file;
    uint64_t position; /* of the frame in the file */
    uint64_t generation;
    uint64_t sequence;     /* one more per frame, over files and generations */
    uint64_t durable_upto; /* sequence known durable when it was built */
    uint64_t oldest_file;  /* files before it are no longer needed */
};

/* Writes the header; the checksum is eski_frame_seal's. */
void eski_frame_header_encode(const struct eski_frame_header *header, uint8_t *frame);
/* Sets the checksum over the whole frame. */
void eski_frame_seal(uint8_t *frame, uint32_t size);
/* Whether a frame may begin at these ESKI_BLOCK_BYTES: magic and bounds, not the checksum. */
bool eski_frame_header_decode(const uint8_t *block, struct eski_frame_header *header);
/* Whether the checksum over header.size bytes holds. */
bool eski_frame_intact(const uint8_t *frame, const struct eski_frame_header *header);

enum eski_record_kind { ESKI_RECORD_ENTRY = 1, ESKI_RECORD_STATE = 2, ESKI_RECORD_FORGET = 3 };

struct eski_record {
    enum eski_record_kind kind;
    uint64_t group_id;
    struct esk_entry entry; /* payload borrowed from the frame */
    struct esk_group_state state;
};

size_t eski_state_record_size(const struct esk_group_state *state);
/* Each returns the end of what it wrote; an entry's payload follows and is the caller's to copy. */
uint8_t *eski_entry_encode(uint8_t *at, uint64_t group_id, const struct esk_entry *entry);
uint8_t *eski_state_encode(uint8_t *at, const struct esk_group_state *state);
uint8_t *eski_forget_encode(uint8_t *at, uint64_t group_id);

/* The next record of an intact frame. ESK_ERR_VERSION for a kind that this version does not know,
 * ESK_ERR_CORRUPT for one that does not fit. */
enum esk_err eski_record_decode(struct esk_reader *reader, struct eski_record *record,
                                struct esk_error *error);

#endif
