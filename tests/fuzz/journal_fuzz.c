/* SPDX-License-Identifier: Apache-2.0 */
/* Journal files: a header, a frame's records, and recovery of a folder with one such file. The
 * first byte tells which, and whether checksums are made right first, so that what is behind them
 * is reached. What parses must encode to the same bytes. */
#include "fuzz.h"

#include "base/hash.h"
#include "journal/recovery_private.h"
#include "journal/test_platform.inc"

#define RIGHT_CHECKSUM 4
#define INPUT_BYTES_MAX (1u << 20)
#define FOLDER "/data/journal"

static void make_header_right(uint8_t *block) {
    uint32_t crc = esk_crc32c(0, block, 12);
    esk_store_u32(block + 12, esk_crc32c(crc, block + 16, ESKI_BLOCK_BYTES - 16));
}

static void make_frames_right(uint8_t *bytes, size_t size) {
    struct eski_frame_header header;
    for (size_t at = 0; at + ESKI_BLOCK_BYTES <= size; at += header.size) {
        if (!eski_frame_header_decode(bytes + at, &header) || header.size > size - at) {
            return;
        }
        eski_frame_seal(bytes + at, header.size);
    }
}

static void fuzz_header(const uint8_t *bytes, size_t size) {
    struct eski_file_header header;
    uint8_t again[ESKI_BLOCK_BYTES];
    if (size >= sizeof(again) && eski_file_header_decode(bytes, &header, NULL) == ESK_OK) {
        eski_file_header_encode(&header, again);
        ESK_ASSERT(memcmp(again, bytes, 12) == 0 && memcmp(again + 16, bytes + 16, 48) == 0);
    }
}

static void check_record(const struct eski_record *record, const uint8_t *bytes, size_t size) {
    uint8_t again[ESKI_STATE_BYTES_MAX];
    const uint8_t *end = again;
    if (record->kind == ESKI_RECORD_ENTRY) {
        end = eski_entry_encode(again, record->group_id, &record->entry);
        ESK_ASSERT(record->entry.payload.size == size - ESKI_ENTRY_HEADER_BYTES);
    } else if (record->kind == ESKI_RECORD_STATE) {
        end = eski_state_encode(again, &record->state);
        ESK_ASSERT(eski_state_record_size(&record->state) == size);
    }
    size_t length = (size_t)(end - again);
    ESK_ASSERT(length <= size);
    for (size_t i = 8; i < length; i++) { /* the first eight have bytes that nothing keeps */
        ESK_ASSERT(again[i] == bytes[i]);
    }
}

static void fuzz_frame(const uint8_t *bytes, size_t size) {
    struct eski_frame_header header;
    if (size < ESKI_BLOCK_BYTES || !eski_frame_header_decode(bytes, &header) ||
        header.size > size || !eski_frame_intact(bytes, &header)) {
        return;
    }
    struct esk_reader reader = esk_reader(
        esk_slice(bytes + ESKI_FRAME_HEADER_BYTES, header.used - ESKI_FRAME_HEADER_BYTES));
    struct eski_record record;
    const uint8_t *at = reader.at;
    while (esk_reader_left(&reader) > 0 && eski_record_decode(&reader, &record, NULL) == ESK_OK) {
        check_record(&record, at, (size_t)(reader.at - at));
        at = reader.at;
    }
}

static enum esk_err visit(void *context, uint64_t group_id, const struct esk_entry *entry,
                          struct esk_error *error) {
    const struct esk_journal_recovery *recovery = context;
    const struct esk_group_state *state = esk_journal_recovery_find(recovery, group_id);
    (void)error;
    ESK_ASSERT(!state || entry->index > state->checkpoint.applied_index);
    return ESK_OK;
}

static void fuzz_recovery(const uint8_t *bytes, size_t size) {
    static struct fake fake;
    fake_init(&fake);
    struct esk_file *file;
    struct esk_slice slice = esk_slice(bytes, size);
    enum esk_err err = esk_file_open(&fake.platform, FOLDER "/0000000000000001.journal",
                                     ESK_FILE_WRITE | ESK_FILE_CREATE, &file, NULL);
    ESK_ASSERT(err == ESK_OK);
    err = esk_file_write(file, &slice, 1, 0, NULL);
    ESK_ASSERT(err == ESK_OK && esk_file_sync(file, NULL) == ESK_OK);
    esk_file_close(file);
    const struct esk_journal_options options = {.platform = &fake.platform, .folder = FOLDER};
    struct esk_journal_recovery *recovery;
    struct esk_error error;
    if (esk_journal_recover(&options, &recovery, &error) == ESK_OK) {
        (void)esk_journal_recovery_replay(recovery, UINT64_MAX, visit, recovery, &error);
        esk_journal_recovery_destroy(recovery);
    }
    fake_fini(&fake);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    uint8_t kind = data[0];
    size--;
    uint8_t *bytes = esk_alloc(size);
    memcpy(bytes, data + 1, size);
    size_t frames = (kind & 3) == 1 ? 0 : ESKI_BLOCK_BYTES;
    if ((kind & RIGHT_CHECKSUM) && size >= ESKI_BLOCK_BYTES) {
        if (frames != 0) {
            make_header_right(bytes);
        }
        make_frames_right(bytes + frames, size - frames);
    }
    switch (kind & 3) {
    case 0:
        fuzz_header(bytes, size);
        break;
    case 1:
        fuzz_frame(bytes, size);
        break;
    default:
        fuzz_recovery(bytes, size);
        break;
    }
    free(bytes);
    return 0;
}
