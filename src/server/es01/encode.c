/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of an answer's payload, in pieces. A piece that is copied has any size: large values
 * are cut anywhere. A piece that goes to the connection by reference has the heads of records in a
 * block, and the large values are lent: they stay where they were read to. */
#include "server/es01/es01_private.h"

#include "base/assert.h"

#define LENT_BYTES_MIN 512        /* smaller keys and values are copied */
#define PIECE_BYTES (1216 * 1024) /* then a piece ends, behind the record; one flush sends it */
#define PIECE_LENT_MAX 1200       /* as does one of so many slices */

/* --- bytes --- */

static uint8_t *encode_text(struct eski_es01_request *request, uint8_t *at, const uint8_t *end) {
    size_t left = request->text.size - request->written_bytes;
    size_t size = left < (size_t)(end - at) ? left : (size_t)(end - at);
    memcpy(at, request->text.data + request->written_bytes, size);
    return at + size;
}

/* --- results of a produce --- */

static uint8_t *encode_results(struct eski_es01_request *request, uint8_t *at, const uint8_t *end) {
    struct esk_produce_run *run = &request->run;
    if (request->written_bytes == 0) {
        esk_store_u32(at, request->produce.record_count);
        at += 4;
    }
    while (end - at >= ESK_ES01_RESULT_BYTES &&
           (run->count > 0 || esk_produce_next_run(&request->produce, run))) {
        size_t room = (size_t)(end - at) / ESK_ES01_RESULT_BYTES;
        uint32_t count = run->count < room ? run->count : (uint32_t)room;
        struct esk_es01_result result = {run->partition, run->offset, run->duplicate};
        for (uint32_t i = 0; i < count; i++, result.offset++) {
            at = esk_es01_result_write(at, &result);
        }
        run->offset += count;
        run->count -= count;
    }
    return at;
}

/* --- records of a consume --- */

static struct esk_es01_fetched_record fetched_record(const struct eski_es01_request *request) {
    const struct esk_consume_walk *walk = &request->walk;
    return (struct esk_es01_fetched_record){
        .partition = request->consume.partition,
        .offset = walk->record_offset,
        .timestamp_ms = esk_record_timestamp_ms(&walk->batch, &walk->record),
        .key = walk->record.key,
        .value = walk->record.value,
    };
}

/* What is left of `bytes` behind the first *skip of them, as far as it fits. */
static uint8_t *put_rest(uint8_t *at, const uint8_t *end, struct esk_slice bytes, size_t *skip) {
    if (*skip >= bytes.size) {
        *skip -= bytes.size;
        return at;
    }
    size_t left = bytes.size - *skip;
    size_t size = left < (size_t)(end - at) ? left : (size_t)(end - at);
    memcpy(at, bytes.data + *skip, size);
    *skip = 0;
    return at + size;
}

/* The walk's record from record_position on; true: to its end. */
static bool put_record(struct eski_es01_request *request, uint8_t **at, uint8_t *end) {
    struct esk_es01_fetched_record record = fetched_record(request);
    size_t size = esk_es01_fetched_record_bytes(&record);
    if (request->record_position == 0 && size <= (size_t)(end - *at)) {
        *at = esk_es01_fetched_record_write(*at, &record);
        return true;
    }
    uint8_t head[ESK_ES01_FETCHED_RECORD_HEAD_BYTES];
    uint8_t length[4];
    esk_es01_fetched_record_head(head, &record);
    esk_store_u32(length, (uint32_t)record.value.size);
    size_t skip = request->record_position;
    uint8_t *start = *at;
    *at = put_rest(*at, end, esk_slice(head, sizeof head), &skip);
    *at = put_rest(*at, end, record.key, &skip);
    *at = put_rest(*at, end, esk_slice(length, sizeof length), &skip);
    *at = put_rest(*at, end, record.value, &skip);
    request->record_position += (size_t)(*at - start);
    if (request->record_position < size) {
        return false;
    }
    request->record_position = 0;
    return true;
}

static void next_record(struct eski_es01_request *request) {
    if (!request->has_record) {
        struct esk_error error;
        enum esk_err err = esk_consume_walk_next(&request->walk, &request->has_record, &error);
        ESK_ASSERT(err == ESK_OK); /* the bytes that were measured */
    }
}

