/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding and decoding of journal files. Lengths are bounded before anything is added to them;
 * what does not fit is an error, since the bytes come from a disk. */
#include "journal/format_private.h"

#include "base/assert.h"
#include "base/hash.h"
#include "base/mutation.h"

#include <inttypes.h>

#define FILE_MAGIC "ESKJOURN"
#define FRAME_MAGIC 0x45534b46u /* "ESKF" */
#define FRAME_CRC_AT 4
#define FRAME_CRC_FROM 8
#define FILE_CRC_AT 12
#define FILE_CRC_FROM 16

static uint32_t file_checksum(const uint8_t *block) {
    uint32_t crc = esk_crc32c(0, block, FILE_CRC_AT);
    return esk_crc32c(crc, block + FILE_CRC_FROM, ESKI_BLOCK_BYTES - FILE_CRC_FROM);
}

void eski_file_header_encode(const struct eski_file_header *header, uint8_t *block) {
    memset(block, 0, ESKI_BLOCK_BYTES);
    memcpy(block, FILE_MAGIC, 8);
    esk_store_u32(block + 8, ESKI_FORMAT_VERSION);
    esk_store_u64(block + 16, header->file);
    esk_store_u64(block + 24, header->generation);
    esk_store_u64(block + 32, header->previous_file);
    esk_store_u64(block + 40, header->cut_file);
    esk_store_u64(block + 48, header->cut_position);
    esk_store_u64(block + 56, header->cut_sequence);
    esk_store_u32(block + FILE_CRC_AT, file_checksum(block));
}

enum esk_err eski_file_header_decode(const uint8_t *block, struct eski_file_header *header,
                                     struct esk_error *error) {
    if (memcmp(block, FILE_MAGIC, 8) != 0) {
        return esk_fail(error, ESK_ERR_CORRUPT, "not a journal file: wrong magic");
    }
    if (esk_load_u32(block + FILE_CRC_AT) != file_checksum(block) && !ESK_MUTATED(NO_CRC_CHECK)) {
        return esk_fail(error, ESK_ERR_CORRUPT, "header checksum does not match");
    }
    uint32_t version = esk_load_u32(block + 8);
    if (version != ESKI_FORMAT_VERSION) {
        return esk_fail(error, ESK_ERR_VERSION, "format version %" PRIu32 ", known is %u", version,
                        ESKI_FORMAT_VERSION);
    }
    header->file = esk_load_u64(block + 16);
    header->generation = esk_load_u64(block + 24);
    header->previous_file = esk_load_u64(block + 32);
    header->cut_file = esk_load_u64(block + 40);
    header->cut_position = esk_load_u64(block + 48);
    header->cut_sequence = esk_load_u64(block + 56);
    return ESK_OK;
}

void eski_frame_header_encode(const struct eski_frame_header *header, uint8_t *frame) {
    esk_store_u32(frame, FRAME_MAGIC);
    esk_store_u32(frame + FRAME_CRC_AT, 0);
    esk_store_u32(frame + 8, header->size);
    esk_store_u32(frame + 12, header->used);
    esk_store_u32(frame + 16, header->flags);
    esk_store_u32(frame + 20, header->records);
    esk_store_u64(frame + 24, header->file);
    esk_store_u64(frame + 32, header->position);
    esk_store_u64(frame + 40, header->generation);
    esk_store_u64(frame + 48, header->sequence);
    esk_store_u64(frame + 56, header->durable_upto);
    esk_store_u64(frame + 64, header->oldest_file);
}

static uint32_t frame_checksum(const uint8_t *frame, uint32_t size) {
    return esk_crc32c(0, frame + FRAME_CRC_FROM, size - FRAME_CRC_FROM);
}

void eski_frame_seal(uint8_t *frame, uint32_t size) {
    esk_store_u32(frame + FRAME_CRC_AT, frame_checksum(frame, size));
}

bool eski_frame_header_decode(const uint8_t *block, struct eski_frame_header *header) {
    if (esk_load_u32(block) != FRAME_MAGIC) {
        return false;
    }
    header->size = esk_load_u32(block + 8);
    header->used = esk_load_u32(block + 12);
    header->flags = esk_load_u32(block + 16);
    header->records = esk_load_u32(block + 20);
    header->file = esk_load_u64(block + 24);
    header->position = esk_load_u64(block + 32);
    header->generation = esk_load_u64(block + 40);
    header->sequence = esk_load_u64(block + 48);
    header->durable_upto = esk_load_u64(block + 56);
    header->oldest_file = esk_load_u64(block + 64);
    return header->size >= ESKI_BLOCK_BYTES && header->size <= ESKI_FRAME_BYTES_MAX &&
           header->size % ESKI_BLOCK_BYTES == 0 && header->used >= ESKI_FRAME_HEADER_BYTES &&
           header->used <= header->size;
}

bool eski_frame_intact(const uint8_t *frame, const struct eski_frame_header *header) {
    return ESK_MUTATED(NO_CRC_CHECK) ||
           esk_load_u32(frame + FRAME_CRC_AT) == frame_checksum(frame, header->size);
}

size_t eski_state_record_size(const struct esk_group_state *state) {
    return ESKI_RECORD_HEADER_BYTES + 16 + 4 * (size_t)state->configuration.count + 72;
}

