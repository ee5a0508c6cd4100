/* SPDX-License-Identifier: Apache-2.0 */
/* A body from a stranger, for a message and version that the first three bytes choose. Decoder and
 * scanner must accept the same; what was decoded must encode to its measured size, come back equal,
 * and, where nothing was odd about it, be the very bytes that came in. */
#include "fuzz.h"

#include "base/assert.h"
#include "wire/kafka/codec.h"
#include "wire/kafka/scan.h"

#include <string.h>

#define CHOICE_BYTES 3
#define ARENA_BYTES (32U << 20)

struct oddities {
    size_t warnings;
    size_t tags; /* known ones may carry their default, which is not written again */
};

static void on_warning(void *context, const struct esk_kafka_node *parent,
                       const struct esk_kafka_field *field, size_t position, const char *text) {
    (void)parent;
    (void)field;
    (void)position;
    (void)text;
    ((struct oddities *)context)->warnings++;
}

static void on_open(void *context, const struct esk_kafka_node *node) {
    ((struct oddities *)context)->tags += node->part == ESK_KAFKA_PART_TAG && node->op != NULL;
}

static void check_encoding(const struct esk_kafka_layout *layout, const void *body,
                           struct esk_slice bytes, const struct oddities *oddities) {
    struct esk_buffer once;
    struct esk_buffer twice;
    struct esk_arena arena;
    struct esk_kafka_pieces pieces;
    struct esk_error error;
    const void *again;
    size_t used;
    esk_buffer_init(&once);
    esk_buffer_init(&twice);
    esk_arena_init(&arena, 0);
    esk_kafka_pieces_init(&pieces, 1);
    enum esk_err err = esk_kafka_encode(layout, body, &once, &error);
    ESK_ASSERT(err == ESK_OK || oddities->warnings > 0); /* tags that do not ascend */
    ESK_ASSERT(esk_kafka_encode_pieces(layout, body, &pieces, &error) == err);
    if (err == ESK_OK) {
        ESK_ASSERT(once.size == esk_kafka_size(layout, body) && once.size == pieces.size);
        if (oddities->warnings == 0 && oddities->tags == 0)
            ESK_ASSERT(esk_slice_equal(esk_buffer_slice(&once), bytes));
        ESK_ASSERT(esk_kafka_decode(layout, esk_buffer_slice(&once), &arena, &again, &used,
                                    &error) == ESK_OK);
        ESK_ASSERT(used == once.size);
        ESK_ASSERT(esk_kafka_encode(layout, again, &twice, &error) == ESK_OK);
        ESK_ASSERT(esk_slice_equal(esk_buffer_slice(&once), esk_buffer_slice(&twice)));
    }
    esk_kafka_pieces_fini(&pieces);
    esk_arena_fini(&arena);
    esk_buffer_fini(&once);
    esk_buffer_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < CHOICE_BYTES)
        return 0;
    size_t count;
    const struct esk_kafka_message *message = esk_kafka_messages(&count);
    message += esk_load_u16(data) % count;
    int versions = message->version_max - message->version_min + 1;
    int16_t version = (int16_t)(message->version_min + data[2] % versions);
    const struct esk_kafka_layout *layout = esk_kafka_layout_of(message, version);
    struct esk_slice bytes = esk_slice(data + CHOICE_BYTES, size - CHOICE_BYTES);
    struct esk_arena arena;
    struct esk_error error;
    const void *body = NULL;
    size_t used = 0;
    esk_arena_init(&arena, ARENA_BYTES);
    enum esk_err err =
        esk_kafka_decode_message(message, version, bytes, &arena, &body, &used, &error);
    struct oddities oddities = {0, 0};
    struct esk_kafka_visitor visitor = {.context = &oddities, .open = on_open, .warn = on_warning};
    struct esk_kafka_scan scan;
    esk_kafka_scan_init(&scan, bytes, &visitor);
    scan.shallow_records = true;
    bool scanned = esk_kafka_scan_struct(&scan, layout, NULL);
    if (err == ESK_OK) {
        ESK_ASSERT(scanned && (size_t)(scan.at - scan.start) == used);
        check_encoding(layout, body, esk_slice(bytes.data, used), &oddities);
    } else if (err == ESK_ERR_CORRUPT) {
        ESK_ASSERT(!scanned && scan.problem_position <= bytes.size);
        ESK_ASSERT(strstr(error.text, message->name) != NULL);
    } else {
        ESK_ASSERT(err == ESK_ERR_TOO_LARGE);
    }
    esk_kafka_scan_fini(&scan);
    esk_arena_fini(&arena);
    return 0;
}