static uint8_t *encode_records(struct eski_es01_request *request, uint8_t *at, uint8_t *end) {
    if (request->written_bytes == 0 && !request->has_record) {
        if (end - at < ESK_ES01_FETCHED_BYTES) {
            return at;
        }
        esk_es01_fetched_write(at, &request->fetched);
        at += ESK_ES01_FETCHED_BYTES;
    }
    while (at < end) {
        next_record(request);
        if (!request->has_record) {
            break;
        }
        request->has_record = !put_record(request, &at, end);
    }
    return at;
}

/* --- the same by reference --- */

struct piece {
    struct esk_connection *connection;
    uint8_t *start; /* of what is not in the output yet */
    uint8_t *at;
    size_t bytes;
    unsigned lent;
};

/* What was copied so far goes before what is lent. */
static void piece_lend(struct piece *piece, struct esk_slice bytes) {
    esk_connection_lend(piece->connection,
                        esk_slice(piece->start, (size_t)(piece->at - piece->start)));
    esk_connection_lend(piece->connection, bytes);
    piece->start = piece->at;
    piece->lent++;
}

static void piece_put(struct piece *piece, struct esk_slice bytes) {
    if (bytes.size >= LENT_BYTES_MIN) {
        piece_lend(piece, bytes);
    } else if (bytes.size) {
        memcpy(piece->at, bytes.data, bytes.size);
        piece->at += bytes.size;
    }
}

static void piece_put_record(struct piece *piece, const struct esk_es01_fetched_record *record) {
    esk_es01_fetched_record_head(piece->at, record);
    piece->at += ESK_ES01_FETCHED_RECORD_HEAD_BYTES;
    piece_put(piece, record->key);
    esk_store_u32(piece->at, (uint32_t)record->value.size);
    piece->at += 4;
    piece_put(piece, record->value);
    piece->bytes += esk_es01_fetched_record_bytes(record);
}

void eski_es01_lend_records(struct eski_es01_request *request, struct esk_block *block) {
    struct piece piece = {.connection = request->client->connection,
                          .start = block->data,
                          .at = block->data + block->size};
    const uint8_t *end =
        block->data + block->capacity - 2 * (ESK_ES01_FETCHED_RECORD_BYTES_MIN + LENT_BYTES_MIN);
    if (request->written_bytes == 0) {
        esk_es01_fetched_write(piece.at, &request->fetched);
        piece.at += ESK_ES01_FETCHED_BYTES;
        piece.bytes = ESK_ES01_FETCHED_BYTES;
    }
    while (piece.bytes < PIECE_BYTES && piece.lent < PIECE_LENT_MAX && piece.at < end) {
        next_record(request);
        if (!request->has_record) {
            break;
        }
        struct esk_es01_fetched_record record = fetched_record(request);
        piece_put_record(&piece, &record);
        request->has_record = false;
    }
    request->written_bytes += piece.bytes;
    block->size = (uint32_t)(piece.at - block->data);
    esk_connection_write_block(piece.connection, &block, (uint32_t)(piece.start - block->data),
                               (uint32_t)(piece.at - piece.start));
}

enum esk_err eski_es01_measure(struct eski_es01_request *request, struct esk_error *error) {
    struct esk_consume_walk *walk = &request->walk;
    uint64_t size = ESK_ES01_FETCHED_BYTES;
    uint32_t count = 0;
    bool found;
    enum esk_err err;
    esk_consume_walk_begin(walk, &request->consume);
    while ((err = esk_consume_walk_next(walk, &found, error)) == ESK_OK && found) {
        size += ESK_ES01_FETCHED_RECORD_BYTES_MIN + walk->record.key.size + walk->record.value.size;
        request->record_bytes += esk_record_size(&walk->record);
        count++;
    }
    request->fetched =
        (struct esk_es01_fetched){walk->next_offset, request->consume.high_watermark, count};
    request->answer_bytes = size;
    esk_consume_walk_end(walk);
    esk_consume_walk_begin(walk, &request->consume);
    return err;
}

uint8_t *eski_es01_encode(struct eski_es01_request *request, uint8_t *at, uint8_t *end) {
    switch (request->answer) {
    case ESKI_ES01_ANSWER_RESULTS:
        return encode_results(request, at, end);
    case ESKI_ES01_ANSWER_RECORDS:
        return encode_records(request, at, end);
    case ESKI_ES01_ANSWER_BYTES:
        break;
    }
    return encode_text(request, at, end);
}