static void record_header_encode(uint8_t *at, size_t size, enum eski_record_kind kind,
                                 uint8_t entry_kind, uint64_t group_id) {
    esk_store_u32(at, (uint32_t)size);
    at[4] = (uint8_t)kind;
    at[5] = entry_kind;
    at[6] = at[7] = 0;
    esk_store_u64(at + 8, group_id);
}

uint8_t *eski_entry_encode(uint8_t *at, uint64_t group_id, const struct esk_entry *entry) {
    record_header_encode(at, 16 + entry->payload.size, ESKI_RECORD_ENTRY, entry->kind, group_id);
    esk_store_u64(at + 16, entry->index);
    esk_store_u64(at + 24, entry->term);
    return at + ESKI_ENTRY_HEADER_BYTES;
}

uint8_t *eski_state_encode(uint8_t *at, const struct esk_group_state *state) {
    const struct esk_configuration *configuration = &state->configuration;
    const struct esk_checkpoint *checkpoint = &state->checkpoint;
    ESK_ASSERT(configuration->count <= ESK_VOTERS_MAX);
    size_t size = eski_state_record_size(state) - ESKI_RECORD_HEADER_BYTES;
    record_header_encode(at, size, ESKI_RECORD_STATE, 0, state->group_id);
    at += ESKI_RECORD_HEADER_BYTES;
    esk_store_u64(at, state->term);
    esk_store_u32(at + 8, state->voted_for);
    esk_store_u32(at + 12, configuration->count);
    at += 16;
    for (uint32_t i = 0; i < configuration->count; i++, at += 4) {
        esk_store_u32(at, configuration->nodes[i]);
    }
    const uint64_t fields[] = {
        checkpoint->applied_index,       checkpoint->applied_term,
        checkpoint->next_offset,         checkpoint->log_start_offset,
        checkpoint->segment_offset,      checkpoint->segment_bytes,
        checkpoint->segment_limit_bytes, (uint64_t)checkpoint->segment_timestamp_ms,
        checkpoint->snapshot_index,
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++, at += 8) {
        esk_store_u64(at, fields[i]);
    }
    return at;
}

uint8_t *eski_forget_encode(uint8_t *at, uint64_t group_id) {
    record_header_encode(at, 0, ESKI_RECORD_FORGET, 0, group_id);
    return at + ESKI_RECORD_HEADER_BYTES;
}

static void state_decode(struct esk_reader *reader, struct esk_group_state *state) {
    struct esk_checkpoint *checkpoint = &state->checkpoint;
    state->term = esk_read_u64(reader);
    state->voted_for = esk_read_u32(reader);
    uint32_t count = esk_read_u32(reader);
    if (count > ESK_VOTERS_MAX) {
        reader->failed = true;
        return;
    }
    state->configuration.count = count;
    for (uint32_t i = 0; i < count; i++) {
        state->configuration.nodes[i] = esk_read_u32(reader);
    }
    checkpoint->applied_index = esk_read_u64(reader);
    checkpoint->applied_term = esk_read_u64(reader);
    checkpoint->next_offset = esk_read_u64(reader);
    checkpoint->log_start_offset = esk_read_u64(reader);
    checkpoint->segment_offset = esk_read_u64(reader);
    checkpoint->segment_bytes = esk_read_u64(reader);
    checkpoint->segment_limit_bytes = esk_read_u64(reader);
    checkpoint->segment_timestamp_ms = esk_read_i64(reader);
    checkpoint->snapshot_index = esk_read_u64(reader);
}

enum esk_err eski_record_decode(struct esk_reader *reader, struct eski_record *record,
                                struct esk_error *error) {
    uint32_t size = esk_read_u32(reader);
    uint8_t kind = esk_read_u8(reader);
    uint8_t entry_kind = esk_read_u8(reader);
    (void)esk_read_u16(reader);
    memset(record, 0, sizeof(*record));
    record->group_id = esk_read_u64(reader);
    struct esk_reader body = esk_reader(esk_read_bytes(reader, size));
    body.failed = reader->failed;
    switch (kind) {
    case ESKI_RECORD_ENTRY:
        record->kind = ESKI_RECORD_ENTRY;
        record->entry.kind = entry_kind;
        record->entry.index = esk_read_u64(&body);
        record->entry.term = esk_read_u64(&body);
        record->entry.payload = esk_read_bytes(&body, esk_reader_left(&body));
        body.failed = body.failed || record->entry.index == 0 || record->entry.index == UINT64_MAX;
        break;
    case ESKI_RECORD_STATE:
        record->kind = ESKI_RECORD_STATE;
        record->state.group_id = record->group_id;
        state_decode(&body, &record->state);
        break;
    case ESKI_RECORD_FORGET:
        record->kind = ESKI_RECORD_FORGET;
        break;
    default:
        if (!body.failed) {
            return esk_fail(error, ESK_ERR_VERSION, "record kind %u is not known", kind);
        }
    }
    if (body.failed || esk_reader_left(&body) != 0) {
        return esk_fail(error, ESK_ERR_CORRUPT,
                        "a record of kind %u and %" PRIu32 " bytes does not parse", kind, size);
    }
    return ESK_OK;
}
